from __future__ import annotations

import pytest

from segue import ScenarioError, scenarios
from segue.scenarios import load


def test_every_bundled_scenario_is_valid_and_says_what_it_shows() -> None:
    known = scenarios()
    assert "papers/sigma" in [scenario.name for scenario in known]
    for scenario in known:
        assert scenario.description


@pytest.mark.parametrize("name", ["sigma", "papers/sigma", "papers/sigma.toml", "scenarios/papers/sigma.toml"])
def test_a_bundled_scenario_goes_by_several_names(name: str) -> None:
    assert load(name).name in ("papers/sigma", "sigma")


def test_text_is_taken_as_it_is() -> None:
    assert load('name = "x"\n').text == 'name = "x"\n'


def test_nothing_alike_is_answered_with_where_to_look() -> None:
    with pytest.raises(ScenarioError, match="segue scenarios list"):
        load("zzzzzzzz")

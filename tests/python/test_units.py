"""Units of tables are those of scenarios."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from command import Segue
from segue.running import job
from segue.scenarios import load
from segue.units import UNITS, in_words, percent, split

OF_SCENARIO = {
    "s": ("l2.latency", Fraction("1.8")), "bit/s": ("link.0.rate", Fraction(18_000_000)),
    "B": ("sctp.receive_buffer", Fraction(3 << 28)), "packets": ("link.0.queue", Fraction(30)),
    "m": ("cell.0.radius", Fraction(40)), "m/s": ("mobile.speed", Fraction(5)),
    "dB": ("handover.hysteresis", Fraction(3)),
}  # fmt: skip
"""For each of the units that it has a key of the scenario, and a value that it takes."""


def written(number: Fraction, unit: str) -> str:
    return f"{Decimal(number.numerator) / Decimal(number.denominator):f} {unit}"


@pytest.mark.parametrize("name", [name for name, unit in UNITS.items() if unit.base in OF_SCENARIO])
def test_a_unit_is_as_much_as_the_simulator_says(name: str) -> None:
    unit, scenario = UNITS[name], load("sigma")
    key, value = OF_SCENARIO[unit.base]
    identities = {
        job(scenario, {key: text}).identity()
        for text in (written(value / unit.factor, name), written(value, unit.base))
    }
    assert len(identities) == 1
    assert job(scenario, {key: written(value / 2 / unit.factor, name)}).identity() not in identities


def test_what_is_no_quantity_is_nothing() -> None:
    assert split("-1.5e-3 dB") == (Fraction(-3, 2000), "dB")
    for wrong in ("", "ms", "1 parsec", "1 ms 2", "7 s..8 s", "1e9999", "1.2.3"):
        assert split(wrong) is None


def test_values_are_shown_in_a_unit_that_fits() -> None:
    shown = [in_words("s", value) for value in (0.0005, 1.9, 2.0)]
    assert shown == [(1e6, "\N{GREEK SMALL LETTER MU}s"), (1e3, "ms"), (1.0, "s")]
    assert [in_words("bit/s", value)[1] for value in (999.0, 1e6)] == ["kbit/s", "Mbit/s"]
    assert (percent(0.9999), percent(0.95)) == ("99.9 %", "95 %")


@pytest.mark.parametrize("text", ["1e999 ms", "-1e999", "9" * 400 + " s", "9" * 5000, "0." + "9" * 5000 + " s"])
def test_numbers_that_a_double_does_not_hold_are_no_quantities(text: str) -> None:
    assert split(text) is None


@pytest.mark.parametrize(
    "arguments",
    [
        ("--grid", "l2.latency=1e999ms"),
        ("--grid", "l2.latency=1ms..1e999ms*10"),
        ("--grid", "l2.latency=100ms", "--until", "interruption +-1e999 %"),
        ("--grid", "l2.latency=100ms", "--budget", "1e999s"),
    ],
    ids=" ".join,
)
def test_numbers_that_a_double_does_not_hold_are_refused_in_a_line(segue: Segue, arguments: tuple[str, ...]) -> None:
    done = segue("sweep", "sigma", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert "1e999" in done.stderr.replace(" ", "")

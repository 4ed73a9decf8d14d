"""Interruptions of a stream, ours to ours, by the best of three runs: a machine that is busy otherwise adds to any one.

`make gaps` measures them properly, beside usrsctp.
"""

from __future__ import annotations

import gaps
import network
import pytest

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(network.missing() is not None, reason=network.missing() or ""),
]

# ms; the third is what RTO and error counts make of 300 ms without any link.
LIMITS = {"planned": 10, "link down": 295, "link down, quick": 150, "break before make": 1000, "..., one address": 1000}


@pytest.mark.parametrize("scenario", gaps.SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_stream_pauses_no_longer_than(scenario: gaps.Scenario) -> None:
    results = []
    for _ in range(3):
        result = gaps.measure(scenario, "segue", "segue")
        assert result is not None, "the stream never came back"
        if result < LIMITS[scenario.name]:
            return
        results.append(result)
    pytest.fail(f"{results} ms, expected at most {LIMITS[scenario.name]} ms")

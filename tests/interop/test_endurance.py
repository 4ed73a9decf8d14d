"""A handover a second, for twenty seconds: see `endurance.py`, which does it for ten minutes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

import endurance
import lab
import network
import pytest

REASON = network.missing() or (None if shutil.which("iperf3") else "iperf3 is missing (Debian package iperf3)")
pytestmark = [pytest.mark.alone, pytest.mark.skipif(REASON is not None, reason=REASON or "")]

SECONDS = 20
HUGE_PAGE_KIB = 2048
MOST_KIB_A_SECOND = 100
"""The packets of the last ten seconds are remembered; rows of handovers go to a file. A leak of packets would be
some 250 KiB of data a second, and as much again at the other host. What stays after many handovers is a test of the
simulator's."""


@pytest.mark.slow
@lab.real_time
def test_a_handover_a_second_loses_no_connection_and_takes_no_descriptors() -> None:
    for attempt in range(3):
        endured = endurance.endure(str(lab.program()), SECONDS)
        # a machine that is too busy says nothing of the connections
        if not endured.too_late:
            break
        print(f"attempt {attempt}: packets were too late", file=sys.stderr)
    else:
        pytest.skip(f"this machine is too busy for a lab: thrice; in the end {endured.told()}")
    assert (endured.dead, endured.failed) == (0, 0), endured.told()
    assert endured.handovers >= SECONDS - endurance.FIRST_HANDOVER_S, endured.told()
    assert endured.end.descriptors <= endured.begin.descriptors, endured.told()
    grown = endured.end.memory_kib - endured.begin.memory_kib
    assert grown < HUGE_PAGE_KIB + MOST_KIB_A_SECOND * (endured.end.at_s - endured.begin.at_s), endured.told()


def endured(memory_kib: Sequence[float]) -> endurance.Endured:
    """A run of which memory was this each second since the recorder was full."""
    # in pages
    seen = [endurance.Looked(60.0 + at, int(kib // 4 * 4), 10) for at, kib in enumerate(memory_kib)]
    return endurance.Endured(600, 0, 0, False, endurance.Looked(8.0, 11000, 10), seen, seen[-1])


def test_growth_by_handovers_is_found_and_a_queue_that_was_once_longer_is_none() -> None:
    leaks = endured([12000 + 0.1 * at for at in range(540)])
    assert leaks.grows()
    assert leaks.grows_each_handover() == pytest.approx(102, abs=35)
    steps = endured([12000 + 100 * (at > 40) + 100 * (at > 300) for at in range(540)])
    assert (steps.grows_each_handover(), steps.grown_kib(), steps.grows()) == (0, 200, False)
    assert endured([12000 + 300 * (at > 40) for at in range(540)]).grows()
    assert endured([12000.0] * 60).grows_each_handover() is None

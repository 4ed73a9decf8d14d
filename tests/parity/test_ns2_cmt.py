"""Concurrent multipath transfer beside ns-2's SCTP/CMT agent, whose authors are those of CMT itself.

Two paths that stay, with the rates and delays of paper 003, and Segue set to what the agent does (`LIKE_NS2` in
benches/cmt_beside_ns2.py, which says what that is). Compared are all buffers from 512 kB on, and at ratios 1 and 2
the smaller ones too. How, depends on ns-2 alone, on what it makes of delays that differ by half a millisecond and of
queues that differ by a packet:

- Where its results stay within 3 % of each other, one run of each stands for all, and they agree within 3 %.
- Where they do not (`SENSITIVE`), one run says nothing: at ratio 14 with 512 kB they are 0.59 to 0.71. There the means
  of ensembles with the same changes agree within 3 %, or as closely as the ensembles tell (95 % interval).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches"))
from cmt_beside_ns2 import CASES, VARIATIONS, Case, compare

pytestmark = pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed")

TOLERANCE = 0.03
UNTIL_S = 80
SENSITIVE = {
    Case(2, 64): (15, 200),
    Case(2, 128): (10, 200),
    Case(8, 512): (10, UNTIL_S),
    Case(14, 512): (15, 130),
    Case(14, 1024): (6, UNTIL_S),
}
"""Runs, and when the measurement ends, s: more where the results lie further apart, longer where links are slower."""
WIDEST_INTERVAL = 0.06
"""An ensemble that leaves more open than that would let anything pass."""


@pytest.mark.parametrize("case", [case for case in CASES if case not in SENSITIVE], ids=str)
def test_steady_transfers_agree_with_ns2(case: Case) -> None:
    """One run of each."""
    result = compare(case, VARIATIONS[:1], UNTIL_S)
    assert abs(result.difference) <= TOLERANCE, result


@pytest.mark.parametrize("case", SENSITIVE, ids=str)
def test_where_small_changes_matter_ensembles_agree_with_ns2(case: Case) -> None:
    """Means of the same variations."""
    runs, until_s = SENSITIVE[case]
    result = compare(case, VARIATIONS[:runs], until_s)
    assert result.ns2_range > TOLERANCE, f"one run would do: {result}"
    assert result.half_width <= WIDEST_INTERVAL, result
    assert abs(result.difference) <= max(TOLERANCE, result.half_width), result

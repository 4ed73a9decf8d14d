"""Concurrent multipath transfer beside ns-2's SCTP/CMT agent, whose authors are those of CMT itself.

Two paths that stay, with the rates and delays of paper 003: 384 kbit/s and 80 ms, and `ratio` times that and 15 ms. The
compared number is the share of what both links carry less the headers, from 20 s to 80 s: ns-2 has IPv4 headers, Segue
has those of IPv6.

Only where what the one path loses does not decide how long the other waits, so that a packet more or less changes
little. Measured elsewhere, ours beside ns-2's: 0.76 and 0.57 at ratio 2 with 64 kB, 0.84 and 0.78 with 128 kB, 0.87 and
0.91 at ratio 8 with 512 kB; and at ratio 14 with 2 MB 0.96 and 1.00, where one T3-rtx expires here and none there. At
ratio 2 with 512 kB it is 0.970 and 1.000, just outside.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import segue

SCRIPT = Path(__file__).parents[2] / "benches" / "peers" / "ns2" / "cmt.tcl"
KIB = 1024
QUEUE = 50
BEGIN_S, END_S = 20, 80
SLOW_BPS = 384_000
USER_DATA_SHARE = 1452 / 1520
"""Of a full packet over IPv6."""
TOLERANCE = 0.03


def ns2_share(ratio: int, rbuf: int) -> float:
    """What ns-2 gets of what it could."""
    command = ["ns", str(SCRIPT), *map(str, (ratio, rbuf, QUEUE, BEGIN_S, END_S))]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    lines = [line.split() for line in output.splitlines()]
    return float(next(line[1] for line in lines if line[:1] == ["share"]))


def segue_share(ratio: int, rbuf: int) -> float:
    """What Segue gets of what it could: what arrived by the one time less what had by the other."""

    def delivered(until_s: int) -> int:
        overrides = {
            "scheme": "cmt",
            "bw_ratio": str(ratio),
            "rbuf": f"{rbuf} B",
            "queue.packets": str(QUEUE),
            "t_1": "0 s",
            "t_dwell": "1000 s",
            "file_size": "1 GB",
            "duration": f"{until_s} s",
        }
        return segue.run("papers/cmt", overrides, trace=False).metrics.delivered_bytes

    possible = (ratio + 1) * SLOW_BPS * USER_DATA_SHARE * (END_S - BEGIN_S)
    return 8 * (delivered(END_S) - delivered(BEGIN_S)) / possible


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed")
@pytest.mark.parametrize(
    ("ratio", "rbuf"),
    [
        (1, 64 * KIB),
        (1, 128 * KIB),
        (1, 512 * KIB),
        (2, 256 * KIB),
        (3, 512 * KIB),
        (4, 512 * KIB),
        (8, 1024 * KIB),
    ],
)
def test_steady_transfers_agree_with_ns2(ratio: int, rbuf: int) -> None:
    """Within 3 %."""
    ours, theirs = segue_share(ratio, rbuf), ns2_share(ratio, rbuf)
    assert abs(ours / theirs - 1) <= TOLERANCE, f"Segue has {ours:.3f} of both links, ns-2 {theirs:.3f}"

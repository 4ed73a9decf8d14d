"""Concurrent multipath transfer beside ns-2's SCTP/CMT agent, whose authors are those of CMT itself.

Two paths that stay, with the rates and delays of paper 003: 384 kbit/s and 80 ms, and `ratio` times that and 15 ms. The
compared number is the share of what both links carry less the headers, that arrives from 20 s to 80 s, each chunk counted
once: ns-2 has IPv4 headers, Segue has those of IPv6.

Where the buffer is small, what the one path loses decides how long the other waits, and a packet more or less, or the
packet with which a timer expires, changes much. At ratio 2 with 64 kB ns-2 has 0.57 from 20 s to 80 s, and 0.62 from 20 s to
200 s; Segue has from 0.53 to 0.69 there, by scheduler and Max.Burst. Such cases are held to a wider band. At ratio 14 with
512 kB it is 0.68 and 0.60.
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
TOLERANCE_BLOCKED = 0.2
"""Where the receive buffer blocks most of the time, and timers decide."""


def ns2_share(ratio: int, rbuf: int) -> float:
    """What ns-2 gets of what it could."""
    command = ["ns", str(SCRIPT), *map(str, (ratio, rbuf, QUEUE, BEGIN_S, END_S))]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    lines = [line.split() for line in output.splitlines()]
    return float(next(line[1] for line in lines if line[:1] == ["share"]))


def segue_share(ratio: int, rbuf: int) -> float:
    """What Segue gets of what it could: what arrived by the one time less what had by the other."""

    def arrived(until_s: int) -> int:
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
        return sum(segue.run("papers/cmt", overrides, trace=False).metrics.bytes_per_path.values())

    possible = (ratio + 1) * SLOW_BPS * USER_DATA_SHARE * (END_S - BEGIN_S)
    return 8 * (arrived(END_S) - arrived(BEGIN_S)) / possible


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed")
@pytest.mark.parametrize(
    ("ratio", "rbuf"),
    [
        (1, 64 * KIB),
        (1, 128 * KIB),
        (1, 512 * KIB),
        (2, 128 * KIB),
        (2, 256 * KIB),
        (2, 512 * KIB),
        (3, 512 * KIB),
        (4, 512 * KIB),
        (8, 512 * KIB),
        (8, 1024 * KIB),
        (14, 1024 * KIB),
        (14, 2048 * KIB),
    ],
)
def test_steady_transfers_agree_with_ns2(ratio: int, rbuf: int) -> None:
    """Within 3 %."""
    ours, theirs = segue_share(ratio, rbuf), ns2_share(ratio, rbuf)
    assert abs(ours / theirs - 1) <= TOLERANCE, f"Segue has {ours:.3f} of both links, ns-2 {theirs:.3f}"


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed")
@pytest.mark.parametrize(("ratio", "rbuf"), [(2, 64 * KIB), (14, 512 * KIB)])
def test_where_the_receive_buffer_blocks_the_order_of_size_agrees(ratio: int, rbuf: int) -> None:
    """Within 20 %."""
    ours, theirs = segue_share(ratio, rbuf), ns2_share(ratio, rbuf)
    assert abs(ours / theirs - 1) <= TOLERANCE_BLOCKED, f"Segue has {ours:.3f} of both links, ns-2 {theirs:.3f}"

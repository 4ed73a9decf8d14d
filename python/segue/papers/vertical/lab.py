"""Table 1 of Cottingham and Vidales 2005 with real hosts: this kernel's TCP over Mobile IPv6, LAN, WLAN and GPRS."""

from __future__ import annotations

import polars as pl

from segue.papers.claims import Claim
from segue.papers.lab import Part, Plan, Point, Samples
from segue.papers.vertical import claims
from segue.papers.vertical import experiment as ex
from segue.scenarios import load

REPEAT = 10
QUICK_REPEAT = 2
"""A sigma needs two."""
TCP = {"tcp.profile": "modern", "tcp.congestion_control": "reno", "tcp.receive_buffer": "65535 B"}
"""This kernel's TCP, with the congestion control and the window of the paper's era."""

_LAYERS = "is of the network layer, which is the simulator's in both worlds"
NOT_RUN = {
    "V1": _LAYERS,
    "V6": "a kernel does not say what its cwnd is",
    "V7": "no runs of it in the lab yet",
    "V8": "is how t_a is measured, by the same code in both worlds",
    "V9": "a kernel's TCP takes no RTT from outside: docs/lab.md has runs with the clamp alone",
}


def plan(*, quick: bool = False, repeat: int | None = None) -> Plan:
    """V2 to V5.

    Args:
        quick: Two runs of each case.
        repeat: Runs of each case; ten if left out.
    """
    upward, downward = (tuple(_point(case) for case in cases) for cases in (ex.UPWARD, ex.DOWNWARD))
    parts = [
        Part(("V2", "V3", "V4"), upward, _judge_upward),
        # what is negligible is told by the upward handover
        Part(("V5",), upward + downward, lambda samples: [claims.v5(_runs(samples), traced="")]),
    ]
    return Plan(parts, NOT_RUN, repeat or (QUICK_REPEAT if quick else REPEAT))


def _point(case: str) -> Point:
    # with real hosts no two flows are in the middle of the same segment when their network goes
    return Point(case, load(ex.SCENARIO), {**ex.settings({"case": case}, 1), **TCP}, traced=True)


def _runs(samples: Samples) -> pl.DataFrame:
    rows = [
        row
        for case, own in samples.items()
        for one in own
        for row in ex.rows(ex.Variant(case, {"case": case}, len(own)), one.seed, ex.see(one.frames, traced=True))
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _judge_upward(samples: Samples) -> list[Claim]:
    runs = _runs(samples)
    return [claims.v2(runs, _NO_WINDOWS), claims.v3(runs), claims.v4(runs)]


_NO_WINDOWS = pl.DataFrame(
    schema={"case": pl.String(), "time_s": pl.Float64(), "cwnd_bytes": pl.UInt32(), "ssthresh_bytes": pl.UInt32()}
)
"""Of a kernel's TCP."""

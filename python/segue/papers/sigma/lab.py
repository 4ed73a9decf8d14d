"""Figures 10, 12 and 13 of Fu et al. 2005 around their threshold, and the zigzag, between network namespaces.

SCTP is Segue's in both worlds; what differs is that packets and timers are in real time.
"""

from __future__ import annotations

from itertools import product

import polars as pl

from segue.papers.claims import Claim
from segue.papers.grid import Grid
from segue.papers.lab import Part, Plan, Point, Samples
from segue.papers.sigma import claims, trace, zigzag
from segue.papers.sigma import experiment as ex
from segue.scenarios import load

REPEAT = ex.FULL_SEEDS
QUICK_REPEAT = 1

AROUND = ((100, 300), (300, 500), (400, 600), (500, 500))
"""L2 latency and address resolution, ms: well below the threshold of 900 ms, and 100 ms on either side of it."""
MORE = ((100, 600), (200, 600), (400, 400), (600, 400), (500, 600), (600, 600))
DURATION = "60 s"
QUICK_DURATION = "40 s"
"""Three handovers, at 8, 22 and 36 s; four in 60 s."""
TRACE_QUICK = "40 s"
TRACED = ("none", "low", "high")
"""Of `experiment.TRACED`: the classes of L2 latency."""

SPEEDS_MPS = (4.0, 12.0)
"""Of the zigzag: one at which a new address is in time, and one at which it is not."""

_SPEED = "32 points of speed and beacon period, which are not run in the lab: layer 2 is the simulator's in both worlds"
NOT_RUN = {
    "S4": "counts what is sent before an acknowledgement comes: our SCTP sends at the time when that was due, and the "
    "record has when it came",
    "S7": _SPEED,
    "S8": _SPEED,
    "S9": _SPEED,
    "S10": "segue lab has no location manager",
}


def plan(*, quick: bool = False, repeat: int | None = None) -> Plan:
    """S1 to S3, S5, S6 and S11.

    Args:
        quick: One run of each point, of four points of S1 to S3, and of two speeds of S11.
        repeat: Runs of each point; five if left out.
    """
    parts = [
        Part(("S1", "S2", "S3"), _latency_points(quick), _judge_latency),
        Part(("S5", "S6"), _traced_points(quick), _judge_traces),
        Part(("S11",), _zigzag_points(quick), _judge_zigzag),
    ]
    return Plan(parts, NOT_RUN, repeat or (QUICK_REPEAT if quick else REPEAT))


def _grid() -> Grid:
    return next(grid for grid in ex.grids() if grid.name == ex.LATENCY)


def _latency_points(quick: bool) -> tuple[Point, ...]:
    grid = _grid()
    length = {"duration": QUICK_DURATION if quick else DURATION}
    return tuple(
        Point(_latency_name(point), load(ex.SCENARIO), {**grid.overrides(point), **length})
        for point in (AROUND if quick else AROUND + MORE)
    )


def _latency_name(point: tuple[int, int]) -> str:
    return f"latency-{point[0]}-{point[1]}"


def _judge_latency(samples: Samples) -> list[Claim]:
    grid = _grid()
    rows = [
        grid.row(point, one.seed, one.run) for point in AROUND + MORE for one in samples.get(_latency_name(point), ())
    ]
    return claims.of_latency(pl.DataFrame(rows, infer_schema_length=None))


def _traced_points(quick: bool) -> tuple[Point, ...]:
    length = {"duration": TRACE_QUICK} if quick else {}
    return tuple(
        Point(f"trace-{one.name}", load(ex.SCENARIO), {**ex.TRACE_OVERRIDES, **one.overrides, **length}, traced=True)
        for one in ex.TRACED
        if one.name in TRACED
    )


def _judge_traces(samples: Samples) -> list[Claim]:
    """Of the first run of each, as the figures are of one."""
    none, low, high = (trace.facts(samples[f"trace-{name}"][0].frames) for name in TRACED)
    return [claims.s5(none, low), claims.s6(high)]


def _zigzag_points(quick: bool) -> tuple[Point, ...]:
    speeds = SPEEDS_MPS if quick else zigzag.SPEEDS_MPS
    return tuple(
        Point(
            _zigzag_name(variant, speed),
            load(zigzag.SCENARIO),
            zigzag.overrides(variant, speed, quick=quick),
            traced=True,
        )
        for variant, speed in product(zigzag.VARIANTS, speeds)
    )


def _zigzag_name(variant: str, speed: float) -> str:
    return f"zigzag-{variant}-{speed:g}"


def _judge_zigzag(samples: Samples) -> list[Claim]:
    rows = [
        {zigzag.VARIANT: variant, zigzag.MPS: speed, "seed": one.seed, **zigzag.measure(one.frames)}
        for variant, speed in product(zigzag.VARIANTS, zigzag.SPEEDS_MPS)
        for one in samples.get(_zigzag_name(variant, speed), ())
    ]
    return [zigzag.s11(pl.DataFrame(rows, infer_schema_length=None))]

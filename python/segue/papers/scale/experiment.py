"""What is run: one scenario with 10 to 10,000 phones, for each scheme, and what is kept of each run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, inf

import polars as pl

from segue.metrics import Handover, NodeLoad
from segue.runner import Runner
from segue.running import Progress, Run, job
from segue.scenarios import load

SCENARIO = "populations/scale"

SCHEMES = {
    "sigma": "SIGMA",
    "ilnp-soft": "ILNPv6",
    "mip6-ro": "Mobile IPv6, route optimisation",
    "mip6": "Mobile IPv6",
}
"""By the scenario's names, in the order of the figures."""
PHONES = (10, 30, 100, 300, 1000, 3000, 10_000)
QUICK_PHONES = (10, 100)
SEEDS = {10: 20, 30: 10, 100: 6, 300: 3, 1000: 3, 3000: 1, 10_000: 1}
"""Runs of a point: with few phones a run has few handovers."""
PROBE_EACH = 10
"""Every tenth phone's packets are 8 ms apart instead of 80: a hundred such would be too many frames for a cell ..."""
MOST_PROBES = 100
"""... and a thousand more traffic than all others."""
PROBE_PACING_S = 0.008
"""100 bytes at 100 kbit/s."""

BEGIN_S = 15.0
"""Up to here phones find their first network, register and connect: what is measured begins then."""
END_S = 60.0
LINK_BPS = 1e9
"""Of the home agent's link, each way."""

ANCHORS = {"home-agent": "home agent", "location-manager": "location manager"}
"""What may saturate: roles of `segue.metrics.NodeLoad`."""
PERCENTILES = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
RUNS_SCHEMA = {
    "scheme": pl.String(), "phones": pl.Int64(), "seed": pl.Int64(),
    "handovers": pl.Int64(), "probed": pl.Int64(), "censored": pl.Int64(),
    "p50_s": pl.Float64(), "p95_s": pl.Float64(), "p99_s": pl.Float64(), "max_s": pl.Float64(),
    "p50_censored": pl.Boolean(), "p95_censored": pl.Boolean(), "p99_censored": pl.Boolean(),
    "max_censored": pl.Boolean(),
    "dead_flows": pl.Int64(), "lost_to_queue": pl.Int64(), "signalling_per_s": pl.Float64(),
    "event_log_hash": pl.String(),
}  # fmt: skip
LOADS_SCHEMA = {
    "scheme": pl.String(), "phones": pl.Int64(), "seed": pl.Int64(), "anchor": pl.String(),
    "updates_per_s": pl.Float64(), "peak_updates_per_s": pl.Int64(), "signalling_per_s": pl.Float64(),
    "packets_per_s": pl.Float64(), "bps": pl.Float64(), "busy": pl.Float64(), "peak_busy": pl.Float64(),
    "link": pl.Float64(), "dropped": pl.Int64(), "longest_stay_s": pl.Float64(),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Point:
    """A run: `phones` mobile hosts with `scheme`."""

    scheme: str
    phones: int
    seed: int

    @property
    def overrides(self) -> dict[str, object]:
        """What it sets. The seed of the file draws when each phone begins to move."""
        probes = min(self.phones // PROBE_EACH, MOST_PROBES)
        return {"scheme": self.scheme, "phones": self.phones, "probes": probes, "seed": self.seed}


@dataclass(frozen=True, slots=True)
class Results:
    """All runs.

    Attributes:
        runs: A row per run, see `RUNS_SCHEMA`. Interruptions are those of the probes: percentiles of the longest time
            without new data around each handover from `BEGIN_S` on, and the longest of all; `censored` counts those
            that lasted to the end of the run, and `p50_censored` and so on say where these make it a lower bound (see
            `segue.distributions.Summary`). Signalling is that of all hosts and routers over the whole run.
        loads: A row per run and anchor, see `LOADS_SCHEMA`, from `BEGIN_S` on: means, and the greatest second; `busy`
            is the share of its processor, `link` that of its link, in the direction towards it.
    """

    runs: pl.DataFrame
    loads: pl.DataFrame


def points(*, quick: bool = False, seeds: int | None = None) -> list[Point]:
    """Every run.

    Args:
        quick: 10 and 100 phones, two runs each.
        seeds: Runs of a point, whatever the number of phones.
    """
    phones = QUICK_PHONES if quick else PHONES
    count = {n: seeds or (2 if quick else SEEDS[n]) for n in phones}
    return [Point(scheme, n, seed) for n in phones for scheme in SCHEMES for seed in range(1, count[n] + 1)]


def run(asked: Iterable[Point], *, runner: Runner, progress: Progress | None = None) -> Results:
    """Make the runs, the largest first, and keep what the figures are of."""
    ordered = sorted(asked, key=lambda point: -point.phones)
    scenario = load(SCENARIO)
    jobs = [job(scenario, point.overrides, seed=point.seed) for point in ordered]
    kept = runner.keep(jobs, _measure, progress=progress)
    runs = [_label(point) | values for point, (values, _) in zip(ordered, kept, strict=True)]
    loads = [_label(point) | row for point, (_, rows) in zip(ordered, kept, strict=True) for row in rows]
    by = ["scheme", "phones", "seed"]
    return Results(
        pl.DataFrame(runs, schema=RUNS_SCHEMA).sort(by), pl.DataFrame(loads, schema=LOADS_SCHEMA).sort([*by, "anchor"])
    )


def percentile(values: list[float], percent: float) -> float | None:
    """The smallest value that at least `percent` % of them do not exceed; `None` of none.

    >>> percentile([4.0, 1.0, 3.0, 2.0], 50)
    2.0
    """
    ordered = sorted(values)
    return ordered[max(ceil(len(ordered) * percent / 100), 1) - 1] if ordered else None


def _label(point: Point) -> dict[str, object]:
    return {"scheme": point.scheme, "phones": point.phones, "seed": point.seed}


def _measure(run: Run) -> tuple[dict[str, object], list[dict[str, object]]]:
    metrics = run.metrics
    moved = [handover for handover in metrics.handovers if handover.time_s >= BEGIN_S]
    probed = [handover for handover in moved if _is_probed(handover)]
    times = [handover.interruption_s for handover in probed if handover.interruption_s is not None]
    silences = [one.interruption_s for one in probed if one.interruption_s is not None and one.censored]
    percentiles = {name: percentile(times, percent) for name, percent in PERCENTILES.items()}
    values: dict[str, object] = {
        "handovers": len(moved),
        "probed": len(times),
        "censored": sum(handover.censored for handover in probed),
        **{f"{name}_s": value for name, value in percentiles.items()},
        **{
            f"{name}_censored": None if value is None else value >= min(silences, default=inf)
            for name, value in percentiles.items()
        },
        "dead_flows": sum(flow.state == "dead" for flow in metrics.flows),
        "lost_to_queue": metrics.packets_lost_to_queue,
        "signalling_per_s": metrics.signalling.packets / metrics.duration_s,
        "event_log_hash": metrics.event_log_hash,
    }
    return values, [_load(one) for one in metrics.loads if one.role in ANCHORS]


def _is_probed(handover: Handover) -> bool:
    """Whether it is of one of the phones with the closer packets."""
    number = int(handover.host.removeprefix("phone"))
    return handover.flow is not None and number % PROBE_EACH == 0 and number < PROBE_EACH * MOST_PROBES


def _load(load: NodeLoad) -> dict[str, object]:
    seconds = load.by_second[int(BEGIN_S) : int(END_S)]
    length = END_S - BEGIN_S
    bps = 8 * sum(second.bytes for second in seconds) / length
    return {
        "anchor": load.role,
        "updates_per_s": sum(second.updates for second in seconds) / length,
        "peak_updates_per_s": max((second.updates for second in seconds), default=0),
        "signalling_per_s": sum(second.signalling for second in seconds) / length,
        "packets_per_s": sum(second.packets for second in seconds) / length,
        "bps": bps,
        "busy": sum(second.busy for second in seconds) / length,
        "peak_busy": max((second.busy for second in seconds), default=0.0),
        "link": bps / LINK_BPS,
        "dropped": load.dropped,
        "longest_stay_s": load.longest_stay_s,
    }

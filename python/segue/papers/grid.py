"""Grids of runs: every combination of some overrides, with several seeds, as one frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from segue.recorded import Measured
from segue.runner import Runner
from segue.running import Progress, job
from segue.stats import median_interval

if TYPE_CHECKING:
    import polars as pl

    from segue import _native
    from segue.scenarios import Scenario


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension of a grid.

    Attributes:
        key: Override key, such as "l2.latency".
        column: Column of the results, with its unit: "l2_latency_ms".
        values: Values in that unit.
        unit: Unit as a scenario writes it, "ms"; empty for words.
    """

    key: str
    column: str
    values: Sequence[float | str]
    unit: str = ""

    def override(self, value: float | str) -> str:
        """The value as a scenario writes it.

        >>> Axis("l2.latency", "l2_latency_ms", [100], "ms").override(100)
        '100 ms'
        """
        if isinstance(value, str):
            return value
        return f"{value:g} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid over a scenario.

    Attributes:
        name: Name of its table.
        axes: Dimensions, the slowest first.
        fixed: Overrides that all runs share.
    """

    name: str
    axes: Sequence[Axis]
    fixed: Mapping[str, str] = field(default_factory=dict)

    def points(self) -> list[tuple[float | str, ...]]:
        """Every combination of values."""
        return list(product(*(axis.values for axis in self.axes)))

    def overrides(self, point: Sequence[float | str]) -> dict[str, str]:
        """What a point sets."""
        return {**self.fixed, **{a.key: a.override(v) for a, v in zip(self.axes, point, strict=True)}}

    def jobs(self, scenario: Scenario, seeds: Sequence[int]) -> list[_native.Job]:
        """Its runs: points in order, seeds within a point."""
        return [job(scenario, self.overrides(point), seed=seed) for point in self.points() for seed in seeds]

    def row(self, point: Sequence[float | str], seed: int, run: Measured) -> dict[str, object]:
        """The row of a run: see `frame`."""
        columns = [axis.column for axis in self.axes] + ["seed"]
        return dict(zip(columns, (*point, seed), strict=True)) | _values(run)

    def frame(self, runs: Sequence[Measured], seeds: Sequence[int]) -> pl.DataFrame:
        """A row per run, in the order of `jobs`.

        The axes' columns, `seed`, `handovers`, `latency_mean_s` and `latency_median_s` over the run's handovers (null
        without any), `interruption_median_s`, `interruption_p95_s` and `interruption_max_s` over them and over outages
        without one, whether each is a lower bound (`interruption_median_censored` and so on), `interruptions` and how
        many of them are lower bounds (`interruptions_censored`), `dead_flows`, `longest_gap_s`, `lost_packets`,
        `loss_rate`, `throughput_bps`, `useful_bps`, `packets_sent`,
        `timeouts`, `event_log_hash`.
        """
        import polars as pl

        labels = [(point, seed) for point in self.points() for seed in seeds]
        rows = [self.row(point, seed, run) for (point, seed), run in zip(labels, runs, strict=True)]
        return pl.DataFrame(rows, infer_schema_length=None)


def run_grids(
    grids: Sequence[Grid],
    scenario: Scenario,
    seeds: Sequence[int],
    *,
    runner: Runner | None = None,
    progress: Progress | None = None,
) -> dict[str, pl.DataFrame]:
    """Run several grids in one go and return a frame for each, by its name."""
    jobs = [grid.jobs(scenario, seeds) for grid in grids]
    runs = (runner or Runner()).runs([one for some in jobs for one in some], progress=progress)
    frames = {}
    start = 0
    for grid, some in zip(grids, jobs, strict=True):
        frames[grid.name] = grid.frame(runs[start : start + len(some)], seeds)
        start += len(some)
    return frames


def summarise(frame: pl.DataFrame, by: Sequence[str], value: str) -> pl.DataFrame:
    """Median over seeds with its interval.

    Returns:
        `by`, sorted, then `median`, `low`, `high` in the unit of `value`, `coverage` and `n`; points at which no run
        has a value are left out.
    """
    import polars as pl

    rows = []
    for key, group in frame.drop_nulls(value).group_by(*by, maintain_order=True):
        interval = median_interval(group[value].to_list())
        rows.append(
            dict(zip(by, key, strict=True))
            | {
                "median": interval.median,
                "low": interval.low,
                "high": interval.high,
                "coverage": interval.coverage,
                "n": group.height,
            }
        )
    schema = {name: frame.schema[name] for name in by} | {
        "median": pl.Float64(),
        "low": pl.Float64(),
        "high": pl.Float64(),
        "coverage": pl.Float64(),
        "n": pl.Int64(),
    }
    return pl.DataFrame(rows, schema=schema).sort(by)


def _values(run: Measured) -> dict[str, object]:
    metrics = run.metrics
    latency = metrics.handover_latency_s
    interruption = metrics.interruption_s
    return {
        "handovers": len(metrics.handovers),
        "latency_mean_s": metrics.handover_latency_mean_s,
        "latency_median_s": None if latency is None else latency.median,
        "interruption_median_s": None if interruption is None else interruption.median,
        "interruption_p95_s": None if interruption is None else interruption.p95,
        "interruption_max_s": None if interruption is None else interruption.max,
        "interruption_median_censored": None if interruption is None else interruption.median_censored,
        "interruption_p95_censored": None if interruption is None else interruption.p95_censored,
        "interruption_max_censored": None if interruption is None else interruption.max_censored,
        "interruptions": 0 if interruption is None else interruption.count,
        "interruptions_censored": 0 if interruption is None else interruption.censored,
        "dead_flows": sum(flow.state == "dead" for flow in metrics.flows),
        "longest_gap_s": metrics.longest_gap_s,
        "lost_packets": metrics.packets_lost_to_handover,
        "loss_rate": metrics.loss_rate,
        "throughput_bps": metrics.throughput_bps,
        "useful_bps": metrics.useful_bps,
        "packets_sent": metrics.packets_sent,
        "timeouts": metrics.timeouts,
        "event_log_hash": metrics.event_log_hash,
    }

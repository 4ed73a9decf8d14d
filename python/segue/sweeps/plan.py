"""Which runs a sweep makes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from segue import _native
from segue.running import check, job
from segue.scenarios import Scenario
from segue.sweeps.axes import Axis
from segue.sweeps.columns import HASH, METRICS, Row, row_of

MOST_POINTS = 1_000_000

Task = tuple[int, int]
"""A point by its number, and a seed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Points of a scenario.

    Attributes:
        scenario: The scenario.
        axes: Dimensions, the slowest first.
        fixed: Overrides that all runs share.
        extra: Metrics beside `segue.sweeps.columns.METRICS`, by their paths.
        points: Every combination, each by the places of its values.
    """

    scenario: Scenario
    axes: tuple[Axis, ...]
    fixed: Mapping[str, str]
    extra: tuple[str, ...]
    points: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls, scenario: Scenario, axes: tuple[Axis, ...], fixed: Mapping[str, str], extra: Sequence[str] = ()
    ) -> Plan:
        """A plan that can be run: each of its points is a scenario.

        Raises:
            ScenarioError: One is none, or a key is set twice.
        """
        for axis in axes:
            if axis.key in fixed:
                raise _native.ScenarioError(f"grid: {axis.key}: is set too, expected one of both")
            if axis.column in {metric.column for metric in METRICS} | {metric.bound for metric in METRICS}:
                raise _native.ScenarioError(f"grid: {axis.key}: is the name of a metric's column")
        taken = {"seed", HASH} | {axis.column for axis in axes}
        if name := next((name for name in extra if name in taken), None):
            raise _native.ScenarioError(f"metric `{name}`: is the name of a column that is there anyway")
        count = 1
        for axis in axes:
            count *= len(axis.values)
        if count > MOST_POINTS:
            raise _native.ScenarioError(f"grid: {count} points: expected at most {MOST_POINTS}")
        points = tuple(product(*(range(len(axis.values)) for axis in axes)))
        # of a metric's word the column is there anyway
        known = {name for metric in METRICS for name in (metric.word, metric.column)}
        plan = cls(
            scenario, axes, dict(fixed), tuple(name for name in dict.fromkeys(extra) if name not in known), points
        )
        for point in range(len(points)):
            check(scenario, plan.overrides(point))
        return plan

    def overrides(self, point: int) -> dict[str, str]:
        """What a point sets."""
        own = zip(self.axes, self.points[point], strict=True)
        return {**self.fixed, **{axis.key: axis.settings[place] for axis, place in own}}

    def labels(self, point: int) -> Row:
        """The axes' columns of a point."""
        own = zip(self.axes, self.points[point], strict=True)
        return {axis.column: axis.values[place] for axis, place in own}

    def job(self, task: Task) -> _native.Job:
        """A run."""
        point, seed = task
        return job(self.scenario, self.overrides(point), seed=seed)


def row_of_run(metrics_json: str, extra: Sequence[str]) -> Row:
    """The row of a run, wherever it was made: see `segue.sweeps.columns.row_of`."""
    from segue.metrics import Metrics

    document = json.loads(metrics_json) if extra else None
    return row_of(Metrics.from_json(metrics_json), document, extra)

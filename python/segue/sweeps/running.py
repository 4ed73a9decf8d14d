"""`segue.sweep`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from segue import _native
from segue.running import override_list
from segue.scenarios import Scenario, load

if TYPE_CHECKING:
    from segue.runner import Runner
    from segue.sweeps.axes import Values
    from segue.sweeps.columns import Row
    from segue.sweeps.execution import Execution
    from segue.sweeps.plan import Plan, Task
    from segue.sweeps.result import Sweep
    from segue.sweeps.stopping import Rule

MOST_SEEDS = 160
"""Where a point is given up whose interval does not get narrow enough."""

Progress = Callable[[str, int, int], object]
"""Called with (what is going on, runs done, runs in all), from the calling thread."""


def sweep(
    scenario: str | Path | Scenario,
    grid: Mapping[str, Values] | Sequence[str],
    overrides: Mapping[str, object] | None = None,
    *,
    seeds: int | Sequence[int] = 5,
    metrics: Sequence[str] = (),
    until: str | None = None,
    most_seeds: int = MOST_SEEDS,
    budget: str | float | None = None,
    runner: Runner | None = None,
    on: str | None = None,
    parts: Path | None = None,
    tell: Callable[[str], object] = warnings.warn,
    progress: Progress | None = None,
) -> Sweep:
    """Run a scenario at every combination of some keys' values.

    Args:
        scenario: A file, the name of a bundled scenario, or TOML text.
        grid: Keys to values, the slowest first: `{"l2.latency": "100ms..600ms/100ms", "scheme": ["mip6", "sigma"]}`, or
            the same as `["l2.latency=100ms..600ms/100ms", "scheme=mip6,sigma"]`; see `segue.sweeps.axes.parse_axis`.
        overrides: What all runs share, as in `segue.run`.
        seeds: How many of each point, from 1 on, or which.
        metrics: Further columns, as paths in the document of `segue run --json`: `["signalling.by_kind.BU.packets"]`.
        until: Add seeds until the interval of a metric's median is so narrow: `"interruption ±5 %"`; see
            `segue.sweeps.stopping.Rule`.
        most_seeds: Where a point is given up with `until`.
        budget: Stop after this time, with what there is by then: `"10 min"`, or seconds.
        runner: With how many threads runs are made, and with what store beside them, from which those that were made
            before are had: `Runner(threads=2, store=Store(Path("results")))`. All processors and no store, if left out.
        on: "ray" or "ray://ADDRESS:PORT": make the runs on that cluster; `runner` has then no effect.
        parts: With `on`, a folder for the rows that there are; what is there of the same sweep is not made again.
        tell: Told what runs warn of, each once; with `on`, of workers that are lost or refused, and of parts that are
            damaged, too.
        progress: Told how far it has come.

    Raises:
        ScenarioError: The scenario, a key or a value is wrong, wherever in the grid.
        RunError: A run could not be carried to its end.
        KeyboardInterrupt: Ctrl-C; what has ended is in the store.

    >>> found = sweep("sigma", {"l2.latency": "100ms, 200ms"}, {"duration": "20 s"}, seeds=2)
    >>> found.frame.shape[0], found.axes[0].column
    (4, 'l2_latency_s')
    """
    from segue.runner import Runner
    from segue.sweeps.axes import parse_axes
    from segue.sweeps.execution import Local
    from segue.sweeps.plan import Plan
    from segue.sweeps.stopping import parse_rule

    source = scenario if isinstance(scenario, Scenario) else load(scenario)
    budget_s = parse_budget(budget)
    rule = parse_rule(seeds, until, most_seeds, metrics)
    plan = Plan.of(source, parse_axes(grid), dict(override_list(overrides)), metrics)
    if on is None:
        return _run(plan, rule, Local(runner or Runner(), tell), budget_s, progress)
    from segue.sweeps.cluster import Cluster

    with Cluster(on, plan, parts, tell) as cluster:
        return _run(plan, rule, cluster, budget_s, progress)


def parse_budget(budget: str | float | None) -> float | None:
    """A time in seconds: `10 min`, `10m` (minutes), `90 s`.

    Raises:
        ScenarioError: It is none.
    """
    if budget is None:
        return None
    if isinstance(budget, (int, float)):
        if not 0 < budget < inf:
            raise _native.ScenarioError(f"budget {budget}: expected a time, in seconds")
        return budget
    from segue.units import UNITS, split

    text = budget.strip()
    # what everybody types for minutes; of a scenario's quantities "m" is metres
    found = split(f"{text}in" if text.endswith("m") else text)
    if found is None or not found[1] or UNITS[found[1]].base != "s" or found[0] <= 0:
        raise _native.ScenarioError(f"budget `{budget}`: expected a time, such as 10 min")
    return float(found[0] * UNITS[found[1]].factor)


def _run(plan: Plan, rule: Rule, execution: Execution, budget_s: float | None, progress: Progress | None) -> Sweep:
    from segue.sweeps.execution import Deadline, OverBudget
    from segue.sweeps.result import Sweep

    deadline = Deadline(budget_s)
    rows: dict[Task, Row] = {}
    open_points = list(range(len(plan.points)))
    missing = 0
    for number, seeds in enumerate(rule.rounds()):
        if number:
            open_points = _open(rule, rows, open_points)
        # all points once before any twice: a budget leaves none without
        tasks = [(point, seed) for seed in seeds for point in open_points]
        what = "simulating" if rule.until is None else f"simulating, look {number + 1}"

        def done(count: int, what: str = what, total: int = len(tasks)) -> None:
            if progress is not None:
                progress(what, count, total)
            deadline.check()

        try:
            execution.make(plan, tasks, rows.__setitem__, done)
        except OverBudget:
            missing = sum(task not in rows for task in tasks)
        if missing or not tasks:
            break
    return Sweep.of(plan, rule, rows, budget_s=budget_s if missing else None, missing=missing)


def _open(rule: Rule, rows: Mapping[Task, Row], points: Sequence[int]) -> list[int]:
    """Which of the points need more seeds."""
    from segue.sweeps.columns import number_in

    assert rule.until is not None
    metric = rule.until.metric
    own: dict[int, list[Row]] = {point: [] for point in points}
    for (point, _), row in rows.items():
        if point in own:
            own[point].append(row)
    return [
        point
        for point, some in own.items()
        if rule.is_open(
            [number_in(row[metric.column]) for row in some],
            [bool(row.get(metric.bound)) for row in some],
        )
    ]

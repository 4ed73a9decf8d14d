"""`segue reproduce sigma`: runs, figures, tables, claims and the report."""

from __future__ import annotations

from pathlib import Path

from segue.papers.common import INTERVALS, Beside, Reproduction, Stage, alone, silent, write_all
from segue.papers.grid import run_grids
from segue.papers.sigma import claims, figures, location, zigzag
from segue.papers.sigma import experiment as ex
from segue.report.html import Section, text_section
from segue.runner import Runner
from segue.running import Run, job
from segue.scenarios import load


def reproduce(
    out: Path,
    *,
    quick: bool = False,
    seeds: int | None = None,
    runner: Runner | None = None,
    stage: Stage | None = None,
    beside: Beside = alone,
) -> Reproduction:
    """Run everything and write it into `out`: claims S1 to S11, see `segue.papers.common.write_all`.

    Args:
        out: Directory; made if missing.
        quick: 120 s instead of 500 s per run, and two seeds: for a first look.
        seeds: Seeds per point.
        runner: Makes the runs; one without a store, if left out.
        stage: Told what is going on.
        beside: Has what real hosts come to put beside the claims.
    """
    tell = stage or silent
    runner = runner or Runner()
    before = runner.counts.asked
    scenario = load(ex.SCENARIO)
    seed_list = list(range(1, (seeds or (ex.QUICK_SEEDS if quick else ex.FULL_SEEDS)) + 1))
    traced = _traced_runs(runner)
    grids = ex.grids(quick=quick)
    frames = run_grids(
        grids,
        scenario,
        seed_list,
        runner=runner,
        progress=lambda done, total: tell("simulating", done, total),
    )
    zigzags = zigzag.run(
        seed_list, quick=quick, runner=runner, progress=lambda done, total: tell("zigzagging", done, total)
    )
    judged = beside(
        [
            *claims.evaluate(frames, traced),
            location.s10(location.measure(quick=quick, runner=runner)),
            zigzag.s11(zigzags),
        ]
    )
    drawn = [*figures.trace_figures(traced), *figures.grid_figures(frames), figures.zigzag_figure(zigzags)]
    tables = {**frames, "zigzag": zigzags}
    runs = runner.counts.asked - before
    report = write_all(
        out,
        title="SIGMA, reproduced",
        lead="Fu, Atiquzzaman, Ivancic: Effect of Layer 2 Connection Setup on SIGMA performance (2005). "
        f"{runs} simulations, {len(seed_list)} seeds per point{', quick' if quick else ''}.",
        claims=judged,
        drawn=drawn,
        tables=tables,
        closing=[_method(seed_list, quick), text_section("Scenario", scenario.text)],
        stage=tell,
    )
    return Reproduction(judged, report, runs)


def _traced_runs(runner: Runner) -> dict[str, Run]:
    scenario = load(ex.SCENARIO)
    jobs = [job(scenario, {**ex.TRACE_OVERRIDES, **one.overrides}, seed=1, trace=True) for one in ex.TRACED]
    runs = runner.runs(jobs)
    return {one.name: run for one, run in zip(ex.TRACED, runs, strict=True)}


def _method(seeds: list[int], quick: bool) -> Section:
    length = ex.QUICK_DURATION if quick else "the scenario's duration"
    return text_section(
        "Method",
        f"Runs of {length}; seeds {seeds[0]} to {seeds[-1]}. A run's handover latency is the mean over its handovers, "
        "as a point of the paper's figures is; tables/runs-*.csv have medians too. "
        f"{INTERVALS} Figures 4 to 9 are of seed 1, {ex.TRACE_DURATION} long, address resolution 500 ms.",
        preformatted=False,
    )

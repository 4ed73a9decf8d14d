"""`segue reproduce sigma`: runs, figures, tables, claims and the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from segue.grid import run_grids
from segue.output import write_file
from segue.papers.claims import Claim, to_json
from segue.papers.sigma import claims, figures, location, zigzag
from segue.papers.sigma import experiment as ex
from segue.plot.style import render
from segue.report.html import Section, claims_section, figure_section, page, text_section
from segue.run import Run, job, run_jobs
from segue.scenarios import load

Stage = Callable[[str, int, int], object]
"""Told (what is going on, done, total)."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What came of it.

    Attributes:
        claims: S1 to S11.
        report: The report's file.
        runs: Simulations run.
    """

    claims: list[Claim]
    report: Path
    runs: int


def reproduce(
    out: Path,
    *,
    quick: bool = False,
    seeds: int | None = None,
    threads: int | None = None,
    stage: Stage | None = None,
) -> Reproduction:
    """Run everything and write it into `out`.

    That is `figures/*.png`, `figures/*.svg`, `tables/*.csv`, `claims.json` and `report.html`. Files appear whole or not
    at all; `claims.json` and `report.html` come last, so a report never speaks of figures that are not there.

    Args:
        out: Directory; made if missing.
        quick: 120 s instead of 500 s per run, and two seeds: for a first look.
        seeds: Seeds per point.
        threads: Threads for the runs.
        stage: Told what is going on.
    """
    tell = stage or (lambda _what, _done, _total: None)
    scenario = load(ex.SCENARIO)
    seed_list = list(range(1, (seeds or (ex.QUICK_SEEDS if quick else ex.FULL_SEEDS)) + 1))
    traced = _traced_runs(threads)
    grids = ex.grids(quick=quick)
    frames = run_grids(
        grids,
        scenario,
        seed_list,
        threads=threads,
        progress=lambda done, total: tell("simulating", done, total),
    )
    zigzags = zigzag.run(
        seed_list, quick=quick, threads=threads, progress=lambda done, total: tell("zigzagging", done, total)
    )
    judged = [
        *claims.evaluate(frames, traced),
        location.s10(location.measure(quick=quick, threads=threads)),
        zigzag.s11(zigzags),
    ]
    drawn = [*figures.trace_figures(traced), *figures.grid_figures(frames), figures.zigzag_figure(zigzags)]
    drawn.sort(key=lambda one: one.name)
    sections: list[Section] = []
    for index, one in enumerate(drawn):
        tell("drawing", index, len(drawn))
        rendered = render(one.figure)
        write_file(out / "figures" / f"{one.name}.png", rendered.png)
        write_file(out / "figures" / f"{one.name}.svg", rendered.svg)
        if one.table is not None:
            write_file(out / "tables" / f"{one.name}.csv", one.table.write_csv())
        sections.append(figure_section(one.heading, rendered))
    tell("drawing", len(drawn), len(drawn))
    tables = {**frames, "zigzag": zigzags}
    for name, frame in tables.items():
        write_file(out / "tables" / f"runs-{name}.csv", frame.write_csv())
    runs = sum(frame.height for frame in tables.values()) + len(traced)
    write_file(out / "claims.json", to_json(judged))
    report = write_file(
        out / "report.html",
        page(
            "SIGMA, reproduced",
            "Fu, Atiquzzaman, Ivancic: Effect of Layer 2 Connection Setup on SIGMA performance (2005). "
            f"{runs} simulations, {len(seed_list)} seeds per point{', quick' if quick else ''}.",
            [
                claims_section(judged),
                *sections,
                _method(seed_list, quick),
                text_section("Scenario", scenario.text),
            ],
        ),
    )
    return Reproduction(judged, report, runs)


def _traced_runs(threads: int | None) -> dict[str, Run]:
    scenario = load(ex.SCENARIO)
    jobs = [job(scenario, {**ex.TRACE_OVERRIDES, **one.overrides}, seed=1, trace=True) for one in ex.TRACED]
    runs = run_jobs(jobs, threads=threads)
    return {one.name: run for one, run in zip(ex.TRACED, runs, strict=True)}


def _method(seeds: list[int], quick: bool) -> Section:
    length = ex.QUICK_DURATION if quick else "the scenario's duration"
    interval = (
        "Intervals are order-statistic intervals for the median: the narrowest that reaches 95 %, and the whole range "
        "where fewer than six seeds cannot reach it (five reach 93.75 %)."
    )
    return text_section(
        "Method",
        f"Runs of {length}; seeds {seeds[0]} to {seeds[-1]}. A run's handover latency is the mean over its handovers, "
        "as a point of the paper's figures is; tables/runs-*.csv have medians too. "
        f"{interval} Figures 4 to 9 are of seed 1, {ex.TRACE_DURATION} long, address resolution 500 ms.",
        preformatted=False,
    )

"""`segue reproduce scale`: runs, figures, tables and the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from segue.papers.common import Reproduction, Stage, silent, write_all
from segue.papers.scale import experiment as ex
from segue.papers.scale import figures
from segue.papers.scale.saturation import FULL, Saturation, first, saturations
from segue.report.html import Section, table_section, text_section
from segue.runner import Runner
from segue.scenarios import load
from segue.summary import Table, time_text


def reproduce(
    out: Path,
    *,
    quick: bool = False,
    seeds: int | None = None,
    runner: Runner | None = None,
    stage: Stage | None = None,
) -> Reproduction:
    """Run everything and write it into `out`: see `segue.papers.common.write_all`. There are no claims.

    Args:
        out: Directory; made if missing.
        quick: 10 and 100 phones, two runs each.
        seeds: Runs of each point, whatever the number of phones.
        runner: Makes the runs; one without a store, if left out.
        stage: Told what is going on.
    """
    tell = stage or silent
    runner = runner or Runner()
    points = ex.points(quick=quick, seeds=seeds)
    results = ex.run(points, runner=runner, progress=lambda done, total: tell("simulating", done, total))
    found = saturations(results.loads)
    summary, every = summarise(results, found), resources(found)
    most = max(point.phones for point in points)
    report = write_all(
        out,
        title="How many mobile hosts a home agent and a location manager bear",
        lead=f"SIGMA, ILNPv6 and Mobile IPv6, {points[0].phones} to {most:,} mobile hosts, each of which hands over "
        f"every 30 s. {len(points)} simulations{', quick' if quick else ''}.",
        claims=[],
        drawn=list(figures.draw(results)),
        tables={"scale": results.runs, "scale-loads": results.loads},
        closing=[
            table_section("Which saturates first, and when", summary.columns, summary.rows, summary.note),
            table_section("Every resource", every.columns, every.rows, every.note),
            _method(points),
            text_section("Scenario", load(ex.SCENARIO).text),
        ],
        stage=tell,
    )
    return Reproduction([], report, len(points), summary)


def summarise(results: ex.Results, found: list[Saturation]) -> Table:
    """A row per scheme: with the most phones how long a handover interrupts, what it costs, and what is full first."""
    most = max(results.runs["phones"].to_list())
    rows = []
    for scheme, name in ex.SCHEMES.items():
        runs = results.runs.filter((results.runs["scheme"] == scheme) & (results.runs["phones"] == most))
        least = first(found, scheme)
        signalling = runs["signalling_per_s"].mean()
        rows.append(
            [
                name,
                f"{most:,}",
                _time(runs, "p50"),
                _time(runs, "p95"),
                f"{signalling:.0f}" if isinstance(signalling, float) else "",
                "nothing" if least is None else f"{ex.ANCHORS[least.anchor]}, {least.resource}",
                "" if least is None else _bears(least),
            ]
        )
    columns = ["scheme", "hosts", "median", "95 %", "signalling/s", "full first", "bears"]
    return Table(columns, rows, _note(found))


def resources(found: list[Saturation]) -> Table:
    """What each resource of each anchor bears, and how that is known."""
    columns = ["scheme", "of the", "resource", "each host takes", "in runs with", "bears", "full in runs with"]
    rows = [
        [
            ex.SCHEMES[one.scheme],
            ex.ANCHORS[one.anchor],
            one.resource,
            f"{100 * one.per_phone:.2g} %",
            f"{one.of_phones:,}",
            _bears(one),
            "none: in proportion" if one.full_at is None else f"{one.full_at:,}",
        ]
        for one in found
    ]
    return Table(columns, rows, _note(found))


def _bears(one: Saturation) -> str:
    return f"{float(f'{one.phones:.2g}'):,.0f} hosts{' *' if one.is_extrapolated else ''}"


def _note(found: Sequence[Saturation]) -> str:
    """What an asterisk says, if there is one."""
    most = max((one.of_phones for one in found if one.is_extrapolated), default=None)
    if most is None:
        return ""
    return f"* extrapolated from what each host takes: it was not full with {most:,}, the most that were run."


def _time(runs: pl.DataFrame, name: str) -> str:
    """The mean of a percentile over runs: a lower bound if it is in any of them."""
    seconds = runs[f"{name}_s"].mean()
    return time_text(seconds, censored=runs[f"{name}_censored"].any()) if isinstance(seconds, float) else ""


def _method(points: Sequence[ex.Point]) -> Section:
    seeds = {point.phones: point.seed for point in sorted(points, key=lambda point: point.seed)}
    counts = ", ".join(f"{n} with {phones:,}" for phones, n in sorted(seeds.items()))
    return text_section(
        "Method",
        f"Runs of {ex.END_S:g} s, of which what comes after {ex.BEGIN_S:g} s is counted; runs of each point and "
        f"scheme: {counts}. Every host is sent 100 kbit/s; of every tenth (a hundred at most) in packets "
        f"{ex.PROBE_PACING_S * 1e3:.0f} ms apart, and interruptions are theirs. A resource is full if it is in use for "
        f"{FULL:.0%} of the time. What a home agent takes for a packet and for a Binding Update is assumed (2 and "
        "100 microseconds), what the location manager takes for an update is what segue-location takes to make one "
        "durable (126 microseconds); both are keys of the scenario (`processing`), and loads are in the tables, to be "
        "put beside other capacities. How many hosts a resource bears follows from what each takes, beyond those "
        "simulated too. SIGMA runs over SCTP, the others over TCP.",
        preformatted=False,
    )

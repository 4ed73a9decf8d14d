"""`segue compare`: one table of differences and one figure."""

from __future__ import annotations

import csv
import errno
import io
from collections.abc import Sequence
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING

import click

from segue.cli.commands import open_store
from segue.cli.progress import Bars
from segue.cli.saying import say
from segue.interruption import OF_HANDOVERS, OF_RUNS
from segue.output import check_directory, directories, write_file
from segue.units import in_words, percent

if TYPE_CHECKING:
    from segue.cli.layout import Cell
    from segue.compare import Estimate, Line, Subject, Wanted

LEAST_COVERAGE = 0.5
"""Intervals that cover with less are not written."""
HEAD = ("metric", "unit", "each", "subject", "n", "median", "median_is_bound", "low", "high", "coverage", "difference",
        "difference_is_bound", "difference_low", "difference_high", "difference_coverage", "difference_n",
        "paired")  # fmt: skip


def run_comparison(wanted: Wanted, out: Path | None, threads: int | None) -> None:
    """`segue compare`."""
    from segue.compare import compare, metrics_of, table
    from segue.runner import Runner

    if out is not None:
        if out.is_file():
            raise NotADirectoryError(errno.ENOTDIR, "expected a directory", str(out))
        check_directory(out)
    with directories(out), Bars() as bars:
        bars.spin("reading")
        runner = Runner(threads=threads, store=open_store())
        subjects = compare(
            wanted,
            runner=runner,
            tell=lambda text: say(f"warning: {text}"),
            progress=lambda done, total: bars.show("simulating", done, total),
        )
        lines = table(subjects, metrics_of(wanted, [one.is_capture for one in subjects]))
        written = [] if out is None else _write(out, subjects, lines)
    print_lines(lines)
    click.echo(note(lines))
    if any(line.measure.name.startswith("interruption") for line in lines):
        click.echo(OF_HANDOVERS if any(one.is_capture for one in subjects) else OF_RUNS)
    for path in written:
        click.echo(f"wrote {path}")


def print_lines(lines: Sequence[Line]) -> None:
    """The table, in units of people."""
    from segue.cli.layout import Column, new_console, print_table

    if not lines:
        click.echo("nothing to compare: no subject has any of the metrics")
        return
    columns = [Column("metric"), Column("subject"), Column("n", right=True, rank=2), Column("median", right=True),
               Column("difference\nto the first", right=True), Column("unit")]  # fmt: skip
    if are_paired := any(line.is_paired for line in lines):
        columns.insert(-1, Column("pairs", right=True, rank=2))
    rows: list[list[Cell]] = []
    for line in lines:
        known = [one.estimate for one in lines if one.measure == line.measure and one.estimate is not None]
        greatest = max((abs(end) for one in known for end in (one.value, one.high) if not isinf(end)), default=0.0)
        factor, unit = in_words(line.measure.unit, greatest)
        estimate = line.estimate
        rows.append([
            line.measure.name, line.subject, str(estimate.n if estimate else 0), text_of(estimate, factor),
            text_of(line.difference, factor, sign="+"), *([str(_pairs(line))] if are_paired else []), unit,
        ])  # fmt: skip
    print_table(new_console(), columns, rows)


def note(lines: Sequence[Line]) -> str:
    """What the intervals are."""
    shown = [one.coverage for line in lines for one in (line.estimate, line.difference) if one is not None]
    least = min((coverage for coverage in shown if coverage >= LEAST_COVERAGE), default=0.0)
    intervals = (
        f"Order-statistic intervals, which cover with {percent(least)} at least." if least else "Too few for intervals."
    )
    if any(line.is_paired for line in lines):
        bounds = any(line.estimate is not None and line.estimate.is_bound for line in lines)
        what = " \N{GREATER-THAN OR EQUAL TO}: what had not ended with the run." if bounds else ""
        return f"Medians over seeds; differences are medians of those of each seed. {intervals}{what}"
    return (
        f"Medians over handovers and outages, taken as independent; differences are those of medians. {intervals} "
        "\N{GREATER-THAN OR EQUAL TO}: data that never came back."
    )


def text_of(estimate: Estimate | None, factor: float, *, sign: str = "") -> str:
    """`+12.3 [+11.9, +12.6]`; what is a bound has "≥" before it, and an end that nobody knows is none."""
    from segue.cli.sweep import figure_text

    if estimate is None:
        return "-"

    def shown(value: float) -> str:
        if isinf(value):
            return "\N{INFINITY}" if value > 0 else "-\N{INFINITY}"
        text = figure_text(value * factor)
        return text if text.startswith("-") or not sign or text == "0" else f"{sign}{text}"

    if estimate.is_bound and not sign:
        text = figure_text(estimate.value * factor, censored=True)
    else:
        about = "\N{ALMOST EQUAL TO} " if estimate.is_bound else ""
        text = f"{about}{shown(estimate.value)}"
    if estimate.coverage < LEAST_COVERAGE:
        return text
    return f"{text} [{shown(estimate.low)}, {shown(estimate.high)}]"


def as_csv(lines: Sequence[Line]) -> str:
    """The table, in basic units; an end that nobody knows is `inf`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEAD)
    for line in lines:
        count = "" if line.estimate is None else line.estimate.n
        writer.writerow(
            [line.measure.name, line.measure.unit, line.measure.each, line.subject, count,
             *_cells(line.estimate), *_cells(line.difference), _pairs(line), line.is_paired]
        )  # fmt: skip
    return text.getvalue()


def _pairs(line: Line) -> object:
    """How many seeds have a value of both."""
    return line.difference.n if line.is_paired and line.difference is not None else ""


def _cells(one: Estimate | None) -> list[object]:
    return [""] * 5 if one is None else [one.value, one.is_bound, one.low, one.high, one.coverage]


def _write(out: Path, subjects: Sequence[Subject], lines: Sequence[Line]) -> list[Path]:
    from segue.figures.distribution import distributions
    from segue.figures.style import render

    caption = (
        "Handovers of all seeds, and outages that no handover accounts for; in brackets: how many. Marks: medians.\n"
        "A curve that ends below 1: the rest never came back."
    )
    samples = {one.name: one.handovers["interruption"] for one in subjects}
    files = render(distributions(samples, "How long interruptions last", caption))
    return [
        write_file(out / "compare.csv", as_csv(lines)),
        write_file(out / "compare.svg", files.svg),
        write_file(out / "compare.png", files.png),
    ]

"""`segue sweep` and `segue plot`."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING

import click

from segue._native import ScenarioError
from segue.cli.commands import open_store, told_counts
from segue.cli.progress import Bars
from segue.cli.saying import say
from segue.cli.settings import overrides as settings_of
from segue.interruption import OF_RUNS
from segue.output import check_apart, check_directory, check_file, write_file
from segue.units import in_words, percent

if TYPE_CHECKING:
    from segue.sweeps.result import Sweep

PARQUET = ".parquet"
FIGURES = (".svg", ".png")
MOST_LISTED = 40
"""Points in the table of the terminal; more are in the file."""
USUAL = "interruption"
"""What is told and drawn if nothing is asked for."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure that is asked for: keys of axes, chosen if left out, and a metric."""

    x: str | None
    metric: str
    hue: str | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What is wanted of a sweep: the options of `segue sweep`."""

    grid: tuple[str, ...]
    seeds: range
    metrics: tuple[str, ...]
    until: str | None
    most_seeds: int | None
    budget: str | None
    out: Path | None
    plots: tuple[str, ...]
    on: str | None
    threads: int | None
    fresh: bool


def run_sweep(scenario: str, overrides: Mapping[str, object], asked: Asked) -> None:
    """`segue sweep`."""
    from segue.runner import Runner
    from segue.scenarios import load
    from segue.sweeps.axes import choose_axes, parse_axes
    from segue.sweeps.columns import find_metric
    from segue.sweeps.parts import remove as remove_parts
    from segue.sweeps.running import MOST_SEEDS, sweep
    from segue.sweeps.stopping import Until

    if asked.most_seeds is not None and asked.until is None:
        raise click.UsageError("--most-seeds: has no effect without --until")
    if asked.on is not None and (asked.threads is not None or asked.fresh):
        raise click.UsageError("--on: expected neither --threads nor --fresh with it: the cluster has its own")
    drawings = list(dict.fromkeys(parse_drawing(text) for text in asked.plots))
    if drawings and asked.out is None:
        raise click.UsageError("--plot: expected --out FILE.parquet with it: figures go beside that")
    source = load(scenario)
    awaited = [Until.parse(asked.until, asked.metrics).metric.word] if asked.until is not None else []
    told = list(dict.fromkeys([*awaited, *(one.metric for one in drawings), *asked.metrics])) or [USUAL]
    for name in told:
        find_metric(name, asked.metrics)
    axes = parse_axes(asked.grid)
    for one in drawings:
        choose_axes(axes, one.x, one.hue)
    if asked.out is not None:
        _check_out(asked.out, Path(source.file))
    parts = None if asked.out is None or asked.on is None else asked.out.with_suffix(".parts")
    with Bars() as bars:
        bars.spin("reading")
        store = None if asked.on is not None else open_store()
        runner = Runner(threads=asked.threads, store=store, fresh=asked.fresh)
        result = sweep(
            source,
            asked.grid,
            overrides,
            seeds=asked.seeds,
            metrics=asked.metrics,
            until=asked.until,
            most_seeds=asked.most_seeds or MOST_SEEDS,
            budget=asked.budget,
            runner=runner,
            on=asked.on,
            parts=parts,
            tell=lambda text: say(f"warning: {text}"),
            progress=bars.show,
        )
    if result.frame.is_empty():
        raise ScenarioError(f"budget {asked.budget}: no run ended in it, and nothing is written")
    # first what has taken long, whatever comes of files
    print_summary(result, told)
    click.echo(result.note())
    if asked.on is None and not result.missing:
        click.echo(told_counts(runner.counts, store))
    if asked.out is None:
        return
    click.echo(f"wrote {result.write(asked.out)}")
    if parts is not None and not result.missing:
        remove_parts(parts)
    for one, stem in zip(drawings, stems(asked.out, drawings), strict=True):
        with Bars() as bars:
            bars.spin("drawing")
            files = _rendered(result, one, stem, FIGURES)
        for path, content in files:
            click.echo(f"wrote {write_file(path, content)}")


def plot_results(results: Path, drawings: Sequence[Drawing], conditions: tuple[str, ...], out: Path | None) -> None:
    """`segue plot`."""
    from segue.sweeps.result import Sweep

    drawings = list(dict.fromkeys(drawings))
    if out is not None and out.suffix in FIGURES:
        if len(drawings) > 1:
            raise click.UsageError("--out: expected a directory for several figures")
        check_file(out)
        check_apart(out, [results])
    elif out is not None:
        if out.suffix and not out.is_dir():
            raise OSError(errno.EINVAL, "expected a name that ends in .svg or .png, or a directory", str(out))
        check_directory(out)
    if twice := {one.partition("=")[0] for number, one in enumerate(conditions)
                 if one.partition("=")[0] in {other.partition("=")[0] for other in conditions[:number]}}:  # fmt: skip
        raise ScenarioError(f"--where {min(twice)}: expected each key once: several values are KEY=A,B")
    with Bars() as bars:
        bars.spin("drawing")
        part = {key: str(value) for key, value in settings_of(conditions, "--where").items()}
        result = Sweep.read(results).where(part)
        figures = []
        for one, stem in zip(drawings, stems(results, drawings), strict=True):
            if out is not None and out.suffix in FIGURES:
                figures += _rendered(result, one, out.with_suffix(""), (out.suffix,))
            else:
                figures += _rendered(result, one, stem if out is None else out / stem.name, FIGURES)
        written = [write_file(path, content) for path, content in figures]
    click.echo(result.note())
    for path in written:
        click.echo(f"wrote {path}")


def parse_drawing(text: str) -> Drawing:
    """`x=l2.latency,y=interruption,hue=scheme`, each of them or none.

    >>> parse_drawing("y=loss,x=l2.latency")
    Drawing(x='l2.latency', metric='loss', hue=None)

    Raises:
        ScenarioError: It is something else.
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name.strip() not in {"x", "y", "hue"} or name.strip() in found or not value.strip():
            raise ScenarioError(f"--plot {text}: expected x=KEY,y=METRIC,hue=KEY")
        found[name.strip()] = value.strip()
    return Drawing(found.get("x"), found.get("y", USUAL), found.get("hue"))


def print_summary(result: Sweep, metrics: Sequence[str]) -> None:
    """A line per point: medians with intervals, and of how many runs where not all have the metric."""
    import polars as pl

    from segue.cli.layout import Column, new_console, print_table

    columns = [Column(axis.key, right=axis.is_numeric) for axis in result.axes]
    keys = [axis.column for axis in result.axes]
    cells: dict[tuple[object, ...], list[str]] = {
        key: [] for key in result.frame.select(keys).unique(maintain_order=True).rows()
    }
    counts = {row[:-1]: row[-1] for row in result.frame.group_by(keys).len().rows()}
    coverage = []
    settings: list[dict[object, str]] = [dict(zip(axis.values, axis.settings, strict=True)) for axis in result.axes]
    for name in metrics:
        if result.frame.schema[result.metric(name).column] == pl.String():
            # words have no median: they are in the file
            continue
        metric, summary = result.metric(name), result.summary(name)
        factor, unit = in_words(metric.unit, max(summary["high"].to_list(), default=0.0))
        columns.append(Column(f"{name}\n{unit}".rstrip(), right=True))
        coverage += summary.filter(summary["n"] > 1)["coverage"].to_list()
        texts = {}
        for row in summary.to_dicts():
            key = tuple(row[key] for key in keys)
            of = f" ({row['n']} of {counts[key]} runs)" if row["n"] < counts[key] else ""
            texts[key] = interval_text(row, factor) + of
        for key, own in cells.items():
            own.append(texts.get(key, "-"))
    columns.append(Column("runs", right=True, rank=1))
    rows = [
        [*(of[value] for of, value in zip(settings, key, strict=True)), *own, str(counts[key])]
        for key, own in list(cells.items())[:MOST_LISTED]
    ]
    print_table(new_console(), columns, rows)
    if len(cells) > MOST_LISTED:
        click.echo(f"and {len(cells) - MOST_LISTED} more points")
    if coverage:
        click.echo(f"Medians, and order-statistic intervals that cover with {percent(min(coverage))} at least.")
    if any(result.metric(name).word.startswith("interruption") for name in metrics):
        click.echo(OF_RUNS)


def interval_text(row: Mapping[str, float], factor: float) -> str:
    """`12.3 [11.9, 12.6]`; what is no more than a lower bound has "≥" before it."""
    median = figure_text(row["median"] * factor, censored=bool(row["median_censored"]))
    if row["n"] == 1:
        return median
    high = figure_text(row["high"] * factor, censored=bool(row["high_censored"]))
    return f"{median} [{figure_text(row['low'] * factor)}, {high}]"


def figure_text(value: float, *, censored: bool = False) -> str:
    """Four significant digits, and no exponent where a person would write none; a lower bound is never rounded up.

    >>> figure_text(12.3456), figure_text(123456.0), figure_text(0.0), figure_text(12.3456, censored=True)
    ('12.35', '123456', '0', '≥ 12.34')
    """
    if censored:
        digits = 0 if abs(value) >= 1000 or value == 0 else 3 - floor(log10(abs(value)))
        return f"\N{GREATER-THAN OR EQUAL TO} {figure_text(floor(value * 10**digits + 1e-6) / 10**digits)}"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _rendered(result: Sweep, one: Drawing, stem: Path, suffixes: Sequence[str]) -> list[tuple[Path, bytes]]:
    """A figure as files of these kinds, each with its name."""
    from segue.figures.style import render

    files = render(result.figure(one.metric, x=one.x, hue=one.hue))
    content = {".svg": files.svg, ".png": files.png}
    return [(stem.with_name(stem.name + suffix), content[suffix]) for suffix in suffixes]


def stems(results: Path, drawings: Sequence[Drawing]) -> list[Path]:
    """Files of figures without their endings: beside the results, named for the metric, and the axes if need be.

    Where that is one name for several, as of `x=scheme` and `hue=scheme`, the later ones have a number.

    >>> [str(one) for one in stems(Path("r.parquet"), [Drawing("a", "loss", None), Drawing(None, "loss", "a")])]
    ['r-loss-a', 'r-loss-a-2']
    >>> [str(one) for one in stems(Path("r.parquet"), [Drawing(None, "/a", None)])]
    ['r--a']
    """
    names: list[str] = []
    for one in drawings:
        words = [results.stem, one.metric]
        if sum(other.metric == one.metric for other in drawings) > 1:
            words += [word for word in (one.x, one.hue) if word is not None]
        # of what is no metric, which is said when it is drawn
        name = "-".join(words).replace("/", "-")
        free = (f"{name}-{number}" if number > 1 else name for number in count(1))
        names.append(next(name for name in free if name not in names))
    return [results.with_name(name) for name in names]


def _check_out(out: Path, source: Path) -> None:
    """Refuse what cannot be written before long work begins."""
    if out.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a directory, expected the name of a Parquet file", str(out))
    if out.suffix != PARQUET:
        raise OSError(errno.EINVAL, "expected a name that ends in .parquet", str(out))
    check_file(out)
    check_apart(out, [source])

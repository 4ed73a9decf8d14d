"""`segue lab compare`: schemes and events with real hosts, as one table and one figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from segue.cli.program import every_end_is_ctrl_c, find_program
from segue.cli.settings import overrides
from segue.interruption import BEYOND_SPACING
from segue.output import check_apart, check_directory, check_file, directories, write_file

if TYPE_CHECKING:
    from segue.cli.layout import Cell
    from segue.lab.trials.plan import Combination
    from segue.lab.trials.results import Estimate, Result, Row

EXIT_FAILED = 1
EXIT_TOO_LATE = 3


@click.command(name="compare", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("files", metavar="[SCHEME=]FILE...", nargs=-1, required=True)
@click.option("--schemes", metavar="A,B,...", help="Which schemes; those of the files if left out.")
@click.option("--events", metavar="A,B,...", default="planned", show_default=True,
              help="planned (the file as it stands), carrier-down, blackhole, one-way-loss, flap, router-down, "
              "renumber, address-change.")  # fmt: skip
@click.option("--on", "places", metavar="[SCHEME=]NAME", multiple=True,
              help="The cell or link that events happen to; the network in use if left out. Repeatable.")  # fmt: skip
@click.option("--at", metavar="TIME", default="", help="When events begin; in the middle of the run if left out.")
@click.option("--for", "lasts", metavar="TIME", default="", help="How long they last; to the end, a flap for 3 s.")
@click.option("--repeat", type=click.IntRange(1, 1000), default=5, show_default=True, help="Runs of each combination.")
@click.option("--seed", type=click.IntRange(0, 2**63), metavar="N",
              help="Seed of the first run, the next having the next; the scenario's if left out.")  # fmt: skip
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Override a key, in all. Repeatable.")
@click.option("--predict", is_flag=True, help="The simulator's figures beside it, with the ratio.")
@click.option("--assert", "conditions", metavar="CONDITION", multiple=True,
              help='What has to be so of each run, as in --assert "interruption < 50 ms". Repeatable.')  # fmt: skip
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path),
              help="Write compare.csv, .json, .svg and .png there, and each run's document into runs/, "
              "from where a comparison that was stopped goes on.")  # fmt: skip
@click.option("--json", "json_file", metavar="FILE", type=click.Path(path_type=Path), help="Write the table as JSON.")
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write a test case per combination.")
def compare(
    files: tuple[str, ...],
    schemes: str | None,
    events: str,
    places: tuple[str, ...],
    at: str,
    lasts: str,
    repeat: int,
    seed: int | None,
    settings: tuple[str, ...],
    predict: bool,
    conditions: tuple[str, ...],
    out: Path | None,
    json_file: Path | None,
    junit: Path | None,
) -> int:
    """Run each scheme with each event REPEAT times with real hosts, and make one table and one figure.

    Each FILE is for the scheme that it names, or for SCHEME; a name that is no scheme is one for the table alone. A
    scheme without a file of its own has the first one, with `scheme` set. Events other than planned are written into a
    copy in which all networks are there all the time.
    """
    from segue.lab.trials.plan import Timing, combinations
    from segue.lab.trials.results import rows
    from segue.lab.trials.runs import run_all

    program = find_program("segue-lab")
    given = {"--at": at, "--for": lasts, "--on": places}
    if set(_words(events)) == {"planned"} and (unread := [name for name, value in given.items() if value]):
        raise click.UsageError(
            f"{unread[0]}: has no effect on what is planned: expected --events blackhole, or another"
        )
    plan = combinations(
        files,
        _words(schemes or ""),
        _words(events),
        settings=overrides(settings),
        seed=seed,
        timing=Timing(at, lasts, _places(places)),
        repeat=repeat,
    )
    if not plan:
        raise click.UsageError("--events: expected at least one")
    for file in (json_file, junit):
        if file is not None:
            check_apart(file, [Path(one.scenario.file) for one in plan])
            check_file(file, [out])
    with directories(out):
        if out is not None:
            check_directory(out)
        _announce(plan, repeat)
        _say_not_judged(plan, conditions)
        told = _Progress(len(plan) * repeat)
        with every_end_is_ctrl_c():
            results = run_all(
                program,
                plan,
                repeat=repeat,
                predict=predict,
                conditions=conditions,
                tell=told,
                directory=None if out is None else out / "runs",
            )
        table = rows(results)
        written = _write(out, json_file, junit, results, table, conditions)
    _print(table)
    late = _say_late(results)
    refuted = [f"{one.combination.name}: {text}" for one in results for text in one.refuted]
    for text in refuted:
        click.echo(f"segue lab: {text}", err=True)
    for path in written:
        click.echo(f"wrote {path}")
    if refuted:
        return EXIT_FAILED
    return EXIT_TOO_LATE if late else 0


class _Progress:
    """A line on standard error before each run."""

    def __init__(self, total: int) -> None:
        self._total = total

    def __call__(self, combination: Combination, number: int, done: int, besides: str) -> None:
        more = f" ({besides})" if besides else ""
        click.echo(f"segue lab: {done + 1}/{self._total}: {combination.name}, run {number}{more}", err=True)


def _announce(plan: Sequence[Combination], repeat: int) -> None:
    from segue.lab.trials.plan import expected_s

    minutes, seconds = divmod(round(expected_s(plan, repeat)), 60)
    click.echo(
        f"segue lab: {_count(len(plan), 'combination')}, {'once' if repeat == 1 else f'{repeat} times'} each, "
        f"in real time: about {minutes} min {seconds} s",
        err=True,
    )
    for scheme, (network, at_s) in {one.scheme: (one.network, one.at_s) for one in plan if one.network}.items():
        click.echo(f"segue lab: {scheme}: events happen to {network}, at {at_s:g} s", err=True)


def _say_not_judged(plan: Sequence[Combination], conditions: Sequence[str]) -> None:
    """Says of which schemes nothing is to be so."""
    from segue.lab.trials.outputs import NOT_JUDGED

    if conditions:
        for scheme in dict.fromkeys(one.scheme for one in plan if one.is_of_others):
            click.echo(f"segue lab: {scheme}: {NOT_JUDGED}", err=True)


def _write(
    out: Path | None,
    json_file: Path | None,
    junit: Path | None,
    results: Sequence[Result],
    table: Sequence[Row],
    conditions: Sequence[str],
) -> list[Path]:
    from segue.lab.trials.outputs import as_json, as_junit, write_table

    written = write_table(out, results, table) if out is not None else []
    if json_file is not None:
        written.append(write_file(json_file, as_json(results, table)))
    if junit is not None:
        written.append(write_file(junit, as_junit(results, conditions=conditions)))
    return written


def _print(table: Sequence[Row]) -> None:
    from segue.cli.layout import Column, new_console, print_table

    predicted = any(row.predicted_ms is not None for row in table)
    columns = [
        Column("scheme"), Column("event"), Column("flow"), Column("runs", right=True, rank=1),
        Column("interruption\nms", right=True), Column("least to most\nms", right=True, rank=3),
    ]  # fmt: skip
    if predicted:
        columns += [Column("simulator\nms", right=True), Column("ratio", right=True)]
    columns += [Column(name, right=True, rank=2) for name in ("lost", "Mbit/s\nbefore", "Mbit/s\nafter")]
    print_table(new_console(), columns, [table_row(row, predicted=predicted) for row in table])
    click.echo(BEYOND_SPACING)


def table_row(row: Row, *, predicted: bool) -> list[Cell]:
    """A row in words; a lower bound has "≥" before it, and what was through before anything happened says so."""
    gap = row.interruption_ms
    ends = "-" if gap is None else f"{gap.low:.1f} to {gap.high:.1f}"
    cells: list[Cell] = [
        row.scheme,
        row.event,
        f"{row.flow} {row.transport}",
        _runs(row),
        _shown_or_over(gap, row.ended_before),
        ends,
    ]
    if predicted:
        cells += [
            _shown_or_over(row.predicted_ms, row.predicted_ended_before),
            "-" if row.ratio is None else f"{row.ratio:.2f}",
        ]
    return [*cells, _shown(row.lost, places=0), _shown(row.before_bps, 1e-6, 3), _shown(row.after_bps, 1e-6, 3)]


def _shown_or_over(estimate: Estimate | None, ended_before: int) -> str:
    if estimate is None and ended_before:
        return "ended before"
    return _shown(estimate) + (f" ({ended_before} ended before)" if ended_before else "")


def _runs(row: Row) -> str:
    return f"{row.runs} of {row.runs + row.too_late}"


def _shown(estimate: Estimate | None, scale: float = 1.0, places: int = 1) -> str:
    if estimate is None:
        return "-"
    return f"{'≥ ' if estimate.median_censored else ''}{estimate.median * scale:.{places}f}"


def _say_late(results: Sequence[Result]) -> bool:
    """Says which runs were too late; whether a combination has none left."""
    for one in results:
        if late := len(one.runs) - len(one.usable):
            click.echo(
                f"segue lab: {one.combination.name}: {late} of {len(one.runs)} runs were too late, and not used",
                err=True,
            )
    return any(not one.usable for one in results)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _places(places: Sequence[str]) -> dict[str, str]:
    found = {}
    for place in places:
        scheme, equals, name = place.partition("=")
        found[scheme if equals else ""] = name if equals else scheme
    return found

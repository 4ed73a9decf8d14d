"""What the commands do."""

from __future__ import annotations

import contextlib
import errno
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from segue.cli.progress import Bars
from segue.cli.saying import say
from segue.explain import size
from segue.output import check_directory, check_file, check_outputs, check_report, directories, write_file
from segue.running import Run, check, run
from segue.scenarios import Scenario, load, scenarios

MOST_NAMED = 4
"""Files named one by one after a run."""
RECORDED = ("packets", "windows", "signalling", "positions", "cells")
"""Tables that the simulator writes while a run goes, as `segue.Run` has them."""
TABLES = ("handovers", "flows", "hosts")
"""Tables of its metrics."""
METRICS = "metrics.json"
CAPTURE = ".pcapng"

if TYPE_CHECKING:
    from segue.papers.common import Reproduction
    from segue.store import Counts, Store


@dataclass(frozen=True, slots=True)
class Asked:
    """What is wanted of a run.

    Attributes:
        pcap: Folder for captures.
        report: File for a report.
        flows: Numbers of the flows that it shows; of its own choice if there are none.
        trace: Folder for frames.
        conditions: What has to be so, beside what the scenario says.
        junit: File for what became of the conditions.
        csv: Folder for tables of handovers, flows and hosts.
    """

    pcap: Path | None
    report: Path | None
    flows: tuple[int, ...]
    trace: Path | None
    conditions: tuple[str, ...]
    junit: Path | None
    csv: Path | None = None


def run_scenario(
    scenario: str, overrides: Mapping[str, object], seed: int | None, asked: Asked, *, as_json: bool
) -> bool:
    """`segue run`; whether a condition does not hold."""
    source = load(scenario)
    pcap, report, trace, csv, flows = asked.pcap, asked.report, asked.trace, asked.csv, asked.flows
    if flows and report is None:
        raise click.UsageError("--flow says which flows the report shows: expected --report FILE.html with it")
    check(source, overrides, conditions=asked.conditions)
    _check_outputs(source, asked)
    with directories(pcap, trace, csv), Bars() as bars:
        bars.spin(f"simulating {source.name}")
        result = run(
            source,
            overrides,
            seed=seed,
            trace=trace or report is not None,
            pcap=pcap or False,
            conditions=asked.conditions,
        )
        written = _written_by(result, asked)
        try:
            if report is not None:
                _check_flows(result, flows)
            for what, path in _write(result, asked, bars):
                written.setdefault(what, []).append(path)
        except BaseException:
            # of a run there are all files, or none
            for path in (path for paths in written.values() for path in paths):
                path.unlink(missing_ok=True)
            raise
    for warning in result.metrics.warnings:
        say(f"warning: {warning.text}")
    # without a reader there are the files, and what became of the conditions
    with contextlib.suppress(BrokenPipeError):
        _print(result, written, as_json=as_json)
    for verdict in result.verdicts:
        say(verdict.text)
    return not all(verdict.holds for verdict in result.verdicts)


def reproduce_paper(paper: str, out: Path, *, quick: bool, seeds: int | None, threads: int | None, fresh: bool) -> None:
    """`segue reproduce`; `paper` is one of `segue.cli.app.PAPERS`."""
    check_directory(out)
    with Bars() as bars:
        bars.spin(f"preparing {paper}")
        from importlib import import_module

        from segue.runner import Runner

        store = open_store()
        runner = Runner(threads=threads, store=store, fresh=fresh)
        reproduce = import_module(f"segue.papers.{paper}.reproduce").reproduce
        done: Reproduction = reproduce(out, quick=quick, seeds=seeds, runner=runner, stage=bars.show)
    from segue.cli.tables import print_claims, print_summary

    if done.summary is not None:
        print_summary(done.summary)
    else:
        print_claims(done.claims, quick=quick)
    click.echo(f"{told_counts(runner.counts, store)}; report: {done.report}")


def open_store() -> Store | None:
    """The store of results, if there is to be one and can be: it saves time, and nothing depends on it."""
    from segue.store import LIMIT_BYTES, Store, default_folder

    try:
        folder = default_folder()
        return None if folder is None else Store(folder, limit_bytes=LIMIT_BYTES, tell=say)
    except (OSError, RuntimeError) as error:
        say(f"no results are kept: {error}")
        return None


def told_counts(counts: Counts, store: Store | None) -> str:
    """How results came about, in words."""
    text = f"{counts.asked} simulations"
    ways = []
    if counts.found and store is not None:
        ways.append(f"{counts.found} of them found in {store.folder} (--fresh makes them anew)")
    if counts.same:
        ways.append(f"{counts.same} the same as others")
    return ", ".join([text, *ways])


def list_scenarios() -> None:
    """`segue scenarios list`."""
    known = scenarios()
    width = max((len(scenario.name) for scenario in known), default=0)
    for scenario in known:
        click.echo(f"{scenario.name:<{width}}  {scenario.description}")


def _check_outputs(source: Scenario, asked: Asked) -> None:
    """Refuse what cannot be written before long work begins."""
    files = [path for path in (asked.report, asked.junit) if path is not None]
    if asked.report is not None:
        check_report(asked.report)
    if asked.junit is not None and asked.junit.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a directory, expected the name of a JUnit file", str(asked.junit))
    for path in files:
        check_file(path, [asked.pcap, asked.trace, asked.csv])
    if asked.pcap is not None:
        # which hosts there are, the run says
        files += [path for path in [*files, *asked.pcap.glob(f"*{CAPTURE}")] if _is_capture_in(path, asked.pcap)]
    if asked.trace is not None:
        files += [asked.trace / f"{name}.parquet" for name in (*RECORDED, *TABLES)] + [asked.trace / METRICS]
    if asked.csv is not None:
        files += [asked.csv / f"{name}.csv" for name in TABLES]
    check_outputs(files, [Path(source.file)])


def _is_capture_in(path: Path, folder: Path) -> bool:
    return path.suffix == CAPTURE and path.parent.resolve() == folder.resolve()


def _print(result: Run, written: Mapping[str, Sequence[Path]], *, as_json: bool) -> None:
    if as_json:
        click.echo(result.metrics_json)
    else:
        from segue.cli.tables import print_run

        print_run(result)
    for what, paths in written.items():
        # JSON is one document, whatever else is said.
        click.echo(f"{what}: {_places(paths)}", err=as_json)


def _check_flows(result: Run, flows: Sequence[int]) -> None:
    from segue.report.run import choose

    try:
        choose(result.metrics, flows)
    except ValueError as error:
        raise click.UsageError(f"--flow: {error}") from None


def _written_by(result: Run, asked: Asked) -> dict[str, list[Path]]:
    """The captures and tables that were written while the run went: what they are called, and their files."""
    written = {}
    if asked.pcap is not None:
        written["captures"] = [asked.pcap / name for name in result.capture_names]
    if asked.trace is not None:
        written["frames"] = [asked.trace / f"{name}.parquet" for name in result.table_names]
    return written


def _write(result: Run, asked: Asked, bars: Bars) -> Iterator[tuple[str, Path]]:
    """Write what else is wanted of it: each file as it is there, and what it is called."""
    if asked.trace is not None:
        for name in TABLES:
            buffer = io.BytesIO()
            getattr(result, name).write_parquet(buffer)
            yield "frames", write_file(asked.trace / f"{name}.parquet", buffer.getvalue())
        yield "frames", write_file(asked.trace / METRICS, result.metrics_json + "\n")
    if asked.csv is not None:
        # with the columns of `Run.handovers`, `Run.flows` and `Run.hosts`
        for name in TABLES:
            yield "tables", write_file(asked.csv / f"{name}.csv", getattr(result, name).write_csv())
    if asked.report is not None:
        bars.spin("drawing")
        from segue.report.run import write_run_report

        yield "report", write_run_report(result, asked.report, asked.flows)
    if asked.junit is not None:
        yield "JUnit", write_file(asked.junit, result.junit)


def _places(paths: Sequence[Path]) -> str:
    """Files as a person looks for them: by name; of many, the directory and how many they are."""
    sizes = sum(path.stat().st_size for path in paths)
    where = ", ".join(map(str, paths)) if len(paths) <= MOST_NAMED else f"{len(paths)} files in {paths[0].parent}"
    return f"{where} ({size(sizes)})"

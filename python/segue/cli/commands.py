"""What the commands do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from segue.cli.progress import Bars
from segue.output import check_apart, check_directory, write_file
from segue.running import Run, run
from segue.scenarios import load, scenarios

if TYPE_CHECKING:
    from segue.papers.common import Reproduction


def run_scenario(
    scenario: str,
    overrides: Mapping[str, object],
    seed: int | None,
    *,
    as_json: bool,
    pcap: Path | None,
    report: Path | None,
    trace: Path | None,
) -> None:
    """`segue run`."""
    source = load(scenario)
    for directory in (pcap, trace, report.parent if report else None):
        if directory is not None:
            check_directory(directory)
    if report is not None and report.is_dir():
        raise IsADirectoryError(21, "is a directory, expected the name of an HTML file", str(report))
    if report is not None:
        check_apart(report, [Path(source.file)])
    with Bars() as bars:
        bars.spin(f"simulating {source.name}")
        result = run(source, overrides, seed=seed, trace=report is not None or trace is not None, pcap=pcap is not None)
        if pcap is not None:
            for name, content in result.captures():
                write_file(pcap / name, content)
        if trace is not None:
            _write_frames(result, trace)
        if report is not None:
            bars.spin("drawing")
            from segue.report.run import write_run_report

            write_run_report(result, report)
    if as_json:
        click.echo(result.metrics_json)
    else:
        from segue.cli.tables import print_run

        print_run(result)


def reproduce_paper(paper: str, out: Path, *, quick: bool, seeds: int | None, threads: int | None) -> None:
    """`segue reproduce`; `paper` is one of `segue.cli.app.PAPERS`."""
    check_directory(out)
    with Bars() as bars:
        bars.spin(f"preparing {paper}")
        from importlib import import_module

        reproduce = import_module(f"segue.papers.{paper}.reproduce").reproduce
        done: Reproduction = reproduce(out, quick=quick, seeds=seeds, threads=threads, stage=bars.show)
    from segue.cli.tables import print_claims

    print_claims(done.claims, quick=quick)
    click.echo(f"{done.runs} simulations; report: {done.report}")


def list_scenarios() -> None:
    """`segue scenarios list`."""
    known = scenarios()
    width = max((len(scenario.name) for scenario in known), default=0)
    for scenario in known:
        click.echo(f"{scenario.name:<{width}}  {scenario.description}")


def _write_frames(result: Run, directory: Path) -> None:
    import io

    frames = {name: getattr(result, name) for name in result.table_names} | {"handovers": result.handovers}
    for name, frame in frames.items():
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        write_file(directory / f"{name}.parquet", buffer.getvalue())
    write_file(directory / "metrics.json", result.metrics_json + "\n")

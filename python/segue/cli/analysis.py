"""`segue analyze`: what it does. Neither rich nor polars is imported unless it is needed: start-up counts here too."""

from __future__ import annotations

import errno
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from segue.analyze import FRAMES, FRAMES_OF_SERIES, Analysis, analyze
from segue.cli.progress import Bars
from segue.cli.saying import say

if TYPE_CHECKING:
    import polars as pl

PARQUET, CSV = ".parquet", ".csv"
DOCUMENT = "analysis.json"

# What ends in this is meant as a file.
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class Asked:
    """What to show, and what to write besides."""

    live: bool
    as_json: bool
    out: Path | None
    report: Path | None
    max_flows: int | None


def analyze_captures(captures: tuple[Path, ...], asked: Asked) -> None:
    """`segue analyze`."""
    out, report = asked.out, asked.report
    if asked.live and len(captures) != 1:
        raise click.UsageError("--live watches one capture, and two are given")
    _check_outputs(captures, out, report)
    analysis = _watched(captures[0], asked) if asked.live else _read(captures, asked)
    with Bars() as bars:
        if out is not None:
            bars.spin("writing")
            _write_frames(analysis, out)
        if report is not None:
            bars.spin("drawing")
            from segue.report.analysis import write_analysis_report

            write_analysis_report(analysis, report)
    if asked.as_json:
        # In words they stand among the notes.
        for warning in analysis.warnings():
            say(f"warning: {warning}")
        click.echo(analysis.without_series())
    else:
        from segue.cli.findings import print_findings

        print_findings(analysis.findings)


def _read(captures: tuple[Path, ...], asked: Asked) -> Analysis:
    with Bars() as bars:
        return analyze(*captures, series=asked.report is not None, max_flows=asked.max_flows, progress=bars.reading)


def _watched(capture: Path, asked: Asked) -> Analysis:
    """The capture's result, after it was shown while it came. Documents stay alone on standard output."""
    from segue.cli.live import live_view

    with live_view(beside_document=asked.as_json) as show:
        return analyze(capture, series=asked.report is not None, max_flows=asked.max_flows, live=show)


def _check_outputs(captures: tuple[Path, ...], out: Path | None, report: Path | None) -> None:
    """Refuse what cannot be written before long work begins."""
    if out is None and report is None:
        return
    from segue.output import check_directory, check_file, check_outputs, check_report

    one = out if out is not None and _is_one_file(out) else None
    files: list[Path] = []
    if one is not None:
        check_file(one)
    elif out is not None:
        check_directory(out)
        files = [out / f"{name}{PARQUET}" for name in (*FRAMES, *FRAMES_OF_SERIES)] + [out / DOCUMENT]
    if one is not None and one.is_dir():
        what = "CSV" if one.suffix == CSV else "Parquet"
        raise IsADirectoryError(errno.EISDIR, f"is a directory, expected the name of a {what} file", str(one))
    if report is not None:
        check_report(report)
    files += [path for path in (one, report) if path is not None]
    check_outputs(files, captures)
    if report is not None:
        check_file(report, [] if one else [out])


def _is_one_file(out: Path) -> bool:
    """Whether all that is written is one file; else it is a directory.

    Raises:
        OSError: It looks like a file of another kind.
    """
    if out.suffix in {PARQUET, CSV}:
        return True
    if _EXTENSION.fullmatch(out.suffix) and not out.is_dir():
        raise OSError(errno.EINVAL, "expected a name that ends in .parquet or .csv, or a directory", str(out))
    return False


def _write_frames(analysis: Analysis, out: Path) -> None:
    """The handovers into one file, or every frame and the document into a directory."""
    from segue.output import write_file

    if out.suffix == CSV:
        write_file(out, analysis.handovers.write_csv())
        return
    if out.suffix == PARQUET:
        write_file(out, _parquet(analysis.handovers))
        return
    for name, frame in analysis.frames().items():
        write_file(out / f"{name}{PARQUET}", _parquet(frame))
    write_file(out / DOCUMENT, analysis.without_series() + "\n")


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()

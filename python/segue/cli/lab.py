"""`segue lab`: hands over to the program `segue-lab`, which is not part of the Python package and knows files only."""

from __future__ import annotations

import itertools
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from segue.cli.program import every_end_is_ctrl_c, find_program
from segue.output import check_apart, check_file, check_report

FLAGS = ("--json", "--predict")
"""Options of `segue-lab run` without a value."""
BUNDLED = Path(__file__).parent.parent / "scenarios"
REPORT = "--report"
HELP = ("-h", "--help")
FIGURES_ARE_THERE = (0, 1, 3)
"""Exit statuses of `segue-lab run` after which there is something to report: a condition may not hold, and packets may
have been late."""


def with_files(arguments: Sequence[str]) -> list[str]:
    """`arguments` of `segue lab`, with the path of a scenario in the place of the name of one that comes with segue.

    >>> with_files(["run", "lab/none", "--json"])[1].endswith("lab/none.toml")
    True
    >>> with_files(["run", "somewhere/else.toml"])
    ['run', 'somewhere/else.toml']
    >>> with_files(["run", "--json", "lab/none"])[2].endswith("lab/none.toml")
    True
    >>> with_files(["run", "sigma-tcp"])[1].endswith("lab/sigma-tcp.toml")
    True

    Raises:
        ScenarioError: It is a name, and none that is known.
    """
    words = list(arguments)
    if words[:1] != ["run"]:
        return words
    # what stands behind an option that is no flag is its value
    pairs = itertools.pairwise(words)
    return ["run", *(word if _takes_a_value(before) else _file_of(word) for before, word in pairs)]


def _takes_a_value(word: str) -> bool:
    return word.startswith("--") and "=" not in word and word not in FLAGS


def _file_of(word: str) -> str:
    """The path of the scenario that a word names, or the word: an option, or a file that is there or should be."""
    if word.startswith("-") or Path(word).exists():
        return word
    from segue.scenarios import bundled

    if word.endswith(".toml"):
        path = BUNDLED / word.removeprefix("scenarios/")
        return str(path) if path.is_file() else word
    return str(BUNDLED / f"{bundled(word).name}.toml")


def without_report(arguments: Sequence[str]) -> tuple[list[str], Path | None]:
    """`arguments` of `segue lab run` without the report that is asked for, and its file.

    >>> without_report(["run", "a.toml", "--report", "a.html", "--json"])
    (['run', 'a.toml', '--json'], PosixPath('a.html'))
    >>> without_report(["run", "a.toml", "--report=a.html"])
    (['run', 'a.toml'], PosixPath('a.html'))

    Raises:
        click.UsageError: No file is named.
    """
    words, report = list(arguments), None
    if words[:1] != ["run"] or any(word in HELP for word in words):
        return words, None
    for place, word in enumerate(words):
        if word == REPORT:
            if place + 1 == len(words):
                raise click.UsageError("--report: expected FILE.html")
            report = Path(words[place + 1])
            return [*words[:place], *words[place + 2 :]], report
        if word.startswith(f"{REPORT}="):
            return [*words[:place], *words[place + 1 :]], Path(word.partition("=")[2])
    return words, report


def run_with_report(arguments: Sequence[str], report: Path) -> int:
    """`segue lab run ... --report FILE.html`: the exit status of `segue-lab`."""
    program = find_program("segue-lab")
    if any(word == "--record" or word.startswith("--record=") for word in arguments):
        raise click.UsageError("--report: makes a record of its own: expected it without --record")
    check_report(report)
    check_apart(report, [Path(word) for word in arguments[1:2]])
    check_file(report)
    with tempfile.TemporaryDirectory(prefix="segue-report-") as folder:
        with every_end_is_ctrl_c(), subprocess.Popen([program, *arguments, "--record", folder]) as running:
            status = _wait(running)
        if status not in FIGURES_ARE_THERE or not (Path(folder) / "document.json").is_file():
            return status
        from segue.lab.record import Record
        from segue.report.lab import write_lab_report

        write_lab_report(Record(Path(folder)), report)
    # JSON is one document, whatever else is said
    click.echo(f"report: {report}", err="--json" in arguments)
    return status


def _wait(running: subprocess.Popen[bytes]) -> int:
    """Its exit status; it is told of Ctrl-C, which may have come to it as well, and takes the time to clean up."""
    while True:
        try:
            return running.wait()
        except KeyboardInterrupt:
            running.send_signal(signal.SIGINT)
            continue

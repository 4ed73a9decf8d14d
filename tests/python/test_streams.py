"""The command where standard streams are closed, and where it is interrupted before it has begun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from segue.cli import main; main()"]


def in_shell(redirection: str, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command with a redirection of the shell."""
    return subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirection}', "sh", *COMMAND, *arguments],
        capture_output=True, text=True, check=False, cwd=cwd, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize(
    "redirection", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"], ids=lambda text: text.replace(" ", "")
)
def test_a_run_is_made_where_standard_streams_are_closed(tmp_path: Path, redirection: str) -> None:
    done = in_shell(redirection, "run", "sigma", "--set", "duration=3s", "--csv", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list((tmp_path / "out").iterdir())) == 3


def test_what_needs_no_run_passes_where_output_is_closed() -> None:
    assert in_shell(">&-", "keys", "--schema").returncode == 0


def test_wrong_input_has_its_status_where_errors_are_closed() -> None:
    done = in_shell("2>&-", "run", "no-such-scenario")
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize(
    "arguments",
    [("run", "sigma", "--set", "duration=3s"), ("run", "sigma", "--set", "duration=3s", "--json"), ("keys",),
     ("keys", "--json"), ("scenarios", "list"), ("--help",)],
    ids=" ".join,
)  # fmt: skip
def test_a_reader_that_has_gone_is_no_failure(arguments: tuple[str, ...]) -> None:
    assert without_a_reader(*arguments) == (0, "")


def test_a_condition_that_does_not_hold_is_told_without_a_reader() -> None:
    status, said = without_a_reader("run", "sigma", "--set", "duration=3s", "--assert", "throughput > 5 Gbit/s")
    assert (status, said.count("\n")) == (1, 1)
    assert "throughput" in said


def without_a_reader(*arguments: str) -> tuple[int, str]:
    """Status and errors of the command whose output nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=120
        )
    finally:
        os.close(writer)
    return done.returncode, done.stderr


INTERRUPTED = """
import importlib.abc, os, signal, sys

class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.argv = ["segue", "sweep", "sigma", "--grid", "l2.latency=100ms"]
from segue_command import main
main()
"""


@pytest.mark.parametrize("module", ["segue", "segue._native", "click", "segue.cli.app", "segue.cli.sweep"])
def test_ctrl_c_while_modules_are_imported_is_told_in_a_line(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(module=module)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "segue: interrupted")

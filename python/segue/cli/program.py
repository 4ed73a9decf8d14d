"""Programs of the workspace that are no part of the Python package, found and become."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import click


def hand_over(program: str, arguments: Sequence[str]) -> NoReturn:
    """Become `program` with these arguments: signals and the exit status are then its own."""
    path = find_program(program)
    sys.stdout.flush()
    os.execv(path, [program, *arguments])


def find_program(program: str) -> str:
    """The program that its variable names ($SEGUE_SCTP), the one beside this interpreter, or the one on the PATH."""
    variable = program.upper().replace("-", "_")
    named = os.environ.get(variable)
    if named:
        if not _is_program(Path(named)):
            raise click.ClickException(f"${variable} is {named}, which is not a program")
        return named
    beside = Path(sys.prefix) / "bin" / program
    found = str(beside) if _is_program(beside) else shutil.which(program)
    if found is None:
        raise click.ClickException(
            f"{program} not found: build it in the source tree with `make build`, or name it in ${variable}"
        )
    return found


@contextlib.contextmanager
def every_end_is_ctrl_c() -> Iterator[None]:
    """What ends a process in order interrupts it, so that the program that it runs is told, and cleans up.

    What is ignored, as SIGHUP under nohup, stays so.
    """

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    heeded = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)

"""`segue sctp`: hands over to the program `segue-sctp`, which is not part of the Python package."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

PROGRAM = "segue-sctp"
VARIABLE = "SEGUE_SCTP"


def hand_over(arguments: Sequence[str]) -> NoReturn:
    """Become `segue-sctp` with these arguments: signals and the exit status are then its own."""
    program = find_program()
    sys.stdout.flush()
    os.execv(program, [PROGRAM, *arguments])


def find_program() -> str:
    """The program that $SEGUE_SCTP names, the one beside this interpreter, or the one on the PATH."""
    named = os.environ.get(VARIABLE)
    if named:
        if not _is_program(Path(named)):
            raise click.ClickException(f"${VARIABLE} is {named}, which is not a program")
        return named
    beside = Path(sys.prefix) / "bin" / PROGRAM
    found = str(beside) if _is_program(beside) else shutil.which(PROGRAM)
    if found is None:
        raise click.ClickException(
            f"{PROGRAM} not found: build it in the source tree with `make build`, or name it in ${VARIABLE}"
        )
    return found


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)

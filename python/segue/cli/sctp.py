"""`segue sctp`: hands over to the program `segue-sctp`, which is not part of the Python package."""

from __future__ import annotations

from segue.cli import program

PROGRAM = "segue-sctp"
VARIABLE = "SEGUE_SCTP"


def find_program() -> str:
    """The program that $SEGUE_SCTP names, the one beside this interpreter, or the one on the PATH."""
    return program.find_program(PROGRAM)

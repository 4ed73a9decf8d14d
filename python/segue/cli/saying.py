"""What the command line says beside its output: lines on standard error, which begin with its name."""

from __future__ import annotations

import contextlib
import re

import click

LONGEST = 240
"""Letters of a value that is written whole; of a longer one its beginning and its end."""
_BEGINNING, _END = 120, 60
_MOST = 4000
"""Letters of a line; words of which there are so many that it has more are no longer read by anybody."""
_LONG = re.compile(rf"`[^`]{{{LONGEST},}}`|\S{{{LONGEST},}}")


def say(message: str) -> None:
    """Write a message as one line of the command, whether or not somebody reads that."""
    with contextlib.suppress(BrokenPipeError):
        click.echo(f"segue: {one_line(message)}", err=True)


def one_line(message: str) -> str:
    r"""A message as one line, in which long values are cut.

    >>> one_line("metric `" + 300 * "a" + "`:\nexpected one of interruption, loss").count("a") < 200
    True
    """
    text = _LONG.sub(_cut, " ".join(message.split()))
    return text if len(text) <= _MOST else f"{text[:_MOST]}\N{HORIZONTAL ELLIPSIS}"


def _cut(value: re.Match[str]) -> str:
    return f"{value[0][:_BEGINNING]}\N{HORIZONTAL ELLIPSIS}{value[0][-_END:]}"

"""`segue check`."""

from __future__ import annotations

import click

from segue import _native
from segue.cli.saying import one_line, say
from segue.scenarios import load


def check_file(scenario: str) -> bool:
    """Says all that is wrong with a scenario file, with line and column; whether there is anything."""
    source = load(scenario)
    found, more = _native.scenario_problems(source.text, source.file)
    for at, message in found:
        # as compilers have it, so that an editor goes there
        place = f":{at[0]}:{at[1]}" if at else ""
        text = message.removeprefix(f"{source.file}: ")
        click.echo(f"{source.file}{place}: {one_line(text)}" if at else one_line(message), err=True)
    if found:
        count = f"{len(found)} {'fault' if len(found) == 1 else 'faults'}"
        hidden = ", and perhaps more: what is wrong above hides the rest" if more else ""
        say(f"{source.file}: {count}{hidden}")
        return True
    info = _native.check(source.text, source.file, [])
    for warning in info.warnings:
        click.echo(f"{source.file}: {warning}")
    if info.refusal is not None:
        click.echo(f"{source.file}: is for real hosts: `segue run` ends with {info.refusal}")
    else:
        click.echo(f"{source.file}: can be run")
    return False

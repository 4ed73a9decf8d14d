"""`segue keys`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import click

from segue.cli.layout import new_console
from segue.keys import Key, default_of, described, find, keys, markdown, schema


def list_keys(prefix: str | None, *, as_schema: bool, as_markdown: bool, as_json: bool) -> None:
    """The keys below `prefix`, or all of them."""
    if sum([as_schema, as_markdown, as_json]) > 1:
        raise click.UsageError("expected one of --schema, --markdown and --json")
    if prefix is not None and (as_schema or as_markdown):
        raise click.UsageError(f"--{'schema' if as_schema else 'markdown'} is of all keys: expected no PREFIX")
    if as_schema:
        click.echo(schema(), nl=False)
    elif as_markdown:
        click.echo(markdown(), nl=False)
    else:
        found = find(prefix) if prefix is not None else list(keys())
        if as_json:
            click.echo(json.dumps([asdict(key) for key in found], indent=1, ensure_ascii=False))
        elif prefix is None or len(found) > IN_FULL:
            _in_lines(found)
        else:
            _in_full(found)


IN_FULL = 40
"""So many keys are told with all that there is to say of them."""


def _in_lines(found: Sequence[Key]) -> None:
    width = max(len(key.key) for key in found)
    for key in found:
        default = default_of(key)
        click.echo(f"{key.key:{width}}  {key.kind}{f', {default}' if default else ''}")
    if len(found) == len(keys()):
        click.echo("\nsegue keys PREFIX, such as link or link.rate, tells what they mean.")


def _in_full(found: Sequence[Key]) -> None:
    console = new_console()
    for number, key in enumerate(found):
        if number:
            console.print()
        default = default_of(key)
        told = f"; {default}" if key.required else f"; {default} if left out" if default else ""
        console.print(key.key, style="bold", markup=False)
        console.print(f"    {described(key)}{told}", markup=False)
        if key.units:
            console.print(f"    units: {', '.join(key.units)}", markup=False)
        console.print(f"    {key.meaning}", markup=False)
        for one in key.choices:
            if one.meaning:
                console.print(f"    {one.value}: {one.meaning}", markup=False)

"""`segue new`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from segue.keys import schema
from segue.output import write_file
from segue.scenarios import bundled

SCHEMA = "segue.schema.json"
"""The file that an editor checks scenarios by, beside them."""


def begin(name: str, template: str, *, force: bool) -> None:
    """Writes a scenario that begins as `template`, and the schema."""
    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    if path.exists() and not force:
        raise click.UsageError(f"{path}: is there already: expected another name, or --force")
    if not path.parent.is_dir():
        raise click.UsageError(f"{path.parent}: no such directory: expected one that exists")
    if not path.stem or re.search(r'[\x00-\x1f"\\]', path.stem):
        raise click.UsageError(f"{name}: expected a name of printable characters, without quotes")
    write_file(path, written(path.stem, template))
    beside = path.with_name(SCHEMA)
    current = schema()
    if not beside.is_file() or beside.read_text(encoding="utf-8") != current:
        write_file(beside, current)
    click.echo(f"{path}: begun as {template}; `segue run {path}` runs it")
    click.echo(f"{beside}: what an editor completes and checks it by (docs/keys.md)")


def written(name: str, template: str) -> str:
    """The text of a template under another name."""
    text = bundled(f"templates/{template}").text
    text = re.sub(r'(?m)^name = ".*"', lambda _: f'name = "{name}"', text, count=1)
    return f"#:schema ./{SCHEMA}\n" + text.replace(f"{template}.toml", f"{name}.toml")

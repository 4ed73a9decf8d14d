"""`segue new`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from segue.keys import schema
from segue.output import check_outputs, read_file, write_file
from segue.scenarios import bundled

SCHEMA = "segue.schema.json"
"""The file that an editor checks scenarios by, beside them."""

SYSTEM = tuple(map(Path, ("/dev", "/proc", "/sys")))
"""Where names are of devices and of the kernel's own: a file there is not kept, or takes the place of one."""
SHARED_MEMORY = Path("/dev/shm")
"""Files are kept there as anywhere."""


def begin(name: str, template: str, *, force: bool) -> None:
    """Writes a scenario that begins as `template`, and the schema."""
    if not name or name[-1] == "/" or Path(name).name in {"", ".."}:
        raise click.UsageError(f"{name!r}: expected the name of a scenario, or of its file")
    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    if path.exists() and not force:
        raise click.UsageError(f"{path}: is there already: expected another name, or --force")
    if not path.parent.is_dir():
        raise click.UsageError(f"{path.parent}: no such directory: expected one that exists")
    if _is_of_the_system(path.parent.resolve()):
        raise click.UsageError(f"{path.parent}: expected an ordinary directory, not one of devices or of the kernel")
    if not path.stem or re.search(r'[\x00-\x1f"\\]', path.stem):
        raise click.UsageError(f"{name}: expected a name of printable characters, without quotes")
    beside = path.with_name(SCHEMA)
    # both are known to be possible before one is written
    check_outputs([path, beside])
    current = schema().encode()
    present = read_file(beside) if beside.exists() else b""
    if present not in {b"", current} and not force and not _is_ours(present):
        raise click.UsageError(f"{beside}: is there already, and is not segue's: expected another folder, or --force")
    if present != current:
        write_file(beside, current)
    write_file(path, written(path.stem, template))
    click.echo(f"{path}: begun as {template}; `segue run {path}` runs it")
    click.echo(f"{beside}: what an editor completes and checks it by (docs/keys.md)")


def _is_of_the_system(folder: Path) -> bool:
    return any(folder.is_relative_to(system) for system in SYSTEM) and not folder.is_relative_to(SHARED_MEMORY)


def _is_ours(content: bytes) -> bool:
    """Whether it is a schema of segue, of this version or another."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("title") == json.loads(schema())["title"]


def written(name: str, template: str) -> str:
    """The text of a template under another name."""
    text = bundled(f"templates/{template}").text
    text = re.sub(r'(?m)^name = ".*"', lambda _: f'name = "{name}"', text, count=1)
    return f"#:schema ./{SCHEMA}\n" + text.replace(f"{template}.toml", f"{name}.toml")

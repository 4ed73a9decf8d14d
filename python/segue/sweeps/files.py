"""Files that a scenario names, for machines that have not got them."""

from __future__ import annotations

import glob
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from segue._native import ScenarioError
from segue.scenarios import Scenario
from segue.sweeps.plan import Plan
from segue.sweeps.worker import digest_of

_BRACES = re.compile(r"(\{[^}]*\})")
KEY = "file"
"""By which key a scenario names one, wherever it stands."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A plan that needs nothing of this machine.

    Attributes:
        plan: The same, with other names of files where those lead out of the scenario's folder.
        files: Digests by name.
        contents: Contents by digest.
    """

    plan: Plan
    files: Mapping[str, str]
    contents: Mapping[str, bytes]


def pack(plan: Plan) -> Packed:
    """Read the files that a plan names.

    Raises:
        ScenarioError: One cannot be read.
    """
    directory = Path(plan.scenario.file).parent
    named = set(_in_text(plan.scenario.text))
    for key, text in [*plan.fixed.items(), *((axis.key, one) for axis in plan.axes for one in axis.settings)]:
        named |= set(_in_setting(key, text))
    files: dict[str, str] = {}
    contents: dict[str, bytes] = {}
    renamed: dict[str, str] = {}
    for name in sorted(named):
        # of a case that is not run, or one that is not there: whoever reads the scenario says so
        fixed, each, found = _found(directory, name)
        leads_out = Path(name).is_absolute() or ".." in Path(name).parts
        folder = Path(digest_of(str(fixed).encode())) if leads_out else fixed
        if leads_out and found:
            renamed[name] = str(folder / each)
        for path in found:
            try:
                content = path.read_bytes()
            except OSError as error:
                raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from None
            digest = digest_of(content)
            contents[digest] = content
            files[str(folder / path.relative_to(directory / fixed))] = digest
    return Packed(_with_names(plan, renamed), files, contents)


def _found(directory: Path, name: str) -> tuple[Path, Path, list[Path]]:
    """The folder in a name of a file, the rest of it, and the files that it may stand for.

    Entries with `count` have expressions in braces in their names (`way{i}.csv`): each may be anything.
    """
    parts = Path(name).parts
    place = next((number for number, part in enumerate(parts) if "{" in part), len(parts) - 1)
    fixed, each = Path(*parts[:place]), Path(*parts[place:])
    if "{" not in name:
        return fixed, each, [directory / name] if (directory / name).is_file() else []
    pattern = "".join("*" if number % 2 else glob.escape(text) for number, text in enumerate(_BRACES.split(str(each))))
    there = sorted((directory / fixed).glob(pattern)) if pattern.strip("*") and ".." not in each.parts else []
    return fixed, each, [path for path in there if path.is_file()]


def _in_text(text: str) -> Iterator[str]:
    # a scenario that is none was refused before
    yield from _below(tomllib.loads(text))


def _in_setting(key: str, text: str) -> Iterator[str]:
    """Of an override: a word by itself, or a value of TOML."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    if key.rpartition(".")[2] == KEY and isinstance(value, str):
        yield value
    yield from _below(value)


def _below(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == KEY and isinstance(inner, str):
                yield inner
            yield from _below(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _below(inner)


def _with_names(plan: Plan, renamed: Mapping[str, str]) -> Plan:
    def other(text: str) -> str:
        for name, digest in renamed.items():
            text = (
                digest if text == name else text.replace(f'"{name}"', f'"{digest}"').replace(f"'{name}'", f"'{digest}'")
            )
        return text

    scenario = Scenario(plan.scenario.name, plan.scenario.file, other(plan.scenario.text))
    return replace(
        plan,
        scenario=scenario,
        fixed={key: other(text) for key, text in plan.fixed.items()},
        axes=tuple(replace(axis, settings=tuple(map(other, axis.settings))) for axis in plan.axes),
    )

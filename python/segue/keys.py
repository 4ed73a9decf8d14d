"""Every key of a scenario, and the JSON Schema of scenario files.

Both are made from the types that a scenario is read into.
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from functools import cache

from segue import _native


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that a key may have.

    Attributes:
        value: It, as a scenario has it.
        meaning: What it means.
    """

    value: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a scenario.

    Attributes:
        key: Its name, with dots, and with `[]` behind a list: "link[].rate".
        kind: What its value is: "duration", "whole number", "text", "one of", "list of coordinate" and so on.
        units: The units that it may have.
        example: A value, as a scenario has it; None if there is nothing to say.
        required: Whether its table has to have it.
        unless: The key that it need not be there with, if it is required and there is one.
        default: What is used if it is left out, as a scenario has it; None where that depends on others.
        choices: The values that it may have, if they are few.
        range: What its value may be, in words with units: "10 us to 1 s"; empty if there is no bound.
        least: The least number that its type may have.
        greatest: The greatest.
        meaning: What it means.
    """

    key: str
    kind: str
    units: tuple[str, ...]
    example: str | None
    required: bool
    unless: str | None
    default: str | None
    choices: tuple[Choice, ...]
    range: str
    least: float | None
    greatest: float | None
    meaning: str

    @property
    def table(self) -> str:
        """The table that it is in: "link[]", or "" at the top."""
        return self.key.rpartition(".")[0]


@cache
def keys() -> tuple[Key, ...]:
    """All keys of a scenario, in the order of their names.

    >>> next(key.kind for key in keys() if key.key == "link[].rate")
    'rate'
    """
    return tuple(_key(one) for one in json.loads(_native.scenario_keys()))


def find(prefix: str) -> list[Key]:
    """The keys whose names begin with `prefix`, whole parts of it. Numbers and names of entries may be left out.

    Raises:
        ScenarioError: There are none; it says which was meant.

    >>> [key.key for key in find("l2.beacon_loss")]
    ['l2.beacon_loss']
    >>> [key.key for key in find("link.0.rate")] == [key.key for key in find("link[].rate")]
    True
    """
    wanted = _plain(prefix)
    found = [key for key in keys() if _begins(_plain(key.key), wanted)]
    if found:
        return found
    # an entry of a list, by its number or name
    known = {_plain(key.key): key for key in keys()}
    parts = wanted.split(".")
    for left_out in range(1, len(parts)):
        rest = ".".join(parts[:left_out] + parts[left_out + 1 :])
        # the part before is its list; without more behind it, only a number is surely an entry and no misspelt key
        entry = f"{'.'.join(parts[:left_out])}[]."
        if left_out == len(parts) - 1 and not parts[left_out].isdecimal():
            continue
        found = [key for name, key in known.items() if _begins(name, rest) and f"{key.key}.".startswith(entry)]
        if found:
            return found
    by_last = [name for name in known if name.rpartition(".")[2] == wanted]
    near = by_last or difflib.get_close_matches(wanted, known, n=3, cutoff=0.6)
    meant = " or ".join(f"`{known[name].key}`" for name in near[:3])
    hint = f"did you mean {meant}?" if near else "`segue keys` lists all"
    raise _native.ScenarioError(f"{prefix}: no scenario has such a key: {hint}")


def schema() -> str:
    """JSON Schema (draft 7) of scenario files as they are written, for editors: a JSON document."""
    return json.dumps(json.loads(_native.scenario_schema()), indent=1, ensure_ascii=False) + "\n"


def markdown() -> str:
    """All keys as a page of the documentation."""
    lines = [HEAD]
    table = None
    for key in sorted(keys(), key=lambda key: (key.table, key.key)):
        if key.table != table:
            table = key.table
            lines += ["", f"## {f'`{table}`' if table else 'The top of the file'}", "", *COLUMNS]
        name = key.key.rpartition(".")[2]
        cells = [f"`{name}`", _escaped(described(key)), _escaped(default_of(key)), _escaped(key.meaning)]
        lines.append(f"| {' | '.join(cells)} |")
        lines += [f"| | `{one.value}` | | {_escaped(one.meaning)} |" for one in key.choices if one.meaning]
    return "\n".join(lines) + "\n"


HEAD = """# Keys of scenarios

Every key that a scenario may have, made from the types that scenarios are read into: `segue keys --markdown`. On the
command line `segue keys link` lists a part of them with all that there is to say, and `segue keys` their names.

`[]` stands for the entries of a list, which the file has as `[[link]]`. `--set` names one of them by its number or
its name: `--set link.0.rate='10 Mbit/s'`. Quantities are texts with a unit. Any of `host`, `router`, `link`, `cell`,
`mobile` and `application` with a `count` stands for many, with expressions in braces for what differs:
`scenarios/populations/` has examples.

**In an editor.** `segue new my-walk` writes `my-walk.toml`, which runs, and `segue.schema.json` beside it; the first
line of a scenario, `#:schema ./segue.schema.json`, names it. Visual Studio Code with the extension Even Better TOML,
and every editor with Taplo, then complete keys and values, show their meaning, and mark what is none. `segue keys
--schema` prints the schema (JSON Schema, draft 7). Which keys belong together, and that a quantity is out of its range,
it does not say: `segue check my-walk.toml` does, all at once, with line and column.

`segue new NAME --template` begins with one of two-cells, wifi-to-5g, multipath, vertical and population."""

COLUMNS = ("| key | value | if left out | meaning |", "| --- | --- | --- | --- |")


def described(key: Key) -> str:
    """What its value is, with units, choices and limits."""
    text = key.kind
    if key.choices:
        text = f"{text} {', '.join(one.value for one in key.choices)}"
    if key.example is not None and not key.choices:
        text = f"{text}, as {key.example}"
    if key.range:
        return f"{text}, {key.range}"
    if key.greatest is not None and key.greatest < LARGE:
        text = f"{text}, {key.least or 0:g} to {key.greatest:g}"
    return text


LARGE = 2**16
"""Limits beyond are those of the machine."""


def default_of(key: Key) -> str:
    """What is used if it is left out, in words."""
    if key.required:
        return f"required unless there is `{key.unless}`" if key.unless else "required"
    return key.default or ""


def _plain(name: str) -> str:
    return name.replace("[]", "").strip(".")


def _begins(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def _key(one: dict[str, object]) -> Key:
    choices = one["choices"]
    units = one["units"]
    assert isinstance(choices, list)
    assert isinstance(units, list)
    least, greatest = one["least"], one["greatest"]
    return Key(
        key=str(one["key"]),
        kind=str(one["kind"]),
        units=tuple(dict.fromkeys(map(str, units))),
        example=_written(one["example"]),
        required=bool(one["required"]),
        unless=_unless(str(one["key"])),
        default=_written(one["default"]),
        choices=tuple(Choice(value=str(_written(c["value"])), meaning=c["meaning"]) for c in choices),
        range=str(one["range"] or ""),
        least=least if isinstance(least, int | float) else None,
        greatest=greatest if isinstance(greatest, int | float) else None,
        meaning=str(one["meaning"]),
    )


def _unless(key: str) -> str | None:
    """The key that takes the place of one: what a table's other forms require, in the schema."""
    table, _, name = key.rpartition(".")
    forms = _forms().get(table.removesuffix("[]"), [])
    others = [form for form in forms if name not in form]
    own = {one for form in forms if name in form for one in form}
    instead = set.intersection(*map(set, others)) - own if own and others else set()
    return min(instead, default=None)


@cache
def _forms() -> dict[str, list[frozenset[str]]]:
    """What each form of the file's own tables requires."""
    whole = json.loads(_native.scenario_schema())

    def required(schema: object) -> list[frozenset[str]]:
        if not isinstance(schema, dict):
            return []
        if "properties" in schema:
            return [frozenset(schema.get("required", []))]
        named = whole["definitions"].get(str(schema.get("$ref", "")).rpartition("/")[2])
        inner = [
            named,
            schema.get("items"),
            *schema.get("anyOf", []),
            *schema.get("oneOf", []),
            *schema.get("allOf", []),
        ]
        return [form for one in inner for form in required(one)]

    return {name: required(schema) for name, schema in whole["properties"].items()}


def _written(value: object) -> str | None:
    """A value as TOML has it, without the quotes that `--set` does without."""
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value)

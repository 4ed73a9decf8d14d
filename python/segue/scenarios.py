"""Scenarios: those that come with the package, and those that a person names."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from segue import _native

BUNDLED = Path(__file__).parent / "scenarios"
"""The repository's `scenarios/`: a link in a checkout, files in an installed package."""

TEMPLATES = "templates/"
"""Where those are that scenarios of one's own begin as."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario's text and where it comes from.

    Attributes:
        name: Name to say on the command line: the path below `scenarios/` without `.toml`, or the file's name.
        file: What messages call it.
        text: TOML.
    """

    name: str
    file: str
    text: str

    @property
    def description(self) -> str:
        """What the scenario shows, in its own words."""
        return _native.check(self.text, self.file, []).description


def scenarios() -> list[Scenario]:
    """The scenarios that come with the package, by name.

    >>> any(scenario.name == "papers/sigma" for scenario in scenarios())
    True
    """
    return [_bundled(path) for path in sorted(BUNDLED.rglob("*.toml"))]


def load(source: str | Path) -> Scenario:
    """The scenario that `source` means: a file, the name of a bundled one, or TOML text (anything with a line break).

    Raises:
        ScenarioError: One line that says what was expected.
    """
    if isinstance(source, str) and "\n" in source:
        return Scenario(name="text", file="<text>", text=source)
    path = Path(source)
    if path.is_file():
        return Scenario(name=path.stem, file=str(source), text=_read(path))
    if path.is_dir():
        raise _native.ScenarioError(f"{source}: is a directory, expected a scenario file")
    found = _find(str(source))
    if found is None:
        raise _native.ScenarioError(_unknown(str(source)))
    return found


def bundled(name: str) -> Scenario:
    """The one that comes with the package under this name, or whose file has it.

    Raises:
        ScenarioError: There is none; it says which was meant.
    """
    found = _find(name)
    if found is None:
        raise _native.ScenarioError(_unknown(name))
    return found


def _find(name: str) -> Scenario | None:
    wanted = name.removeprefix("scenarios/").removesuffix(".toml")
    known = scenarios()
    exact = [scenario for scenario in known if scenario.name == wanted]
    # what scenarios of one's own begin as goes by its whole name: the others had theirs before
    named = [scenario for scenario in known if not scenario.name.startswith(TEMPLATES)]
    by_stem = [scenario for scenario in named if scenario.name.rsplit("/", 1)[-1] == wanted]
    return next(iter(exact or (by_stem if len(by_stem) == 1 else [])), None)


def _unknown(name: str) -> str:
    beside = Path(f"{name}.toml")
    if beside.is_file():
        return f"{name}: no such file or scenario: did you mean {beside}?"
    if name.endswith(".toml") and not name.startswith("scenarios/"):
        return f"{name}: no such file: expected one that exists, or a name of those that `segue scenarios list` shows"
    wanted = name.removeprefix("scenarios/").removesuffix(".toml")
    known = {}
    for path in sorted(BUNDLED.rglob("*.toml")):
        full = path.relative_to(BUNDLED).with_suffix("").as_posix()
        known[path.stem] = full
        known[full] = full
    near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.5)
    hint = f"did you mean `{known[near[0]]}`?" if near else "`segue scenarios list` shows those that there are"
    return f"{name}: no such file or scenario: {hint}"


def _bundled(path: Path) -> Scenario:
    name = path.relative_to(BUNDLED).with_suffix("").as_posix()
    short = f"scenarios/{name}.toml"
    # the files that a scenario names are found from its own on, wherever one is
    return Scenario(name=name, file=short if Path(short).is_file() else str(path), text=_read(path))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise _native.ScenarioError(f"{path}: byte {error.start} is not UTF-8, expected a TOML file") from None
    except OSError as error:
        raise _native.ScenarioError(f"{path}: cannot be read: {error.strerror}") from None

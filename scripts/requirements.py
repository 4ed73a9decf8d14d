#!/usr/bin/env python3
"""Print requirements of pyproject.toml, one a line: `requirements.py build run dev`.

`build` is what the build back end needs, `run` the package's own dependencies, any other name an extra of it.
pip can install these only together with the package, that is after a build; lints and type checks need them
before.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def requirements(pyproject: dict[str, dict[str, object]], kind: str) -> object:
    """The list that `kind` names."""
    if kind == "build":
        return pyproject["build-system"]["requires"]
    if kind == "run":
        return pyproject["project"]["dependencies"]
    extras = pyproject["project"]["optional-dependencies"]
    assert isinstance(extras, dict)
    return extras[kind]


def main() -> None:
    """Command line."""
    pyproject = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    for kind in sys.argv[1:]:
        lines = requirements(pyproject, kind)
        assert isinstance(lines, list)
        print("\n".join(lines))


if __name__ == "__main__":
    main()

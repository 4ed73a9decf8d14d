"""`segue lab`: hands over to the program `segue-lab`, which is not part of the Python package and knows files only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

BUNDLED = Path(__file__).parent.parent / "scenarios"


def with_files(arguments: Sequence[str]) -> list[str]:
    """`arguments` of `segue lab`, with the path of a scenario in the place of the name of one that comes with segue.

    >>> with_files(["run", "lab/none", "--json"])[1].endswith("lab/none.toml")
    True
    >>> with_files(["run", "somewhere/else.toml"])
    ['run', 'somewhere/else.toml']
    """
    words = list(arguments)
    if words[:1] == ["run"] and len(words) > 1 and not Path(words[1]).exists():
        name = words[1].removeprefix("scenarios/").removesuffix(".toml")
        bundled = BUNDLED / f"{name}.toml"
        if bundled.is_file():
            words[1] = str(bundled)
    return words

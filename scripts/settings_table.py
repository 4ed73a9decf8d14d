"""Puts the table of `docs/ilnp-settings.csv` into the README; `make docs` makes that and then calls this.

It says what of Mobile IPv6's silence is the protocol's, and what the settings'.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from segue.papers.ilnp.policies import markdown

ROOT = Path(__file__).resolve().parent.parent
BEGIN = "<!-- made by scripts/settings_table.py: begin -->\n"
END = "<!-- end -->\n"
FIRST = "I5"
"""The measure that is shown; the others can be unfolded."""


def block(table: pl.DataFrame) -> str:
    """What stands between the marks."""
    shown = pl.col("measure").str.starts_with(FIRST)
    return (
        f"{BEGIN}\n{markdown(table.filter(shown))}\n<details>\n<summary>I1 to I4: handoff delay, losses, "
        f"retransmissions, data moved</summary>\n\n{markdown(table.filter(~shown))}\n</details>\n{END}"
    )


def with_table(text: str, table: pl.DataFrame) -> str:
    """The README with this table.

    Raises:
        ValueError: It has not the marks.
    """
    before, mark, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"README.md: expected {BEGIN.strip()} and {END.strip()}")
    return before + block(table) + after


def main() -> None:
    """Rewrite the README."""
    readme = ROOT / "README.md"
    table = pl.read_csv(ROOT / "docs" / "ilnp-settings.csv")
    readme.write_text(with_table(readme.read_text(), table))


if __name__ == "__main__":
    main()

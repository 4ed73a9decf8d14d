"""Tables that fit the width there is: with fewer columns where it is narrow, and as lines of `name: value` below that.

A column is left out whole and named below the table; nothing is squeezed until a word stands letter by letter.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 120
"""Width where there is no terminal to ask and `COLUMNS` does not say."""
LEAST_WIDTH = 20
LEAST_TEXT = 24
"""Texts that wrap get so much at least, or are left out."""
LEAST_VALUE = 40
"""Values beside their names get so much at least; with less they stand below them."""
BETWEEN = 2
"""Blanks between two columns."""

Cell = str | Text
"""What stands in a table: plain, or with a style of its own."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: Its heading, of one line or several.
        right: Numbers stand to the right.
        rank: Where there is no room for all, the one of the highest rank goes first; those of rank 0 never.
        wraps: A text of several words, which may go on in the next line.
    """

    name: str
    right: bool = False
    rank: int = 0
    wraps: bool = False


class _Output(Console):
    """Standard output, whose reader may go away: that is for the command to deal with (`segue.cli.app`)."""

    def on_broken_pipe(self) -> None:
        # rich's own ends the process, with a status that is a failure
        raise BrokenPipeError


def new_console() -> Console:
    """Standard output: as wide as the terminal, or as `COLUMNS` says; `PIPE_WIDTH` if neither says anything."""
    console = Console(highlight=False)
    said = os.environ.get("COLUMNS", "")
    known = console.is_terminal or (said.isdigit() and int(said) > 0)
    return _Output(highlight=False, width=max(console.width, LEAST_WIDTH) if known else PIPE_WIDTH)


def print_table(
    console: Console, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, lines: bool = False
) -> None:
    """Rows of texts below their headings, in the columns that fit; if too few fit, a block of lines per row.

    Args:
        console: Where.
        columns: The columns.
        rows: A text per column; empty ones of a block are left out.
        lines: An empty line between rows.
    """
    widths = [_width(column, [str(row[place]) for row in rows]) for place, column in enumerate(columns)]
    shown = _fitting(columns, widths, console.width)
    if shown is None:
        _print_blocks(console, columns, rows)
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), show_lines=lines, pad_edge=False)
    for place in shown:
        column = columns[place]
        table.add_column(
            column.name, justify="right" if column.right else "left", no_wrap=not column.wraps, overflow="fold"
        )
    for row in rows:
        table.add_row(*(_text(row[place]) for place in shown))
    console.print(table)
    if len(shown) < len(columns):
        names = ", ".join(" ".join(column.name.split()) for n, column in enumerate(columns) if n not in shown)
        console.print()
        console.print(f"[dim]not shown at this width: {escape(names)} (all need {_total(widths)} columns)[/]")


def print_pairs(console: Console, pairs: Sequence[tuple[str, str]]) -> None:
    """Names and values beside each other, or below each other where it is narrow."""
    longest = max((cell_len(name) for name, _ in pairs), default=0)
    if console.width < longest + BETWEEN + LEAST_VALUE:
        for name, text in pairs:
            whole = f"{name}: {text}" if name else text
            if cell_len(whole) <= console.width:
                console.print(Text(whole))
                continue
            console.print(Text(f"{name}:"))
            console.print(Padding(Text(text), (0, 0, 0, BETWEEN)))
        return
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, BETWEEN, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in pairs:
        table.add_row(Text(name), Text(text))
    console.print(table)


def _print_blocks(console: Console, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    for number, row in enumerate(rows):
        if number:
            console.print()
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for column, text in zip(columns, row, strict=True):
            for name, part in _named(column.name, text):
                table.add_row(Text(f"{name}:"), part)
        console.print(table)


def _named(heading: str, cell: Cell) -> list[tuple[str, Text]]:
    """A cell as (name, text); one of as many lines as its heading has, as so many."""
    text = _text(cell)
    if not text.plain:
        return []
    names, parts = heading.split("\n"), text.split("\n")
    if len(names) == len(parts):
        return list(zip(names, parts, strict=True))
    return [(" ".join(names), Text(" ").join(parts))]


def _text(cell: Cell) -> Text:
    # Not as markup: what stands in brackets is an address.
    return cell if isinstance(cell, Text) else Text(cell)


def _fitting(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[int] | None:
    """Places of the columns to show; `None` if those that must be shown do not fit."""
    shown = list(range(len(columns)))
    while _total([widths[place] for place in shown]) > width:
        last = max(shown, key=lambda place: (columns[place].rank, place))
        if columns[last].rank == 0:
            return None
        shown.remove(last)
    return shown


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + BETWEEN * (len(widths) - 1)


def _width(column: Column, texts: Sequence[str]) -> int:
    """What a column needs: its longest line, or of texts that wrap as much as makes them readable."""
    heading = max(map(cell_len, column.name.split("\n")))
    longest = max((cell_len(line) for text in texts for line in text.split("\n")), default=0)
    return max(heading, min(longest, LEAST_TEXT) if column.wraps else longest)

"""Tables of a report, and of what a terminal showed, as texts."""

from __future__ import annotations

import re
from html.parser import HTMLParser

Table = list[dict[str, str]]


class _Tables(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self._heading = ""
        self._cell: list[str] | None = None
        self._in_heading = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag == "h2":
            self._heading, self._in_heading = "", True
        elif tag == "tr":
            self.tables.setdefault(self._heading, []).append([])
        elif tag in {"td", "th"}:
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        if tag == "h2":
            self._in_heading = False
        elif tag in {"td", "th"} and self._cell is not None:
            self.tables[self._heading][-1].append("".join(self._cell))
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._in_heading:
            self._heading += data
        elif self._cell is not None:
            self._cell.append(data)


def report_tables(html: str) -> dict[str, list[list[str]]]:
    """Rows of the table below each heading, its head among them."""
    parser = _Tables()
    # what may not be broken between is read as it is seen
    parser.feed(html.replace("&nbsp;", " "))
    return parser.tables


def report_table(html: str, heading: str) -> Table:
    """The table below a heading, a row each by column; empty if there is none."""
    head, *rows = report_tables(html).get(heading, [[]])
    return [dict(zip(head, row, strict=True)) for row in rows]


def terminal_table(text: str, heading: str) -> Table:
    """The table below a heading of `segue run`'s output, a row each by column; empty if there is none."""
    lines = text.splitlines()
    if heading not in lines:
        return []
    below = lines[lines.index(heading) + 1 :]
    rule = next(number for number, line in enumerate(below) if "──" in line)
    head = below[rule - 1]
    names = re.split(r" {2,}", head.strip())
    spans = _spans(head, names)
    rows = []
    for line in below[rule + 1 :]:
        if not line.strip():
            break
        rows.append(_cells(line, names, spans))
    return rows


def summary(text: str) -> dict[str, str]:
    """The rows of name and text on top of `segue run`'s output."""
    return dict(re.findall(r"^(\S[^\n]*?) {2,}(\S[^\n]*?) *$", text, re.MULTILINE))


def _spans(head: str, names: list[str]) -> list[tuple[int, int]]:
    at, spans = 0, []
    for name in names:
        begin = head.index(name, at)
        at = begin + len(name)
        spans.append((begin, at))
    return spans


def _cells(line: str, names: list[str], spans: list[tuple[int, int]]) -> dict[str, str]:
    """Texts of a line by the column whose heading they stand below: entries may be wider than it, or missing."""
    row = dict.fromkeys(names, "")
    for found in re.finditer(r"\S+(?: \S+)*", line):
        near = [min(found.end(), end) - max(found.start(), begin) for begin, end in spans]
        row[names[near.index(max(near))]] = found.group()
    return row

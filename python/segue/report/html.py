"""HTML without any request to elsewhere: style inline, figures as data."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import count

from matplotlib.figure import Figure

from segue._native import __version__
from segue.figures.style import DPI, Rendered, render_smaller
from segue.papers.claims import Claim, InLab, Verdict, lab_tally, tally

_STYLE = """
:root{--ink:#222;--muted:#666;--line:#e2e2e2;--yes:#00734f;--no:#b04a00}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;color:var(--ink);
max-width:1080px;margin:0 auto;padding:28px 20px 60px;background:#fff;overflow-wrap:anywhere}
h1{font-size:26px;line-height:1.25;margin:0 0 4px}
h2{font-size:18px;margin:36px 0 10px;border-top:1px solid var(--line);padding-top:20px}
.lead{color:var(--muted);margin:0 0 8px}
h3{font-size:15px;margin:22px 0 8px}
nav{font-size:13.5px;margin:14px 0}nav a{color:#0b5fa5;margin-right:14px}
table{overflow-wrap:normal;border-collapse:collapse;width:100%;font-size:13.5px}
th,td{text-align:left;vertical-align:top;padding:7px 9px;border-bottom:1px solid var(--line)}
th{font-weight:600;color:var(--muted)}.num{text-align:right;font-variant-numeric:tabular-nums}
.yes{color:var(--yes);font-weight:600;white-space:nowrap}.partly{color:var(--no);font-weight:600}.no{color:var(--no);font-weight:600;white-space:nowrap}
.note{color:var(--muted);font-size:12.5px}
.claims{min-width:660px}.pair{overflow-wrap:anywhere}.pair td:first-child{width:30%}
.data{font-size:13px}.data th,.data td{padding:5px 7px}.data td{white-space:nowrap}
.data .long{white-space:normal;min-width:15em}
figure{margin:0 0 18px;overflow-x:auto}figure img{max-width:100%;height:auto;display:block}
.warn li{color:var(--no)}
pre{background:#f6f6f6;padding:12px;overflow:auto;font-size:12.5px;border-radius:4px}
.scroll{overflow-x:auto;-webkit-overflow-scrolling:touch}
.wide{width:max-content;min-width:100%;max-width:calc(100vw - 40px);margin-left:50%;transform:translateX(-50%)}
details summary{cursor:pointer;color:#0b5fa5;margin:6px 0}
.tall{max-height:75vh;overflow:auto}
.tall thead th{position:sticky;top:0;background:#fff}
@media (max-width:720px){body{padding:18px 12px 40px}figure img{max-width:none;width:680px}}
@media print{nav{display:none}.tall{max-height:none}h2{break-after:avoid}figure,tr{break-inside:avoid}}
"""

SVG_LIMIT_BYTES = 600_000
"""A figure whose SVG is larger goes into the report as PNG."""

CSS_PIXELS_PER_INCH = 96
LONG = 32
"""Letters of an entry from which on its column wraps between words."""
TALL = 25
"""A table of more rows scrolls in its own box."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page.

    Attributes:
        heading: Plain text.
        body: HTML.
        short: What the page's list of contents calls it.
    """

    heading: str
    body: str
    short: str = ""


def page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """A whole document."""
    anchors = count(1)
    numbered = [(f"s{next(anchors)}", section) for section in sections]
    links = "\n".join(f'<a href="#{anchor}">{escape(s.short or s.heading)}</a>' for anchor, s in numbered)
    bodies = "".join(f'<h2 id="{anchor}">{escape(s.heading)}</h2>\n{s.body}\n' for anchor, s in numbered)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p>\n<nav>{links}</nav>\n{bodies}'
        f'<p class="note">Made by segue {escape(__version__)}.</p>\n</body>\n</html>\n'
    )


def claims_section(claims: Sequence[Claim]) -> Section:
    """Table of claims; with a column for the lab, if it was asked."""
    in_lab = any(claim.lab is not None for claim in claims)
    rows = "".join(
        f"<tr><td>{escape(claim.id)}</td><td>{escape(claim.statement)}</td><td>{escape(claim.paper)}</td>"
        f"<td>{escape(claim.measured)}</td>"
        f"{_verdict(claim.verdict)}{_verdict(claim.lab.verdict) if claim.lab is not None else ''}</tr>"
        f'<tr><td></td><td class="note" colspan="{5 if in_lab else 4}">{_beside(claim)}</td></tr>'
        for claim in claims
    )
    return Section(
        f"Claims: {tally(claims)}" + (f"; {lab_tally(claims)}" if in_lab else ""),
        '<div class="scroll"><table class="claims"><thead><tr><th>id</th><th>claim</th><th>paper</th>'
        f"<th>measured</th><th>verdict</th>{'<th>lab</th>' if in_lab else ''}"
        f"</tr></thead><tbody>{rows}</tbody></table></div>",
        "Claims",
    )


_VERDICT_CLASS = {
    Verdict.HOLDS: "yes",
    Verdict.UNDER_A_READING: "partly",
    Verdict.DOES_NOT_HOLD: "no",
    Verdict.NOT_JUDGED: "",
}


def _verdict(verdict: str) -> str:
    """As a cell; of `NOT_RUN` there is no colour."""
    kind = _VERDICT_CLASS[Verdict(verdict)] if verdict in list(Verdict) else ""
    return f'<td class="{kind}">{escape(verdict)}</td>'


def _beside(claim: Claim) -> str:
    """Criterion, readings, what was fitted, and the note, as HTML."""
    parts = [f"<strong>Criterion:</strong> {escape(claim.criterion)}"]
    if claim.lab is not None:
        parts.append(_in_lab(claim.lab))
    if claim.readings:
        rows = "".join(
            f"<li>{escape(one.name)} ({escape(one.source)}): {escape(one.measured)}, "
            f"{'holds' if one.holds else 'does not hold'}</li>"
            for one in claim.readings
        )
        parts.append(f"<strong>Readings:</strong><ul>{rows}</ul>")
    if claim.fitted:
        parts.append(f"<strong>Fitted or changed after a result:</strong> {escape(claim.fitted)}")
    if claim.note:
        parts.append(escape(claim.note))
    return "<br>".join(parts)


def _in_lab(lab: InLab) -> str:
    """What real hosts show, what the simulator has of the same runs, and how many there were."""
    if not lab.measured:
        return f"<strong>Lab:</strong> {escape(lab.verdict)}: {escape(lab.note)}"
    made = lab.runs + lab.too_late
    kind = _VERDICT_CLASS[Verdict(lab.verdict)]
    return (
        f'<strong>Lab:</strong> {escape(lab.measured)}: <span class="{kind}">{escape(lab.verdict)}</span>, '
        f"by {lab.runs} of {made} runs ({escape(lab.note)})<br><strong>The simulator in the same runs:</strong> "
        f"{escape(lab.simulated)}: {escape(lab.simulated_verdict)}"
    )


def figure_section(heading: str, figure: Rendered, *, alt: str = "") -> Section:
    """A figure, as SVG unless that is too large."""
    return Section(
        heading,
        _figure(figure, alt or heading),
        _short(heading) if heading.startswith("Fig.") else _name(heading),
    )


def drawing(figure: Figure, alt: str) -> str:
    """A drawing, rendered in that form alone in which it is shown."""
    return _figure(render_smaller(figure, SVG_LIMIT_BYTES), alt)


def table_section(heading: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> Section:
    """A table of texts, and a note below it if there is one; columns whose every entry is a number are set right."""
    return Section(heading, table(columns, rows) + (f"<p>{escape(note)}</p>" if note else ""))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts in a box that scrolls; columns whose every entry is a number or empty are set right."""
    numeric = [all(_is_number(row[i]) for row in rows if row[i]) for i in range(len(columns))]
    right = [" class=num" if one else "" for one in numeric]
    # a number stays beside its sign
    heads = [escape(column).replace(" %", "&nbsp;%") for column in columns]
    head = "".join(f"<th{right[i]}>{one}</th>" for i, one in enumerate(heads))
    is_long = [any(len(row[i]) > LONG and " " in row[i] for row in rows) for i in range(len(columns))]
    of_cells = [right[i] or (" class=long" if is_long[i] else "") for i in range(len(columns))]
    body = "".join(
        "<tr>" + "".join(f"<td{of_cells[i]}>{escape(cell)}</td>" for i, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    pair = len(columns) <= 2
    # Texts may wrap; numbers and addresses may not: tables with those may be wider than the page's text.
    box = "scroll" + ("" if pair else " wide") + (" tall" if len(rows) > TALL else "")
    wide = ' class="pair"' if pair else ' class="data"'
    return f'<div class="{box}"><table{wide}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def text_section(heading: str, text: str, *, preformatted: bool = True) -> Section:
    """Text as it is."""
    tag = "pre" if preformatted else "p"
    return Section(heading, f"<{tag}>{escape(text)}</{tag}>")


def _figure(figure: Rendered, alt: str) -> str:
    svg = bool(figure.svg) and (not figure.png or len(figure.svg) <= SVG_LIMIT_BYTES)
    kind, data = ("svg+xml", figure.svg) if svg else ("png", figure.png)
    encoded = base64.b64encode(data).decode()
    # Either form is as wide as the figure is in inches.
    width = "" if svg else f' width="{int.from_bytes(figure.png[16:20]) * CSS_PIXELS_PER_INCH // DPI}"'
    return f'<figure><img alt="{escape(alt)}"{width} src="data:image/{kind};base64,{encoded}"></figure>'


def _short(heading: str) -> str:
    """The number of a figure: `Fig. 10` of `Fig. 10. Impact of ...`."""
    return ". ".join(heading.split(". ")[:2])


def _is_number(text: str) -> bool:
    """Whether it is a number, with a unit of time or without."""
    number = text.removeprefix("≥ ").removesuffix(" ms").removesuffix(" s")
    try:
        float(number)
    except ValueError:
        return False
    return True


def _name(heading: str) -> str:
    """What a heading is about: of "Not in the paper: A by B", A."""
    before, _, after = heading.partition(":")
    if before != "Not in the paper":
        return before
    name = re.split(r",| by ", after.strip(), maxsplit=1)[0]
    return name[:1].upper() + name[1:]

"""Interruption by scheme and event, a field for each: what `segue lab compare` came to."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from segue.figures import style
from segue.lab.trials.results import Estimate, Row

LABELS = {"carrier-down": "carrier down", "one-way-loss": "one-way loss"}
SHADES = LinearSegmentedColormap.from_list("interruption", ("#e6f2ec", "#f5e9c8", "#e9b872", "#c65a3e", "#6f2130"))
"""From what nobody notices to what everybody does; numbers say it too."""
SCALE_MS = LogNorm(1.0, 10_000.0, clip=True)
DARK = 0.62
"""Place on the scale above which letters are white."""
NARROW = 0.1
"""A range that is narrower than this share of its median, or than a millisecond, is not written."""
FIELD_INCHES = (1.32, 0.40)
NAMES_INCHES = 1.5
"""For the names of schemes at the left."""
HEAD_INCHES = 0.62
"""For the title of a panel, and the names of events."""


def comparison(rows: Sequence[Row]) -> Figure:
    """A panel per flow, a line per scheme that carries it, a column per event: medians with their ranges.

    A flow that is dead to the end has a lower bound, in black. Beside the range is the simulator's median, where there
    is one.
    """
    events = list(dict.fromkeys(row.event for row in rows))
    panels = [own for flow in dict.fromkeys(row.flow for row in rows) if (own := _carried(rows, flow))]
    title = "How long flows are interrupted, with real hosts"
    subtitle = "Medians beyond the pacing of each flow, below them the range over runs where it is wide.\n"
    subtitle += "≥: silent to the end of the run."
    if any(row.predicted_ms is not None for row in rows):
        subtitle += " sim: the simulator's median for the same file."
    lines = [len({row.scheme for row in own}) for own in panels]
    width = max(NAMES_INCHES + FIELD_INCHES[0] * len(events), 6.4)
    heights = [HEAD_INCHES + FIELD_INCHES[1] * count for count in lines]
    figure, all_axes = style.new_figure(
        title, subtitle, width=width, height=0.9 + sum(heights), rows=max(len(panels), 1), ratios=heights or None
    )
    for axes, own in zip(all_axes, panels, strict=False):
        _panel(axes, own, events)
    return figure


def _carried(rows: Sequence[Row], flow: str) -> list[Row]:
    """Rows of a flow, of schemes that carry it."""
    own = [row for row in rows if row.flow == flow]
    carrying = {row.scheme for row in own if row.runs + row.too_late > 0}
    return [row for row in own if row.scheme in carrying]


def _panel(axes: Axes, rows: Sequence[Row], events: Sequence[str]) -> None:
    schemes = list(dict.fromkeys(row.scheme for row in rows))
    transports = {row.scheme: row.transport.upper() for row in rows}
    usual = transports[schemes[0]]
    names = [name if transports[name] == usual else f"{name} ({transports[name]})" for name in schemes]
    axes.set_xlim(0, len(events))
    axes.set_ylim(len(schemes), 0)
    for row in rows:
        _field(axes, events.index(row.event), schemes.index(row.scheme), row)
    axes.set_title(f"{rows[0].flow} over {usual}", fontsize=9.6, loc="left", pad=7, fontweight="bold")
    axes.set_xticks([n + 0.5 for n in range(len(events))], [LABELS.get(event, event) for event in events])
    axes.set_yticks([n + 0.5 for n in range(len(schemes))], names)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=8.6)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _field(axes: Axes, column: int, line: int, row: Row) -> None:
    lab = row.interruption_ms
    colour, ink = style.GRID, style.MUTED
    if lab is not None and lab.median_censored:
        colour, ink = style.INK, "white"
    elif lab is not None:
        place = float(SCALE_MS(lab.median))
        colour, ink = to_hex(SHADES(place)), "white" if place > DARK else style.INK
    axes.add_patch(Rectangle((column, line), 1, 1, facecolor=colour, edgecolor="white", linewidth=1.6))
    main, besides = _words(row)
    middle = column + 0.5
    axes.text(
        middle, line + (0.36 if besides else 0.52), main, ha="center", va="center", fontsize=8.8, color=ink,
        fontweight="bold" if lab is not None else "normal",
    )  # fmt: skip
    if besides:
        axes.text(middle, line + 0.76, besides, ha="center", va="center", fontsize=6.6, color=ink)


def _words(row: Row) -> tuple[str, str]:
    """What a field says, and what it says below that."""
    lab, simulator = row.interruption_ms, row.predicted_ms
    if lab is None and row.ended_before:
        return "ended before", ""
    if lab is None:
        return ("too late" if row.too_late else "no figures"), ""
    besides = []
    if lab.high - lab.low > max(1.0, NARROW * lab.median):
        besides.append(_range(lab.low, lab.high))
    if simulator is not None:
        besides.append(f"sim {_shown(simulator)}")
    return _shown(lab), " · ".join(besides)


def _range(low_ms: float, high_ms: float) -> str:
    """From the least to the greatest; milliseconds are not written where both are.

    >>> [_range(17.3, 25).encode("ascii", "replace"), _range(3.2, 1204), _range(1040, 1204)]
    [b'17?25', '3.2 ms to 1.2 s', '1.0 to 1.2 s']
    """
    low, high = _plain(low_ms), _plain(high_ms)
    if low.endswith("ms") and high.endswith("ms"):
        return f"{low.removesuffix(' ms')}\N{EN DASH}{high.removesuffix(' ms')}"
    return f"{low if low.endswith('ms') else low.removesuffix(' s')} to {high}"


def _shown(estimate: Estimate) -> str:
    return ("≥ " if estimate.median_censored else "") + _plain(estimate.median)


def _plain(value_ms: float) -> str:
    """Milliseconds, or seconds from one on.

    >>> _plain(4.64), _plain(207.9), _plain(5987.3)
    ('4.6 ms', '208 ms', '6.0 s')
    """
    if value_ms >= 999.5:
        return f"{value_ms / 1000:.1f} s"
    return f"{value_ms:.1f} ms" if value_ms < 9.95 else f"{value_ms:.0f} ms"

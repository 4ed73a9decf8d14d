"""Look of all figures: palette, sizes, titles, rendering.

No pyplot, but for `new_axes`: figures are objects and are freed as such.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's palette, distinguishable with any kind of colour vision.
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
INK = "#222222"
MUTED = "#6b6b6b"
GRID = "#e4e4e4"

PATHS = (BLUE, ORANGE, GREEN, PURPLE, SKY)
"""Colours of paths (addresses), in the order of first use."""
PATH_MARKERS = ("o", "^", "s", "D", "v")
LOST = VERMILION
"""Lost packets, everywhere."""
ORDERED = ("#35204f", "#3a6a9c", "#2c9c86", "#b3c52b")
"""Series with an order, dark to light."""
SERIES_MARKERS = ("o", "s", "^", "D", "v", "P")

DASHES = ("-", "--", ":", "-.")
"""Of curves that have the same colour."""

DPI = 130
LEGEND_SIZE = 8.6
MOST_LINES = 500
"""More lines than these are drawn as an image in SVG too."""
LETTER_INCHES = 0.066
"""Width of a letter of a legend, on average."""
LEGEND_HANDLE_INCHES = 0.42

_RC: Any = {
    "figure.dpi": DPI,
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.edgecolor": "#9a9a9a",
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "lines.linewidth": 1.6,
    # The same figure gives the same bytes.
    "svg.hashsalt": "segue",
    "svg.fonttype": "path",
}


@dataclass(frozen=True, slots=True)
class Rendered:
    """A figure as files have it; a kind that was not asked for is empty."""

    png: bytes
    svg: bytes


def plain(name: str) -> str:
    """A name that a user gave, as a label: a dollar in it begins no formula."""
    return name.replace("$", r"\$")


def new_figure(
    title: str,
    subtitle: str,
    *,
    width: float = 7.4,
    height: float = 4.4,
    columns: int = 1,
    rows: int = 1,
    ratios: Sequence[float] | None = None,
    share_x: bool = False,
) -> tuple[Figure, list[Axes]]:
    """A figure with its title and a subtitle that says what to see; sizes in inches.

    Returns:
        The figure and its axes, row by row.
    """
    with mpl.rc_context(_RC):
        figure = Figure(figsize=(width, height), layout="constrained")
        head = 0.30 + 0.19 * (subtitle.count("\n") + 1)
        engine = figure.get_layout_engine()
        assert engine is not None
        engine.set(rect=(0.0, 0.0, 1.0, 1.0 - head / height))  # type: ignore[call-arg]
        grid = figure.subplots(
            rows,
            columns,
            squeeze=False,
            sharex=share_x,
            gridspec_kw={"width_ratios": ratios} if ratios and columns > 1 else {"height_ratios": ratios},
        )
        figure.text(0.012, 1 - 0.10 / height, title, fontsize=11.5, fontweight="bold", va="top", parse_math=False)
        figure.text(
            0.012, 1 - 0.31 / height, subtitle, fontsize=8.8, color=MUTED, va="top", linespacing=1.3, parse_math=False
        )
    return figure, list(grid.flat)


def new_axes(width: float = 7.4, height: float = 4.0) -> Axes:
    """Axes of a figure that pyplot knows, so that `plt.show()` and notebooks show it; sizes in inches."""
    import matplotlib.pyplot as plt

    with mpl.rc_context(_RC):
        _, axes = plt.subplots(figsize=(width, height), layout="constrained")
    axes.set_prop_cycle(color=PATHS)
    return axes


def render(figure: Figure) -> Rendered:
    """PNG and SVG of a figure; the layout is worked out once for both."""
    with mpl.rc_context(_RC):
        png, svg = io.BytesIO(), io.BytesIO()
        figure.savefig(png, format="png", dpi=DPI)
        figure.set_layout_engine("none")
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": "segue"})
    return Rendered(png.getvalue(), svg.getvalue())


def render_smaller(figure: Figure, most_svg_bytes: int) -> Rendered:
    """SVG of a figure, or PNG if that would be larger than `most_svg_bytes`; the other is empty."""
    with mpl.rc_context(_RC):
        svg = io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": "segue"})
        if svg.tell() <= most_svg_bytes:
            return Rendered(b"", svg.getvalue())
        figure.set_layout_engine("none")
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=DPI)
    return Rendered(png.getvalue(), b"")


def mark_time(axes: Axes, time_s: float, text: str, *, side: str = "left", level: int = 0) -> None:
    """A vertical line at `time_s`, labelled above the axes; labels of different `level` do not touch.

    A label on the right is on the left where it would go beyond the axes, whose limits are to be set before.
    """
    if side == "right":
        # also makes limits that follow from the data
        first, last = axes.get_xlim()
        ends = axes.transData.transform([(first, 0), (time_s, 0), (last, 0)])[:, 0]
        room = (ends[2] - ends[1]) / axes.figure.dpi
        side = "left" if room < LETTER_INCHES * len(text) and ends[1] - ends[0] > ends[2] - ends[1] else "right"
    axes.axvline(time_s, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axes.annotate(
        text,
        (time_s, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-3 if side == "left" else 3, 3 + 11 * level),
        textcoords="offset points",
        ha="right" if side == "left" else "left",
        va="bottom",
        fontsize=8.5,
        color=MUTED,
    )


def mark_bounds(axes: Axes, points: Sequence[tuple[float, float]], colour: str) -> None:
    """Arrows upwards from what is no more than a lower bound."""
    for point in points:
        axes.annotate("", point, xytext=(0, 13), textcoords="offset points", annotation_clip=False,
                      arrowprops={"arrowstyle": "<|-", "color": colour, "shrinkA": 0})  # fmt: skip


def mark_events(axes: Axes, events: Sequence[tuple[float, float | None, str]]) -> None:
    """What the scenario has happen, from when, until when (`None` to the end), and its name above the axes.

    The limits of the axes stay as they are.
    """
    first, last = axes.get_xlim()
    for level, (begin_s, end_s, text) in enumerate(events):
        axes.axvspan(begin_s, last if end_s is None else end_s, color=ORANGE, alpha=0.14, linewidth=0, zorder=0)
        mark_time(axes, begin_s, text, side="right", level=level % 3)
    axes.set_xlim(first, last)


def mark_switches(axes: Axes, times_s: Sequence[float], *, width: float = 0.5) -> None:
    """Vertical lines at handovers, all of them one drawing: there may be thousands."""
    if times_s:
        across = axes.get_xaxis_transform()
        axes.vlines(
            times_s, 0, 1, transform=across, color=MUTED, linewidth=width, linestyle=(0, (4, 3)), zorder=1,
            rasterized=len(times_s) > MOST_LINES,
        )  # fmt: skip


def legend_below(figure: Figure, axes: Axes) -> None:
    """The legend below the axes, where it covers no data, in rows of equal length."""
    handles, labels = axes.get_legend_handles_labels()
    if not labels:
        return
    rows = -(-len(labels) // _fitting(labels, figure.get_figwidth() - 0.2))
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=-(-len(labels) // rows),
        frameon=False,
        fontsize=LEGEND_SIZE,
        handletextpad=0.5,
        columnspacing=1.2,
    )


def legend_above(axes: Axes) -> None:
    """The legend above axes that have neighbours, where no data are; it is no wider than they are."""
    _, labels = axes.get_legend_handles_labels()
    columns = min(3, _fitting(labels, axes.get_window_extent().width / axes.figure.dpi))
    axes.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.06), borderaxespad=0, ncols=columns, frameon=False,
        fontsize=LEGEND_SIZE,
    )  # fmt: skip


def _fitting(labels: Sequence[str], width: float) -> int:
    """Columns of a legend in so many inches, one at least."""
    return max(1, int(width / (LEGEND_HANDLE_INCHES + LETTER_INCHES * max(map(len, labels)))))

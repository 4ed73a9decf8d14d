"""TSN against time, coloured by path."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from segue.figures import style
from segue.figures.flow import FlowTrace

MOST_POINTS = 40_000
"""Points drawn of a path; of more, as many at equal steps."""


def tsn_against_time(trace: FlowTrace, *, title: str, subtitle: str, died_s: float | None = None) -> Figure:
    """Every segment that the sender sends, by number from the first on, coloured by path; of TCP, by offset.

    Points are drawn as an image in SVG too: a run may have hundreds of thousands.
    """
    figure, [axes] = style.new_figure(title, subtitle, height=4.4)
    draw_segments(axes, trace, died_s=died_s)
    axes.legend(loc="upper left", markerscale=2.5, frameon=False, fontsize=style.LEGEND_SIZE)
    return figure


def draw_segments(axes: Axes, trace: FlowTrace, *, died_s: float | None = None) -> None:
    """What `tsn_against_time` shows."""
    number = pl.col("number") / 1e6 if trace.in_bytes else pl.col("number")
    sent = trace.data.with_columns(number=number)
    for index, (key, path) in enumerate(sent.group_by("path", maintain_order=True)):
        some = path.gather_every(-(-path.height // MOST_POINTS))
        axes.plot(
            some["time_s"],
            some["number"],
            linestyle="none",
            marker=style.PATH_MARKERS[index % len(style.PATH_MARKERS)],
            color=style.PATHS[index % len(style.PATHS)],
            markersize=2.4,
            markeredgewidth=0,
            rasterized=True,
            label=f"over {key[0]}",
        )
    lost = sent.filter(pl.col("lost"))
    if not lost.is_empty():
        axes.plot(
            lost["end_s"],
            lost["number"],
            "x",
            color=style.LOST,
            markersize=4,
            rasterized=True,
            label=f"lost ({lost.height})",
        )
    style.mark_switches(axes, [switch.first_new_s for switch in trace.switches])
    if died_s is not None:
        style.mark_time(axes, died_s, f"last new data {died_s:.3f} s", side="right")
    axes.set(xlabel="time (s)", ylabel="offset in the stream (MB)" if trace.in_bytes else "segment number")
    axes.set_xlim(left=0)

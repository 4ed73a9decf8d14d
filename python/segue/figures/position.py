"""Where the mobile host was, against the cells."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from segue.figures import style
from segue.figures.flow import Switch

ROW_INCHES = 0.38
STRAIGHT_M = 1.0
"""A way that leaves its line by less than this is drawn against time."""


def position_against_cells(
    positions: pl.DataFrame, cells: pl.DataFrame, switches: Sequence[Switch], *, title: str, subtitle: str
) -> Figure:
    """Position against time with each cell's reach as a band; for a way in the plane, a map.

    Args:
        positions: `Run.positions`.
        cells: `Run.cells`.
        switches: Handovers, marked.
        title: Title.
        subtitle: What to see.
    """
    figure, [axes] = style.new_figure(title, subtitle, height=3.6)
    draw_positions(axes, positions, cells, switches)
    return figure


def draw_positions(axes: Axes, positions: pl.DataFrame, cells: pl.DataFrame, switches: Sequence[Switch]) -> None:
    """What `position_against_cells` shows."""
    frame = positions.with_columns(time_s=pl.col("time_ns") / 1e9)
    straight = _extent(frame["y_m"]) < STRAIGHT_M
    for index, cell in enumerate(cells.iter_rows(named=True)):
        colour = style.PATHS[index % len(style.PATHS)]
        x, y, radius = cell["x_m"], cell["y_m"], cell["radius_m"]
        if straight:
            axes.axhspan(x - radius, x + radius, color=colour, alpha=0.13, linewidth=0)
            axes.axhline(x, color=colour, linewidth=0.8)
            axes.annotate(
                f"{cell['name']}, reach {radius:g} m",
                (1.0, x),
                xycoords=("axes fraction", "data"),
                xytext=(-4, 3),
                textcoords="offset points",
                ha="right",
                fontsize=8.5,
                color=style.INK,
            )
        else:
            axes.add_patch(Circle((x, y), radius, facecolor=colour, alpha=0.13, edgecolor=colour))
            axes.annotate(cell["name"], (x, y), ha="center", fontsize=8.5)
    for _, way in frame.group_by("node", maintain_order=True):
        if straight:
            axes.plot(way["time_s"], way["x_m"], color=style.INK, linewidth=1.3)
        else:
            axes.plot(way["x_m"], way["y_m"], color=style.INK, linewidth=1.3)
    if straight:
        style.mark_switches(axes, [switch.first_new_s for switch in switches], width=0.7)
        axes.set(xlabel="time (s)", ylabel="position x (m)")
        axes.set_xlim(left=0)
    else:
        axes.set(xlabel="x (m)", ylabel="y (m)", aspect="equal")
        axes.autoscale_view()


def presence_of_cells(cells: pl.DataFrame, switches: Sequence[Switch], *, title: str, subtitle: str) -> Figure:
    """When cells that come and go by the clock are in reach, a row for each.

    Args:
        cells: `Run.cells`, of which `present_s` says so.
        switches: Handovers, marked.
        title: Title.
        subtitle: What to see.
    """
    figure, [axes] = style.new_figure(title, subtitle, height=1.8 + ROW_INCHES * cells.height)
    draw_presence(axes, cells, switches)
    return figure


def draw_presence(axes: Axes, cells: pl.DataFrame, switches: Sequence[Switch]) -> None:
    """What `presence_of_cells` shows."""
    names = cells["name"].to_list()
    for row, present in enumerate(cells["present_s"].to_list()):
        colour = style.PATHS[row % len(style.PATHS)]
        spans = [(begin, end - begin) for begin, end in zip(present[::2], present[1::2], strict=True)]
        axes.broken_barh(spans, (row - 0.3, 0.6), facecolors=colour, alpha=0.75)
    style.mark_switches(axes, [switch.first_new_s for switch in switches], width=0.7)
    axes.set(xlabel="time (s)", yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5))
    axes.grid(visible=False, axis="y")
    axes.set_xlim(left=0)


def with_places(cells: pl.DataFrame) -> pl.DataFrame:
    """Those that are somewhere."""
    return cells.filter(pl.col("present_s").is_null())


def with_times(cells: pl.DataFrame) -> pl.DataFrame:
    """Those that come and go by the clock; not those that are never there in this case of the scenario."""
    return cells.filter(pl.col("present_s").list.len() > 0)


def _extent(values: pl.Series) -> float:
    low, high = values.min(), values.max()
    return float(high) - float(low) if isinstance(low, float) and isinstance(high, float) else 0.0

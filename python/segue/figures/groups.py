"""A measure by category and series: bars of medians with intervals, or boxes over runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from segue.figures import style
from segue.stats import intervals_text, median_interval

WIDTH = 0.8
"""Of all bars or boxes of a category together, of the space between categories."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which column is what.

    Attributes:
        value: Column of the measure.
        category: Column of the x axis.
        categories: Its values in order, with what to call them.
        series: Column that separates bars or boxes within a category.
        all_series: Its values in order, with what to call them.
        panel: Column that separates panels; `None` for one panel.
        panels: Its values in order, with what to call them.
    """

    value: str
    category: str
    categories: Mapping[str, str]
    series: str
    all_series: Mapping[str, str]
    panel: str | None = None
    panels: Mapping[str, str] | None = None


def bars(frame: pl.DataFrame, layout: Layout, *, title: str, subtitle: str, y_label: str, scale: float = 1.0) -> Figure:
    """Medians over runs as bars, with their intervals, which are said below the subtitle."""
    parts = _parts(frame, layout)
    samples = [
        {(category, series): _values(part, layout, category, series)
         for category in layout.categories for series in layout.all_series}
        for _, part in parts
    ]  # fmt: skip
    intervals = [{of: median_interval(values) for of, values in own.items() if values} for own in samples]
    said = intervals_text(
        (len(values[of]), one.coverage)
        for own, values in zip(intervals, samples, strict=True)
        for of, one in own.items()
    )
    figure, all_axes = _figure(layout, title, f"{subtitle}\n{said}")
    for axes, (name, _), own in zip(all_axes, parts, intervals, strict=True):
        for index, series in enumerate(layout.all_series):
            for place, category in enumerate(layout.categories):
                interval = own.get((category, series))
                if interval is None:
                    continue
                median, low, high = (x * scale for x in (interval.median, interval.low, interval.high))
                axes.bar(
                    place + _shift(layout, index),
                    median,
                    0.92 * WIDTH / len(layout.all_series),
                    yerr=[[median - low], [high - median]],
                    color=style.PATHS[index],
                    error_kw={"elinewidth": 1.0, "capsize": 2.0, "ecolor": style.INK},
                )
        _label(axes, layout, name, y_label)
    _equal(all_axes)
    _legend(figure, layout)
    return figure


def boxes(
    frame: pl.DataFrame, layout: Layout, *, title: str, subtitle: str, y_label: str, least: float = 0.0
) -> Figure:
    """Boxes from the lower to the upper quartile, whiskers to the extremes: runs are few, and all are meant.

    Args:
        frame: A row per run.
        layout: Which column is what.
        title: Title.
        subtitle: What to see.
        y_label: With unit.
        least: What the y axis reaches at least.
    """
    figure, all_axes = _figure(layout, title, subtitle)
    for axes, (name, part) in zip(all_axes, _parts(frame, layout), strict=True):
        for index, series in enumerate(layout.all_series):
            for place, category in enumerate(layout.categories):
                values = _values(part, layout, category, series)
                if not values:
                    continue
                axes.boxplot(
                    values,
                    positions=[place + _shift(layout, index)],
                    widths=0.8 * WIDTH / len(layout.all_series),
                    whis=(0, 100),
                    patch_artist=True,
                    manage_ticks=False,
                    boxprops={"facecolor": style.PATHS[index], "edgecolor": style.INK, "linewidth": 0.7},
                    medianprops={"color": style.INK, "linewidth": 1.4},
                    whiskerprops={"linewidth": 0.8},
                    capprops={"linewidth": 0.8},
                )
        _label(axes, layout, name, y_label)
    _equal(all_axes, least)
    _legend(figure, layout)
    return figure


def _figure(layout: Layout, title: str, subtitle: str) -> tuple[Figure, list[Axes]]:
    count = len(layout.panels or {"": ""})
    if count == 1:
        return style.new_figure(title, subtitle, width=7.4, height=4.4)
    return style.new_figure(title, subtitle, width=9.6, height=6.6, columns=2, rows=-(-count // 2))


def _parts(frame: pl.DataFrame, layout: Layout) -> list[tuple[str, pl.DataFrame]]:
    if layout.panel is None or layout.panels is None:
        return [("", frame)]
    return [(name, frame.filter(pl.col(layout.panel) == value)) for value, name in layout.panels.items()]


def _values(frame: pl.DataFrame, layout: Layout, category: str, series: str) -> list[float]:
    mine = frame.filter((pl.col(layout.category) == category) & (pl.col(layout.series) == series))
    return [float(value) for value in mine[layout.value].drop_nulls()]


def _shift(layout: Layout, index: int) -> float:
    return WIDTH * ((index + 0.5) / len(layout.all_series) - 0.5)


def _label(axes: Axes, layout: Layout, name: str, y_label: str) -> None:
    labels = [label.replace(" ", "\n", 1) for label in layout.categories.values()]
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlim(-0.5, len(labels) - 0.5)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel(y_label)
    if name:
        axes.set_title(name, fontsize=9.2, color=style.MUTED, loc="left")


def _equal(all_axes: Sequence[Axes], least: float = 0.0) -> None:
    """One scale for all panels, from zero."""
    top = max([axes.get_ylim()[1] for axes in all_axes] + [least])
    for axes in all_axes:
        axes.set_ylim(0, top or 1)


def _legend(figure: Figure, layout: Layout) -> None:
    if len(layout.all_series) == 1:
        return
    names = list(layout.all_series.values())
    figure.legend(
        handles=[Patch(color=style.PATHS[index], label=name) for index, name in enumerate(names)],
        loc="outside lower center",
        ncols=len(names),
        frameon=False,
        fontsize=style.LEGEND_SIZE,
        handletextpad=0.5,
        columnspacing=1.2,
    )

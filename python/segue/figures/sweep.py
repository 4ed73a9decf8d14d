"""A metric against one parameter, one curve per value of another, with intervals over seeds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from segue.figures import style


@dataclass(frozen=True, slots=True)
class Panel:
    """One view of the data.

    Attributes:
        y_label: With unit.
        limits: Of the y axis, in its unit; `None` lets the data decide.
        heading: Above the panel; may be empty.
        from_zero: Let the y axis begin at zero, if no value is negative and `limits` does not say otherwise.
    """

    y_label: str
    limits: tuple[float, float] | None = None
    heading: str = ""
    from_zero: bool = True


def curves(
    summary: pl.DataFrame,
    *,
    x: str,
    series: str,
    x_label: str,
    series_label: str,
    panels: list[Panel],
    title: str,
    subtitle: str,
    scale: float = 1.0,
    names: dict[object, str] | None = None,
) -> Figure:
    """Medians as curves, intervals as bars.

    Args:
        summary: From `segue.grid.summarise`, by `x` and `series`.
        x: Column of the x axis.
        series: Column that separates the curves; its order is that of the colours.
        x_label: With unit.
        series_label: Legend entry of a series, with `{}` for its value.
        panels: Views of the same data side by side.
        title: Title.
        subtitle: What to see.
        scale: Factor from the unit of `summary` to that of the y axis.
        names: What to call the values of `series` in the legend.
    """
    width = 7.4 if len(panels) == 1 else 9.6
    figure, all_axes = style.new_figure(title, subtitle, width=width, height=4.5, columns=len(panels))
    for axes, panel in zip(all_axes, panels, strict=True):
        _draw(axes, summary, x, series, series_label, scale, names or {})
        axes.set(xlabel=x_label, ylabel=panel.y_label)
        axes.set_xticks(_ticks(summary[x].unique().sort().to_list()))
        if panel.heading:
            axes.set_title(panel.heading, fontsize=9.2, color=style.MUTED, loc="left")
        if panel.limits is not None:
            axes.set_ylim(*panel.limits)
        elif panel.from_zero and _least(summary, scale) >= 0:
            # What is all zero still gets a scale.
            axes.set_ylim(0, 1.08 * _greatest(summary, scale) or 1)
    style.legend_below(figure, all_axes[0])
    return figure


def _draw(
    axes: Axes, summary: pl.DataFrame, x: str, series: str, label: str, scale: float, names: dict[object, str]
) -> None:
    groups = list(summary.sort(series, maintain_order=True).group_by(series, maintain_order=True))
    steps = sorted(summary[x].unique().to_list())
    spacing = min((b - a for a, b in pairwise(steps)), default=1.0)
    for index, ((value,), group) in enumerate(groups):
        curve = group.sort(x)
        colour = style.ORDERED[index] if len(groups) <= len(style.ORDERED) else style.PATHS[index % len(style.PATHS)]
        # Curves that coincide stay visible: each is moved by a small part of the grid's spacing.
        shift = (index - (len(groups) - 1) / 2) * spacing * 0.035
        median, low, high = (curve[name] * scale for name in ("median", "low", "high"))
        axes.errorbar(
            curve[x] + shift,
            median,
            yerr=[(median - low).to_list(), (high - median).to_list()],
            color=colour,
            marker=style.SERIES_MARKERS[index % len(style.SERIES_MARKERS)],
            markersize=5,
            capsize=2.5,
            elinewidth=1.0,
            label=names.get(value, label.format(f"{value:g}" if isinstance(value, (int, float)) else value)),
        )


def _least(summary: pl.DataFrame, scale: float) -> float:
    least = summary["low"].min()
    return float(least) * scale if isinstance(least, (int, float)) else 0.0


def _greatest(summary: pl.DataFrame, scale: float) -> float:
    greatest = summary["high"].max()
    return float(greatest) * scale if isinstance(greatest, (int, float)) else 0.0


def _ticks(values: list[float]) -> list[float]:
    return values if len(values) <= 10 else values[:: (len(values) + 9) // 10]

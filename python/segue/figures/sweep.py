"""A metric against one parameter, one curve per value of another, with intervals over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from segue._native import ScenarioError
from segue.figures import style
from segue.sweeps.axes import choose_axes
from segue.units import in_words, percent

if TYPE_CHECKING:
    from segue.sweeps.result import Sweep

SHIFT = 0.035
"""By so much of the grid's spacing curves are moved apart: those that coincide stay visible."""
SHIFT_OF_NAMES = 0.12
"""The same where the x axis has names, between which nothing is."""
WIDE = 50
"""From this ratio of the greatest to the least value on, the x axis is logarithmic."""
CAPTION_LETTERS = 112


def sweep_figure(sweep: Sweep, metric: str, *, x: str | None = None, hue: str | None = None) -> Figure:
    """See `segue.sweeps.result.Sweep.figure`."""
    found = sweep.metric(metric)
    below, colours = choose_axes(sweep.axes, x, hue)
    summary = sweep.summary(metric)
    if summary.is_empty():
        raise ScenarioError(f"{metric}: no run has it")
    scale, unit = in_words(found.unit, float(summary["high"].max() or 0.0))  # type: ignore[arg-type]
    x_name = below.key
    if below.is_numeric:
        x_scale, x_unit = in_words(below.unit, max(float(value) for value in below.values))
        x_name += f" ({x_unit})" if x_unit else ""
        summary = summary.with_columns(pl.col(below.column) * x_scale)
    else:
        places = {value: float(place) for place, value in enumerate(below.values)}
        summary = summary.with_columns(pl.col(below.column).replace_strict(places, return_dtype=pl.Float64))
    # the order of the grid, whatever words there are
    series = "curve"
    of = {value: place for place, value in enumerate(colours.values)} if colours else {}
    summary = summary.with_columns(
        pl.lit(0).alias(series) if colours is None
        else pl.col(colours.column).replace_strict(of, return_dtype=pl.Int64).alias(series)
    )  # fmt: skip
    label = f"{found.label} ({unit})" if unit else found.label
    by = f", by {colours.key}" if colours else ""
    return curves(
        summary,
        x=below.column,
        series=series,
        x_label=x_name,
        series_label="{}",
        panels=[Panel(label)],
        title=f"{sweep.scenario}: {found.label} over {below.key}{by}",
        subtitle=_caption(sweep, summary),
        scale=scale,
        names=dict(enumerate(colours.settings)) if colours else {0: ""},
        x_names=None if below.is_numeric else below.settings,
        is_ordered=colours is None or colours.is_numeric,
    )


def _caption(sweep: Sweep, summary: pl.DataFrame) -> str:
    """What the bars are, over how many seeds, and what the sweep says of itself."""
    import textwrap

    counts = summary["n"].to_list()
    least, most = min(counts), max(counts)
    seeds = f"{most}" if least == most else f"{least} to {most}"
    coverage = float(summary["coverage"].min() or 0.0)  # type: ignore[arg-type]
    text = (
        f"Medians over {seeds} seeds; bars: order-statistic intervals that hold them with {percent(coverage)} at least."
    )
    if most == 1:
        text = "One seed a point: there are no intervals."
    if summary["high_censored"].any():
        text += " Arrows: lower bounds, of data that never came back."
    if sweep.rule.until is not None or sweep.budget_s is not None:
        text += f" {sweep.note()}"
    fixed = dict(sweep.overrides) | {axis.key: axis.settings[0] for axis in sweep.axes if len(axis.values) == 1}
    if fixed:
        text += " With " + ", ".join(f"{key} = {value}" for key, value in fixed.items()) + "."
    return "\n".join(textwrap.wrap(text, CAPTION_LETTERS))


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
    x_names: Sequence[str] | None = None,
    is_ordered: bool = True,
) -> Figure:
    """Medians as curves, intervals as bars; arrows upwards where `summary` says that these are lower bounds.

    Args:
        summary: From `segue.grid.summarise`, by `x` and `series`, or from a sweep.
        x: Column of the x axis.
        series: Column that separates the curves; its order is that of the colours.
        x_label: With unit.
        series_label: Legend entry of a series, with `{}` for its value.
        panels: Views of the same data side by side.
        title: Title.
        subtitle: What to see.
        scale: Factor from the unit of `summary` to that of the y axis.
        names: What to call the values of `series` in the legend.
        x_names: What 0, 1, ... on the x axis are; numbers if left out.
        is_ordered: Whether the series have an order.
    """
    width = 7.4 if len(panels) == 1 else 9.6
    figure, all_axes = style.new_figure(title, subtitle, width=width, height=4.5, columns=len(panels))
    steps = sorted(summary[x].unique().to_list())
    is_wide = x_names is None and len(steps) > 2 and steps[0] > 0 and steps[-1] / steps[0] >= WIDE and _is_uneven(steps)
    for axes, panel in zip(all_axes, panels, strict=True):
        if is_wide:
            axes.set_xscale("log")
        _draw(
            axes,
            summary,
            _Curves(x, series, series_label, scale, names or {}, x_names is not None, is_ordered, is_wide),
        )
        axes.set(xlabel=x_label, ylabel=panel.y_label)
        if x_names is not None:
            axes.set_xticks(range(len(x_names)), x_names)
            axes.set_xlim(-0.5, len(x_names) - 0.5)
        elif is_wide:
            axes.set_xticks(_ticks(steps), [f"{step:g}" for step in _ticks(steps)])
            axes.minorticks_off()
        else:
            axes.set_xticks(_ticks(steps))
        if panel.heading:
            axes.set_title(panel.heading, fontsize=9.2, color=style.MUTED, loc="left")
        if panel.limits is not None:
            axes.set_ylim(*panel.limits)
        elif panel.from_zero and _least(summary, scale) >= 0:
            # What is all zero still gets a scale.
            axes.set_ylim(0, 1.08 * _greatest(summary, scale) or 1)
    style.legend_below(figure, all_axes[0])
    return figure


@dataclass(frozen=True, slots=True)
class _Curves:
    """How a panel is drawn: see `curves`."""

    x: str
    series: str
    label: str
    scale: float
    names: dict[object, str]
    has_names: bool
    is_ordered: bool
    is_wide: bool

    def label_of(self, value: object) -> str:
        return self.names.get(value, self.label.format(f"{value:g}" if isinstance(value, (int, float)) else value))

    def colour(self, index: int, count: int) -> str:
        if self.is_ordered and count <= len(style.ORDERED):
            return style.ORDERED[index]
        return style.PATHS[index % len(style.PATHS)]


def _draw(axes: Axes, summary: pl.DataFrame, how: _Curves) -> None:
    groups = list(summary.sort(how.series, maintain_order=True).group_by(how.series, maintain_order=True))
    steps = sorted(summary[how.x].unique().to_list())
    spacing = min((b / a if how.is_wide else b - a for a, b in pairwise(steps)), default=1.0)
    for index, ((value,), group) in enumerate(groups):
        curve = group.sort(how.x)
        colour = how.colour(index, len(groups))
        shift = (index - (len(groups) - 1) / 2) * (SHIFT_OF_NAMES if how.has_names else SHIFT)
        at = curve[how.x] * spacing**shift if how.is_wide else curve[how.x] + shift * spacing
        median, low, high = (curve[name] * how.scale for name in ("median", "low", "high"))
        axes.errorbar(
            at,
            median,
            yerr=[(median - low).to_list(), (high - median).to_list()],
            color=colour,
            linestyle="none" if how.has_names else "-",
            marker=style.SERIES_MARKERS[index % len(style.SERIES_MARKERS)],
            markersize=5,
            capsize=2.5,
            elinewidth=1.0,
            label=how.label_of(value),
        )
        if "high_censored" in curve.columns:
            bounds = [(x, y) for x, y, bound in zip(at, high, curve["high_censored"], strict=True) if bound]
            for x, y in bounds:
                axes.annotate("", (x, y), xytext=(0, 13), textcoords="offset points", annotation_clip=False,
                              arrowprops={"arrowstyle": "<|-", "color": colour, "shrinkA": 0})  # fmt: skip


def _is_uneven(steps: list[float]) -> bool:
    """Whether the last step is longer than the first by far."""
    return steps[-1] - steps[-2] > 3 * (steps[1] - steps[0])


def _least(summary: pl.DataFrame, scale: float) -> float:
    least = summary["low"].min()
    return float(least) * scale if isinstance(least, (int, float)) else 0.0


def _greatest(summary: pl.DataFrame, scale: float) -> float:
    greatest = summary["high"].max()
    return float(greatest) * scale if isinstance(greatest, (int, float)) else 0.0


def _ticks(values: list[float]) -> list[float]:
    return values if len(values) <= 10 else values[:: (len(values) + 9) // 10]

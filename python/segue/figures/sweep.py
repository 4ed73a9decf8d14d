"""A metric against one parameter, one curve per value of another, with intervals over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from segue._native import ScenarioError
from segue.figures import style
from segue.stats import intervals_text
from segue.sweeps.axes import choose_axes
from segue.units import in_words

if TYPE_CHECKING:
    from segue.sweeps.result import Sweep

SHIFT = 0.035
"""By so much of the grid's spacing curves are moved apart: those that coincide stay visible."""
SHIFT_OF_NAMES = 0.12
"""The same where the x axis has names, between which nothing is."""
WIDE = 50
"""From this ratio of the greatest to the least value on, the x axis is logarithmic."""
CAPTION_LETTERS = 112
HEIGHT_INCHES = 4.5


def sweep_figure(sweep: Sweep, metric: str, *, x: str | None = None, hue: str | None = None) -> Figure:
    """See `segue.sweeps.result.Sweep.figure`."""
    what = measured(sweep, metric, x=x, hue=hue)
    by = f", by {what.hue}" if what.hue else ""
    figure, [axes] = style.new_figure(
        f"{sweep.scenario}: {what.label} over {what.x}{by}", _caption(sweep, what.summary), height=HEIGHT_INCHES
    )
    draw_curves(axes, what.summary, what.curves, what.panel)
    style.legend_below(figure, axes)
    return figure


@dataclass(frozen=True, slots=True)
class Measured:
    """A metric of a sweep, and how it is drawn.

    Attributes:
        label: Of the metric.
        x: Key of the axis below.
        hue: Key of the axis of the colours; empty without one.
        summary: As `curves` and `panel` want it.
        curves: How it is drawn.
        panel: The same.
    """

    label: str
    x: str
    hue: str
    summary: pl.DataFrame
    curves: Curves
    panel: Panel


def measured(sweep: Sweep, metric: str, *, x: str | None = None, hue: str | None = None) -> Measured:
    """A metric over an axis, a curve for each value of another: see `segue.sweeps.result.Sweep.figure`."""
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
    how = Curves(
        x=below.column,
        series=series,
        x_label=x_name,
        series_label="{}",
        scale=scale,
        names=dict(enumerate(colours.settings)) if colours else {0: ""},
        x_names=None if below.is_numeric else below.settings,
        is_ordered=colours is None or colours.is_numeric,
    )
    return Measured(found.label, below.key, colours.key if colours else "", summary, how, Panel(label))


def _caption(sweep: Sweep, summary: pl.DataFrame) -> str:
    """What the bars are, over how many seeds, and what the sweep says of itself."""
    import textwrap

    text = intervals_text(summary.select("n", "coverage").rows())
    if summary["high_censored"].any():
        text += " Arrows: lower bounds, of what had not ended with the run."
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Which column is what, and what it is called.

    Attributes:
        x: Column of the x axis.
        series: Column that separates the curves; its order is that of the colours.
        x_label: With unit.
        series_label: Legend entry of a series, with `{}` for its value.
        scale: Factor from the unit of the data to that of the y axis.
        names: What to call the values of `series` in the legend.
        x_names: What 0, 1, ... on the x axis are; numbers if left out.
        is_ordered: Whether the series have an order.
    """

    x: str
    series: str
    x_label: str
    series_label: str
    scale: float = 1.0
    names: Mapping[object, str] = field(default_factory=dict)
    x_names: Sequence[str] | None = None
    is_ordered: bool = True

    def label_of(self, value: object) -> str:
        """Legend entry of a series."""
        text = f"{value:g}" if isinstance(value, (int, float)) else value
        return self.names.get(value, self.series_label.format(text))

    def colour(self, index: int, count: int) -> str:
        """Of the series of that number, of so many."""
        if self.is_ordered and count <= len(style.ORDERED):
            return style.ORDERED[index]
        return style.PATHS[index % len(style.PATHS)]


def curves(summary: pl.DataFrame, how: Curves, panels: Sequence[Panel], *, title: str, subtitle: str) -> Figure:
    """Medians as curves, intervals as bars; arrows upwards where `summary` says that these are lower bounds.

    Args:
        summary: From `segue.papers.grid.summarise`, by `x` and `series`, or from a sweep.
        how: Which column is what.
        panels: Views of the same data side by side.
        title: Title.
        subtitle: What to see; what the intervals are is said below it.
    """
    subtitle += f"\n{intervals_text(summary.select('n', 'coverage').rows())}"
    width = 7.4 if len(panels) == 1 else 9.6
    figure, all_axes = style.new_figure(title, subtitle, width=width, height=HEIGHT_INCHES, columns=len(panels))
    for axes, panel in zip(all_axes, panels, strict=True):
        draw_curves(axes, summary, how, panel)
    style.legend_below(figure, all_axes[0])
    return figure


def draw_curves(axes: Axes, summary: pl.DataFrame, how: Curves, panel: Panel) -> None:
    """One panel of what `curves` shows."""
    steps = sorted(summary[how.x].unique().to_list())
    is_wide = (
        how.x_names is None and len(steps) > 2 and steps[0] > 0 and steps[-1] / steps[0] >= WIDE and _is_uneven(steps)
    )
    if is_wide:
        axes.set_xscale("log")
    _draw(axes, summary, how, is_wide=is_wide)
    axes.set(xlabel=how.x_label, ylabel=panel.y_label)
    if how.x_names is not None:
        axes.set_xticks(range(len(how.x_names)), how.x_names, parse_math=False)
        axes.set_xlim(-0.5, len(how.x_names) - 0.5)
    elif is_wide:
        axes.set_xticks(_ticks(steps), [f"{step:g}" for step in _ticks(steps)])
        axes.minorticks_off()
    else:
        axes.set_xticks(_ticks(steps))
    if panel.heading:
        axes.set_title(panel.heading, fontsize=9.2, color=style.MUTED, loc="left")
    if panel.limits is not None:
        axes.set_ylim(*panel.limits)
    elif panel.from_zero and _least(summary, how.scale) >= 0:
        # What is all zero still gets a scale.
        axes.set_ylim(0, 1.08 * _greatest(summary, how.scale) or 1)


def _draw(axes: Axes, summary: pl.DataFrame, how: Curves, *, is_wide: bool) -> None:
    has_names = how.x_names is not None
    groups = list(summary.sort(how.series, maintain_order=True).group_by(how.series, maintain_order=True))
    steps = sorted(summary[how.x].unique().to_list())
    spacing = min((b / a if is_wide else b - a for a, b in pairwise(steps)), default=1.0)
    for index, ((value,), group) in enumerate(groups):
        curve = group.sort(how.x)
        colour = how.colour(index, len(groups))
        shift = (index - (len(groups) - 1) / 2) * (SHIFT_OF_NAMES if has_names else SHIFT)
        at = curve[how.x] * spacing**shift if is_wide else curve[how.x] + shift * spacing
        median, low, high = (curve[name] * how.scale for name in ("median", "low", "high"))
        axes.errorbar(
            at,
            median,
            yerr=[(median - low).to_list(), (high - median).to_list()],
            color=colour,
            linestyle="none" if has_names else "-",
            marker=style.SERIES_MARKERS[index % len(style.SERIES_MARKERS)],
            markersize=5,
            capsize=2.5,
            elinewidth=1.0,
            label=style.plain(how.label_of(value)),
        )
        if "high_censored" in curve.columns:
            bounds = [(x, y) for x, y, bound in zip(at, high, curve["high_censored"], strict=True) if bound]
            style.mark_bounds(axes, bounds, colour)


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

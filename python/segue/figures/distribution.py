"""Distribution functions as curves: the share of values up to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from segue.figures import style
from segue.units import in_words

if TYPE_CHECKING:
    from segue.compare import Value

SHORTEST_S = 1e-4
"""Shorter ones are drawn here, where the axis is logarithmic."""
LOG_FROM = 50
"""From this ratio of the greatest value to the least on, it is."""


def draw_curve(
    axes: Axes,
    values: Sequence[float],
    shares: Sequence[float],
    *,
    begin: float | None = None,
    end: float | None = None,
    bounds: Sequence[tuple[float, float]] = (),
    bounds_label: str = "_",
    colour: str = style.BLUE,
    dashes: str = "-",
    width: float = 1.6,
) -> None:
    """A distribution function as a step at each value.

    Args:
        axes: Where to draw.
        values: In their order.
        shares: Of each value, the share of all that are no greater.
        begin: Where the curve leaves the axis; at the first value if left out.
        end: Where it goes on to after the last one, if anywhere.
        bounds: Steps that are lower bounds, which are marked.
        bounds_label: What to call their marks.
        colour: Of the curve.
        dashes: Of the curve.
        width: Of the curve, points.
    """
    first = [value for value in (begin, *values[:1], end) if value is not None][:1]
    last = [] if end is None else [(end, shares[-1] if shares else 0.0)]
    steps = [*((at, 0.0) for at in first), *zip(values, shares, strict=True), *last]
    axes.step(*zip(*steps, strict=True), where="post", color=colour, linestyle=dashes, linewidth=width, label="_")
    if bounds:
        axes.plot(*zip(*bounds, strict=True), ">", color=style.LOST, markersize=5.5, zorder=4, clip_on=False,
                  label=bounds_label)  # fmt: skip
    axes.set_ylim(0, 1.03)


def scale_values(axes: Axes, least: float, greatest: float) -> bool:
    """Make the axis of values logarithmic if they are far apart; whether it is."""
    is_wide = least > 0 and greatest > LOG_FROM * least
    if is_wide:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    return is_wide


def distributions(samples: Mapping[str, Sequence[Value]], title: str, caption: str) -> Figure:
    """A curve per subject: the share of its interruptions that were over within a time.

    What never came back is over within none, so that its curve ends below 1. A dot on each curve is the median.
    """
    figure, [axes] = style.new_figure(title, caption, height=4.6)
    draw_distributions(axes, samples)
    style.legend_below(figure, axes)
    return figure


def draw_distributions(axes: Axes, samples: Mapping[str, Sequence[Value]]) -> None:
    """What `distributions` shows."""
    from segue.compare import median_of

    every = [one.value for sample in samples.values() for one in sample]
    scale, unit = in_words("s", max(every, default=0.0))
    least, greatest = (found(max(one, SHORTEST_S) for one in every) if every else 1.0 for found in (min, max))
    is_wide = scale_values(axes, least * scale, greatest * scale)
    shortest_s = SHORTEST_S if is_wide else 0.0
    for index, (name, sample) in enumerate(samples.items()):
        colour = style.PATHS[index % len(style.PATHS)]
        dashes = style.DASHES[index // len(style.PATHS) % len(style.DASHES)]
        ended = sorted(max(one.value, shortest_s) * scale for one in sample if not one.is_bound)
        if sample:
            draw_curve(
                axes, ended, [number / len(sample) for number in range(1, len(ended) + 1)],
                begin=least * scale * 0.9 if is_wide else 0.0, end=max(every) * scale * 1.05 or 1.0,
                # of curves that coincide, those below look out
                colour=colour, dashes=dashes, width=max(1.4, 1.4 + 1.2 * (len(samples) - 1 - index)),
            )  # fmt: skip
        # as the table has it; there is no place for what is no more than a bound
        middle = median_of(sample)
        place: tuple[list[float], list[float]] = ([], [])
        if middle is not None and not middle.is_bound:
            place = ([max(middle.value, shortest_s) * scale], [0.5])
        label = f"{name} ({len(sample)})" if sample else f"{name} (none)"
        mark = style.SERIES_MARKERS[index % len(style.SERIES_MARKERS)]
        axes.plot(*place, marker=mark, color=colour, linestyle=dashes, label=style.plain(label))
    axes.set(xlabel=f"interruption ({unit})", ylabel="share that was over within it")
    axes.set_ylim(0, 1.03)

"""Distributions over each other: how long interruptions of several subjects are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from segue.compare import median_of
from segue.figures import style
from segue.units import in_words

if TYPE_CHECKING:
    from segue.compare import Value

SHORTEST_S = 1e-4
"""Shorter ones are drawn here, where the axis is logarithmic."""
WIDE = 50
"""From this ratio of the longest to the shortest on, it is."""


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
    longest = max((one.value for sample in samples.values() for one in sample), default=0.0)
    scale, unit = in_words("s", longest)
    known = [max(one.value, SHORTEST_S) for sample in samples.values() for one in sample]
    is_wide = bool(known) and max(known) / min(known) >= WIDE
    if is_wide:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    end = longest * scale * 1.05 or 1.0
    for index, (name, sample) in enumerate(samples.items()):
        colour = style.PATHS[index % len(style.PATHS)]
        line = ("-", "--", "-.", ":")[index // len(style.PATHS) % 4]
        ended = sorted(max(one.value, SHORTEST_S if is_wide else 0.0) * scale for one in sample if not one.is_bound)
        label = f"{name} ({len(sample)})" if sample else f"{name} (none)"
        at = [*ended, end]
        shares = [number / max(len(sample), 1) for number in range(1, len(ended) + 1)]
        begin = [0.0 if not is_wide else min(known) * scale * 0.9]
        axes.step(
            [*begin, *at], [0.0, *shares, shares[-1] if shares else 0.0] if sample else [float("nan")] * 2,
            where="post", color=colour, linestyle=line,
            # of curves that coincide, those below look out
            linewidth=max(1.4, 1.4 + 1.2 * (len(samples) - 1 - index)),
        )  # fmt: skip
        mark = style.SERIES_MARKERS[index % len(style.SERIES_MARKERS)]
        # as the table has it; there is no place for what is no more than a bound
        middle = median_of(sample)
        place: tuple[list[float], list[float]] = ([], [])
        if middle is not None and not middle.is_bound:
            place = ([max(middle.value, SHORTEST_S if is_wide else 0.0) * scale], [0.5])
        axes.plot(*place, marker=mark, color=colour, linestyle=line, label=style.plain(label))
    axes.set(xlabel=f"interruption ({unit})", ylabel="share that was over within it")
    axes.set_ylim(0, 1.03)

"""All flows of a run together: how long they were interrupted, how much each got, and when."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from segue.distributions import Distribution
from segue.figures import style
from segue.figures.distribution import draw_curve, scale_values
from segue.metrics import Flow, Metrics
from segue.populations import Population
from segue.summary import DEAD, interruptions, time_text, worst_first

LEAST_SPAN = 0.02
"""Values that differ by less than this share of the greatest are shown on an axis from zero."""
MOST_ROWS = 400
"""Flows shown against time; of more, the worst."""
USUAL_SHARE = 95
"""Percentile of the rates that is shown darkest, as all above it are ..."""
MOST_MEDIANS = 4
"""... or so many times the median, if that is less: a few fast flows must not make all others pale."""
MOST_SECONDS = 2000
"""Columns of the picture; longer runs join seconds."""


def by_population(metrics: Metrics, *, title: str, subtitle: str) -> Figure:
    """Of each population, the share of interruptions up to each value, and that of hosts by goodput.

    A curve for each; lower bounds are marked. What no population has is left out.
    """
    known = [one for one in QUANTITIES if any(one.of(population) is not None for population in metrics.populations)]
    figure, every = style.new_figure(title, subtitle, width=9.6, height=4.4, columns=max(len(known), 1))
    for axes, quantity in zip(every, known, strict=False):
        draw_populations(axes, metrics.populations, quantity)
    style.legend_below(figure, every[0])
    return figure


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is shown of populations.

    Attributes:
        name: "interruption".
        of: Its distribution in a population.
        unit: Of the axis, in that of the distribution.
        label: Of the x axis.
        share: Of the y axis.
    """

    name: str
    of: Callable[[Population], Distribution | None]
    unit: float
    label: str
    share: str


QUANTITIES = (
    Quantity("interruption", lambda one: one.interruption_s, 1.0, "interruption (s)", "share of interruptions"),
    Quantity("goodput", lambda one: one.goodput_bps, 1e6, "goodput of a host (Mbit/s)", "share of hosts"),
)


def draw_populations(axes: Axes, populations: Sequence[Population], quantity: Quantity) -> None:
    """The share of a quantity up to each value, a curve for each population that has it."""
    spreads = [quantity.of(population) for population in populations]
    known = [spread for spread in spreads if spread is not None]
    unit = quantity.unit
    for number, (population, spread) in enumerate(zip(populations, spreads, strict=True)):
        if spread is not None:
            _curve(axes, spread, unit, number)
        axes.plot([], [], color=_colour(number), linestyle=_dashes(number), label=_name(population))
    if any(one.interruption_s is not None and one.interruption_s.censored for one in populations):
        axes.plot([], [], ">", color=style.LOST, markersize=5, label="lower bound: no data came back")
    least = min((spread.min for spread in known), default=0.0) / unit
    most = max((spread.max for spread in known), default=0.0) / unit
    if not scale_values(axes, least, most):
        axes.set_xlim(0, most * 1.1 or 1)
    axes.set(xlabel=quantity.label, ylabel=quantity.share)
    axes.set_ylim(0, 1.03)


def distributions(metrics: Metrics, *, title: str, subtitle: str) -> Figure:
    """Shares of interruptions, and of flows by throughput, up to each value.

    Interruptions are those of the metrics: of all handovers, and of all outages that none accounts for; lower
    bounds are marked.
    """
    figure, [left, right] = style.new_figure(title, subtitle, width=9.6, height=3.9, columns=2)
    draw_interruptions(left, metrics)
    draw_throughputs(right, metrics)
    if left.get_legend_handles_labels()[1]:
        left.legend(loc="lower right", frameon=False, fontsize=style.LEGEND_SIZE)
    if right.get_legend_handles_labels()[1]:
        right.legend(loc="upper left", frameon=False, fontsize=style.LEGEND_SIZE)
    return figure


def draw_interruptions(left: Axes, metrics: Metrics) -> None:
    """The share of interruptions up to each value, those that are lower bounds marked."""
    values = interruptions(metrics)
    times = sorted(seconds for _, seconds, _ in values)
    bounds = sorted(seconds for _, seconds, censored in values if censored)
    _shares(left, times, bounds)
    if times and not scale_values(left, times[0], times[-1]) and times[-1] - times[0] < LEAST_SPAN * times[-1]:
        # Nearly all the same: from zero, or the axis would show nothing but digits.
        left.set_xlim(0, times[-1] * 1.1)
    spread = metrics.interruption_s
    if spread is not None and len(times) > 1:
        marks = ((spread.median, spread.median_censored, "median"), (spread.p95, spread.p95_censored, "95 %"))
        for level, (value, bound, name) in enumerate(marks):
            style.mark_time(left, value, f"{name} {time_text(value, censored=bound)}", side="right", level=level)
    left.set(xlabel="interruption (s)", ylabel="share of interruptions")


def draw_throughputs(right: Axes, metrics: Metrics) -> None:
    """The share of flows by throughput, those that died marked."""
    rates = sorted(flow.throughput_bps / 1e6 for flow in metrics.flows)
    _shares(right, rates)
    dead = sorted(flow.throughput_bps / 1e6 for flow in metrics.flows if flow.state == DEAD)
    if dead:
        right.plot(dead, [bisect_right(rates, rate) / len(rates) for rate in dead], "x",
                   color=style.LOST, markersize=6, zorder=4, label=f"died ({len(dead)})")  # fmt: skip
    right.set(xlabel="throughput of a flow (Mbit/s)", ylabel="share of flows")
    right.set_xlim(0, rates[-1] * 1.05 if rates and rates[-1] > 0 else 1)


def flows_over_time(metrics: Metrics, *, title: str, subtitle: str) -> Figure:
    """A row per flow, the worst on top: darker is more new data in that second; handovers and deaths are marked."""
    flows = worst_first(metrics)[:MOST_ROWS]
    cells, join = _rates(flows)
    most, highest = darkest(cells), float(cells.max(initial=0.0))
    if highest > most:
        subtitle += f" From {most:.3g} Mbit/s on, up to {highest:.3g}, all is equally dark."
    figure, [axes] = style.new_figure(title, subtitle, width=9.6, height=height_of_flows(metrics))
    _draw_flows(axes, metrics, flows, cells, join)
    style.legend_below(figure, axes)
    return figure


def height_of_flows(metrics: Metrics) -> float:
    """Of a figure of all flows against time, inches."""
    return min(7.0, max(2.6, 1.5 + 0.2 * min(len(metrics.flows), MOST_ROWS)))


def draw_flows(axes: Axes, metrics: Metrics) -> None:
    """What `flows_over_time` shows."""
    flows = worst_first(metrics)[:MOST_ROWS]
    _draw_flows(axes, metrics, flows, *_rates(flows))


def _rates(flows: Sequence[Flow]) -> tuple[np.ndarray, int]:
    """New data of each flow in Mbit/s, a column for so many seconds."""
    seconds = max([len(flow.received_bytes_by_second) for flow in flows] + [1])
    join = -(-seconds // MOST_SECONDS)
    cells = np.zeros((len(flows), -(-seconds // join)))
    for row, flow in enumerate(flows):
        for second, count in enumerate(flow.received_bytes_by_second):
            cells[row, second // join] += count * 8 / 1e6 / join
    return cells, join


def _draw_flows(axes: Axes, metrics: Metrics, flows: Sequence[Flow], cells: np.ndarray, join: int) -> None:
    most, highest = darkest(cells), float(cells.max(initial=0.0))
    axes.grid(visible=False)
    image = axes.imshow(
        cells, aspect="auto", interpolation="nearest", cmap="Blues", vmin=0, vmax=most,
        extent=(0, cells.shape[1] * join, len(flows) - 0.5, -0.5),
    )  # fmt: skip
    axes.figure.colorbar(image, ax=axes, label="Mbit/s", pad=0.01, extend="max" if highest > most else "neither")
    places = {flow.id: row for row, flow in enumerate(flows)}
    moves = [(row.time_s, places[row.flow]) for row in metrics.handovers if row.flow in places]
    if moves:
        axes.plot(
            [time for time, _ in moves], [row for _, row in moves], linestyle="none", marker="|", color=style.ORANGE,
            markersize=min(9.0, max(4.0, 200 / len(flows))), rasterized=len(moves) > style.MOST_LINES,
            label=f"handover ({len(moves)})",
        )  # fmt: skip
    dead = [(flow.dead_since_s, places[flow.id]) for flow in flows if flow.dead_since_s is not None]
    if dead:
        axes.plot([time for time, _ in dead], [row for _, row in dead], "x", color=style.LOST, markersize=5,
                  label=f"last new data of a flow that died ({len(dead)})")  # fmt: skip
    names = [f"{flow.id}: {flow.sender} to {flow.receiver}" for flow in flows]
    step = -(-len(names) // 30)
    axes.set_yticks(range(0, len(names), step), names[::step], fontsize=7.5)
    axes.set(xlabel="time (s)", xlim=(0, max(metrics.duration_s, 1e-3)))


def darkest(rates: np.ndarray) -> float:
    """The rate that is shown darkest, as are all above it: a burst after an outage must not make the rest pale."""
    some = rates[rates > 0]
    if not some.size:
        return 1.0
    return float(min(np.percentile(some, USUAL_SHARE), MOST_MEDIANS * np.median(some)))


def _curve(axes: Axes, spread: Distribution, unit: float, number: int) -> None:
    """The distribution function of one population, with a mark at each step that is a lower bound."""
    bounds = [(value / unit, share) for value, share in spread.cdf if spread.is_bound(value)]
    draw_curve(
        axes, [value / unit for value, _ in spread.cdf], [share for _, share in spread.cdf],
        begin=spread.min / unit, bounds=bounds, colour=_colour(number), dashes=_dashes(number),
    )  # fmt: skip


def _name(population: Population) -> str:
    """A population with its size, and how many interruptions there were."""
    gaps = population.interruption_s
    text = f"{population.name}: {population.hosts} hosts"
    return text if gaps is None else f"{text}, {gaps.count} interruptions"


def _colour(number: int) -> str:
    return style.PATHS[number % len(style.PATHS)]


def _dashes(number: int) -> str:
    return style.DASHES[number // len(style.PATHS) % len(style.DASHES)]


def _shares(axes: Axes, values: Sequence[float], bounds: Sequence[float] = ()) -> None:
    """The share of values up to each, those that are lower bounds marked; both are sorted."""
    if not values:
        axes.set_ylim(0, 1.03)
        axes.annotate("none", (0.5, 0.5), xycoords="axes fraction", ha="center", color=style.MUTED)
        return
    shares = [(n + 1) / len(values) for n in range(len(values))]
    marks = [(value, bisect_right(values, value) / len(values)) for value in bounds]
    draw_curve(axes, values, shares, bounds=marks, bounds_label=f"lower bound: no data came back ({len(bounds)})")
    if len(values) <= 60:
        axes.plot(values, shares, "o", color=style.BLUE, markersize=3.5)

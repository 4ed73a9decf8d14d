"""Figures of runs, captures, sweeps and comparisons, on axes of one's own: axes in, axes out.

Each function draws on `ax`, and gives it back; without `ax` it makes axes of a new pyplot figure. They are the drawings
of `segue run --report`, `segue analyze --report`, `segue plot` and `segue compare`. `legend=False` leaves the legend to
the caller.

    import matplotlib.pyplot as plt
    import segue

    run = segue.run("sigma")
    figure, (above, below) = plt.subplots(2, sharex=True)
    segue.plot.throughput(run, ax=above)
    segue.plot.windows(run, ax=below)
    figure.savefig("sigma.png")

Times are in seconds. A `source` is a run (`segue.run`, `segue.load`) with frames, or an analysis of captures
(`segue.analyze(..., series=True)`). A `flow` is the number that a flow has in `source.flows`; without one it is the
flow that carries most. A flow of a run has one direction, one of captures two: `direction` is that of most data if left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from segue.analyze import Analysis
from segue.compare import Subject, subject_of
from segue.figures import arrivals, capture, ladder, population, position, sequence, style, tsn, window
from segue.figures.distribution import draw_distributions
from segue.figures.flow import FlowTrace, Switch, connections_of, flow_trace, worst_handover
from segue.figures.scenario import mark_scenario
from segue.figures.sweep import draw_curves, measured
from segue.findings import TrafficFlow
from segue.metrics import Flow, Handover, Metrics
from segue.recorded import Measured, Recorded

if TYPE_CHECKING:
    from segue.running import Run
    from segue.sweeps.result import Sweep

__all__ = [
    "cells",
    "comparison",
    "flows",
    "gaps",
    "handover",
    "interruptions",
    "paths",
    "populations",
    "segments",
    "signalling",
    "sweep",
    "throughput",
    "throughputs",
    "windows",
]

MOST_BINS = 1_000_000
"""Of a figure."""

Direction = Literal["forward", "reverse"]


def throughput(
    source: Recorded | Analysis,
    *,
    flow: int | None = None,
    direction: Direction | None = None,
    bin_s: float | None = None,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Mbit/s that arrived of a flow, stacked by path; handovers and the scenario's events are marked.

    Of a run it is that of IPv6 packets with data, retransmissions among them; of captures that of data not seen before,
    in the bins of `Analysis.throughput`. Without `bin_s`, and of captures whatever it is, so many bins
    of 0.1 s are one that packets which are far apart make no comb.

    Raises:
        ValueError: There is no such flow, or none with data; or bins of no width, or more than `MOST_BINS`.
    """
    axes = ax or style.new_axes()
    if isinstance(source, Analysis):
        way = _way(source, flow, direction)
        arrivals.draw_throughput(axes, capture.bins_of(*way, source.throughput))
        capture.mark_handovers(axes, capture.handovers_of(source.findings, *way))
    else:
        _, trace = _trace(source, flow)
        _check_bins(arrivals.BIN_S if bin_s is None else bin_s, source.metrics.duration_s)
        arrivals.draw_throughput(axes, arrivals.bins_of(trace, bin_s))
        style.mark_switches(axes, _times(trace.switches), width=0.8)
        mark_scenario(axes, source.metrics)
    return _finished(axes, ax, legend=legend)


def segments(
    source: Recorded | Analysis,
    *,
    flow: int | None = None,
    direction: Direction | None = None,
    start_s: float | None = None,
    end_s: float | None = None,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Which segments, by number or by offset in the stream, went (of a run) or came (of captures) when, by path.

    Raises:
        ValueError: There is no such flow, or none with data.
    """
    axes = ax or style.new_axes(height=4.4)
    if isinstance(source, Analysis):
        way = _way(source, flow, direction)
        first = way[0].begin_s if start_s is None else start_s
        last = max(way[0].end_s, first + 1e-3) if end_s is None else end_s
        moves = capture.handovers_of(source.findings, *way)
        capture.draw_offsets(axes, *way, source.segments, moves, start_s=first, end_s=last)
    else:
        found, trace = _trace(source, flow)
        tsn.draw_segments(axes, trace, died_s=found.dead_since_s)
        axes.set_xlim(start_s, end_s)
        mark_scenario(axes, source.metrics)
    return _finished(axes, ax, legend=legend)


def paths(
    source: Recorded | Analysis, *, bin_s: float | None = None, ax: Axes | None = None, legend: bool = True
) -> Axes:
    """Which path carried the data of each flow and direction, a row each: a colour is a path, by first use.

    Bins are those of `throughput`. Of captures, pauses and silences to the end are marked beside handovers.

    Raises:
        ValueError: Bins of no width, or more than `MOST_BINS`.
    """
    if isinstance(source, Analysis):
        findings = source.findings
        ways = [(flow, name) for flow in findings.flows if flow.parent is None for name in ("forward", "reverse")]
        ways = [way for way in ways if capture.paths_with_data(*way)]
        rows = [capture.row_of(findings, source.throughput, *way) for way in ways]
        end_s = findings.duration_s
    else:
        connections = connections_of(source)
        _check_bins(arrivals.BIN_S if bin_s is None else bin_s, source.metrics.duration_s)
        rows = []
        for one in source.metrics.flows:
            if one.id in connections:
                trace = flow_trace(source, one, connections[one.id])
                name = f"{one.id}: {one.sender} to {one.receiver}"
                rows.append(arrivals.Row(name, arrivals.bins_of(trace, bin_s), _times(trace.switches)))
        end_s = source.metrics.duration_s
    axes = ax or style.new_axes(height=capture.height_of_rows(len(rows)))
    arrivals.draw_paths(axes, rows, end_s)
    return _finished(axes, ax, legend=legend)


def gaps(
    source: Recorded | Analysis,
    *,
    flow: int | None = None,
    direction: Direction | None = None,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """At each arrival of a flow's data the time since the one before, in ms; handovers are marked.

    Of captures with many arrivals, the longest of each so many in a row, which the label says.

    Raises:
        ValueError: There is no such flow, or none with data.
    """
    axes = ax or style.new_axes()
    if isinstance(source, Analysis):
        way, name = _way(source, flow, direction)
        own = source.gaps.filter((pl.col("flow") == way.id) & (pl.col("direction") == name))
        each = 1 if own.is_empty() else int(own["arrivals"][0])
        label = f"flow {way.id}, {name}"
        arrivals.draw_gaps(axes, own["time_s"].to_list(), own["gap_s"].to_list(), label, each=each)
        style.mark_switches(axes, [one.time for one in capture.handovers_of(source.findings, way, name)], width=0.8)
    else:
        _, trace = _trace(source, flow)
        times = trace.data.filter(~pl.col("lost"))["end_s"].drop_nulls().sort()
        gaps_s = times.diff().drop_nulls().to_list()
        arrivals.draw_gaps(axes, times[1:].to_list(), gaps_s, f"{trace.sender} to {trace.receiver}")
        style.mark_switches(axes, _times(trace.switches), width=0.8)
        mark_scenario(axes, source.metrics)
    return _finished(axes, ax, legend=legend)


def windows(run: Recorded, *, flow: int | None = None, ax: Axes | None = None, legend: bool = True) -> Axes:
    """Congestion windows of the paths of a flow's sender, in kB; a curve ends where its address is deleted.

    Raises:
        ValueError: There is no such flow, none with data, or it has no windows.
    """
    _check_run(run)
    _, trace = _trace(run, flow)
    frame, deletions = window.windows_of(run, trace)
    if frame.is_empty():
        raise ValueError("no congestion window: expected a flow of SCTP or TCP in the simulator")
    axes = ax or style.new_axes()
    towards = "source" if trace.mover == trace.sender else "destination"
    window.draw_windows(
        axes, frame, trace.switches, start_s=0, end_s=trace.last_s * 1.02, deletions=deletions, towards=towards
    )
    mark_scenario(axes, run.metrics)
    return _finished(axes, ax, legend=legend)


def handover(
    run: Recorded, *, flow: int | None = None, number: int | None = None, ax: Axes | None = None, legend: bool = True
) -> Axes:
    """Data, losses and acknowledgements around a handover of a flow, as its sender sees them.

    Args:
        run: A run.
        flow: Its flow.
        number: Of the handover among those of the flow, from 0; the one with the longest interruption if left out.
        ax: Where to draw.
        legend: Whether to draw one.

    Raises:
        ValueError: There is no such flow or handover.
    """
    _check_run(run)
    trace, switch, _ = _switch(run, flow, number)
    first, last = sequence.span_around(trace, switch)
    axes = ax or style.new_axes(height=4.9)
    sequence.draw_sequence(axes, trace, switch, start_s=first, end_s=last)
    return _finished(axes, ax, legend=legend)


def signalling(run: Recorded, *, flow: int | None = None, number: int | None = None, ax: Axes | None = None) -> Axes:
    """Events and messages of a handover, a line each, the time running down; see `handover` for the arguments.

    Raises:
        ValueError: There is no such flow or handover.
    """
    _check_run(run)
    trace, switch, move = _switch(run, flow, number)
    next_s = ladder.next_move_s(run.metrics, move)
    several = len(run.metrics.flows) > 1
    events, packets = ladder.of_hosts(run, trace) if several else (run.signalling, run.packets)
    steps = ladder.steps_between(events, packets, *ladder.span_of_signalling(events, switch, next_s))
    axes = ax or style.new_axes(8.6, 1.0 + ladder.height_of(steps))
    ladder.draw_ladder(axes, steps)
    return axes


def cells(run: Recorded, *, ax: Axes | None = None) -> Axes:
    """Where the mobile host was against the reach of the cells; of cells by the clock, when each was there.

    Raises:
        ValueError: The run has neither.
    """
    _check_run(run)
    switches = [switch for _, trace in _traces(run) for switch in trace.switches]
    somewhere, at_times = position.with_places(run.cells), position.with_times(run.cells)
    if not run.positions.is_empty() and not somewhere.is_empty():
        axes = ax or style.new_axes(height=3.6)
        position.draw_positions(axes, run.positions, somewhere, switches)
    elif not at_times.is_empty():
        axes = ax or style.new_axes(height=1.2 + position.ROW_INCHES * at_times.height)
        position.draw_presence(axes, at_times, switches)
        mark_scenario(axes, run.metrics)
    else:
        raise ValueError("no cells: expected a run of a scenario that has some")
    return axes


def flows(run: Measured, *, ax: Axes | None = None, legend: bool = True) -> Axes:
    """A row per flow, the worst on top: darker is more new data in that second. It needs no frames."""
    _check_run(run)
    axes = ax or style.new_axes(9.6, population.height_of_flows(run.metrics))
    population.draw_flows(axes, run.metrics)
    mark_scenario(axes, run.metrics)
    return _finished(axes, ax, legend=legend)


def interruptions(run: Measured, *, ax: Axes | None = None, legend: bool = True) -> Axes:
    """The share of a run's interruptions up to each length; lower bounds are marked. It needs no frames."""
    return _shares(population.draw_interruptions, run, ax, legend=legend)


def throughputs(run: Measured, *, ax: Axes | None = None, legend: bool = True) -> Axes:
    """The share of a run's flows up to each throughput; those that died are marked. It needs no frames."""
    return _shares(population.draw_throughputs, run, ax, legend=legend)


def populations(
    run: Measured,
    of: Literal["interruption", "goodput"] = "interruption",
    *,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """The share of interruptions, or of hosts by goodput, up to each value: a curve per population. It needs no frames.

    Raises:
        ValueError: No population has it.
    """
    _check_run(run)
    known = {one.name: one for one in population.QUANTITIES}
    if of not in known:
        raise ValueError(f"{of}: expected one of {', '.join(known)}")
    if all(known[of].of(one) is None for one in run.metrics.populations):
        raise ValueError(f"no {of} of a population: expected a run of a scenario with populations")
    axes = ax or style.new_axes(height=4.4)
    population.draw_populations(axes, run.metrics.populations, known[of])
    return _finished(axes, ax, legend=legend)


def sweep(
    result: Sweep,
    y: str = "interruption",
    *,
    x: str | None = None,
    hue: str | None = None,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Medians of a metric over an axis of a sweep, a curve for each value of another, with intervals.

    Args:
        result: From `segue.sweep`, or a part of one (`Sweep.where`).
        y: Word or column of the metric.
        x: Key of the axis below; the one with the most numbers if left out.
        hue: Key of the axis that is told apart by colours; the other one if left out.
        ax: Where to draw.
        legend: Whether to draw one.

    Raises:
        ScenarioError: No such metric or axis, or there is a third axis with several values.
    """
    what = measured(result, y, x=x, hue=hue)
    axes = ax or style.new_axes(height=4.5)
    draw_curves(axes, what.summary, what.curves, what.panel)
    return _finished(axes, ax, legend=legend and bool(what.hue))


def comparison(
    subjects: Sequence[Subject] | Mapping[str, Run | Analysis | Sequence[Run | Analysis]],
    *,
    ax: Axes | None = None,
    legend: bool = True,
) -> Axes:
    """Interruptions of several subjects over each other: the share that was over within each time.

    Args:
        subjects: Runs or analyses of captures, one or several, by name: `{"mip6": run, "sigma": [first, second]}`; or
            what `segue.compare.compare` gives.
        ax: Where to draw.
        legend: Whether to draw one.
    """
    if isinstance(subjects, Mapping):
        subjects = [subject_of(name, some if isinstance(some, Sequence) else [some]) for name, some in subjects.items()]
    axes = ax or style.new_axes(height=4.6)
    draw_distributions(axes, {one.name: one.handovers["interruption"] for one in subjects})
    return _finished(axes, ax, legend=legend)


def _finished(axes: Axes, given: Axes | None, *, legend: bool) -> Axes:
    """With its legend: below axes that were made here, and above those that were given, where no data are."""
    if not legend or not axes.get_legend_handles_labels()[1]:
        return axes
    figure = axes.figure
    if given is None and isinstance(figure, Figure):
        style.legend_below(figure, axes)
    else:
        style.legend_above(axes)
    return axes


def _shares(draw: Callable[[Axes, Metrics], None], run: Measured, ax: Axes | None, *, legend: bool) -> Axes:
    _check_run(run)
    axes = ax or style.new_axes()
    draw(axes, run.metrics)
    return _finished(axes, ax, legend=legend)


def _check_bins(bin_s: float, duration_s: float) -> None:
    if not bin_s > 0:
        raise ValueError(f"bin_s: {bin_s}: expected seconds above 0")
    if duration_s > MOST_BINS * bin_s:
        raise ValueError(f"bin_s: {bin_s}: expected at most {MOST_BINS} bins in {duration_s:g} s")


def _check_run(source: Measured) -> None:
    """Captures have no such figure; a caller may not have looked at the types."""
    if not hasattr(source, "metrics"):
        raise TypeError(f"{type(source).__name__}: expected a run, as segue.run or segue.load gives it")


def _times(switches: Sequence[Switch]) -> list[float]:
    return [switch.first_new_s for switch in switches]


def _traces(run: Recorded) -> list[tuple[Flow, FlowTrace]]:
    """Of all flows that sent data."""
    connections = connections_of(run)
    known = [flow for flow in run.metrics.flows if flow.id in connections]
    return [(flow, flow_trace(run, flow, connections[flow.id])) for flow in known]


def _trace(run: Recorded, number: int | None) -> tuple[Flow, FlowTrace]:
    """A flow with its trace; without a number the one that sends the most data."""
    connections = connections_of(run)
    known = {flow.id: flow for flow in run.metrics.flows if flow.id in connections}
    if not known:
        raise ValueError("no flow with data in the frames of the run")
    if number is None:
        number = max(known, key=lambda one: known[one].packets_sent)
    if number not in known:
        raise ValueError(f"no flow {number} with data: expected one of {', '.join(map(str, known))}")
    return known[number], flow_trace(run, known[number], connections[number])


def _switch(run: Recorded, flow: int | None, number: int | None) -> tuple[FlowTrace, Switch, Handover]:
    found, trace = _trace(run, flow)
    worst = worst_handover(run.metrics, found)
    if worst is None:
        raise ValueError(f"flow {found.id} has no handover")
    number = worst[0] if number is None else number
    if not 0 <= number < len(trace.switches):
        raise ValueError(f"no handover {number} of flow {found.id}: expected one from 0 to {len(trace.switches) - 1}")
    own = [row for row in run.metrics.handovers if row.flow == found.id]
    return trace, trace.switches[number], own[number]


def _way(analysis: Analysis, number: int | None, direction: Direction | None) -> tuple[TrafficFlow, str]:
    """A flow of captures with a direction; what is left out is that of most useful data."""
    ways = [
        (flow, name)
        for flow in analysis.findings.flows
        for name in ("forward", "reverse")
        if capture.paths_with_data(flow, name)
        and (flow.parent is None if number is None else flow.id == number)
        and direction in {None, name}
    ]
    if not ways:
        which = "flow" if number is None else f"flow {number}"
        raise ValueError(f"no {which} with data{f' {direction}' if direction else ''} in the captures")
    return max(ways, key=lambda way: way[0].direction(way[1]).useful_bytes)

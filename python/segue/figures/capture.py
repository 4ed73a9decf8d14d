"""Figures of an analysis of captures: which path carried each flow, how much, and which bytes."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from segue import explain
from segue.figures import style
from segue.figures.arrivals import PathBins, Row, draw_paths, draw_throughput, joined
from segue.findings import Findings, TrafficFlow, TrafficHandover

ROW_INCHES = 0.42
LONGEST_LABEL = 46
LEGEND_INCHES = 0.2
"""For each line of the legend of a timeline."""
MOST_OF_A_ROW = 34
"""Letters of each of two lines beside a row."""

# What a segment was: its marker if not its path's, size, and whether it is hollow.
_MARKS = {
    "new": ("", 3.4, False),
    "ahead": ("", 3.4, True),
    "fills": ("", 6.5, True),
    "repeats": ("x", 5.0, False),
}
_MEANINGS = {
    "ahead": "hollow: something is missing before it",
    "fills": "large: what was missing",
    "repeats": "what had come before",
}


def flow_timeline(findings: Findings, throughput: pl.DataFrame, ways: Sequence[tuple[TrafficFlow, str]]) -> Figure:
    """A row per flow and direction: the path that carried data, by colour; handovers and pauses marked.

    Args:
        findings: The analysis.
        throughput: `Analysis.throughput`.
        ways: The flows to show, each with a direction.
    """
    rows = [row_of(findings, throughput, flow, direction) for flow, direction in ways]
    figure, [axes] = style.new_figure(
        "Which path carried the data",
        "A colour is a path, in the order of first use; white is silence.",
        height=height_of_rows(len(ways)) + LEGEND_INCHES * max((len(row.paths) for row in rows), default=0),
    )
    draw_paths(axes, rows, findings.duration_s)
    style.legend_below(figure, axes)
    return figure


def height_of_rows(count: int) -> float:
    """Of a timeline, inches."""
    return 1.8 + ROW_INCHES * max(count, 2)


def row_of(findings: Findings, throughput: pl.DataFrame, flow: TrafficFlow, direction: str) -> Row:
    """A flow and direction as a row of the timeline."""
    pauses = [one for one in findings.interruptions if (one.flow, one.direction) == (flow.id, direction)]
    return Row(
        _shortened(f"{flow.id} {explain.protocol(flow)}", MOST_OF_A_ROW)
        + _shortened(f"\nto {explain.ends(flow, direction)[1]}", MOST_OF_A_ROW),
        bins_of(flow, direction, throughput),
        [one.time for one in handovers_of(findings, flow, direction)],
        [one.begin_s + one.duration_s / 2 for one in pauses if not one.censored],
        [(one.begin_s, one.begin_s + one.duration_s) for one in pauses if one.censored],
    )


def handovers_of(findings: Findings, flow: TrafficFlow, direction: str) -> list[TrafficHandover]:
    """Those of one direction of a flow."""
    return [one for one in findings.handovers if (one.flow, one.direction) == (flow.id, direction)]


def bins_of(flow: TrafficFlow, direction: str, throughput: pl.DataFrame) -> list[PathBins]:
    """Useful bytes of one direction of a flow, by path."""
    own = throughput.filter((pl.col("flow") == flow.id) & (pl.col("direction") == direction)).sort("time_s")
    width = 1.0 if own.is_empty() else float(own["bin_s"][0])
    parts = []
    for path in paths_with_data(flow, direction):
        bins = own.filter(pl.col("path") == path)
        parts.append(PathBins(_label(flow, path), bins["time_s"].to_list(), bins["bytes"].to_list(), width))
    way = flow.direction(direction)
    return joined(parts, way.data_bytes / max(way.data_packets, 1))


def throughput_by_path(
    flow: TrafficFlow, direction: str, throughput: pl.DataFrame, handovers: Sequence[TrafficHandover]
) -> Figure:
    """Useful bits by time of one direction of a flow, stacked by path."""
    figure, [axes] = style.new_figure(
        f"Throughput of flow {flow.id}, {explain.protocol(flow)}",
        _shortened(f"Data not seen before, from {' to '.join(explain.ends(flow, direction))}", 100),
        height=3.4,
    )
    draw_throughput(axes, bins_of(flow, direction, throughput))
    mark_handovers(axes, handovers)
    style.legend_below(figure, axes)
    return figure


def sequence_by_path(
    flow: TrafficFlow,
    direction: str,
    segments: pl.DataFrame,
    handovers: Sequence[TrafficHandover],
    *,
    start_s: float,
    end_s: float,
    title: str,
) -> Figure:
    """Which bytes came when, by path: a flat stretch is silence, hollow points show what was lost and repaired.

    Args:
        flow: The flow.
        direction: Its direction.
        segments: `Analysis.segments`.
        handovers: Those of that direction.
        start_s: Left end, seconds.
        end_s: Right end, seconds.
        title: Title.
    """
    figure, [axes] = style.new_figure(
        title, "A point is a packet with data; a flat stretch is silence, hollow points wait for what is missing.",
        height=4.4,
    )  # fmt: skip
    draw_offsets(axes, flow, direction, segments, handovers, start_s=start_s, end_s=end_s)
    style.legend_below(figure, axes)
    return figure


def draw_offsets(
    axes: Axes,
    flow: TrafficFlow,
    direction: str,
    segments: pl.DataFrame,
    handovers: Sequence[TrafficHandover],
    *,
    start_s: float,
    end_s: float,
) -> None:
    """What `sequence_by_path` shows."""
    # Others number packets or chunks, if anything.
    in_bytes = flow.protocol in {"tcp", "mptcp"}
    own = segments.filter(
        (pl.col("flow") == flow.id) & (pl.col("direction") == direction) & pl.col("time_s").is_between(start_s, end_s)
    ).with_columns(offset=pl.col("offset") / (1e6 if in_bytes else 1.0))
    seen = set()
    for index, path in enumerate(paths_with_data(flow, direction)):
        colour = style.PATHS[index % len(style.PATHS)]
        for mark, (marker, markersize, hollow) in _MARKS.items():
            part = own.filter((pl.col("path") == path) & (pl.col("mark") == mark))
            if part.is_empty():
                continue
            seen.add(mark)
            axes.plot(
                part["time_s"],
                part["offset"],
                marker or style.PATH_MARKERS[index % len(style.PATH_MARKERS)],
                markersize=markersize,
                markerfacecolor="none" if hollow else colour,
                markeredgecolor=style.LOST if mark == "repeats" else colour,
                markeredgewidth=1.1,
                zorder=4 if mark == "repeats" else 3,
            )
        axes.plot([], [], style.PATH_MARKERS[index % len(style.PATH_MARKERS)], color=colour, label=_label(flow, path))
    for mark, meaning in _MEANINGS.items():
        if mark in seen:
            marker, markersize, _ = _MARKS[mark]
            colour = style.LOST if mark == "repeats" else style.INK
            axes.plot([], [], marker or "o", markersize=markersize, markerfacecolor="none", markeredgecolor=colour,
                      linestyle="none", label=meaning)  # fmt: skip
    number = "offset in the stream (MB)" if in_bytes else "packets with data"
    axes.set(xlabel="time (s)", ylabel=number, xlim=(start_s, end_s))
    mark_handovers(axes, [h for h in handovers if start_s <= h.time <= end_s])


def paths_with_data(flow: TrafficFlow, direction: str) -> list[int]:
    """Paths of a direction that carried data, in the order of first use."""
    return [path.id for path in flow.paths if path.direction == direction and path.data_packets > 0]


def mark_handovers(axes: Axes, handovers: Sequence[TrafficHandover]) -> None:
    """A line at each, with its time if they are few."""
    for number, handover in enumerate(handovers):
        style.mark_time(axes, handover.time, f"{handover.time:.3f} s" if len(handovers) <= 3 else "",
                        side="right", level=number % 2)  # fmt: skip


def _label(flow: TrafficFlow, number: int) -> str:
    path = flow.path(number)
    return f"path {number}" if path is None else _shortened(explain.path_name(path), 60)


def _shortened(text: str, most: int = LONGEST_LABEL) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."

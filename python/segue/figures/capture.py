"""Figures of an analysis of captures: which path carried each flow, how much, and which bytes."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from segue import explain
from segue.figures import style
from segue.findings import Findings, TrafficFlow, TrafficHandover

ROW_INCHES = 0.42
LONGEST_LABEL = 46

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
    figure, [axes] = style.new_figure(
        "Which path carried the data",
        "A colour is a path, by first use; white is silence. Lines: handovers; crosses: pauses; dots: dead",
        height=1.5 + ROW_INCHES * max(len(ways), 2),
    )
    for row, (flow, direction) in enumerate(ways):
        own = throughput.filter((pl.col("flow") == flow.id) & (pl.col("direction") == direction))
        for index, path in enumerate(paths_with_data(flow, direction)):
            bins = own.filter(pl.col("path") == path).sort("time_s")
            spans = _spans(bins["time_s"].to_list(), bins["bin_s"].to_list())
            axes.broken_barh(spans, (row - 0.32, 0.64), color=style.PATHS[index % len(style.PATHS)], linewidth=0)
        for handover in findings.handovers:
            if (handover.flow, handover.direction) == (flow.id, direction):
                axes.plot([handover.time] * 2, [row - 0.44, row + 0.44], color=style.INK, linewidth=1.2)
        own_pauses = [p for p in findings.interruptions if (p.flow, p.direction) == (flow.id, direction)]
        for pause in own_pauses:
            if pause.censored:
                axes.plot([pause.begin_s, pause.begin_s + pause.duration_s], [row, row], ":", color=style.LOST)
        pauses = [p.begin_s + p.duration_s / 2 for p in own_pauses if not p.censored]
        axes.plot(pauses, [row] * len(pauses), "x", color=style.LOST, markersize=5)
    labels = [_shortened(f"{flow.id} {explain.protocol(flow)} to {explain.ends(flow, d)[1]}") for flow, d in ways]
    axes.set_yticks(range(len(ways)), labels, fontsize=8)
    axes.set(xlabel="time (s)", xlim=(0, max(findings.duration_s, 1e-3)), ylim=(len(ways) - 0.4, -0.6))
    axes.grid(axis="y", visible=False)
    return figure


def throughput_by_path(
    flow: TrafficFlow, direction: str, throughput: pl.DataFrame, handovers: Sequence[TrafficHandover]
) -> Figure:
    """Useful bits by time of one direction of a flow, stacked by path."""
    figure, [axes] = style.new_figure(
        f"Throughput of flow {flow.id}, {explain.protocol(flow)}",
        _shortened(f"Data not seen before, from {' to '.join(explain.ends(flow, direction))}", 100),
        height=3.4,
    )
    own = throughput.filter((pl.col("flow") == flow.id) & (pl.col("direction") == direction))
    paths = paths_with_data(flow, direction)
    if not own.is_empty():
        width = float(own["bin_s"][0])
        first = round(float(own["time_s"].min()) / width)  # type: ignore[arg-type]
        count = round(float(own["time_s"].max()) / width) - first + 1  # type: ignore[arg-type]
        edges = [(first + n) * width for n in range(count + 1)]
        base = [0.0] * count
        for index, path in enumerate(paths):
            heights = base.copy()
            for at, size in own.filter(pl.col("path") == path).select("time_s", "bytes").iter_rows():
                heights[round(at / width) - first] += size * 8 / width / 1e6
            axes.stairs(
                heights, edges, baseline=base, fill=True, color=style.PATHS[index % len(style.PATHS)], alpha=0.85,
                label=_label(flow, path),
            )  # fmt: skip
            base = heights
        axes.set(xlim=(edges[0], edges[-1]), ylim=(0, max([*base, 1e-9]) * 1.08))
    _mark_handovers(axes, handovers)
    axes.set(xlabel="time (s)", ylabel="Mbit/s")
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
    _mark_handovers(axes, [h for h in handovers if start_s <= h.time <= end_s])
    number = "offset in the stream (MB)" if in_bytes else "packets with data"
    axes.set(xlabel="time (s)", ylabel=number, xlim=(start_s, end_s))
    style.legend_below(figure, axes)
    return figure


def paths_with_data(flow: TrafficFlow, direction: str) -> list[int]:
    """Paths of a direction that carried data, in the order of first use."""
    return [path.id for path in flow.paths if path.direction == direction and path.data_packets > 0]


def _spans(times: list[float], widths: list[float]) -> list[tuple[float, float]]:
    """Bins that touch, as (begin, length)."""
    spans: list[tuple[float, float]] = []
    for at, width in zip(times, widths, strict=True):
        if spans and at - (spans[-1][0] + spans[-1][1]) < width / 2:
            spans[-1] = (spans[-1][0], at + width - spans[-1][0])
        else:
            spans.append((at, width))
    return spans


def _mark_handovers(axes: Axes, handovers: Sequence[TrafficHandover]) -> None:
    for number, handover in enumerate(handovers):
        style.mark_time(axes, handover.time, f"{handover.time:.3f} s" if len(handovers) <= 3 else "",
                        side="right", level=number % 2)  # fmt: skip


def _label(flow: TrafficFlow, number: int) -> str:
    path = flow.path(number)
    return f"path {number}" if path is None else _shortened(explain.path_name(path), 60)


def _shortened(text: str, most: int = LONGEST_LABEL) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."

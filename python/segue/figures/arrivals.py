"""Data that arrives, by the path that it takes: how fast it comes, which path carries it, and when none does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes

from segue.figures import style
from segue.figures.flow import FlowTrace

HALF_ROW = 0.32
"""Of what is filled of a row."""
HALF_MARK = 0.44


@dataclass(frozen=True, slots=True)
class PathBins:
    """What came over one path, in bins that all begin at a multiple of their width.

    Attributes:
        label: What to call the path.
        times_s: Where bins with data begin, seconds, in order.
        sizes_bytes: What came in each.
        width_s: Of all bins, seconds.
    """

    label: str
    times_s: Sequence[float]
    sizes_bytes: Sequence[int]
    width_s: float

    def spans(self) -> list[tuple[float, float]]:
        """Bins that touch, as (begin, length)."""
        spans: list[tuple[float, float]] = []
        for at in self.times_s:
            if spans and at - sum(spans[-1]) < self.width_s / 2:
                spans[-1] = (spans[-1][0], at + self.width_s - spans[-1][0])
            else:
                spans.append((at, self.width_s))
        return spans


@dataclass(frozen=True, slots=True)
class Row:
    """A flow and direction, as a row of `draw_paths`.

    Attributes:
        label: What to call it.
        paths: What came over each path.
        handovers_s: When it moved, seconds.
        pauses_s: Middles of its pauses, seconds.
        silences_s: From when until when it was silent without an end, seconds.
    """

    label: str
    paths: Sequence[PathBins]
    handovers_s: Sequence[float] = ()
    pauses_s: Sequence[float] = ()
    silences_s: Sequence[tuple[float, float]] = ()


def bins_of(trace: FlowTrace, width_s: float) -> list[PathBins]:
    """What arrived of a flow's data, retransmissions among it, as bytes of IPv6 packets, by path."""
    arrived = (
        trace.data.filter(pl.col("end_s").is_not_null() & ~pl.col("lost"))
        .with_columns(bin=(pl.col("end_s") / width_s).floor().cast(pl.Int64))
        .group_by("path", "bin")
        .agg(pl.col("length_bytes").sum())
        .sort("bin")
    )
    parts = []
    # in the order of first use, as everywhere
    for name in trace.data["path"].unique(maintain_order=True):
        own = arrived.filter(pl.col("path") == name)
        times = [number * width_s for number in own["bin"].to_list()]
        parts.append(PathBins(f"over {name}", times, own["length_bytes"].to_list(), width_s))
    return parts


def draw_throughput(axes: Axes, paths: Sequence[PathBins]) -> None:
    """Mbit/s by time, stacked by path."""
    known = [path for path in paths if path.times_s]
    if known:
        width = known[0].width_s
        first = round(min(path.times_s[0] for path in known) / width)
        count = round(max(path.times_s[-1] for path in known) / width) - first + 1
        edges = [(first + n) * width for n in range(count + 1)]
        base = [0.0] * count
        for index, path in enumerate(paths):
            heights = base.copy()
            for at, size in zip(path.times_s, path.sizes_bytes, strict=True):
                heights[round(at / width) - first] += size * 8 / width / 1e6
            axes.stairs(
                heights, edges, baseline=base, fill=True, color=style.PATHS[index % len(style.PATHS)], alpha=0.85,
                label=path.label,
            )  # fmt: skip
            base = heights
        axes.set(xlim=(edges[0], edges[-1]), ylim=(0, max([*base, 1e-9]) * 1.08))
    axes.set(xlabel="time (s)", ylabel="Mbit/s")


def draw_paths(axes: Axes, rows: Sequence[Row], end_s: float) -> None:
    """A row per flow and direction: the path that carried data, by colour; handovers and pauses marked."""
    for number, row in enumerate(rows):
        for index, path in enumerate(row.paths):
            colour = style.PATHS[index % len(style.PATHS)]
            axes.broken_barh(path.spans(), (number - HALF_ROW, 2 * HALF_ROW), color=colour, linewidth=0)
        for time_s in row.handovers_s:
            axes.plot([time_s] * 2, [number - HALF_MARK, number + HALF_MARK], color=style.INK, linewidth=1.2)
        for silence in row.silences_s:
            axes.plot(silence, [number, number], ":", color=style.LOST)
        axes.plot(row.pauses_s, [number] * len(row.pauses_s), "x", color=style.LOST, markersize=5)
    axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=8)
    axes.set(xlabel="time (s)", xlim=(0, max(end_s, 1e-3)), ylim=(len(rows) - 0.4, -0.6))
    axes.grid(axis="y", visible=False)


def draw_gaps(axes: Axes, ends_s: Sequence[float], gaps_s: Sequence[float], label: str, *, each: int = 1) -> None:
    """Times between arrivals, in ms, where they ended; each is the longest of so many in a row."""
    axes.plot(
        ends_s, [gap * 1e3 for gap in gaps_s], linewidth=1, label=label, rasterized=len(gaps_s) > style.MOST_LINES
    )
    what = "gap between arrivals (ms)" if each == 1 else f"longest of {each} gaps between arrivals (ms)"
    axes.set(yscale="log", xlabel="time (s)", ylabel=what)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")

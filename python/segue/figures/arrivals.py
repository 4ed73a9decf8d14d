"""Data that arrives, by the path that it takes: how fast it comes, which path carries it, and when none does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from statistics import median

import polars as pl
from matplotlib.axes import Axes

from segue.figures import style
from segue.figures.flow import FlowTrace

HALF_ROW = 0.32
"""Of what is filled of a row."""
HALF_MARK = 0.44
SHARE_TOGETHER = 0.1
"""Of the time for which a flow has data, from which on paths that are used at once are shown apart."""
BIN_S = 0.1
"""Width of a bin of arrivals, unless more are joined or another is asked for."""
PACKETS_OF_A_BIN = 50
"""So many are in the middle one of the bins that are joined: with few, one more or less makes a comb of a curve."""
LEAST_BINS = 40
"""Bins of which there are no more are not joined."""
FACTORS = (1, 2, 5, 10, 20, 50, 100)
"""So many bins may become one."""


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
        """Bins that touch, or are no further apart than twice what is usual, as (begin, length)."""
        between = [after - at for at, after in pairwise(self.times_s)]
        most = (2 * median(between) if between else 0.0) + self.width_s / 2
        spans: list[tuple[float, float]] = []
        for at, since_last in zip(self.times_s, [inf, *between], strict=False):
            if since_last < most:
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


def bins_of(trace: FlowTrace, width_s: float | None = None) -> list[PathBins]:
    """What arrived of a flow's data, retransmissions among it, as bytes of IPv6 packets, by path.

    Without a width, bins are of `BIN_S`, or so many of them that no comb comes of packets that are far apart.
    """
    if width_s is None:
        mean = trace.data["length_bytes"].mean()
        return joined(bins_of(trace, BIN_S), float(mean) if isinstance(mean, float) else 0.0)
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


def joined(paths: Sequence[PathBins], packet_bytes: float) -> list[PathBins]:
    """Bins, so many of them as one that a packet more or less does not show.

    Args:
        paths: What came over each path, in bins of one width.
        packet_bytes: What a packet brings on average.
    """
    sizes: dict[int, float] = {}
    for path in paths:
        for at, size in zip(path.times_s, path.sizes_bytes, strict=True):
            number = round(at / path.width_s)
            sizes[number] = sizes.get(number, 0.0) + size
    factor = 1
    for more in FACTORS[1:]:
        if not sizes or (max(sizes) - min(sizes)) / more < LEAST_BINS:
            break
        if median(_summed(sizes, factor).values()) >= PACKETS_OF_A_BIN * packet_bytes:
            break
        factor = more
    return [_join(path, factor) for path in paths]


def _join(path: PathBins, factor: int) -> PathBins:
    numbers = [round(at / path.width_s) for at in path.times_s]
    own = _summed(dict(zip(numbers, path.sizes_bytes, strict=True)), factor)
    width = path.width_s * factor
    return replace(path, times_s=[n * width for n in own], sizes_bytes=[int(n) for n in own.values()], width_s=width)


def _summed(sizes: Mapping[int, float], factor: int) -> dict[int, float]:
    """What is in bins by number, so many of them as one."""
    sums: dict[int, float] = {}
    for number, size in sorted(sizes.items()):
        sums[number // factor] = sums.get(number // factor, 0.0) + size
    return sums


def draw_throughput(axes: Axes, paths: Sequence[PathBins]) -> None:
    """Mbit/s by time, stacked by path; how wide bins are is said."""
    known = [path for path in paths if path.times_s]
    over = f" over {known[0].width_s:g} s" if known else ""
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
    axes.set(xlabel="time (s)", ylabel=f"Mbit/s{over}")


def draw_paths(axes: Axes, rows: Sequence[Row], end_s: float) -> None:
    """A row per flow and direction: the path that carried data, by colour; handovers and pauses marked.

    A colour has the name of a path where all rows have the same paths; else it is a flow's first, second and so on.
    Paths that are used at the same time lie below each other.
    """
    names = {tuple(path.label for path in row.paths) for row in rows}
    count = max((len(row.paths) for row in rows), default=0)
    labels = names.pop() if len(names) == 1 else tuple(_ordinal(n) for n in range(min(count, len(style.PATHS))))
    for index, label in enumerate(labels):
        axes.fill([], [], color=style.PATHS[index % len(style.PATHS)], linewidth=0, label=label)
    if any(row.handovers_s for row in rows):
        axes.plot([], [], "|", color=style.INK, markersize=11, markeredgewidth=1.2, label="handover")
    if any(row.pauses_s for row in rows):
        axes.plot([], [], "x", color=style.LOST, markersize=5, label="pause without a handover")
    if any(row.silences_s for row in rows):
        axes.plot([], [], ":", color=style.LOST, label="silent to the end")
    for number, row in enumerate(rows):
        spans = [path.spans() for path in row.paths]
        lanes = len(row.paths) if _are_together(spans) else 1
        height = 2 * HALF_ROW / lanes
        for index, own in enumerate(spans):
            colour = style.PATHS[index % len(style.PATHS)]
            top = number - HALF_ROW + height * (index if lanes > 1 else 0)
            axes.broken_barh(own, (top, height), color=colour, linewidth=0)
        for time_s in row.handovers_s:
            axes.plot([time_s] * 2, [number - HALF_MARK, number + HALF_MARK], color=style.INK, linewidth=1.2)
        for silence in row.silences_s:
            axes.plot(silence, [number, number], ":", color=style.LOST)
        axes.plot(row.pauses_s, [number] * len(row.pauses_s), "x", color=style.LOST, markersize=5)
    axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=7.5)
    axes.set(xlabel="time (s)", xlim=(0, max(end_s, 1e-3)), ylim=(len(rows) - 0.4, -0.6))
    axes.grid(axis="y", visible=False)


def _are_together(spans: Sequence[Sequence[tuple[float, float]]]) -> bool:
    """Whether paths, by the spans of each, are used at the same time for a part that is worth showing."""
    ends = sorted((at, change) for own in spans for begin, length in own
                  for at, change in ((begin, 1), (begin + length, -1)))  # fmt: skip
    used, both, count = 0.0, 0.0, 0
    for (at, change), (after, _) in pairwise(ends):
        count += change
        used += (after - at) * (count > 0)
        both += (after - at) * (count > 1)
    return both > SHARE_TOGETHER * used


def _ordinal(index: int) -> str:
    """What to call a path of any flow.

    >>> [_ordinal(n) for n in range(4)]
    ['first path', 'second path', 'third path', '4th path']
    """
    words = ("first", "second", "third")
    return f"{words[index] if index < len(words) else f'{index + 1}th'} path"


def draw_gaps(axes: Axes, ends_s: Sequence[float], gaps_s: Sequence[float], label: str, *, each: int = 1) -> None:
    """Times between arrivals, in ms, where they ended; each is the longest of so many in a row."""
    axes.plot(
        ends_s, [gap * 1e3 for gap in gaps_s], linewidth=1, label=label, rasterized=len(gaps_s) > style.MOST_LINES
    )
    what = "gap between arrivals (ms)" if each == 1 else f"longest of {each} gaps between arrivals (ms)"
    axes.set(yscale="log", xlabel="time (s)", ylabel=what)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")

"""Figures 5 to 7 of the paper, with its axes and legends, and some of our own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from segue.figures import style
from segue.papers.cmt import buffers, claims
from segue.papers.cmt import experiment as ex
from segue.papers.cmt.model import Scheme
from segue.papers.common import Drawn
from segue.papers.grid import summarise
from segue.stats import intervals_text

SCHEME_COLOURS = {
    Scheme.MSCTP_WORST: style.VERMILION,
    Scheme.FAILOVER: style.PURPLE,
    Scheme.MSCTP_BEST: style.ORANGE,
    Scheme.SINGLE: style.MUTED,
    Scheme.CMT: style.BLUE,
}
CURVE_COLOURS = {buffers.WORST: style.VERMILION, buffers.BEST: style.ORANGE, buffers.UNBLOCKED: style.BLUE}
LIMIT_KIB = 256
"""What the paper calls reasonable at a mobile node (section IV-B)."""


def figure_5(received: pl.DataFrame) -> Drawn:
    """TSN against time, a curve per scheme.

    Args:
        received: Of seed 1: `scheme`, `time_s`, `segments` (different ones received by then), in order of time.
    """
    figure, (axes,) = style.new_figure(
        f"Figure 5: all schemes at ratio {ex.RATIO}, dwelling time {ex.DWELL_S} s",
        "Paper: worst far behind; failover near best, but it stalls when the faster link ends; CMT steepest.\n"
        "Different segments received at the mobile node; ideal receive buffer (2 MB), seed 1; overlap shaded.",
        height=4.8,
    )
    axes.axvspan(ex.T_1_S, ex.T_1_S + ex.DWELL_S, color=style.GRID, alpha=0.55, linewidth=0, zorder=0)
    for scheme in ex.SCHEMES:
        curve = received.filter(pl.col("scheme") == str(scheme))
        axes.plot(
            curve["time_s"],
            curve["segments"],
            color=SCHEME_COLOURS[scheme],
            linestyle="--" if scheme is Scheme.SINGLE else "-",
            label=ex.SCHEME_NAMES[scheme],
        )
    axes.set(xlabel="time (s)", ylabel="segments (TSN since the first)")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    style.legend_below(figure, axes)
    return Drawn(
        "figure-05",
        "Fig. 5. Performance comparison of all SCTP versions for bw_ratio = 4, and t_dwell = 40 s",
        figure,
        received,
    )


def figure_6(runs: pl.DataFrame, plan: ex.Plan) -> Drawn:
    """Transfer time against dwelling time, with the equations."""
    table = summarise(ex.select(runs, plan.figure_6()), ["scheme", "rbuf_kib", "t_dwell_s"], "transfer_time_s")
    figure, (axes,) = style.new_figure(
        f"Figure 6: transfer time against dwelling time, ratio {ex.RATIO}",
        "Paper: with an ideal buffer nearly what theory has; with 256 kB or less CMT does not beat mSCTP best.\n"
        f"Dotted: equations (3) to (5), clamped, link rates less headers.\n{_intervals(table)}",
        height=5.0,
    )
    theory = [d / 4 for d in range(4 * min(plan.dwells_s), 4 * max(plan.dwells_s) + 1)]
    for scheme in (Scheme.MSCTP_WORST, Scheme.MSCTP_BEST, Scheme.CMT):
        times = [ex.theory_s(scheme, dwell) for dwell in theory]
        axes.plot(theory, times, color=SCHEME_COLOURS[scheme], linestyle=":", linewidth=1.2, zorder=2)
    for scheme in (Scheme.MSCTP_WORST, Scheme.FAILOVER, Scheme.MSCTP_BEST):
        part = table.filter(pl.col("scheme") == str(scheme))
        _points(axes, part, "t_dwell_s", SCHEME_COLOURS[scheme], ex.SCHEME_NAMES[scheme], "s")
    shades = dict(zip(ex.FIGURE_6_BUFFERS_KIB, (style.SKY, style.GREEN, "#3a6a9c", style.BLUE), strict=True))
    for (rbuf, colour), marker in zip(shades.items(), ("v", "D", "^", "o"), strict=True):
        part = table.filter((pl.col("scheme") == str(Scheme.CMT)) & (pl.col("rbuf_kib") == rbuf))
        name = "ideal" if rbuf == ex.IDEAL_KIB else f"{rbuf} kB"
        _points(axes, part, "t_dwell_s", colour, f"CMT, rbuf {name}", marker)
    axes.set(xlabel="dwelling time (s)", ylabel="transfer time of 8 MB (s)")
    axes.set_ylim(bottom=0)
    style.legend_below(figure, axes)
    return Drawn("figure-06", "Fig. 6. Comparison in function of t_dwell for bw_ratio = 4", figure, table)


def figure_7(table: pl.DataFrame) -> Drawn:
    """Smallest sufficient buffer against the ratio, three curves."""
    figure, (axes,) = style.new_figure(
        "Figure 7: the smallest receive buffer that is enough",
        "Paper: 256 kB (dotted) are enough up to ratio 4 to beat mSCTP best, up to 2 for no blocking at all.\n"
        f"t_dwell {ex.DWELL_S} s, queues of {ex.QUEUE} packets. A curve that leaves the figure: not even 2 MB.\n"
        f"{_intervals(table)}",
        height=4.8,
    )
    for curve, marker in zip(buffers.CURVES, ("s", "^", "o"), strict=True):
        _buffers(axes, table.filter(pl.col("curve") == curve), CURVE_COLOURS[curve], curve, marker)
    _buffer_axes(axes, table)
    style.legend_below(figure, axes)
    return Drawn("figure-07", "Fig. 7. Rbuf size constraints", figure, table)


def queue_sensitivity(runs: pl.DataFrame, tables: Mapping[int, pl.DataFrame], plan: ex.Plan) -> Drawn:
    """What the length of the queues, which the paper does not state, changes."""
    best = {queue: tables[queue].filter(pl.col("curve") == buffers.BEST) for queue in ex.QUEUES}
    at = runs.filter((pl.col("variant") == "") & (pl.col("bw_ratio") == ex.RATIO) & (pl.col("t_dwell_s") == ex.DWELL_S))
    cmt = at.filter((pl.col("scheme") == str(Scheme.CMT)) & pl.col("rbuf_kib").is_in(plan.buffers_kib))
    times = {
        queue: summarise(cmt.filter(pl.col("queue_packets") == queue), ["rbuf_kib"], "transfer_time_s")
        for queue in ex.QUEUES
    }
    figure, (left, right) = style.new_figure(
        "What the length of the queues changes",
        "The paper states no queue lengths. Left: the buffer that beats mSCTP best (dotted: 256 kB). "
        f"Right: CMT's transfer time at ratio {ex.RATIO};\nlines without marks: mSCTP best with the same "
        f"queue.\n{_intervals(*(one for queue in ex.QUEUES for one in (best[queue], times[queue])))}",
        width=9.6,
        height=4.9,
        columns=2,
    )
    rows = []
    for queue, colour, marker in zip(ex.QUEUES, (style.SKY, style.BLUE, style.PURPLE), ("v", "o", "s"), strict=True):
        rows.append(best[queue].with_columns(queue_packets=pl.lit(queue)))
        _buffers(left, best[queue], colour, f"{queue} packets", marker)
        _points(right, times[queue], "rbuf_kib", colour, "", marker)
        other = at.filter((pl.col("queue_packets") == queue) & (pl.col("scheme") == str(Scheme.MSCTP_BEST)))
        mean = summarise(other, ["rbuf_kib"], "transfer_time_s")
        if mean.height:
            right.axhline(mean["median"][0], color=colour, linewidth=1.0, linestyle="--", zorder=1)
    _buffer_axes(left, pl.concat(rows))
    right.set_xscale("log", base=2)
    _kib_ticks(right.xaxis, plan.buffers_kib[::2])
    right.axvline(LIMIT_KIB, color=style.MUTED, linewidth=1.0, linestyle=":")
    right.set(xlabel="receive buffer (kB)", ylabel="transfer time of 8 MB (s)")
    right.set_ylim(bottom=0)
    style.legend_below(figure, left)
    return Drawn(
        "figure-queues", "Not in the paper: the length of the queues, which it does not state", figure, pl.concat(rows)
    )


def ideal(runs: pl.DataFrame, plan: ex.Plan) -> Drawn:
    """Claim C1: how far CMT with an ideal buffer is from equation (3), at every ratio and dwelling time."""
    halves = (
        ("as the paper has it", plan.ideal(), ex.slow_start_idle_s),
        ("with a quicker start", plan.starts(ex.QUICK_START), ex.quicker_start_idle_s),
    )
    tables = [_excess(ex.select(runs, [p for p in points if p.scheme is Scheme.CMT])) for _, points, _ in halves]
    every = pl.concat(
        table.with_columns(start=pl.lit(heading)) for table, (heading, *_) in zip(tables, halves, strict=True)
    )
    figure, all_axes = style.new_figure(
        "CMT with an ideal buffer against the clamped equation (3)",
        "Paper: nearly optimal. Grey: within 1.5 s of what the links allow, less headers. Dashed: how long slow start "
        "leaves the fast link idle, times\nthe ratio. Quicker: "
        "SACKs for single packets and a packet more at first, early retransmit.\n"
        f"{_intervals(every)}",
        width=9.8,
        height=5.0,
        columns=2,
    )
    for axes, table, (heading, _, idle_s) in zip(all_axes, tables, halves, strict=True):
        _ideal_axes(axes, table, idle_s)
        axes.set_title(heading, fontsize=9.2, color=style.MUTED, loc="left")
    for axes in all_axes:
        axes.set_ylim(min(*every["low"].to_list(), 0) - 0.2, max(*every["high"].to_list(), claims.CLOSE_S) + 0.2)
    all_axes[1].set_ylabel("")
    style.legend_below(figure, all_axes[0])
    return Drawn(
        "figure-ideal",
        "Not in the paper: CMT with an ideal buffer against the clamped equation (3)",
        figure,
        every,
    )


def beyond(tables: Mapping[str, pl.DataFrame], groups: Mapping[str, Sequence[str]]) -> Drawn:
    """Figure 7's middle curve with each remedy against receive-buffer blocking.

    Args:
        tables: By remedy, from `buffers.enough`; "" is CMT as the paper has it.
        groups: By panel, which remedies it shows.
    """
    figure, all_axes = style.new_figure(
        "Figure 7 redrawn with what has been proposed since",
        "The smallest receive buffer from which on CMT beats mSCTP best: with it and with every larger one. "
        "Dotted: 256 kB.\n"
        f"Black: CMT as the paper has it. t_dwell {ex.DWELL_S} s, queues of {ex.QUEUE} packets.\n"
        "A curve that leaves the panel: not even 2 MB. Where curves coincide, the one named last lies on top.\n"
        f"{_intervals(*tables.values())}",
        width=9.8,
        height=4.2 * math.ceil(len(groups) / 2) + 0.6,
        columns=2,
        rows=math.ceil(len(groups) / 2),
    )
    for axes, (heading, names) in zip(all_axes, groups.items(), strict=False):
        base = tables[""].filter(pl.col("curve") == buffers.BEST)
        _buffers(axes, base, style.INK, "as in the paper", "o")
        for name, colour, marker in zip(names, (*style.PATHS, style.VERMILION), style.SERIES_MARKERS, strict=False):
            _buffers(axes, tables[name].filter(pl.col("curve") == buffers.BEST), colour, name, marker)
        _buffer_axes(axes, base)
        axes.set_title(heading, fontsize=9.2, color=style.MUTED, loc="left")
        axes.legend(loc="lower right", frameon=False, fontsize=style.LEGEND_SIZE)
    for axes in all_axes[len(groups) :]:
        axes.set_visible(False)
    table = pl.concat(t.with_columns(remedy=pl.lit(name)) for name, t in tables.items())
    return Drawn("figure-beyond", "Not in the paper: figure 7 with remedies against blocking", figure, table)


def paper_figures(
    received: pl.DataFrame, runs: pl.DataFrame, tables: Mapping[int, pl.DataFrame], plan: ex.Plan
) -> Iterator[Drawn]:
    """Figures 5 to 7, and two of our own beside them."""
    yield figure_5(received)
    yield figure_6(runs, plan)
    yield figure_7(tables[ex.QUEUE])
    yield ideal(runs, plan)
    yield queue_sensitivity(runs, tables, plan)


def _excess(cmt: pl.DataFrame) -> pl.DataFrame:
    """By ratio and dwelling time: seconds beyond equation (3), and what that gives."""
    excess = cmt.with_columns(excess_s=pl.col("transfer_time_s") - pl.col("theory_s"))
    return summarise(excess, ["bw_ratio", "t_dwell_s"], "excess_s").join(
        summarise(cmt, ["bw_ratio", "t_dwell_s"], "theory_s").select("bw_ratio", "t_dwell_s", theory_s="median"),
        on=["bw_ratio", "t_dwell_s"],
    )


def _ideal_axes(axes: Axes, table: pl.DataFrame, idle_s: Callable[[float], float]) -> None:
    """A half of `ideal`."""
    ratios = sorted(table["bw_ratio"].unique())
    axes.axhspan(-claims.CLOSE_S, claims.CLOSE_S, color=style.GRID, alpha=0.7, linewidth=0, zorder=0)
    idle = [ratio * idle_s(ratio) for ratio in ratios]
    axes.plot(ratios, idle, color=style.MUTED, linewidth=1.2, linestyle="--", label="slow start", zorder=1)
    dwells = sorted(table["t_dwell_s"].unique())
    for dwell, colour, marker in zip(dwells, _shades(len(dwells)), "vDP^so", strict=False):
        part = table.filter(pl.col("t_dwell_s") == dwell)
        _points(axes, part, "bw_ratio", colour, f"{dwell} s in the overlap", marker)
    beyond = table.filter(
        pl.col("median").abs() > pl.max_horizontal(claims.CLOSE_SHARE * pl.col("theory_s"), claims.CLOSE_S)
    )
    axes.plot(
        beyond["bw_ratio"].to_numpy(),
        beyond["median"].to_numpy(),
        linestyle="",
        marker="o",
        markersize=12,
        markerfacecolor="none",
        markeredgecolor=style.VERMILION,
        markeredgewidth=1.4,
        label="farther than 1.5 s and 3 %",
    )
    axes.axhline(0, color=style.MUTED, linewidth=0.9)
    axes.set(xlabel="bandwidth ratio", ylabel="beyond equation (3) (s)")


def _intervals(*tables: pl.DataFrame) -> str:
    return intervals_text(row for table in tables for row in table.select("n", "coverage").rows())


def _points(axes: Axes, part: pl.DataFrame, x: str, colour: str, label: str, marker: str) -> None:
    """Medians as a curve, intervals as bars."""
    part = part.sort(x)
    median, low, high = (part[name].to_numpy() for name in ("median", "low", "high"))
    axes.errorbar(
        part[x].to_numpy(),
        median,
        yerr=[median - low, high - median],
        color=colour,
        marker=marker,
        markersize=4.5,
        capsize=2.5,
        elinewidth=1.0,
        label=label or None,
    )


def _buffers(axes: Axes, part: pl.DataFrame, colour: str, label: str, marker: str) -> None:
    """A curve of smallest buffers; it leaves the figure where no buffer is enough, and may come back."""
    part = part.sort("bw_ratio")
    top = 2.0 * ex.IDEAL_KIB
    reached = pl.col("median").is_finite()
    # A curve has gaps where its values are no numbers.
    shown = part.with_columns(
        median=pl.when(reached).then("median").otherwise(float("nan")),
        below=pl.when(reached).then(pl.col("median") - pl.col("low")).otherwise(0.0),
        above=pl.when(reached).then(pl.col("high").clip(upper_bound=top) - pl.col("median")).otherwise(0.0),
    )
    axes.errorbar(
        shown["bw_ratio"].to_numpy(),
        shown["median"].to_numpy(),
        yerr=[shown["below"].to_numpy(), shown["above"].to_numpy()],
        color=colour,
        marker=marker,
        markersize=4.5,
        capsize=2.5,
        elinewidth=1.0,
        label=label,
    )
    for one, other in pairwise(part.select("bw_ratio", "median").iter_rows()):
        if math.isfinite(one[1]) != math.isfinite(other[1]):
            axes.plot([one[0], other[0]], [min(one[1], top), min(other[1], top)], color=colour, linestyle=(0, (2, 2)))


def _buffer_axes(axes: Axes, table: pl.DataFrame) -> None:
    axes.set_yscale("log", base=2)
    axes.set_ylim(12, 1.5 * ex.IDEAL_KIB)
    _kib_ticks(axes.yaxis, (16, 32, 64, 128, 256, 512, 1024, 2048))
    axes.axhline(LIMIT_KIB, color=style.MUTED, linewidth=1.0, linestyle=":", zorder=1)
    axes.set_xticks(sorted(table["bw_ratio"].unique().to_list()))
    axes.set(xlabel="bandwidth ratio", ylabel="smallest receive buffer (kB)")


def _kib_ticks(axis: object, values: Sequence[int]) -> None:
    axis.set_major_locator(FixedLocator(list(values)))  # type: ignore[attr-defined]
    axis.set_minor_locator(NullLocator())  # type: ignore[attr-defined]
    axis.set_major_formatter(FuncFormatter(_plain))  # type: ignore[attr-defined]


def _plain(value: float, _position: int) -> str:
    return f"{value:g}"


def _shades(count: int) -> list[str]:
    """So many colours in order, dark to light."""
    scale = LinearSegmentedColormap.from_list("ordered", style.ORDERED)
    return [to_hex(scale(number / max(count - 1, 1))) for number in range(count)]

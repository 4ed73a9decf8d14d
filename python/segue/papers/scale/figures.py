"""Interruptions, signalling and the share of what an anchor has, against the number of phones."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from segue.figures import style
from segue.papers.common import Drawn
from segue.papers.scale import experiment as ex

X_LABEL = "mobile hosts"
SHIFT = 1.06
"""By this factor each scheme's points are to the right of those before."""
_COLOURS = dict(zip(ex.SCHEMES, style.PATHS, strict=False))
_MARKERS = dict(zip(ex.SCHEMES, style.PATH_MARKERS, strict=False))


def draw(results: ex.Results) -> Iterator[Drawn]:
    """The three figures."""
    yield Drawn(
        "figure-interruption",
        "Interruption by a handover against the number of mobile hosts",
        interruptions(results.runs),
        of_points(
            results.runs,
            [
                "handovers",
                "probed",
                "censored",
                *(f"{name}_{of}" for name in ex.PERCENTILES for of in ("s", "censored")),
                "dead_flows",
            ],
        ),
    )
    yield Drawn(
        "figure-signalling",
        "Updates and signalling at the home agent and the location manager",
        signalling(results.loads),
        of_points(results.loads, ["updates_per_s", "peak_updates_per_s", "signalling_per_s"], "anchor"),
    )
    yield Drawn(
        "figure-saturation",
        "How much of processor and link is in use",
        utilisation(results.loads),
        of_points(results.loads, ["busy", "peak_busy", "link", "bps", "dropped", "longest_stay_s"], "anchor"),
    )


def of_points(rows: pl.DataFrame, columns: list[str], *by: str) -> pl.DataFrame:
    """Means over the runs of each point; of what is true or not, whether it is in any of them."""
    keys = ["scheme", *by, "phones"]
    is_said = {name: rows.schema[name] == pl.Boolean() for name in columns}
    means = [pl.col(name).any() if said else pl.col(name).mean() for name, said in is_said.items()]
    return rows.group_by(keys).agg(means).sort(keys)


def interruptions(runs: pl.DataFrame) -> Figure:
    """Median and 95th percentile, each the mean over the runs of a point."""
    arrows = " Arrows: lower bounds, of what had not ended with the run."
    figure, all_axes = style.new_figure(
        "Interruption by a handover, by the number of mobile hosts",
        "Longest time without new data around each handover, of hosts whose packets come every "
        f"{ex.PROBE_PACING_S * 1e3:.0f} ms.\nMeans over runs; what is not drawn is a point without handovers."
        f"{arrows if runs['p50_censored'].any() or runs['p95_censored'].any() else ''}",
        width=9.6,
        columns=2,
    )
    for axes, column, name in zip(all_axes, ("p50", "p95"), ("median", "95th percentile"), strict=True):
        means = of_points(runs, [f"{column}_s", f"{column}_censored"]).drop_nulls(f"{column}_s")
        for scheme in ex.SCHEMES:
            points = means.filter(pl.col("scheme") == scheme)
            _curve(axes, scheme, points["phones"], points[f"{column}_s"] * 1e3, bounds=points[f"{column}_censored"])
        axes.set(xlabel=X_LABEL, ylabel="interruption (ms)", yscale="log")
        axes.set_title(name, fontsize=9.2, color=style.MUTED, loc="left")
        axes.yaxis.set_major_formatter("{x:g}")
    style.legend_below(figure, all_axes[0])
    return figure


def signalling(loads: pl.DataFrame) -> Figure:
    """Packets of signalling in a second that come to each anchor."""
    figure, all_axes = style.new_figure(
        "Signalling that comes to the home agent and to the location manager",
        "Packets a second in the mean: Binding Updates and what return routability sends through the home agent's\n"
        "tunnel; dynamic DNS updates. Both axes are logarithmic: in proportion to the hosts is a straight line.",
        width=9.6,
        columns=2,
    )
    _anchors(all_axes, loads, "signalling_per_s", 1.0)
    for axes in all_axes:
        axes.set(ylabel="packets a second", yscale="log")
        axes.yaxis.set_major_formatter("{x:g}")
    _legend(figure, all_axes)
    return figure


def utilisation(loads: pl.DataFrame) -> Figure:
    """The share of processor and link in use at each anchor."""
    figure, all_axes = style.new_figure(
        "How much of the home agent and of the location manager is in use",
        "Solid: the share of time for which the processor is busy. Dashed: the share of the link's rate that comes\n"
        "in. At 100 % queues are full, and what comes more is lost.",
        width=9.6,
        columns=2,
    )
    _anchors(all_axes, loads, "busy", 100.0)
    _anchors(all_axes, loads, "link", 100.0, dashed=True)
    for axes in all_axes:
        axes.axhline(100, color=style.LOST, linewidth=1.0)
        axes.set(ylabel="in use (%)", yscale="log")
        axes.yaxis.set_major_formatter("{x:g}")
    _legend(figure, all_axes)
    return figure


def _anchors(all_axes: list[Axes], loads: pl.DataFrame, column: str, scale: float, *, dashed: bool = False) -> None:
    for axes, (role, name) in zip(all_axes, ex.ANCHORS.items(), strict=True):
        for scheme in ex.SCHEMES:
            points = of_points(loads, [column], "anchor").filter(
                (pl.col("scheme") == scheme) & (pl.col("anchor") == role) & (pl.col(column) > 0)
            )
            if not points.is_empty():
                _curve(axes, scheme, points["phones"], points[column] * scale, dashed=dashed)
        axes.set(xlabel=X_LABEL)
        axes.set_title(name, fontsize=9.2, color=style.MUTED, loc="left")


def _curve(
    axes: Axes, scheme: str, x: pl.Series, y: pl.Series, *, dashed: bool = False, bounds: pl.Series | None = None
) -> None:
    # curves that coincide stay visible
    shift = SHIFT ** (list(ex.SCHEMES).index(scheme) - (len(ex.SCHEMES) - 1) / 2)
    axes.plot(
        x * shift,
        y,
        color=_COLOURS[scheme],
        marker=_MARKERS[scheme],
        markersize=5,
        linestyle=(0, (4, 3)) if dashed else "-",
        label="_" if dashed else ex.SCHEMES[scheme],
    )
    if bounds is not None:
        marked = [(at, value) for at, value, bound in zip(x * shift, y, bounds, strict=True) if bound]
        style.mark_bounds(axes, marked, _COLOURS[scheme])
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _legend(figure: Figure, all_axes: list[Axes]) -> None:
    """One legend of what either panel has."""
    known: dict[str, Artist] = {}
    for axes in all_axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    ordered = [name for name in ex.SCHEMES.values() if name in known]
    figure.legend(
        handles=[known[name] for name in ordered],
        labels=ordered,
        loc="outside lower center",
        ncols=len(ordered),
        frameon=False,
        fontsize=style.LEGEND_SIZE,
    )

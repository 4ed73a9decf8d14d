"""TSN against time, coloured by path."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from segue.figures import style
from segue.figures.sequence import Switch, sender_of


def tsn_against_time(
    packets: pl.DataFrame, switches: list[Switch], *, title: str, subtitle: str, in_bytes: bool = False
) -> Figure:
    """Every DATA chunk that the sender sends: segment number from the first on, coloured by destination.

    With `in_bytes`, sequence numbers count bytes, as TCP's do.

    Points are drawn as an image in SVG too: a run may have hundreds of thousands.
    """
    sender = sender_of(packets)
    data = packets.filter(pl.col("kind") == "DATA").with_columns(time_s=pl.col("time_ns") / 1e9)
    sent = data.filter((pl.col("node") == sender) & (pl.col("action") == "sent"))
    initial = sent["tsn"][0]
    number = _number(initial) / 1e6 if in_bytes else _number(initial)
    sent = sent.with_columns(number=number)
    figure, [axes] = style.new_figure(title, subtitle, height=4.4)
    for index, (key, path) in enumerate(sent.group_by("destination", maintain_order=True)):
        axes.plot(
            path["time_s"],
            path["number"],
            style.PATH_MARKERS[index % len(style.PATH_MARKERS)],
            color=style.PATHS[index % len(style.PATHS)],
            markersize=2.4,
            markeredgewidth=0,
            rasterized=True,
            label=f"sent to {key[0]}",
        )
    lost = data.filter(pl.col("action") == "dropped").with_columns(number=number)
    if not lost.is_empty():
        axes.plot(
            lost["time_s"],
            lost["number"],
            "x",
            color=style.LOST,
            markersize=4,
            rasterized=True,
            label=f"lost ({lost.height})",
        )
    if len(switches) <= 60:
        for switch in switches:
            axes.axvline(switch.first_new_s, color=style.MUTED, linewidth=0.5, linestyle=(0, (4, 3)), zorder=1)
    axes.set(xlabel="time (s)", ylabel="offset in the stream (MB)" if in_bytes else "segment number")
    axes.set_xlim(left=0)
    axes.legend(loc="upper left", markerscale=2.5, frameon=False, fontsize=style.LEGEND_SIZE)
    return figure


def _number(initial: int) -> pl.Expr:
    """Segments since the first, over the wrap of the TSN (RFC 9260 section 1.6)."""
    return (pl.col("tsn").cast(pl.Int64) - initial) % 2**32

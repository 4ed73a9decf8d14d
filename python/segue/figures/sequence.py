"""Segments against time around a handover, as the sender sees them."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from segue.figures import style
from segue.figures.flow import FlowTrace, Switch

MODULUS = 100
"""Segment numbers are shown modulo this (Fu et al. 2005, figures 4, 6 and 8)."""

BEFORE_S = 0.3
"""Shown before the last segment to the old path."""
AFTER_S = 0.7
"""Shown after the last retransmission."""
LONGEST_REPAIR_S = 10.0
"""Retransmissions later than this have nothing to do with the switch; figure 8's take 6 s."""


def span_around(trace: FlowTrace, switch: Switch) -> tuple[float, float]:
    """What to show of a switch, seconds: from a little before it until its losses have been sent again."""
    again = trace.data.filter(
        pl.col("retransmission") & pl.col("time_s").is_between(switch.last_old_s, switch.last_old_s + LONGEST_REPAIR_S)
    )
    repaired = float(again["time_s"][-1]) if again.height else switch.first_new_s
    return switch.last_old_s - BEFORE_S, max(repaired, switch.first_new_s) + AFTER_S


def segment_sequence(
    trace: FlowTrace,
    switch: Switch,
    *,
    start_s: float,
    end_s: float,
    title: str,
    subtitle: str,
    names: dict[str, str] | None = None,
) -> Figure:
    """Segments against time: data by path, losses, and acknowledgements by path.

    Segments are numbered modulo 100; of TCP the offset in the stream is shown.

    Args:
        trace: The flow.
        switch: The handover shown.
        start_s: Left end, seconds.
        end_s: Right end, seconds.
        title: Title.
        subtitle: What to see.
        names: What to call addresses.
    """
    figure, [axes] = style.new_figure(title, subtitle, height=4.9)
    draw_sequence(axes, trace, switch, start_s=start_s, end_s=end_s, names=names)
    style.legend_below(figure, axes)
    return figure


def draw_sequence(
    axes: Axes,
    trace: FlowTrace,
    switch: Switch,
    *,
    start_s: float,
    end_s: float,
    names: dict[str, str] | None = None,
) -> None:
    """What `segment_sequence` shows."""
    names = names or {}
    number = pl.col("number") / 1000 if trace.in_bytes else pl.col("number") % MODULUS
    within = pl.col("time_s").is_between(start_s, end_s)
    sent = trace.data.filter(within).with_columns(number=number)
    acks = trace.acks.filter(within).with_columns(number=number)
    if trace.in_bytes and sent.height:
        # Acknowledgements before the first data of the stream, or of what is not shown, would flatten the rest.
        acks = acks.filter(pl.col("number").is_between(sent["number"].min(), sent["number"].max()))
    for index, address in enumerate((switch.old, switch.new)):
        name = names.get(address, address)
        _draw_path(axes, index, name, sent.filter(pl.col("path") == address), acks.filter(pl.col("path") == address))
    lost = sent.filter(pl.col("lost"))
    if not lost.is_empty():
        axes.plot(
            lost["time_s"],
            lost["number"],
            "x",
            color=style.LOST,
            markersize=6.5,
            markeredgewidth=1.5,
            label="of these, lost",
            zorder=4,
        )
    if start_s <= switch.last_old_s <= end_s:
        style.mark_time(axes, switch.last_old_s, f"$t_1$ = {switch.last_old_s:.3f} s")
    if start_s <= switch.first_new_s <= end_s:
        style.mark_time(axes, switch.first_new_s, f"$t_2$ = {switch.first_new_s:.3f} s", side="right")
    axes.set(xlabel="time (s)", xlim=(start_s, end_s))
    if trace.in_bytes:
        axes.set_ylabel("offset in the stream (kB)")
    else:
        axes.set(ylabel=f"segment number mod {MODULUS}", ylim=(-3, MODULUS + 2))


def _draw_path(axes: Axes, index: int, name: str, sent: pl.DataFrame, acks: pl.DataFrame) -> None:
    colour, marker = style.PATHS[index], style.PATH_MARKERS[index]
    for again, label in ((False, f"data over {name}"), (True, f"retransmission over {name}")):
        part = sent.filter(pl.col("retransmission") == again)
        if part.is_empty():
            continue
        axes.plot(
            part["time_s"],
            part["number"],
            marker,
            markersize=7.5 if again else 4.6,
            markerfacecolor="none" if again else colour,
            markeredgecolor=colour,
            markeredgewidth=1.5 if again else 0.6,
            label=label,
            zorder=3,
        )
    if not acks.is_empty():
        axes.plot(
            acks["time_s"],
            acks["number"],
            linestyle="none",
            marker="_" if index == 0 else "|",
            markersize=6,
            markeredgewidth=1.2,
            color=colour,
            alpha=0.75,
            label=f"ack over {name}",
            zorder=2,
        )

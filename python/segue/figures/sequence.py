"""Segments against time around a handover, as the sender sees them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from matplotlib.figure import Figure

from segue.figures import style

MODULUS = 100
"""Segment numbers are shown modulo this (000, figures 4, 6 and 8)."""

BEFORE_S = 0.3
"""Shown before the last segment to the old path."""
AFTER_S = 0.7
"""Shown after the last retransmission."""
LONGEST_REPAIR_S = 10.0
"""Retransmissions later than this have nothing to do with the switch; figure 8's take 6 s."""


@dataclass(frozen=True, slots=True)
class Switch:
    """Where the sender's new data moved.

    Attributes:
        old: Address of the old path.
        new: Address of the new path.
        last_old_s: When new data was last sent to the old path (t1), seconds.
        first_new_s: When data was first sent to the new path (t2), seconds.
    """

    old: str
    new: str
    last_old_s: float
    first_new_s: float


def find_switches(packets: pl.DataFrame, sender: str) -> list[Switch]:
    """Every move of new data from one destination to another, in order, from the data that `sender` sends."""
    sent = _data_sent(packets, sender).filter(~pl.col("retransmission"))
    moves = sent.with_columns(old=pl.col("destination").shift(), last_old_s=pl.col("time_s").shift()).filter(
        pl.col("old") != pl.col("destination")
    )
    all_sent = _data_sent(packets, sender)
    switches = []
    for row in moves.iter_rows(named=True):
        # A retransmission may have gone to the new path before new data did.
        first = all_sent.filter(
            (pl.col("destination") == row["destination"]) & (pl.col("time_s") >= row["last_old_s"])
        )["time_s"].min()
        assert isinstance(first, float)
        switches.append(Switch(row["old"], row["destination"], row["last_old_s"], first))
    return switches


def span_around(packets: pl.DataFrame, switch: Switch) -> tuple[float, float]:
    """What to show of a switch, seconds: from a little before it until its losses have been sent again."""
    time_s = pl.col("time_ns") / 1e9
    again = packets.filter(
        (pl.col("action") == "sent")
        & pl.col("retransmission")
        & time_s.is_between(switch.last_old_s, switch.last_old_s + LONGEST_REPAIR_S)
    )
    repaired = float(again["time_ns"][-1]) / 1e9 if again.height else switch.first_new_s
    return switch.last_old_s - BEFORE_S, max(repaired, switch.first_new_s) + AFTER_S


def sender_of(packets: pl.DataFrame) -> str:
    """The node that sends the most DATA.

    Raises:
        ValueError: If no node sends any.
    """
    nodes = packets.filter((pl.col("action") == "sent") & (pl.col("kind") == "DATA"))["node"].value_counts(sort=True)
    if nodes.is_empty():
        raise ValueError("no DATA was sent")
    return str(nodes["node"][0])


def segment_sequence(
    packets: pl.DataFrame,
    switch: Switch,
    *,
    start_s: float,
    end_s: float,
    title: str,
    subtitle: str,
    names: dict[str, str] | None = None,
) -> Figure:
    """Segment number modulo 100 against time: data by destination, losses, and acknowledgements by path.

    Args:
        packets: `Run.packets`.
        switch: The handover shown.
        start_s: Left end, seconds.
        end_s: Right end, seconds.
        title: Title.
        subtitle: What to see.
        names: What to call addresses.
    """
    names = names or {}
    sender = sender_of(packets)
    initial = _data_sent(packets, sender)["tsn"][0]
    seconds = pl.col("time_ns") / 1e9
    # The cumulative ack of a first SACK may lie before the initial TSN.
    number = (pl.col("tsn").cast(pl.Int64) - initial) % MODULUS
    window = packets.with_columns(time_s=seconds, number=number).filter(pl.col("time_s").is_between(start_s, end_s))
    sent = window.filter((pl.col("node") == sender) & (pl.col("action") == "sent") & (pl.col("kind") == "DATA"))
    lost_ids = packets.filter((pl.col("action") == "dropped") & (pl.col("kind") == "DATA"))["packet_id"].unique()
    acks = window.filter((pl.col("node") == sender) & (pl.col("action") == "received") & (pl.col("kind") == "SACK"))
    figure, [axes] = style.new_figure(title, subtitle, height=4.9)
    for index, address in enumerate((switch.old, switch.new)):
        colour, marker = style.PATHS[index], style.PATH_MARKERS[index]
        name = names.get(address, address)
        own = sent.filter(pl.col("destination") == address)
        for again, label in ((False, f"data to {name}"), (True, f"retransmission to {name}")):
            part = own.filter(pl.col("retransmission") == again)
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
        own_acks = acks.filter(pl.col("source") == address)
        if not own_acks.is_empty():
            axes.plot(
                own_acks["time_s"],
                own_acks["number"],
                linestyle="none",
                marker="_" if index == 0 else "|",
                markersize=6,
                markeredgewidth=1.2,
                color=colour,
                alpha=0.75,
                label=f"ack from {name}",
                zorder=2,
            )
    lost = sent.filter(pl.col("packet_id").is_in(lost_ids.implode()))
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
    axes.set(
        xlabel="time (s)",
        ylabel=f"segment number mod {MODULUS}",
        xlim=(start_s, end_s),
        ylim=(-3, MODULUS + 2),
    )
    style.legend_below(figure, axes)
    return figure


def _data_sent(packets: pl.DataFrame, sender: str) -> pl.DataFrame:
    return packets.filter(
        (pl.col("node") == sender) & (pl.col("action") == "sent") & (pl.col("kind") == "DATA")
    ).with_columns(time_s=pl.col("time_ns") / 1e9)

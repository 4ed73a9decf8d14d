"""Facts of a traced run that claims S4 to S6 are about."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from segue.figures.flow import Switch, main_trace
from segue.recorded import Recorded


@dataclass(frozen=True, slots=True)
class Send:
    """One transmission of a segment.

    Attributes:
        offset_s: Seconds after the first.
        path: "old" or "new".
        fate: "lost"; "acknowledged", if that reached the sender before it sent the segment again; "unacknowledged", if
            the segment arrived and what acknowledged it was lost; else "arrived".
    """

    offset_s: float
    path: str
    fate: str


@dataclass(frozen=True, slots=True)
class Repair:
    """How the first segment that was lost was repaired.

    Attributes:
        sends: Its transmissions in order.
        window: Segments sent for the first time from its first transmission until it was sent again, itself among them.
        lost_in_window: How many of those transmissions were lost.
    """

    sends: tuple[Send, ...]
    window: int
    lost_in_window: int


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """What claims ask of a traced run.

    Attributes:
        lost: Packets lost to handover in the whole run.
        switches: Handovers of the data.
        switch_times_s: When data first went to the new address, in each.
        first_flight_packets: Packets sent to the new address before the first of them was acknowledged.
        second_flight_packets: Packets sent from then on before the first of those was acknowledged.
        repair: Of the first segment lost, if any was.
    """

    lost: int
    switches: int
    switch_times_s: tuple[float, ...]
    first_flight_packets: int | None
    second_flight_packets: int | None
    repair: Repair | None


def facts(run: Recorded) -> TraceFacts:
    """Facts of `run`, which must have frames."""
    trace = main_trace(run)
    if trace is None:
        return TraceFacts(0, 0, (), None, None, None)
    sender, switches = trace.sender, trace.switches
    packets = run.packets.with_columns(time_s=pl.col("time_ns") / 1e9)
    first = switches[0] if switches else None
    flights = (None, None) if first is None else _flights(packets, sender, first)
    return TraceFacts(
        lost=run.metrics.packets_lost_to_handover,
        switches=len(switches),
        switch_times_s=tuple(switch.first_new_s for switch in switches),
        first_flight_packets=flights[0],
        second_flight_packets=flights[1],
        repair=_repair(packets, sender),
    )


def _flights(packets: pl.DataFrame, sender: str, switch: Switch) -> tuple[int | None, int | None]:
    """Packets of the first two flights to the new address; a flight ends when its first packet is acknowledged."""
    at_sender = packets.filter((pl.col("node") == sender) & (pl.col("time_s") >= switch.first_new_s))
    sent = at_sender.filter(
        (pl.col("action") == "sent") & (pl.col("kind") == "DATA") & (pl.col("destination") == switch.new)
    )
    acks = at_sender.filter((pl.col("action") == "received") & (pl.col("kind") == "SACK"))
    first = _flight(sent, acks, switch.first_new_s)
    if first is None:
        return None, None
    count, end_s = first
    second = _flight(sent, acks, end_s)
    return count, None if second is None else second[0]


def _flight(sent: pl.DataFrame, acks: pl.DataFrame, start_s: float) -> tuple[int, float] | None:
    """Packets of the flight that begins at `start_s`, and when it ends, seconds; None if it does not end."""
    mine = sent.filter(pl.col("time_s") >= start_s)
    if mine.is_empty():
        return None
    acked = acks.filter((pl.col("time_s") > mine["time_s"][0]) & _at_or_after(mine["tsn"][0]))
    if acked.is_empty():
        return None
    end_s = float(acked["time_s"][0])
    return mine.filter(pl.col("time_s") < end_s).height, end_s


def _repair(packets: pl.DataFrame, sender: str) -> Repair | None:
    lost = packets.filter((pl.col("action") == "dropped") & (pl.col("kind") == "DATA"))
    if lost.is_empty():
        return None
    sent = packets.filter((pl.col("node") == sender) & (pl.col("action") == "sent") & (pl.col("kind") == "DATA"))
    is_lost = pl.col("packet_id").is_in(lost["packet_id"].unique().implode())
    # The first of those lost to be sent, not the first to be dropped.
    order = sent.filter(is_lost).head(1)
    if order.is_empty():
        return None
    tsn, start_s, old = order["tsn"][0], float(order["time_s"][0]), order["destination"][0]
    mine = sent.filter((pl.col("tsn") == tsn) & (pl.col("time_s") >= start_s))
    ends = [*mine["time_s"].to_list()[1:], float("inf")]
    acks = packets.filter((pl.col("kind") == "SACK") & _at_or_after(tsn))
    sends = tuple(
        Send(
            row["time_s"] - start_s,
            "old" if row["destination"] == old else "new",
            _fate(packets.filter(pl.col("packet_id") == row["packet_id"]), acks, sender, end_s),
        )
        for row, end_s in zip(mine.iter_rows(named=True), ends, strict=True)
    )
    window = sent.filter(
        _at_or_after(tsn) & ~pl.col("retransmission") & pl.col("time_s").is_between(start_s, ends[0], closed="left")
    )
    return Repair(sends, window.height, window.filter(is_lost).height)


def _at_or_after(tsn: int) -> pl.Expr:
    """Serial arithmetic (RFC 9260 section 1.6)."""
    return ((pl.col("tsn").cast(pl.Int64) - tsn) % 2**32) < 2**31


def _fate(packet: pl.DataFrame, acks: pl.DataFrame, sender: str, end_s: float) -> str:
    """What became of a transmission, whose segment was sent again at `end_s`; `acks` are those that cover it."""
    arrived = packet.filter((pl.col("action") == "received") & (pl.col("node") != sender))
    if arrived.is_empty():
        return "lost"
    since = acks.filter((pl.col("time_s") >= arrived["time_s"][0]) & (pl.col("time_s") < end_s))
    if ((since["action"] == "received") & (since["node"] == sender)).any():
        return "acknowledged"
    return "unacknowledged" if (since["action"] == "dropped").any() else "arrived"

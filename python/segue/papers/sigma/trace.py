"""Facts of a traced run that claims S4 to S6 are about."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from segue.plot.sequence import Switch, find_switches, sender_of
from segue.run import Run


@dataclass(frozen=True, slots=True)
class Send:
    """One transmission of a segment: seconds after the first, and "old" or "new" path."""

    offset_s: float
    path: str


@dataclass(frozen=True, slots=True)
class Repair:
    """How the first segment lost to a handover was repaired.

    Attributes:
        sends: Its transmissions in order.
        lost_in_window: Packets lost to the handover from its first transmission to its last.
    """

    sends: tuple[Send, ...]
    lost_in_window: int


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """What claims ask of a traced run.

    Attributes:
        lost: Packets lost to handover in the whole run.
        switches: Moves of new data from one address to another.
        switch_times_s: When data first went to the new address, in each.
        first_window_packets: cwnd of the new path at that moment, in MTU.
        second_window_packets: cwnd when the first window sent there has been acknowledged, in MTU.
        repair: Of the first segment lost, if any was.
    """

    lost: int
    switches: int
    switch_times_s: tuple[float, ...]
    first_window_packets: float | None
    second_window_packets: float | None
    repair: Repair | None


def facts(run: Run) -> TraceFacts:
    """Facts of `run`, which must have frames."""
    if run.packets.filter(pl.col("kind") == "DATA").is_empty():
        return TraceFacts(0, 0, (), None, None, None)
    sender = sender_of(run.packets)
    packets = run.packets.with_columns(time_s=pl.col("time_ns") / 1e9)
    switches = find_switches(run.packets, sender)
    first = switches[0] if switches else None
    windows = (None, None) if first is None else _windows(packets, run.windows, sender, first)
    return TraceFacts(
        lost=run.metrics.packets_lost_to_handover,
        switches=len(switches),
        switch_times_s=tuple(switch.first_new_s for switch in switches),
        first_window_packets=windows[0],
        second_window_packets=windows[1],
        repair=_repair(packets, sender),
    )


def _windows(
    packets: pl.DataFrame, windows: pl.DataFrame, sender: str, switch: Switch
) -> tuple[float | None, float | None]:
    """Cwnd of the new path when it begins, and once its first window has been acknowledged, in MTU."""
    mtu = packets.filter((pl.col("node") == sender) & (pl.col("kind") == "DATA"))["length_bytes"].max()
    path = windows.filter((pl.col("node") == sender) & (pl.col("destination") == switch.new)).with_columns(
        time_s=pl.col("time_ns") / 1e9
    )
    at_start = _value_at(path, switch.first_new_s)
    if at_start is None or not isinstance(mtu, int):
        return None, None
    # cwnd counts user data or packets, as the implementation has it: round to whole packets.
    first_window = round(at_start / mtu)
    sent = packets.filter(
        (pl.col("node") == sender)
        & (pl.col("action") == "sent")
        & (pl.col("kind") == "DATA")
        & (pl.col("destination") == switch.new)
        & (pl.col("time_s") >= switch.first_new_s)
    ).head(max(first_window, 1))
    if sent.is_empty():
        return float(first_window), None
    last_tsn = sent["tsn"][-1]
    acked = packets.filter(
        (pl.col("node") == sender)
        & (pl.col("action") == "received")
        & (pl.col("kind") == "SACK")
        & (pl.col("time_s") > switch.first_new_s)
        # Serial arithmetic: at or after the last TSN of the window (RFC 9260 section 1.6).
        & (((pl.col("tsn").cast(pl.Int64) - last_tsn) % 2**32) < 2**31)
    )
    if acked.is_empty():
        return float(first_window), None
    after = _value_at(path, acked["time_s"][0])
    return float(first_window), None if after is None else float(round(after / mtu))


def _value_at(path: pl.DataFrame, time_s: float) -> float | None:
    known = path.filter(pl.col("time_s") <= time_s)
    return None if known.is_empty() else float(known["cwnd_bytes"][-1])


def _repair(packets: pl.DataFrame, sender: str) -> Repair | None:
    lost = packets.filter((pl.col("action") == "dropped") & (pl.col("kind") == "DATA"))
    if lost.is_empty():
        return None
    sent = packets.filter((pl.col("node") == sender) & (pl.col("action") == "sent") & (pl.col("kind") == "DATA"))
    # The first of those lost to be sent, not the first to be dropped.
    order = sent.filter(pl.col("packet_id").is_in(lost["packet_id"].unique().implode())).head(1)
    if order.is_empty():
        return None
    tsn, start = order["tsn"][0], order["time_s"][0]
    mine = sent.filter((pl.col("tsn") == tsn) & (pl.col("time_s") >= start))
    old = mine["destination"][0]
    end = mine["time_s"][-1]
    sends = tuple(
        Send(row["time_s"] - start, "old" if row["destination"] == old else "new") for row in mine.iter_rows(named=True)
    )
    in_window = lost.filter(pl.col("time_s").is_between(start, end + 1.0)).height
    return Repair(sends, in_window)

"""One flow of a trace: its data by path, its acknowledgements, and where the handover table has it move."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from segue.metrics import Flow, Handover, Metrics
from segue.recorded import Recorded

ACKNOWLEDGEMENTS = ("SACK", "NR-SACK", "ACK")
SAME_TIME_NS = 1000
"""Times of the metrics are seconds with a fraction, those of frames whole nanoseconds."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A handover, as the sender of the data sees it.

    Attributes:
        old: Address of the moving host before.
        new: Its address after.
        last_old_s: When new data was last sent over the old path (t1), seconds.
        first_new_s: When data was first sent over the new path (t2), seconds.
        signalling_s: From when until when its signalling was under way, as far as the handover table has it, seconds.
    """

    old: str
    new: str
    last_old_s: float
    first_new_s: float
    signalling_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class FlowTrace:
    """What a trace has of one direction of a connection.

    Attributes:
        connection: Its number in the frames.
        sender: Node that sends the data.
        receiver: Node that gets it; empty if nothing arrived.
        mover: Node whose address names a path, whichever end it is.
        data: A row per transmission of a segment: `time_s`, `end_s` (arrival or loss, null if neither), `packet_id`,
            `number` (segments, or bytes of TCP, since the first), `tsn`, `path`, `retransmission`, `lost`,
            `length_bytes`.
        acks: A row per acknowledgement that the sender got: `time_s`, `number`, `path`.
        switches: Its rows of the handover table, in order.
        in_bytes: Numbers count bytes.
    """

    connection: int
    sender: str
    receiver: str
    mover: str
    data: pl.DataFrame
    acks: pl.DataFrame
    switches: list[Switch]
    in_bytes: bool

    @property
    def last_s(self) -> float:
        """When the last of it was sent or acknowledged, seconds."""
        times = [frame["time_s"].max() for frame in (self.data, self.acks)]
        return max(time for time in times if isinstance(time, float))


def directions(packets: pl.DataFrame) -> pl.DataFrame:
    """Directions in which data was sent: `connection`, `sender`, `receiver`, `begin_ns`, `sent` and the `first` packet.

    `receiver` is null if nothing arrived, `sent` how many packets.
    """
    data = packets.filter((pl.col("kind") == "DATA") & pl.col("connection").is_not_null())
    sent = (
        data.filter(pl.col("action") == "sent")
        .group_by("connection", sender="node")
        .agg(begin_ns=pl.col("time_ns").min(), sent=pl.len(), first=pl.col("packet_id").min())
    )
    # Either end of a connection may send.
    ends = data.filter(pl.col("action") == "received").select("connection", receiver="node").unique()
    got = sent.join(ends, on="connection", how="left").filter(pl.col("receiver") != pl.col("sender"))
    return sent.join(
        got.select("connection", "sender", "receiver").unique(["connection", "sender"]),
        on=["connection", "sender"],
        how="left",
    ).sort("begin_ns", "first")


def connections_of(run: Recorded) -> dict[int, int]:
    """Number of the connection in the frames of each flow of the metrics, by its id."""
    known: dict[int, int] = {}
    left = directions(run.packets).to_dicts()
    for flow in run.metrics.flows:
        match = next((row for row in left if _is(row, flow)), None)
        if match is not None:
            left.remove(match)
            known[flow.id] = match["connection"]
    return known


def flow_trace(run: Recorded, flow: Flow, connection: int) -> FlowTrace:
    """The trace of `flow`, which is `connection` in the frames."""
    handovers = [handover for handover in run.metrics.handovers if handover.flow == flow.id]
    return trace_of(run, connection, flow.sender, handovers)


def main_trace(run: Recorded) -> FlowTrace | None:
    """The trace of the flow that sends the most data; `None` if none does."""
    found = directions(run.packets)
    if found.is_empty():
        return None
    row = found.sort("sent", descending=True, maintain_order=True).row(0, named=True)
    numbers = {flow.id for flow in run.metrics.flows if _is(row, flow)}
    handovers = [handover for handover in run.metrics.handovers if handover.flow in numbers]
    return trace_of(run, row["connection"], row["sender"], handovers)


def worst_handover(metrics: Metrics, flow: Flow) -> tuple[int, Handover] | None:
    """The handover of a flow with the longest interruption, with its number among those of the flow."""
    own = [(number, row) for number, row in enumerate(row for row in metrics.handovers if row.flow == flow.id)]
    return max(own, key=lambda one: (one[1].censored, one[1].interruption_s or 0.0), default=None)


def trace_of(run: Recorded, connection: int, sender: str, handovers: Sequence[Handover]) -> FlowTrace:
    """The trace of what `sender` sends over `connection`, with its rows of the handover table."""
    packets = run.packets.filter(pl.col("connection") == connection).with_columns(time_s=pl.col("time_ns") / 1e9)
    others = packets.filter((pl.col("action") == "received") & (pl.col("node") != sender))["node"].unique(
        maintain_order=True
    )
    receiver = str(others[0]) if len(others) else ""
    data = packets.filter(pl.col("kind") == "DATA")
    sent = data.filter((pl.col("node") == sender) & (pl.col("action") == "sent"))
    mover = _mover(run, sent, sender, receiver, handovers)
    paths = _paths(packets, mover, sender)
    ends = (
        data.filter(pl.col("action") != "sent")
        .group_by("packet_id", maintain_order=True)
        .agg(end_s=pl.col("time_s").last(), end_ns=pl.col("time_ns").last(), lost=pl.col("action").last() == "dropped")
    )
    initial = sent["tsn"][0]
    in_bytes = packets.filter(pl.col("kind").is_in(["SACK", "NR-SACK"])).is_empty()
    distance = pl.col("tsn").cast(pl.Int64) - initial
    sent = (
        sent.join(ends, on="packet_id", how="left", maintain_order="left")
        .join(paths, on="packet_id", how="left", maintain_order="left")
        # Segments since the first, over the wrap of the TSN (RFC 9260 section 1.6).
        .with_columns(number=distance % 2**32, lost=pl.col("lost").fill_null(value=False))
        .select(
            "time_s", "end_s", "end_ns", "packet_id", "number", "tsn", "path", "source", "destination",
            "retransmission", "lost", "length_bytes",
        )
    )  # fmt: skip
    acks = (
        packets.filter(
            (pl.col("node") == sender)
            & (pl.col("action") == "received")
            & pl.col("kind").is_in(list(ACKNOWLEDGEMENTS))
            & pl.col("tsn").is_not_null()
        )
        .join(paths, on="packet_id", how="left", maintain_order="left")
        # The cumulative ack of a first SACK may lie before the initial TSN.
        .with_columns(number=(distance + 2**31) % 2**32 - 2**31)
        .select("time_s", "number", "path")
    )
    return FlowTrace(connection, sender, receiver, mover, sent, acks, _switches(sent, handovers), in_bytes)


def _is(row: dict[str, object], flow: Flow) -> bool:
    begin_ns = row["begin_ns"]
    assert isinstance(begin_ns, int)
    return flow.begin_s == -1 or (
        row["sender"] == flow.sender
        and abs(begin_ns - flow.begin_s * 1e9) < SAME_TIME_NS
        and (not flow.receiver or row["receiver"] in {flow.receiver, None})
    )


def _mover(run: Recorded, sent: pl.DataFrame, sender: str, receiver: str, handovers: Sequence[Handover]) -> str:
    """The end whose address names a path: the one that moves; else the one with more addresses; else the receiver."""
    ends = [receiver or sender, sender]
    hosts = [handover.host for handover in handovers]
    moving = set(run.positions["node"].unique())
    addresses = [sent["destination"].n_unique(), sent["source"].n_unique()]
    return max(ends, key=lambda end: (hosts.count(end), end in moving, addresses[ends.index(end)]))


def _paths(packets: pl.DataFrame, mover: str, sender: str) -> pl.DataFrame:
    """`packet_id` and `path`: the address that `mover` had or was sent to, by its own rows where it has one.

    On the way a packet may be in a tunnel, or not yet.
    """
    sends = pl.col("action") == "sent"
    own = packets.filter(pl.col("node") == mover).with_columns(
        path=pl.when(sends).then("source").otherwise("destination"), rank=pl.lit(0)
    )
    # Data that the mover would have got, and its sender's if not even a loss is known.
    towards = "source" if mover == sender else "destination"
    rest = packets.filter(pl.col("node") != mover).with_columns(
        path=pl.when(pl.col("node") == sender)
        .then(pl.when(sends).then(towards).otherwise("source" if mover != sender else "destination"))
        .otherwise(towards),
        rank=pl.when(sends).then(2).otherwise(1),
    )
    both = pl.concat([own.select("packet_id", "path", "rank"), rest.select("packet_id", "path", "rank")])
    return both.sort("rank", maintain_order=True).unique("packet_id", keep="first", maintain_order=True).drop("rank")


def _switches(data: pl.DataFrame, handovers: Sequence[Handover]) -> list[Switch]:
    """Rows of the handover table by what the sender did: when it left the old path, and when it took the new one."""
    sent = {str(key[0]): part["time_s"].to_list() for key, part in data.group_by("path")}
    fresh = {
        str(key[0]): part["time_s"].to_list() for key, part in data.filter(~pl.col("retransmission")).group_by("path")
    }
    arrivals = data.drop_nulls("end_ns").sort("end_ns", maintain_order=True).select("end_ns", "time_s").rows()
    arrived = [end for end, _ in arrivals]
    found = []
    for handover in handovers:
        old, new = handover.from_address or "", handover.to_address or ""
        at = bisect_left(arrived, handover.time_s * 1e9 - SAME_TIME_NS)
        known = at < len(arrived) and arrived[at] <= handover.time_s * 1e9 + SAME_TIME_NS
        reached_s = arrivals[at][1] if known else handover.time_s
        before = fresh.get(old, [])
        count = bisect_right(before, reached_s)
        last_old_s = before[count - 1] if count else reached_s
        # A retransmission may have gone over the new path before new data did.
        after = sent.get(new, [])
        first = bisect_left(after, last_old_s)
        first_new_s = after[first] if first < len(after) else reached_s
        since_s = handover.parts.since_s if handover.parts else None
        told = [time for time in (since_s, handover.begin_s, handover.end_s) if time is not None]
        found.append(Switch(old, new, last_old_s, first_new_s, tuple(told)))
    return found

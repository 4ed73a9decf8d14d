"""Metrics of a run, as the simulator defines them (`segue_sim::output`, `segue_capture::handover`)."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Handover:
    """One handover, as the data shows it.

    Attributes:
        time_s: When the first data segment arrived over the new path, seconds.
        from_address: Address of the old path (`from` in JSON).
        to_address: Address of the new path (`to` in JSON).
        latency_s: Last data segment received over the old path to the first over the new one, seconds (000 section
            VI-A). Negative while the old path still drains after the new one has begun.
        interruption_s: Longest time without new data around the handover, seconds.
        lost_packets: Data packets lost to this handover.
    """

    time_s: float
    from_address: str
    to_address: str
    latency_s: float
    interruption_s: float
    lost_packets: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and extremes of a set of values, in their unit."""

    median: float
    min: float
    max: float


@dataclass(frozen=True, slots=True)
class HandoffParts:
    """What a handoff consists of: 002 section 4. Seconds.

    Attributes:
        soft: Whether the old network was still in reach when others were told of the new address.
        since_s: When T_n begins, of simulated time: the old network goes out of reach, or, in a soft handoff, the new
            one comes into it.
        t_d_s: Detection, until the router advertisement from which the new address was formed, or the decision to use
            one that was there.
        t_c_s: Configuration, until the first message that tells of the new address.
        t_r_s: Registration, until the last correspondent has it; `None` if it did not end.
        t_n_s: Their sum (equation 1).
        first_data_s: From `since_s` to the first data packet over the new interface.
        t_a_s: Adaptation time (section 5), from there.
        threshold_bps: Mean throughput of the new interface, by the same method: its threshold.
    """

    soft: bool
    since_s: float
    t_d_s: float
    t_c_s: float
    t_r_s: float | None
    t_n_s: float | None
    first_data_s: float | None
    t_a_s: float | None
    threshold_bps: float | None


@dataclass(frozen=True, slots=True)
class Handoff:
    """One handoff of a mobility shim (Mobile IPv6, ILNPv6), by its signalling.

    Attributes:
        host: The host.
        begin_s: When the first message left that tells of the new address, seconds of simulated time.
        end_s: When the last was acknowledged; `None` if the handoff did not end.
        handoff_delay_s: The time in between (004 section 5.4).
        from_address: Address used before (`from` in JSON), if there was one.
        to_address: Address used after (`to` in JSON).
        failed: Those who could not be told.
        interruption_s: Longest time without new data around it, seconds, if there was a flow.
        parts: What it consists of.
    """

    host: str
    begin_s: float
    end_s: float | None
    handoff_delay_s: float | None
    from_address: str | None
    to_address: str
    failed: tuple[str, ...]
    interruption_s: float | None
    parts: HandoffParts | None


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction of a TCP connection; of an SCTP association, where the mobility scheme is a shim.

    Packets are those with data; of SCTP, DATA chunks.

    Attributes:
        sender: Host that sends (`from` in JSON).
        receiver: Host that receives (`to` in JSON); empty if nothing arrived.
        transport: "tcp" or "sctp".
        source_port: Source port.
        destination_port: Destination port.
        begin_s: When its first data was sent, seconds of simulated time.
        transferred_bytes: Bytes that arrived, each counted once.
        throughput_bps: Those, in bits, by the time from the first data to the end of the run, bit/s.
        packets_sent: Retransmissions included.
        retransmissions: Packets whose first byte had been sent before (004 section 6.1.2).
        lost_packets: Packets that did not reach the receiver's transport; those that came to a stale locator among
            them (004 section 6.1.3).
        spurious_retransmissions: Retransmissions of which an earlier copy had arrived, or arrived later.
        in_flight_packets: Packets that were under way when the run ended.
        lost_by_cause: Counts by cause.
        interruption_s: Longest time without new data around a handoff, seconds; `None` without one.
        longest_gap_s: Longest time between two arrivals of new data, handoff or not, seconds.
        received_bytes_by_second: New bytes that arrived, by second of simulated time.
    """

    sender: str
    receiver: str
    transport: str
    source_port: int
    destination_port: int
    begin_s: float
    transferred_bytes: int
    throughput_bps: float
    packets_sent: int
    retransmissions: int
    lost_packets: int
    spurious_retransmissions: int
    in_flight_packets: int
    lost_by_cause: dict[str, int]
    interruption_s: float | None
    longest_gap_s: float
    received_bytes_by_second: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Count:
    """Packets, and their bytes from the IPv6 header on."""

    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Warning:
    """What a run says of itself that its figures do not.

    Attributes:
        kind: "never-served", "scheme-without-effect", "key-without-effect", "out-of-coverage", "fallback", "overload"
            or "no-route".
        host: The host concerned, if it is one.
        flow: Number of the flow concerned, if it is one.
        text: In a line.
    """

    kind: str
    host: str | None
    flow: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Signalling:
    """Signalling of mobility that hosts and routers sent, each packet counted where it is sent first.

    Attributes:
        packets: All of it.
        bytes: Its bytes from the IPv6 header on.
        by_kind: By kind of message: "RA", "BU", "LU" and so on.
    """

    packets: int
    bytes: int
    by_kind: dict[str, Count]


@dataclass(frozen=True, slots=True)
class Multipath:
    """Counters of concurrent multipath transfer, of all hosts together.

    Attributes:
        stale_sacks: SACKs that another one with the same cumulative TSN ack overtook (003 section III-A, second
            problem).
        overtaken_sacks: SACKs that one with a later cumulative TSN ack overtook.
        ambiguous_round_trips: Round trips that ended with a SACK over another path (003 section III-A, third problem).
        round_trips_refused: Of them, those that were not taken for a measurement.
        pseudo_cumulative_acks: Times that a cwnd could grow while the cumulative TSN ack stood still (CUC).
        missing_reports_withheld: Missing reports that were not counted (SFR).
        retransmissions_lost: Fast retransmissions found lost in their turn (MFR).
        chunks_spared: Chunks that a T3-rtx that expired left alone, because they were sent within the last round trip.
        sacks_delayed: Packets out of order whose SACK was delayed (DAC).
        paths_left: Paths left while others went on.
        chunks_moved: Chunks in flight there that moved at once.
        chunks_rescheduled: Chunks sent again on another path because the peer's window waited for them.
        penalties: Times that a path was penalised for that.
        shares_used_up: Times that a path with room got nothing because it had used up its part of a buffer.
        waits: Times that data waited for a faster path although a slower one had room.
    """

    stale_sacks: int
    overtaken_sacks: int
    ambiguous_round_trips: int
    round_trips_refused: int
    pseudo_cumulative_acks: int
    missing_reports_withheld: int
    retransmissions_lost: int
    chunks_spared: int
    sacks_delayed: int
    paths_left: int
    chunks_moved: int
    chunks_rescheduled: int
    penalties: int
    shares_used_up: int
    waits: int


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics of a run.

    Attributes:
        scenario: Name of the scenario.
        seed: Seed used.
        duration_s: Simulated time, seconds.
        handovers: Every handover in order.
        handover_latency_s: Over all handovers (000 section VI-A); `None` without handovers.
        interruption_s: Over all handovers; `None` without handovers.
        longest_gap_s: Longest time between two arrivals of new data, handover or not, seconds.
        loss_rate: Data packets lost to handover / data packets sent (000 section VI-B).
        throughput_bps: Useful bits delivered / simulated time, bit/s (000 section VI-B).
        delivered_bytes: Useful bytes delivered.
        corrupt_messages: Messages whose content was not what was sent: must be zero.
        packets_sent: Data packets sent, retransmissions included.
        packets_retransmitted: Of them, retransmissions.
        packets_lost_to_handover: Of them, lost to handover.
        packets_lost_to_queue: Of them, lost to a full queue.
        packets_lost_otherwise: Of them, lost otherwise.
        duplicate_packets: Data segments that arrived more than once.
        timeouts: T3-rtx expiries of the data sender.
        transfer_time_s: From the first data of the first application with a size to the arrival of its last byte (003);
            `None` if it did not all arrive.
        theory_s: What equations (3) to (5) of 003 give for it, within the file's end; `None` with other schemes.
        fast_retransmits: DATA chunks sent again because of missing reports; counted with the schemes of 003.
        spurious_fast_retransmits: Of them, those of which an earlier copy arrived.
        rbuf_blocked_s: Time for which an SCTP sender's cwnd had room for data that waited, and the peer's receive
            window had none.
        bytes_per_path: Bytes of SCTP that arrived, each counted once, by the receiver's link.
        sacks_sent: SACKs that SCTP sent.
        multipath: What concurrent multipath transfer counted; `None` without it.
        handoffs: Every handoff of a mobility shim, in order.
        flows: Every direction of a TCP connection in which data was sent.
        signalling: Signalling of mobility.
        warnings: What these figures do not say, or what they must not be taken for.
        event_log_hash: Hash over the event log, hexadecimal: the same for the same scenario and seed.
        events: Events in the log.
        packet_hops: Links and radio channels crossed, by all packets.
        extra: What a newer simulator reports beside these.
    """

    scenario: str
    seed: int
    duration_s: float
    handovers: tuple[Handover, ...]
    handover_latency_s: Spread | None
    interruption_s: Spread | None
    longest_gap_s: float
    loss_rate: float
    throughput_bps: float
    delivered_bytes: int
    corrupt_messages: int
    packets_sent: int
    packets_retransmitted: int
    packets_lost_to_handover: int
    packets_lost_to_queue: int
    packets_lost_otherwise: int
    duplicate_packets: int
    timeouts: int
    transfer_time_s: float | None
    theory_s: float | None
    fast_retransmits: int
    spurious_fast_retransmits: int
    rbuf_blocked_s: float
    bytes_per_path: dict[str, int]
    sacks_sent: int
    multipath: Multipath | None
    handoffs: tuple[Handoff, ...]
    flows: tuple[Flow, ...]
    signalling: Signalling
    warnings: tuple[Warning, ...]
    event_log_hash: str
    events: int
    packet_hops: int
    extra: dict[str, Any]

    @classmethod
    def from_json(cls, document: str) -> Metrics:
        """From the document that the simulator writes.

        Raises:
            KeyError: If a metric is missing.
        """
        raw: dict[str, Any] = json.loads(document)
        own = {field.name for field in fields(cls)} - {"extra"}
        values = {name: raw[name] for name in own}
        values["handovers"] = tuple(_handover(entry) for entry in raw["handovers"])
        values["handoffs"] = tuple(_handoff(entry) for entry in raw["handoffs"])
        values["flows"] = tuple(_flow(entry) for entry in raw["flows"])
        values["signalling"] = _signalling(raw["signalling"])
        values["warnings"] = tuple(Warning(**entry) for entry in raw["warnings"])
        values["multipath"] = _multipath(raw["multipath"])
        for name in ("handover_latency_s", "interruption_s"):
            values[name] = None if raw[name] is None else Spread(**raw[name])
        return cls(**values, extra={name: value for name, value in raw.items() if name not in own})

    @property
    def handover_latency_mean_s(self) -> float | None:
        """Mean handover latency over the run's handovers, seconds: what one point of the paper's figures shows."""
        if not self.handovers:
            return None
        return sum(handover.latency_s for handover in self.handovers) / len(self.handovers)


def transfer_rows(metrics: Metrics) -> list[tuple[str, str]]:
    """What a run says of a file's transfer, as (name, text); nothing if it says nothing."""
    taken, theory = metrics.transfer_time_s, metrics.theory_s
    if taken is None and theory is None:
        return []
    text = "not ended" if taken is None else f"{taken:.3f} s"
    rows = [("transfer time", text if theory is None else f"{text}, in theory {theory:.3f} s")]
    by_path = metrics.bytes_per_path
    if by_path:
        rows.append(("received by path", ", ".join(f"{path} {size / 1e6:.3f} MB" for path, size in by_path.items())))
    return rows


def _handover(entry: dict[str, Any]) -> Handover:
    return Handover(
        time_s=entry["time"],
        from_address=entry["from"],
        to_address=entry["to"],
        latency_s=entry["latency_s"],
        interruption_s=entry["interruption_s"],
        lost_packets=entry["lost_packets"],
    )


def _multipath(entry: dict[str, int] | None) -> Multipath | None:
    if entry is None:
        return None
    return Multipath(**{field.name: entry[field.name] for field in fields(Multipath)})


def _handoff(entry: dict[str, Any]) -> Handoff:
    rest = {name: entry[name] for name in ("host", "begin_s", "end_s", "handoff_delay_s", "interruption_s")}
    parts = entry.get("parts")
    return Handoff(
        from_address=entry["from"],
        to_address=entry["to"],
        failed=tuple(entry["failed"]),
        parts=None if parts is None else HandoffParts(**parts),
        **rest,
    )


def _flow(entry: dict[str, Any]) -> Flow:
    own = {field.name for field in fields(Flow)} - {"sender", "receiver", "received_bytes_by_second"}
    return Flow(
        sender=entry["from"],
        receiver=entry["to"],
        received_bytes_by_second=tuple(entry["received_bytes_by_second"]),
        **{name: entry[name] for name in own},
    )


def _signalling(entry: dict[str, Any]) -> Signalling:
    by_kind = {kind: Count(**count) for kind, count in entry["by_kind"].items()}
    return Signalling(entry["packets"], entry["bytes"], by_kind)

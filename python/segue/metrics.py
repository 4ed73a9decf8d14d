"""Metrics of a run, as the simulator defines them (`segue_sim::output`, `segue_capture::handover`)."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from segue.distributions import Spread
from segue.populations import Population


@dataclass(frozen=True, slots=True)
class HandoffParts:
    """What a handover consists of: Cottingham and Vidales 2005 section 4. Seconds.

    Attributes:
        soft: Whether the old network was still in reach when others were told of the new address.
        since_s: When T_n begins, of simulated time: the old network goes out of reach, or, in a soft handover, the new
            one comes into it.
        t_d_s: Detection, until the router advertisement from which the new address was formed, or the decision to use
            one that was there.
        t_c_s: Configuration, until the first message that tells of the new address.
        t_r_s: Registration, until the last correspondent has it, or, if none is told, the home agent has acknowledged;
            `None` if it did not end.
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
class Handover:
    """One move of one host, as one direction of one flow went through it (`segue_capture::record`).

    Attributes:
        host: Host that moved.
        flow: Number of the flow, `Flow.id`; `None` if the host moved without one.
        layer: "link", "network" (Mobile IPv6, ILNPv6) or "transport" (SCTP).
        from_address: Address of the moved host before (`from` in JSON), if there was one.
        to_address: Its address after (`to` in JSON).
        time_s: When the first data arrived over the new path, seconds; without any, when the move began.
        interruption_s: Longest time without new data around it, seconds; `None` without a flow.
        censored: The data never came back: `interruption_s` is a lower bound, to the end of the run.
        latency_s: Last data over the old path to the first over the new one, seconds (Fu et al. 2005 section VI-A).
            Negative while the old path still drains. `None` if no data came over the new one.
        handoff_delay_s: For how long a message that tells of the new address waited for its acknowledgement
            (Phoomikiattisak and Bhatti 2019 section 5.4); of SIGMA, the ASCONF that adds it and the one that makes it
            primary in the flow's association, without the wait for a decision between the two.
        begin_s: When that first message left, seconds.
        end_s: When that last one was acknowledged, seconds.
        failed: Those who could not be told.
        parts: What it consists of (Cottingham and Vidales 2005 section 4), where a shim moves hosts.
        lost_packets: Data packets lost to it.
        retransmissions: Data packets sent again in the two seconds before and after it.
        spurious_retransmissions: Of them, those of which an earlier copy arrived.
    """

    host: str
    flow: int | None
    layer: str | None
    from_address: str | None
    to_address: str | None
    time_s: float
    interruption_s: float | None
    censored: bool
    latency_s: float | None
    handoff_delay_s: float | None
    begin_s: float | None
    end_s: float | None
    failed: tuple[str, ...]
    parts: HandoffParts | None
    lost_packets: int | None
    retransmissions: int | None
    spurious_retransmissions: int | None


@dataclass(frozen=True, slots=True)
class Outage:
    """A time without new data through which a sender went on trying, and that no handover accounts for.

    It is so long that the flow would have been dead, had it ended there.

    Attributes:
        since_s: Arrival of the last new byte before, seconds; of a flow of which nothing ever arrived, the first
            attempt.
        duration_s: Until the next new byte, or else the end of the run, seconds.
        censored: No new byte came: `duration_s` is a lower bound.
    """

    since_s: float
    duration_s: float
    censored: bool


@dataclass(frozen=True, slots=True)
class Handoff:
    """One handover of a mobility shim (Mobile IPv6, ILNPv6), by its signalling.

    Attributes:
        host: The host.
        begin_s: When the first message left that tells of the new address, seconds of simulated time.
        end_s: When the last was acknowledged; `None` if the handover did not end.
        handoff_delay_s: The time in between (Phoomikiattisak and Bhatti 2019 section 5.4).
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
    """One direction of a TCP connection or of an SCTP association, or an application that never sent anything.

    Packets are those with data; of SCTP, DATA chunks.

    Attributes:
        id: Number, to which handovers refer: by the place of its application in the scenario, data before answers.
        sender: Host that sends (`from` in JSON).
        receiver: Host that receives (`to` in JSON).
        transport: "tcp", "sctp" or "udp".
        source_port: Source port; zero if nothing ever left.
        destination_port: Destination port; zero if nothing ever left.
        begin_s: When its first data was sent, or, if none ever was, when its application first tried, seconds of
            simulated time.
        end_s: When its life ended: with its last new byte if it is closed or idle, else with the run, seconds.
        transferred_bytes: Bytes that arrived, each counted once.
        throughput_bps: Those, in bits, by the length of its life, bit/s.
        packets_sent: Retransmissions included.
        retransmissions: Packets whose first byte had been sent before (Phoomikiattisak and Bhatti 2019 section 6.1.2).
        lost_packets: Packets that did not reach the receiver's transport; those that came to a stale locator among
            them (Phoomikiattisak and Bhatti 2019 section 6.1.3).
        spurious_retransmissions: Retransmissions of which an earlier copy had arrived, or arrived later.
        in_flight_packets: Packets that were under way when the run ended.
        lost_to_handover: Of the lost ones: sent to a place where the mobile host was not.
        lost_to_queue: Of them, lost to a full queue.
        lost_otherwise: Of them, lost otherwise.
        lost_by_cause: Counts by cause.
        duplicate_packets: Packets that arrived and carried nothing new.
        interruption_s: Longest interruption by a handover, or outage without one, seconds; `None` without either.
        state: "closed", "idle" (all that was sent arrived, and nothing new within the last second), "active" (it was
            getting there when the run ended) or "dead" (its sender went on, and nothing new arrived).
        dead_since_s: Of a dead one: arrival of its last new byte, or its first attempt, seconds.
        silence_s: Of a dead one: from then to the end of the run, seconds: a lower bound.
        longest_gap_s: Longest time between two arrivals of new data, handover or not, seconds; the silence of a dead
            one included.
        longest_gap_at_s: When that began, seconds; `None` if there was none.
        censored: `longest_gap_s` is that silence: a lower bound.
        outages: Outages that no handover accounts for, in order.
        around_events: Longest time without new data around what the scenario has happen; `None` if it was over before.
        last_packets: Of a dead one, in words: the last packets before the silence and the first into it.
        received_bytes_by_second: New bytes that arrived, by second of simulated time.
    """

    id: int
    sender: str
    receiver: str
    transport: str
    source_port: int
    destination_port: int
    begin_s: float
    end_s: float
    transferred_bytes: int
    throughput_bps: float
    packets_sent: int
    retransmissions: int
    lost_packets: int
    spurious_retransmissions: int
    in_flight_packets: int
    lost_to_handover: int
    lost_to_queue: int
    lost_otherwise: int
    lost_by_cause: dict[str, int]
    duplicate_packets: int
    interruption_s: float | None
    state: str
    dead_since_s: float | None
    silence_s: float | None
    longest_gap_s: float
    longest_gap_at_s: float | None
    censored: bool
    outages: tuple[Outage, ...]
    around_events: Outage | None
    last_packets: tuple[str, ...]
    received_bytes_by_second: tuple[int, ...]

    @property
    def longest_gap_is_bound(self) -> bool:
        """Whether `longest_gap_s` is a lower bound: the silence of a dead flow may become longer than it."""
        return self.state == "dead"


@dataclass(frozen=True, slots=True)
class ScenarioEvent:
    """Something that the scenario has happen.

    Attributes:
        kind: Of an `[[event]]`; "silence" or "outage" of a link that has them.
        on: What it happens to, by name.
        at_s: When it begins, seconds.
        for_s: How long it lasts, or how long what is replaced can still be used, seconds; `None` to the end.
    """

    kind: str
    on: tuple[str, ...]
    at_s: float
    for_s: float | None


@dataclass(frozen=True, slots=True)
class Host:
    """One host of a run that has a flow or moved.

    Attributes:
        host: Its name.
        flows: Flows that it sends or receives.
        dead_flows: Of them, those that never came back.
        handovers: Handovers that it made, a flow's each.
        interruption_s: Interruptions by them, and outages of its flows without one; `None` without any.
        longest_gap_s: Longest time without new data of any flow of its, seconds.
        delivered_bytes: Bytes that arrived in its flows, each counted once.
        throughput_bps: Those, in bits, by the time from their first data to the end of the last of them, bit/s.
    """

    host: str
    flows: int
    dead_flows: int
    handovers: int
    interruption_s: Spread | None
    longest_gap_s: float
    delivered_bytes: int
    throughput_bps: float

    @property
    def longest_gap_is_bound(self) -> bool:
        """Whether `longest_gap_s` is a lower bound: the silence of a dead flow may become longer than it."""
        return self.dead_flows > 0


@dataclass(frozen=True, slots=True)
class Count:
    """Packets, and their bytes from the IPv6 header on."""

    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Warning:
    """What a run says of itself that its figures do not.

    Attributes:
        kind: "never-served", "scheme-without-effect", "key-without-effect", "out-of-coverage", "fallback",
            "overload", "no-route" or "not-counted".
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
class SecondOfLoad:
    """What came to a node within one second.

    Attributes:
        updates: Messages by which it learns where somebody is: Binding Updates, Locator Updates, dynamic updates,
            ASCONF.
        signalling: Packets of signalling of mobility, updates included, in tunnels too.
        packets: All packets for it, or that it is to send on as a home agent.
        bytes: Their bytes, IPv6 headers and tunnels included.
        busy: Share of the second for which its processor was busy, 0 to 1; zero where processing takes no time.
    """

    updates: int
    signalling: int
    packets: int
    bytes: int
    busy: float


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """What a node had to do for others.

    Attributes:
        node: Its name.
        role: "home-agent", "location-manager", or "node" for another with `processing`.
        updates: Updates over the whole run, see `SecondOfLoad`.
        signalling: Packets of signalling, updates included.
        packets: All packets.
        bytes: Their bytes.
        dropped: Packets that found its queue full.
        longest_stay_s: Longest time from the arrival of a packet until it was worked off.
        by_second: Second by second, from the beginning of the run.
    """

    node: str
    role: str
    updates: int
    signalling: int
    packets: int
    bytes: int
    dropped: int
    longest_stay_s: float
    by_second: tuple[SecondOfLoad, ...]


@dataclass(frozen=True, slots=True)
class Multipath:
    """Counters of concurrent multipath transfer, of all hosts together.

    Attributes:
        stale_sacks: SACKs that another one with the same cumulative TSN ack overtook (Budzisz et al. 2009 section
            III-A, second
            problem).
        overtaken_sacks: SACKs that one with a later cumulative TSN ack overtook.
        ambiguous_round_trips: Round trips that ended with a SACK over another path (Budzisz et al. 2009 section III-A,
            third problem).
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
        handovers: Every handover in order of time: of every host, as each of its flows went through it.
        handover_latency_s: Over all handovers (Fu et al. 2005 section VI-A); `None` without handovers.
        interruption_s: Over all handovers, and all outages without one; `None` without any.
        longest_gap_s: Longest time without new data of any flow, handover or not, seconds; the silence of a dead one
            included.
        loss_rate: Data packets lost to handover / data packets sent (Fu et al. 2005 section VI-B).
        throughput_bps: Useful bits that arrived, by the time from the first data of any flow to the end of the last
            one's life, bit/s.
        delivered_bytes: Useful bytes that arrived, of all flows.
        corrupt_messages: Messages whose content was not what was sent: must be zero.
        packets_sent: Data packets sent, retransmissions included.
        packets_retransmitted: Of them, retransmissions.
        packets_lost_to_handover: Of them, lost to handover.
        packets_lost_to_queue: Of them, lost to a full queue.
        packets_lost_otherwise: Of them, lost otherwise.
        duplicate_packets: Data packets that arrived and carried nothing new.
        timeouts: T3-rtx expiries of the data sender.
        transfer_time_s: From the first data of the first application with a size to the arrival of its last byte
            (Budzisz et al. 2009); `None` if it did not all arrive.
        unfinished_transfer_s: If it did not: from that first data to the end of the run, seconds, a lower bound.
        theory_s: What equations (3) to (5) of Budzisz et al. 2009 give for it, within the file's end; `None` with
            other schemes.
        fast_retransmits: DATA chunks sent again because of missing reports; counted with the schemes of Budzisz et al.
            2009.
        spurious_fast_retransmits: Of them, those of which an earlier copy arrived.
        rbuf_blocked_s: Time for which an SCTP sender's cwnd had room for data that waited, and the peer's receive
            window had none.
        bytes_per_path: Bytes of SCTP that arrived, each counted once, by the receiver's link.
        sacks_sent: SACKs that SCTP sent.
        multipath: What concurrent multipath transfer counted; `None` without it.
        handoffs: Every handover of a mobility shim, in order: what `handovers` has too, as it was before.
        flows: Every direction of a TCP connection or an SCTP association in which data was sent, and every application
            that never sent any.
        applications: What applications were to people whose kind says, such as how a call sounded, as the simulator
            writes it: `application`, `from`, `to`, `kind`, and what is of its kind.
        scenario_events: What the scenario has happen, in order of time.
        populations: All hosts of an entry with `count`, each, and all hosts that move, if they are several.
        hosts: Every host that has a flow or moved.
        signalling: Signalling of mobility.
        loads: What came to home agents, the location manager, and nodes with `processing`.
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
    unfinished_transfer_s: float | None
    theory_s: float | None
    fast_retransmits: int
    spurious_fast_retransmits: int
    rbuf_blocked_s: float
    bytes_per_path: dict[str, int]
    sacks_sent: int
    multipath: Multipath | None
    handoffs: tuple[Handoff, ...]
    flows: tuple[Flow, ...]
    applications: tuple[dict[str, Any], ...]
    scenario_events: tuple[ScenarioEvent, ...]
    populations: tuple[Population, ...]
    hosts: tuple[Host, ...]
    signalling: Signalling
    loads: tuple[NodeLoad, ...]
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
        # documents of earlier versions have none of these
        for name in ("scenario_events", "loads", "applications", "populations"):
            raw.setdefault(name, [])
        raw.setdefault("unfinished_transfer_s", None)
        own = {field.name for field in fields(cls)} - {"extra"}
        values = {name: raw[name] for name in own}
        values["scenario_events"] = tuple(
            ScenarioEvent(**entry | {"on": tuple(entry["on"])}) for entry in raw["scenario_events"]
        )
        values["handovers"] = tuple(_handover(entry) for entry in raw["handovers"])
        values["handoffs"] = tuple(_handoff(entry) for entry in raw["handoffs"])
        values["flows"] = tuple(_flow(entry) for entry in raw["flows"])
        values["applications"] = tuple(raw["applications"])
        values["populations"] = tuple(Population.from_entry(entry) for entry in raw["populations"])
        values["hosts"] = tuple(_host(entry) for entry in raw["hosts"])
        values["signalling"] = _signalling(raw["signalling"])
        values["loads"] = tuple(_load(entry) for entry in raw["loads"])
        values["warnings"] = tuple(Warning(**entry) for entry in raw["warnings"])
        values["multipath"] = _multipath(raw["multipath"])
        for name in ("handover_latency_s", "interruption_s"):
            values[name] = Spread.from_entry(raw[name])
        return cls(**values, extra={name: value for name, value in raw.items() if name not in own})

    @property
    def longest_gap_is_bound(self) -> bool:
        """Whether `longest_gap_s` is a lower bound: the silence of a dead flow may become longer than it."""
        return any(flow.longest_gap_is_bound for flow in self.flows)

    @property
    def handover_latency_mean_s(self) -> float | None:
        """Mean handover latency over the run's handovers, seconds: what one point of the paper's figures shows."""
        known = [handover.latency_s for handover in self.handovers if handover.latency_s is not None]
        return sum(known) / len(known) if known else None

    @property
    def useful_bps(self) -> float:
        """Useful bits that arrived / simulated time, bit/s (Fu et al. 2005 section VI-B)."""
        return self.delivered_bytes * 8 / self.duration_s


def _handover(entry: dict[str, Any]) -> Handover:
    own = {field.name for field in fields(Handover)} - {"from_address", "to_address", "time_s", "failed", "parts"}
    parts = entry["parts"]
    return Handover(
        from_address=entry["from"],
        to_address=entry["to"],
        time_s=entry["time"],
        failed=tuple(entry["failed"]),
        parts=None if parts is None else HandoffParts(**parts),
        **{name: entry[name] for name in own},
    )


def _host(entry: dict[str, Any]) -> Host:
    return Host(**entry | {"interruption_s": Spread.from_entry(entry["interruption_s"])})


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
    apart = {"sender", "receiver", "outages", "around_events", "last_packets", "received_bytes_by_second"}
    around = entry.get("around_events")
    own = {field.name for field in fields(Flow)} - apart
    return Flow(
        sender=entry["from"],
        receiver=entry["to"],
        outages=tuple(Outage(**outage) for outage in entry["outages"]),
        around_events=None if around is None else Outage(**around),
        last_packets=tuple(entry["last_packets"]),
        received_bytes_by_second=tuple(entry["received_bytes_by_second"]),
        **{name: entry[name] for name in own},
    )


def _load(entry: dict[str, Any]) -> NodeLoad:
    return NodeLoad(**entry | {"by_second": tuple(SecondOfLoad(**second) for second in entry["by_second"])})


def _signalling(entry: dict[str, Any]) -> Signalling:
    by_kind = {kind: Count(**count) for kind, count in entry["by_kind"].items()}
    return Signalling(entry["packets"], entry["bytes"], by_kind)

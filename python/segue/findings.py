"""What an analysis of captures finds (`segue_capture::analyze`), as dataclasses.

Times that end in `_s` are seconds from the first packet of all captures, if they are not lengths of time.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar

from segue.metrics import Outage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Partial:
    """Where and why a capture could not be read on; what came before was analysed.

    Attributes:
        offset: Byte of the file at which the record begins that could not be read.
        reason: Why.
    """

    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class CaptureInterface:
    """An interface of a capture.

    Attributes:
        name: Its name, if the file says so.
        link_type: Link type as a number (LINKTYPE_*).
        link: And by name, where it is one that is understood.
        snap_length: Snap length, bytes; zero for none.
        packets: Packets.
    """

    name: str | None
    link_type: int
    link: str | None
    snap_length: int
    packets: int


@dataclass(frozen=True, slots=True)
class Capture:
    """One capture file.

    Attributes:
        file: File name as given.
        format: "pcap" or "pcapng".
        interfaces: Its interfaces.
        packets: Packets read.
        wire_bytes: Their bytes on the wire.
        truncated_packets: Packets that the snap length cut short.
        first_time_ns: First packet, ns since 1970 on its own clock.
        last_time_ns: Last packet.
        time_went_back: Packets whose time is before that of the packet before them.
        counts: Packets of every kind, and what was not followed, by name.
        partial: Set if the file ended where it should not have.
    """

    file: str
    format: str
    interfaces: tuple[CaptureInterface, ...]
    packets: int
    wire_bytes: int
    truncated_packets: int
    first_time_ns: int | None
    last_time_ns: int | None
    time_went_back: int
    counts: dict[str, int]
    partial: Partial | None


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How the clocks of two captures differ, by packets that both have.

    Attributes:
        offset_s: What the second clock shows more than the first, seconds.
        uncertainty_s: The offset is certain up to this; `None` if only one direction is in both captures.
        drift_ppm: How much the second clock gains on the first, parts per million, if the captures are long enough.
        matched_packets: Packets in both captures that it was worked out from.
    """

    offset_s: float
    uncertainty_s: float | None
    drift_ppm: float | None
    matched_packets: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of a flow, by the address that stays.

    Attributes:
        address: A home address, a node identifier behind a locator, else the first address seen.
        port: Port.
    """

    address: str
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class Samples:
    """Median, extremes and count of samples, in their unit."""

    median: float
    min: float
    max: float
    count: int


@dataclass(frozen=True, slots=True)
class EndCounts:
    """What became of packets with data, by both ends (Phoomikiattisak and Bhatti 2019, 6.1.2 and 6.1.3).

    Attributes:
        packets_sent: Packets sent, retransmissions included.
        retransmissions: Packets sent whose first byte had been sent before.
        lost_packets: Packets sent that did not arrive, or came to a locator that the receiver no longer had.
        spurious_retransmissions: Retransmissions of which an earlier copy arrived, even later.
        in_flight_packets: Packets that may have been under way when the captures ended.
        reordered_packets: Packets that arrived after one that was sent later (RFC 4737).
        unmatched_packets: Packets of which the other end's capture knows nothing: they arrived and were not seen to be
            sent, or were sent (and count as sent) before the receiver's capture began or after it ended.
    """

    packets_sent: int
    retransmissions: int
    lost_packets: int
    spurious_retransmissions: int
    in_flight_packets: int
    reordered_packets: int
    unmatched_packets: int


@dataclass(frozen=True, slots=True)
class Series:
    """Points for figures of one direction, thinned out where there are too many.

    Attributes:
        bin_s: Width of the bins of `throughput`, seconds.
        throughput: (bin from the first packet of all, path, useful bytes).
        segments: (seconds, offset of the first byte, path, what it was: "new", "ahead", "fills", "repeats").
        gaps: Times between arrivals of data: (seconds at which one ended, seconds). Where there are too many, the
            longest of each `arrivals_per_gap` in a row.
        arrivals_per_gap: 1 if all are there.
    """

    bin_s: float
    throughput: tuple[tuple[int, int, int], ...]
    segments: tuple[tuple[float, int, int, str], ...]
    gaps: tuple[tuple[float, float], ...]
    arrivals_per_gap: int


@dataclass(frozen=True, slots=True)
class DirectionReport:
    """What one direction of a flow carried.

    Attributes:
        vantage: Where it was seen: "sender", "receiver", "both" (then the receiver's view, unless said), "unknown".
        packets: Packets, those without data included.
        data_packets: Packets with data (of SCTP: DATA chunks).
        data_bytes: Bytes of data, repeated ones included.
        useful_bytes: Bytes of data, each counted once.
        throughput_bps: Those, in bits, by the life of the direction: from its first data to its last new byte if it is
            closed or idle, to the end of the captures if it is dead or that cannot be told, bit/s.
        duplicate_packets: Packets whose data had all been seen before.
        out_of_order_packets: Packets with data not seen before that came after later data.
        retransmissions: Packets with data that had been sent before; elsewhere than at the sender, that repeat or
            repair.
        state: How it ended: "closed", "idle" (all that was seen sent was acknowledged), "dead" (its sender went on
            sending for longer than a second and than its RTO, and nothing new arrived), "unknown".
        dead_since_s: Of a dead one: when its last new byte arrived, seconds.
        silence_s: Of a dead one: from then to the end of the captures, seconds: a lower bound.
        longest_gap_s: Longest pause between two arrivals of data not seen before, seconds; of a dead one, its silence
            to the end included.
        longest_gap_at_s: When that began, seconds; `None` if there was none.
        censored: `longest_gap_s` is that silence: a lower bound.
        outages: Outages that no handover accounts for, in order.
        last_packets: Of a dead one, in words: the last packets before the silence and the first into it.
        attempts: Of a dead one: data, repeated data and probes that its sender sent into the silence.
        rtt_s: Round trip times, seconds.
        ends: By matching both ends, with two captures.
        series: Points for figures, if asked for.
    """

    vantage: str
    packets: int
    data_packets: int
    data_bytes: int
    useful_bytes: int
    throughput_bps: float
    duplicate_packets: int
    out_of_order_packets: int
    retransmissions: int
    state: str
    dead_since_s: float | None
    silence_s: float | None
    longest_gap_s: float
    longest_gap_at_s: float | None
    censored: bool
    outages: tuple[Outage, ...]
    last_packets: tuple[str, ...]
    attempts: int
    rtt_s: Samples | None
    ends: EndCounts | None
    series: Series | None

    @property
    def longest_gap_is_bound(self) -> bool:
        """Whether `longest_gap_s` is a lower bound: the silence of a dead one may become longer than it."""
        return self.state == "dead"


@dataclass(frozen=True, slots=True)
class Path:
    """A way that packets of one direction of a flow took.

    Attributes:
        id: Number within the flow.
        direction: "forward" or "reverse".
        source: Source of the outermost header.
        destination: Destination of the outermost header.
        source_port: Source port.
        destination_port: Destination port.
        tunnelled: Through a tunnel.
        interface: Interface of the capture at the data's receiver, or of the only capture.
        first_s: First packet, seconds.
        last_s: Last packet, seconds.
        data_packets: Packets with data.
        data_bytes: Bytes of data.
    """

    id: int
    direction: str
    source: str
    destination: str
    source_port: int
    destination_port: int
    tunnelled: bool
    interface: str | None
    first_s: float
    last_s: float
    data_packets: int
    data_bytes: int


@dataclass(frozen=True, slots=True)
class TrafficFlow:
    """A flow.

    Attributes:
        id: Number, to which handovers and interruptions refer.
        protocol: "tcp", "mptcp" (all subflows), "sctp", "udp", "quic", "wireguard".
        mobility: What keeps it alive: "none", "mip6", "mip6-ro", "ilnp", "transport".
        a: The end that sent the first packet seen.
        b: The other.
        parent: The MPTCP connection that it is a subflow of.
        begin_s: First packet, seconds.
        end_s: Last packet, seconds.
        forward: From `a` to `b`.
        reverse: From `b` to `a`.
        state: How it ended, as of a direction: that of its worse one, and so are the next six.
        dead_since_s: When the last new byte of a dead one arrived, seconds.
        longest_gap_s: Its longest pause, seconds.
        longest_gap_at_s: When that began, seconds; `None` if there was none.
        censored: `longest_gap_s` is a lower bound.
        outages: Outages that no handover accounts for, in order.
        last_packets: Of a dead one, the packets around its death.
        paths: The ways that its packets took, in the order in which they were first seen.
    """

    id: int
    protocol: str
    mobility: str
    a: Endpoint
    b: Endpoint
    parent: int | None
    begin_s: float
    end_s: float
    forward: DirectionReport
    reverse: DirectionReport
    state: str
    dead_since_s: float | None
    longest_gap_s: float
    longest_gap_at_s: float | None
    censored: bool
    outages: tuple[Outage, ...]
    last_packets: tuple[str, ...]
    paths: tuple[Path, ...]

    def direction(self, name: str) -> DirectionReport:
        """The report of "forward" or "reverse"."""
        return self.forward if name == "forward" else self.reverse

    def path(self, number: int) -> Path | None:
        """The path of that number."""
        return next((path for path in self.paths if path.id == number), None)


@dataclass(frozen=True, slots=True)
class CutFlow:
    """A flow of which nothing more is said, because the snap length cut off what its headers say.

    Attributes:
        protocol: What it seems to be.
        a: The end that sent the first packet seen.
        b: The other.
        begin_s: First packet, seconds.
        end_s: Last packet, seconds.
        cut_packets: Packets that are cut off, of it or of whatever goes between the same addresses.
        needed_bytes: So much of a packet has to be captured for them to be whole, at least.
    """

    protocol: str
    a: Endpoint
    b: Endpoint
    begin_s: float
    end_s: float
    cut_packets: int
    needed_bytes: int


@dataclass(frozen=True, slots=True)
class HandoverParts:
    """What a handover consists of, as far as the captures show it (Cottingham and Vidales 2005), seconds.

    Attributes:
        soft: Whether the old network was still in reach; `None` if that cannot be told.
        since_s: When T_n begins: last data over the old path, seconds from the first packet.
        t_d_s: Detection: from there to the router advertisement that showed the new network.
        t_c_s: Configuration: from there to the first message that registers the new address.
        t_r_s: Registration: from there until the last of these was acknowledged, at the latest to the first data over
            the new path.
        t_n_s: From `since_s` to the end of the registration (equation 1).
        first_data_s: From `since_s` to the first data over the new path.
        t_a_s: Adaptation (section 5), from there.
        threshold_bps: Mean throughput of the new path by the same method: its threshold.
    """

    soft: bool | None
    since_s: float
    t_d_s: float | None
    t_c_s: float | None
    t_r_s: float | None
    t_n_s: float | None
    first_data_s: float | None
    t_a_s: float | None
    threshold_bps: float | None


@dataclass(frozen=True, slots=True)
class AdaptationTime:
    """t_a (Cottingham and Vidales 2005, section 5): how long until the new path carries what it carries from then on.

    Attributes:
        adaptation_time_s: t_a, seconds.
        threshold_bps: The mean over the bins, which has to be reached, bit/s.
        bins: Bins that it was worked out from.
        is_capped: Whether there were more than are kept, an hour of them: what came later counts in nothing.
    """

    adaptation_time_s: float
    threshold_bps: float
    bins: int
    is_capped: bool


@dataclass(frozen=True, slots=True)
class TrafficHandover:
    """A handover of one direction of a flow.

    Attributes:
        host: The end that moved, by the address that stays: `TrafficFlow.a` or `b` without the port.
        flow: `TrafficFlow.id`.
        layer: What moved it: "link", "network", "transport"; `None` where that cannot be told.
        from_: Address of that end before (`from` in JSON).
        to: And after.
        time: First data over the new path, seconds; without any, when the path was first tried.
        interruption_s: Longest time without new data around it, until data had settled on the new path, seconds.
        censored: Data never came back: `interruption_s` is a lower bound, to the end of the captures.
        latency_s: Last data over the old path to the first over the new one, seconds (Fu et al. 2005, section VI-A);
            negative while the old path still drains; `None` without any.
        handoff_delay_s: From the first message that registers the new address until the last acknowledgement, seconds.
        begin_s: When that first message was sent.
        end_s: When that last one was acknowledged.
        failed: Those who could not be told; captures do not show them.
        parts: T_n, t_a and their parts, as far as they can be told.
        lost_packets: Data packets lost around it, by both ends; `None` with one capture.
        retransmissions: Data packets sent again.
        spurious_retransmissions: Of them, those of which an earlier copy arrived.
        direction: Which direction's data moved.
        kind: How it shows: "address", "interface", "care-of-address", "locator", "sctp-path", "mptcp-subflow",
            "quic-path", "wireguard-endpoint".
        from_path: The old path, `Path.id`.
        to_path: The new path.
        from_text: In words: what of the path changed.
        to_text: The same of the new path.
        settling_gap_s: Longest time without new data that began no later than a second after the first data over the
            new path, seconds: what was lost may be repaired only by a timeout.
        adaptation: t_a; `None` where the new path carried too little to tell.
        throughput_before_bps: In the window before the last data over the old path, bit/s.
        throughput_after_bps: In the window from the first data over the new path on, bit/s.
        rtt_before_s: Round trip times before, median, seconds.
        rtt_after_s: Round trip times after, median, seconds.
        out_of_order_packets: Packets out of order soon after the first data over the new path.
        ends: Packets sent, lost and so on around it, by both ends.
        signals: Positions in `Findings.signals` of those that belong to it.
    """

    host: str
    flow: int
    layer: str | None
    from_: str | None
    to: str | None
    time: float
    interruption_s: float
    censored: bool
    latency_s: float | None
    handoff_delay_s: float | None
    begin_s: float | None
    end_s: float | None
    failed: tuple[str, ...]
    parts: HandoverParts | None
    lost_packets: int | None
    retransmissions: int | None
    spurious_retransmissions: int | None
    direction: str
    kind: str
    from_path: int
    to_path: int
    from_text: str
    to_text: str
    settling_gap_s: float
    adaptation: AdaptationTime | None
    throughput_before_bps: float
    throughput_after_bps: float
    rtt_before_s: float | None
    rtt_after_s: float | None
    out_of_order_packets: int
    ends: EndCounts | None
    signals: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Interruption:
    """A pause in received data that no change of path explains.

    Attributes:
        flow: `TrafficFlow.id`.
        direction: Which direction's data paused.
        begin_s: Last data before, seconds.
        duration_s: How long, seconds.
        ended_by_retransmission: The data that ended it repaired or repeated earlier data: the sender had something to
            send.
        retransmissions: Packets during it that repeat earlier data, the one that ended it included: with any, it was
            the network that held the data up. Zero where the sender fell quiet for longer than it had repeated
            anything. Of a pause that did not end, all that was tried in vain.
        censored: It did not end: the direction is dead, and `duration_s` is a lower bound.
    """

    flow: int
    direction: str
    begin_s: float
    duration_s: float
    ended_by_retransmission: bool
    retransmissions: int
    censored: bool


@dataclass(frozen=True, slots=True)
class PathShare:
    """What one of several paths carried.

    Attributes:
        path: `Path.id`.
        data_bytes: Bytes of data.
        share: Of all that the direction carried, 0 to 1.
    """

    path: int
    data_bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class Share:
    """A direction of a flow that used several paths at once or in turn: no handover while none of them is left.

    Attributes:
        flow: `TrafficFlow.id`.
        direction: Which direction.
        changes: Times that its data went on over another of them.
        paths: What each carried, in the order of first use.
    """

    flow: int
    direction: str
    changes: int
    paths: tuple[PathShare, ...]


@dataclass(frozen=True, slots=True)
class Warning:
    """What a reader has to know before believing the rest.

    Attributes:
        kind: "same-end", "nothing-in-common", "time-went-back" or "headers-cut-off".
        host: The host concerned, if it is one.
        flow: The flow concerned, if it is one.
        text: In a line.
    """

    kind: str
    host: str | None
    flow: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Signal:
    """A message of mobility signalling. One that both captures have is there twice.

    Attributes:
        time_s: When, seconds.
        capture: Index of the capture.
        interface: Interface of the capture.
        kind: What: "binding-update", "locator-update", "mptcp-join" and so on.
        source: From (outermost header).
        destination: To.
        about: The address it is about, if any.
        flow: The flow, where it belongs to one.
    """

    time_s: float
    capture: int
    interface: int
    kind: str
    source: str
    destination: str
    about: str | None
    flow: int | None


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that one or two captures say.

    Attributes:
        format: Of the document: 2.
        start_time_ns: First packet of all captures on the clock of the first one, ns since 1970 (of a simulated
            capture: since the beginning of the run).
        duration_s: From there to the last packet, seconds.
        captures: What was read.
        clock_offset: How the clock of the second capture differs from the first one's; `None` with one capture.
        flows: Flows in the order of their first packet. Subflows of MPTCP come beside their connection.
        flows_total: Flows that were seen, reported or not.
        flows_evicted: Flows that ended because too many were live, and were counted as two if they went on.
        handovers: Handovers of all flows in order of time.
        cut_flows: Flows of which nothing more is said, because the snap length cut off what their headers say.
        interruptions: Pauses of data without a change of path: those that never ended first, then by length.
        shares: Directions of flows that used several paths at once, or in turn.
        signals: Signalling of mobility in order of time.
        limits: Limits that were hit, by name: anything here means that something was not followed to its end.
        warnings: What a reader has to know before believing the rest.
    """

    format: int
    start_time_ns: int
    duration_s: float
    captures: tuple[Capture, ...]
    clock_offset: ClockOffset | None
    flows: tuple[TrafficFlow, ...]
    flows_total: int
    flows_evicted: int
    handovers: tuple[TrafficHandover, ...]
    cut_flows: tuple[CutFlow, ...]
    interruptions: tuple[Interruption, ...]
    shares: tuple[Share, ...]
    signals: tuple[Signal, ...]
    limits: dict[str, int]
    warnings: tuple[Warning, ...]

    @classmethod
    def from_json(cls, document: str) -> Findings:
        """From the document that the native module writes.

        Raises:
            KeyError: If something is missing.
        """
        return _build(cls, json.loads(document))

    def flow(self, number: int) -> TrafficFlow:
        """The flow of that number, as handovers and interruptions name it.

        Raises:
            KeyError: If it is not among those that are reported.
        """
        for flow in self.flows:
            if flow.id == number:
                return flow
        raise KeyError(number)

    @property
    def dead_flows(self) -> tuple[TrafficFlow, ...]:
        """Whole flows that died, the longest silence first; subflows of MPTCP count with their connection."""
        dead = [flow for flow in self.flows if flow.state == "dead" and flow.parent is None]
        return tuple(sorted(dead, key=lambda flow: -flow.longest_gap_s))

    @property
    def is_partial(self) -> bool:
        """Whether a file ended where it should not have, or something was not followed to its end."""
        return bool(self.limits) or any(capture.partial is not None for capture in self.captures)


@dataclass(frozen=True, slots=True)
class GlancedFlow:
    """A flow that goes on.

    Attributes:
        flow: As it would be reported if the capture ended here.
        silent_s: For how long none of its directions has had new data, seconds to `Glance.time_s`.
        handovers: Handovers of both directions.
        last_handover: The last of them.
    """

    flow: TrafficFlow
    silent_s: float
    handovers: int
    last_handover: TrafficHandover | None


@dataclass(frozen=True, slots=True)
class Glance:
    """What a live analysis has found so far: what its result would say if the capture ended here.

    Attributes:
        start_time_ns: First packet, ns since 1970.
        time_s: Newest packet, seconds.
        quiet_s: For how long none has come, by the clock of this machine, seconds.
        packets: Packets read.
        flows_total: Flows that were seen.
        handovers: Handovers of all flows.
        last_handover: The last of them.
        flows: Flows that died, that handed over, that carried most, at most 16; in the order of their first packet.
    """

    start_time_ns: int
    time_s: float
    quiet_s: float
    packets: int
    flows_total: int
    handovers: int
    last_handover: TrafficHandover | None
    flows: tuple[GlancedFlow, ...]

    @classmethod
    def from_json(cls, document: str) -> Glance:
        """From the document that the native module writes.

        Raises:
            KeyError: If something is missing.
        """
        return _build(cls, json.loads(document))


# What Python has a word of its own for.
_JSON_NAMES = {"from_": "from"}


def _build(kind: type[T], entry: dict[str, Any]) -> T:
    """A dataclass from the object that has its fields; what a newer engine says beside them is left out."""
    plan = _PLANS.get(kind)
    if plan is None:
        hints = typing.get_type_hints(kind)
        names = [f.name for f in fields(kind)]  # type: ignore[arg-type]
        plan = _PLANS[kind] = tuple((name, _JSON_NAMES.get(name, name), _converter(hints[name])) for name in names)
    return kind(**{name: convert(entry[key]) for name, key, convert in plan})


# Of each field: its name, its name in JSON, and what makes its value.
_PLANS: dict[type[Any], tuple[tuple[str, str, Callable[[Any], Any]], ...]] = {}


def _converter(hint: object) -> Callable[[Any], Any]:
    """What turns a value of JSON into one of type `hint`."""
    if is_dataclass(hint) and isinstance(hint, type):
        return lambda value: _build(hint, value)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        [inner] = [argument for argument in arguments if argument is not types.NoneType]
        convert = _converter(inner)
        return lambda value: None if value is None else convert(value)
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            each = _converter(arguments[0])
            return lambda values: tuple(each(value) for value in values)
        return tuple
    return lambda value: value

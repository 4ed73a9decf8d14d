"""The findings of an analysis in words: for people who never heard of our protocols, on a terminal and in a report."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator

from segue.findings import Capture, Findings, Interruption, Path, TrafficFlow, TrafficHandover

_PROTOCOLS = {
    "tcp": "TCP",
    "mptcp": "MPTCP",
    "sctp": "SCTP",
    "udp": "UDP",
    "quic": "QUIC",
    "wireguard": "WireGuard",
}
_MOBILITY = {"mip6": "Mobile IPv6", "mip6-ro": "Mobile IPv6, route optimised", "ilnp": "ILNPv6"}

# Packets that say nothing of flows, by the engine's name, and what to call them.
_CLOSED = {
    "encrypted": "encrypted",
    "malformed": "malformed",
    "headers-cut-off": "cut off within their headers",
    "later-fragments": "later fragments",
    "nested-too-deep": "nested too deep",
}
_A_DAY_NS = 86_400 * 10**9
# From here on a silence is told of as one, as `min_gap_s` of the engine has it.
_PAUSE_S = 0.2

# What a handover's kind means, and how its signalling is called where it was seen.
_KINDS = {
    "address": "packets came with another address; nothing in the capture says why",
    "interface": "the same addresses, over another interface",
    "care-of-address": "the host took another care-of address (Mobile IPv6)",
    "locator": "the host took another locator (ILNPv6)",
    "sctp-path": "SCTP went on between other addresses of the association",
    "mptcp-subflow": "MPTCP went on over another subflow",
    "quic-path": "the QUIC connection went on between other addresses",
    "wireguard-endpoint": "the WireGuard peer went on from another address",
}
_SIGNALS = {
    "router-solicitation": "a router solicitation",
    "router-advertisement": "a router advertisement",
    "duplicate-address-detection": "duplicate address detection",
    "binding-update": "a binding update",
    "binding-acknowledgement": "its acknowledgement",
    "home-test-init": "a home test",
    "care-of-test-init": "a care-of test",
    "home-test": "a home test",
    "care-of-test": "a care-of test",
    "binding-error": "a binding error",
    "locator-update": "a locator update",
    "locator-update-acknowledgement": "its acknowledgement",
    "asconf-add": "an ASCONF that added the address",
    "asconf-delete": "an ASCONF that deleted the old address",
    "asconf-set-primary": "an ASCONF that made it the primary address",
    "asconf-acknowledgement": "an ASCONF-ACK",
    "mptcp-join": "MP_JOIN",
    "mptcp-add-address": "ADD_ADDR",
    "mptcp-remove-address": "REMOVE_ADDR",
    "mptcp-priority": "MP_PRIO",
}
# Messages that say that a host has moved, rather than answer or prepare.
_TELLING = (
    "binding-update",
    "locator-update",
    "asconf-set-primary",
    "asconf-add",
    "asconf-delete",
    "mptcp-remove-address",
    "mptcp-priority",
    "mptcp-join",
)


def protocol(flow: TrafficFlow) -> str:
    """What a flow is: "TCP", "SCTP over Mobile IPv6"."""
    name = _PROTOCOLS.get(flow.protocol, flow.protocol)
    over = _MOBILITY.get(flow.mobility)
    return f"{name} over {over}" if over else name


def ends(flow: TrafficFlow, direction: str) -> tuple[str, str]:
    """Sender and receiver of a direction."""
    pair = str(flow.a), str(flow.b)
    return pair if direction == "forward" else (pair[1], pair[0])


def seconds(value: float | None) -> str:
    """A time with a unit that suits it; empty for none."""
    if value is None:
        return ""
    if abs(value) < 0.0009995:
        return f"{value * 1e6:.0f} µs"
    if abs(value) < 0.9995:
        return f"{value * 1e3:.1f} ms" if abs(value) < 0.0995 else f"{value * 1e3:.0f} ms"
    return f"{value:.2f} s" if abs(value) < 99.995 else f"{value:.0f} s"


def silence(value: float | None, *, censored: bool) -> str:
    """A time without new data; that of one that never ended is a lower bound, and is never rounded up: "≥ 573 s"."""
    if value is None or not censored:
        return seconds(value)
    step = 1.0 if value >= 100 else 0.01 if value >= 1 else 0.001
    return f"≥ {seconds(math.floor(value / step + 1e-9) * step) or '0 s'}"


def rate(bps: float) -> str:
    """A rate with a unit that suits it."""
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bps >= size:
            return f"{bps / size:.3g} {unit}" if bps < 1000 * size else f"{bps / size:.0f} {unit}"
    return f"{bps:.0f} bit/s"


def size(count: int) -> str:
    """Bytes with a unit that suits them."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


def until_full_speed(handover: TrafficHandover) -> str:
    """How long after its first packet the new path was at its full speed."""
    known = handover.adaptation
    return _until_full_speed(handover) + (" (by the first hour)" if known is not None and known.is_capped else "")


def _until_full_speed(handover: TrafficHandover) -> str:
    if handover.adaptation is None:
        return "too little data"
    return "at once" if handover.adaptation.adaptation_time_s == 0 else seconds(handover.adaptation.adaptation_time_s)


def reason(handover: TrafficHandover, findings: Findings) -> str:
    """Why data moved: what changed, and what was said about it, with how long before the first data on the new path."""
    what = _KINDS.get(handover.kind, handover.kind)
    signals = [findings.signals[number] for number in handover.signals if number < len(findings.signals)]
    for kind in _TELLING:
        told = [signal for signal in signals if signal.kind == kind]
        if told:
            before = handover.time - told[0].time_s
            when = f"{seconds(before)} before" if before >= 0 else f"{seconds(-before)} after"
            return f"{what}; {_SIGNALS[kind]} {when}"
    return what


def reason_and_doubt(handover: TrafficHandover, findings: Findings) -> str:
    """Why data moved, and whether the silence may be the application's: for a row that has no other place for it."""
    return "; ".join(filter(None, (reason(handover, findings), _doubt(handover))))


def moved(handover: TrafficHandover, flow: TrafficFlow | None) -> tuple[str, str]:
    """The old path and the new one, by what they differ in."""
    old, new = (flow.path(handover.from_path), flow.path(handover.to_path)) if flow else (None, None)
    if old is None or new is None:
        return handover.from_text, handover.to_text
    ends = [
        (_host(path.source, path.source_port), _host(path.destination, path.destination_port)) for path in (old, new)
    ]
    hosts = [" to ".join(pair[place] for place in (0, 1) if ends[0][place] != ends[1][place]) for pair in ends]
    # Ports belong to it where addresses alone do not tell.
    if (old.source, old.destination) != (new.source, new.destination):
        plain = [(path.source, path.destination) for path in (old, new)]
        hosts = [" to ".join(pair[place] for place in (0, 1) if plain[0][place] != plain[1][place]) for pair in plain]
    texts = []
    for path, host in zip((old, new), hosts, strict=True):
        where = path.interface or "" if old.interface != new.interface else ""
        tunnel = (
            ("through a tunnel" if path.tunnelled else "without a tunnel") if old.tunnelled != new.tunnelled else ""
        )
        named = f"{host} ({where})" if host and where else host or where
        texts.append(" ".join(filter(None, (named, tunnel))) or path_name(path))
    return texts[0], texts[1]


def _host(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def story(handover: TrafficHandover, findings: Findings, flow: TrafficFlow | None) -> Iterator[tuple[str, str]]:
    """A handover as (what, in words): what is known of it, in the order in which people ask."""
    old, new = moved(handover, flow)
    yield "moved", f"from {old} to {new}"
    without = f"{silence(handover.interruption_s, censored=handover.censored)} without new data"
    if handover.latency_s is None:
        without += ", to the end: the new path was tried, and nothing new ever came"
    elif handover.latency_s >= 0:
        without += f"; last packet on the old path to first on the new one {seconds(handover.latency_s)}"
    else:
        without += f"; the old path was still delivering for {seconds(-handover.latency_s)} when the new one began"
    yield "silence", "; ".join(filter(None, (without, _doubt(handover))))
    if not handover.censored and handover.settling_gap_s > handover.interruption_s:
        yield (
            "and then",
            f"silent again for {seconds(handover.settling_gap_s)}, within a second of the first new packet",
        )
    if handover.censored:
        yield "speed", f"{rate(handover.throughput_before_bps)} before, nothing after"
        yield "why", reason(handover, findings)
        return
    full = {"at once": "the full one at once", "too little data": "too little data to say when it was the full one"}
    after = _until_full_speed(handover)
    capped = handover.adaptation is not None and handover.adaptation.is_capped
    yield (
        "speed",
        f"{rate(handover.throughput_before_bps)} before, {rate(handover.throughput_after_bps)} after; "
        + full.get(after, f"the full one after {after}")
        + (", by what the first hour carried" if capped else ""),
    )
    if handover.rtt_before_s is not None or handover.rtt_after_s is not None:
        known = [(handover.rtt_before_s, "before"), (handover.rtt_after_s, "after")]
        yield "round trip", ", ".join(f"{seconds(value)} {when}" for value, when in known if value is not None)
    if text := loss(handover):
        yield "packets", text
    if handover.out_of_order_packets:
        yield "order", f"{handover.out_of_order_packets} packets came out of order"
    if text := network_parts(handover):
        yield "steps", text
    yield "why", reason(handover, findings)


def _doubt(handover: TrafficHandover) -> str:
    """That a silence may be the application's, if both ends leave that open."""
    if handover.interruption_s < _PAUSE_S or not _nothing_failed(handover):
        return ""
    return "nothing was lost or sent again, so that perhaps none was to send"


def _nothing_failed(handover: TrafficHandover) -> bool:
    """Whether both ends show that the network held nothing up around a handover."""
    ends = handover.ends
    if ends is None or handover.censored:
        return False
    return not (ends.lost_packets or ends.retransmissions or ends.in_flight_packets or ends.unmatched_packets)


def beginning(findings: Findings) -> str:
    """When the first packet came, as a date; as the beginning of a simulated run if it is no date that can be."""
    since = findings.start_time_ns / 1e9
    if findings.start_time_ns < _A_DAY_NS:
        return f"which came {seconds(since)} after the beginning of its clock"
    try:
        at = dt.datetime.fromtimestamp(findings.start_time_ns // 1_000_000_000, tz=dt.UTC)
    except (OverflowError, ValueError, OSError):
        return f"which came {since:.0f} s after 1970"
    return f"which came on {at:%Y-%m-%d} at {at:%H:%M:%S}.{findings.start_time_ns // 1_000_000 % 1000:03d} UTC"


def pauses(findings: Findings) -> Iterator[tuple[Interruption, TrafficFlow | None, str]]:
    """Pauses with their flow and what ended them. A subflow's are left out: its connection goes on over others."""
    flows = {flow.id: flow for flow in findings.flows}
    for pause in findings.interruptions:
        flow = flows.get(pause.flow)
        if flow is None or flow.parent is None:
            if pause.censored:
                after = "nothing: it is dead"
            elif pause.ended_by_retransmission:
                after = "what was lost came again"
            elif pause.retransmissions:
                times = f"{pause.retransmissions} time{'' if pause.retransmissions == 1 else 's'}"
                after = f"new data, after the sender had tried again {times}"
            else:
                after = "new data; perhaps none was to send"
            yield pause, flow, after


def dead_directions(findings: Findings) -> Iterator[tuple[TrafficFlow, str]]:
    """Dead directions of whole flows, the longest silence first."""
    dead = [
        (flow, name)
        for flow in findings.dead_flows
        for name in ("forward", "reverse")
        if flow.direction(name).state == "dead"
    ]
    yield from sorted(dead, key=lambda way: -(way[0].direction(way[1]).silence_s or 0.0))


def death(flow: TrafficFlow, direction: str) -> str:
    """How a dead direction ended: "dead since 26.700 s: nothing new arrived for at least 573 s ..."."""
    way = flow.direction(direction)
    if way.dead_since_s is None:
        return ""
    lasted = silence(way.silence_s, censored=True).removeprefix("≥ ")
    times = f"{way.attempts} time{'' if way.attempts == 1 else 's'}"
    return (
        f"dead since {way.dead_since_s:.3f} s: nothing new arrived for at least {lasted}, although "
        f"{ends(flow, direction)[0]} tried {times}"
    )


def shares(findings: Findings) -> Iterator[str]:
    """Directions that used several paths without leaving any, a line each."""
    flows = {flow.id: flow for flow in findings.flows}
    for share in findings.shares:
        flow = flows.get(share.flow)
        if flow is None:
            continue
        used = []
        for part in share.paths:
            path = flow.path(part.path)
            used.append(f"{part.share:.0%} {path_name(path) if path else f'path {part.path}'}")
        yield (
            f"flow {share.flow}, {protocol(flow)}, data from {' to '.join(ends(flow, share.direction))}: several paths "
            f"in use ({'; '.join(used)}), {share.changes} change{'' if share.changes == 1 else 's'} of share, "
            "which are no handovers"
        )


def signal(kind: str) -> str:
    """What a message of signalling is called."""
    return kind.replace("-", " ")


def network_parts(handover: TrafficHandover) -> str:
    """The parts of the network-layer latency that the signalling shows; empty without it."""
    if handover.parts is None:
        return ""
    parts = (
        ("finding the network", handover.parts.t_d_s),
        ("getting an address", handover.parts.t_c_s),
        ("telling the others", handover.parts.t_r_s),
    )
    known = [(what, value) for what, value in parts if value]
    # One part alone is all of it, and is said as the latency already.
    return ", ".join(f"{what} {seconds(value)}" for what, value in known) if len(known) > 1 else ""


def loss(handover: TrafficHandover) -> str:
    """Packets lost, sent again, sent again for nothing; empty without captures of both ends."""
    if handover.ends is None:
        return ""
    ends = handover.ends
    text = f"{ends.lost_packets} lost, {ends.retransmissions} sent again"
    return f"{text} ({ends.spurious_retransmissions} for nothing)" if ends.spurious_retransmissions else text


def capture_line(capture: Capture) -> str:
    """What was read of a file."""
    span = ""
    if capture.first_time_ns is not None and capture.last_time_ns is not None:
        span = f" in {seconds((capture.last_time_ns - capture.first_time_ns) / 1e9)}"
    names = [interface.name or f"interface {n}" for n, interface in enumerate(capture.interfaces) if interface.packets]
    where = f" on {', '.join(names[:6])}{' ...' if len(names) > 6 else ''}" if len(names) > 1 or span == "" else ""
    return f"{capture.file}: {capture.packets} packets, {size(capture.wire_bytes)}{span}{where}"


CAPTURED_TWICE = "packets-captured-twice"
"""Among the limits, and none: what was seen again is left out."""


def notes(findings: Findings) -> Iterator[str]:
    """What a reader has to know of the result: warnings, files that end too early, packets cut short, limits hit."""
    for warning in findings.warnings:
        yield f"warning: {warning.text}"
    for capture in findings.captures:
        if capture.partial is not None:
            yield (
                f"PARTIAL: {capture.file} cannot be read beyond byte {capture.partial.offset} "
                f"({capture.partial.reason}); what comes before was analysed"
            )
        elif capture.packets == 0:
            yield f"{capture.file} has no packets"
        if capture.truncated_packets:
            yield f"{capture.file}: {capture.truncated_packets} packets are cut short by the snap length"
        closed = [f"{capture.counts[name]} {what}" for name, what in _CLOSED.items() if capture.counts.get(name)]
        if closed:
            yield f"{capture.file}: packets that could not be looked into: {', '.join(closed)}"
        unknown = [f"{i.name or n} (link type {i.link_type})" for n, i in enumerate(capture.interfaces)
                   if i.link is None and i.packets]  # fmt: skip
        if unknown:
            yield f"{capture.file}: packets of these interfaces are not understood: {', '.join(unknown)}"
    for name, count in findings.limits.items():
        if name == CAPTURED_TWICE:
            yield f"{count} packets were captured on two interfaces of a host, and count once"
            continue
        yield f"PARTIAL: a limit was hit ({name.replace('-', ' ')}, {count} times): not everything was followed"
    if findings.flows_evicted:
        yield (
            f"PARTIAL: too many flows at a time: {findings.flows_evicted} made room for others, and count as two if "
            "they went on"
        )
    if findings.flows_total > len(findings.flows):
        yield f"{findings.flows_total} flows were seen, {len(findings.flows)} are reported"


def clock_line(findings: Findings) -> str:
    """How the two clocks differ; empty with one capture."""
    clock = findings.clock_offset
    if clock is None:
        return ""
    second = findings.captures[1].file
    ahead = "ahead of" if clock.offset_s >= 0 else "behind"
    text = f"the clock of {second} is {seconds(abs(clock.offset_s))} {ahead} the other's"
    if abs(clock.offset_s) < 0.5e-6:
        text = f"the clock of {second} agrees with the other's"
    if clock.uncertainty_s is not None:
        text += f", give or take {seconds(clock.uncertainty_s)}"
    if clock.drift_ppm is not None:
        text += f", and drifts {clock.drift_ppm:+.1f} ppm"
    return f"{text} (from {clock.matched_packets} packets that both have)"


def path_name(path: Path) -> str:
    """A path by its addresses and interface."""
    where = f" on {path.interface}" if path.interface else ""
    tunnel = " in a tunnel" if path.tunnelled else ""
    return f"{path.source} to {path.destination}{where}{tunnel}"

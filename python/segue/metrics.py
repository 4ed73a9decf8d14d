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
        packets_sent: Data packets sent, retransmissions included.
        packets_retransmitted: Of them, retransmissions.
        packets_lost_to_handover: Of them, lost to handover.
        packets_lost_to_queue: Of them, lost to a full queue.
        packets_lost_otherwise: Of them, lost otherwise.
        duplicate_packets: Data segments that arrived more than once.
        timeouts: T3-rtx expiries of the data sender.
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
    packets_sent: int
    packets_retransmitted: int
    packets_lost_to_handover: int
    packets_lost_to_queue: int
    packets_lost_otherwise: int
    duplicate_packets: int
    timeouts: int
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
        for name in ("handover_latency_s", "interruption_s"):
            values[name] = None if raw[name] is None else Spread(**raw[name])
        return cls(**values, extra={name: value for name, value in raw.items() if name not in own})

    @property
    def handover_latency_mean_s(self) -> float | None:
        """Mean handover latency over the run's handovers, seconds: what one point of the paper's figures shows."""
        if not self.handovers:
            return None
        return sum(handover.latency_s for handover in self.handovers) / len(self.handovers)


def _handover(entry: dict[str, Any]) -> Handover:
    return Handover(
        time_s=entry["time_s"],
        from_address=entry["from"],
        to_address=entry["to"],
        latency_s=entry["latency_s"],
        interruption_s=entry["interruption_s"],
        lost_packets=entry["lost_packets"],
    )

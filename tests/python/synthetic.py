"""Frames and runs made up for tests: what the simulator might record, with every number chosen here."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import polars as pl

from segue.papers.sigma import experiment as ex
from segue.running import Run

OLD = "2001:db8:2::1"
NEW = "2001:db8:3::1"
CN = "2001:db8:1::1"
MTU = 1500
INITIAL_TSN = 4_294_967_290  # wraps soon


def metrics(**changes: object) -> dict[str, object]:
    base: dict[str, object] = {
        "scenario": "synthetic",
        "seed": 1,
        "duration_s": 20.0,
        "handovers": [],
        "handover_latency_s": None,
        "interruption_s": None,
        "longest_gap_s": 0.1,
        "loss_rate": 0.0,
        "throughput_bps": 1e6,
        "delivered_bytes": 2_500_000,
        "corrupt_messages": 0,
        "packets_sent": 1000,
        "packets_retransmitted": 0,
        "packets_lost_to_handover": 0,
        "packets_lost_to_queue": 0,
        "packets_lost_otherwise": 0,
        "duplicate_packets": 0,
        "timeouts": 0,
        "transfer_time_s": None,
        "theory_s": None,
        "fast_retransmits": 0,
        "spurious_fast_retransmits": 0,
        "rbuf_blocked_s": 0.0,
        "bytes_per_path": {},
        "sacks_sent": 0,
        "multipath": None,
        "handoffs": [],
        "flows": [],
        "hosts": [],
        "signalling": {"packets": 0, "bytes": 0, "by_kind": {}},
        "warnings": [],
        "event_log_hash": "0" * 32,
        "events": 1,
        "packet_hops": 1,
    }
    return base | changes


def handover(
    time: float = 8.14, latency_s: float = 0.007, lost: int = 0, changes: dict[str, object] | None = None
) -> dict[str, object]:
    base: dict[str, object] = {
        "host": "mh",
        "flow": 0,
        "layer": "transport",
        "from": OLD,
        "to": NEW,
        "time": time,
        "interruption_s": max(latency_s, 0.01),
        "censored": False,
        "latency_s": latency_s,
        "handoff_delay_s": None,
        "begin_s": None,
        "end_s": None,
        "failed": [],
        "parts": None,
        "lost_packets": lost,
        "retransmissions": lost,
        "spurious_retransmissions": 0,
    }
    return base | (changes or {})


def spread(value: float, *, low: float | None = None, censored: int = 0, flow: int = 0) -> dict[str, object]:
    """A spread of one value, or of two."""
    low = value if low is None else low
    return {
        "median": (value + low) / 2,
        "p95": value,
        "min": low,
        "max": value,
        "count": 1 if low == value else 2,
        "censored": censored,
        "median_censored": censored > 0 and low == value,
        "p95_censored": censored > 0,
        "min_censored": censored > 1 or (censored > 0 and low == value),
        "max_censored": censored > 0,
        "worst": {"host": "mh", "flow": flow, "time": 8.14},
    }


def flow(**changes: object) -> dict[str, object]:
    base: dict[str, object] = {
        "id": 0,
        "from": "cn",
        "to": "mh",
        "transport": "sctp",
        "source_port": 9,
        "destination_port": 9,
        "begin_s": 0.0,
        "end_s": 20.0,
        "transferred_bytes": 2_500_000,
        "throughput_bps": 1e6,
        "packets_sent": 1000,
        "retransmissions": 0,
        "lost_packets": 0,
        "lost_to_handover": 0,
        "lost_to_queue": 0,
        "lost_otherwise": 0,
        "spurious_retransmissions": 0,
        "in_flight_packets": 0,
        "lost_by_cause": {},
        "duplicate_packets": 0,
        "interruption_s": None,
        "state": "idle",
        "dead_since_s": None,
        "silence_s": None,
        "longest_gap_s": 0.1,
        "longest_gap_at_s": None,
        "censored": False,
        "outages": [],
        "last_packets": [],
        "received_bytes_by_second": [125_000] * 20,
    }
    return base | changes


class FakeNative:
    """Stands in for `segue._native.Run`; frames of polars have the same capsule interface."""

    def __init__(self, document: dict[str, object], tables: dict[str, pl.DataFrame] | None = None) -> None:
        self.metrics_json = json.dumps(document)
        self.scenario_toml = 'name = "synthetic"\n'
        self._tables = tables or {}

    @property
    def table_names(self) -> list[str]:
        return list(self._tables)

    def table(self, name: str) -> pl.DataFrame | None:
        return self._tables.get(name)

    def captures(self) -> list[tuple[str, bytes]]:
        return []


@dataclass
class TraceBuilder:
    """Writes a trace event by event; times in seconds."""

    packets: list[dict[str, object]] = field(default_factory=list)
    windows: list[dict[str, object]] = field(default_factory=list)
    signalling: list[dict[str, object]] = field(default_factory=list)
    ids: int = 0

    def data(self, time: float, to: str, number: int, *, lost: bool = False, again: bool = False) -> None:
        self.ids += 1
        tsn = (INITIAL_TSN + number) % 2**32
        common = {
            "packet_id": self.ids,
            "connection": 0,
            "source": CN,
            "destination": to,
            "kind": "DATA",
            "tsn": tsn,
            "length_bytes": MTU,
            "retransmission": again,
        }
        self._packet(time, "cn", "sent", **common)
        self._packet(time + 0.03, "ar1" if lost else "mh", "dropped" if lost else "received", **common)

    def sack(self, time: float, source: str, number: int, *, lost: bool = False) -> None:
        self.ids += 1
        self._packet(
            time,
            "mh" if lost else "cn",
            "dropped" if lost else "received",
            packet_id=self.ids,
            connection=0,
            source=source,
            destination=CN,
            kind="SACK",
            tsn=(INITIAL_TSN + number) % 2**32,
            length_bytes=60,
            retransmission=False,
        )

    def message(self, time: float, source: str, kind: str, *, lost: bool = False) -> None:
        self.ids += 1
        common = {
            "packet_id": self.ids,
            "connection": 0 if kind.startswith("ASCONF") else None,
            "source": source,
            "destination": CN,
            "kind": kind,
            "tsn": None,
            "length_bytes": 80,
            "retransmission": False,
        }
        self._packet(time, "mh", "sent", **common)
        self._packet(time + 0.02, "ar1" if lost else "cn", "dropped" if lost else "received", **common)

    def window(self, time: float, to: str, cwnd: int) -> None:
        self.windows.append(
            {
                "time_ns": int(time * 1e9),
                "node": "cn",
                "connection": 0,
                "source": CN,
                "destination": to,
                "cwnd_bytes": cwnd,
                "ssthresh_bytes": 65536,
                "flightsize_bytes": 0,
                "rto_ns": 1_000_000_000,
                "primary": True,
            }
        )

    def signal(self, time: float, step: int, event: str, detail: str = "", node: str = "mh") -> None:
        self.signalling.append(
            {"time_ns": int(time * 1e9), "node": node, "step": step, "event": event, "detail": detail}
        )

    def run(self, **changes: object) -> Run:
        seconds = range(21)
        tables = {
            "packets": pl.DataFrame(self.packets, schema=PACKETS).sort("time_ns", maintain_order=True),
            "windows": pl.DataFrame(self.windows, schema=WINDOWS).sort("time_ns", maintain_order=True),
            "signalling": pl.DataFrame(self.signalling, schema=SIGNALLING).sort("time_ns", maintain_order=True),
            "positions": pl.DataFrame(
                {
                    "time_ns": [t * 10**9 for t in seconds],
                    "node": ["mh"] * 21,
                    "x_m": [float(min(5 * t, 140 - 5 * t)) for t in seconds],
                    "y_m": [0.0] * 21,
                }
            ),
            "cells": pl.DataFrame(
                {
                    "name": ["cell 1", "cell 2"],
                    "x_m": [0.0, 70.0],
                    "y_m": [0.0, 0.0],
                    "radius_m": [40.0, 40.0],
                    "present_s": pl.Series([None, None], dtype=pl.List(pl.Float64)),
                }
            ),
        }
        begins = [row["time_ns"] for row in self.packets if row["kind"] == "DATA"]
        flows = [flow(begin_s=float(str(begins[0])) / 1e9)] if begins else []
        return Run(FakeNative(metrics(**{"flows": flows, **changes}), tables))  # type: ignore[arg-type]

    def _packet(self, time: float, node: str, action: str, **values: object) -> None:
        self.packets.append(
            {
                "time_ns": round(time * 1e9),
                "node": node,
                "action": action,
                "cause": "out-of-reach" if action == "dropped" else "",
                "interface": 0,
                **values,
            }
        )


PACKETS = {
    "time_ns": pl.UInt64,
    "node": pl.String,
    "action": pl.String,
    "cause": pl.String,
    "interface": pl.UInt8,
    "packet_id": pl.UInt64,
    "connection": pl.UInt32,
    "source": pl.String,
    "destination": pl.String,
    "kind": pl.String,
    "tsn": pl.UInt32,
    "length_bytes": pl.UInt32,
    "retransmission": pl.Boolean,
}
WINDOWS = {
    "time_ns": pl.UInt64,
    "node": pl.String,
    "connection": pl.UInt32,
    "source": pl.String,
    "destination": pl.String,
    "cwnd_bytes": pl.UInt32,
    "ssthresh_bytes": pl.UInt32,
    "flightsize_bytes": pl.UInt32,
    "rto_ns": pl.UInt64,
    "primary": pl.Boolean,
}
SIGNALLING = {"time_ns": pl.UInt64, "node": pl.String, "step": pl.UInt8, "event": pl.String, "detail": pl.String}


def seamless(*, switch_s: float = 8.14, first: int = 3, second: int = 6, lost: bool = False) -> Run:
    """Data to the old address until `switch_s`, then to the new one: flights of `first`, then `second` packets."""
    trace = TraceBuilder()
    number = 0
    trace.window(0.0, OLD, 4 * MTU)
    time = 7.0
    while time < switch_s - 0.02:
        trace.data(time, OLD, number)
        trace.sack(time + 0.06, OLD if time < switch_s - 0.1 else NEW, number)
        number += 1
        time += 0.02
    trace.data(switch_s - 0.001, OLD, number, lost=lost)
    number += 1
    trace.window(switch_s - 0.005, NEW, first * MTU)
    for index in range(first):
        trace.data(switch_s + 0.001 * index, NEW, number + index)
    trace.window(switch_s + 0.2, NEW, second * MTU)
    trace.sack(switch_s + 0.2, NEW, number + first - 1)
    number += first
    for index in range(60):
        spacing = 0.06 / second
        trace.data(switch_s + 0.2 + spacing * index, NEW, number + index)
        trace.sack(switch_s + 0.26 + spacing * index - 0.001, NEW, number + index)
        trace.window(switch_s + 0.26 + spacing * index, NEW, (second + index // 6) * MTU)
    trace.signal(7.0, 1, "obtain-started", "cell 2")
    trace.signal(7.2, 0, "link-up", "cell 2")
    trace.message(7.21, "fe80::1", "RS")
    trace.signal(7.7, 1, "obtained", NEW)
    trace.signal(7.7, 2, "add-sent", NEW)
    trace.message(7.7, OLD, "ASCONF-ADD")
    trace.signal(7.76, 2, "add-acknowledged", NEW)
    trace.signal(switch_s - 0.006, 0, "decision-point", "cell 1 to cell 2")
    trace.signal(switch_s - 0.006, 3, "set-primary-sent", NEW)
    trace.message(switch_s - 0.006, NEW, "ASCONF-SET-PRIMARY")
    trace.signal(switch_s + 0.05, 3, "set-primary-acknowledged", NEW)
    trace.signal(switch_s + 0.05, 4, "location-updated", NEW)
    trace.signal(9.0, 5, "delete-sent", OLD)
    trace.message(9.0, NEW, "ASCONF-DELETE", lost=True)
    trace.message(9.5, NEW, "ASCONF-DELETE")
    trace.signal(9.52, 0, "sctp-peer-address-deleted", OLD, node="cn")
    trace.signal(9.56, 5, "delete-acknowledged", OLD)
    return trace.run(
        packets_lost_to_handover=int(lost),
        handovers=[handover(switch_s + 0.03)],
        handover_latency_s=spread(0.007),
    )


def stalled(
    offsets: tuple[float, ...] = (0.0, 1.0, 4.0, 6.0),
    paths: tuple[str, ...] = (OLD, NEW, OLD, NEW),
    *,
    lost: int = 8,
    ack: bool | None = False,
) -> Run:
    """Figure 8: of eight segments from 9.0 s on `lost` are lost, of which the first is sent at these offsets and paths.

    Its second transmission is acknowledged if `ack`, and if not, that is lost; with `None` nothing acknowledges it.
    """
    trace = TraceBuilder()
    trace.window(0.0, OLD, 8 * MTU)
    for index in range(100):
        trace.data(8.0 + 0.01 * index, OLD, index)
        trace.sack(8.06 + 0.01 * index, OLD, index)
    for index in range(8):
        trace.data(9.0 + 0.005 * index, OLD, 100 + index, lost=index < lost)
    for offset, path in list(zip(offsets, paths, strict=True))[1:]:
        trace.data(9.0 + offset, path, 100, lost=path == OLD, again=True)
    if ack is not None:
        trace.sack(9.0 + offsets[1] + 0.04, OLD, 100, lost=not ack)
    end = 9.0 + offsets[-1]
    trace.window(end, NEW, 2 * MTU)
    for index in range(1, 8):
        trace.data(end + 0.1 + 0.01 * index, NEW, 100 + index, again=True)
    for index in range(40):
        trace.data(end + 0.3 + 0.01 * index, NEW, 108 + index)
        trace.sack(end + 0.36 + 0.01 * index, NEW, 108 + index)
    return trace.run(packets_lost_to_handover=9, handovers=[handover(10.03, 1.0, 9)])


def latency_frame(*, below: float = 0.007, above: float = 2.0, seeds: int = 5) -> pl.DataFrame:
    """Grid `latency` as the paper has it, with these handover latencies on either side of 900 ms."""
    rows = []
    for l2 in (100, 200, 300, 400, 500, 600):
        for resolution in (300, 400, 500, 600):
            late = l2 + resolution > 900
            for seed in range(seeds):
                wobble = 1 + 0.01 * seed
                rows.append(
                    {
                        ex.L2: l2,
                        ex.RESOLUTION: resolution,
                        "seed": seed,
                        "latency_mean_s": (above if late else below) * wobble,
                        "loss_rate": 0.01 * wobble if late else 0.0,
                        "useful_bps": (7e5 if late else 1e6) * (1 + 0.001 * seed),
                    }
                )
    return pl.DataFrame(rows)


def speed_frame(
    *, climb: float = 40.0, short_beacon_penalty: float = 0.001, soften: float = 1.0, loss: float = 0.004
) -> pl.DataFrame:
    """Grid `speed` as the paper has it: flat below 15 m/s, `climb` ms per m/s above, gentler with short beacons."""
    rows = []
    for speed in (2.5, 5.0, 7.5, 10.0, 12.5, 15.0, 17.5, 20.0):
        for beacon in (20, 40, 60, 80):
            over = max(0.0, speed - 15.0) * (1 + soften * beacon / 80)
            for seed in range(5):
                rows.append(
                    {
                        ex.MPS: speed,
                        ex.BEACON: beacon,
                        "seed": seed,
                        "latency_mean_s": 0.007 + (short_beacon_penalty if beacon == 20 else 0) + climb * over / 1e3,
                        "loss_rate": loss * over / 5,
                        "useful_bps": 1e6 * (1 - 0.1 * over),
                    }
                )
    return pl.DataFrame(rows)


def policy_speed_frame() -> pl.DataFrame:
    policies = ("when-ready", "link-loss", "retransmitted-asconf")
    return pl.DataFrame(
        [
            {ex.MPS: speed, ex.WHEN_MISSED: policy, "seed": seed, "useful_bps": 1.9e6 / (1 + index * (speed > 15))}
            for speed in (5.0, 10.0, 15.0, 17.5, 20.0)
            for index, policy in enumerate(policies)
            for seed in range(3)
        ]
    )


def policy_frame() -> pl.DataFrame:
    policies = ("when-ready", "next-decision", "link-loss", "queued-asconf", "retransmitted-asconf")
    return pl.DataFrame(
        [
            {ex.L2: l2, ex.WHEN_MISSED: policy, "seed": seed, "latency_mean_s": 0.01 + 0.4 * index * (l2 > 400)}
            for l2 in (100, 200, 300, 400, 500, 600)
            for index, policy in enumerate(policies)
            for seed in range(3)
        ]
    )

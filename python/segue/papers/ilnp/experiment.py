"""What is run: four handover scenarios, four schemes, three variants of TCP; and what is kept of each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from segue.recorded import Measured
from segue.runner import Runner
from segue.running import Progress, Run, job
from segue.scenarios import load

if TYPE_CHECKING:
    from segue.scenarios import Scenario

SCENARIO = "papers/ilnp"

CASES = ("lan-lan", "lan-wan", "wan-lan", "wan-wan")
SCHEMES = ("mip6", "mip6-ro", "ilnp-hard", "ilnp-soft")
VARIANTS = ("cubic", "hybla", "veno")
PROFILES = ("linux-3.9", "modern")

CASE_NAMES = {case: case.upper().replace("-", " to ") for case in CASES}
SCHEME_NAMES = {
    "mip6": "MIPv6 without RO",
    "mip6-ro": "MIPv6 with RO",
    "ilnp-hard": "ILNPv6 hard",
    "ilnp-soft": "ILNPv6 soft",
}
VARIANT_NAMES = {"cubic": "CUBIC", "hybla": "Hybla", "veno": "Veno"}

SEEDS = 10
"""Repetitions in the paper (Phoomikiattisak and Bhatti 2019 section 5.3)."""
QUICK_SEEDS = 2

SENDER = "cn"
FLOW_BEGINS_S = 15.0
"""When the flow begins in the scenario: the paper counts its times from there."""
FLOW_LASTS_S = 30
WINDOW_PACKETS = 320 * 1024 / 1400
"""Packets in a window (Phoomikiattisak and Bhatti 2019 section 6.1.3)."""
RTT_S = {"lan": 0.005, "wan": 0.205}
"""Round trip between the nodes without queues, by the network that the mobile node is in (Phoomikiattisak and Bhatti
2019 section 6.1)."""
MOBILITY = ("BU", "BA", "HOTI", "HOT", "COTI", "COT", "BRR", "BE", "LU", "LU-ACK")
"""Messages that tell others of a new address."""


@dataclass(frozen=True, slots=True)
class Point:
    """One cell of the experiment."""

    case: str
    scheme: str
    variant: str = "cubic"
    profile: str = "linux-3.9"

    def overrides(self) -> dict[str, str]:
        """As `--set` has them."""
        return {
            "case": self.case,
            "scheme": self.scheme,
            "tcp.congestion_control": self.variant,
            "tcp.profile": self.profile,
        }


@dataclass(frozen=True, slots=True)
class Results:
    """What the runs gave.

    Attributes:
        runs: A row per run, see `row`.
        rates: Of seed 1 with CUBIC: `case`, `scheme`, `time_s` since the flow began (the middle of a second),
            `rate_bytes_per_s` of new data at the mobile node.
    """

    runs: pl.DataFrame
    rates: pl.DataFrame


def points() -> list[Point]:
    """The paper's experiment, and the same schemes with a TCP of today (CUBIC)."""
    paper = [Point(case, scheme, variant) for case in CASES for scheme in SCHEMES for variant in VARIANTS]
    modern = [Point(case, scheme, "cubic", "modern") for case in CASES for scheme in SCHEMES]
    return paper + modern


def run(seeds: Sequence[int], *, runner: Runner, progress: Progress | None = None) -> Results:
    """Run everything."""
    scenario = load(SCENARIO)
    labels = [(point, seed) for point in points() for seed in seeds]
    runs = run_points(scenario, labels, runner=runner, progress=progress)
    rows = [row(point, seed, one) for (point, seed), one in zip(labels, runs, strict=True)]
    chosen = [
        (point, one)
        for (point, seed), one in zip(labels, runs, strict=True)
        if seed == seeds[0] and point.variant == "cubic" and point.profile == PROFILES[0]
    ]
    rates = [entry for point, one in chosen for entry in _rates(point, one)]
    return Results(pl.DataFrame(rows, infer_schema_length=None), pl.DataFrame(rates))


def run_points(
    scenario: Scenario,
    labels: Sequence[tuple[Point, int]],
    *,
    runner: Runner,
    progress: Progress | None = None,
) -> list[Run]:
    """Runs of these points with these seeds, in order."""
    jobs = [job(scenario, point.overrides(), seed=seed) for point, seed in labels]
    return runner.runs(jobs, progress=progress)


def row(point: Point, seed: int, result: Measured) -> dict[str, object]:
    """What is kept of a run.

    `case`, `scheme`, `variant`, `profile`, `seed`; of the handover, if there was one, `handoff_at_s` (since the flow
    began), `handoff_delay_s` and `handoffs`; of the flow `transferred_bytes`, `packets_sent`, `retransmissions`,
    `lost_packets`, `spurious_retransmissions`, `interruption_s`; `signalling_packets` and `signalling_bytes` of the
    messages that tell of a new address; `event_log_hash`.
    """
    metrics = result.metrics
    flow = next((flow for flow in metrics.flows if flow.sender == SENDER), None)
    during = [handoff for handoff in metrics.handoffs if handoff.begin_s >= FLOW_BEGINS_S]
    handoff = during[0] if during else None
    kinds = [metrics.signalling.by_kind[kind] for kind in MOBILITY if kind in metrics.signalling.by_kind]
    values: dict[str, Any] = {
        "case": point.case,
        "scheme": point.scheme,
        "variant": point.variant,
        "profile": point.profile,
        "seed": seed,
        "handoffs": len(during),
        "handoff_at_s": None if handoff is None else handoff.begin_s - FLOW_BEGINS_S,
        "handoff_delay_s": None if handoff is None else handoff.handoff_delay_s,
        "transferred_bytes": 0 if flow is None else flow.transferred_bytes,
        "packets_sent": 0 if flow is None else flow.packets_sent,
        "retransmissions": 0 if flow is None else flow.retransmissions,
        "lost_packets": 0 if flow is None else flow.lost_packets,
        "spurious_retransmissions": 0 if flow is None else flow.spurious_retransmissions,
        "interruption_s": None if flow is None else flow.interruption_s,
        "signalling_packets": sum(count.packets for count in kinds),
        "signalling_bytes": sum(count.bytes for count in kinds),
        "event_log_hash": metrics.event_log_hash,
    }
    return values


def _rates(point: Point, result: Run) -> list[dict[str, object]]:
    flow = next((flow for flow in result.metrics.flows if flow.sender == SENDER), None)
    received = () if flow is None else flow.received_bytes_by_second
    first = int(FLOW_BEGINS_S)
    return [
        {
            "case": point.case,
            "scheme": point.scheme,
            "time_s": second + 0.5,
            "rate_bytes_per_s": float(received[first + second]) if first + second < len(received) else 0.0,
        }
        for second in range(FLOW_LASTS_S)
    ]

"""What is run: the grids of figures 10 to 15 and the traced runs of figures 4 to 9."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from segue.papers.grid import Axis, Grid

SCENARIO = "papers/sigma"

LATENCY = "latency"
SPEED = "speed"
POLICY = "policy"
POLICY_SPEED = "policy-speed"

FULL_SEEDS = 5
QUICK_SEEDS = 2
QUICK_DURATION = "120 s"

TRACE_DURATION = "100 s"
"""Figures 5, 7 and 9 show 100 s (Fu et al. 2005 section V)."""

L2 = "l2_latency_ms"
RESOLUTION = "resolution_ms"
MPS = "speed_mps"
BEACON = "beacon_ms"
WHEN_MISSED = "when_missed"


@dataclass(frozen=True, slots=True)
class TracedRun:
    """A run with frames.

    Attributes:
        name: Key of its result.
        overrides: Beside those of the section (resolution 500 ms, 100 s).
    """

    name: str
    overrides: Mapping[str, str] = field(default_factory=dict)


TRACED = (
    TracedRun("none", {"l2.latency": "0 ms"}),
    TracedRun("low", {"l2.latency": "200 ms"}),
    TracedRun("high", {"l2.latency": "500 ms"}),
    TracedRun("none-sack-each", {"l2.latency": "0 ms", "sctp.sack_frequency": "1"}),
    TracedRun("none-ack-path", {"l2.latency": "0 ms", "sctp.cwnd_credit": "ack-path"}),
)
"""The three classes of section V, and the first again with a SACK per packet, as the figures suggest, and with the
window rule by which the text explains its figure 4 (claim S4)."""

TRACE_OVERRIDES = {
    "mobile.speed": "5 m/s",
    "address.resolution": "500 ms",
    "duration": TRACE_DURATION,
}


def grids(*, quick: bool = False) -> list[Grid]:
    """The grids of section VI, and two of our own over what is done when the point of decision is missed.

    - `latency`: L2 latency 100 to 600 ms by address resolution 300 to 600 ms at 5 m/s (figures 10, 12, 13);
    - `speed`: 2.5 to 20 m/s by beacon period 20 to 80 ms, L2 latency and resolution 100 ms (figures 11, 14, 15);
    - `policy`: L2 latency by `handover.when_missed`, resolution 500 ms, 5 m/s: how much of the outage is the policy's;
    - `policy-speed`: the same over speed, L2 latency and resolution 100 ms, for the policies that differ.
    """
    shared = {"duration": QUICK_DURATION} if quick else {}
    l2 = Axis("l2.latency", L2, [100, 200, 300, 400, 500, 600], "ms")
    return [
        Grid(
            LATENCY,
            [l2, Axis("address.resolution", RESOLUTION, [300, 400, 500, 600], "ms")],
            {"mobile.speed": "5 m/s", **shared},
        ),
        Grid(
            SPEED,
            [
                Axis("mobile.speed", MPS, [2.5, 5, 7.5, 10, 12.5, 15, 17.5, 20], "m/s"),
                Axis("l2.beacon_period", BEACON, [20, 40, 60, 80], "ms"),
            ],
            {"l2.latency": "100 ms", "address.resolution": "100 ms", **shared},
        ),
        Grid(
            POLICY,
            [
                l2,
                Axis(
                    "handover.when_missed",
                    WHEN_MISSED,
                    ["when-ready", "next-decision", "link-loss", "queued-asconf", "retransmitted-asconf"],
                ),
            ],
            {"mobile.speed": "5 m/s", "address.resolution": "500 ms", **shared},
        ),
        Grid(
            POLICY_SPEED,
            [
                Axis("mobile.speed", MPS, [5, 10, 15, 17.5, 20], "m/s"),
                Axis("handover.when_missed", WHEN_MISSED, ["when-ready", "link-loss", "retransmitted-asconf"]),
            ],
            {"l2.latency": "100 ms", "address.resolution": "100 ms", **shared},
        ),
    ]

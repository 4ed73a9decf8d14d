"""What is said of all hosts of an entry with `count`, as the simulator defines it (`segue_sim::population`)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from segue.distributions import Distribution


@dataclass(frozen=True, slots=True)
class Population:
    """A population of hosts.

    Attributes:
        name: Its name: `population` of its hosts, which is the `name` of their entry if the scenario says nothing else.
            "mobile hosts" are all that move, of whatever population, left out where a population is just these.
        hosts: Hosts.
        mobile_hosts: Of them, those that move.
        flows: Flows that they send or receive.
        dead_flows: Of them, those that never came back.
        interruption_s: Interruptions by handovers of these hosts, a flow's each, and outages of their flows without
            one, seconds.
        handover_latency_s: Handover latencies, a flow's each, seconds (Fu et al. 2005 section VI-A).
        goodput_bps: Throughputs of those that have a flow, `Host.throughput_bps`, bit/s.
        fairness: Jain's index of these (Jain, Chiu and Hawe 1984, DEC TR-301, equation 1), from 1/n to 1; `None` if
            nobody got anything.
        handovers: Handovers that were completed, each counted once, whatever flows the host has.
        handovers_per_host_and_minute: Those, by the number of hosts that move and by the minutes of the run.
        ping_pongs: Of them, those back to the source cell within the minimum time of stay (3GPP TR 36.839 section
            5.2.2, definition 5), `metrics.minimum_time_of_stay` of the scenario.
        ping_pong_rate: Ping-pongs by completed handovers (definition 6 there); `None` without handovers.
        without_path_share: Share of the run for which each of those that move was out of reach of the network that it
            had a link to, or had no link or no address, 0 to 1.
    """

    name: str
    hosts: int
    mobile_hosts: int
    flows: int
    dead_flows: int
    interruption_s: Distribution | None
    handover_latency_s: Distribution | None
    goodput_bps: Distribution | None
    fairness: float | None
    handovers: int
    handovers_per_host_and_minute: float
    ping_pongs: int
    ping_pong_rate: float | None
    without_path_share: Distribution | None

    @classmethod
    def from_entry(cls, entry: dict[str, Any]) -> Population:
        """From an entry of the document that the simulator writes.

        Raises:
            KeyError: If something is missing.
        """
        values = {field.name: entry[field.name] for field in fields(cls)}
        for name in ("interruption_s", "handover_latency_s", "goodput_bps", "without_path_share"):
            values[name] = Distribution.from_entry(entry[name])
        return cls(**values)

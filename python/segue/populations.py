"""What is said of all hosts of an entry with `count`, as the simulator defines it (`segue_sim::population`)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Distribution:
    """How the values of a quantity are distributed, in its unit.

    A percentile is the smallest value that at least so many percent of them do not exceed. Of some values only a lower
    bound may be known: a percentile, or a step of the distribution function, that is as great as the least of these
    bounds, or greater, is a lower bound itself.

    Attributes:
        count: How many.
        censored: How many of them are lower bounds.
        bound_from: The least of these; `None` without any.
        mean: Mean; a lower bound if any value is.
        min: Smallest.
        p5: 5th percentile.
        p10: 10th percentile.
        p25: 25th percentile.
        median: Median; of an even number the mean of the two in the middle.
        p75: 75th percentile.
        p90: 90th percentile.
        p95: 95th percentile.
        p99: 99th percentile.
        max: Largest.
        cdf: The distribution function: values in their order, each with the share of values that are no greater. Of
            more than a thousand different values, those at every thousandth.
    """

    count: int
    censored: int
    bound_from: float | None
    mean: float
    min: float
    p5: float
    p10: float
    p25: float
    median: float
    p75: float
    p90: float
    p95: float
    p99: float
    max: float
    cdf: tuple[tuple[float, float], ...]

    def is_bound(self, value: float) -> bool:
        """Whether a percentile or a step of this value is a lower bound."""
        return self.bound_from is not None and value >= self.bound_from


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
            values[name] = _distribution(entry[name])
        return cls(**values)


def _distribution(entry: dict[str, Any] | None) -> Distribution | None:
    if entry is None:
        return None
    cdf = tuple((value, share) for value, share in entry["cdf"])
    return Distribution(**entry | {"cdf": cdf})

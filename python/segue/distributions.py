"""How values of a quantity are distributed, as the simulator defines it (`segue_sim::population`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Worst:
    """Whose value is the largest of a set.

    Attributes:
        host: The host.
        flow: Number of the flow, if it is one.
        time: When, seconds.
    """

    host: str
    flow: int | None
    time: float


@dataclass(frozen=True, slots=True)
class Summary:
    """What is known of the distribution of a quantity, in its unit.

    A percentile is the smallest value that at least so many percent of them do not exceed. Some values may be lower
    bounds. One of the sorted ones is then a lower bound itself if it is as great as the least of those, or greater: the
    true value at its place is no less, and may be more.

    Attributes:
        median: Median; of an even number the mean of the two in the middle.
        p95: 95th percentile.
        min: Smallest.
        max: Largest.
        count: How many.
        censored: How many of them are lower bounds.
        median_censored: Whether the median is one: of an even number, whether the greater of the two is.
        p95_censored: Whether the 95th percentile is.
        min_censored: Whether the smallest is.
        max_censored: Whether the largest is.
    """

    median: float
    p95: float
    min: float
    max: float
    count: int
    censored: int
    median_censored: bool
    p95_censored: bool
    min_censored: bool
    max_censored: bool


@dataclass(frozen=True, slots=True)
class Spread(Summary):
    """A distribution, and whose value is the largest.

    Attributes:
        worst: Whose is the largest.
    """

    worst: Worst

    @classmethod
    def from_entry(cls, entry: dict[str, Any] | None) -> Self | None:
        """From what the simulator writes, if it is anything."""
        return None if entry is None else cls(**entry | {"worst": Worst(**entry["worst"])})


@dataclass(frozen=True, slots=True)
class Distribution(Summary):
    """A distribution with its distribution function.

    Attributes:
        bound_from: The least of the values that are lower bounds; `None` without any.
        mean: Mean; a lower bound if any value is.
        p5: 5th percentile.
        p10: 10th percentile.
        p25: 25th percentile.
        p75: 75th percentile.
        p90: 90th percentile.
        p99: 99th percentile.
        cdf: The distribution function: values in their order, each with the share of values that are no greater. Of
            more than a thousand different values, those at every thousandth.
    """

    bound_from: float | None
    mean: float
    p5: float
    p10: float
    p25: float
    p75: float
    p90: float
    p99: float
    cdf: tuple[tuple[float, float], ...]

    @classmethod
    def from_entry(cls, entry: dict[str, Any] | None) -> Self | None:
        """From what the simulator writes, if it is anything."""
        return None if entry is None else cls(**entry | {"cdf": tuple((value, share) for value, share in entry["cdf"])})

    def is_bound(self, value: float) -> bool:
        """Whether a percentile, but for the median, or a step of this value is a lower bound."""
        return self.bound_from is not None and value >= self.bound_from

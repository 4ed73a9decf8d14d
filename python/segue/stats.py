"""Median and its interval over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb


@dataclass(frozen=True, slots=True)
class MedianInterval:
    """Median of a sample with an interval for the median of the population.

    Attributes:
        median: Sample median, in the unit of the values.
        low: Lower end.
        high: Upper end.
        coverage: Probability that the interval holds the population's median, at least; 0.95 or more where the sample
            is large enough, which takes six values. Five, from their least to their greatest, give 0.9375.
    """

    median: float
    low: float
    high: float
    coverage: float


def median_interval(values: Sequence[float], confidence: float = 0.95) -> MedianInterval:
    """Distribution-free interval for the median from order statistics.

    Each value lies below the population's median with probability 1/2, so the k-th smallest and the k-th largest of n
    values enclose it with probability 1 - 2 P(B < k), B binomial with n and 1/2 (David and Nagaraja, Order Statistics,
    section 7.1). The greatest k that keeps `confidence` is taken, and k = 1, the whole range, where none does.

    Raises:
        ValueError: If there is no value.

    >>> median_interval([3.0, 1.0, 2.0, 5.0, 4.0])
    MedianInterval(median=3.0, low=1.0, high=5.0, coverage=0.9375)
    """
    ordered = sorted(values)
    n = len(ordered)
    if n == 0:
        raise ValueError("no values")
    half = n // 2
    median = ordered[half] if n % 2 else (ordered[half - 1] + ordered[half]) / 2
    k = max([k for k in range(1, half + 1) if _coverage(n, k) >= confidence], default=1)
    return MedianInterval(median, ordered[k - 1], ordered[n - k], _coverage(n, k))


def _coverage(n: int, k: int) -> float:
    outside: int = 2 * sum(comb(n, i) for i in range(k))
    return max(0.0, 1 - outside / float(2**n))

"""Median and its interval over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, sqrt

from segue.units import percent


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
    # the ways in which none, or k - 1 or fewer, of the n are below the median, of 2^n
    k, ways, outside = 1, 1, 1
    coverage = _coverage(n, outside)
    while k < half:
        ways = ways * (n - k + 1) // k
        narrower = _coverage(n, outside + ways)
        if narrower < confidence:
            break
        k, outside, coverage = k + 1, outside + ways, narrower
    return MedianInterval(median, ordered[k - 1], ordered[n - k], coverage)


def intervals_text(intervals: Iterable[tuple[int, float]]) -> str:
    """What stands beside medians: over how many seeds they are, and how well their intervals hold them.

    Args:
        intervals: Of each, how many values it is of, and the coverage.

    >>> intervals_text([(5, 0.9375), (6, 0.96875)])
    'Medians over 5 to 6 seeds; order-statistic intervals, which hold them with 93.7 % at least.'
    """
    known = list(intervals)
    counts = [count for count, _ in known]
    if not known:
        return "No run has a value."
    if max(counts) == 1:
        return "One seed a point: there are no intervals."
    seeds = f"{max(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    least = min(coverage for count, coverage in known if count > 1)
    return f"Medians over {seeds} seeds; order-statistic intervals, which hold them with {percent(least)} at least."


def is_median_bound(values: Sequence[float], least_bound: float) -> bool:
    """Whether the median is no more than a lower bound where some values are, the least of them this one.

    Of an even number the greater of the two in the middle decides, since the median may be anything above if that may.

    >>> is_median_bound([1.0, 2.0, 9.0, 9.5], 9.0), is_median_bound([1.0, 2.0, 9.0], 9.0)
    (True, False)
    """
    return sorted(values)[len(values) // 2] >= least_bound


def _coverage(n: int, outside: int) -> float:
    return max(0.0, 1 - 2 * outside / (1 << n))


def proportion_interval(hits: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval for a proportion (Wilson 1927), 95 % unless `z` says otherwise.

    >>> [round(end, 3) for end in proportion_interval(20, 20)]
    [0.839, 1.0]
    """
    share, square = hits / n, z * z / n
    middle = (share + square / 2) / (1 + square)
    half = z * sqrt(share * (1 - share) / n + square / (4 * n)) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def difference_interval(hits: tuple[int, int], n: tuple[int, int], z: float = 1.96) -> tuple[float, float]:
    """Interval for the first of two proportions less the second: Newcombe's hybrid of Wilson's (1998, method 10).

    It needs neither large samples nor proportions apart from 0 and 1.

    >>> [round(end, 3) for end in difference_interval((20, 15), (20, 20))]
    [0.038, 0.469]
    """
    first, second = hits[0] / n[0], hits[1] / n[1]
    (low_1, high_1), (low_2, high_2) = (proportion_interval(hits[at], n[at], z) for at in (0, 1))
    below = sqrt((first - low_1) ** 2 + (high_2 - second) ** 2)
    above = sqrt((high_1 - first) ** 2 + (second - low_2) ** 2)
    return first - second - below, first - second + above


def variance_ratio(sigmas: tuple[float, float], n: tuple[int, int]) -> float:
    """Two-sided p-value of two standard deviations: the F-test, for normal samples.

    >>> round(variance_ratio((1.0, 1.0), (10, 10)), 3)
    1.0
    """
    if min(sigmas) <= 0:
        return float(max(sigmas) <= 0)
    above = _f_tail((sigmas[0] / sigmas[1]) ** 2, n[0] - 1, n[1] - 1)
    return min(1.0, 2 * min(above, 1 - above))


def _f_tail(ratio: float, above: int, below: int) -> float:
    """Probability that F with these degrees of freedom is greater."""
    return _incomplete_beta(below / (below + above * ratio), below / 2, above / 2)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8)."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x)) / a if x > 0 else 0.0
    # from its end: 200 terms are far more than any number of runs here needs
    tail = 1.0
    for term in range(200, 0, -1):
        m = term // 2
        if term % 2:
            part = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            part = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        tail = 1 + part / tail
    return front / tail

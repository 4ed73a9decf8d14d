"""Equations (1) to (4) of the paper, section 4. Times in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, sqrt


def network_latency(t_d: float, t_c: float, t_r: float) -> float:
    """T_n, equation (1).

    >>> network_latency(1.0, 0.0, 1.5)
    2.5
    """
    return t_d + t_c + t_r


def interval_density(t: float, ra_min: float, ra_max: float) -> float:
    """p_tRA, below equation (2): density of the time between two router advertisements.

    It is uniform from `ra_min` to `ra_max`.

    >>> interval_density(2.0, 1.0, 3.0), interval_density(3.5, 1.0, 3.0)
    (0.5, 0.0)
    """
    return 1 / (ra_max - ra_min) if ra_min <= t <= ra_max else 0.0


def detection_density(t: float, ra_min: float, ra_max: float) -> float:
    """p(t_d), equation (2): density of the wait for the next advertisement.

    It begins at a moment that has nothing to do with them.

    That is what is left of an interval that the moment falls into: one minus the distribution of intervals, over their
    mean.

    >>> detection_density(0.5, 1.0, 3.0), detection_density(2.0, 1.0, 3.0), detection_density(3.0, 1.0, 3.0)
    (0.5, 0.25, 0.0)
    """
    if t < 0 or t > ra_max:
        return 0.0
    mean = (ra_min + ra_max) / 2
    passed = 0.0 if t <= ra_min else (t - ra_min) / (ra_max - ra_min)
    return (1 - passed) / mean


def detection_distribution(t: float, ra_min: float, ra_max: float) -> float:
    """Probability that the wait of equation (2) is at most `t`: the integral of `detection_density`.

    >>> detection_distribution(1.0, 1.0, 3.0), detection_distribution(3.0, 1.0, 3.0)
    (0.5, 1.0)
    """
    mean = (ra_min + ra_max) / 2
    if t <= 0:
        return 0.0
    if t <= ra_min:
        return t / mean
    beyond = min(t, ra_max) - ra_min
    return (ra_min + beyond - beyond**2 / (2 * (ra_max - ra_min))) / mean if ra_max > ra_min else 1.0


def detection_mean(ra_min: float, ra_max: float) -> float:
    """Mean of t_d by equation (2): half of the intervals' mean square over their mean.

    >>> round(detection_mean(1.0, 3.0), 4)
    1.0833
    """
    square = (ra_min**2 + ra_min * ra_max + ra_max**2) / 3
    return square / (ra_min + ra_max)


def configuration_time(dad_link_local: float, default_router: float, care_of: float, dad_care_of: float) -> float:
    """t_c, equation (3).

    Duplicate address detection of the link-local address, the default route, the care-of address, and its duplicate
    address detection.

    >>> configuration_time(0.0, 0.0, 0.0, 1.0)
    1.0
    """
    return dad_link_local + default_router + care_of + dad_care_of


def return_routability_time(round_trip: float) -> float:
    """t_RR: 1.5 round trips "in the best case scenario - i.e. no packet losses".

    >>> return_routability_time(1.0)
    1.5
    """
    return 1.5 * round_trip


def registration_time(return_routability: float, binding_update: float) -> float:
    """t_r, equation (4). The second is nothing where the home agent is told "simultaneously while updating the CNs".

    >>> registration_time(return_routability_time(1.0), 0.0)
    1.5
    """
    return return_routability + binding_update


def kolmogorov_smirnov(sample: Sequence[float], ra_min: float, ra_max: float) -> tuple[float, float]:
    """Kolmogorov and Smirnov's statistic of a sample of t_d against equation (2), and its p-value.

    The p-value is that of the asymptotic distribution with Stephens's correction for finite samples (1970), good for
    eight values or more.

    Raises:
        ValueError: If the sample has fewer than eight values.
    """
    n = len(sample)
    if n < 8:
        raise ValueError(f"{n} values: expected 8 or more")
    ordered = sorted(sample)
    expected = [detection_distribution(value, ra_min, ra_max) for value in ordered]
    statistic = max(max((i + 1) / n - f, f - i / n) for i, f in enumerate(expected))
    scaled = (sqrt(n) + 0.12 + 0.11 / sqrt(n)) * statistic
    if scaled < 0.2:
        return statistic, 1.0
    tail = 2 * sum((-1) ** (k - 1) * exp(-2 * (k * scaled) ** 2) for k in range(1, 101))
    return statistic, min(max(tail, 0.0), 1.0)

from __future__ import annotations

import random
from statistics import median, stdev

import pytest

from segue.stats import difference_interval, intervals_text, median_interval, proportion_interval, variance_ratio


def test_five_values_are_enclosed_by_their_range_with_the_coverage_said() -> None:
    interval = median_interval([5, 1, 4, 2, 3])
    assert (interval.median, interval.low, interval.high) == (3, 1, 5)
    assert interval.coverage == 0.9375


def test_six_values_reach_95_percent_and_eleven_leave_out_their_extremes() -> None:
    assert median_interval(range(6)).coverage >= 0.95
    interval = median_interval(range(11))
    assert (interval.low, interval.high) == (1, 9)
    assert interval.coverage >= 0.95


def test_one_value_is_its_own_interval_without_coverage() -> None:
    interval = median_interval([7.0])
    assert (interval.low, interval.median, interval.high, interval.coverage) == (7.0, 7.0, 7.0, 0.0)


def test_what_is_said_of_intervals_is_the_least_of_their_coverages() -> None:
    def said(*counts: int) -> str:
        return intervals_text((count, median_interval(range(count)).coverage) for count in counts)

    assert said(5, 5) == "Medians over 5 seeds; order-statistic intervals, which hold them with 93.7 % at least."
    assert (
        said(10, 2, 1) == "Medians over 1 to 10 seeds; order-statistic intervals, which hold them with 50 % at least."
    )
    assert said(10) == "Medians over 10 seeds; order-statistic intervals, which hold them with 97.8 % at least."
    assert said(1, 1) == "One seed a point: there are no intervals."
    assert said() == "No run has a value."


def test_no_values_have_no_median() -> None:
    with pytest.raises(ValueError, match="no values"):
        median_interval([])


def test_coverage_is_what_drawing_many_samples_shows() -> None:
    # Independent check: exponential samples, whose median is ln 2.
    generator = random.Random(4)
    hits = 0
    for _ in range(4000):
        interval = median_interval([generator.expovariate(1) for _ in range(9)])
        hits += interval.low <= 0.693147 <= interval.high
    assert hits / 4000 == pytest.approx(median_interval(range(9)).coverage, abs=0.012)


def test_median_is_that_of_the_standard_library() -> None:
    generator = random.Random(5)
    for n in range(1, 12):
        values = [generator.random() for _ in range(n)]
        assert median_interval(values).median == median(values)


def test_intervals_of_proportions_are_newcombes() -> None:
    # Newcombe (1998), table II, method 10: examples (a), 56/70 - 48/80, and (e), 5/56 - 0/29
    assert difference_interval((56, 48), (70, 80)) == pytest.approx((0.0524, 0.3339), abs=1e-4)
    assert difference_interval((5, 0), (56, 29)) == pytest.approx((-0.0381, 0.1926), abs=1e-4)
    assert difference_interval((48, 56), (80, 70)) == pytest.approx((-0.3339, -0.0524), abs=1e-4)


def test_intervals_of_proportions_stay_between_0_and_1() -> None:
    assert proportion_interval(0, 20)[0] == pytest.approx(0.0)
    assert proportion_interval(20, 20)[1] == pytest.approx(1.0)
    low, high = difference_interval((20, 20), (20, 20))
    assert low == pytest.approx(-high)


@pytest.mark.parametrize(
    ("quantile", "above", "below", "tail"),
    # tables of F
    [(3.3258, 5, 10, 0.05), (3.3682, 10, 20, 0.01), (3.7168, 10, 10, 0.025), (161.448, 1, 1, 0.05)],
)
def test_variances_are_compared_by_f(quantile: float, above: int, below: int, tail: float) -> None:
    p = variance_ratio((quantile**0.5, 1.0), (above + 1, below + 1))
    assert p == pytest.approx(2 * tail, rel=2e-3)
    assert variance_ratio((1.0, quantile**0.5), (below + 1, above + 1)) == pytest.approx(p)


def test_variances_of_normal_samples_of_one_population_differ_as_often_as_said() -> None:
    generator = random.Random(6)

    def sigma(n: int) -> float:
        return stdev([generator.gauss(0, 1) for _ in range(n)])

    rejected = sum(variance_ratio((sigma(20), sigma(60)), (20, 60)) < 0.05 for _ in range(3000))
    assert rejected / 3000 == pytest.approx(0.05, abs=0.012)

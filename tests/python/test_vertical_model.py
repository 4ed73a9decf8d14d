"""Equations of paper 002, and its adaptation time against one written anew."""

from __future__ import annotations

import random

import pytest

from segue import _native
from segue.papers.vertical import model


@pytest.mark.parametrize(("low", "high"), [(1.0, 3.0), (0.03, 0.07), (2.0, 2.5), (0.0, 4.0)])
def test_the_density_of_equation_2_integrates_to_one(low: float, high: float) -> None:
    steps = 20_000
    width = high / steps
    heights = [model.detection_density((i + 0.5) * width, low, high) for i in range(steps)]
    assert sum(heights) * width == pytest.approx(1.0, abs=1e-6)
    assert sum(h * (i + 0.5) * width for i, h in enumerate(heights)) * width == pytest.approx(
        model.detection_mean(low, high), rel=1e-4
    )
    for part in (0.2, 0.5, 0.9):
        until = int(steps * part)
        assert sum(heights[:until]) * width == pytest.approx(
            model.detection_distribution(until * width, low, high), abs=1e-6
        )


def test_waits_of_a_renewal_process_are_distributed_so() -> None:
    draw = random.Random(5)
    waits = []
    for _ in range(400):
        at, moment = 0.0, draw.uniform(100.0, 103.0)
        while at < moment:
            at += draw.uniform(1.0, 3.0)
        waits.append(at - moment)
    _, p = model.kolmogorov_smirnov(waits, 1.0, 3.0)
    assert p > 0.01
    # the intervals themselves are something else
    _, other = model.kolmogorov_smirnov([draw.uniform(1.0, 3.0) for _ in range(400)], 1.0, 3.0)
    assert other < 1e-6


def test_parts_add_up() -> None:
    t_r = model.registration_time(model.return_routability_time(1.0), 0.5)
    assert model.network_latency(0.7, model.configuration_time(0.1, 0.02, 0.03, 1.0), t_r) == pytest.approx(3.85)


def anew(packets: list[tuple[int, int]]) -> float | None:
    """Section 5, from its text: bins counted packet by packet, all but the last, first crossing of their mean."""
    ends, rates = [], []
    begin, counted = packets[0][0], 0
    for time, size in packets:
        if time - begin > 100_000_000:
            ends.append((time - packets[0][0]) / 1e9)
            rates.append(counted * 8e9 / (time - begin))
            begin, counted = time, 0
        counted += size
    if not rates:
        return None
    mean = sum(rates) / len(rates)
    if rates[0] >= mean:
        return 0.0
    for i in range(1, len(rates)):
        if rates[i] >= mean:
            part = (mean - rates[i - 1]) / (rates[i] - rates[i - 1])
            return ends[i - 1] + part * (ends[i] - ends[i - 1])
    return None


def test_adaptation_time_is_what_the_paper_says() -> None:
    draw = random.Random(2)
    adapted = 0
    for _ in range(60):
        time, packets = 0, []
        for n in range(draw.randrange(2, 200)):
            packets.append((time, draw.randrange(100, 1500)))
            # slow at first
            time += draw.randrange(1_000_000, 900_000_000 if n < 5 else 300_000_000)
        t_a, threshold, bins = _native.adaptation_time([t for t, _ in packets], [size for _, size in packets])
        expected = anew(packets)
        assert (t_a is None) == (expected is None)
        if t_a is not None and expected is not None:
            assert t_a == pytest.approx(expected, abs=1e-9)
            assert threshold == pytest.approx(sum(rate for _, rate in bins) / len(bins))
            adapted += t_a > 0
    assert adapted > 20

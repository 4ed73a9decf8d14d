"""The equations of the CMT paper, and what becomes of them where the file ends early."""

from __future__ import annotations

import random

import pytest

from segue.papers.cmt.model import (
    Handover,
    Scheme,
    bw_overlap,
    ends_after_overlap,
    gain,
    gain_bounds_raw,
    payload_share,
    t_cmt_raw,
    t_msctp_best_raw,
    t_msctp_worst_raw,
    transfer_time,
)

SIZE = 8e6
BW_2 = 384e3


def paper(ratio: float, t_dwell: float, size: float = SIZE) -> Handover:
    """Table I, with figure 5's t_1."""
    return Handover(size=size, bw_2=BW_2, bw_ratio=ratio, t_1=2.0, t_dwell=t_dwell)


def integrated(handover: Handover, scheme: Scheme, steps: int = 20_000) -> float:
    """The time that the file takes, found by adding up data in small steps: another way to the same."""
    limit = transfer_time(handover, scheme) * 1.5 + 1.0
    step = limit / steps
    sent = 0.0
    for i in range(steps):
        at = (i + 0.5) * step
        if scheme is Scheme.SINGLE or at < handover.t_1:
            rate = handover.bw_1
        elif at < handover.t_2:
            rate = bw_overlap(handover, scheme)
        else:
            rate = handover.bw_2
        sent += rate * step
        if sent >= handover.size * 8:
            return at
    raise AssertionError("the file did not end")


@pytest.mark.parametrize("ratio", [1, 2, 3])
@pytest.mark.parametrize("t_dwell", [2, 10, 20])
def test_raw_equations_hold_where_the_file_outlasts_the_overlap(ratio: int, t_dwell: int) -> None:
    """Equations (3) to (5), which the clamped function must not change."""
    handover = paper(ratio, t_dwell)
    assert ends_after_overlap(handover, Scheme.CMT)
    assert transfer_time(handover, Scheme.CMT) == pytest.approx(t_cmt_raw(handover))
    assert transfer_time(handover, Scheme.MSCTP_BEST) == pytest.approx(t_msctp_best_raw(handover))
    assert transfer_time(handover, Scheme.MSCTP_WORST) == pytest.approx(t_msctp_worst_raw(handover))
    # equation (6)
    least, most = gain_bounds_raw(handover)
    assert gain(handover, Scheme.MSCTP_BEST) == pytest.approx(least)
    assert gain(handover, Scheme.MSCTP_WORST) == pytest.approx(most)


def test_a_file_that_ends_in_the_overlap_is_clamped() -> None:
    """Figure 5's own point: at ratio 4 and 40 s, equation (3) gives less than t_1."""
    handover = paper(4, 40)
    assert t_cmt_raw(handover) < handover.t_1
    # 64 Mbit, of which 2 s x 1.536 Mbit/s before the overlap, and the rest at 1.92 Mbit/s
    expected = 2 + (64e6 - 2 * 1.536e6) / 1.92e6
    assert transfer_time(handover, Scheme.CMT) == pytest.approx(expected)
    assert handover.t_1 < expected < handover.t_2
    assert not ends_after_overlap(handover, Scheme.CMT)
    # the best case ends in it, too
    assert t_msctp_best_raw(handover) < handover.t_2
    assert transfer_time(handover, Scheme.MSCTP_BEST) == pytest.approx(64e6 / 1.536e6)
    assert gain(handover, Scheme.MSCTP_BEST) < gain_bounds_raw(handover)[0]


def test_a_file_that_ends_before_the_overlap_is_the_same_for_all() -> None:
    """It never sees the second link."""
    handover = paper(4, 40, size=300e3)
    for scheme in Scheme:
        assert transfer_time(handover, scheme) == pytest.approx(300e3 * 8 / (4 * BW_2))
    assert t_msctp_worst_raw(handover) != pytest.approx(transfer_time(handover, Scheme.MSCTP_WORST))
    assert gain(handover, Scheme.MSCTP_WORST) == 0


def test_an_empty_file_takes_no_time_and_no_overlap_gives_no_gain() -> None:
    """The edges of the model."""
    assert transfer_time(paper(4, 40, size=0), Scheme.CMT) == 0
    assert gain(paper(4, 0), Scheme.MSCTP_BEST) == 0
    assert transfer_time(paper(1, 10), Scheme.MSCTP_BEST) == transfer_time(paper(1, 10), Scheme.MSCTP_WORST)


@pytest.mark.parametrize("scheme", list(Scheme))
@pytest.mark.parametrize(("ratio", "t_dwell"), [(1, 2), (4, 40), (4, 10), (14, 2), (14, 40)])
def test_closed_form_agrees_with_adding_up_the_data(scheme: Scheme, ratio: int, t_dwell: int) -> None:
    """Wherever the file ends."""
    handover = paper(ratio, t_dwell)
    assert transfer_time(handover, scheme) == pytest.approx(integrated(handover, scheme), rel=1e-3, abs=1e-2)


@pytest.mark.parametrize("seed", range(200))
def test_the_order_of_the_schemes_never_changes(seed: int) -> None:
    """CMT is the fastest with a second link, worst the slowest; gains stay within equation (6)."""
    draw = random.Random(seed)
    handover = Handover(
        size=draw.uniform(0, 1e8),
        bw_2=draw.uniform(1e4, 1e7),
        bw_ratio=draw.uniform(1, 14),
        t_1=draw.uniform(0, 100),
        t_dwell=draw.uniform(0, 100),
    )
    slack = 1e-9 * (1 + transfer_time(handover, Scheme.MSCTP_WORST))
    cmt, best, worst = (
        transfer_time(handover, scheme) for scheme in (Scheme.CMT, Scheme.MSCTP_BEST, Scheme.MSCTP_WORST)
    )
    assert 0 <= cmt <= best + slack <= worst + 2 * slack
    least, most = gain_bounds_raw(handover)
    assert gain(handover, Scheme.MSCTP_BEST) <= least + slack
    assert gain(handover, Scheme.MSCTP_WORST) <= most + slack


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"bw_ratio": 0.5}, "bandwidth ratio of 0.5: must be at least 1"),
        ({"bw_2": 0.0}, "bandwidth of 0 bit/s: must be positive"),
        ({"t_dwell": -1.0}, "t_dwell of -1: must not be negative"),
    ],
)
def test_values_that_make_no_sense_are_refused(change: dict[str, float], complaint: str) -> None:
    """With what was expected."""
    values = {"size": SIZE, "bw_2": BW_2, "bw_ratio": 4.0, "t_1": 2.0, "t_dwell": 10.0} | change
    with pytest.raises(ValueError, match=complaint):
        Handover(**values)


def test_payload_share() -> None:
    """1468 bytes over IPv6: 16 of chunk header, 12 of common header, 40 of IPv6 header."""
    assert payload_share(1468, 1468 + 16 + 12 + 40) == pytest.approx(0.9557, abs=1e-4)

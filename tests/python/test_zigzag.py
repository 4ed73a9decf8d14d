"""Claim S11, on made-up results: it is computed from them, whichever way they point."""

from __future__ import annotations

import polars as pl

from segue.papers.sigma import zigzag


def frame(**deactivated: float) -> pl.DataFrame:
    """Two seeds at two speeds; deleting costs 10 packets, 1000 bytes, 1.2 s until ready, 8 ms of latency."""
    deleted = {zigzag.PACKETS: 10.0, zigzag.BYTES: 1000.0, zigzag.READY: 1.2, zigzag.LATENCY: 0.008}
    values = {"on-link-down": deleted, "deactivate": {**deleted, **deactivated}}
    return pl.DataFrame(
        [
            {zigzag.VARIANT: variant, zigzag.MPS: speed, "seed": seed, **values[variant]}
            for variant in zigzag.VARIANTS
            for speed in (1.0, 2.0)
            for seed in (1, 2)
        ]
    )


LESS = {zigzag.PACKETS: 6.0, zigzag.BYTES: 500.0, zigzag.READY: 0.01}


def test_less_of_everything_holds() -> None:
    claim = zigzag.s11(frame(**LESS))
    assert claim.holds
    assert "10.0 and 6.0" in claim.measured
    assert "lower at no speed" in claim.note


def test_each_part_of_the_criterion_counts() -> None:
    for part, worse in [(zigzag.PACKETS, 10.0), (zigzag.BYTES, 1001.0), (zigzag.READY, 1.3), (zigzag.LATENCY, 0.02)]:
        claim = zigzag.s11(frame(**{**LESS, part: worse}))
        assert not claim.holds, part
        assert "not met" in claim.note


def test_a_lower_handover_latency_is_named() -> None:
    assert "lower at 1 m/s, 2 m/s" in zigzag.s11(frame(**LESS, **{zigzag.LATENCY: 0.001})).note


def test_nothing_measured_does_not_hold() -> None:
    empty = frame(**LESS).with_columns(
        pl.lit(None, dtype=pl.Float64).alias(column)
        for column in (zigzag.PACKETS, zigzag.BYTES, zigzag.READY, zigzag.LATENCY)
    )
    assert not zigzag.s11(empty).holds


def test_waits_count_returns_only() -> None:
    signalling = pl.DataFrame(
        {
            "time_ns": [0, 5, 10, 30, 100, 104],
            "event": ["link-up", "add-acknowledged", "link-up", "add-acknowledged", "link-up", "address-reused"],
            "detail": ["cell 1", "a", "cell 2", "b", "cell 1", "a"],
        }
    )
    assert zigzag._waits(signalling) == [4e-9]

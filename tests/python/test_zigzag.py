"""Claim S11, on made-up results: it is computed from them, whichever way they point."""

from __future__ import annotations

import polars as pl

from segue.papers.sigma import zigzag


def frame(**deactivated: float) -> pl.DataFrame:
    """Five seeds at two speeds; deleting costs 10 packets, 1000 bytes, 1.2 s until ready, 100 ms without data."""
    deleted = {
        zigzag.PACKETS: 10.0,
        zigzag.BYTES: 1000.0,
        zigzag.READY: 1.2,
        zigzag.INTERRUPTION: 0.1,
        zigzag.INTERRUPTION_MEAN: 0.2,
        zigzag.ADVERTISEMENTS_LOST: 0.03,
    }
    values = {"on-link-down": deleted, "deactivate": {**deleted, **deactivated}}
    return pl.DataFrame(
        [
            {zigzag.VARIANT: variant, zigzag.MPS: speed, "seed": seed, **values[variant]}
            for variant in zigzag.VARIANTS
            for speed in (1.0, 2.0)
            for seed in range(1, 6)
        ]
    )


LESS = {zigzag.PACKETS: 6.0, zigzag.BYTES: 500.0, zigzag.READY: 0.01, zigzag.INTERRUPTION: 0.008}


def test_less_of_everything_holds() -> None:
    claim = zigzag.s11(frame(**LESS))
    assert claim.holds
    assert "10.0 and 6.0" in claim.measured
    assert "one or more (1 m/s, 2 m/s)" in claim.criterion


def test_each_part_of_the_criterion_counts() -> None:
    for part, worse in [
        (zigzag.PACKETS, 10.0),
        (zigzag.BYTES, 1001.0),
        (zigzag.READY, 1.3),
        (zigzag.INTERRUPTION, 0.1),
        (zigzag.INTERRUPTION_MEAN, 0.3),
    ]:
        claim = zigzag.s11(frame(**{**LESS, part: worse}))
        assert not claim.holds, part
        assert "not met" in claim.criterion


def test_a_higher_median_at_one_speed_is_enough_to_fail() -> None:
    worse = frame(**LESS).with_columns(
        pl.when((pl.col(zigzag.VARIANT) == "deactivate") & (pl.col(zigzag.MPS) == 2.0))
        .then(0.2)
        .otherwise(pl.col(zigzag.INTERRUPTION))
        .alias(zigzag.INTERRUPTION)
    )
    claim = zigzag.s11(worse)
    assert not claim.holds
    assert "so it is at 2 m/s" in claim.criterion


def test_a_mean_that_is_higher_with_one_seed_and_lower_with_another_is_chance() -> None:
    by_chance = frame(**LESS).with_columns(
        pl.when((pl.col(zigzag.VARIANT) == "deactivate") & (pl.col("seed") == 1))
        .then(0.9)
        .otherwise(pl.col(zigzag.INTERRUPTION_MEAN) - 0.01 * (pl.col(zigzag.VARIANT) == "deactivate"))
        .alias(zigzag.INTERRUPTION_MEAN)
    )
    assert zigzag.s11(by_chance).holds


def test_two_seeds_say_nothing_of_the_mean() -> None:
    worse = frame(**LESS, **{zigzag.INTERRUPTION_MEAN: 0.3})
    assert zigzag.s11(worse).holds is False
    claim = zigzag.s11(worse.filter(pl.col("seed") <= 2))
    assert claim.holds is None
    assert "not judged, of so few seeds" in claim.criterion
    # what two seeds can tell, they do
    loud = frame(**{**LESS, zigzag.PACKETS: 10.0})
    assert zigzag.s11(loud.filter(pl.col("seed") <= 2)).holds is False


def test_nothing_measured_does_not_hold() -> None:
    empty = frame(**LESS).with_columns(pl.lit(None, dtype=pl.Float64).alias(column) for column in zigzag.MEASURES)
    assert not zigzag.s11(empty).holds


def test_a_crossing_has_the_time_without_data_that_begins_in_it() -> None:
    second = 1_000_000_000
    arrivals = [t * second for t in (1, 2, 3, 9, 10, 11, 12)]
    # Nothing arrives in the second crossing; what the run ends with counts too.
    entered = [t * second for t in (2, 5, 8, 12, 13)]
    assert zigzag._interruptions(entered, arrivals, 20 * second) == [6.0, 6.0, 1.0, 8.0]


def test_waits_count_returns_only() -> None:
    signalling = pl.DataFrame(
        {
            "time_ns": [0, 5, 10, 30, 100, 104],
            "event": ["link-up", "add-acknowledged", "link-up", "add-acknowledged", "link-up", "address-reused"],
            "detail": ["cell 1", "a", "cell 2", "b", "cell 1", "a"],
        }
    )
    assert zigzag._waits(signalling) == [4e-9]

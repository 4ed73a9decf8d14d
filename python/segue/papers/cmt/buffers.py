"""How much receive buffer is enough: figure 7's three curves, from runs with many buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from segue.papers.cmt.model import Scheme
from segue.stats import median_interval

WORST = "better than mSCTP worst"
BEST = "better than mSCTP best"
UNBLOCKED = "no blocking"
CURVES = (WORST, BEST, UNBLOCKED)

BLOCKED_SHARE = 0.001
"""Of the transfer time: a window that is closed for less counts as open. The end of a file and a lost packet close any
window for a moment."""


@dataclass(frozen=True, slots=True)
class Enough:
    """The smallest buffer that is enough, over seeds.

    Attributes:
        bw_ratio: Bandwidth ratio.
        curve: One of `CURVES`.
        median_kib: KiB; infinite where the largest that was tried is not enough.
        low_kib: Lower end of the 95 % interval.
        high_kib: Upper end.
    """

    bw_ratio: int
    curve: str
    median_kib: float
    low_kib: float
    high_kib: float


def enough(cmt: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Smallest sufficient buffer by ratio and curve: `bw_ratio`, `curve`, `median`, `low`, `high` (KiB).

    For each seed by itself: the smallest buffer from which on every larger one that was tried is enough, too.

    Args:
        cmt: Rows of CMT with one queue, one dwelling time, many buffers.
        others: Rows of mSCTP best and worst in the same settings, with an ideal buffer.
    """
    rows = []
    for (ratio,), part in sorted(cmt.group_by("bw_ratio"), key=lambda group: group[0]):
        beside = others.filter(pl.col("bw_ratio") == ratio)
        for curve in CURVES:
            values = [
                smallest(_judged(part.filter(pl.col("seed") == seed), beside.filter(pl.col("seed") == seed), curve))
                for seed in part["seed"].unique().sort()
            ]
            interval = median_interval(values)
            rows.append(
                {
                    "bw_ratio": ratio,
                    "curve": curve,
                    "median": interval.median,
                    "low": interval.low,
                    "high": interval.high,
                }
            )
    return pl.DataFrame(rows, schema_overrides={"median": pl.Float64, "low": pl.Float64, "high": pl.Float64})


def smallest(judged: Sequence[tuple[float, bool]]) -> float:
    """The smallest buffer from which on all are enough; infinite where the largest is not.

    >>> smallest([(16, False), (32, True), (64, False), (128, True), (256, True)])
    128
    """
    found = float("inf")
    for buffer, is_enough in sorted(judged, reverse=True):
        if not is_enough:
            break
        found = buffer
    return found


def greatest_ratio(table: pl.DataFrame, curve: str, buffer_kib: float) -> dict[str, float]:
    """Up to which ratio a buffer is enough, without a gap from the least on: `median`, `low`, `high` of the interval.

    The low end is where the interval's upper buffer is still within `buffer_kib`, the high end where its lower one is.
    0 where it is not enough at the least ratio.
    """
    mine = table.filter(pl.col("curve") == curve).sort("bw_ratio")
    answer = {}
    for end, column in (("median", "median"), ("low", "high"), ("high", "low")):
        reached = 0.0
        for ratio, needed in zip(mine["bw_ratio"], mine[column], strict=True):
            if needed > buffer_kib:
                break
            reached = float(ratio)
        answer[end] = reached
    return answer


def _judged(cmt: pl.DataFrame, others: pl.DataFrame, curve: str) -> list[tuple[float, bool]]:
    """Whether each buffer is enough, for one ratio and seed."""
    if curve == UNBLOCKED:
        open_window = cmt["rbuf_blocked_s"] <= BLOCKED_SHARE * cmt["transfer_time_s"]
        return list(zip(cmt["rbuf_kib"].to_list(), open_window.fill_null(value=False).to_list(), strict=True))
    scheme = Scheme.MSCTP_BEST if curve == BEST else Scheme.MSCTP_WORST
    limit = others.filter(pl.col("scheme") == str(scheme))["transfer_time_s"].item()
    times = cmt["transfer_time_s"].to_list()
    return [
        (buffer, time is not None and time < limit)
        for buffer, time in zip(cmt["rbuf_kib"].to_list(), times, strict=True)
    ]

"""How much receive buffer is enough: figure 7's three curves, from runs with many buffers."""

from __future__ import annotations

import math
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
class Tried:
    """A transfer with some receive buffer.

    Attributes:
        rbuf_kib: The buffer, KiB.
        transfer_time_s: How long it took, s; `None` if the file did not arrive whole.
        rbuf_blocked_s: How long the buffer kept the sender from sending, s.
    """

    rbuf_kib: int
    transfer_time_s: float | None
    rbuf_blocked_s: float

    def is_enough(self, curve: str, limit_s: float | None) -> bool:
        """Whether the buffer is, for a curve of `CURVES`; `limit_s` is the transfer time to be better than, if any."""
        if self.transfer_time_s is None:
            return False
        if curve == UNBLOCKED:
            return self.rbuf_blocked_s <= BLOCKED_SHARE * self.transfer_time_s
        if limit_s is None:
            raise ValueError(f"{curve}: nothing to compare with was run")
        return self.transfer_time_s < limit_s


def enough(cmt: pl.DataFrame, others: pl.DataFrame, curves: Sequence[str] = CURVES) -> pl.DataFrame:
    """Smallest sufficient buffer by ratio and curve.

    `bw_ratio`, `curve`; `median`, `low`, `high` (KiB); `coverage` of that interval, over `n` seeds.

    For each seed by itself: the smallest buffer from which on every larger one that was tried is enough, too.

    Args:
        cmt: Rows of CMT with one queue, one dwelling time, many buffers.
        others: Rows of mSCTP best and worst in the same settings, with an ideal buffer.
        curves: Those that are asked for.
    """
    limits = _limits(others)
    columns = ("bw_ratio", "seed", "rbuf_kib", "transfer_time_s", "rbuf_blocked_s")
    tried: dict[int, dict[int, list[Tried]]] = {}
    for ratio, seed, *one in sorted(cmt.select(columns).iter_rows()):
        tried.setdefault(ratio, {}).setdefault(seed, []).append(Tried(*one))
    rows = []
    for ratio, by_seed in tried.items():
        for curve in curves:
            limit = {seed: limits.get((ratio, seed, curve)) for seed in by_seed}
            interval = median_interval(
                [
                    smallest([(one.rbuf_kib, one.is_enough(curve, limit[seed])) for one in mine])
                    for seed, mine in by_seed.items()
                ]
            )
            rows.append(
                {
                    "bw_ratio": ratio,
                    "curve": curve,
                    "median": interval.median,
                    "low": interval.low,
                    "high": interval.high,
                    "coverage": interval.coverage,
                    "n": len(by_seed),
                }
            )
    return pl.DataFrame(rows, schema_overrides={"median": pl.Float64, "low": pl.Float64, "high": pl.Float64})


def still_open(cmt: pl.DataFrame, others: pl.DataFrame, curve: str) -> set[tuple[str, int, int]]:
    """Of which variant, ratio and seed every buffer that was tried is enough: a smaller one may be, too.

    Args:
        cmt: Rows of CMT, of one buffer or several.
        others: As in `enough`.
        curve: What it is to be enough for.
    """
    limits = _limits(others)
    columns = ("variant", "bw_ratio", "seed", "rbuf_kib", "transfer_time_s", "rbuf_blocked_s")
    found: dict[tuple[str, int, int], bool] = {}
    for variant, ratio, seed, *one in cmt.select(columns).iter_rows():
        key = (variant, ratio, seed)
        found[key] = found.get(key, True) and Tried(*one).is_enough(curve, limits.get((ratio, seed, curve)))
    return {key for key, is_enough in found.items() if is_enough}


def smallest(judged: Sequence[tuple[float, bool]]) -> float:
    """The smallest buffer from which on all are enough; infinite where the largest is not.

    >>> smallest([(16, False), (32, True), (64, False), (128, True), (256, True)])
    128
    """
    found = math.inf
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


def _limits(others: pl.DataFrame) -> dict[tuple[int, int, str], float]:
    """Transfer times to be better than, by ratio, seed and curve, s."""
    curves = {str(Scheme.MSCTP_BEST): BEST, str(Scheme.MSCTP_WORST): WORST}
    columns = ("bw_ratio", "seed", "scheme", "transfer_time_s")
    return {
        (ratio, seed, curves[scheme]): math.inf if time is None else time
        for ratio, seed, scheme, time in others.select(columns).iter_rows()
    }

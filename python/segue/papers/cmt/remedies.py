"""Beyond the paper: what has been proposed against receive-buffer blocking, and how far 256 kB carry with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from segue.papers.claims import Claim
from segue.papers.cmt import buffers
from segue.papers.cmt import experiment as ex
from segue.papers.cmt.experiment import Point, run_points
from segue.papers.cmt.model import Scheme
from segue.runner import Runner
from segue.running import Progress
from segue.stats import MedianInterval, median_interval

LIMIT_KIB = 256
PAPER_RATIO = 4
FIGURE_SEEDS = 5
"""Seeds of the redrawn figure 7; the table of 256 kB has them all."""

AS_PUBLISHED = ""
_BLEST = {"cmt.scheduler": "blest"}
_HELP = {"cmt.opportunistic": "true"}
_SPLIT = {"cmt.buffer_split": "both"}
_NR_SACK = {"cmt.nr_sack": "true"}

GROUPS: dict[str, dict[str, dict[str, str]]] = {
    "schedulers": {
        "lowest RTT": {"cmt.scheduler": "lowest-rtt"},
        "largest cwnd": {"cmt.scheduler": "largest-cwnd"},
        "fill first": {"cmt.scheduler": "fill-first"},
        "BLEST": _BLEST,
        "ECF": {"cmt.scheduler": "ecf"},
    },
    "buffers": {
        "sender split": {"cmt.buffer_split": "sender"},
        "receiver split": {"cmt.buffer_split": "receiver"},
        "both split": _SPLIT,
        "opportunistic": _HELP,
        "NR-SACK": _NR_SACK,
    },
    "coupled windows": {
        "LIA": {"cmt.congestion": "lia"},
        "OLIA": {"cmt.congestion": "olia"},
        "BALIA": {"cmt.congestion": "balia"},
        "CMT/RP": {"cmt.congestion": "rp1"},
        "CMT/RPv2": {"cmt.congestion": "rp2"},
    },
    "several together": {
        "BLEST, opportunistic": _BLEST | _HELP,
        "both split, opportunistic": _SPLIT | _HELP,
        "lowest RTT, opportunistic": {"cmt.scheduler": "lowest-rtt"} | _HELP,
        "ECF, opportunistic, NR-SACK": {"cmt.scheduler": "ecf"} | _HELP | _NR_SACK,
    },
}
"""By panel of the figure, by name, as `--set` has them."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a receive buffer of 256 kB carries.

    Attributes:
        name: Of the remedy.
        gains: Time saved over mSCTP best, s, by ratio.
        median: Up to which ratio, without a gap from 1 on, the median is positive; 0 for none.
        low: Up to which the whole interval is.
        high: Up to which some of the interval is.
    """

    name: str
    gains: dict[int, MedianInterval]
    median: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Beyond:
    """What came of it.

    Attributes:
        runs: A row per run; `variant` is the remedy.
        tables: Figure 7's curve of what beats mSCTP best, by remedy; "" is CMT as published.
        reaches: How far 256 kB carry, CMT as published first.
    """

    runs: pl.DataFrame
    tables: dict[str, pl.DataFrame]
    reaches: list[Reach]

    def best(self) -> Reach:
        """The remedy that carries farthest."""
        return max(self.reaches, key=lambda reach: (reach.low, reach.median, reach.high))


def remedies() -> dict[str, dict[str, str]]:
    """All by name, CMT as published first."""
    return {AS_PUBLISHED: {}} | {name: set_ for group in GROUPS.values() for name, set_ in group.items()}


def run(plan: ex.Plan, *, runner: Runner, progress: Progress | None = None) -> Beyond:
    """Run all."""
    limits = [
        one
        for name, overrides in remedies().items()
        for one in ex.varied([Point(Scheme.CMT, bw_ratio=r, rbuf_kib=LIMIT_KIB) for r in plan.ratios], name, overrides)
    ]
    others = [
        Point(scheme, bw_ratio=ratio)
        for scheme in (Scheme.MSCTP_BEST, Scheme.MSCTP_WORST)
        for ratio in sorted({*plan.ratios, *ex.QUICK_RATIOS})
    ]
    count = len(plan.seeds) * (len(limits) + len(others))
    left = len(_tried(plan))
    tell = progress or (lambda _done, _total: None)
    rest = run_points([*limits, *others], plan.seeds, runner=runner, progress=lambda done, _: tell(done, count + left))
    mine = rest.filter(pl.col("scheme") != str(Scheme.CMT))
    at_limit = rest.filter(pl.col("scheme") == str(Scheme.CMT))
    curves = _curves(plan, mine, runner=runner, progress=lambda done, total: tell(count + done, count + total))
    tables = {
        name: buffers.enough(curves.filter(pl.col("variant") == name), mine, [buffers.BEST]) for name in remedies()
    }
    best = mine.filter(pl.col("scheme") == str(Scheme.MSCTP_BEST))
    reaches = [reach(name, at_limit.filter(pl.col("variant") == name), best) for name in remedies()]
    runs = pl.concat([curves, rest]).unique(["scheme", "bw_ratio", "rbuf_kib", "variant", "seed"], maintain_order=True)
    return Beyond(runs, tables, reaches)


def _curves(plan: ex.Plan, others: pl.DataFrame, *, runner: Runner, progress: Progress) -> pl.DataFrame:
    """The transfers of the redrawn figure 7, from the largest buffer down.

    Where a buffer is not enough, no smaller one is asked for: `buffers.smallest` would not look at it. `progress` is
    told of all that may still be asked for.
    """
    rounds: list[pl.DataFrame] = []
    left = _tried(plan)
    done = 0

    def tell(now: int, _asked: int) -> None:
        progress(done + now, done + len(left))

    for buffer in sorted(ex.QUICK_BUFFERS_KIB, reverse=True):
        asked = [(point, seed) for point, seed in left if point.rbuf_kib == buffer]
        if not asked:
            break
        rounds.append(ex.run_labels(asked, runner=runner, progress=tell))
        done += len(asked)
        going_on = buffers.still_open(rounds[-1], others, buffers.BEST)
        left = [
            (point, seed)
            for point, seed in left
            if point.rbuf_kib < buffer and (point.variant, point.bw_ratio, seed) in going_on
        ]
    return pl.concat(rounds)


def _tried(plan: ex.Plan) -> list[tuple[Point, int]]:
    """The transfers that may be asked for, each with a seed, for the redrawn figure 7."""
    grid = [
        Point(Scheme.CMT, bw_ratio=ratio, rbuf_kib=rbuf) for ratio in ex.QUICK_RATIOS for rbuf in ex.QUICK_BUFFERS_KIB
    ]
    return [
        (point, seed)
        for name, overrides in remedies().items()
        for point in ex.varied(grid, name, overrides)
        for seed in plan.seeds[:FIGURE_SEEDS]
    ]


def reach(name: str, cmt: pl.DataFrame, best: pl.DataFrame) -> Reach:
    """How far 256 kB carry: `cmt` against `best`, seed by seed, ratio by ratio."""
    both = ex.saved_s(best, cmt, by=("bw_ratio", "seed"))
    gains = {
        ratio: median_interval(part["saved_s"].to_list())
        for (ratio,), part in sorted(both.group_by("bw_ratio"), key=lambda group: group[0])
    }

    def up_to(end: str) -> int:
        reached = 0
        for ratio, gain in gains.items():
            if getattr(gain, end) <= 0:
                break
            reached = ratio
        return reached

    return Reach(name, gains, up_to("median"), up_to("low"), up_to("high"))


COLUMNS = ("remedy", "up to ratio", "interval", "saved at ratio 4 (s)", "saved at ratio 8 (s)")


def rows(reaches: Sequence[Reach]) -> list[list[str]]:
    """The table of the report."""
    return [
        [
            _name(one),
            str(one.median),
            f"{one.low} to {one.high}",
            *(_text(one.gains.get(ratio)) for ratio in (4, 8)),
        ]
        for one in reaches
    ]


def c7(beyond: Beyond) -> Claim:
    """Ours: how far 256 kB carry with the best of what has been proposed since."""
    published, best = beyond.reaches[0], beyond.best()
    return Claim(
        "C7",
        "ours, beyond the paper: with what has been proposed since against receive-buffer blocking, CMT with 256 kB "
        f"beats mSCTP best up to a higher ratio than {PAPER_RATIO}",
        f"{PAPER_RATIO} without (IV-B)",
        "up to ratio (interval): "
        + "; ".join(f"{_name(one)} {one.median} ({one.low} to {one.high})" for one in (published, best))
        + "; all: "
        + "; ".join(f"{_name(one)} {one.median}" for one in beyond.reaches[1:]),
        best.median > PAPER_RATIO,
        f"the median, over seeds, of the time saved over mSCTP best is positive at every ratio up to one "
        f"higher than {PAPER_RATIO}; the interval says up to which ratio all of the 95 % interval is positive, and "
        f"up to which some of it.",
        f"t_dwell {ex.DWELL_S} s, queues of {ex.QUEUE} packets. With 256 kB, that is: "
        "figure-beyond asks that every larger buffer does so too, which at high ratios, where there is least to gain, "
        "may ask for more.",
    )


def _name(one: Reach) -> str:
    return one.name or "CMT as published"


def _text(gain: MedianInterval | None) -> str:
    return "-" if gain is None else f"{gain.median:+.2f} [{gain.low:+.2f}, {gain.high:+.2f}]"

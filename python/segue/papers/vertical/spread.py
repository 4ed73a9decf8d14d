"""How widely T_n and t_a are spread, against what the paper says of as many handovers as it has."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt
from statistics import median

import polars as pl

from segue.papers.vertical import experiment as ex
from segue.stats import variance_ratio

DRAWS = 10_000
SEED = 1
SIGNIFICANCE = 0.01
"""Below it, a number of the paper's is not one that as many of our handovers would give."""
ENDS = {
    "t_n_s": "T_n, equations 1 to 4",
    "first_packet_s": "T_n to the first packet",
    "first_data_s": "T_n to the first data",
}
PAPER = ex.PAPER_HANDOVERS["wlan-gprs"]

Table = tuple[float, float, float, float]
"""Mean, sigma, least and greatest of table 1, ms."""


@dataclass(frozen=True, slots=True)
class Draws:
    """Samples drawn with replacement from a larger one: sigma, least and greatest of each, sorted."""

    sigmas: list[float]
    leasts: list[float]
    greatests: list[float]

    @property
    def range(self) -> tuple[float, float]:
        """Median least and median greatest."""
        return median(self.leasts), median(self.greatests)


def draw(values: Sequence[float], size: int, draws: int = DRAWS) -> Draws:
    """What `size` handovers like these look like: `draws` samples of that size, always the same ones.

    Raises:
        ValueError: If there is no value, or a sample of less than two.
    """
    if not values or size < 2:
        raise ValueError(f"{size} of {len(values)} values: expected two or more of one or more")
    generator = random.Random(SEED)
    sigmas, leasts, greatests = [], [], []
    for _ in range(draws):
        sample = generator.choices(values, k=size)
        own = sum(sample) / size
        sigmas.append(sqrt(sum((value - own) ** 2 for value in sample) / (size - 1)))
        leasts.append(min(sample))
        greatests.append(max(sample))
    return Draws(sorted(sigmas), sorted(leasts), sorted(greatests))


def two_sided(drawn: Sequence[float], value: float) -> float:
    """How often what was drawn is as far out as `value`, on either side: a p-value, never 0.

    >>> two_sided([1.0, 2.0, 3.0], 2.0), two_sided([1.0, 2.0, 3.0], 9.0)
    (1.0, 0.5)
    """
    below = sum(one <= value for one in drawn) + 1
    above = sum(one >= value for one in drawn) + 1
    return min(1.0, 2 * min(below, above) / (len(drawn) + 1))


@dataclass(frozen=True, slots=True)
class Spread:
    """The spread of a sample beside the paper's, ms.

    Sigma is the paper's if neither of two tests rules that out. The ratio of variances knows both numbers of handovers,
    but is for normal samples, and the timer makes ours anything but that. What is drawn from ours needs no such
    distribution, but takes ours for all that there could be.

    Attributes:
        sigma: Ours.
        n: How many ours are.
        size: How many the paper's are.
        paper: The paper's.
        drawn: Samples as large as the paper's, drawn from ours.
    """

    sigma: float
    n: int
    size: int
    paper: Table
    drawn: Draws

    @property
    def p(self) -> tuple[float, float]:
        """p-values of the paper's sigma: by the ratio of variances, and by what is drawn."""
        ratio = variance_ratio((self.sigma, self.paper[1]), (self.n, self.size))
        return ratio, two_sided(self.drawn.sigmas, self.paper[1])

    @property
    def sigma_is_the_papers(self) -> bool:
        """Whether neither test rules out that it is."""
        return min(self.p) >= SIGNIFICANCE

    @property
    def range_is_the_papers(self) -> bool:
        """Whether they would have its least and its greatest."""
        return not self._ends_apart

    @property
    def _ends_apart(self) -> list[str]:
        ends = (
            ("least", self.drawn.leasts, self.drawn.range[0], self.paper[2]),
            ("greatest", self.drawn.greatests, self.drawn.range[1], self.paper[3]),
        )
        return [
            f"{name} {own:.0f} against {theirs:.0f}"
            for name, drawn, own, theirs in ends
            if two_sided(drawn, theirs) < SIGNIFICANCE
        ]

    @property
    def text(self) -> str:
        """What of it is not as in the paper."""
        low, high = self.drawn.range
        apart = [] if self.sigma_is_the_papers else [f"sigma {self.sigma:.0f} against {self.paper[1]:.0f}"]
        apart += self._ends_apart
        return (
            (f"the spread is not: {', '.join(apart)}" if apart else "the spread is as in the paper")
            + f" (sigma: p {_p(self.p[0])} and {_p(self.p[1])}; of {self.size} drawn from ours the range is "
            f"{low:.0f}..{high:.0f} at the median, against {self.paper[2]:.0f}..{self.paper[3]:.0f})"
        )


def beside(values: Sequence[float], size: int, paper: Table, draws: int = DRAWS) -> Spread:
    """The spread of `values`, ms, beside the paper's of `size` handovers."""
    return Spread(ex.mean_and_sigma(values)[1], len(values), size, paper, draw(values, size, draws))


@dataclass(frozen=True, slots=True)
class Groups:
    """A sample in two groups, on either side of the widest gap between neighbours."""

    early: list[int]
    late: list[int]
    """Positions in the sample, smallest value first."""
    gap: float


def groups(values: Sequence[float]) -> Groups:
    """Where a sample falls apart.

    >>> groups([5.0, 1.0, 5.5, 1.2])
    Groups(early=[1, 3], late=[0, 2], gap=3.8)

    Raises:
        ValueError: If there are fewer than two values.
    """
    if len(values) < 2:
        raise ValueError(f"{len(values)} values: expected two or more")
    order = sorted(range(len(values)), key=lambda at: values[at])
    gaps = [values[b] - values[a] for a, b in pairwise(order)]
    at = gaps.index(max(gaps)) + 1
    return Groups(order[:at], order[at:], gaps[at - 1])


def expiries(runs: pl.DataFrame, windows: pl.DataFrame, case: str) -> list[float]:
    """When the sender's timer expired in the typical run of a case, seconds after the loss of the old network.

    Args:
        runs: Of `experiment.Results`.
        windows: The same: there a window of one segment is what a timeout leaves.
        case: Which.
    """
    since = ex.values(runs, case, "since_s")
    own = windows.filter((pl.col("case") == case) & (pl.col("cwnd_bytes") <= ex.SEGMENT_BYTES))
    return [time - median(since) for time in own["time_s"].sort()] if since else []


HEADING = f"What was tried for the spread of T_n, {ex.CASE_NAMES['wlan-gprs']}"
COLUMNS = ("settings", "t_d", *ENDS.values(), "n")


def tried(runs: pl.DataFrame, paper: Table, draws: int = 2000) -> dict[tuple[str, str], Spread]:
    """Of every setting in `experiment.SPREAD` and every end of T_n, by both."""
    found = {}
    for variant in _named():
        for column in ENDS:
            values = _ms(runs, variant, column)
            if len(values) > 1:
                found[variant, column] = beside(values, PAPER, paper, draws)
    return found


def rows(runs: pl.DataFrame, paper: Table, all_: Mapping[tuple[str, str], Spread]) -> list[list[str]]:
    """The table: the paper's T_n, and ours by settings that might spread it."""
    mean, sigma, least, greatest = paper
    table = [["paper, table 1", "", f"{mean:.0f} ({sigma:.0f}) {least:.0f}..{greatest:.0f}", "", "", str(PAPER)]]
    for variant, text in _named().items():
        cells = [_span(_ms(runs, variant, "t_d_s"))]
        for column in ENDS:
            one = all_.get((variant, column))
            drawn = "" if one is None else f", of {PAPER} {_range(one)}"
            cells.append(_span(_ms(runs, variant, column)) + drawn)
        table.append([text, *cells, str(len(_ms(runs, variant, "t_n_s")))])
    return table


def explain(runs: pl.DataFrame, windows: pl.DataFrame, paper: Table, all_: Mapping[tuple[str, str], Spread]) -> str:
    """What comes of it, every number and comparison from the rows."""
    if not all_:
        return "A spread needs two handovers of each setting or more."
    _, sigma, least, greatest = paper
    by_sigma = min(all_, key=lambda key: abs(log(max(all_[key].sigma, 1e-9) / sigma)))
    by_range = min(
        all_, key=lambda key: abs(all_[key].drawn.range[0] - least) + abs(all_[key].drawn.range[1] - greatest)
    )
    count = {
        "sigma": sum(one.sigma_is_the_papers for one in all_.values()),
        "range": sum(one.range_is_the_papers for one in all_.values()),
    }
    both = [_name(key) for key, one in all_.items() if one.sigma_is_the_papers and one.range_is_the_papers]
    return " ".join(
        (
            "Milliseconds: mean (sigma), least..greatest of all, and the median least and greatest of samples of "
            f"{PAPER} drawn from them, as many as the paper's handovers, for the range grows with their number. The "
            f"paper has a sigma of {sigma:.0f}, and {least:.0f}..{greatest:.0f}.",
            f"Nearest in sigma comes {_name(by_sigma)}: {all_[by_sigma].sigma:.0f}, with {_range(all_[by_sigma])} for "
            f"{PAPER}. Nearest in least and greatest, by the sum of both distances, comes {_name(by_range)}: "
            f"{_range(all_[by_range])} for {PAPER}, with a sigma of {all_[by_range].sigma:.0f}.",
            f"Of {len(all_)} settings and ends, {count['sigma']} may have the paper's sigma (by the tests of V2), "
            f"{count['range']} its least and greatest (as of {PAPER} drawn, two-sided, {SIGNIFICANCE:.0%}), and both: "
            + (f"{'; '.join(both)}." if both else "none. What was tried does not explain the spread."),
            *_steps(runs, windows),
            "The paper says that MIPL sends solicitations, which is why the scenario does. All of this was tried after "
            "the verdicts had been seen, and nothing was set by it.",
        )
    )


def _steps(runs: pl.DataFrame, windows: pl.DataFrame) -> list[str]:
    """What the sender's timer makes of the first data."""
    case = "wlan-gprs"
    own = runs.filter((pl.col("variant") == case) & (pl.col("number") == 0)).drop_nulls(["first_data_s", "t_n_s"])
    if own.height < 2:
        return []
    data, bound = ([1e3 * float(value) for value in own[name]] for name in ("first_data_s", "t_n_s"))
    two = groups(data)
    parts = [[[sample[at] for at in part] for part in (two.early, two.late)] for sample in (data, bound)]
    (early, late), (early_bound, late_bound) = parts
    timer = [1e3 * one for one in expiries(runs, windows, case)]
    between = [one for one in timer if max(early_bound) <= one <= min(late_bound)]
    sentences = [
        f"As it is, the widest gap in the first data is of {two.gap:.0f} ms: {len(early)} runs have it at "
        f"{min(early):.0f}..{max(early):.0f} and {len(late)} at {min(late):.0f}..{max(late):.0f}. Their T_n to the "
        f"binding is {min(early_bound):.0f}..{max(early_bound):.0f} in the ones and "
        f"{min(late_bound):.0f}..{max(late_bound):.0f} in the others.",
    ]
    if timer:
        sentences.append(
            "In the typical run the sender's timer expires "
            f"{', '.join(f'{one:.0f}' for one in timer)} ms after the loss."
        )
    sentences.append(
        f"A binding that is there when the timer expires at {between[0]:.0f} ms gets its data then, and a later one "
        f"waits for the next time: bindings {min(late_bound) - max(early_bound):.0f} ms apart have their first data "
        f"{two.gap:.0f} ms apart."
        if between
        else "No time at which the timer expires there lies between the two groups of bindings."
    )
    return sentences


def _named() -> dict[str, str]:
    return {"wlan-gprs": "as it is", **{name: text for name, (text, _) in ex.SPREAD.items()}}


def _name(key: tuple[str, str]) -> str:
    return f"\u201c{_named()[key[0]]}\u201d with {ENDS[key[1]]}"


def _ms(runs: pl.DataFrame, variant: str, column: str) -> list[float]:
    return [1e3 * value for value in ex.values(runs, variant, column)]


def _span(values: Sequence[float]) -> str:
    if not values:
        return "none"
    mean, sigma = ex.mean_and_sigma(values)
    return f"{mean:.0f} ({sigma:.0f}) {min(values):.0f}..{max(values):.0f}"


def _range(one: Spread) -> str:
    low, high = one.drawn.range
    return f"{low:.0f}..{high:.0f}"


def _p(value: float) -> str:
    return f"= {value:.2g}" if value >= 0.001 else "< 0.001"

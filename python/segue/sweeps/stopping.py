"""How many seeds a point has: so many, or until an interval is narrow enough."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from segue._native import ScenarioError
from segue.stats import MedianInterval, median_interval
from segue.sweeps.columns import Metric, find_metric
from segue.units import UNITS, split

LEVEL = 0.95

_UNTIL = re.compile(r"\s*([\w.]+)\s*(?:\N{PLUS-MINUS SIGN}|\+-|\+/-)\s*(.+?)\s*")


@dataclass(frozen=True, slots=True)
class Until:
    """An interval that is asked for.

    Attributes:
        metric: Of what.
        share: How far it may reach to either side of the median, as a share of that; 0 if it is not one.
        distance: The same in the metric's unit; 0 if it is a share.
        text: As given.
    """

    metric: Metric
    share: float
    distance: float
    text: str

    @classmethod
    def parse(cls, text: str, extra: Sequence[str] = ()) -> Until:
        """From `interruption ±5 %`, or `interruption ±20 ms`; `+-` will do.

        Raises:
            ScenarioError: It is neither.
        """
        match = _UNTIL.fullmatch(text)
        quantity = split(match[2]) if match else None
        if match is None or quantity is None or quantity[0] <= 0:
            raise ScenarioError(
                f'until `{text}`: expected a metric and how far, as in "interruption \N{PLUS-MINUS SIGN}5 %"'
            )
        metric = find_metric(match[1], extra)
        number, unit = quantity
        if unit == "%":
            return cls(metric, float(number / 100), 0.0, text)
        if (UNITS[unit].base if unit else "") != metric.unit:
            raise ScenarioError(f"until `{text}`: expected {metric.unit or 'no unit'} or %")
        return cls(metric, 0.0, float(number * (UNITS[unit].factor if unit else 1)), text)

    def is_met(self, interval: MedianInterval) -> bool:
        """Whether an interval is as narrow."""
        reach = max(interval.median - interval.low, interval.high - interval.median)
        return reach <= (self.distance or self.share * abs(interval.median))


@dataclass(frozen=True, slots=True)
class Rule:
    """How many seeds each point has.

    Seeds are looked at when there are `seeds`, twice as many, four times as many and so on. The interval of the k-th
    look has a coverage of at least 1 - 0.05 / 2^k, so that, whatever is seen and whenever one stops, the intervals of
    all looks hold the median together with 0.95 at least (Bonferroni's inequality). An interval that is looked at again
    and again at 95 % would not.

    Attributes:
        seeds: Of the first look, or all of them without `until`.
        until: What is asked for.
        most: Seeds at which it is given up.
    """

    seeds: tuple[int, ...]
    until: Until | None = None
    most: int = 0

    def rounds(self) -> list[tuple[int, ...]]:
        """The seeds of each look that the one before has not had."""
        found = [self.seeds]
        if self.until is None:
            return found
        count, at = len(self.seeds), max(self.seeds) + 1
        while count < self.most:
            more = min(count, self.most - count)
            found.append(tuple(range(at, at + more)))
            count, at = count + more, at + more
        return found

    def confidence(self, count: int) -> float:
        """Of intervals over so many seeds, whatever they are of: others go with the metric that decides how many."""
        if self.until is None:
            return LEVEL
        look, have = 1, len(self.seeds)
        while have < count:
            look, have = look + 1, 2 * have
        return 1.0 - (1.0 - LEVEL) / float(2**look)

    def is_open(self, values: Sequence[float | None], are_bounds: Sequence[bool]) -> bool:
        """Whether a point needs more seeds; one of which no run has the metric does not.

        Args:
            values: Of the metric, one a run; nothing of runs that have none.
            are_bounds: Which of them are lower bounds.
        """
        known = [value for value in values if value is not None]
        if self.until is None or not known:
            return False
        confidence = self.confidence(len(values))
        interval = median_interval(known, confidence)
        bounds = [value for value, is_bound in zip(values, are_bounds, strict=True) if is_bound and value is not None]
        # a bound may be anything above itself, so that an interval that reaches to one has no end
        endless = bool(bounds) and interval.high >= min(bounds)
        return endless or interval.coverage < confidence or not self.until.is_met(interval)

    def note(self) -> str:
        """The rule, in words."""
        count = len(self.seeds)
        if self.until is None:
            return f"{count} {'seed' if count == 1 else 'seeds'} a point."
        return (
            f"Seeds of each point: {count}, then twice as many each time, until the interval of the median reached "
            f"{self.until.text}, or {self.most}. The k-th interval covers with at least 1 - 0.05 / 2^k, so all of them "
            "together with 95 %, whenever one stops, where all runs have the metric."
        )

    def to_json(self) -> dict[str, Any]:
        """For the file of results."""
        return {"seeds": list(self.seeds), "until": self.until.text if self.until else None, "most": self.most}

    @classmethod
    def from_json(cls, raw: dict[str, Any], extra: Sequence[str]) -> Rule:
        """Back again."""
        until = Until.parse(raw["until"], extra) if raw["until"] else None
        return cls(tuple(raw["seeds"]), until, int(raw["most"]))


def parse_rule(seeds: int | Sequence[int], until: str | None, most: int, extra: Sequence[str]) -> Rule:
    """The rule of a sweep.

    Raises:
        ScenarioError: No seed, one twice or out of range, or a wrong `until`.
    """
    given = tuple(range(1, seeds + 1)) if isinstance(seeds, int) else tuple(seeds)
    if not given or len(set(given)) < len(given):
        raise ScenarioError("seeds: expected at least one, and each once")
    if any(not 0 <= seed < 2**63 for seed in given):
        raise ScenarioError("seeds: expected whole numbers from 0 to 2^63 - 1")
    wanted = Until.parse(until, extra) if until is not None else None
    if wanted is not None and most < len(given):
        raise ScenarioError(f"most seeds: {most}: expected at least the {len(given)} of the first look")
    rule = Rule(given, wanted, most if wanted else 0)
    if wanted is not None and 1.0 - 2.0 ** (1 - most) < rule.confidence(most):
        # of so few the least and the greatest enclose the median with less
        raise ScenarioError(
            f"most seeds: {most}: expected more, since the interval of look {len(rule.rounds())} is to cover with "
            f"{100 * rule.confidence(most):.3g} %"
        )
    return rule

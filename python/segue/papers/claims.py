"""Claims of a paper and what became of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What becomes of a claim."""

    HOLDS = "holds"
    UNDER_A_READING = "holds under a reading"
    DOES_NOT_HOLD = "does not hold"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read what the paper leaves open, and what is measured by it.

    Attributes:
        name: What is read how, in words: "T_n ends with the correspondent's binding".
        source: Where the paper says so, or leaves it open: "equation 4".
        measured: Ours by this reading, with units.
        holds: Whether that meets the criterion.
    """

    name: str
    source: str
    measured: str
    holds: bool


NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class InLab:
    """What becomes of a claim with real hosts, by the same criterion.

    Attributes:
        measured: Theirs, with units; empty if it was not run.
        verdict: A `Verdict`, or `NOT_RUN`.
        simulated: What the simulator has of the same runs, file by file and seed by seed.
        simulated_verdict: By that; empty if it was not run.
        runs: How many were used.
        too_late: How many more were too late, and are not used.
        note: Why it was not run; else what is to be said of it.
    """

    measured: str
    verdict: str
    simulated: str = ""
    simulated_verdict: str = ""
    runs: int = 0
    too_late: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim, judged by results.

    Attributes:
        id: Id in the table of claims: "S1".
        statement: What the paper claims.
        paper: The paper's value, with section or figure.
        measured: Ours, with units.
        holds: Whether ours meets the criterion by every reading; nothing if it was not judged.
        criterion: What is asked, and which parts of it are met.
        note: Reasons, above all where the claim does not hold.
        readings: Where the paper can be read in more ways than one: each of them.
        fitted: What was chosen after a result of this claim had been seen; empty if nothing was.
        lab: What becomes of it with real hosts, if that was asked for.
    """

    id: str
    statement: str
    paper: str
    measured: str
    holds: bool | None
    criterion: str
    note: str = ""
    readings: tuple[Reading, ...] = ()
    fitted: str = ""
    lab: InLab | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict: a claim that fails by one reading and holds by another holds under a reading."""
        if self.holds is None:
            return Verdict.NOT_JUDGED
        if self.holds:
            return Verdict.HOLDS
        return Verdict.UNDER_A_READING if any(one.holds for one in self.readings) else Verdict.DOES_NOT_HOLD


def by_readings(readings: Sequence[Reading]) -> bool:
    """Whether a claim holds however the paper is read."""
    return all(one.holds for one in readings)


def tally(claims: Sequence[Claim]) -> str:
    """How many became what: "9 of 11 hold, 1 more under a reading"."""
    count = {verdict: sum(claim.verdict is verdict for claim in claims) for verdict in Verdict}
    judged = len(claims) - count[Verdict.NOT_JUDGED]
    parts = [f"{count[Verdict.HOLDS]} of {judged} hold"]
    if under := count[Verdict.UNDER_A_READING]:
        parts.append(f"{under} more under a reading that the paper leaves open")
    if left := count[Verdict.NOT_JUDGED]:
        parts.append(f"{left} not judged")
    return ", ".join(parts)


def lab_tally(claims: Sequence[Claim]) -> str:
    """The same of what was run with real hosts: "6 of 8 hold in the lab, 6 not run"."""
    verdicts = [claim.lab.verdict for claim in claims if claim.lab is not None]
    not_run = verdicts.count(NOT_RUN)
    judged = len(verdicts) - not_run - verdicts.count(Verdict.NOT_JUDGED)
    text = f"{verdicts.count(Verdict.HOLDS)} of {judged} hold in the lab"
    return f"{text}, {not_run} not run" if not_run else text


def to_json(claims: Sequence[Claim]) -> str:
    """The list as `claims.json` has it: the fields of `Claim`, and `verdict`; `lab` if real hosts were asked for."""
    return json.dumps([_entry(claim) for claim in claims], indent=2, ensure_ascii=False) + "\n"


def _entry(claim: Claim) -> dict[str, object]:
    fields = asdict(claim)
    if claim.lab is None:
        del fields["lab"]
    head = {name: fields.pop(name) for name in ("id", "statement", "paper", "criterion", "measured")}
    return {**head, "verdict": str(claim.verdict), **fields}

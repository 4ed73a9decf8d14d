"""Claims of a paper and what became of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim, judged by results.

    Attributes:
        id: Id in the table of claims: "S1".
        statement: What the paper claims.
        paper: The paper's value, with section or figure.
        measured: Ours, with units.
        holds: Whether ours meets the criterion that the note states.
        note: The criterion; and where the claim does not hold, the reason.
    """

    id: str
    statement: str
    paper: str
    measured: str
    holds: bool
    note: str


def to_json(claims: Sequence[Claim]) -> str:
    """The list as `claims.json` has it."""
    return json.dumps([asdict(claim) for claim in claims], indent=2, ensure_ascii=False) + "\n"

"""When a home agent or a location manager has no more to give: seen where it happens, else by the load of a phone."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from segue.papers.scale import experiment as ex

FULL = 0.98
"""A processor or a link that is busy for so much of the time has nothing left."""


@dataclass(frozen=True, slots=True)
class Saturation:
    """How many phones one resource of one anchor bears.

    Attributes:
        scheme: Key of `segue.papers.scale.experiment.SCHEMES`.
        anchor: Role of the node: key of `segue.papers.scale.experiment.ANCHORS`.
        resource: "processor" or "link".
        per_phone: Share of it that a phone takes, from the most phones with which it is not full.
        of_phones: How many phones that were.
        phones: How many it bears at that rate: 1 / `per_phone`.
        full_at: The fewest phones of a run with which it was full; `None` if it was with none.
    """

    scheme: str
    anchor: str
    resource: str
    per_phone: float
    of_phones: int
    phones: float
    full_at: int | None

    @property
    def is_extrapolated(self) -> bool:
        """Whether it is more than were run: it was full with none, of which `of_phones` are the most."""
        return self.full_at is None and self.phones > self.of_phones


def saturations(loads: pl.DataFrame) -> list[Saturation]:
    """Of each scheme, anchor and resource that has anything to do, in the order of schemes."""
    found = []
    for scheme in ex.SCHEMES:
        for anchor in ex.ANCHORS:
            rows = loads.filter((pl.col("scheme") == scheme) & (pl.col("anchor") == anchor))
            for resource, column in (("processor", "busy"), ("link", "link")):
                one = _of(rows, column)
                if one is not None:
                    found.append(Saturation(scheme, anchor, resource, *one))
    return found


def first(found: list[Saturation], scheme: str) -> Saturation | None:
    """What is full with the fewest phones."""
    return min((one for one in found if one.scheme == scheme), key=lambda one: one.phones, default=None)


def _of(rows: pl.DataFrame, column: str) -> tuple[float, int, float, int | None] | None:
    means = rows.group_by("phones").agg(pl.col(column).mean()).sort("phones")
    below = means.filter(pl.col(column) < FULL)
    if below.is_empty():
        return None
    phones, share = below.row(-1)
    if share == 0:
        return None
    full = means.filter(pl.col(column) >= FULL)["phones"].to_list()
    per_phone = share / phones
    return per_phone, phones, 1 / per_phone, (full[0] if full else None)

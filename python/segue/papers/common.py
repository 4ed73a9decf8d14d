"""What the reproductions of all papers share: figures with their tables, and writing it all down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from segue.figures.parallel import render_all
from segue.output import write_file
from segue.papers.claims import Claim, to_json
from segue.report.html import Section, claims_section, figure_section, page
from segue.summary import Table

INTERVALS = (
    "Intervals are order-statistic intervals for the median: the narrowest that reaches 95 %, and the whole range "
    "where fewer than six seeds cannot reach it (five reach 93.75 %)."
)

Stage = Callable[[str, int, int], object]
"""Told (what is going on, done, total)."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure of the report.

    Attributes:
        name: File name without ending: "figure-04".
        heading: The paper's caption.
        figure: The drawing.
        table: The data behind it, for a CSV file beside it; `None` for traces.
    """

    name: str
    heading: str
    figure: Figure
    table: pl.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What came of it.

    Attributes:
        claims: All that were judged, in order.
        report: The report's file.
        runs: Simulations run.
        summary: What came of it where there are no claims.
    """

    claims: list[Claim]
    report: Path
    runs: int
    summary: Table | None = None


Beside = Callable[[Sequence[Claim]], list[Claim]]
"""Puts what another world finds beside the claims."""


def alone(claims: Sequence[Claim]) -> list[Claim]:
    """The claims with nothing beside them."""
    return list(claims)


def silent(_what: str, _done: int, _total: int) -> None:
    """A stage that nobody is told of."""


def write_all(
    out: Path,
    *,
    title: str,
    lead: str,
    claims: Sequence[Claim],
    drawn: Sequence[Drawn],
    tables: Mapping[str, pl.DataFrame],
    closing: Sequence[Section],
    stage: Stage,
) -> Path:
    """Write figures, tables, claims and the report into `out`; the report's file is returned.

    That is `figures/*.png`, `figures/*.svg`, `tables/*.csv`, `claims.json` and `report.html`. Files appear whole or not
    at all; `claims.json` and `report.html` come last, so a report never speaks of figures that are not there.

    Args:
        out: Directory; made if missing.
        title: Of the report.
        lead: What is below the title.
        claims: Judged.
        drawn: Figures; they come in the order of their names.
        tables: A row per run, by name: `tables/runs-NAME.csv`.
        closing: Sections behind the figures.
        stage: Told what is going on.
    """
    sections: list[Section] = []
    in_order = sorted(drawn, key=lambda one: one.name)
    files = render_all([one.figure for one in in_order], progress=lambda done: stage("drawing", done, len(drawn)))
    for one, rendered in zip(in_order, files, strict=True):
        write_file(out / "figures" / f"{one.name}.png", rendered.png)
        write_file(out / "figures" / f"{one.name}.svg", rendered.svg)
        if one.table is not None:
            write_file(out / "tables" / f"{one.name}.csv", one.table.write_csv())
        sections.append(figure_section(one.heading, rendered))
    for name, frame in tables.items():
        write_file(out / "tables" / f"runs-{name}.csv", frame.write_csv())
    write_file(out / "claims.json", to_json(claims))
    judged = [claims_section(claims)] if claims else []
    return write_file(out / "report.html", page(title, lead, [*judged, *sections, *closing]))

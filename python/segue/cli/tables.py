"""Tables for people to read, on standard output."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from segue.cli.layout import Cell, Column, new_console, print_pairs, print_table
from segue.papers.claims import Claim, InLab, Verdict, lab_tally, tally
from segue.running import Run
from segue.summary import (
    Table,
    counts,
    death_texts,
    flow_table,
    handover_table,
    headline,
    outage_table,
    population_table,
    sentence,
)

MOST_ROWS = 12
"""Handovers and flows listed; more are counted."""
MOST_OF_POPULATIONS = 3
"""The same where there are populations, which say more."""
MOST_DEATHS = 3
TEXTS = ("population", "host", "layer", "from", "to", "transport", "state", "not told")

_KEPT = ("time", "no new data for", "flow", "to", "state", "interruption", "longest gap", "Mbit/s",
         "population", "hosts", "interruption: median", "95 %")  # fmt: skip
# In the order in which they go where there is no room.
_FIRST_TO_GO = (
    "for nothing", "layer", "transport", "T_n", "sent again", "packets", "MB", "t_d", "t_c", "t_r", "t_a",
    "latency: 95 %", "latency: median", "Mbit/s: 5 %", "a host and minute", "flows died", "99 %",
    "handoff delay", "from", "gap since", "latency", "not told", "handovers", "host", "lost", "outages",
)  # fmt: skip


def print_run(run: Run) -> None:
    """What a run came to: its populations, dead flows, then its handovers and flows."""
    metrics = run.metrics
    console = new_console()
    console.print(Text.assemble((metrics.scenario, "bold"), f", seed {metrics.seed}, {metrics.duration_s:g} s"))
    most = MOST_ROWS
    if metrics.populations:
        most = MOST_OF_POPULATIONS
        _print_table(console, "Populations", population_table(metrics.populations), "populations", MOST_ROWS)
        console.print()
    for text in (deaths := death_texts(metrics))[:MOST_DEATHS]:
        console.print(Text(text, style="red"))
    if len(deaths) > MOST_DEATHS:
        console.print(f"[red]and {len(deaths) - MOST_DEATHS} more flows that died[/]")
    console.print(Text(sentence(metrics)))
    print_pairs(console, [*headline(metrics), *counts(metrics)])
    _print_table(console, "Handovers", handover_table(metrics.handovers), "handovers", most)
    if (outages := outage_table(metrics)).rows:
        _print_table(console, "Outages without a handover", outages, "outages", most)
    _print_table(console, "Flows", flows := flow_table(metrics), "flows", most)
    if flows.rows:
        # one line for all of the tables
        console.print()
        console.print(Text(flows.note, style="dim"))


def _print_table(console: Console, title: str, what: Table, kind: str, most: int) -> None:
    """The first rows, and how many more there are."""
    console.print()
    if not what.rows:
        console.print(f"no {kind}")
        return
    console.print(f"[bold]{title}[/]")
    columns = [Column(name, right=name not in TEXTS, rank=_rank(name)) for name in what.columns]
    print_table(console, columns, what.rows[:most])
    if len(what.rows) > most:
        console.print()
        console.print(f"and {len(what.rows) - most} more {kind}: --json and --report have them all")


def _rank(name: str) -> int:
    """Of a column that nothing is said of, as of the first that is kept longer than others."""
    if name in _KEPT:
        return 0
    return len(_FIRST_TO_GO) - _FIRST_TO_GO.index(name) if name in _FIRST_TO_GO else 1


_SHORT = {
    Verdict.HOLDS: "holds",
    Verdict.UNDER_A_READING: "partly",
    Verdict.DOES_NOT_HOLD: "no",
    Verdict.NOT_JUDGED: "skipped",
}
_STYLES = {
    Verdict.HOLDS: "green",
    Verdict.UNDER_A_READING: "yellow",
    Verdict.DOES_NOT_HOLD: "red",
    Verdict.NOT_JUDGED: "dim",
}


def print_summary(what: Table) -> None:
    """A table of texts, the first column on the left."""
    columns = [Column(name, right=number > 0) for number, name in enumerate(what.columns)]
    console = new_console()
    print_table(console, columns, what.rows)
    if what.note:
        console.print(Text(what.note))


def print_claims(claims: Sequence[Claim], *, quick: bool = False) -> None:
    """Claims: what is claimed, the paper's value, ours, and the verdict; beside it what real hosts show."""
    columns = [Column("id"), *(Column(name, wraps=True) for name in ("claim", "paper", "measured")), Column("verdict")]
    in_lab = any(claim.lab is not None for claim in claims)
    if in_lab:
        columns += [Column("lab", wraps=True), Column("lab\nverdict"), Column("lab\nruns", right=True),
                    Column("simulator,\nthe same runs", wraps=True)]  # fmt: skip
    rows: list[list[Cell]] = [
        [
            claim.id,
            claim.statement,
            claim.paper,
            claim.measured,
            _verdict(claim.verdict),
            *(_lab_cells(claim.lab) if in_lab else []),
        ]
        for claim in claims
    ]
    console = new_console()
    print_table(console, columns, rows, lines=True)
    console.print(f"Claims: {tally(claims)}")
    if in_lab:
        console.print(f"Claims: {lab_tally(claims)}")
    for claim in claims:
        if claim.verdict is Verdict.UNDER_A_READING:
            readings = "; ".join(f"{one.name}: {'yes' if one.holds else 'no'}" for one in claim.readings)
            console.print(f"{claim.id} holds under a reading: {readings}")
    if quick:
        console.print("Quick: few seeds and short runs. Verdicts near their criterion may differ from the full run's.")


def _verdict(verdict: str) -> Text:
    """In a word; `NOT_RUN` as it is."""
    if verdict not in list(Verdict):
        return Text(verdict, style="dim")
    return Text(_SHORT[Verdict(verdict)], style=_STYLES[Verdict(verdict)])


def _lab_cells(lab: InLab | None) -> list[Cell]:
    """What it measured or why it was not run, the verdict, how many runs were used, and the simulator's of the same."""
    if lab is None:
        return ["", "", "", ""]
    made = lab.runs + lab.too_late
    return [lab.measured or lab.note, _verdict(lab.verdict), f"{lab.runs} of {made}" if made else "", lab.simulated]

"""Tables for people to read, on standard output."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from segue.papers.claims import Claim
from segue.running import Run
from segue.summary import Table, counts, death_texts, flow_table, handover_table, headline

MOST_ROWS = 12
"""Handovers and flows listed; more are counted."""
MOST_DEATHS = 3
WIDE = 110
"""Width of texts where there is no terminal to ask."""
UNBOUNDED = 1000
"""Width of tables of numbers there: a program that reads them wants its rows whole."""
TEXTS = ("host", "layer", "from", "to", "transport", "state", "not told")


def print_run(run: Run) -> None:
    """What a run came to: dead flows first, then its handovers and flows."""
    metrics = run.metrics
    console = _console()
    console.print(f"[bold]{escape(metrics.scenario)}[/], seed {metrics.seed}, {metrics.duration_s:g} s")
    for text in (deaths := death_texts(metrics))[:MOST_DEATHS]:
        console.print(f"[red]{escape(text)}[/]")
    if len(deaths) > MOST_DEATHS:
        console.print(f"[red]and {len(deaths) - MOST_DEATHS} more flows that died[/]")
    table = RichTable(box=None, show_header=False, pad_edge=False)
    for name, text in [*headline(metrics), *counts(metrics)]:
        table.add_row(name, escape(text))
    table.add_row("event log", f"{metrics.events} events, {metrics.event_log_hash}")
    console.print(table)
    _print_table(console, "Handovers", handover_table(metrics.handovers), "handovers")
    _print_table(console, "Flows", flow_table(metrics), "flows")


def _print_table(console: Console, title: str, what: Table, kind: str) -> None:
    """The first rows, and how many more there are."""
    console.print()
    if not what.rows:
        console.print(f"no {kind}")
        return
    console.print(f"[bold]{title}[/]")
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in what.columns:
        table.add_column(column, justify="left" if column in TEXTS else "right", overflow="fold")
    for row in what.rows[:MOST_ROWS]:
        table.add_row(*map(escape, row))
    console.print(table)
    if len(what.rows) > MOST_ROWS:
        console.print(f"and {len(what.rows) - MOST_ROWS} more {kind}: --json and --report have them all")


def print_claims(claims: Sequence[Claim], *, quick: bool = False) -> None:
    """Claims: what is claimed, the paper's value, ours, and the verdict."""
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=True)
    table.add_column("id", no_wrap=True)
    table.add_column("claim", ratio=4)
    table.add_column("paper", ratio=3)
    table.add_column("measured", ratio=4)
    table.add_column("holds", no_wrap=True)
    for claim in claims:
        verdict = "[green]yes[/]" if claim.holds else "[yellow]no[/]"
        table.add_row(claim.id, escape(claim.statement), escape(claim.paper), escape(claim.measured), verdict)
    console = _console(WIDE)
    console.print(table)
    console.print(f"{sum(claim.holds for claim in claims)} of {len(claims)} claims hold")
    if quick:
        console.print("Quick: few seeds and short runs. Verdicts near their criterion may differ from the full run's.")


def _console(width: int = UNBOUNDED) -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=width)

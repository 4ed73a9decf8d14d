"""Tables for people to read, on standard output."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from segue.metrics import Handoff, Metrics, transfer_rows
from segue.papers.claims import Claim
from segue.running import Run

MOST_HANDOVERS = 12
"""Handovers listed; more are counted."""
WIDE = 110
"""Width of tables where there is no terminal to ask."""


def print_run(run: Run) -> None:
    """Metrics of a run and its handovers."""
    metrics = run.metrics
    console = _console()
    console.print(f"[bold]{escape(metrics.scenario)}[/], seed {metrics.seed}, {metrics.duration_s:g} s")
    table = Table(box=None, show_header=False, pad_edge=False)
    latency = metrics.handover_latency_s
    if latency is not None:
        spread = f"{latency.median * 1e3:.1f} ms (from {latency.min * 1e3:.1f} to {latency.max * 1e3:.1f})"
        table.add_row("handover latency, median", spread)
        if latency.median < 0:
            table.add_row("", "below zero: both paths carried data for so long")
    table.add_row("longest time without new data", f"{metrics.longest_gap_s:.3f} s")
    table.add_row("throughput", f"{metrics.throughput_bps / 1e6:.3f} Mbit/s")
    table.add_row("loss rate (handover)", f"{metrics.loss_rate:.6f}")
    table.add_row("packets sent, retransmitted", f"{metrics.packets_sent}, {metrics.packets_retransmitted}")
    table.add_row(
        "lost to handover, queue, otherwise",
        f"{metrics.packets_lost_to_handover}, {metrics.packets_lost_to_queue}, {metrics.packets_lost_otherwise}",
    )
    for name, text in transfer_rows(metrics):
        table.add_row(name, escape(text))
    table.add_row("event log", f"{metrics.events} events, {metrics.event_log_hash}")
    console.print(table)
    if metrics.handoffs or metrics.flows:
        _print_handoffs(console, metrics)
    if not metrics.handovers:
        if not metrics.handoffs:
            console.print("no handover")
        return
    handovers = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("time (s)", "latency (ms)", "interruption (ms)", "lost"):
        handovers.add_column(column, justify="right")
    handovers.add_column("from")
    handovers.add_column("to")
    for handover in metrics.handovers[:MOST_HANDOVERS]:
        handovers.add_row(
            f"{handover.time_s:.3f}",
            _milliseconds(handover.latency_s),
            _milliseconds(handover.interruption_s),
            "" if handover.lost_packets is None else str(handover.lost_packets),
            handover.from_address or "",
            handover.to_address or "",
        )
    console.print(handovers)
    if len(metrics.handovers) > MOST_HANDOVERS:
        console.print(f"and {len(metrics.handovers) - MOST_HANDOVERS} more handovers")


def _print_handoffs(console: Console, metrics: Metrics) -> None:
    """Handoffs of shims, and what flows got."""
    if metrics.handoffs:
        handoffs = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in ("time (s)", "handoff delay (ms)", "interruption (ms)"):
            handoffs.add_column(column, justify="right")
        for column in ("host", "from", "to"):
            handoffs.add_column(column)
        for handoff in metrics.handoffs[:MOST_HANDOVERS]:
            handoffs.add_row(
                f"{handoff.begin_s:.3f}",
                _milliseconds(handoff.handoff_delay_s),
                _milliseconds(handoff.interruption_s),
                escape(handoff.host),
                handoff.from_address or "",
                handoff.to_address,
            )
        console.print(handoffs)
        _print_parts(console, metrics.handoffs[:MOST_HANDOVERS])
    if metrics.flows:
        flows = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        flows.add_column("flow")
        for column in ("MB", "packets", "retransmitted", "lost", "spurious", "interruption (ms)"):
            flows.add_column(column, justify="right")
        for flow in metrics.flows:
            flows.add_row(
                escape(f"{flow.sender} to {flow.receiver}, {flow.transport}"),
                f"{flow.transferred_bytes / 1e6:.1f}",
                str(flow.packets_sent),
                str(flow.retransmissions),
                str(flow.lost_packets),
                str(flow.spurious_retransmissions),
                _milliseconds(flow.interruption_s),
            )
        console.print(flows)


def _print_parts(console: Console, handoffs: Sequence[Handoff]) -> None:
    """Detection, configuration, registration, and adaptation."""
    if not any(handoff.parts for handoff in handoffs):
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("time (s)", "t_d (ms)", "t_c (ms)", "t_r (ms)", "T_n (ms)", "t_a (ms)"):
        table.add_column(column, justify="right")
    for handoff in handoffs:
        if (parts := handoff.parts) is not None:
            times = (parts.t_d_s, parts.t_c_s, parts.t_r_s, parts.t_n_s, parts.t_a_s)
            table.add_row(f"{handoff.begin_s:.3f}", *map(_milliseconds, times))
    console.print(table)


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.1f}"


def print_claims(claims: Sequence[Claim], *, quick: bool = False) -> None:
    """Claims with the paper's value, ours, and the verdict."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_lines=True)
    table.add_column("id", no_wrap=True)
    table.add_column("paper", ratio=3)
    table.add_column("measured", ratio=4)
    table.add_column("holds", no_wrap=True)
    for claim in claims:
        verdict = "[green]yes[/]" if claim.holds else "[yellow]no[/]"
        table.add_row(claim.id, escape(claim.paper), escape(claim.measured), verdict)
    console = _console()
    console.print(table)
    console.print(f"{sum(claim.holds for claim in claims)} of {len(claims)} claims hold")
    if quick:
        console.print("Quick: few seeds and short runs. Verdicts near their criterion may differ from the full run's.")


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDE)

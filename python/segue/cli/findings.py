"""Findings of an analysis for people to read, on standard output."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from segue import explain
from segue.cli.tables import WIDE
from segue.findings import Findings, TrafficFlow, TrafficHandover

MOST_TOLD = 3
"""As many handovers are told in full; more become a table."""
MOST_HANDOVERS = 20
"""Handovers listed in the table; more are counted."""
MOST_PAUSES = 5
MOST_DEAD = 8
MOST_FLOWS = 8


def print_findings(findings: Findings) -> None:
    """What was read, what moved, what stopped, and the largest flows."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDE)
    for capture in findings.captures:
        console.print(escape(explain.capture_line(capture)), soft_wrap=True)
    if clock := explain.clock_line(findings):
        console.print(escape(clock))
    if any(capture.packets for capture in findings.captures):
        console.print(f"Times are seconds from the first packet, {explain.beginning(findings)}.")
    for note in explain.notes(findings):
        console.print(f"[yellow]{escape(note)}[/]", soft_wrap=True)
    flows = {flow.id: flow for flow in findings.flows}
    console.print()
    _print_dead(console, findings)
    _print_handovers(console, findings, flows)
    for line in explain.shares(findings):
        console.print(escape(line), soft_wrap=True)
    _print_pauses(console, findings)
    _print_flows(console, findings)


def _print_dead(console: Console, findings: Findings) -> None:
    dead = list(explain.dead_directions(findings))
    if not dead:
        return
    flows = len(findings.dead_flows)
    console.print(f"[bold red]{flows} flow{'s' if flows > 1 else ''} died[/]")
    for flow, direction in dead[:MOST_DEAD]:
        sender, receiver = explain.ends(flow, direction)
        title = f"flow {flow.id}, {explain.protocol(flow)}, data from {sender} to {receiver}: "
        console.print(f"[bold]{escape(title)}[/]{escape(explain.death(flow, direction))}", soft_wrap=True)
        for packet in flow.direction(direction).last_packets:
            console.print(f"   {escape(packet)}", soft_wrap=True)
    if len(dead) > MOST_DEAD:
        console.print(f"and {len(dead) - MOST_DEAD} more; --json and --out have them all")
    console.print()


def _print_handovers(console: Console, findings: Findings, flows: dict[int, TrafficFlow]) -> None:
    handovers = findings.handovers
    if not handovers:
        console.print("[bold]No handover[/]: no flow went on with another address or over another interface.")
        return
    console.print(f"[bold]{len(handovers)} handover{'s' if len(handovers) > 1 else ''}[/]")
    if len(handovers) <= MOST_TOLD:
        for number, handover in enumerate(handovers, 1):
            _tell(console, number, handover, findings, flows.get(handover.flow))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("time (s)", justify="right")
    table.add_column("flow")
    table.add_column("from\nto", overflow="fold")
    table.add_column("silent", justify="right")
    table.add_column("full speed\nafter", justify="right")
    if any(handover.ends for handover in handovers):
        table.add_column("lost", justify="right")
    table.add_column("why")
    for handover in handovers[:MOST_HANDOVERS]:
        flow = flows.get(handover.flow)
        cells = [
            f"{handover.time:.3f}",
            f"{handover.flow} {explain.protocol(flow) if flow else ''}",
            "\n".join(explain.moved(handover, flow)),
            explain.silence(handover.interruption_s, censored=handover.censored),
            explain.until_full_speed(handover),
        ]
        if any(other.ends for other in handovers):
            cells.append(str(handover.ends.lost_packets) if handover.ends else "")
        cells.append(explain.reason(handover, findings))
        table.add_row(*map(escape, cells))
    console.print(table)
    if len(handovers) > MOST_HANDOVERS:
        console.print(f"and {len(handovers) - MOST_HANDOVERS} more; --json and --out have them all")


def _tell(
    console: Console, number: int, handover: TrafficHandover, findings: Findings, flow: TrafficFlow | None
) -> None:
    """One handover in full."""
    title = f"{number}. at {handover.time:.3f} s"
    if flow is not None:
        sender, receiver = explain.ends(flow, handover.direction)
        title += f": {explain.protocol(flow)}, data from {sender} to {receiver}"
    console.print()
    console.print(escape(title), style="bold", soft_wrap=True)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in explain.story(handover, findings, flow):
        table.add_row(f"   {name}", escape(text))
    console.print(table)


def _print_pauses(console: Console, findings: Findings) -> None:
    pauses = list(explain.pauses(findings))
    if not pauses:
        return
    count = f"{len(pauses)} pause{'s' if len(pauses) > 1 else ''} without a handover"
    console.print(f"\n[bold]{count}[/]{', the longest' if len(pauses) > MOST_PAUSES else ''}")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("time (s)", justify="right")
    table.add_column("silent", justify="right")
    table.add_column("flow", overflow="fold")
    table.add_column("then")
    for pause, flow, after in pauses[:MOST_PAUSES]:
        name = " to ".join(explain.ends(flow, pause.direction)) if flow else str(pause.flow)
        table.add_row(
            f"{pause.begin_s:.3f}", explain.silence(pause.duration_s, censored=pause.censored), escape(name), after
        )
    console.print(table)


def _print_flows(console: Console, findings: Findings) -> None:
    whole = [flow for flow in findings.flows if flow.parent is None]
    if not whole:
        console.print("\nNo flow: no TCP, SCTP or UDP in what was read.")
        return
    largest = sorted(whole, key=lambda flow: flow.forward.useful_bytes + flow.reverse.useful_bytes, reverse=True)
    shown = largest[:MOST_FLOWS]
    count = f"{len(whole)} flow{'s' if len(whole) > 1 else ''}"
    console.print(f"\n[bold]{count}[/]{', the largest' if len(whole) > len(shown) else ''}")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("flow", justify="right")
    table.add_column("what", no_wrap=True)
    table.add_column("from\nto", overflow="fold")
    for column in ("data", "speed", "sent again", "round trip", "longest\npause", "end", "paths"):
        table.add_column(column, justify="right")
    for flow in shown:
        direction = "forward" if flow.forward.useful_bytes >= flow.reverse.useful_bytes else "reverse"
        way = flow.direction(direction)
        table.add_row(
            str(flow.id),
            escape(explain.protocol(flow)),
            escape("\n".join(explain.ends(flow, direction))),
            explain.size(way.useful_bytes),
            explain.rate(way.throughput_bps),
            str(way.ends.retransmissions if way.ends else way.retransmissions),
            explain.seconds(way.rtt_s.median) if way.rtt_s else "",
            explain.silence(way.longest_gap_s, censored=way.censored),
            way.state,
            str(sum(path.direction == direction and path.data_packets > 0 for path in flow.paths) or ""),
        )
    console.print(table)

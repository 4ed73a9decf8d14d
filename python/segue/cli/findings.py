"""Findings of an analysis for people to read, on standard output."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from segue import explain
from segue.cli.layout import Column, new_console, print_pairs, print_table
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
    console = new_console()
    for capture in findings.captures:
        console.print(Text(explain.capture_line(capture)))
    if clock := explain.clock_line(findings):
        console.print(Text(clock))
    if any(capture.packets for capture in findings.captures):
        console.print(f"Times are seconds from the first packet, {explain.beginning(findings)}.")
    for note in explain.notes(findings):
        console.print(Text(note, style="yellow"))
    flows = {flow.id: flow for flow in findings.flows}
    console.print()
    _print_dead(console, findings)
    _print_handovers(console, findings, flows)
    for line in explain.shares(findings):
        console.print(Text(line))
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
        console.print(Text.assemble((title, "bold"), explain.death(flow, direction)))
        for packet in flow.direction(direction).last_packets:
            console.print(Padding(Text(packet), (0, 0, 0, 3)))
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
    both_ends = any(handover.ends for handover in handovers)
    columns = [
        Column("time (s)", right=True),
        Column("flow"),
        Column("protocol", rank=4),
        Column("from\nto"),
        Column("silent", right=True),
        Column("full speed\nafter", right=True, rank=1),
        *([Column("lost", right=True, rank=2)] if both_ends else []),
        Column("why", rank=3, wraps=True),
    ]
    rows = []
    for handover in handovers[:MOST_HANDOVERS]:
        flow = flows.get(handover.flow)
        rows.append([
            f"{handover.time:.3f}",
            str(handover.flow),
            explain.protocol(flow) if flow else "",
            "\n".join(explain.moved(handover, flow)),
            explain.silence(handover.interruption_s, censored=handover.censored),
            explain.until_full_speed(handover),
            *([str(handover.ends.lost_packets) if handover.ends else ""] if both_ends else []),
            explain.reason_and_doubt(handover, findings),
        ])  # fmt: skip
    print_table(console, columns, rows)
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
    console.print(Text(title, style="bold"))
    print_pairs(console, list(explain.story(handover, findings, flow)))


def _print_pauses(console: Console, findings: Findings) -> None:
    pauses = list(explain.pauses(findings))
    if not pauses:
        return
    count = f"{len(pauses)} pause{'s' if len(pauses) > 1 else ''} without a handover"
    console.print(f"\n[bold]{count}[/]{', the longest' if len(pauses) > MOST_PAUSES else ''}")
    columns = [
        Column("time (s)", right=True), Column("silent", right=True), Column("flow", rank=2), Column("from\nto"),
        Column("then", rank=1, wraps=True),
    ]  # fmt: skip
    rows = []
    for pause, flow, after in pauses[:MOST_PAUSES]:
        ends = "\n".join(explain.ends(flow, pause.direction)) if flow else ""
        silent = explain.silence(pause.duration_s, censored=pause.censored)
        rows.append([f"{pause.begin_s:.3f}", silent, str(pause.flow), ends, after])
    print_table(console, columns, rows)


def _print_flows(console: Console, findings: Findings) -> None:
    whole = [flow for flow in findings.flows if flow.parent is None]
    if not whole:
        console.print("\nNo flow: no TCP, SCTP or UDP in what was read.")
        return
    largest = sorted(whole, key=lambda flow: flow.forward.useful_bytes + flow.reverse.useful_bytes, reverse=True)
    shown = largest[:MOST_FLOWS]
    count = f"{len(whole)} flow{'s' if len(whole) > 1 else ''}"
    console.print(f"\n[bold]{count}[/]{', the largest' if len(whole) > len(shown) else ''}")
    stood_still = any(flow.forward.outages or flow.reverse.outages for flow in shown)
    columns = [
        Column("flow", right=True), Column("what", rank=1), Column("from\nto"),
        *(Column(name, right=True, rank=rank) for name, rank in (
            ("data", 2), ("speed", 0), ("sent again", 4), ("round trip", 5), ("longest\npause", 0), ("pause\nsince", 7),
            *([("outages", 3)] if stood_still else []), ("end", 0), ("paths", 6),
        )),
    ]  # fmt: skip
    rows = []
    for flow in shown:
        direction = "forward" if flow.forward.useful_bytes >= flow.reverse.useful_bytes else "reverse"
        way = flow.direction(direction)
        rows.append([
            str(flow.id),
            explain.protocol(flow),
            "\n".join(explain.ends(flow, direction)),
            explain.size(way.useful_bytes),
            explain.rate(way.throughput_bps),
            str(way.ends.retransmissions if way.ends else way.retransmissions),
            explain.seconds(way.rtt_s.median) if way.rtt_s else "",
            explain.silence(way.longest_gap_s, censored=way.longest_gap_is_bound),
            "" if way.longest_gap_at_s is None else f"{way.longest_gap_at_s:.3f} s",
            *([str(len(way.outages))] if stood_still else []),
            way.state,
            str(sum(path.direction == direction and path.data_packets > 0 for path in flow.paths) or ""),
        ])  # fmt: skip
    print_table(console, columns, rows)

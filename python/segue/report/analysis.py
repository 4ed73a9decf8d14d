"""Report of an analysis of captures: one HTML file."""

from __future__ import annotations

from html import escape
from pathlib import Path

from segue import explain
from segue.analyze import Analysis
from segue.figures.capture import flow_timeline, paths_with_data, sequence_by_path, throughput_by_path
from segue.figures.style import render
from segue.findings import Findings, TrafficFlow, TrafficHandover
from segue.output import write_file
from segue.report.html import Section, figure_section, page, table_section

MOST_ROWS = 24
"""Directions of flows in the timeline."""
MOST_DRAWN = 6
"""Flows whose throughput and segments are drawn."""
MOST_ZOOMED = 4
"""Handovers around which segments are drawn, of a flow."""
MOST_LISTED = 500
"""Handovers, pauses and signals in tables; more are counted."""
MOST_FLOWS = 50
MOST_DEAD = 20
"""Dead directions whose last packets are told."""
AROUND_S = 1.0
"""Shown around a handover beside its interruption; three times its interruption if that is longer."""


def write_analysis_report(analysis: Analysis, path: Path) -> Path:
    """Write the report of `analysis`, made with `series=True`, as one HTML file."""
    findings = analysis.findings
    sections = [_read_section(findings), _handover_section(findings), *_figures(analysis)]
    if findings.dead_flows:
        sections.insert(0, _dead_section(findings))
    if any(True for _ in explain.pauses(findings)):
        sections.append(_pause_section(findings))
    if any(way.outages for flow in findings.flows for way in (flow.forward, flow.reverse)):
        sections.append(_outage_section(findings))
    sections.append(_flow_section(findings))
    if findings.signals:
        sections.append(_signal_section(findings))
    names = " and ".join(Path(capture.file).name for capture in findings.captures)
    count = len(findings.handovers)
    lead = f"{count} handover{'' if count == 1 else 's'} in {explain.seconds(findings.duration_s) or '0 s'}."
    if dead := len(findings.dead_flows):
        lead = f"{dead} flow{'' if dead == 1 else 's'} died. {lead}"
    if findings.is_partial:
        lead = f"PARTIAL. {lead}"
    return write_file(path, page(f"Handovers in {names}", lead, sections))


def _read_section(findings: Findings) -> Section:
    lines = [explain.capture_line(capture) for capture in findings.captures]
    if clock := explain.clock_line(findings):
        lines.append(clock)
    if any(capture.packets for capture in findings.captures):
        lines.append(f"Times are seconds from the first packet, {explain.beginning(findings)}.")
    body = "".join(f"<p>{escape(line)}</p>" for line in lines)
    body += "".join(f'<p class="no" style="white-space:normal">{escape(note)}</p>' for note in explain.notes(findings))
    return Section("What was read", body)


def _dead_section(findings: Findings) -> Section:
    """Flows that died, with the packets around it."""
    dead = list(explain.dead_directions(findings))
    rows = []
    for flow, direction in dead[:MOST_LISTED]:
        way = flow.direction(direction)
        rows.append([
            f"{way.dead_since_s:.3f}",
            explain.silence(way.silence_s, censored=True),
            f"{flow.id} {explain.protocol(flow)}",
            " → ".join(explain.ends(flow, direction)),
            str(way.attempts),
        ])  # fmt: skip
    columns = ["dead since (s)", "nothing new for", "flow", "from → to", "attempts"]
    section = table_section(f"Flows that died ({len(findings.dead_flows)})", columns, rows)
    note = (
        '<p class="note">Dead: the sender went on sending for longer than a second and its retransmission timeout, '
        "and nothing new arrived. The silence is a lower bound: it lasts to the end of the capture.</p>"
    )
    for flow, direction in dead[:MOST_DEAD]:
        packets = "<br>".join(map(escape, flow.direction(direction).last_packets))
        note += f'<p>Flow {flow.id}: {escape(explain.death(flow, direction))}.</p><p class="note">{packets}</p>'
    return Section(section.heading, section.body + note, "Dead flows")


def _handover_section(findings: Findings) -> Section:
    flows = {flow.id: flow for flow in findings.flows}
    if not findings.handovers:
        shares = "".join(f"<p>{escape(line)}</p>" for line in explain.shares(findings))
        none = "<p>None: no flow went on with another address or over another interface.</p>"
        return Section("Handovers", none + shares)
    rows = []
    for handover in findings.handovers[:MOST_LISTED]:
        flow = flows.get(handover.flow)
        rows.append([
            f"{handover.time:.3f}",
            f"{handover.flow} {explain.protocol(flow)}" if flow else str(handover.flow),
            " → ".join(explain.moved(handover, flow)),
            ("≥ " if handover.censored else "") + f"{handover.interruption_s * 1e3:.1f}",
            "" if handover.latency_s is None else f"{handover.latency_s * 1e3:.1f}",
            explain.until_full_speed(handover),
            f"{explain.rate(handover.throughput_before_bps)} → {explain.rate(handover.throughput_after_bps)}",
            _round_trips(handover),
            explain.loss(handover) or "needs both ends",
            "; ".join(filter(None, (explain.reason_and_doubt(handover, findings), explain.network_parts(handover)))),
        ])  # fmt: skip
    columns = ["time (s)", "flow", "moved", "silence (ms)", "handover latency (ms)", "full speed after", "throughput",
               "round trip", "packets", "why"]  # fmt: skip
    section = table_section(f"Handovers ({len(findings.handovers)})", columns, rows)
    note = (
        '<p class="note">Silence: the longest time without new data around the handover. Handover latency: from the '
        "last packet with data over the old path to the first over the new one; negative while the old path still "
        "delivers. Full speed after: how long until the new path carried its own mean.</p>"
    )
    more = len(findings.handovers) - len(rows)
    if more:
        note += f'<p class="note">And {more} more; --json and --out have them all.</p>'
    note += "".join(f"<p>{escape(line)}</p>" for line in explain.shares(findings))
    return Section(section.heading, section.body + note, "Handovers")


def _figures(analysis: Analysis) -> list[Section]:
    findings = analysis.findings
    flows = {flow.id: flow for flow in findings.flows}
    moved = list(dict.fromkeys((h.flow, h.direction) for h in findings.handovers if h.flow in flows))
    ways = [(flows[number], direction) for number, direction in moved]
    ways += [way for way in _largest(findings) if (way[0].id, way[1]) not in moved]
    if not ways:
        return []
    throughput, segments = analysis.throughput, analysis.segments
    timeline = flow_timeline(findings, throughput, ways[:MOST_ROWS])
    sections = [figure_section("Timeline", render(timeline), alt="Which path carried the data of each flow, by time")]
    # Without a handover, the largest flow shows what there is.
    for flow, direction in ways[: min(len(moved), MOST_DRAWN) or 1]:
        handovers = [h for h in findings.handovers if (h.flow, h.direction) == (flow.id, direction)]
        end = max(flow.end_s, flow.begin_s + 1e-3)
        figures = [
            throughput_by_path(flow, direction, throughput, handovers),
            sequence_by_path(
                flow, direction, segments, handovers, start_s=flow.begin_s, end_s=end,
                title=f"Progress of flow {flow.id} by path",
            ),
        ]  # fmt: skip
        for handover in handovers[:MOST_ZOOMED]:
            start, last = _around(handover)
            figures.append(
                sequence_by_path(
                    flow, direction, segments, handovers, start_s=max(start, 0), end_s=min(last, end),
                    title=f"Around the handover at {handover.time:.3f} s",
                )
            )  # fmt: skip
        ends = " to ".join(explain.ends(flow, direction))
        heading = f"Flow {flow.id}: {explain.protocol(flow)} from {ends}"
        bodies = [figure_section(heading, render(figure)).body for figure in figures]
        sections.append(Section(heading, "\n".join(bodies), f"Flow {flow.id}"))
    return sections


def _round_trips(handover: TrafficHandover) -> str:
    known = (handover.rtt_before_s, handover.rtt_after_s)
    return " → ".join(explain.seconds(rtt) or "?" for rtt in known) if any(rtt is not None for rtt in known) else ""


def _around(handover: TrafficHandover) -> tuple[float, float]:
    margin = max(AROUND_S, 1.5 * handover.interruption_s)
    return handover.time - max(handover.interruption_s, 0) - margin, handover.time + margin


def _largest(findings: Findings) -> list[tuple[TrafficFlow, str]]:
    """Directions of whole flows that carried data, the largest first."""
    ways = [
        (flow.direction(name).useful_bytes, flow, name)
        for flow in findings.flows
        for name in ("forward", "reverse")
        if flow.parent is None and paths_with_data(flow, name)
    ]
    return [(flow, name) for _, flow, name in sorted(ways, key=lambda way: way[0], reverse=True)]


def _pause_section(findings: Findings) -> Section:
    pauses = list(explain.pauses(findings))
    rows = [
        [
            f"{pause.begin_s:.3f}",
            ("≥ " if pause.censored else "") + f"{pause.duration_s * 1e3:.1f}",
            " → ".join(explain.ends(flow, pause.direction)) if flow else "",
            after,
        ]
        for pause, flow, after in pauses[:MOST_LISTED]
    ]
    columns = ["time (s)", "silence (ms)", "flow", "then"]
    section = table_section(f"Pauses without a handover ({len(pauses)})", columns, rows)
    return Section(section.heading, section.body, "Pauses")


def _outage_section(findings: Findings) -> Section:
    """What no handover accounts for: what never ended first, then by time."""
    every = [
        (outage, flow, name)
        for flow in findings.flows
        if flow.parent is None
        for name in ("forward", "reverse")
        for outage in flow.direction(name).outages
    ]
    every.sort(key=lambda one: (not one[0].censored, one[0].since_s, one[1].id))
    rows = [
        [
            f"{outage.since_s:.3f}",
            explain.silence(outage.duration_s, censored=outage.censored),
            f"{flow.id} {explain.protocol(flow)}",
            " → ".join(explain.ends(flow, name)),
        ]
        for outage, flow, name in every[:MOST_LISTED]
    ]
    columns = ["time (s)", "no new data for", "flow", "from → to"]
    section = table_section(f"Outages without a handover ({len(every)})", columns, rows)
    return Section(section.heading, section.body, "Outages")


def _flow_section(findings: Findings) -> Section:
    rows = [
        [
            str(flow.id),
            explain.protocol(flow),
            " → ".join(explain.ends(flow, name)),
            explain.size(flow.direction(name).useful_bytes),
            explain.rate(flow.direction(name).throughput_bps),
            str(flow.direction(name).packets),
            str(flow.direction(name).retransmissions),
            ("≥ " if flow.direction(name).longest_gap_is_bound else "")
            + f"{flow.direction(name).longest_gap_s * 1e3:.1f}",
            "" if (since_s := flow.direction(name).longest_gap_at_s) is None else f"{since_s:.3f}",
            str(len(flow.direction(name).outages)),
            flow.direction(name).state,
            " | ".join(explain.path_name(p) for p in flow.paths if p.direction == name and p.data_packets),
        ]
        for flow, name in _largest(findings)[:MOST_FLOWS]
    ]
    columns = [
        "flow",
        "what",
        "from → to",
        "data",
        "throughput",
        "packets",
        "sent again",
        "longest pause (ms)",
        "since (s)",
        "outages",
        "end",
        "paths",
    ]
    heading = f"Flows ({findings.flows_total})"
    if not rows:
        return Section(heading, "<p>None: no TCP, SCTP or UDP with data in what was read.</p>", "Flows")
    section = table_section(heading, columns, rows)
    return Section(section.heading, section.body, "Flows")


def _signal_section(findings: Findings) -> Section:
    rows = [
        [
            f"{signal.time_s:.6f}",
            explain.signal(signal.kind),
            f"{signal.source} → {signal.destination}",
            signal.about or "",
            "" if signal.flow is None else str(signal.flow),
            findings.captures[signal.capture].file if signal.capture < len(findings.captures) else "",
        ]
        for signal in findings.signals[:MOST_LISTED]
    ]
    columns = ["time (s)", "message", "from → to", "about", "flow", "capture"]
    section = table_section(f"Signalling ({len(findings.signals)})", columns, rows)
    return Section(section.heading, section.body, "Signalling")

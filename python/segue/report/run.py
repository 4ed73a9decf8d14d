"""Report of a single run: what it came to, all flows together, then some of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from segue.figures.flow import FlowTrace, Switch, connections_of, flow_trace, worst_handover
from segue.figures.ladder import next_move_s, of_hosts, signalling_ladder, span_of_signalling
from segue.figures.population import by_population, distributions, flows_over_time
from segue.figures.position import position_against_cells, presence_of_cells, with_places, with_times
from segue.figures.scenario import mark_scenario
from segue.figures.sequence import segment_sequence, span_around
from segue.figures.tsn import tsn_against_time
from segue.figures.window import congestion_windows, windows_of
from segue.metrics import Flow, Metrics
from segue.output import write_file
from segue.recorded import Recorded
from segue.report.html import Section, drawing, page, table, table_section, text_section
from segue.summary import (
    DEAD,
    Table,
    counts,
    death_texts,
    flow_interruptions,
    flow_name,
    flow_table,
    handover_table,
    headline,
    host_table,
    outage_table,
    population_table,
    state_text,
    time_text,
    worst_first,
)

MOST_ROWS = 2000
"""Rows of a table; more are counted."""
MOST_OF_POPULATIONS = 50
"""The same where there are populations, which say more."""
WORST_DEATHS = 3
"""Flows that died of which all is shown at once; more are folded."""
FEW = 3
"""So many flows are all shown by themselves; of more, the worst, the median and the best."""


def write_run_report(run: Recorded, path: Path, flows: Sequence[int] = ()) -> Path:
    """Write the report of `run`, which must have frames, as one HTML file.

    Args:
        run: The run.
        path: The file.
        flows: Numbers of the flows to show by themselves; without any, the worst, the median and the best.

    Raises:
        ValueError: If the run has no flow of such a number.
    """
    metrics = run.metrics
    rows = [*headline(metrics), *counts(metrics)]
    summary = table_section("Summary", ["", ""], [list(row) for row in rows])
    lead = f"Seed {metrics.seed}, {metrics.duration_s:g} s simulated, event log {metrics.event_log_hash[:16]}."
    return write_file(
        path, page(f"Run of {metrics.scenario}", lead, [*populations_of(metrics), summary, *sections_of(run, flows)])
    )


def populations_of(metrics: Metrics) -> list[Section]:
    """What a report begins with, if the run has populations."""
    if not metrics.populations:
        return []
    rows = population_table(metrics.populations)
    body = _table_with_note(rows, len(rows.rows))
    if any(one.interruption_s is not None or one.goodput_bps is not None for one in metrics.populations):
        figure = by_population(
            metrics, title="What hosts of each population had",
            subtitle="A curve shows how many of all lie at or below a value: short interruptions are good.",
        )  # fmt: skip
        body += drawing(figure, "Interruptions and goodput by population")
    return [Section("Populations", body)]


def sections_of(run: Recorded, flows: Sequence[int] = ()) -> list[Section]:
    """What a report says of a run, whoever ran it, below the summary.

    Raises:
        ValueError: If the run has no flow of such a number.
    """
    metrics = run.metrics
    chosen = choose(metrics, flows)
    outages = outage_table(metrics)
    most = MOST_OF_POPULATIONS if metrics.populations else MOST_ROWS
    return [
        *_warnings(metrics),
        *_deaths(metrics),
        *_population(metrics),
        _table_section("Handovers", handover_table(metrics.handovers), most),
        *([_table_section("Outages without a handover", outages, most)] if outages.rows else []),
        _table_section("Flows", flow_table(metrics), most),
        *([_table_section("Hosts", host_table(metrics.hosts), most)] if len(metrics.hosts) > 1 else []),
        *_flow_sections(run, chosen),
        text_section("Scenario as run", run.scenario_toml),
    ]  # fmt: skip


def choose(metrics: Metrics, flows: Sequence[int] = ()) -> list[tuple[str, Flow]]:
    """The flows to show by themselves, each with what to call it.

    Raises:
        ValueError: If there is no flow of such a number.
    """
    known = {flow.id: flow for flow in metrics.flows}
    for number in flows:
        if number not in known:
            there = f"expected one of {min(known)} to {max(known)}" if known else "the run has no flows"
            raise ValueError(f"no flow {number}: {there}")
    if flows:
        return [("Chosen", known[number]) for number in dict.fromkeys(flows)]
    ordered = worst_first(metrics)
    if len(ordered) <= FEW:
        return [("Worst" if n == 0 and len(ordered) > 1 else "", flow) for n, flow in enumerate(ordered)]
    return [("Worst", ordered[0]), ("Median", ordered[len(ordered) // 2]), ("Best", ordered[-1])]


def flow_figures(run: Recorded, flow: Flow, trace: FlowTrace) -> Iterator[tuple[str, Figure]]:
    """Figures of one flow as (heading, figure)."""
    several = len(run.metrics.flows) > 1
    shown = worst_handover(run.metrics, flow)
    if shown is not None:
        number, handover = shown
        switch = trace.switches[number]
        which = f"handover at {handover.time_s:.3f} s" + (
            f", the longest interruption of {len(trace.switches)}" if len(trace.switches) > 1 else ""
        )
        signalling, packets = of_hosts(run, trace) if several else (run.signalling, run.packets)
        start, end = span_of_signalling(signalling, switch, next_move_s(run.metrics, handover))
        first, last = span_around(trace, switch)
        yield (
            f"Signalling of the {which}",
            signalling_ladder(
                signalling, packets, start_s=start, end_s=end,
                title=f"Signalling around {handover.time_s:.3f} s",
                subtitle=f"{trace.mover} moves from {switch.old} to {switch.new}; data takes the new path at "
                f"{switch.first_new_s:.3f} s.",
            ),
        )  # fmt: skip
        yield (
            f"Segments around the {which}",
            segment_sequence(
                trace, switch, start_s=first, end_s=last,
                title=f"Segments around {handover.time_s:.3f} s",
                subtitle=f"As {trace.sender} sees them, by the address of {trace.mover}. No new data arrived for "
                f"{time_text(handover.interruption_s, censored=handover.censored) or 'an unknown time'}.",
            ),
        )  # fmt: skip
    yield (
        "Sequence numbers against time" if trace.in_bytes else "TSN against time",
        with_events(
            tsn_against_time(
                trace,
                died_s=flow.dead_since_s,
                title="Segments sent, by path",
                subtitle=f"A path is named by the address of {trace.mover}. A flat stretch is an outage, dashed lines "
                "are handovers.",
            ),
            run.metrics,
        ),
    )
    windows, deleted = windows_of(run, trace)
    if not windows.is_empty():
        yield (
            "Congestion windows",
            congestion_windows(
                windows, trace.switches, start_s=0, end_s=trace.last_s * 1.02, title="Congestion windows",
                subtitle=f"Of {trace.sender}'s paths; a curve ends where its address is deleted.", deletions=deleted,
                towards="source" if trace.mover == trace.sender else "destination",
            ),
        )  # fmt: skip


def network_figures(
    cells: pl.DataFrame, positions: pl.DataFrame, switches: Sequence[Switch]
) -> list[tuple[str, Figure]]:
    """Where the mobile host was against the cells, and when those that come and go by the clock were in reach."""
    found = []
    somewhere, at_times = with_places(cells), with_times(cells)
    if not positions.is_empty() and not somewhere.is_empty():
        found.append(
            (
                "Position against the cells",
                position_against_cells(
                    positions, somewhere, switches, title="Position against the cells",
                    subtitle="Bands are the cells' reach; dashed lines are handovers of the data.",
                ),
            )
        )  # fmt: skip
    if not at_times.is_empty():
        found.append(
            (
                "Networks in reach",
                presence_of_cells(
                    at_times, switches, title="Networks in reach", subtitle="Dashed lines are handovers of the data."
                ),
            )
        )
    return found


def with_events(figure: Figure, metrics: Metrics) -> Figure:
    """A figure against time, in which is marked what the scenario has happen."""
    for axes in figure.axes[:1]:
        mark_scenario(axes, metrics)
    return figure


def _warnings(metrics: Metrics) -> list[Section]:
    if not metrics.warnings:
        return []
    return [Section("Warnings", f'<div class="warn">{_list([warning.text for warning in metrics.warnings])}</div>')]


def _deaths(metrics: Metrics) -> list[Section]:
    texts = death_texts(metrics)
    if not texts:
        return []
    body = _list(texts[:WORST_DEATHS])
    if len(texts) > WORST_DEATHS:
        rest = texts[WORST_DEATHS:MOST_ROWS]
        more = len(texts) - WORST_DEATHS - len(rest)
        note = f"<p>And {more} more; the frames and the JSON of the run have them all.</p>" if more else ""
        body += f"<details><summary>{len(texts) - WORST_DEATHS} more</summary>{_list(rest)}{note}</details>"
    return [Section(f"Flows that died: {len(texts)} of {len(metrics.flows)}", body, "Flows that died")]


def _list(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def _population(metrics: Metrics) -> list[Section]:
    """All flows together, if there are several."""
    if len(metrics.flows) < 2:
        return []
    worst = worst_first(metrics)[0]
    seconds, censored = flow_interruptions(metrics)[worst.id]
    text = f"The worst is {flow_name(worst)}: {time_text(seconds, censored=censored)} without new data"
    text += f", {state_text(worst)}." if worst.state == DEAD else "."
    first = distributions(
        metrics, title="Interruptions and throughput",
        subtitle="A curve shows how many of all lie at or below a value: short interruptions are good.",
    )  # fmt: skip
    second = with_events(
        flows_over_time(
            metrics, title="New data by flow and second", subtitle="The worst on top. White within a row is silence."
        ),
        metrics,
    )
    body = f"<p>{escape(text)}</p>{drawing(first, 'Interruptions and throughput')}"
    return [Section(f"All {len(metrics.flows)} flows", body + drawing(second, "New data by flow and second"))]


def _table_section(heading: str, what: Table, most: int) -> Section:
    if not what.rows:
        return Section(heading, "<p>None.</p>")
    more = len(what.rows) - most
    note = f"<p>And {more} more; the frames and the JSON of the run have them all.</p>" if more > 0 else ""
    return Section(heading, _table_with_note(what, most) + note)


def _table_with_note(what: Table, most: int) -> str:
    """Its first rows, and the note below them if it has one."""
    note = f'<p class="note">{escape(what.note)}</p>' if what.note else ""
    return table(what.columns, what.rows[:most]) + note


def _flow_sections(run: Recorded, chosen: Sequence[tuple[str, Flow]]) -> Iterator[Section]:
    connections = connections_of(run)
    traces = {flow.id: flow_trace(run, flow, connections[flow.id]) for _, flow in chosen if flow.id in connections}
    several = len(run.metrics.flows) > 1
    for name, flow in chosen:
        if flow.id not in traces:
            continue
        trace = traces[flow.id]
        drawn = [(heading, drawing(figure, heading)) for heading, figure in flow_figures(run, flow, trace)]
        if not several:
            yield from (
                Section(heading, body, re.split(r" (?:of|around) the handover", heading)[0]) for heading, body in drawn
            )
            continue
        whole = flow_table(run.metrics)
        row = next(row for row in whole.rows if row[0] == str(flow.id))
        parts = "".join(f"<h3>{escape(heading)}</h3>{body}" for heading, body in drawn)
        heading = f"{name}: {flow_name(flow)}" if name else f"Flow {flow_name(flow).removeprefix('flow ')}"
        yield Section(heading, table(whole.columns, [row]) + parts, f"{name or 'Flow'} {flow.id}")
    hosts = {trace.mover for trace in traces.values()}
    positions = run.positions.filter(pl.col("node").is_in(list(hosts))) if several else run.positions
    switches = [switch for trace in traces.values() for switch in trace.switches]
    for heading, figure in network_figures(run.cells, positions, switches):
        # the other may be a map
        is_in_time = heading == "Networks in reach"
        yield Section(heading, drawing(with_events(figure, run.metrics) if is_in_time else figure, heading))

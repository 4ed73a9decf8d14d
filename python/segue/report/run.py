"""Report of a single run."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from segue.figures.ladder import signalling_ladder
from segue.figures.position import position_against_cells, presence_of_cells
from segue.figures.sequence import Switch, find_switches, segment_sequence, sender_of, span_around
from segue.figures.style import render
from segue.figures.tsn import tsn_against_time
from segue.figures.window import congestion_windows
from segue.metrics import Metrics, transfer_rows
from segue.output import write_file
from segue.report.html import Section, figure_section, page, table_section, text_section
from segue.running import Run

BEFORE_S = 1.5
"""Signalling shown before data moves; earlier if the new address was sought earlier."""
AFTER_S = 1.5


def write_run_report(run: Run, path: Path) -> Path:
    """Write the report of `run`, which must have frames, as one HTML file."""
    metrics = run.metrics
    sections = [
        table_section("Metrics", ["metric", "value"], _metric_rows(run)),
        *_handover_sections(metrics),
        *(figure_section(heading, render(figure)) for heading, figure in run_figures(run)),
        text_section("Scenario as run", run.scenario_toml),
    ]  # fmt: skip
    lead = f"Seed {metrics.seed}, {metrics.duration_s:g} s simulated, event log {metrics.event_log_hash[:16]}."
    return write_file(path, page(f"Run of {metrics.scenario}", lead, sections))


def _handover_sections(metrics: Metrics) -> list[Section]:
    """What the data shows of handovers, what signalling shows of a shim's, and what flows got."""
    sections = []
    if metrics.handovers or not metrics.handoffs:
        rows = [
            [f"{h.time_s:.3f}", h.from_address or "", h.to_address or "", _ms(h.latency_s), _ms(h.interruption_s),
             "" if h.lost_packets is None else str(h.lost_packets)]
            for h in metrics.handovers
        ]  # fmt: skip
        columns = ["time (s)", "from", "to", "latency (ms)", "interruption (ms)", "lost packets"]
        sections.append(table_section("Handovers", columns, rows) if rows else Section("Handovers", "<p>None.</p>"))
    if metrics.handoffs:
        rows = [
            [f"{h.begin_s:.3f}", h.host, h.from_address or "", h.to_address, _ms(h.handoff_delay_s),
             _ms(h.interruption_s)]
            + ([""] * 4 if (p := h.parts) is None else [_ms(p.t_d_s), _ms(p.t_c_s), _ms(p.t_r_s), _ms(p.t_a_s)])
            for h in metrics.handoffs
        ]  # fmt: skip
        columns = ["time (s)", "host", "from", "to", "handoff delay (ms)", "interruption (ms)", "detection t_d (ms)",
                   "configuration t_c (ms)", "registration t_r (ms)", "adaptation t_a (ms)"]  # fmt: skip
        sections.append(table_section("Handoffs", columns, rows))
    if metrics.flows:
        rows = [
            [f"{f.sender} to {f.receiver}", f.transport, str(f.transferred_bytes), str(f.packets_sent),
             str(f.retransmissions), str(f.lost_packets), str(f.spurious_retransmissions), _ms(f.interruption_s)]
            for f in metrics.flows
        ]  # fmt: skip
        columns = ["flow", "transport", "bytes", "packets", "retransmitted", "lost", "spurious", "interruption (ms)"]
        sections.append(table_section("Flows", columns, rows))
    return sections


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.1f}"


def run_figures(run: Run) -> list[tuple[str, Figure]]:
    """Figures of a run as (heading, figure): what there is to show of it."""
    packets = run.packets
    found: list[tuple[str, Figure]] = []
    try:
        sender = sender_of(packets)
    except ValueError:
        return found
    switches = find_switches(packets, sender)
    # Bytes are no segments to number modulo anything, and acknowledgements of their own no signalling.
    in_bytes = packets.filter(pl.col("kind") == "SACK").is_empty()
    if switches and not in_bytes:
        switch = switches[0]
        start, end = _signalling_span(run, switch)
        first, last = span_around(packets, switch)
        found.append(
            (
                "Signalling of the first handover",
                signalling_ladder(
                    run.signalling, packets, start_s=start, end_s=end,
                    title="Signalling of the first handover",
                    subtitle=f"Data moves to {switch.new} at {switch.first_new_s:.3f} s.",
                ),
            )
        )  # fmt: skip
        found.append(
            (
                "Segments around the first handover",
                segment_sequence(
                    packets, switch, start_s=first,
                    end_s=last,
                    title="Segments around the first handover",
                    subtitle="As the sender sees them: data by destination, acknowledgements by source.",
                ),
            )
        )  # fmt: skip
    found.append(
        (
            "Sequence numbers against time" if in_bytes else "TSN against time",
            tsn_against_time(
                packets,
                switches,
                title="Segments sent, by path",
                subtitle="A flat stretch is an outage.",
                in_bytes=in_bytes,
            ),
        )
    )
    windows = run.windows.filter(pl.col("node") == sender)
    if not windows.is_empty():
        deleted = run.signalling.filter(pl.col("event") == "sctp-peer-address-deleted").select(
            time_s=pl.col("time_ns") / 1e9, destination=pl.col("detail")
        )
        found.append(
            (
                "Congestion windows",
                congestion_windows(
                    windows, switches, start_s=0, end_s=_last_s(packets, sender), title="Congestion windows",
                    subtitle=f"Of {sender}'s paths; a curve ends where its address is deleted.", deletions=deleted,
                ),
            )
        )  # fmt: skip
    found += network_figures(run.cells, run.positions, switches)
    return found


def network_figures(cells: pl.DataFrame, positions: pl.DataFrame, switches: list[Switch]) -> list[tuple[str, Figure]]:
    """Where the mobile host was against the cells, and when those that come and go by the clock were in reach."""
    found = []
    somewhere = cells.filter(pl.col("present_s").is_null())
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
    # those that are never there in this case of the scenario are left out
    at_times = cells.filter(pl.col("present_s").list.len() > 0)
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


def _last_s(packets: pl.DataFrame, sender: str) -> float:
    """When `sender` last sent or got a packet, and a little: a transfer may end long before its run."""
    last = packets.filter(pl.col("node") == sender)["time_ns"].max()
    assert isinstance(last, int)
    return last / 1e9 * 1.02


def _signalling_span(run: Run, switch: Switch) -> tuple[float, float]:
    """From the start of step 1 that led to this switch until after its last step."""
    events = run.signalling.with_columns(time_s=pl.col("time_ns") / 1e9).filter(pl.col("step") > 0)
    started = events.filter((pl.col("event") == "obtain-started") & (pl.col("time_s") < switch.first_new_s))["time_s"]
    start = float(started[-1]) - 0.01 if len(started) else switch.first_new_s - BEFORE_S
    ended = events.filter((pl.col("step") == 5) & (pl.col("time_s") > switch.first_new_s))["time_s"]
    end = switch.first_new_s + AFTER_S
    if len(ended):
        last = [time for time in ended.to_list() if time < float(ended[0]) + 1.0][-1]
        end = max(end, float(last) + 0.05)
    return start, end


def _metric_rows(run: Run) -> list[list[str]]:
    m = run.metrics
    latency = m.handover_latency_s
    spread = (
        "no handover"
        if latency is None
        else f"{latency.median * 1e3:.1f} ({latency.min * 1e3:.1f} to {latency.max * 1e3:.1f})"
    )
    return [
        ["handovers", str(len(m.handovers))],
        ["handover latency, median (range), ms", spread],
        ["loss rate (lost to handover / sent)", f"{m.loss_rate:.6f}"],
        ["throughput, Mbit/s", f"{m.throughput_bps / 1e6:.3f}"],
        ["packets sent", str(m.packets_sent)],
        ["retransmitted", str(m.packets_retransmitted)],
        ["lost to handover, to a full queue, otherwise",
         f"{m.packets_lost_to_handover}, {m.packets_lost_to_queue}, {m.packets_lost_otherwise}"],
        ["duplicates", str(m.duplicate_packets)],
        ["T3-rtx expiries", str(m.timeouts)],
        *map(list, transfer_rows(m)),
        ["events, packet hops", f"{m.events}, {m.packet_hops}"],
    ]  # fmt: skip

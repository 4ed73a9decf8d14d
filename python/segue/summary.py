"""What a run came to, as rows of text: the same for the terminal and the report.

Every number comes from the handover table or the flow table of the metrics. Times of which only a lower bound is known
are written "≥ 573.3 s".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import floor

from segue.distributions import Distribution, Spread, Worst
from segue.interruption import OF_HANDOVERS
from segue.metrics import Flow, Handover, Host, Metrics, ScenarioEvent
from segue.people import people_rows
from segue.populations import Population

DEAD = "dead"
SAME_TIME_S = 1e-6
"""Times that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts.

    Attributes:
        columns: Their headings.
        rows: A text per column.
        note: What is to be said below it.
    """

    columns: list[str]
    rows: list[list[str]]
    note: str = ""


def time_text(seconds: float | None, *, censored: bool = False) -> str:
    """A time in the unit that suits it, empty for none: "12.3 ms", "5.688 s", "≥ 573.3 s"."""
    if seconds is None:
        return ""
    if censored:
        # A bound is never rounded up.
        step = 1e-4 if seconds < 1 else 1e-3 if seconds < 100 else 0.1
        return f"≥ {time_text(floor(seconds / step + 1e-6) * step)}"
    size = abs(seconds)
    return f"{seconds * 1e3:.1f} ms" if size < 0.99995 else f"{seconds:.3f} s" if size < 100 else f"{seconds:.1f} s"


def rate_text(bps: float) -> str:
    """A rate in Mbit/s."""
    return f"{bps / 1e6:.3f} Mbit/s"


def flow_name(flow: Flow) -> str:
    """A flow by its number and its ends."""
    return f"flow {flow.id}, {flow.sender} to {flow.receiver or 'nobody'}"


def dead_flows(metrics: Metrics) -> list[Flow]:
    """Those that died, the longest dead first."""
    return sorted((f for f in metrics.flows if f.state == DEAD), key=lambda f: -(f.silence_s or 0.0))


def flow_interruptions(metrics: Metrics) -> dict[int, tuple[float, bool]]:
    """The longest interruption of each flow by number, seconds, and whether it is a lower bound.

    It is of its handovers and its outages; a lower bound if one of them is, since that may be the longest in truth. A
    flow without either has its longest time without new data.
    """
    longest: dict[int, tuple[float, bool]] = {}
    for number, value, censored in interruptions(metrics):
        if number is not None:
            value_so_far, censored_so_far = longest.get(number, (value, censored))
            longest[number] = max(value_so_far, value), censored_so_far or censored
    return {flow.id: longest.get(flow.id, (flow.longest_gap_s, flow.longest_gap_is_bound)) for flow in metrics.flows}


def interruptions(metrics: Metrics) -> list[tuple[int | None, float, bool]]:
    """Of all handovers, and of all outages that none accounts for: flow, seconds, and whether that is a lower bound."""
    rows = [(row.flow, row.interruption_s, row.censored) for row in metrics.handovers if row.interruption_s is not None]
    outages = [(flow.id, outage.duration_s, outage.censored) for flow in metrics.flows for outage in flow.outages]
    return rows + outages


def worst_first(metrics: Metrics) -> list[Flow]:
    """Flows by their longest interruption; dead ones stand first."""
    longest = flow_interruptions(metrics)

    def key(flow: Flow) -> tuple[bool, float, float, int]:
        return flow.state == DEAD, flow.silence_s or longest[flow.id][0], flow.longest_gap_s, -flow.id

    return sorted(metrics.flows, key=key, reverse=True)


def sentence(metrics: Metrics) -> str:
    """What happened, in a sentence: handovers, whether flows lived, and for how long nothing came at worst.

    A bound is said to be one ("at least 573.3 s").
    """
    of_flows = Counter((row.host, row.flow) for row in metrics.handovers)
    # flows of a host move with it, each when it next has something to send
    of_hosts: dict[str, int] = {}
    for (host, _), moves in of_flows.items():
        of_hosts[host] = max(of_hosts.get(host, 0), moves)
    count, hosts = sum(of_hosts.values()), list(of_hosts)
    who = hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts"
    moved = f"{count} {'handover' if count == 1 else 'handovers'} of {who}" if hosts else "No handover"
    flows, dead = len(metrics.flows), len(dead_flows(metrics))
    if not flows:
        return f"{moved}, and no data was sent."
    all_of_them = {1: "the only flow", 2: "both flows"}.get(flows, f"all {flows} flows")
    if dead:
        lived = f"{dead} of {flows} flows died" if flows > 1 else "the only flow died"
    else:
        lived = f"{all_of_them} lived on"
    gaps = metrics.interruption_s
    if gaps is None:
        gap = time_text(metrics.longest_gap_s, censored=metrics.longest_gap_is_bound).removeprefix("≥ ")
        bound = "at least" if metrics.longest_gap_is_bound else "at most"
        worst = f"nothing new came for {gap} {bound}" if metrics.longest_gap_s else ""
    else:
        bound = "at least " if gaps.max_censored else ""
        longest = time_text(gaps.max, censored=gaps.max_censored).removeprefix("≥ ")
        worst = f"the worst interruption took {bound}{longest}"
    lost = metrics.packets_lost_to_handover
    cost = f"{lost} {'packet' if lost == 1 else 'packets'} lost to handovers" if lost else ""
    parts = [part for part in (lived, worst, cost) if part]
    return f"{moved}: {', '.join(parts)}."


def as_html(metrics: Metrics) -> str:
    """What a run came to, as a fragment of HTML: the sentence, and below it the rows of `headline`."""
    rows = "".join(
        f"<tr><th style='text-align: left'>{escape(name)}</th><td style='text-align: left'>{escape(text)}</td></tr>"
        for name, text in headline(metrics)
    )
    name = escape(f"{metrics.scenario}, seed {metrics.seed}, {metrics.duration_s:g} s")
    return f"<p><b>{name}</b>. {escape(sentence(metrics))}</p><table>{rows}</table>"


def headline(metrics: Metrics) -> list[tuple[str, str]]:
    """What a run came to, as (name, text): dead flows first."""
    rows = []
    if dead := dead_flows(metrics):
        rows.append(("flows that died", f"{len(dead)} of {len(metrics.flows)}"))
    rows += [("happens" if place == 0 else "", event_text(one)) for place, one in enumerate(metrics.scenario_events)]
    if metrics.scenario_events:
        rows.append(("longest without data around it", _around_events(metrics)))
    rows.append(("handovers", _handovers(metrics)))
    if metrics.interruption_s is not None:
        rows.append(("interruption", spread_text(metrics.interruption_s)))
    latency = metrics.handover_latency_s
    if latency is not None:
        rows.append(("handover latency", spread_text(latency)))
        if latency.median < 0:
            rows.append(("", "below zero: both paths carried data for so long"))
    rows.append(("longest time without new data", _longest_gap(metrics)))
    rows.append(("throughput", _throughput(metrics)))
    rows += people_rows(metrics)
    return rows


def counts(metrics: Metrics) -> list[tuple[str, str]]:
    """Packets, transfer and events, as (name, text)."""
    return [
        ("loss rate (handover)", f"{metrics.loss_rate:.6f}"),
        ("packets sent, retransmitted", f"{metrics.packets_sent}, {metrics.packets_retransmitted}"),
        (
            "lost to handover, queue, otherwise",
            f"{metrics.packets_lost_to_handover}, {metrics.packets_lost_to_queue}, {metrics.packets_lost_otherwise}",
        ),
        ("duplicates, timeouts", f"{metrics.duplicate_packets}, {metrics.timeouts}"),
        *_transfer(metrics),
        ("event log", f"{metrics.events} events, {metrics.event_log_hash}"),
        ("packet hops", str(metrics.packet_hops)),
    ]


def _transfer(metrics: Metrics) -> list[tuple[str, str]]:
    """What a run says of a file's transfer; nothing if it says nothing."""
    taken, theory = metrics.transfer_time_s, metrics.theory_s
    if taken is None and theory is None and metrics.unfinished_transfer_s is None:
        return []
    if taken is not None:
        text = f"{taken:.3f} s"
    elif metrics.unfinished_transfer_s is not None:
        text = f"{time_text(metrics.unfinished_transfer_s, censored=True)}, not ended"
    else:
        text = "not ended"
    rows = [("transfer time", text if theory is None else f"{text}, in theory {theory:.3f} s")]
    by_path = metrics.bytes_per_path
    if by_path:
        rows.append(("received by path", ", ".join(f"{path} {size / 1e6:.3f} MB" for path, size in by_path.items())))
    return rows


def event_text(event: ScenarioEvent) -> str:
    """What happens, to what, and when: "blackhole on wire at 6.000 s for 900.0 ms"."""
    lasts = "" if event.for_s is None else f" for {time_text(event.for_s)}"
    return f"{event.kind} on {', '.join(event.on)} at {event.at_s:.3f} s{lasts}"


def _around_events(metrics: Metrics) -> str:
    gaps = [(flow.around_events, flow) for flow in metrics.flows if flow.around_events is not None]
    if not gaps:
        return "no data was to come"
    longest, flow = max(gaps, key=lambda one: one[0].duration_s)
    return (
        f"{time_text(longest.duration_s, censored=longest.censored)} ({flow_name(flow)}, from {longest.since_s:.3f} s)"
    )


def spread_text(spread: Spread) -> str:
    """How many, the median, the 95th percentile and the worst, and which it was."""
    worst = time_text(spread.max, censored=spread.max_censored)
    who = f" ({worst_text(spread.worst)})"
    if spread.count == 1:
        return f"{worst}{who}"
    bounds = f", {spread.censored} of them lower bounds" if spread.censored else ""
    median = time_text(spread.median, censored=spread.median_censored)
    p95 = time_text(spread.p95, censored=spread.p95_censored)
    return f"median {median}, 95th percentile {p95}, worst {worst}{who}; of {spread.count}{bounds}"


def worst_text(worst: Worst) -> str:
    """Which one it was."""
    flow = [] if worst.flow is None else [f"flow {worst.flow}"]
    return ", ".join([*flow, worst.host, f"at {worst.time:.3f} s"])


def handover_table(handovers: Sequence[Handover]) -> Table:
    """A row per handover: those after which no data came first, then by time. Columns that no row has are left out."""
    ordered = sorted(handovers, key=lambda row: (not row.censored, row.time_s))
    rest = {"interruption", "lost"}
    columns: list[tuple[str, Callable[[Handover], str]]] = [
        ("time", lambda h: f"{h.time_s:.3f} s"),
        ("host", lambda h: h.host),
        ("flow", lambda h: "" if h.flow is None else str(h.flow)),
        ("layer", lambda h: h.layer or ""),
        ("from", lambda h: h.from_address or ""),
        ("to", lambda h: h.to_address or ""),
        ("interruption", lambda h: time_text(h.interruption_s, censored=h.censored)),
        ("latency", lambda h: time_text(h.latency_s)),
        ("handoff delay", lambda h: time_text(h.handoff_delay_s)),
        ("T_n", lambda h: "" if h.parts is None else time_text(h.parts.t_n_s)),
        ("t_d", lambda h: "" if h.parts is None else time_text(h.parts.t_d_s)),
        ("t_c", lambda h: "" if h.parts is None else time_text(h.parts.t_c_s)),
        ("t_r", lambda h: "" if h.parts is None else time_text(h.parts.t_r_s)),
        ("t_a", lambda h: "" if h.parts is None else time_text(h.parts.t_a_s)),
        ("lost", lambda h: _count(h.lost_packets)),
        ("sent again", lambda h: _count(h.retransmissions)),
        ("for nothing", lambda h: _count(h.spurious_retransmissions)),
        ("not told", lambda h: " ".join(h.failed)),
    ]
    filled = [(name, [text(row) for row in ordered]) for name, text in columns]
    shown = [(name, texts) for name, texts in filled if any(texts) or name in rest]
    rows = [list(row) for row in zip(*(texts for _, texts in shown), strict=True)]
    return Table([name for name, _ in shown], rows, OF_HANDOVERS)


def flow_table(metrics: Metrics) -> Table:
    """A row per flow: dead ones first, then in their order. For how long they are silent is said if any died."""
    ordered = sorted(metrics.flows, key=lambda flow: (flow.state != DEAD, flow.id))
    moves = Counter(row.flow for row in metrics.handovers)
    longest = flow_interruptions(metrics)
    died = any(flow.state == DEAD for flow in ordered)
    stood_still = any(flow.outages for flow in ordered)
    columns = [
        "flow", "from", "to", "transport", "state", *(["silent"] if died else []), "longest gap", "gap since",
        "handovers", *(["outages"] if stood_still else []), "interruption", "MB", "Mbit/s", "packets", "sent again",
        "lost", "for nothing",
    ]  # fmt: skip
    rows = [
        [
            str(flow.id), flow.sender, flow.receiver, flow.transport, state_text(flow),
            *([time_text(flow.silence_s, censored=True)] if died else []),
            time_text(flow.longest_gap_s, censored=flow.longest_gap_is_bound),
            "" if flow.longest_gap_at_s is None else f"{flow.longest_gap_at_s:.3f} s",
            str(moves[flow.id]), *([str(len(flow.outages))] if stood_still else []),
            _interruption(flow, moves[flow.id], *longest[flow.id]), f"{flow.transferred_bytes / 1e6:.3f}",
            _rate(flow), str(flow.packets_sent), str(flow.retransmissions),
            str(flow.lost_packets), str(flow.spurious_retransmissions),
        ]
        for flow in ordered
    ]  # fmt: skip
    return Table(columns, rows, OF_HANDOVERS)


def outage_table(metrics: Metrics) -> Table:
    """A row per outage that no handover accounts for: those that never ended first, then by time."""
    every = [(outage, flow) for flow in metrics.flows for outage in flow.outages]
    ordered = sorted(every, key=lambda one: (not one[0].censored, one[0].since_s, one[1].id))
    rows = [
        [f"{outage.since_s:.3f} s", time_text(outage.duration_s, censored=outage.censored), str(flow.id), flow.sender,
         flow.receiver]
        for outage, flow in ordered
    ]  # fmt: skip
    return Table(["time", "no new data for", "flow", "from", "to"], rows)


def host_table(hosts: Sequence[Host]) -> Table:
    """A row per host."""
    columns = ["host", "flows", "died", "handovers", "interruption, median", "worst", "longest gap", "MB", "Mbit/s"]
    rows = [
        [
            host.host, str(host.flows), str(host.dead_flows), str(host.handovers),
            "" if (gaps := host.interruption_s) is None else time_text(gaps.median, censored=gaps.median_censored),
            "" if gaps is None else time_text(gaps.max, censored=gaps.max_censored),
            time_text(host.longest_gap_s, censored=host.longest_gap_is_bound),
            f"{host.delivered_bytes / 1e6:.3f}", f"{host.throughput_bps / 1e6:.3f}",
        ]
        for host in hosts
    ]  # fmt: skip
    return Table(columns, rows, OF_HANDOVERS)


def population_table(populations: Sequence[Population]) -> Table:
    """A row per population. How many flows died is said if any did, and columns that no row has are left out."""
    died = any(one.dead_flows for one in populations)
    columns = [
        "population", "hosts", *(["flows died"] if died else []), "handovers", "a host and minute", "ping-pong",
        "without a path", "interruption: median", "95 %", "99 %", "worst", "Mbit/s: 5 %", "Mbit/s: median", "fairness",
        "latency: median", "latency: 95 %",
    ]  # fmt: skip
    rows = [
        [
            one.name, str(one.hosts), *([f"{one.dead_flows} of {one.flows}"] if died else []),
            str(one.handovers), f"{one.handovers_per_host_and_minute:.2f}",
            "" if one.ping_pong_rate is None else percent_text(one.ping_pong_rate),
            "" if one.without_path_share is None else percent_text(one.without_path_share.mean),
            *_times(one.interruption_s, ("median", "p95", "p99", "max")),
            *(["", ""] if one.goodput_bps is None else
              [f"{one.goodput_bps.p5 / 1e6:.3f}", f"{one.goodput_bps.median / 1e6:.3f}"]),
            "" if one.fairness is None else f"{one.fairness:.3f}",
            *_times(one.handover_latency_s, ("median", "p95")),
        ]
        for one in populations
    ]  # fmt: skip
    shown = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    return Table([columns[place] for place in shown], [[row[place] for place in shown] for row in rows], OF_HANDOVERS)


def percent_text(share: float) -> str:
    """A share from 0 to 1 in percent: "0.42 %"."""
    return f"{100 * share:.2f} %"


def state_text(flow: Flow) -> str:
    """How a flow ended."""
    return flow.state if flow.dead_since_s is None else f"{flow.state} since {flow.dead_since_s:.3f} s"


def death_texts(metrics: Metrics) -> list[str]:
    """Of each dead flow, a line: since when, and the last packets before its silence and the first into it."""
    return [
        f"{flow_name(flow)}: {state_text(flow)}, no new data for "
        + time_text(flow.silence_s, censored=True)
        + (f"; last packets: {'; '.join(flow.last_packets)}" if flow.last_packets else "")
        for flow in dead_flows(metrics)
    ]


def _handovers(metrics: Metrics) -> str:
    rows = metrics.handovers
    hosts = len({row.host for row in rows})
    text = f"{len(rows)}" + (f", of {hosts} hosts" if hosts > 1 else "")
    lasting = sum(row.censored for row in rows)
    idle = sum(row.flow is None for row in rows)
    flows = {row.flow for row in rows if row.flow is not None}
    notes = [f"one per flow, of {len(flows)} flows"] if len(flows) > 1 else []
    notes += [f"{lasting} without data ever after"] if lasting else []
    notes += [f"{idle} in which no flow moved"] if idle else []
    return ", ".join([text, *notes])


def _longest_gap(metrics: Metrics) -> str:
    worst = max(metrics.flows, key=lambda flow: flow.longest_gap_s, default=None)
    if worst is None:
        return time_text(metrics.longest_gap_s)
    text = time_text(worst.longest_gap_s, censored=metrics.longest_gap_is_bound)
    notes = [flow_name(worst)] if len(metrics.flows) > 1 else []
    if worst.longest_gap_at_s is not None:
        notes.append(_why(worst, worst.longest_gap_at_s, metrics.handovers))
    return f"{text} ({', '.join(notes)})" if notes else text


def _why(flow: Flow, since_s: float, handovers: Sequence[Handover]) -> str:
    """When a flow's longest time without new data was, and what there was then."""
    if flow.censored:
        return f"from {since_s:.3f} s to the end: it died"
    until_s = since_s + flow.longest_gap_s
    when = f"from {since_s:.3f} s to {until_s:.3f} s"
    # The first data over the new path may be what ended it.
    moves = [row for row in handovers if row.flow == flow.id and since_s <= row.time_s <= until_s + SAME_TIME_S]
    if moves:
        return f"{when}: the handover at {moves[0].time_s:.3f} s"
    if any(abs(outage.since_s - since_s) < SAME_TIME_S for outage in flow.outages):
        return f"{when}: no handover, its sender went on in vain"
    return f"{when}: no handover"


def _throughput(metrics: Metrics) -> str:
    rates = sorted((flow.throughput_bps, flow.id) for flow in metrics.flows)
    if len(rates) < 2:
        return rate_text(metrics.throughput_bps)
    middle = (rates[(len(rates) - 1) // 2][0] + rates[len(rates) // 2][0]) / 2
    return (
        f"{rate_text(metrics.throughput_bps)} in all; of a flow: median {rate_text(middle)}, "
        f"least {rate_text(rates[0][0])} (flow {rates[0][1]})"
    )


def _times(distribution: Distribution | None, names: Sequence[str]) -> list[str]:
    """Some of its values by their names, those that are lower bounds as such."""
    if distribution is None:
        return [""] * len(names)
    values = {name: float(getattr(distribution, name)) for name in names}
    bounds = {name: distribution.is_bound(value) for name, value in values.items()} | {
        "median": distribution.median_censored
    }
    return [time_text(value, censored=bounds[name]) for name, value in values.items()]


def _interruption(flow: Flow, moves: int, seconds: float, censored: bool) -> str:
    return time_text(seconds, censored=censored) if moves or flow.outages else ""


def _rate(flow: Flow) -> str:
    """Of a packet alone there is none."""
    return "" if flow.packets_sent == 1 else f"{flow.throughput_bps / 1e6:.3f}"


def _count(value: int | None) -> str:
    return "" if value is None else str(value)

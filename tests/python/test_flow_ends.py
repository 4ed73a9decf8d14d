"""How flows end, and for how long they stand still: runs against what is known of their scenarios."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import segue
import synthetic
from segue import explain
from segue.metrics import Metrics
from segue.scenarios import bundled
from segue.summary import (
    dead_flows,
    death_texts,
    flow_interruptions,
    flow_table,
    headline,
    host_table,
    sentence,
    time_text,
    worst_first,
)
from synthetic import handover
from test_agreement import TWO_PHONES

# A phone that is gone before it has an address.
AWAY = {
    "mobile.0.from": '["-44 m", "0 m"]',
    "mobile.0.points": '[["-5 km", "0 m"]]',
    "mobile.0.speed": "80 m/s",
    "mobile.0.start": "0 s",
}


@cache
def _none(duration: str) -> segue.Run:
    """A flow that nobody moves. Its cell is out of reach from 9 s to 21 s, and from 37 s to 49 s."""
    return segue.run("sigma", {"scheme": "none", "duration": duration}, trace=False)


def test_a_host_moves_as_often_as_the_flow_of_it_that_moves_most() -> None:
    moves = [
        handover(changes={"host": f"phone{number}", "flow": flow})
        for number in range(100)
        for flow, times in ((2 * number, 1), (2 * number + 1, 1 + number % 2))
        for _ in range(times)
    ]
    many = Metrics.from_json(json.dumps(synthetic.metrics(handovers=moves)))
    assert sentence(many) == "150 handovers of 100 hosts, and no data was sent."


def _document(run: segue.Run) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run.metrics_json)
    return document


def test_a_dead_flow_is_silent_for_its_own_time_whatever_healed_before() -> None:
    run = _none("45 s")
    [flow] = run.metrics.flows
    assert flow.state == "dead"
    assert flow.dead_since_s is not None
    assert flow.silence_s is not None
    assert flow.dead_since_s == pytest.approx(37, abs=0.1)
    assert flow.silence_s == pytest.approx(45 - flow.dead_since_s)
    # The outage before was longer, and is over.
    assert flow.longest_gap_s > 12 > flow.silence_s
    assert not flow.censored
    assert flow.longest_gap_at_s == pytest.approx(9, abs=0.1)
    [text] = death_texts(run.metrics)
    assert "no new data for ≥ 8.000 s;" in text
    table = flow_table(run.metrics)
    assert table.rows[0][table.columns.index("silent")] == "≥ 8.000 s"
    assert _document(run)["flows"][0]["interruption_s"] == flow.longest_gap_s


def test_a_silence_that_a_handover_ends_is_no_outage_beside_it(tmp_path: Path) -> None:
    """Cells with a gap between them: the first packet over the new path is a copy of one that had arrived."""
    text = bundled("templates/two-cells").text
    assert text.count('radius = "40 m"') == 2
    scenario = text.replace('radius = "40 m"', 'radius = "30 m"')
    metrics = segue.run(scenario, trace=False, pcap=tmp_path).metrics
    [flow] = metrics.flows
    moves = [row for row in metrics.handovers if row.interruption_s is not None]
    assert len(moves) == 4
    assert flow.outages == ()
    assert metrics.interruption_s is not None
    assert metrics.interruption_s.count == len(moves)
    assert metrics.interruption_s.max == flow.longest_gap_s > 5
    lost = metrics.packets_lost_to_handover
    assert lost == sum(row.lost_packets or 0 for row in moves) > max(row.lost_packets or 0 for row in moves)
    assert sentence(metrics).endswith(f", {lost} packets lost to handovers.")

    found = segue.analyze(*(tmp_path / f"{host}.pcapng" for host in ("server", "phone"))).findings
    assert [row.interruption_s for row in found.handovers] == pytest.approx([row.interruption_s for row in moves])
    assert [row for row in found.handovers if row.settling_gap_s > 5 > row.interruption_s] == []
    [there] = found.flows
    assert there.forward.outages + there.reverse.outages == ()


def test_a_silence_is_that_of_the_handover_past_a_path_that_carried_little(tmp_path: Path) -> None:
    """The cable is pulled, the home agent has another address 4 s later, and the correspondent a second after that.

    A run knows that a host which gets data through the tunnel has moved. What captures show in between is a path that
    carried little.
    """
    run = segue.run(bundled("templates/vertical").text, {"duration": "60 s"}, trace=False, pcap=tmp_path)
    [flow] = run.metrics.flows
    [move] = run.metrics.handovers
    assert move.latency_s == move.interruption_s == flow.longest_gap_s
    assert move.interruption_s > 4
    assert flow.outages == ()

    ends = {flow.sender, flow.receiver}
    found = segue.analyze(*(path for path in tmp_path.glob("*.pcapng") if path.stem in ends)).findings
    [shown] = [row for row in found.handovers if row.interruption_s > 4]
    assert shown.interruption_s == pytest.approx(move.interruption_s)
    assert shown.latency_s is not None
    assert shown.latency_s > shown.interruption_s
    assert [f.forward.outages + f.reverse.outages for f in found.flows] == [()]


def test_a_dead_flow_makes_the_longest_gap_of_another_a_lower_bound() -> None:
    run = _none("45 s")
    assert run.metrics.longest_gap_is_bound
    [row] = segue.sweep("sigma", {"wire": "typed"}, {"scheme": "none", "duration": "45 s"}, seeds=1).frame.to_dicts()
    assert row["longest_gap_censored"]
    assert f"≥ {row['longest_gap_s']:.3f}"[:6] in dict(headline(run.metrics))["longest time without new data"]
    [alive] = segue.sweep("sigma", {"wire": "typed"}, {"duration": "45 s"}, seeds=1).frame.to_dicts()
    assert not alive["longest_gap_censored"]


def test_a_silence_that_goes_on_makes_the_longest_gap_of_its_flow_and_its_hosts_a_lower_bound() -> None:
    """The outage before was longer: that it is the longest is not known before the silence is over."""
    back = segue.run("sigma", {"scheme": "none", "duration": "60 s"}, trace=False)
    for run, is_bound in ((_none("45 s"), True), (back, False)):
        [flow] = run.metrics.flows
        text = time_text(flow.longest_gap_s, censored=is_bound)
        assert text.startswith("≥") == is_bound
        for table in (flow_table(run.metrics), host_table(run.metrics.hosts)):
            assert {row[table.columns.index("longest gap")] for row in table.rows} == {text}
        assert run.flows["censored"].to_list() == [is_bound]
        assert set(run.hosts["longest_gap_censored"]) == {is_bound}


def test_a_captured_silence_that_goes_on_is_told_beside_the_longest_gap() -> None:
    run = segue.run("sigma", {"scheme": "none", "duration": "45 s"}, trace=False, pcap=True)
    analysis = segue.analyze(*run.captures())
    [flow] = analysis.findings.flows
    way = max((flow.forward, flow.reverse), key=lambda one: one.useful_bytes)
    assert way.silence_s is not None
    assert way.longest_gap_s > 12 > way.silence_s > 6.9
    assert (way.censored, way.longest_gap_is_bound) == (False, True)
    name = "forward" if way is flow.forward else "reverse"
    lasted = explain.silence(way.silence_s, censored=True).removeprefix("≥ ")
    assert f"for at least {lasted}," in explain.death(flow, name)
    [row] = analysis.flows.filter(direction=name).to_dicts()
    assert (row["censored"], row["silence_s"]) == (True, way.silence_s)


def test_those_that_are_dead_for_longest_stand_first() -> None:
    run = segue.run(TWO_PHONES, {"scheme": "none", "duration": "60 s"}, trace=False)
    silent = [flow.silence_s for flow in dead_flows(run.metrics) if flow.silence_s is not None]
    assert len(silent) == 2
    assert silent == sorted(silent, reverse=True)
    assert [flow.silence_s for flow in worst_first(run.metrics)] == silent


def test_an_outage_that_heals_without_a_handover_is_an_interruption() -> None:
    run = _none("60 s")
    metrics = run.metrics
    [flow] = metrics.flows
    assert metrics.handovers == ()
    assert [outage.since_s for outage in flow.outages] == pytest.approx([9, 37], abs=0.1)
    assert not any(outage.censored for outage in flow.outages)
    longest = max(outage.duration_s for outage in flow.outages)
    assert longest == flow.longest_gap_s == metrics.longest_gap_s > 12
    spread = metrics.interruption_s
    assert spread is not None
    assert (spread.count, spread.censored, spread.max, spread.worst.flow) == (2, 0, longest, flow.id)
    [host] = [host for host in metrics.hosts if host.host == "mh"]
    assert host.interruption_s == spread
    assert flow_interruptions(metrics) == {flow.id: (longest, False)}
    assert f"{longest:.3f} s" in dict(headline(metrics))["interruption"]
    assert _document(run)["flows"][0]["interruption_s"] == longest


@pytest.mark.parametrize("name", ["vertical", "coverage-gap"])
def test_a_handover_accounts_for_its_own_interruption(name: str) -> None:
    # Its sender tries for seconds, so that there would be an outage if there were no handover.
    overrides = {"case": "lan-gprs"} if name == "vertical" else {"duration": "40 s"}
    metrics = segue.run(name, overrides, trace=False).metrics
    [flow] = metrics.flows
    assert min(row.interruption_s or 0.0 for row in metrics.handovers) > 4
    assert flow.outages == ()
    assert metrics.interruption_s is not None
    assert metrics.interruption_s.count == len(metrics.handovers)
    assert flow.interruption_s == flow.longest_gap_s == metrics.interruption_s.max


def test_who_was_never_served_has_a_dead_flow() -> None:
    run = segue.run(TWO_PHONES, AWAY, trace=False)
    metrics = run.metrics
    assert [(flow.id, flow.sender, flow.receiver) for flow in metrics.flows] == [
        (0, "phone-a", "server"),
        (1, "phone-b", "server"),
    ]
    never = metrics.flows[0]
    assert (never.state, never.dead_since_s, never.silence_s, never.transferred_bytes) == ("dead", 0.0, 60.0, 0)
    assert (never.interruption_s, never.longest_gap_s, never.censored, never.packets_sent) == (60.0, 60.0, True, 0)
    spread = metrics.interruption_s
    assert spread is not None
    assert (spread.max, spread.max_censored, spread.worst.flow, spread.worst.host) == (60.0, True, 0, "phone-a")
    [host] = [host for host in metrics.hosts if host.host == "phone-a"]
    assert (host.flows, host.dead_flows, host.longest_gap_s) == (1, 1, 60.0)
    assert dict(headline(metrics))["flows that died"] == "1 of 2"
    assert run.flows["state"].to_list()[0] == "dead"


def test_a_flow_has_the_number_of_its_application_whoever_sends_first() -> None:
    late = {"application.0.start": "30 s"}
    for overrides in ({}, late):
        flows = segue.run(TWO_PHONES, overrides, trace=False).metrics.flows
        assert [(flow.id, flow.sender) for flow in flows] == [(0, "phone-a"), (1, "phone-b")]
    assert flows[0].begin_s > 30 > flows[1].begin_s


def test_what_still_moves_at_the_end_is_active() -> None:
    states = {seconds: _none(f"{seconds} s").metrics.flows[0].state for seconds in (5, 45, 60)}
    assert states == {5: "active", 45: "dead", 60: "active"}
    closed = segue.run("cmt", {"scheme": "failover", "file_size": "1 MB", "duration": "60 s"}, trace=False)
    assert closed.metrics.flows[0].state == "closed"


def test_what_is_or_lies_beyond_a_lower_bound_is_one() -> None:
    run = segue.run(TWO_PHONES, {**AWAY, "scheme": "none"}, trace=False)
    spread = run.metrics.interruption_s
    assert spread is not None
    bounds = sorted(o.duration_s for flow in run.metrics.flows for o in flow.outages if o.censored)
    for value, censored in (
        (spread.p95, spread.p95_censored),
        (spread.max, spread.max_censored),
        (spread.min, spread.min_censored),
    ):
        assert censored == (value >= bounds[0])
    text = dict(headline(run.metrics))["interruption"]
    median, p95, worst = (part.split(" (")[0] for part in text.split(", ")[:3])
    assert p95.removeprefix("95th percentile ") == worst.removeprefix("worst ") == "≥ 60.000 s"
    assert ("≥" in median) == spread.median_censored


def test_a_handoff_delay_has_no_wait_for_a_decision_in_it() -> None:
    delays = []
    for dwell_s in (5, 40):
        run = segue.run("cmt", {"scheme": "msctp-best", "t_dwell": f"{dwell_s} s"}, trace=False)
        [handover] = run.metrics.handovers
        assert handover.begin_s is not None
        assert handover.end_s is not None
        assert handover.end_s - handover.begin_s > dwell_s
        delays.append(handover.handoff_delay_s)
    # Two exchanges over filled queues, whenever it decides.
    assert delays[0] == delays[1] == pytest.approx(0.5, abs=0.1)


def test_frames_have_what_the_document_has() -> None:
    run = segue.run("ilnp", {"case": "wan-lan", "scheme": "ilnp-hard", "duration": "40 s"}, trace=False)
    rows = _document(run)["handovers"]
    flows = {flow["id"]: flow for flow in _document(run)["flows"]}
    frame = run.handovers.to_dicts()
    assert any(row["parts"] for row in rows)
    for row, shown in zip(rows, frame, strict=True):
        for name, value in (row["parts"] or {}).items():
            assert shown[name] == value
        assert shown["time"] == row["time"]
        if row["flow"] is not None:
            ends = flows[row["flow"]]
            assert (shown["sender"], shown["receiver"]) == (ends["from"], ends["to"])
    assert run.flows["silence_s"].to_list() == [flow["silence_s"] for flow in flows.values()]

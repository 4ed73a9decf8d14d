"""Reports of runs: several flows, uploads, thousands of handovers; and what of it all is drawn."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.collections import LineCollection

import segue
import synthetic
from command import Segue
from pages import report_table, report_tables, summary, terminal_table
from segue.cli.tables import print_run
from segue.figures.flow import Switch, connections_of, flow_trace, main_trace
from segue.figures.population import darkest, flows_over_time
from segue.figures.tsn import tsn_against_time
from segue.figures.window import congestion_windows
from segue.interruption import OF_HANDOVERS, OF_RUNS
from segue.metrics import Metrics
from segue.report.html import table
from segue.report.run import choose, write_run_report
from segue.summary import flow_table, handover_table, headline, sentence, time_text, worst_first
from synthetic import CN, MTU, FakeNative
from test_agreement import TWO_PHONES

SECONDS = 10


def many(count: int) -> segue.Run:
    """Phones that send in turn, a packet each; each hands over once, and number 1 dies."""
    packets: list[dict[str, object]] = []
    flows: list[dict[str, object]] = []
    handovers: list[dict[str, object]] = []
    number = 0
    for phone in range(count):
        name = f"phone-{phone}"
        begin_s = 1.0 + 1e-4 * phone
        for step in range(SECONDS * 4):
            number += 1
            time_s = begin_s + step / 4
            address = f"2001:db8:{2 + (step >= 20)}::{phone + 1:x}"
            for at, node, action in ((time_s, name, "sent"), (time_s + 0.02, "server", "received")):
                packets.append(
                    {"time_ns": round(at * 1e9), "node": node, "action": action, "cause": "", "interface": 0,
                     "packet_id": number, "connection": phone, "source": address, "destination": CN, "kind": "DATA",
                     "tsn": 500 + step, "length_bytes": MTU, "retransmission": False}
                )  # fmt: skip
        dead = phone == 1
        flows.append(
            synthetic.flow(
                **{"id": phone, "from": name, "to": "server", "begin_s": begin_s, "end_s": 20.0 if dead else 11.0,
                   "state": "dead" if dead else "idle", "dead_since_s": 10.77 if dead else None,
                   "silence_s": 9.23 if dead else None,
                   "outages": [{"since_s": 10.77, "duration_s": 9.23, "censored": True}] if dead else [],
                   "longest_gap_s": 9.23 if dead else 0.25 + phone / 1000, "censored": dead,
                   "last_packets": ["10.75 s DATA sent"] if dead else [], "received_bytes_by_second": [6000] * 11}
            )
        )  # fmt: skip
        handovers.append(
            synthetic.handover(
                begin_s + 5.02,
                0.25,
                0,
                {"host": name, "flow": phone, "from": f"2001:db8:2::{phone + 1:x}", "to": f"2001:db8:3::{phone + 1:x}",
                 "interruption_s": 0.25 + phone / 1000},
            )
        )  # fmt: skip
    worst = {"host": "server", "flow": 1, "time": 10.77}
    bounds = {"median_censored": False, "p95_censored": False, "min_censored": False, "max_censored": True}
    spread = {"median": 0.3, "p95": 0.34, "min": 0.25, "max": 9.23, "count": count + 1, "censored": 1, "worst": worst}
    spread |= bounds
    document = synthetic.metrics(flows=flows, handovers=handovers, interruption_s=spread)
    empty = synthetic.TraceBuilder().run()
    tables = {
        "packets": pl.DataFrame(packets, schema=synthetic.PACKETS).sort("time_ns", maintain_order=True),
        "windows": pl.DataFrame(schema=synthetic.WINDOWS),
        "signalling": pl.DataFrame(schema=synthetic.SIGNALLING),
        "positions": empty.positions.clear(),
        "cells": empty.cells.clear(),
    }
    return segue.Run(FakeNative(document, tables))  # type: ignore[arg-type]


def test_flows_that_take_turns_do_not_hand_over_to_each_other() -> None:
    run = many(3)
    connections = connections_of(run)
    assert connections == {0: 0, 1: 1, 2: 2}
    for flow in run.metrics.flows:
        trace = flow_trace(run, flow, connections[flow.id])
        [switch] = trace.switches
        assert (switch.old, switch.new) == (f"2001:db8:2::{flow.id + 1:x}", f"2001:db8:3::{flow.id + 1:x}")
        assert (switch.last_old_s, switch.first_new_s) == pytest.approx((flow.begin_s + 4.75, flow.begin_s + 5.0))
        assert trace.data["number"].to_list() == list(range(40))
        assert trace.mover == flow.sender


def test_an_upload_has_its_paths_by_the_senders_address() -> None:
    run = segue.run("campus-walk", {"duration": "60 s"})
    trace = main_trace(run)
    assert trace is not None
    assert (trace.sender, trace.receiver, trace.mover) == ("phone", "server", "phone")
    addresses = trace.data["path"].unique(maintain_order=True).to_list()
    assert len(addresses) >= 2
    assert (
        [(s.old, s.new) for s in trace.switches]
        == [(h.from_address, h.to_address) for h in run.metrics.handovers]
        != []
    )
    figure = tsn_against_time(trace, title="t", subtitle="s")
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert labels[: len(addresses)] == [f"over {address}" for address in addresses]
    assert set(run.windows["source"].unique()) >= set(addresses)


def test_two_phones_have_the_handovers_of_the_table_and_no_others(tmp_path: Path) -> None:
    run = segue.run(TWO_PHONES)
    connections = connections_of(run)
    for flow in run.metrics.flows:
        trace = flow_trace(run, flow, connections[flow.id])
        assert len(trace.switches) == sum(row.flow == flow.id for row in run.metrics.handovers) == 1
        assert trace.data["number"].max() < trace.data.height  # type: ignore[operator]
    text = write_run_report(run, tmp_path / "run.html").read_text()
    assert "All 2 flows" in text
    assert len(report_table(text, "Handovers")) == 2


@pytest.mark.parametrize("count", [4, 60])
def test_a_report_draws_as_many_figures_of_many_flows_as_of_a_few(tmp_path: Path, count: int) -> None:
    run = many(count)
    text = write_run_report(run, tmp_path / "run.html").read_text()
    # Two of all flows; of three flows signalling, segments and sequence each.
    assert text.count("<img") == 2 + 3 * 3
    assert len(report_table(text, "Flows")) == len(report_table(text, "Handovers")) == count
    assert report_table(text, "Flows")[0]["state"] == "dead since 10.770 s"
    assert "The worst is flow 1, phone-1 to server: ≥ 9.230 s without new data, dead since 10.770 s." in text


def test_the_flows_that_are_asked_for_are_shown(tmp_path: Path) -> None:
    run = many(9)
    assert [(name, flow.id) for name, flow in choose(run.metrics)] == [("Worst", 1), ("Median", 5), ("Best", 0)]
    text = write_run_report(run, tmp_path / "run.html", [7, 2]).read_text()
    assert [h for h in report_tables(text) if h.startswith("Chosen")] == [
        "Chosen: flow 7, phone-7 to server",
        "Chosen: flow 2, phone-2 to server",
    ]
    with pytest.raises(ValueError, match="no flow 9: expected one of 0 to 8"):
        choose(run.metrics, [9])


def test_two_downloads_from_one_server_begin_at_their_own_first_number() -> None:
    downloads = TWO_PHONES
    for phone in ("phone-a", "phone-b"):
        there, back = f'from = "{phone}"\nto = "server"', f'from = "server"\nto = "{phone}"'
        assert there in downloads
        downloads = downloads.replace(there, back)
    run = segue.run(downloads, {"duration": "30 s"})
    connections = connections_of(run)
    assert len(set(connections.values())) == len(run.metrics.flows) == 2
    for flow in run.metrics.flows:
        trace = flow_trace(run, flow, connections[flow.id])
        assert (trace.sender, trace.data.height) == ("server", flow.packets_sent)
        first = trace.data.filter(~pl.col("retransmission"))["number"].to_list()
        assert first == list(range(len(first)))


def test_thousands_of_handovers_are_one_drawing() -> None:
    switches = [Switch("a", "b", n / 50, n / 50) for n in range(5000)]
    windows = pl.DataFrame(
        {"time_ns": [0, 10**9], "node": ["cn"] * 2, "connection": [0] * 2, "source": ["s"] * 2,
         "destination": ["a", "b"], "cwnd_bytes": [3000, 6000]}
    )  # fmt: skip
    figure = congestion_windows(windows, switches, start_s=0, end_s=100, title="t", subtitle="s")
    [axes] = figure.axes
    assert len(axes.lines) == 2
    [lines] = [one for one in axes.collections if isinstance(one, LineCollection)]
    assert len(lines.get_segments()) == 5000


def test_a_dead_flow_stands_first_and_is_a_lower_bound() -> None:
    metrics = many(3).metrics
    assert [flow.id for flow in worst_first(metrics)] == [1, 2, 0]
    table = flow_table(metrics)
    assert table.rows[0][table.columns.index("interruption")] == "≥ 9.230 s"
    rows = dict(headline(metrics))
    assert rows["flows that died"] == "1 of 3"
    assert rows["interruption"] == (
        "median 300.0 ms, 95th percentile 340.0 ms, worst ≥ 9.230 s (flow 1, server, at 10.770 s); "
        "of 4, 1 of them lower bounds"
    )
    assert rows["longest time without new data"] == "≥ 9.230 s (flow 1, phone-1 to server)"


@pytest.mark.parametrize("deaths", [1, 3, 4, 9])
def test_of_many_deaths_the_worst_three_are_told_and_the_rest_is_folded(tmp_path: Path, deaths: int) -> None:
    run = many(10)
    document = json.loads(run.metrics_json)
    for flow in document["flows"][:deaths]:
        flow |= {"state": "dead", "dead_since_s": 10.0 - flow["id"] / 10, "longest_gap_s": 10.0 + flow["id"] / 10}
        flow |= {"silence_s": 10.0 + flow["id"] / 10}
        flow |= {"censored": True, "last_packets": [f"the last of {flow['id']}"]}
    document["flows"][1]["state"] = "dead" if deaths > 1 else "idle"
    run._native.metrics_json = json.dumps(document)  # type: ignore[misc]
    text = write_run_report(run, tmp_path / "run.html").read_text()
    section = text[text.index(f"Flows that died: {deaths} of 10") : text.index("All 10 flows</h2>")]
    shown, _, folded = section.partition("<details>")
    told = [re.findall(r"the last of (\d)", part) for part in (shown, folded)]
    worst = [str(number) for number in reversed(range(deaths))]
    assert told == [worst[:3], worst[3:]]
    assert (f"<summary>{deaths - 3} more</summary>" in folded) == (deaths > 3)


def test_a_few_fast_flows_do_not_make_the_others_pale() -> None:
    rates = np.ones((20, 100))
    rates[0] = 50.0
    rates[1, :50] = 0.0
    # The fast one is a twentieth of all that moves: the percentile is its own.
    assert np.percentile(rates[rates > 0], 95) == 50.0
    assert darkest(rates) == 4.0
    assert darkest(np.array([[0.0, 0.5, 1.0]])) == pytest.approx(0.975)
    assert darkest(np.zeros((2, 2))) == 1.0


def test_what_is_clipped_is_said() -> None:
    run = many(4)
    document = json.loads(run.metrics_json)
    figure = flows_over_time(Metrics.from_json(json.dumps(document)), title="t", subtitle="Silence is white.")
    assert [text.get_text() for text in figure.texts] == ["t", "Silence is white."]
    document["flows"][0]["received_bytes_by_second"] = [6000] * 10 + [250_000]
    figure = flows_over_time(Metrics.from_json(json.dumps(document)), title="t", subtitle="Silence is white.")
    said = [text.get_text() for text in figure.texts]
    assert said == ["t", "Silence is white. From 0.048 Mbit/s on, up to 2, all is equally dark."]
    # The image is clipped where the words say.
    assert figure.axes[0].images[0].get_clim() == pytest.approx((0, 0.048))


def test_the_report_and_the_terminal_name_the_same_things(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    run = many(2)
    print_run(run)
    shown = summary(capsys.readouterr().out.partition("\n\nHandovers")[0])
    text = write_run_report(run, tmp_path / "run.html").read_text()
    assert {row[0]: row[1] for row in report_tables(text)["Summary"][1:]} == shown
    assert shown["event log"] == f"1 events, {'0' * 32}"


def test_the_throughput_of_several_flows_is_said_with_median_and_least() -> None:
    document = json.loads(many(3).metrics_json)
    for flow, bps in zip(document["flows"], (3e6, 1e6, 2.5e6), strict=True):
        flow["throughput_bps"] = bps
    document["throughput_bps"] = 6.5e6
    rows = dict(headline(Metrics.from_json(json.dumps(document))))
    assert rows["throughput"] == "6.500 Mbit/s in all; of a flow: median 2.500 Mbit/s, least 1.000 Mbit/s (flow 1)"


@pytest.mark.parametrize(
    ("changes", "outages", "moved_s", "said"),
    [
        ({"longest_gap_at_s": None}, [], 5.0, ""),
        ({"longest_gap_at_s": 4.0}, [], 4.5, "from 4.000 s to 4.500 s: the handover at 4.500 s"),
        ({"longest_gap_at_s": 4.0}, [], 9.0, "from 4.000 s to 4.500 s: no handover"),
        ({"longest_gap_at_s": 4.0}, [4.0], 9.0, "from 4.000 s to 4.500 s: no handover, its sender went on in vain"),
        ({"longest_gap_at_s": 4.0, "censored": True, "state": "dead"}, [4.0], 4.2, "from 4.000 s to the end: it died"),
    ],
)
def test_the_longest_time_without_new_data_says_when_and_why(
    changes: dict[str, Any], outages: list[float], moved_s: float, said: str
) -> None:
    stood_still = [{"since_s": since, "duration_s": 0.5, "censored": False} for since in outages]
    flow = synthetic.flow(**changes | {"longest_gap_s": 0.5, "outages": stood_still})
    document = synthetic.metrics(flows=[flow], handovers=[synthetic.handover(moved_s)])
    metrics = Metrics.from_json(json.dumps(document))
    text = dict(headline(metrics))["longest time without new data"]
    bound = "≥ " if changes.get("censored") else ""
    assert text == (f"{bound}500.0 ms ({said})" if said else "500.0 ms")
    table = flow_table(metrics)
    [row] = table.rows
    at = changes["longest_gap_at_s"]
    assert row[table.columns.index("gap since")] == ("" if at is None else f"{at:.3f} s")


def test_outages_without_a_handover_have_a_table_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    run = many(3)
    document = json.loads(run.metrics_json)
    document["flows"][2]["outages"] = [{"since_s": 3.0, "duration_s": 1.5, "censored": False}]
    run._native.metrics_json = json.dumps(document)  # type: ignore[misc]
    print_run(run)
    shown = terminal_table(capsys.readouterr().out, "Outages without a handover")
    text = write_run_report(run, tmp_path / "run.html").read_text()
    assert shown == report_table(text, "Outages without a handover")
    assert [list(row.values()) for row in shown] == [
        ["10.770 s", "≥ 9.230 s", "1", "phone-1", "server"],
        ["3.000 s", "1.500 s", "2", "phone-2", "server"],
    ]
    assert [row["outages"] for row in report_table(text, "Flows")] == ["1", "0", "1"]
    quiet = many(1)
    assert "Outages without" not in write_run_report(quiet, tmp_path / "quiet.html").read_text()


def test_flows_that_died_stand_above_everything_in_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    run = many(9)
    document = json.loads(run.metrics_json)
    for flow in document["flows"][:5]:
        flow |= {"state": "dead", "dead_since_s": 10.0, "longest_gap_s": 10.0, "silence_s": 10.0, "censored": True}
        flow |= {"last_packets": [f"the last of {flow['id']}"]}
    run._native.metrics_json = json.dumps(document)  # type: ignore[misc]
    print_run(run)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": dead since 10.000 s, no new data for ≥ ")[0] for line in lines[1:4]] == [
        f"flow {number}, phone-{number} to server" for number in range(3)
    ]
    assert lines[1].endswith("last packets: the last of 0")
    assert lines[4] == "and 2 more flows that died"
    assert lines[5].startswith("9 handovers of 9 hosts: 5 of 9 flows died, ")
    assert lines[6].split() == ["flows", "that", "died", "5", "of", "9"]


def test_a_handover_after_which_no_data_came_stands_first() -> None:
    rows: list[dict[str, Any]] = [
        synthetic.handover(2.0),
        synthetic.handover(9.0, changes={"censored": True, "latency_s": None, "interruption_s": 573.28}),
    ]
    metrics = Metrics.from_json(json.dumps(synthetic.metrics(handovers=rows)))
    table = handover_table(metrics.handovers)
    assert [row[0] for row in table.rows] == ["9.000 s", "2.000 s"]
    assert table.rows[0][table.columns.index("interruption")] == "≥ 573.2 s"
    assert "t_a" not in table.columns


@pytest.mark.parametrize(
    ("seconds", "censored", "text"),
    [
        (None, True, ""), (0.0, False, "0.0 ms"), (0.0123, False, "12.3 ms"), (-0.002, False, "-2.0 ms"),
        (0.99999, False, "1.000 s"), (5.6884, False, "5.688 s"), (573.28, False, "573.3 s"),
        (573.28, True, "≥ 573.2 s"), (5.6889, True, "≥ 5.688 s"), (0.05, True, "≥ 50.0 ms"),
    ],
)  # fmt: skip
def test_times_have_a_unit_and_bounds_are_never_rounded_up(seconds: float | None, censored: bool, text: str) -> None:
    assert time_text(seconds, censored=censored) == text


def test_tables_and_figures_scroll_in_boxes_of_their_own(tmp_path: Path) -> None:
    text = write_run_report(many(4), tmp_path / "run.html").read_text()
    assert text.count("<table") == len(re.findall(r'<div class="scroll(?: wide)?(?: tall)?"><table', text)) > 3
    style = text[text.index("<style>") : text.index("</style>")]
    # Tables of numbers are as wide as the window lets them be, whatever the width of the text.
    assert len(re.findall(r'<div class="scroll wide(?: tall)?"><table class="data"', text)) == text.count("<table") - 1
    assert ".wide{width:max-content;min-width:100%;max-width:calc(100vw - 40px)" in style
    assert ".pair{overflow-wrap:anywhere}" in style
    for rule in (".scroll{overflow-x:auto", "figure{margin:0 0 18px;overflow-x:auto}", "overflow-wrap:anywhere"):
        assert rule in style


def test_warnings_stand_in_the_report_and_on_standard_error(tmp_path: Path) -> None:
    run = many(2)
    document = json.loads(run.metrics_json)
    document["warnings"] = [{"kind": "fallback", "host": "phone-0", "flow": 0, "text": "phone-0 <fell> back"}]
    run._native.metrics_json = json.dumps(document)  # type: ignore[misc]
    text = write_run_report(run, tmp_path / "run.html").read_text()
    assert "phone-0 &lt;fell&gt; back" in text
    assert next(iter(report_tables(text))) == "Summary"


def test_run_says_what_it_wrote(segue: Segue, tmp_path: Path) -> None:
    places = ("--pcap", tmp_path / "p", "--trace", tmp_path / "t", "--report", tmp_path / "r.html")
    result = segue("run", "sigma", "--set", "duration=10 s", *places)
    assert result.returncode == 0, result.stderr
    captures, frames, report = result.stdout.splitlines()[-3:]
    assert all(str(path) in captures for path in (tmp_path / "p").iterdir())
    assert frames.startswith(f"frames: {len(list((tmp_path / 't').iterdir()))} files in {tmp_path / 't'} (")
    assert report.startswith(f"report: {tmp_path / 'r.html'} (")
    told = segue("run", "sigma", "--set", "duration=10 s", "--json", *places)
    assert told.stdout.count("\n") == 1
    assert told.stderr.splitlines() == [captures, frames, report]


def test_a_refused_run_leaves_no_directories(segue: Segue, tmp_path: Path) -> None:
    places = ("--pcap", tmp_path / "p", "--trace", tmp_path / "t", "--report", tmp_path / "p" / "r.html")
    assert segue("run", "sigma", "--set", "mobile.sped=5 m/s", *places).returncode == 2
    assert segue("run", "sigma", "--set", "duration=5 s", "--flow", "99", *places).returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_a_flow_without_a_report_is_refused(segue: Segue) -> None:
    result = segue("run", "sigma", "--flow", "1")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "--report" in result.stderr


def test_columns_of_long_texts_wrap_and_others_do_not() -> None:
    words = "the host took another address, and told its peer"
    body = table(["a", "time", "why", "address"], [["x", "1.0 ms", words, 40 * "x"], ["y", "2 s", "", ""]])
    assert body.count("<td class=long>") == 2
    assert f"<td class=long>{words}</td>" in body
    assert f"<td>{40 * 'x'}</td>" in body
    assert "<th>Mbit/s: 5&nbsp;%</th>" in table(["Mbit/s: 5 %", "b", "c"], [["x", "y", "z"]])


def test_tables_with_interruptions_say_what_these_are(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = many(4)
    print_run(run)
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count(OF_HANDOVERS) == 1
    # below handovers, and below flows
    page = write_run_report(run, tmp_path / "run.html").read_text()
    assert page.count(OF_HANDOVERS.replace("'", "&#x27;")) == 2


def test_sweeps_and_comparisons_say_what_an_interruption_is(segue: Segue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEGUE_STORE", "")
    runs = ("--set", "duration=40 s", "--seeds", "1")
    for command in (
        ("sweep", "sigma", "--grid", "scheme=sigma"),
        ("compare", "scheme=sigma", "seed=2", "--scenario", "sigma"),
    ):
        assert OF_RUNS in segue(*command, *runs).stdout
        assert "Interruption" not in segue(*command, *runs, "--metric", "loss").stdout


def test_a_handover_in_which_no_flow_moved_does_not_say_that_no_data_was_sent() -> None:
    """The Wi-Fi of a download over two networks goes, and its data goes on over the other."""
    metrics = segue.run("templates/multipath", {"duration": "22 s"}, trace=False).metrics
    assert [row.flow for row in metrics.handovers] == [0, None]
    assert metrics.throughput_bps > 1e6
    assert dict(headline(metrics))["handovers"] == "2, 1 in which no flow moved"


def test_a_first_registration_is_no_handover() -> None:
    """Phones register with their home agent, and none has moved yet."""
    settings = {"scheme": "mip6", "phones": 10, "probes": 1, "duration": "3 s"}
    metrics = segue.run("scale", settings, trace=False).metrics
    assert metrics.handovers == ()
    assert sentence(metrics).startswith("No handover: all 10 flows lived on")

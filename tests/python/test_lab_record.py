"""Records of `segue-lab run --record`, made up here: their frames are those of a simulated run, and make its report."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import segue
from segue.cli.lab import without_report
from segue.figures.population import flows_over_time
from segue.lab.record import DOCUMENT, SCENARIO, TABLES, Record, is_whole, metrics_of
from segue.report.lab import write_lab_report
from segue.report.run import with_events
from segue.summary import flow_table, headline

DOCUMENTS = Path(__file__).parent / "lab_runs"
NODES = ["cn", "mn"]
CELL = {"name": "one", "x_m": 0.0, "y_m": 0.0, "radius_m": 100.0, "present_s": [[0.0, 4.0], [6.0, 10.0]]}
FRAMES = ("packets", "windows", "signalling", "positions", "cells")


def piece(first: int, cells: list[dict[str, object]]) -> dict[str, object]:
    """Two packets, one sent by each node; the rest of the tables is empty."""
    packets = {
        "time_ns": [first, first + 1], "node": [0, 1], "action": ["sent", "sent"], "cause": ["", ""],
        "interface": [0, 1], "packet_id": [first, first + 1], "connection": [0, None],
        "source": ["fd53::1", "fd53::2"], "destination": ["fd53::2", "fd53::1"], "kind": ["DATA", "OTHER"],
        "tsn": [4_294_967_295, None], "length_bytes": [100, 60], "retransmission": [False, False],
    }  # fmt: skip
    windows = ("time_ns", "node", "connection", "source", "destination", "cwnd_bytes", "ssthresh_bytes",
               "flightsize_bytes", "rto_ns", "primary")  # fmt: skip
    return {
        "nodes": NODES,
        "packets": packets,
        "windows": {name: [] for name in windows},
        "signalling": {name: [] for name in ("time_ns", "node", "step", "event", "detail")},
        "positions": {name: [] for name in ("time_ns", "node", "x_m", "y_m")},
        "cells": cells,
    }


@pytest.fixture
def record(tmp_path: Path) -> Record:
    document = json.loads((DOCUMENTS / "ilnp-soft-planned.json").read_text())
    document["lab"] = {
        "kernel": "6.1.0", "privileges": "root", "real_time_priority": True, "processors_kept_awake": 2,
        "programs_nice": -10, "offloads": "none", "figures": "packets", "received": [],
        "emulation": {"packets": 7, "share_late": 0.02, "median_ms": 0.1, "p99_ms": 0.4, "p999_ms": 1.5, "most_ms": 2.0,
                      "too_late": True,
                      "machine": {"standstills": 3, "longest_ms": 12.5, "total_ms": 14.25, "share_late": 0.001,
                                  "p99_ms": 0.2, "p999_ms": 0.5, "most_ms": 0.75}},
        "packets": {"from_kernels": 8, "malformed": 1, "to_kernels": 7, "refused_by_kernels": 0},
        "hosts": [{"name": name, "identity": None, "mtu": 1500, "settings": {"route": "congctl cubic"}}
                  for name in NODES],
        "programs": [{"application": 0, "role": "client", "host": "mn", "command": ["iperf3", "<&>"],
                      "started_s": 4.0, "ended_s": None, "exit_status": None, "stopped": True}],
        "captures": [], "handovers_confirmed_by_captures": None, "handovers_to_confirm": None,
    }  # fmt: skip
    (tmp_path / DOCUMENT).write_text(json.dumps(document))
    (tmp_path / SCENARIO).write_text('name = "made up"\n')
    assert not is_whole(tmp_path)
    lines = [json.dumps(piece(10, [CELL])), json.dumps(piece(20, []))]
    (tmp_path / TABLES).write_text("".join(f"{line}\n" for line in lines))
    assert is_whole(tmp_path)
    return Record(tmp_path)


def test_frames_are_as_those_of_the_simulator(record: Record) -> None:
    simulated = segue.run("lab/ilnp-soft", {"duration": "5 s"})
    for name in FRAMES:
        assert getattr(record, name).schema == getattr(simulated, name).schema, name
    assert record.packets["time_ns"].to_list() == [10, 11, 20, 21]
    assert record.packets["node"].to_list() == ["cn", "mn", "cn", "mn"]
    assert record.packets["connection"].to_list() == [0, None, 0, None]
    assert record.cells["present_s"].to_list() == [[0.0, 4.0, 6.0, 10.0]]


@pytest.mark.parametrize(
    "line",
    ["{", "[" * 200_000, "[]", "{}", '{"packets": 3, "nodes": []}'],
    ids=["cut", "deep", "list", "empty", "types"],
)
def test_tables_that_are_none_are_said_with_their_line(record: Record, tmp_path: Path, line: str) -> None:
    with (tmp_path / TABLES).open("a") as tables:
        tables.write(line)
    with pytest.raises(ValueError, match=r"tables\.jsonl, line 3: expected"):
        _ = record.packets


def test_the_report_says_what_is_the_labs(record: Record, tmp_path: Path) -> None:
    page = write_lab_report(record, tmp_path / "report.html").read_text()
    assert "3 times, 12.50 ms at most, 14.25 ms in all" in page
    assert "0.20 ms (99 %), 0.50 ms (99.9 %), 0.75 ms (most); 0.100 % later than 1 ms" in page
    assert "in real time on Linux 6.1.0; packets were too late for these figures to say much." in page
    assert "2.000 %, too many" in page
    assert "iperf3 &lt;&amp;&gt;" in page
    assert "stopped with the run" in page
    assert "congctl cubic" in page
    # the documents of the tests have the simulator's figures beside them
    assert record.prediction is not None
    assert "<th>lab</th><th>simulator</th>" in page


def test_the_report_has_all_that_the_scenario_has_happen(record: Record, tmp_path: Path) -> None:
    events = [
        {"kind": kind, "on": ["one"], "at_s": at, "for_s": None} for kind, at in (("flap", 4.0), ("blackhole", 6.0))
    ]
    film = {"kind": "video", "from": "cn", "to": "mn", "startup_delay_s": None, "mean_rate_bps": None}
    both = {"applications": [film, film]}
    document = {**record.document, "scenario_events": events, **both}
    document["prediction"] = {**document["prediction"], "scenario_events": events[:1], **both}
    (tmp_path / DOCUMENT).write_text(json.dumps(document))

    def rows() -> list[list[str]]:
        page = write_lab_report(Record(tmp_path), tmp_path / "report.html").read_text()
        found = [re.findall("<td[^>]*>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", page)]
        return [row for row in found if any("one at" in text or "never began" in text for text in row)]

    first, second = "flap on one at 4.000 s", "blackhole on one at 6.000 s"
    twice = [["video cn to mn", "never began", "never began"], ["", "never began", "never began"]]
    assert rows() == [["happens", first, first], ["", second, ""], *twice]
    del document["prediction"]
    (tmp_path / DOCUMENT).write_text(json.dumps(document))
    assert rows() == [["happens", first], ["", second], *(row[:2] for row in twice)]


def test_the_report_that_is_asked_for_is_taken_off_the_command_line() -> None:
    assert without_report(["run", "a.toml", "--report", "r.html", "--help"])[1] is None
    assert without_report(["link", "--report", "r.html"]) == (["link", "--report", "r.html"], None)
    assert without_report(["run", "a.toml", "--predict", "--report=r.html"]) == (
        ["run", "a.toml", "--predict"], Path("r.html")
    )  # fmt: skip


def test_what_the_scenario_has_happen_is_named_and_marked() -> None:
    document = json.loads((DOCUMENTS / "none-flap.json").read_text())
    metrics = metrics_of(document)
    rows = dict(headline(metrics))
    assert rows["happens"] == "flap on one at 5.000 s for 3.000 s"
    assert "flow " in rows["longest without data around it"]
    figure = with_events(flows_over_time(metrics, title="a", subtitle="b"), metrics)
    axes = figure.axes[0]
    assert "flap on one" in [text.get_text() for text in axes.texts]
    assert axes.get_xlim() == (0, metrics.duration_s)
    unmarked = with_events(flows_over_time(metrics, title="a", subtitle="b"), replace(metrics, scenario_events=()))
    assert not unmarked.axes[0].texts


def test_a_flow_of_one_packet_has_no_rate() -> None:
    metrics = metrics_of(json.loads((DOCUMENTS / "none-planned.json").read_text()))
    flows = tuple(replace(flow, packets_sent=1) for flow in metrics.flows)
    table = flow_table(replace(metrics, flows=flows))
    assert {row[table.columns.index("Mbit/s")] for row in table.rows} == {""}
    assert "" not in {row[table.columns.index("Mbit/s")] for row in flow_table(metrics).rows[:1]}

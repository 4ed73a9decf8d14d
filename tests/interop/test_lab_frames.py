"""`segue-lab run --record`: the frames that a report is made of, held against what the same run counted."""

from __future__ import annotations

import shutil
from pathlib import Path

import lab
import network
import polars as pl
import pytest
from test_lab_run import run

from segue.lab.record import Record, is_whole
from segue.report.lab import write_lab_report

REASON = network.missing() or (None if shutil.which("iperf3") else "iperf3 is missing (Debian package iperf3)")
pytestmark = [pytest.mark.alone, pytest.mark.skipif(REASON is not None, reason=REASON or "")]


@pytest.mark.slow
@lab.real_time
def test_the_frames_have_what_the_run_counted(tmp_path: Path) -> None:
    folder = tmp_path / "record"
    window = ["--set", "tcp.window_clamp=64 KiB", "--set", "tcp.max_segment=1000 B"]
    result = run("ilnp-soft", tmp_path, "--predict", "--record", str(folder), *window)
    assert is_whole(folder)
    record = Record(folder)
    assert record.metrics.event_log_hash == result["event_log_hash"]
    data = record.packets.filter((pl.col("kind") == "DATA") & (pl.col("action") == "sent"))
    sent = {flow.sender: 0 for flow in record.metrics.flows}
    for flow in record.metrics.flows:
        sent[flow.sender] += flow.packets_sent
    assert dict(data.group_by("node").len().rows()) == sent
    again = data["retransmission"].sum()
    assert again == sum(flow.retransmissions for flow in record.metrics.flows)
    # each flow is a direction of one connection, whichever locator it uses
    assert data.select("connection", "node").n_unique() == len(record.metrics.flows)
    assert data["source"].n_unique() >= 2
    # `tcp.max_segment`: 1000 bytes of data in an IPv6 header, the nonce of 8 bytes and TCP's header of 32
    longest = data.filter(pl.col("node") == "mn")["length_bytes"].max()
    assert longest == 1000 + 40 + 8 + 32
    # the kernels' own count of what their timers did
    counted = record.lab["tcp_counters"]
    assert set(counted) == {"cn", "mn"}
    assert record.metrics.timeouts == sum(own["TCPTimeouts"] for own in counted.values())
    routes = {host["settings"]["route"] for host in record.lab["hosts"]}
    assert routes == {"congctl cubic advmss 1012"}
    report = write_lab_report(record, tmp_path / "report.html").read_text()
    for heading in ("Emulation", "Programs", "Captures", "Handovers", "Flows", "Sequence numbers against time"):
        assert f">{heading}" in report or f"{heading}<" in report, heading
    assert "<th>simulator</th>" in report
    assert str(lab.program()) in report

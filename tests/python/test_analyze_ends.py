"""Flows that died, as the command and the function show them; pipes, warnings and kinds of output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl
import pytest

from capture_files import ACK, Way, download, pcap
from command import Segue
from pages import report_table
from segue import CaptureError, analyze, explain

DIED_S = 0.02 + 199 * 0.005 + 0.0001
LAST_S = 601.0
# When the sender tries again what was lost.
AGAIN_S = (1.3, 1.9, 3.1, 5.5, 10.3, 19.9)


def dead_download() -> bytes:
    """A download at its server whose link dies after 200 segments; 30 more leave in vain, and another flow goes on."""
    way, other = Way(), Way(client="2001:db8:9::9", client_port=9)
    packets = [(at, data) for at, _, data in download(way, count=200, silence_s=0)]
    lost = 501 + 200 * 1000
    packets += [
        (DIED_S + 0.002 + n * 1e-4, way.packet(down=True, seq=lost + n * 1000, ack=101, data=1000)) for n in range(30)
    ]
    packets += [(at, way.packet(down=True, seq=lost, ack=101, data=1000)) for at in AGAIN_S]
    packets.append((LAST_S, other.packet(down=False, seq=1, ack=1, flags=ACK)))
    return pcap(packets)


@pytest.fixture
def dead(tmp_path: Path) -> Path:
    path = tmp_path / "server.pcap"
    path.write_bytes(dead_download())
    return path


def test_a_flow_that_died_stands_first_everywhere(segue: Segue, dead: Path, tmp_path: Path) -> None:
    result = segue("analyze", dead)
    assert (result.returncode, result.stderr) == (0, "")
    text = " ".join(result.stdout.split())
    assert f"dead since {DIED_S:.3f} s: nothing new arrived for at least 599 s" in text
    assert "tried 36 times" in text
    assert result.stdout.index("1 flow died") < result.stdout.index("No handover")
    assert "\u2265 599 s" in text
    document = json.loads(segue("analyze", dead, "--json").stdout)
    [flow] = [flow for flow in document["flows"] if flow["state"] == "dead"]
    assert flow["censored"]
    assert flow["dead_since_s"] == pytest.approx(DIED_S, abs=1e-6)
    assert flow["longest_gap_s"] == pytest.approx(LAST_S - DIED_S, abs=1e-6)
    assert document["interruptions"][0]["censored"]
    report = tmp_path / "r.html"
    assert segue("analyze", dead, "--report", report).returncode == 0
    html = report.read_text()
    assert html.rindex("Flows that died (1)") < html.rindex("What was read")
    assert "1 flow died." in html
    assert "\u2265 599" in html


def test_frames_have_the_end_of_each_direction(dead: Path) -> None:
    analysis = analyze(dead)
    rows = analysis.flows.filter(pl.col("state") == "dead")
    assert rows["dead_since_s"].to_list() == pytest.approx([DIED_S], abs=1e-6)
    assert rows["attempts"].to_list() == [36]
    assert analysis.interruptions["censored"].to_list()[0]
    [(flow, direction)] = explain.dead_directions(analysis.findings)
    assert len(flow.direction(direction).last_packets) >= 4


def test_outages_stand_in_the_flow_table_the_report_and_the_frames(segue: Segue, dead: Path, tmp_path: Path) -> None:
    analysis = analyze(dead)
    flow = analysis.findings.dead_flows[0]
    [outage] = flow.outages
    assert (outage.since_s, outage.duration_s) == pytest.approx((DIED_S, LAST_S - DIED_S), abs=1e-6)
    assert outage.censored
    assert flow.longest_gap_at_s == pytest.approx(DIED_S, abs=1e-6)
    [row] = analysis.outages.rows(named=True)
    assert row == {
        "flow": flow.id, "direction": "forward" if flow.forward.outages else "reverse", "since_s": outage.since_s,
        "duration_s": outage.duration_s, "censored": True,
    }  # fmt: skip
    frame = analysis.flows.filter(direction=row["direction"], flow=flow.id)
    assert frame["longest_gap_at_s"].to_list() == [outage.since_s]
    assert frame["outages"].to_list() == [1]
    patch = {"COLUMNS": "200"}
    shown = subprocess.run(
        [sys.executable, "-c", "from segue.cli import main; main()", "analyze", str(dead)],
        env=os.environ | patch, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    [line] = [line for line in shown.splitlines() if "dead" in line and "kB" in line]
    assert f"{DIED_S:.3f} s" in line
    assert "outages" in shown.split()
    report = tmp_path / "r.html"
    assert segue("analyze", dead, "--report", report).returncode == 0
    cells = report_table(report.read_text(), "Outages without a handover (1)")
    assert [(cell["time (s)"], cell["no new data for"]) for cell in cells] == [(f"{DIED_S:.3f}", "\u2265 599 s")]
    [listed] = [cell for cell in report_table(report.read_text(), "Flows (2)") if cell["end"] == "dead"]
    assert (listed["since (s)"], listed["outages"]) == (f"{DIED_S:.3f}", "1")
    assert segue("analyze", dead, "--out", tmp_path / "all").returncode == 0
    assert pl.read_parquet(tmp_path / "all" / "outages.parquet").equals(analysis.outages)


def test_a_pause_full_of_retransmissions_is_not_said_to_have_nothing_to_send() -> None:
    way = Way()
    packets = [(at, data) for at, _, data in download(way, count=100, silence_s=0)]
    last_s = max(at for at, _ in packets)
    end = 501 + 100 * 1000
    missing = (last_s + 0.001, way.packet(down=True, seq=end, ack=101, data=1000))
    again = [(last_s + s, way.packet(down=True, seq=end, ack=101, data=1000)) for s in (0.3, 0.9, 2.1, 4.5)]
    packets += [missing, *again]
    packets.append((last_s + 4.52, way.packet(down=False, seq=101, ack=end + 1000)))
    packets.append((last_s + 4.521, way.packet(down=True, seq=end + 1000, ack=101, data=1000)))
    findings = analyze(("server.pcap", pcap(packets))).findings
    [(pause, _, words)] = explain.pauses(findings)
    assert (pause.retransmissions, pause.ended_by_retransmission) == (4, False)
    assert words == "new data, after the sender had tried again 4 times"


def test_a_lower_bound_is_never_rounded_up() -> None:
    assert explain.silence(573.96, censored=True) == "\u2265 573 s"
    assert explain.silence(1.999, censored=True) == "\u2265 1.99 s"
    assert explain.silence(1.999, censored=False) == "2.00 s"


def test_out_is_csv_or_parquet_or_a_directory(segue: Segue, dead: Path, tmp_path: Path) -> None:
    assert segue("analyze", dead, "--out", tmp_path / "h.csv").returncode == 0
    assert (tmp_path / "h.csv").is_file()
    assert pl.read_csv(tmp_path / "h.csv").columns == analyze(dead).handovers.columns
    refused = segue("analyze", dead, "--out", tmp_path / "h.xlsx")
    assert refused.returncode == 2
    assert ".parquet or .csv" in refused.stderr
    assert not (tmp_path / "h.xlsx").exists()
    (tmp_path / "all.d").mkdir()
    assert segue("analyze", dead, "--out", tmp_path / "all.d").returncode == 0


def test_two_captures_of_one_host_are_said_to_be_that(segue: Segue, dead: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.pcap"
    again.write_bytes(dead.read_bytes())
    result = segue("analyze", dead, again, "--json")
    assert result.returncode == 0
    [warning] = json.loads(result.stdout)["warnings"]
    assert warning["kind"] == "same-end"
    assert "same host" in result.stderr
    assert result.stderr.count("\n") == 1


def test_times_that_go_back_make_no_length_negative() -> None:
    packets = [(at, data) for at, _, data in download(Way())]
    packets[0] = (2_500_000_000.0, packets[0][1])
    findings = analyze(("back.pcap", pcap(packets))).findings
    assert [warning.kind for warning in findings.warnings] == ["time-went-back"]
    assert " in -" not in explain.capture_line(findings.captures[0])


def test_a_pipe_is_read_and_ends_with_control_c(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(dead_download()))
    writer.start()
    assert len(analyze(pipe).findings.dead_flows) == 1
    writer.join()
    with pytest.raises(CaptureError, match="only once"):
        analyze(pipe, ("other", dead_download()))
    # Nobody ever writes: the process says that it has begun by what it prints before.
    code = "import sys; from segue.cli.app import run_command; print('begun', flush=True); "
    code += "sys.exit(run_command(['analyze', sys.argv[1]]))"
    process = subprocess.Popen([sys.executable, "-c", code, str(pipe)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, errors.strip()) == (130, b"segue: interrupted")

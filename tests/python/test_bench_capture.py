"""The capture that `make bench` measures with: the same every time, and with the moves in it that it should have."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches"))
import make_capture

from segue import analyze

SIZE = 12_000_000


@pytest.fixture(scope="module")
def capture() -> bytes:
    file = io.BytesIO()
    make_capture.write_capture(file, SIZE)
    return file.getvalue()


def test_it_is_the_same_every_time(capture: bytes) -> None:
    again = io.BytesIO()
    packets = make_capture.write_capture(again, SIZE)
    assert again.getvalue() == capture
    assert packets > 10_000
    assert len(capture) == pytest.approx(SIZE, rel=0.1)


def test_two_hosts_move_in_it(capture: bytes) -> None:
    findings = analyze(("bench.pcap", capture)).findings
    silence_s = make_capture.SILENCE / 1e9
    found = {
        h.kind: h for h in findings.handovers if findings.flow(h.flow).direction(h.direction).useful_bytes > 10_000
    }
    assert set(found) == {"mptcp-subflow", "quic-path"}
    for handover in found.values():
        assert handover.interruption_s >= silence_s
    assert found["mptcp-subflow"].time == pytest.approx(make_capture.MOVE / 1e9 + silence_s, abs=2.0)
    tcp = [flow for flow in findings.flows if flow.protocol == "tcp"]
    # 44 connections, and two subflows
    assert len(tcp) == 46
    assert sum(flow.forward.retransmissions + flow.reverse.retransmissions for flow in tcp) > 0


def test_the_capture_of_the_other_end_is_of_the_same_traffic(capture: bytes) -> None:
    file = io.BytesIO()
    make_capture.write_other_end(file, io.BytesIO(capture))
    assert len(file.getvalue()) == len(capture)
    findings = analyze(("client.pcap", capture), ("server.pcap", file.getvalue())).findings
    assert findings.warnings == ()
    clock = findings.clock_offset
    assert clock is not None
    assert clock.offset_s == pytest.approx(make_capture.OTHER_CLOCK / 1e9, abs=1e-3)
    assert clock.uncertainty_s == pytest.approx(make_capture.DELAY / 1e9, abs=1e-3)
    largest = [
        max((flow.forward, flow.reverse), key=lambda way: way.useful_bytes)
        for flow in findings.flows
        if flow.protocol == "tcp"
    ]
    assert {way.vantage for way in largest} == {"both"}
    assert sum(way.ends.lost_packets for way in largest if way.ends) == 0

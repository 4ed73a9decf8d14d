"""`segue-agent trace`: both sides of the shim in a file, which segue analyze and tshark read."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import agents
import lab
import pytest
import tshark
from agents import World, identity, iperf, iperf_server, said_by

REASON = agents.missing()
pytestmark = [pytest.mark.waits, pytest.mark.skipif(REASON is not None, reason=REASON or "")]
SEGUE = Path(sysconfig.get_path("scripts")) / "segue"


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[World]:
    """Two machines and a router between them."""
    with agents.world(tmp_path) as world:
        yield world


def dissected(capture: Path, *fields: str) -> list[list[str]]:
    """A row for each packet."""
    assert tshark.TSHARK is not None
    command = [tshark.TSHARK, "-r", str(capture), "-o", "tcp.check_checksum:TRUE", "-T", "fields"]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.skipif(tshark.TSHARK is None, reason="tshark is not installed (Debian package tshark)")
def test_a_trace_has_both_sides_of_a_handover(machines: World) -> None:
    """segue analyze finds the handover, tshark has nothing to object to, and packets are cut where that is asked."""
    mobile, peer = machines.hosts["mobile"], machines.hosts["peer"]
    whole, cut = machines.folder / "whole.pcapng", machines.folder / "cut.pcapng"
    with contextlib.ExitStack() as stack:
        stack.enter_context(machines.agent("peer"))
        agent = stack.enter_context(machines.agent("mobile"))
        stack.enter_context(iperf_server(peer, 5201))
        asks = [str(agents.program()), "trace", "--socket", str(agent.socket)]
        long = stack.enter_context(
            subprocess.Popen([*asks, str(whole), "--seconds", "8"], stdout=subprocess.PIPE, text=True)
        )
        short = stack.enter_context(
            subprocess.Popen([*asks, str(cut), "--packets", "50", "--snap", "64"], stdout=subprocess.PIPE, text=True)
        )
        time.sleep(0.3)
        # there are two already
        third = subprocess.run([*asks, "/dev/null"], check=False, capture_output=True, text=True, timeout=lab.SOON)
        assert third.returncode != 0
        assert "expected no more" in third.stderr
        client = stack.enter_context(iperf(mobile, identity("peer"), 5201, "-t", "5", "-b", "2M"))
        time.sleep(2)
        agent.move("eth1")
        said_by(client)
        said = long.communicate(timeout=lab.LONGEST)[0]
        assert " dropped" not in said, said
        assert short.communicate(timeout=lab.LONGEST)[0] == f"{cut}: 50 of 50 packets\n"
    rows = dissected(whole, "frame.interface_name", "ipv6.src", "tcp.checksum.status", "_ws.malformed", "icmpv6.type")
    names = {row[0] for row in rows}
    assert names == {"segue0", "eth0", "eth1"}
    own = identity("mobile")
    inside = [row for row in rows if row[0] == "segue0"]
    # beside what the kernel itself sends to the device
    sources = {row[1] for row in inside if not row[1].startswith("fe80:") and row[1] != "::"}
    assert sources == {own, identity("peer")}
    # the sum of TCP over identities is right where there are identities
    assert {row[2] for row in inside if row[2]} == {"1"}
    assert not [row for row in rows if row[3]]
    assert "156" in {row[4] for row in rows}, "no locator update"
    lengths = dissected(cut, "frame.cap_len", "frame.len")
    assert len(lengths) == 50
    assert max(int(row[0]) for row in lengths) == 64
    assert max(int(row[1]) for row in lengths) > 1000
    done = subprocess.run([SEGUE, "analyze", whole, "--json"], check=True, capture_output=True, text=True)
    report = json.loads(done.stdout)
    (machines.folder / "report.json").write_text(done.stdout)
    assert report["handovers"], report


def test_who_does_not_read_is_no_load(machines: World) -> None:
    """A stream goes on beside one who asks for a trace and reads nothing; the agent grows by its queue and no more."""
    mobile, peer = machines.hosts["mobile"], machines.hosts["peer"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(machines.agent("peer"))
        agent = stack.enter_context(machines.agent("mobile"))
        stack.enter_context(iperf_server(peer, 5201))
        asks = stack.enter_context(socket.socket(socket.AF_UNIX))
        asks.connect(str(agent.socket))
        request = {"version": 1, "command": "trace", "seconds": 60, "packets": 10**9, "snap": 65535}
        asks.sendall(json.dumps(request).encode() + b"\n")
        before = resident_kib(agent.child.pid)
        client = stack.enter_context(iperf(mobile, identity("peer"), 5201, "-t", "4", "-u", "-b", "50M", "-l", "1200"))
        ended = said_by(client)["end"]["sum"]
        assert ended["lost_percent"] < 1, ended
        assert resident_kib(agent.child.pid) < before + 4096
        # what there was room for is there, and the agent answers
        assert json.loads(asks.makefile("rb").readline())["trace"]["interfaces"] == ["segue0", "routes", "eth0", "eth1"]
        assert agent.in_use() == "eth0"


def resident_kib(process: int) -> int:
    """Memory of a process."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS")))

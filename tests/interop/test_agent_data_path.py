"""What `segue-agent` costs and carries: handovers without growth, a thousand sessions, super-packets."""

from __future__ import annotations

import contextlib
import json
import platform
import subprocess
import sys
from pathlib import Path

import agent_endurance
import agents
import build
import lab
import pytest
from agents import identity

REASON = agents.missing()
pytestmark = [pytest.mark.alone, pytest.mark.skipif(REASON is not None, reason=REASON or "")]

HANDOVERS = 24
MOST_KIB_IN_SHORT = 512
"""Of a run in which the allocator has not settled: a leak of a large buffer a handover would be 1.5 MB."""
SESSIONS = 1000
MOST_MEMORY_KIB = 20_000
SEGMENT = 1000
DATAGRAMS = 40
BURSTS = 5
USO_SINCE = (6, 2)

# A burst is one call of send(2) with UDP_SEGMENT (103); each datagram carries its number.
SEND = f"""
import socket, sys, time
link = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
link.connect((sys.argv[1], 7777))
link.setsockopt(socket.IPPROTO_UDP, 103, {SEGMENT})
for burst in range({BURSTS}):
    link.send(b"".join(bytes([burst, number]) * {SEGMENT // 2} for number in range({DATAGRAMS})))
    time.sleep(0.05)
"""
RECEIVE = f"""
import json, socket
link = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
link.bind(("::", 7777))
link.settimeout(10)
print("ready", flush=True)
found = []
while len(found) < {BURSTS * DATAGRAMS}:
    data = link.recv(65536)
    assert data == data[:2] * (len(data) // 2)
    found.append([len(data), data[0], data[1]])
print(json.dumps(found))
"""


@lab.real_time
def check_endurance() -> None:
    """Every kind of handover, two seconds apart."""
    endured = agent_endurance.endure(int(HANDOVERS * agent_endurance.EVERY_S))
    assert endured.handovers == HANDOVERS, endured.told()
    assert (endured.dead, endured.failed) == ([], 0), endured.told()
    assert endured.received[0] >= 0.9 * endured.received[1], endured.told()
    assert max(endured.more_descriptors().values()) <= 0, endured.told()
    assert max(endured.grown_kib().values()) <= MOST_KIB_IN_SHORT, endured.told()


@pytest.mark.slow
def test_a_handover_every_two_seconds_takes_nothing_for_good() -> None:
    """As it says; `agent_endurance.py` does it for an hour."""
    check_endurance()


def test_a_thousand_peers_take_little_memory() -> None:
    """Each has called, has had an answer, and has carried on."""
    bench = Path(build.ROOT, "benches", "agent_cost.py")
    command = [sys.executable, str(bench), str(agents.program()), "--rounds=50", f"--sessions={SESSIONS}", "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout)
    assert found["answered"] == SESSIONS, found
    assert found["sessions"] >= SESSIONS, found
    assert found["sessions_kib"] < MOST_MEMORY_KIB, found
    # how many is for the bench to say
    assert min(found["through_us"], found["plain_us"]) > 0, found


def test_a_super_packet_of_udp_is_carried_whole_and_arrives_in_its_datagrams(tmp_path: Path) -> None:
    """Bursts that an application leaves to the kernel to cut up, as those that speak QUIC do."""
    with contextlib.ExitStack() as stack:
        world = stack.enter_context(agents.world(tmp_path))
        mobile, peer = (world.hosts[name] for name in ("mobile", "peer"))
        stack.enter_context(world.agent("peer"))
        agent = stack.enter_context(world.agent("mobile"))
        command = peer.command(sys.executable, "-c", RECEIVE)
        receiver = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert receiver.stdout is not None
        assert receiver.stdout.readline().strip() == "ready"
        before = agent.status()["counters"]["packets"].get("from_kernel", 0)
        subprocess.run(mobile.command(sys.executable, "-c", SEND, identity("peer")), check=True, timeout=lab.SOON)
        said, _ = receiver.communicate(timeout=lab.SOON)
        taken = agent.status()["counters"]["packets"]["from_kernel"] - before
    found = json.loads(said)
    assert found == [[SEGMENT, burst, number] for burst in range(BURSTS) for number in range(DATAGRAMS)]
    if tuple(int(part) for part in platform.release().split(".")[:2]) >= USO_SINCE:
        assert taken < 2 * BURSTS, taken

"""`segue-agent`'s fast path: what the kernel carries by itself, when it does not, and that nobody notices."""

from __future__ import annotations

import contextlib
import functools
import shutil
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv6Address
from pathlib import Path

import agents
import attackers
import lab
import pytest
from agents import Agent, World, identity, iperf, iperf_server, said_by, wait_until
from attackers import Attacker, Kind
from lab import Namespace

REASON = agents.missing()
pytestmark = [pytest.mark.alone, pytest.mark.skipif(REASON is not None, reason=REASON or "")]
TCX_FIRST = Path(__file__).parent / "peers" / "tcx_first.py"
LOADED = "fast path: the kernel carries what needs no thought"
PORTS = (5201, 5202, 5203)
# the two lengths of the option
NONCES = ("32-bit", "96-bit")

# An echo of datagrams that keeps what is marked as forged to itself until it is asked for it, and one that asks: how
# many of so many came back, one after the other, and then what was kept.
ECHO = """
import socket
link = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
link.bind(("::", 7778))
print("ready", flush=True)
kept = set()
while True:
    data, sender = link.recvfrom(2048)
    if data.startswith(b"forged"):
        kept.add(data.partition(b".")[0])
    else:
        link.sendto(b" ".join(sorted(kept)) if data == b"kept?" else data, sender)
"""
ASK = """
import socket, sys, time
link = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
link.connect((sys.argv[1], 7778))
link.settimeout(1)
back = 0
for number in range(int(sys.argv[2])):
    time.sleep(float(sys.argv[3]))
    data = number.to_bytes(4, "big") * 16
    link.send(data)
    back += link.recv(2048) == data
link.send(b"kept?")
print(back, link.recv(2048).decode(), sep="\\n")
"""


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[World]:
    """Two machines and a router between them."""
    with agents.world(tmp_path) as world:
        yield world


def carried(agent: Agent) -> Counter[str]:
    """What the kernel has carried; only what is not nothing is told."""
    return Counter(agent.status()["counters"].get("fast-path", {}))


def needs_fast_path(agent: Agent) -> None:
    """Leave the test out where the kernel, or the build, has none; but a build for which there was a clang has."""
    said = agent.log.read_text()
    if LOADED not in said:
        reason = next(line for line in said.splitlines() if "no fast path" in line)
        assert "built without clang" not in reason or shutil.which("clang") is None, reason
        pytest.skip(f"the agent has no fast path here: {reason.partition('error=')[2]}")


@pytest.fixture
def attacked(tmp_path: Path) -> Iterator[World]:
    """The same, and an attacker on each link."""
    with agents.world(tmp_path, attacked=True) as world:
        yield world


@contextlib.contextmanager
def running(host: Namespace, *words: str | Path) -> Iterator[None]:
    """A program in Python on a host, once it is ready."""
    command = host.command(sys.executable, *words)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == "ready\n"
            yield
        finally:
            program.terminate()


def echo(machines: World) -> contextlib.AbstractContextManager[None]:
    """Datagrams to the peer come back."""
    return running(machines.hosts["peer"], "-c", ECHO)


def asking(machines: World, number: int, pause_s: float) -> list[str]:
    """The command that asks."""
    return machines.hosts["mobile"].command(sys.executable, "-c", ASK, identity("peer"), str(number), str(pause_s))


def ask(machines: World, number: int, pause_s: float) -> int:
    """How many of so many datagrams to the peer came back."""
    return int(machines.run(*asking(machines, number, pause_s)).split()[0])


@pytest.mark.parametrize("bits", NONCES)
def test_the_kernel_carries_both_ways_and_the_agent_sees_nearly_nothing(machines: World, bits: str) -> None:
    """TCP in super-packets, and datagrams, with right checksums: each end takes what the other has sent."""
    mobile, peer = machines.hosts["mobile"], machines.hosts["peer"]
    for host in agents.LINKS:
        machines.configuration(host, f'nonce = "{bits}"')
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(machines.agent("peer", written=True))
        agent = stack.enter_context(machines.agent("mobile", written=True))
        needs_fast_path(agent)
        for port in PORTS:
            stack.enter_context(iperf_server(peer, port))
        for port, more in zip(
            PORTS, (["-t", "2"], ["-t", "2", "-R"], ["-t", "2", "-u", "-b", "20M", "--bidir"]), strict=True
        ):
            with iperf(mobile, identity("peer"), port, *more) as client:
                end = said_by(client)["end"]
            if "-u" in more:
                assert [end[way]["lost_packets"] for way in ("sum", "sum_bidir_reverse")] == [0, 0], end
                assert [one["udp"].get("out_of_order", 0) for one in end["streams"]] == [0, 0], end
        for one in (agent, other):
            packets, fast = one.status()["counters"]["packets"], carried(one)
            assert fast["sent"] > 20 * packets["sent"], (fast, packets)
            assert fast["received"] > 20 * packets["received"], (fast, packets)
            # super-packets stay whole
            assert max(fast["sent_bytes"] / fast["sent"], fast["received_bytes"] / fast["received"]) > 3000, fast


def carries_anew(agent: Agent, before: dict[str, int]) -> bool:
    """Whether the kernel carries a session again."""
    return carried(agent)["sessions_begun"] > before["sessions_begun"]


@lab.real_time
def go_through_handovers(machines: World) -> None:
    """Datagrams either way through soft handovers: none is lost, and the kernel carries again afterwards."""
    mobile, peer = machines.hosts["mobile"], machines.hosts["peer"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(machines.agent("peer"))
        agent = stack.enter_context(machines.agent("mobile"))
        needs_fast_path(agent)
        stack.enter_context(iperf_server(peer, PORTS[0]))
        client = iperf(mobile, identity("peer"), PORTS[0], "-t", "8", "-u", "-b", "10M", "-l", "500", "--bidir")
        stack.enter_context(client)
        for interface in ("eth1", "eth0") * 3:
            time.sleep(1)
            before = carried(agent)
            assert before["sessions_now"] == 1, before
            agent.move(interface)
            wait_until(functools.partial(carries_anew, agent, before), "the fast path")
        end = said_by(client)["end"]
        assert [end[way]["lost_packets"] for way in ("sum", "sum_bidir_reverse")] == [0, 0], end
        assert carried(agent)["sent"] > 10_000


def test_nothing_is_lost_in_a_handover_of_what_the_kernel_carries(machines: World) -> None:
    """As it says."""
    go_through_handovers(machines)


def test_a_pause_goes_by_the_agent_and_idle_sessions_are_taken_back(machines: World) -> None:
    """What is sent when nothing was heard lately may have to be probed for: so goes a stream in one direction, too."""
    with machines.agent("peer"), machines.agent("mobile") as agent, echo(machines):
        needs_fast_path(agent)
        assert ask(machines, 200, 0.001) == 200
        fast, slow = carried(agent), agent.status()["counters"]["packets"]["sent"]
        assert min(fast["sent"], fast["received"]) > 150, fast
        assert ask(machines, 20, 0.05) == 20
        assert agent.status()["counters"]["packets"]["sent"] >= slow + 20
        wait_until(lambda: not carried(agent).get("sessions_now"), "the session to be taken back")
        assert ask(machines, 5, 0) == 5


def test_what_is_carried_goes_by_the_interface_in_use_and_not_by_the_kernels_best_way(machines: World) -> None:
    """The kernel's own traffic prefers the other interface by a metric, as managers of networks set it up."""
    mobile = machines.hosts["mobile"]
    with machines.agent("peer"), machines.agent("mobile") as agent, echo(machines):
        needs_fast_path(agent)
        agent.move("eth1")
        via = f"{agents.PREFIXES['a0']}::1".replace(":0::", "::")
        mobile.ip(f"-6 route add default via {via} dev eth0 metric 100")
        time.sleep(0.5)
        assert ask(machines, 300, 0.001) == 300
        assert carried(agent)["sent"] > 200, carried(agent)


def test_who_traces_sees_every_packet(machines: World) -> None:
    """While somebody does, nothing is carried past the agent."""
    with machines.agent("peer"), machines.agent("mobile") as agent, echo(machines):
        needs_fast_path(agent)
        assert ask(machines, 50, 0.001) == 50
        file = machines.folder / "trace.pcapng"
        command = [str(agents.program()), "trace", str(file), "--seconds", "20", "--packets", "400"]
        command += ["--socket", str(agent.socket)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as trace:
            wait_until(file.exists, "the trace")
            time.sleep(0.3)
            before = carried(agent)
            # four places of each exchange
            assert ask(machines, 120, 0.001) == 120
            assert trace.wait(timeout=lab.SOON) == 0
        assert carried(agent)["sent"] - before["sent"] < 40
        assert file.stat().st_size > 400 * 100


def test_a_file_can_forbid_it(machines: World) -> None:
    """Then every packet passes the agent."""
    file = machines.configuration("mobile")
    file.write_text(file.read_text().replace("[agent]", "[agent]\nfast_path = false"))
    with machines.agent("peer"), machines.agent("mobile", written=True) as agent, echo(machines):
        assert ask(machines, 50, 0.001) == 50
        assert carried(agent) == {}
        assert agent.status()["counters"]["packets"]["sent"] >= 50
        assert LOADED not in agent.log.read_text()


def forged(seen: bytes) -> dict[str, bytes]:
    """Frames like one that was seen with a nonce of 32 bits, each with something wrong and a mark in its datagram; and
    one with nothing wrong."""
    source, destination = IPv6Address(seen[22:38]), IPv6Address(seen[38:54])
    options, ports = seen[54:62], seen[62:66]

    def frame(mark: str, options: bytes) -> bytes:
        data = f"forged-{mark}.".encode() + bytes(40)
        upper = ports + struct.pack("!HH", 8 + len(data), 0) + data
        summed = attackers.checksum(source.packed, destination.packed, attackers.UDP, upper)
        upper = upper[:6] + struct.pack("!H", summed) + upper[8:]
        kind = attackers.OPTIONS if options else attackers.UDP
        return seen[:14] + Kind(str(source), str(destination), kind, options + upper).bytes()

    nonce = int.from_bytes(options[4:], "big")
    wrong = {f"bit-{bit}": options[:4] + (nonce ^ 1 << bit).to_bytes(4, "big") for bit in range(32)}
    wrong["no-nonce"] = b""
    wrong["long"] = struct.pack("!BBBB", attackers.UDP, 1, 0x8B, 12) + options[4:] + bytes(8)
    wrong["padding"] = struct.pack("!BBBB", attackers.UDP, 0, 1, 4) + options[4:]
    wrong["nothing"] = options
    return {mark: frame(mark, options) for mark, options in wrong.items()}


def test_nothing_that_is_forged_is_carried(attacked: World) -> None:
    """By whoever is on the path and does not know the nonce, while the kernel carries; what has all right is."""
    attacker = Attacker(attacked)

    def is_request(packet: bytes) -> bool:
        return packet[6] == attackers.OPTIONS and packet[50:52] == struct.pack("!H", 7778)

    with (
        attacked.agent("peer") as peer,
        attacked.agent("mobile") as mobile,
        echo(attacked),
        attackers.packet_socket(attacker.namespace, "h-b0") as tap,
    ):
        needs_fast_path(peer)
        # the session, and its flow
        assert ask(attacked, 20, 0.001) == 20
        with subprocess.Popen(asking(attacked, 2000, 0.001), stdout=subprocess.PIPE, text=True) as asks:
            frames = forged(next(attackers.frames(tap, is_request, 2)))
            wait_until(lambda: carried(peer)["sessions_now"] == 1, "the fast path")
            before = carried(peer)
            for frame in frames.values():
                tap.send(frame)
                time.sleep(0.005)
            assert asks.stdout is not None
            back, kept = asks.stdout.read().splitlines()
        after = carried(peer)
    assert (back, kept) == ("2000", "forged-nothing")
    assert after["received"] - before["received"] > 1000, (before, after)
    assert after["sessions_now"] == 1, (before, after)
    assert mobile.child.returncode == 0


@pytest.mark.skipif(shutil.which("ethtool") is None, reason="it needs ethtool (Debian package ethtool)")
def test_checksums_that_nobody_has_promised_stay_right(machines: World) -> None:
    """Where the sending machine sums up by itself, the receiving kernel checks: both ways and at any length."""
    for host, links in agents.LINKS.items():
        for number, link in enumerate(links):
            for place, device in ((machines.hosts[host], f"eth{number}"), (machines.hosts["router"], link)):
                machines.run(*place.command("ethtool", "-K", device, "tx", "off", "rx", "off"))
    with machines.agent("peer"), machines.agent("mobile") as agent, echo(machines):
        needs_fast_path(agent)
        machines.run(*machines.hosts["mobile"].command("ethtool", "-K", "segue0", "tx", "off"))
        assert ask(machines, 200, 0.001) == 200
        assert min(carried(agent)[way] for way in ("sent", "received")) > 150
        with iperf_server(machines.hosts["peer"], PORTS[0]):
            for more in ([], ["-R"]):
                with iperf(machines.hosts["mobile"], identity("peer"), PORTS[0], "-t", "1", *more) as client:
                    end = said_by(client)["end"]
                assert end["sum_received"]["bits_per_second"] > 20e6, end


def test_another_program_that_takes_the_packets_is_noticed(machines: World) -> None:
    """Somebody's program in front of the agent's costs sixteen packets; then the agent takes them itself."""
    mobile = machines.hosts["mobile"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(machines.agent("peer"))
        agent = stack.enter_context(machines.agent("mobile"))
        needs_fast_path(agent)
        stack.enter_context(iperf_server(machines.hosts["peer"], PORTS[0]))
        stream = ["-t", "4", "-u", "-b", "2M", "-l", "500", "--bidir"]
        client = stack.enter_context(iperf(mobile, identity("peer"), PORTS[0], *stream))
        wait_until(lambda: carried(agent)["received"] > 200, "the fast path")
        assert carried(agent)["lost"] == 0
        with running(mobile, TCX_FIRST, "eth0"):
            wait_until(lambda: carried(agent)["lost"] >= 16, "the agent to notice")
            before = agent.status()["counters"]["packets"]["received"]
            end = said_by(client)["end"]
        assert agent.status()["counters"]["packets"]["received"] > before + 500
        # and one for each processor, which counts when it has the next
        assert end["sum"]["lost_packets"] == 0, end
        assert 16 <= end["sum_bidir_reverse"]["lost_packets"] <= 32, end

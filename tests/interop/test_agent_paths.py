"""`segue-agent` in networks as they are: small packets, routers that say so, and no destination options."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agents
import lab
import mobiles
import pytest
from agents import Agent, World, identity, iperf, iperf_server, said_by, wait_until
from lab import Namespace
from mobiles import HOME_ADDRESS, Mobile

REASON = agents.missing()
pytestmark = [pytest.mark.waits, pytest.mark.skipif(REASON is not None, reason=REASON or "")]
PORT = 5201
# Packets with destination options, to the mobile host's second network and from it.
NO_OPTIONS = """table ip6 middle { chain forward { type filter hook forward priority 0;
    iifname "a1" exthdr dst exists counter drop; oifname "a1" exthdr dst exists counter drop; }; }"""
# What answers a datagram with as many bytes.
ECHO = """
import socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind((sys.argv[1], 7))
print("ready", flush=True)
while True:
    data, peer = s.recvfrom(65535)
    s.sendto(data[::-1], peer)
"""
ASK = """
import os, socket, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
if len(sys.argv) > 3:
    s.bind((sys.argv[3], 0))
s.settimeout(3)
s.connect((sys.argv[1], 7))
for _ in range(4):
    data = os.urandom(int(sys.argv[2]))
    s.send(data)
    try:
        if s.recv(65535) == data[::-1]:
            print("whole")
            break
    except TimeoutError:
        pass
    except OSError as error:
        print(error)
"""

# Echo requests of so many bytes, until one is answered.
PING = """
import os, socket, struct, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
if len(sys.argv) > 3:
    s.bind((sys.argv[3], 0))
s.settimeout(2)
s.connect((sys.argv[1], 0))
for number in range(4):
    said = struct.pack("!HH", os.getpid() & 0xFFFF, number) + os.urandom(int(sys.argv[2]))
    s.send(bytes([128, 0, 0, 0]) + said)
    try:
        while (heard := s.recv(65535))[0] != 129 or heard[4:] != said:
            pass
    except TimeoutError:
        continue
    print("answered")
    break
"""
# A datagram that ends at the first router, and what that says: type, code and its address.
HOP = """
import select, socket, struct, sys
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, 25, 1)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 1)
if len(sys.argv) > 2:
    s.bind((sys.argv[2], 0))
s.connect((sys.argv[1], 33434))
s.send(b"how far")
waiting = select.poll()
waiting.register(s, select.POLLERR)
if waiting.poll(3000):
    _, [(_, _, error)], _, to = s.recvmsg(512, 512, socket.MSG_ERRQUEUE)
    print(error[5], error[6], socket.inet_ntop(socket.AF_INET6, error[24:40]), to[0])
"""


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[World]:
    """Two machines and a router between them."""
    with agents.world(tmp_path) as world:
        yield world


def output(host: Namespace, *command: str, status: int | None = 0) -> str:
    """What a program on a host prints."""
    done = subprocess.run(host.command(*command), capture_output=True, text=True, timeout=lab.SOON, check=False)
    assert status is None or done.returncode == status, (command, done)
    return done.stdout + done.stderr


def ping(host: Namespace, to: str, size: int = 8, *source: str) -> None:
    """An echo request that is answered with all that was in it."""
    assert output(host, "python3", "-c", PING, to, str(size), *source) == "answered\n"


def first_hop(host: Namespace, *addresses: str) -> str:
    """What the first router says of a datagram that may go no further."""
    return output(host, "python3", "-c", HOP, *addresses).strip()


@contextlib.contextmanager
def echo_server(host: Namespace, address: str) -> Iterator[None]:
    """A program that sends datagrams back."""
    with subprocess.Popen(host.command("python3", "-c", ECHO, address), stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            yield
        finally:
            server.terminate()


def counted(agent: Agent, part: str, name: str) -> int:
    """A counter of an agent's."""
    counters: dict[str, dict[str, int]] = agent.status()["counters"]
    return counters.get(part, {}).get(name, 0)


def mtu_of(host: Namespace, to: str) -> int:
    """What the kernel has learnt of the path to an address; 0 if nothing."""
    shown = output(host, "ip", "-6", "route", "get", to)
    found = re.search(r"\bmtu (\d+)", shown)
    return int(found[1]) if found else 0


def shrink(machines: World, link: str, host: str, mtu: int) -> None:
    """The link between the router and a host's first interface takes no more than this."""
    machines.hosts["router"].ip(f"link set {link} mtu {mtu}")
    machines.hosts[host].ip(f"link set eth0 mtu {mtu}")


def rate_while(machines: World, link: str, host: str, mtu: int, to: str, *more: str) -> float:
    """What TCP from the mobile host carries whose path becomes a smaller one, in bit/s.

    Eight connections at once: what forwards super-packets may say of some, by their numbers, that they are too big.
    """
    mobile = machines.hosts["mobile"]
    with iperf(mobile, to, PORT, "-t", "4", "-P", "8", "-b", "2500K", *more) as client:
        time.sleep(1)
        shrink(machines, link, host, mtu)
        return float(said_by(client)["end"]["sum_received"]["bits_per_second"])


@lab.real_time
def learn_the_path_mtu(machines: World) -> None:
    """TCP, datagrams and echo requests between identities, where a router says that packets are too big."""
    mobile, peer = machines.hosts["mobile"], machines.hosts["peer"]
    to = identity("peer")
    # an attempt that failed has left a small one
    shrink(machines, "b0", "peer", 1500)
    with contextlib.ExitStack() as stack:
        stack.enter_context(iperf_server(peer, PORT))
        stack.enter_context(machines.agent("peer"))
        agent = stack.enter_context(machines.agent("mobile"))
        stack.enter_context(echo_server(peer, to))
        ping(mobile, to)
        for mtu, learnt in ((1400, 1360), (1280, 1280)):
            assert rate_while(machines, "b0", "peer", mtu, to) > 19e6
            assert mtu_of(mobile, to) == learnt
            # what is longer than the path takes goes in fragments, and is answered in fragments
            assert output(mobile, "python3", "-c", ASK, to, "8000") == "whole\n"
            ping(mobile, to, 4000)
        assert counted(agent, "paths", "path_mtus") >= 2, agent.status()
        # eight bytes more than 1280 cannot be spared by the kernel
        assert counted(agent, "paths", "fragmented") > 0, agent.status()


def test_the_kernel_learns_the_mtu_of_the_path(machines: World) -> None:
    """As it says."""
    learn_the_path_mtu(machines)


@lab.real_time
def tell_of_errors(machines: World) -> None:
    """Refused by the peer's kernel, by a router, and each router on the way."""
    mobile, router = (machines.hosts[name] for name in ("mobile", "router"))
    to = identity("peer")
    with contextlib.ExitStack() as stack:
        stack.enter_context(machines.agent("peer"))
        stack.enter_context(machines.agent("mobile"))
        ping(mobile, to)
        # port unreachable, from the peer's kernel
        assert "refused" in output(mobile, "python3", "-c", ASK, to, "100")
        # time exceeded, from the router, whose address a traceroute shows
        assert first_hop(mobile, to) == f"3 0 2001:db8:1::1 {to}"
        # administratively prohibited, from the router's firewall: TCP ends at once
        rule = "table ip6 middle { chain forward { type filter hook forward priority 0; tcp dport 99 reject; }; }"
        output(router, "nft", rule)
        began = time.monotonic()
        call = f"import socket; socket.create_connection(('{to}', 99), timeout=8)"
        refused = output(mobile, "python3", "-c", call, status=1)
        assert re.search(r"Errno (13|111|113)", refused), refused
        assert time.monotonic() - began < 4
        output(router, "nft", "delete table ip6 middle")


def test_errors_of_routers_and_kernels_reach_applications(machines: World) -> None:
    """As it says."""
    tell_of_errors(machines)


def carried(agent: Agent) -> list[str | None]:
    """Where the nonces of each session are."""
    return [one.get("nonce_in") for one in agent.status()["sessions"]]


@lab.real_time
def move_where_options_are_dropped(machines: World) -> None:
    """A session begins through a network that drops options, goes to one that does not, and back."""
    mobile, peer, router = (machines.hosts[name] for name in ("mobile", "peer", "router"))
    to = identity("peer")
    output(router, "nft", NO_OPTIONS)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(iperf_server(peer, PORT))
            other = stack.enter_context(machines.agent("peer"))
            agent = stack.enter_context(machines.agent("mobile"))
            agent.move("eth1")
            seconds = 16
            client = stack.enter_context(iperf(mobile, to, PORT, "-t", str(seconds), "-b", "20M"))
            wait_until(lambda: carried(agent) == ["udp"], "UDP")
            assert agent.status()["networks_without_options"] == ["2001:db8:2:0"], agent.status()
            time.sleep(3)
            agent.move("eth0")
            wait_until(lambda: carried(agent) == ["option"], "the option")
            time.sleep(3)
            agent.move("eth1")
            wait_until(lambda: carried(agent) == ["udp"], "UDP again")
            assert agent.in_use() == "eth1"
            assert carried(other) == ["udp"]
            result = said_by(client)
            status = agent.status()
        print(status["counters"])
        rate = result["end"]["sum_received"]["bits_per_second"]
        # a second is lost to what the network does at first
        assert rate > 0.85 * 20e6, (rate, status)
        assert [one["mode"] for one in status["sessions"]] == ["ilnp"]
        # nobody had to be told of the first
        assert len(status["handovers"]) == 2, status
        assert all(one["delay_s"] is not None for one in status["handovers"]), status
        dropped = json.loads(output(router, "nft", "-j", "list table ip6 middle"))
        counters = [
            e["counter"]["packets"]
            for o in dropped["nftables"]
            for e in o.get("rule", {}).get("expr", [])
            if "counter" in e
        ]
        assert sum(counters) > 0, dropped
    finally:
        output(router, "nft", "delete table ip6 middle")


@pytest.mark.slow
def test_a_session_lives_where_options_are_dropped(machines: World) -> None:
    """As it says."""
    move_where_options_are_dropped(machines)


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Mobile]:
    """Machines with a home agent."""
    with mobiles.world(tmp_path) as world:
        yield world


@lab.real_time
def send_long_datagrams(machines: Mobile) -> None:
    """Fragments over the direct way and through the tunnel, and what routers say of the direct way."""
    mobile = machines.hosts["mobile"]
    for link, host in (("b0", "peer"), ("a0", "mobile")):
        shrink(machines, link, host, 1500)
    with contextlib.ExitStack() as stack:
        places = {host: machines.plain_address(host, "eth0") for host in ("peer", "plain")}
        for host, address in places.items():
            stack.enter_context(echo_server(machines.hosts[host], address))
            stack.enter_context(iperf_server(machines.hosts[host], PORT))
        for host in ("home", "peer"):
            stack.enter_context(machines.role(host))
        agent = stack.enter_context(machines.role("mobile"))
        for address in places.values():
            ping(mobile, address, 8, HOME_ADDRESS)
        wait_until(lambda: mobiles.ways(agent).get(places["peer"]), "the direct way")
        for address in places.values():
            assert output(mobile, "python3", "-c", ASK, address, "8000", HOME_ADDRESS) == "whole\n"
            ping(mobile, address, 4000, HOME_ADDRESS)
        # the mobile node's packets, and those of the correspondent
        home = ("-B", HOME_ADDRESS)
        assert rate_while(machines, "b0", "peer", 1400, places["peer"], *home) > 19e6
        shown = output(mobile, "ip", "-6", "route", "get", places["peer"], "from", HOME_ADDRESS)
        assert "mtu 1360" in shown, shown
        shrink(machines, "b0", "peer", 1500)
        assert rate_while(machines, "a0", "mobile", 1350, places["peer"], "-R", *home) > 19e6
        shown = output(machines.hosts["peer"], "ip", "-6", "route", "get", HOME_ADDRESS)
        assert "mtu 1310" in shown, shown
        # by the direct way, whose packets have the care-of address
        peer = places["peer"]
        assert first_hop(mobile, peer, HOME_ADDRESS) == f"3 0 2001:db8:1::1 {peer}"
        status: dict[str, Any] = agent.status()
    print(status["counters"])


@pytest.mark.slow
def test_datagrams_and_errors_of_a_home_address(homes: Mobile) -> None:
    """As it says."""
    send_long_datagrams(homes)

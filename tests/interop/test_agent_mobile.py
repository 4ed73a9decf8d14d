"""`segue-agent` in the roles of Mobile IPv6: connections of a home address through handovers, and what is left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import agents
import lab
import mobiles
import pytest
from agents import iperf, iperf_server, said_by, wait_until
from mobiles import HOME_ADDRESS, HOME_AGENT, Mobile

REASON = agents.missing()
pytestmark = [pytest.mark.waits, pytest.mark.skipif(REASON is not None, reason=REASON or "")]
ROLES = ("home", "peer", "mobile")
SECONDS = 18
PORTS = (5201, 5202, 5203)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Mobile]:
    """The machines of the picture."""
    with mobiles.world(tmp_path) as world:
        yield world


@lab.real_time
def go_through_ten_handovers(machines: Mobile) -> None:
    """TCP and UDP to both correspondents live through them, all else loses nothing, and nothing is left."""
    mobile, router = machines.hosts["mobile"], machines.hosts["router"]
    # an attempt that failed may have ended with the link down
    router.ip("link set a0 up")
    wait_until(lambda: machines.plain_address("mobile", "eth0"), "an address")
    before = {host: machines.snapshot(host) for host in ROLES}
    peer, plain = (machines.plain_address(host, "eth0") for host in ("peer", "plain"))
    own = machines.plain_address("mobile", "eth1")
    length = ("-t", str(SECONDS))
    udp = (*length, "-u", "-b", "1M", "-l", "500")
    with contextlib.ExitStack() as stack:
        for host in ("peer", "plain"):
            for port in PORTS:
                stack.enter_context(iperf_server(machines.hosts[host], port))
        home, other, agent = (stack.enter_context(machines.role(host)) for host in ROLES)
        # nobody names the home address: it is what calls are made from
        clients = [
            iperf(mobile, peer, PORTS[0], *length, "-b", "20M"),
            iperf(mobile, plain, PORTS[0], *length, "-b", "5M"),
            iperf(mobile, peer, PORTS[1], *udp),
            iperf(mobile, plain, PORTS[1], *udp),
            # from eth1, which is never taken down
            iperf(mobile, peer, PORTS[2], *length, "-u", "-b", "5M", "-l", "1000", "-B", own),
        ]
        for client in clients:
            stack.enter_context(client)
        time.sleep(1)
        for interface in ("eth1", "eth0") * 3:
            agent.move(interface)
            time.sleep(0.9)
        for _ in range(2):
            # a carrier that is lost, and a better network that is back
            router.ip("link set a0 down")
            wait_until(lambda: agent.in_use() == "eth1", "the other interface")
            # silence is found before the kernel tells of the carrier
            wait_until(lambda: not agent.status()["interfaces"][0]["is_up"], "the carrier to be known as lost")
            time.sleep(0.5)
            router.ip("link set a0 up")
            wait_until(lambda: agent.in_use() == "eth0", "the better interface")
            time.sleep(0.5)
        results = [said_by(client) for client in clients]
        status = agent.status()
        bindings = {one["home_address"]: one["care_of_address"] for one in home.status()["bindings"]}
        bindings_there = {one["home_address"]: one["care_of_address"] for one in other.status()["bindings"]}
    print(status)
    # the first is that of the beginning
    moves = status["handovers"][1:]
    assert len(moves) == 10, status
    assert all(one["delay_s"] is not None and not one["failed"] for one in moves), status
    ways = {one["address"]: one["optimized"] for one in status["correspondents"]}
    assert ways == {peer: True, plain: False}
    registration = status["registration"]
    care_of_address = registration["care_of_address"]
    assert registration["acknowledged"] == care_of_address
    assert registration["home_address"] == HOME_ADDRESS
    assert registration["home_agent"] == HOME_AGENT
    assert bindings == bindings_there == {HOME_ADDRESS: care_of_address}
    for result, rate in zip(results, (20e6, 5e6), strict=False):
        assert result["start"]["connected"][0]["local_host"] == HOME_ADDRESS, result["start"]
        received = result["end"]["sum_received"]["bytes"]
        assert received > 0.9 * rate / 8 * SECONDS, received
    for result in results[2:4]:
        # two carriers, each for half a second at most: the kernel tells, or it is found that nothing gets through
        assert result["end"]["sum"]["lost_packets"] <= 2 * 0.5 * 1e6 / 8 / 500, result["end"]["sum"]
    assert results[4]["start"]["connected"][0]["local_host"] == own
    assert results[4]["end"]["sum"]["lost_packets"] == 0, results[4]["end"]["sum"]
    for host in ROLES:
        assert machines.snapshot(host) == before[host], host


@pytest.mark.alone
def test_connections_go_through_ten_handovers(machines: Mobile) -> None:
    """As it says."""
    go_through_ten_handovers(machines)


def test_the_direct_way_passes_by_the_home_agent(machines: Mobile) -> None:
    """Two megabytes to a correspondent, and from it; and the same by the home agent to who knows nothing of that."""
    mobile = machines.hosts["mobile"]
    size = 2_000_000
    with contextlib.ExitStack() as stack:
        for host in ("peer", "plain"):
            stack.enter_context(iperf_server(machines.hosts[host], PORTS[0]))
        _, other, agent = (stack.enter_context(machines.role(host)) for host in ROLES)

        def through_home(host: str, *more: str) -> int:
            address = machines.plain_address(host, "eth0")
            before = machines.received("home", "eth0")
            said_by(iperf(mobile, address, PORTS[0], "-n", str(size), "-b", "20M", *more))
            return machines.received("home", "eth0") - before

        assert through_home("peer") < 0.1 * size
        # the binding is there by now, and only the first test has to go by the home agent
        assert through_home("peer") < 0.01 * size
        assert through_home("peer", "-R") < 0.01 * size
        assert through_home("plain") > size
        assert through_home("plain", "-R") > size
        peer, plain = (machines.plain_address(host, "eth0") for host in ("peer", "plain"))
        assert mobiles.ways(agent) == {peer: True, plain: False}
        counters = other.status()["counters"]["correspondent"]
        assert min(counters["optimized_in"], counters["optimized_out"]) > size / 64_000, counters
        assert f"{HOME_ADDRESS} dev segue0" in machines.snapshot("peer")
        # columns are as wide as the addresses of this run need
        shown = " ".join(agent.command("status").stdout.split())
        assert f"home address {HOME_ADDRESS}, home agent {HOME_AGENT}: bound to 2001:db8:1::1:7 for " in shown, shown
        assert f"{peer} direct" in shown, shown
        assert f"{plain} by the home agent" in shown, shown


def test_who_calls_the_home_address_reaches_it(machines: Mobile) -> None:
    """From both correspondents, by the home agent first."""
    mobile = machines.hosts["mobile"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(iperf_server(mobile, PORTS[0]))
        _, _, agent = (stack.enter_context(machines.role(host)) for host in ROLES)
        for host in ("peer", "plain"):
            result = said_by(iperf(machines.hosts[host], HOME_ADDRESS, PORTS[0], "-t", "2", "-b", "10M"))
            assert result["end"]["sum_received"]["bytes"] > 0.9 * 2 * 10e6 / 8, result["end"]
        peer, plain = (machines.plain_address(host, "eth0") for host in ("peer", "plain"))
        assert mobiles.ways(agent) == {peer: True, plain: False}


def test_a_home_address_is_chosen_while_the_home_agent_has_a_binding(machines: Mobile) -> None:
    """Calls that name no source are the kernel's own until then, and those to what is on the link in any case."""
    name = machines.hosts["mobile"].name
    own, peer = machines.plain_address("mobile", "eth0"), machines.plain_address("peer", "eth0")

    def source(to: str) -> str:
        [route] = json.loads(machines.run("ip", "-n", name, "-6", "-j", "route", "get", to))
        return str(route["prefsrc"])

    with machines.agent("mobile") as agent:
        assert source(peer) == own
        assert agent.status()["registration"]["acknowledged"] is None
        assert "is not acknowledged" in agent.command("status").stdout
        with machines.role("home"):
            wait_until(lambda: mobiles.is_bound(agent), "the binding")
            wait_until(lambda: source(peer) == HOME_ADDRESS, "the home address to be chosen")
            assert source("2001:db8:1::1") == own


@lab.real_time
def restart_the_home_agent(machines: Mobile) -> None:
    """What it knew is gone; the next refresh tells it. Without one the home address is no longer chosen."""
    mobile, plain = machines.hosts["mobile"], machines.plain_address("plain", "eth0")
    file = machines.configuration("mobile", 'home_lifetime = "8 s"')

    def source() -> str:
        [route] = json.loads(machines.run("ip", "-n", mobile.name, "-6", "-j", "route", "get", plain))
        return str(route["prefsrc"])

    with contextlib.ExitStack() as stack:
        stack.enter_context(iperf_server(machines.hosts["plain"], PORTS[0]))
        first = stack.enter_context(machines.role("home"))
        agent = stack.enter_context(machines.agent("mobile", written=True, ready=False))
        wait_until(lambda: mobiles.is_bound(agent), f"the binding by {file}")
        client = stack.enter_context(iperf(mobile, plain, PORTS[0], "-t", "14", "-b", "2M"))
        time.sleep(2)
        first.end(signal.SIGKILL)
        with machines.role("home") as second:
            assert second.status().get("bindings", []) == []
            result = said_by(client)
            assert [one["home_address"] for one in second.status()["bindings"]] == [HOME_ADDRESS]
            assert source() == HOME_ADDRESS
        assert result["end"]["sum_received"]["bytes"] > 0.8 * 14 * 2e6 / 8, result["end"]
        wait_until(lambda: source() == machines.plain_address("mobile", "eth0"), "the end of the binding")


@pytest.mark.slow
def test_a_connection_outlives_its_home_agent(machines: Mobile) -> None:
    """As it says."""
    restart_the_home_agent(machines)


@lab.real_time
def leave_a_silent_network(machines: Mobile) -> None:
    """Nothing gets through although the link is up; what is probed is the correspondent, and the home agent."""
    mobile, router = machines.hosts["mobile"], machines.hosts["router"]
    machines.folder.chmod(0o777)
    before = machines.snapshot("mobile")
    file = machines.configuration("mobile")
    file.write_text(file.read_text().replace("[agent]", '[agent]\nuser = "nobody"'))
    silent = "table ip6 silent { chain first { type filter hook prerouting priority -300; iifname a0 drop; }; }"
    with contextlib.ExitStack() as stack:
        for host in ("peer", "plain"):
            stack.enter_context(iperf_server(machines.hosts[host], PORTS[0]))
        home, _ = (stack.enter_context(machines.role(host)) for host in ROLES[:2])
        agent = stack.enter_context(machines.agent("mobile", written=True, ready=False))
        wait_until(lambda: mobiles.is_bound(agent), "the binding")
        clients = [
            iperf(mobile, machines.plain_address(host, "eth0"), PORTS[0], "-t", "6", "-b", "2M")
            for host in ("peer", "plain")
        ]
        for client in clients:
            stack.enter_context(client)
        time.sleep(2)
        subprocess.run(router.command("nft", silent), check=True)
        try:
            wait_until(lambda: agent.in_use() == "eth1", "the other network", within=2)
            results = [said_by(client) for client in clients]
            status = agent.status()
        finally:
            subprocess.run(router.command("nft", "delete table ip6 silent"), check=True)
        assert status["interfaces"][0]["is_up"]
        counters = status["counters"]["mobile-node"]
        assert counters["networks_silent"] == 1, counters
        assert counters["probes_answered"] > 0, counters
        assert [one["care_of_address"][:12] for one in home.status()["bindings"]] == ["2001:db8:2::"]
    for result in results:
        assert result["end"]["sum_received"]["bytes"] > 0.9 * 6 * 2e6 / 8, result["end"]
    assert machines.snapshot("mobile") == before


def test_a_network_through_which_nothing_gets_is_left(machines: Mobile) -> None:
    """As it says."""
    leave_a_silent_network(machines)


@lab.real_time
def lose_the_agent_of_a_correspondent(machines: Mobile) -> None:
    """The kernel there does not know the option that packets have by then, and says so."""
    mobile, peer = machines.hosts["mobile"], machines.plain_address("peer", "eth0")
    with contextlib.ExitStack() as stack:
        stack.enter_context(iperf_server(machines.hosts["peer"], PORTS[0]))
        _, other, agent = (stack.enter_context(machines.role(host)) for host in ROLES)
        client = stack.enter_context(iperf(mobile, peer, PORTS[0], "-t", "8", "-b", "5M"))
        wait_until(lambda: mobiles.ways(agent).get(peer), "the direct way")
        other.end(signal.SIGKILL)
        wait_until(lambda: not mobiles.ways(agent)[peer], "the way by the home agent")
        result = said_by(client)
    assert result["end"]["sum_received"]["bytes"] > 0.8 * 8 * 5e6 / 8, result["end"]


def test_a_connection_outlives_the_agent_of_its_correspondent(machines: Mobile) -> None:
    """As it says."""
    lose_the_agent_of_a_correspondent(machines)


def test_what_killed_agents_leave_is_gone_when_the_next_end(machines: Mobile) -> None:
    """Rules of routing outlive a process: they lead to tables that are empty, and go at the next start."""
    before = {host: machines.snapshot(host) for host in ROLES}
    with contextlib.ExitStack() as stack:
        killed = [stack.enter_context(machines.role(host)) for host in ROLES]
        for agent in killed:
            agent.end(signal.SIGKILL)
    for host in ROLES:
        assert "segue" not in machines.snapshot(host)
    # what the machine sends takes the ways that it had
    peer = machines.plain_address("peer", "eth0")
    route = machines.run("ip", "-n", machines.hosts["mobile"].name, "-6", "route", "get", peer)
    assert "dev eth0" in route, route
    assert HOME_ADDRESS not in route, route
    with contextlib.ExitStack() as stack:
        home, _, mobile = (stack.enter_context(machines.role(host)) for host in ROLES)
        said = mobile.log.read_text()
        assert said.count("found an address of an agent that was killed: removed") == 2, said
        assert "found rules of an agent that was killed: removed left=3" in said, said
        assert home.log.read_text().count("found an address of an agent that was killed: removed") == 1
    for host in ROLES:
        assert machines.snapshot(host) == before[host], host


@pytest.mark.slow
def test_rules_that_somebody_takes_away_are_there_again(machines: Mobile) -> None:
    """They are looked at every twenty seconds, and all stand in their order then."""
    mobile = machines.hosts["mobile"]
    with machines.role("home"), machines.role("mobile") as agent:
        wait_until(lambda: mobiles.is_bound(agent), "a binding")
        rules = machines.run("ip", "-n", mobile.name, "-6", "rule", "show")
        assert rules.count("6275") == 1, rules
        mobile.ip("-6 rule del table 6275")
        wait_until(lambda: machines.run("ip", "-n", mobile.name, "-6", "rule", "show") == rules, "the rules", within=30)
        assert "somebody took addresses, routes or rules away" in agent.log.read_text()


@lab.real_time
def call_another_mobile_node(machines: Mobile) -> None:
    """By the home address of either; both registrations and both bindings, and handovers while it goes on."""
    machines.second()
    with contextlib.ExitStack() as stack:
        home, other = (stack.enter_context(machines.agent(host, written=True, ready=False)) for host in ROLES[:2])
        wait_until(lambda: mobiles.has_address(home), "the home agent's address")
        wait_until(lambda: mobiles.is_bound(other), "the other binding")
        agent = stack.enter_context(machines.role("mobile"))
        stack.enter_context(iperf_server(machines.hosts["peer"], PORTS[0]))
        client = stack.enter_context(
            iperf(machines.hosts["mobile"], mobiles.SECOND, PORTS[0], "-t", "6", "-b", "5M", "-B", HOME_ADDRESS)
        )
        for interface in ("eth1", "eth0"):
            time.sleep(1.5)
            agent.move(interface)
        result = said_by(client)
        assert result["end"]["sum_received"]["bytes"] > 0.9 * 6 * 5e6 / 8, result["end"]
        assert mobiles.ways(agent)[mobiles.SECOND]
        assert mobiles.ways(other)[HOME_ADDRESS]
        [here], [there] = (one.status()["bindings"] for one in (agent, other))
        assert (here["home_address"], here["at"]) == (mobiles.SECOND, HOME_ADDRESS)
        assert there["care_of_address"] == agent.status()["registration"]["care_of_address"]


def test_two_mobile_nodes_talk_to_each_other_directly(machines: Mobile) -> None:
    """As it says."""
    call_another_mobile_node(machines)


def test_a_home_agent_that_is_a_correspondent_too(machines: Mobile) -> None:
    """Both tables in one file; the way from its own address to the mobile node is direct."""
    home = machines.hosts["home"]
    file = machines.configuration("home")
    file.write_text(file.read_text() + "\n[correspondent]\n")
    before = machines.snapshot("home")
    with contextlib.ExitStack() as stack:
        stack.enter_context(iperf_server(home, PORTS[0]))
        wait = stack.enter_context(machines.agent("home", written=True, ready=False))
        wait_until(lambda: mobiles.has_address(wait), "the home agent's address")
        agent = stack.enter_context(machines.role("mobile"))
        address = "2001:db8:5::2"
        said_by(iperf(machines.hosts["mobile"], address, PORTS[0], "-n", "1000000"))
        assert mobiles.ways(agent) == {address: True}
        status = wait.status()
        assert status["role"] == "home-agent,correspondent"
        assert {one["at"] for one in status["bindings"]} == {address, HOME_AGENT}
    assert machines.snapshot("home") == before


def test_a_machine_is_one_mobile_node(machines: Mobile) -> None:
    """A second one is refused, and the first goes on as it was."""
    second = machines.folder / "second.toml"
    text = machines.configuration("mobile").read_text()
    other = text.replace("mobile.sock", "second.sock").replace(HOME_ADDRESS, mobiles.SECOND)
    second.write_text(other.replace("[agent]", '[agent]\ndevice = "segue1"'))
    second.chmod(0o600)
    with machines.agent("mobile"):
        before = machines.snapshot("mobile")
        command = machines.hosts["mobile"].command(agents.program(), "run", second)
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=lab.SOON)
        assert done.returncode == 2
        expected = "mobile-node: its tables have routes already: expected one mobile node on a machine\n"
        assert done.stderr == f"segue-agent: {expected}"
        assert machines.snapshot("mobile") == before


def test_a_machine_that_cannot_be_a_home_agent_is_refused(machines: Mobile) -> None:
    """It does not forward, or has the home agent's address itself; and nothing is left."""
    home = machines.hosts["home"]
    command = home.command(agents.program(), "run", machines.configuration("home"))

    def said() -> str:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=lab.SOON)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
        return done.stderr.removeprefix("segue-agent: ")

    home.sysctl("net/ipv6/conf/all/forwarding", "0")
    assert said().startswith("home-agent: net.ipv6.conf.all.forwarding is 0: expected 1")
    home.sysctl("net/ipv6/conf/all/forwarding", "1")
    home.ip(f"address add {HOME_AGENT}/64 dev home0 nodad")
    before = machines.snapshot("home")
    assert said().startswith(f"home-agent.address: home0 has the address {HOME_AGENT}/64 already")
    assert machines.snapshot("home") == before


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    """One line and status 2: a key that others can read, tables that do not go together."""
    machines = Mobile(tmp_path)

    def said(host: str, extra: str = "", mode: int = 0o600, owner: int = 0) -> str:
        file = machines.configuration(host, extra)
        os.chown(file, owner, -1)
        file.chmod(mode)
        done = subprocess.run([agents.program(), "check", file], check=False, capture_output=True, text=True)
        assert done.stderr.count("\n") == (done.returncode != 0), done
        assert done.returncode in (0, 2)
        return done.stderr.removeprefix(f"segue-agent: {file}: ").rstrip()

    assert {said(host) for host in ROLES} == {""}
    for host in ("mobile", "home"):
        assert said(host, mode=0o640) == ""
        assert said(host, mode=0o644).startswith("has a key and mode 0644: expected a file that others cannot read")
    assert said("peer", mode=0o644) == ""
    whose = "has a key and is user 65534's: expected a file of root, or of user 0, who runs the agent"
    assert said("mobile", owner=65534) == whose
    assert said("peer", owner=65534) == ""
    assert said("mobile", 'handoff = "on-new-router"').startswith("mobile-node.handoff: expected none")
    assert said("mobile", "[correspondent]").startswith("[correspondent] beside [mobile-node]: expected one of")

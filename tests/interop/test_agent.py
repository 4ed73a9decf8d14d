"""`segue-agent` on machines that are in use: what goes through handovers, what notices nothing, and what is left."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import agents
import build
import lab
import pytest
import secure_shell
from agents import Agent, World, identity, iperf, iperf_server, said_by, wait_until

REASON = agents.missing() or secure_shell.missing()
pytestmark = [pytest.mark.waits, pytest.mark.skipif(REASON is not None, reason=REASON or "")]
PORTS = (5201, 5202, 5203)
SECONDS = 16


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[World]:
    """Two machines and a router between them."""
    with agents.world(tmp_path) as world:
        yield world


def both_move(movers: list[Agent], interface: str) -> None:
    """A soft handover of all, as nearly at once as two programs can ask for it."""
    words = [[str(agents.program()), "handover", interface, "--socket", str(one.socket)] for one in movers]
    asked = [subprocess.Popen(each, stdout=subprocess.DEVNULL) for each in words]
    assert [one.wait(timeout=lab.SOON) for one in asked] == [0] * len(movers)
    assert {one.in_use() for one in movers} == {interface}


@lab.real_time
def go_through_ten_handovers(machines: World) -> None:
    """ssh, TCP and UDP between identities live through them, all else loses nothing, and nothing is left in the end."""
    mobile, peer, router = (machines.hosts[name] for name in ("mobile", "peer", "router"))
    # an attempt that failed may have ended with the link down
    router.ip("link set a0 up")
    wait_until(lambda: machines.plain_address("mobile", "eth0"), "an address")
    before = [machines.snapshot(host) for host in agents.LINKS]
    with contextlib.ExitStack() as stack:
        for port in PORTS[:2]:
            stack.enter_context(iperf_server(peer, port))
        # who has two networks answers datagrams from the address that they were sent to only if he is told to
        plain = machines.plain_address("peer", "eth0")
        stack.enter_context(iperf_server(peer, PORTS[2], "-B", plain))
        other_agent = stack.enter_context(machines.agent("peer"))
        agent = stack.enter_context(machines.agent("mobile"))
        length = ("-t", str(SECONDS))
        waits: list[float] = []
        to, own = identity("peer"), machines.plain_address("mobile", "eth1")
        clients = [
            iperf(mobile, to, PORTS[0], *length, "-b", "20M"),
            iperf(mobile, to, PORTS[1], *length, "-u", "-b", "1M", "-l", "500"),
            # from eth1, which is never taken down
            iperf(mobile, plain, PORTS[2], *length, "-u", "-b", "5M", "-l", "1000", "-B", own),
        ]
        for client in clients:
            stack.enter_context(client)
        shell = stack.enter_context(secure_shell.session(peer, mobile, to, machines.folder))
        for interface in ("eth1", "eth0") * 2:
            agent.move(interface)
            waits.append(shell.say())
            time.sleep(0.7)
        for interface in ("eth1", "eth0"):
            both_move([agent, other_agent], interface)
            waits.append(shell.say())
            time.sleep(0.7)
        for _ in range(2):
            # a carrier that is lost, and a better network that is back
            router.ip("link set a0 down")
            waits.append(shell.say())
            wait_until(lambda: agent.in_use() == "eth1", "the other interface")
            # silence is found before the kernel tells of the carrier
            wait_until(lambda: not agent.status()["interfaces"][0]["is_up"], "the carrier to be known as lost")
            router.ip("link set a0 up")
            wait_until(lambda: agent.in_use() == "eth0", "the better interface")
            waits.append(shell.say())
        results = [said_by(client) for client in clients]
        status, other_status = agent.status(), other_agent.status()
    print("lines of the ssh session took", waits)
    assert len(other_status["handovers"]) == 2, other_status
    assert len(waits) == 10
    assert max(waits) < 2, waits
    assert len(status["handovers"]) == 10, status
    assert all(one["delay_s"] is not None and not one["failed"] for one in status["handovers"]), status
    [session] = status["sessions"]
    assert session["mode"] == "ilnp"
    assert session["called"]
    received = results[0]["end"]["sum_received"]["bytes"]
    assert received > 0.9 * 20e6 / 8 * SECONDS, (received, status["counters"], other_status["counters"])
    # two carriers, each for half a second at most: the kernel tells, or it is found that nothing gets through
    assert results[1]["end"]["sum"]["lost_packets"] <= 2 * 0.5 * 1e6 / 8 / 500, results[1]["end"]["sum"]
    assert results[2]["end"]["sum"]["lost_packets"] == 0, results[2]["end"]["sum"]
    assert [machines.snapshot(host) for host in agents.LINKS] == before


def test_streams_go_through_ten_handovers(machines: World) -> None:
    """As it says."""
    go_through_ten_handovers(machines)


@lab.real_time
def be_without_a_network(machines: World) -> None:
    """Hard handovers of one host: the old network goes, for a while there is none, and the new one comes."""
    mobile, peer, router = (machines.hosts[name] for name in ("mobile", "peer", "router"))
    for link in agents.LINKS["mobile"]:
        router.ip(f"link set {link} up")
    wait_until(lambda: machines.plain_address("mobile", "eth0"), "an address")
    with contextlib.ExitStack() as stack:
        stack.enter_context(machines.agent("peer"))
        agent = stack.enter_context(machines.agent("mobile"))
        there = secure_shell.session(peer, mobile, identity("peer"), machines.folder)
        back = secure_shell.session(mobile, peer, identity("mobile"), machines.folder)
        shells = [stack.enter_context(one) for one in (there, back)]
        for old, new in (("a0", "a1"), ("a1", "a0")):
            router.ip(f"link set {new} down")
            to = agents.LINKS["mobile"].index(new)
            wait_until(lambda: [one["is_up"] for one in agent.status()["interfaces"]].count(False) == 1, "one network")
            router.ip(f"link set {old} down")
            # the kernel tells of it within a second
            wait_until(lambda: agent.in_use() is None, "no network")
            time.sleep(0.5)
            router.ip(f"link set {new} up")
            print("lines of the ssh sessions took", [shell.say() for shell in shells])
            assert agent.in_use() == f"eth{to}"
            router.ip(f"link set {old} up")
        wait_until(lambda: agent.in_use() == "eth0", "the better network")
        assert all(shell.say() < 2 for shell in shells)


def test_sessions_outlive_a_time_without_a_network(machines: World) -> None:
    """As it says."""
    be_without_a_network(machines)


def test_a_machine_that_sleeps_for_an_hour_wakes_in_another_network_with_its_session(machines: World) -> None:
    """The clocks of both agents are put forward by minutes, an hour and until the peer has forgotten the session."""
    mobile, peer, router = (machines.hosts[name] for name in ("mobile", "peer", "router"))
    slept = machines.folder / "slept"
    environment = {"LD_PRELOAD": str(build.program("sleep.so")), "SLEPT": str(slept)}

    def put_forward(seconds: float) -> None:
        with slept.open("r+b") as file:
            file.write(struct.pack("=d", seconds))

    slept.write_bytes(struct.pack("=d", 0))
    with contextlib.ExitStack() as stack:
        other = stack.enter_context(machines.agent("peer", environment=environment))
        agent = stack.enter_context(machines.agent("mobile", environment=environment))
        shell = stack.enter_context(secure_shell.session(peer, mobile, identity("peer"), machines.folder))
        assert [one["mode"] for one in other.status()["sessions"]] == ["ilnp"]
        agent.child.send_signal(signal.SIGSTOP)
        try:
            router.ip("link set a0 down")
            hour, longer_than_it_is_kept = 3600, 13 * 3600
            steps = [*range(60, hour + 1, 60), *(hour + n * longer_than_it_is_kept for n in range(1, 20))]
            for seconds in steps:
                put_forward(seconds)
                # which it notices when something happens
                status = other.status()
                assert status["running_s"] >= seconds
                # what the peer's shell repeats, for want of an acknowledgment, is use of the session
                if status["sessions"] == []:
                    break
            assert seconds > hour
            assert status["sessions"] == []
        finally:
            agent.child.send_signal(signal.SIGCONT)
        print("the first line took", shell.say())
        assert agent.in_use() == "eth1"
        assert agent.status()["running_s"] >= 3600
        assert [one["mode"] for one in other.status()["sessions"]] == ["ilnp"]
        assert shell.say() < 2


def test_what_a_killed_agent_leaves_is_gone_when_the_next_ends(machines: World) -> None:
    """Its filter and its device go with it; its addresses at the next start, or by themselves in a minute."""
    before = machines.snapshot("mobile")
    with machines.agent("mobile") as killed:
        assert machines.snapshot("mobile") != before
        killed.end(signal.SIGKILL)
    left = machines.snapshot("mobile")
    assert "segue" not in left
    assert agents.NIDS["mobile"].replace(":0:0:", "::") in left
    with machines.agent("mobile") as agent:
        assert agent.log.read_text().count("found an address of an agent that was killed: removed") == 2
        second = subprocess.run(
            agent.host.command(agents.program(), "run", machines.folder / "mobile.toml"),
            check=False,
            capture_output=True,
            text=True,
        )
        assert second.returncode == 2
        assert second.stderr.endswith("an agent runs already: expected one for each control socket\n"), second.stderr
    assert machines.snapshot("mobile") == before
    assert not (machines.folder / "mobile.sock").exists()


@pytest.mark.slow
def test_what_somebody_takes_from_its_device_is_there_again(machines: World) -> None:
    """Set down and up, the device has lost its address and its routes; they can also be taken away while it is up."""
    mobile, to = machines.hosts["mobile"], identity("peer")
    with machines.agent("peer"), machines.agent("mobile") as agent:
        wait_until(lambda: agents.reaches(mobile, to), "the peer")
        for change in ("link set segue0 down", f"address del {identity('mobile')}/128 dev segue0"):
            mobile.ip(change)
            if change.endswith("down"):
                wait_until(lambda: "set down by somebody" in agent.log.read_text(), "a word of it")
                assert not agents.reaches(mobile, to)
                # it is whoever set it down who sets it up
                assert "state DOWN" in machines.run("ip", "-n", mobile.name, "link", "show", "segue0")
                mobile.ip("link set segue0 up")
            wait_until(lambda: agents.reaches(mobile, to), "the peer again")
        # routes are looked at every twenty seconds
        mobile.ip("-6 route flush dev segue0")
        wait_until(lambda: agents.reaches(mobile, to), "the peer once more", within=30)


def test_an_identifier_that_the_machine_has_already_is_refused(machines: World) -> None:
    """What comes for it would be the agent's."""
    machines.hosts["mobile"].ip(f"address add {agents.PREFIXES['a0']}:{agents.NIDS['mobile']}/64 dev eth0 nodad")
    command = machines.hosts["mobile"].command(agents.program(), "run", machines.configuration("mobile"))
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=lab.SOON)
    assert done.returncode == 2
    assert done.stderr.startswith("segue-agent: ilnp.nid: eth0 has the address 2001:db8:1:0:2aa::1/64 already"), (
        done.stderr
    )


def test_what_is_asked_in_vain_is_said(machines: World) -> None:
    """Of an interface that is not the agent's, or has no carrier; of an agent that is not there; of a file."""
    router = machines.hosts["router"]

    def refused(*words: str) -> str:
        done = subprocess.run([agents.program(), *words], check=False, capture_output=True, text=True)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
        return done.stderr.removeprefix("segue-agent: ").rstrip()

    with machines.agent("mobile") as agent:
        socket = ("--socket", str(agent.socket))
        assert refused("handover", "eth9", *socket) == "eth9: expected one of eth0, eth1"
        router.ip("link set a1 down")
        wait_until(lambda: not agent.status()["interfaces"][1]["is_up"], "eth1 to be down")
        assert refused("handover", "eth1", *socket).startswith("eth1: has no locator that can be used: expected")
        shown = agent.command("status").stdout
        assert f"identity {identity('mobile')} on segue0" in shown, shown
        assert "eth1       down" in shown, shown
        assert oct(agent.socket.stat().st_mode & 0o777) == "0o600"
    assert "no agent answers there: expected one that runs" in refused("status", *socket)
    wrong = refused("check", str(machines.configuration("mobile", "lu_attempts = 0")))
    assert wrong.endswith("mobile.toml: ilnp.lu_attempts: expected at least 1"), wrong
    assert refused("check", "/nowhere.toml").startswith("/nowhere.toml: No such file")


def test_it_keeps_two_capabilities_and_becomes_who_it_is_told_to_be(machines: World) -> None:
    """Both are enough for what comes later: addresses of a network that is new, and their end."""
    machines.folder.chmod(0o777)
    before = machines.snapshot("mobile")
    file = machines.configuration("mobile")
    file.write_text(file.read_text().replace("[agent]", '[agent]\nuser = "nobody"'))
    machines.hosts["router"].ip("link set a1 down")
    with machines.agent("mobile", written=True, ready=False) as agent:
        wait_until(lambda: agents.uses_first(agent), "the first network")
        status = Path(f"/proc/{agent.child.pid}/status").read_text()
        told = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert set(told["Uid"].split()) == {"65534"}
        two = f"{1 << 12 | 1 << 13:016x}"
        assert [told[f"Cap{which}"] for which in ("Prm", "Eff", "Bnd", "Inh")] == [two, two, two, "0" * 16]
        assert told["NoNewPrivs"] == "1"
        # a filter of system calls, under which the rest happens
        assert told["Seccomp"] == "2"
        machines.hosts["router"].ip("link set a1 up")
        wait_until(lambda: agents.has_all(agent), "the second network")
    wait_until(lambda: machines.plain_address("mobile", "eth1"), "the kernel's own address")
    assert machines.snapshot("mobile") == before


def test_the_unit_is_hardened() -> None:
    """As systemd counts, from 0 (closed) to 10."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is missing (Debian package systemd)")
    unit = build.ROOT / "packaging" / "segue-agent.service"
    command = [analyze, "security", "--offline=true", "--threshold=30", str(unit)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-400:] + done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to be root to be nobody")
def test_without_privileges_it_says_so(tmp_path: Path) -> None:
    """One line, and nothing is left."""
    tmp_path.chmod(0o777)
    file = World(tmp_path).configuration("mobile")
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(agents.program()), "run", str(file)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=lab.SOON)
    assert done.returncode == 2
    assert "not permitted" in done.stderr or "Permission denied" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "mobile.sock").exists()

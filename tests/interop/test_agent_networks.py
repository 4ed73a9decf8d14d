"""What the file says of networks: metrics of routes and windows that follow the agent, and paper 002's remedy."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import agents
import lab
import pytest
from agents import Agent, World, identity, iperf, iperf_server, said_by, wait_until

REASON = agents.missing()
pytestmark = [pytest.mark.waits, pytest.mark.skipif(REASON is not None, reason=REASON or "")]
WINDOW = 20_000
SLOW = f"""[[network]]
interface = "eth1"
window = {WINDOW}
rto_min = "900 ms"
initcwnd = 3
rtt_hint = "600 ms"
[ilnp]"""


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[World]:
    """Two machines and a router between them."""
    with agents.world(tmp_path) as world:
        yield world


def configured(machines: World, text: str) -> None:
    """The mobile host's file, with something before the table of its role."""
    file = machines.configuration("mobile")
    file.write_text(file.read_text().replace("[ilnp]", text, 1))


def sockets(machines: World, host: str, port: int, *, local: bool = False) -> list[dict[str, float]]:
    """What the kernel says of connections of iperf3's data, or of all those to a port."""
    end = "sport" if local else "dport"
    said = machines.run(*machines.hosts[host].command("ss", "-tinH", f"{end} = :{port}"))
    blocks = re.split(r"\n(?=\S)", said)
    return [{k: float(v) for k, v in re.findall(r"\b(rto|cwnd|snd_wnd):([\d.]+)", block)} for block in blocks if block]


def metrics(machines: World) -> str:
    """The route to the device."""
    return machines.run("ip", "-n", machines.hosts["mobile"].name, "-6", "route", "show", "dev", "segue0")


@contextlib.contextmanager
def both(machines: World) -> Iterator[Agent]:
    """The agents of both machines; the mobile one's."""
    with machines.agent("peer"), machines.agent("mobile", written=True) as agent:
        yield agent


def test_routes_have_the_metrics_of_the_network_in_use_and_tcp_keeps_to_them(machines: World) -> None:
    """New connections have the timeout of the network; those that there are have its window, and theirs elsewhere."""
    configured(machines, SLOW)
    mobile, peer = machines.hosts["mobile"], machines.hosts["peer"]
    with contextlib.ExitStack() as stack:
        agent = stack.enter_context(both(machines))
        for port in (5201, 5202):
            stack.enter_context(iperf_server(peer, port))
        assert "rto_min" not in metrics(machines)
        old = stack.enter_context(iperf(mobile, identity("peer"), 5201, "-t", "8", "-b", "4M"))
        time.sleep(1.5)
        assert all(one["rto"] < 500 for one in sockets(machines, "mobile", 5201))
        wide = max(one["snd_wnd"] for one in sockets(machines, "peer", 5201, local=True))
        assert wide > WINDOW
        agent.move("eth1")
        said = metrics(machines)
        for metric in ("rto_min lock 900ms", f"window {WINDOW}", "initcwnd 3", "rtt 600ms"):
            assert metric in said, said
        new = stack.enter_context(iperf(mobile, identity("peer"), 5202, "-t", "3", "-b", "4M"))
        time.sleep(1.5)
        # a connection that begins has the network's least timeout; one that there is has its own still
        assert all(one["rto"] >= 900 for one in sockets(machines, "mobile", 5202))
        assert any(one["rto"] < 500 for one in sockets(machines, "mobile", 5201))
        # what each end is offered, of both connections, in whichever direction the data go
        for host, local in (("mobile", False), ("peer", True)):
            for port in (5201, 5202):
                offered = [one["snd_wnd"] for one in sockets(machines, host, port, local=local)]
                assert offered, (host, port)
                # iperf3's other connection has sent nothing since the move, and has the window of before
                least = min if port == 5201 else max
                assert least(offered) <= WINDOW, (host, port, offered)
        said_by(new)
        agent.move("eth0")
        assert "rto_min" not in metrics(machines)
        wait_until(
            lambda: max(one["snd_wnd"] for one in sockets(machines, "mobile", 5201)) > WINDOW, "the window of before"
        )
        said_by(old)
        counters = agent.status()["counters"]["packets"]
        assert counters["windows_lowered"] > 0


def test_a_network_that_costs_is_used_only_where_no_other_is(machines: World) -> None:
    """The first of the list, by its prefix."""
    configured(
        machines, f'[[network]]\nprefix = "{agents.PREFIXES["a0"]}::/64"\nmetered = true\n[ilnp]'.replace(":0::", "::")
    )
    router = machines.hosts["router"]
    with machines.agent("mobile", written=True, ready=False) as agent:
        wait_until(lambda: agents.interfaces(agent) and agent.in_use() == "eth1", "the one that costs nothing")
        router.ip("link set a1 down")
        wait_until(lambda: agent.in_use() == "eth0", "the one that is there")
        router.ip("link set a1 up")
        wait_until(lambda: agent.in_use() == "eth1", "the one that costs nothing", within=lab.LONGEST)


def lost_and_late(machines: World, agent: Agent, port: int) -> tuple[int, int]:
    """Packets that the slow network drops after a move to it during a download, and what gets through there, bytes."""
    mobile = machines.hosts["mobile"]
    client = iperf(mobile, identity("peer"), port, "-t", "10", "-R", "--interval", "1")
    with client:
        time.sleep(3)
        before = dropped(machines)
        agent.move("eth1")
        result = said_by(client)
        lost = dropped(machines) - before
    agent.move("eth0")
    return lost, int(sum(one["sum"]["bytes"] for one in result["intervals"][3:]))


def dropped(machines: World) -> int:
    """Packets that the queue to the slow network had no room for."""
    said = machines.run(*machines.hosts["router"].command("tc", "-s", "qdisc", "show", "dev", "a1"))
    return int(re.search(r"dropped (\d+)", said)[1])  # type: ignore[index]


@lab.real_time
def compare(machines: World) -> None:
    """One move with the window of the slow network in the file, one without."""
    found = {}
    for name, text in (("without", "[ilnp]"), ("with", SLOW)):
        configured(machines, text)
        with both(machines) as agent, iperf_server(machines.hosts["peer"], 5201):
            found[name] = lost_and_late(machines, agent, 5201)
    print(found)
    assert found["without"][0] > 20, found
    assert found["with"][0] * 5 < found["without"][0], found
    # and it costs nothing of what the slow network carries
    assert found["with"][1] > 0.7 * found["without"][1], found


@pytest.mark.slow
def test_a_window_keeps_the_queue_of_a_slow_network_from_overflowing(machines: World) -> None:
    """From 50 Mbit/s to 1 Mbit/s with a queue of 40 kB: a vertical handover (002 section 7)."""
    router = machines.hosts["router"]
    for device, shape in (("a0", "rate 50mbit burst 32kb limit 400kb"), ("a1", "rate 1mbit burst 5kb limit 40kb")):
        subprocess.run(router.command("tc", "qdisc", "add", "dev", device, "root", "tbf", *shape.split()), check=True)
    compare(machines)

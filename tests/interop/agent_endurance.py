"""A handover every two seconds for an hour: streams live, and neither memory nor descriptors of `segue-agent` grow.

    python tests/interop/agent_endurance.py [--seconds 3600]

The two hosts of `agents.py`, each with an agent, and between their identities a TCP and a UDP stream of iperf3. Of ten
handovers seven are the mobile host's by hand, two both hosts' at once, and one a carrier that is lost. Looks at both
processes from outside, once a minute: resident memory and open descriptors (proc(5)). Needs root, iperf3, radvd,
nftables and `segue-agent`: $SEGUE_AGENT, or what cargo has built or builds here. Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import agents
from agents import Agent, World, identity, iperf, iperf_server
from endurance import Looked, look

EVERY_S = 2.0
SETTLED_HANDOVERS = 20
"""By then every kind has been, twice."""
LOOK_EVERY = 30
WITHOUT_CARRIER_S = 0.8
ATTEMPTS, ATTEMPTS_AT_ONCE = 100, 5
"""Ten seconds, and half a second."""
PORTS = (5201, 5202)
TCP_BITS = 2_000_000
UDP_BITS = 200_000
UDP_BYTES = 500
MOST_KIB = 256
"""By which resident memory may be larger in the end. A leak of a hundred bytes a handover would be 180 KiB an hour, and
one of a packet 2.5 MB; the allocator's own turns come to some tens of KiB."""


@dataclass
class Endured:
    """What became of a run.

    Attributes:
        handovers: That were asked for or forced.
        late: Of them, those for which the other interface was not yet usable again when they were due.
        failed: Peers that were not told, of the handovers that the agents remembered.
        longest_s: Until a peer had acknowledged.
        sent: Bytes of TCP that arrived, and what was to be sent.
        lost: Datagrams lost, and sent.
        dead: Streams that ended before their time.
        seen: By agent, every look.
    """

    handovers: int = 0
    late: int = 0
    failed: int = 0
    longest_s: float = 0.0
    received: tuple[int, int] = (0, 0)
    lost: tuple[int, int] = (0, 0)
    dead: list[str] = field(default_factory=list)
    seen: dict[str, list[Looked]] = field(default_factory=dict)

    def grown_kib(self) -> dict[str, int]:
        """By how much each agent's resident memory is larger in the end than once all was settled."""
        return {host: seen[-1].memory_kib - seen[0].memory_kib for host, seen in self.seen.items()}

    def more_descriptors(self) -> dict[str, int]:
        """By how many descriptors each agent has more in the end."""
        return {host: seen[-1].descriptors - seen[0].descriptors for host, seen in self.seen.items()}

    def holds(self) -> bool:
        """Whether nothing is to be found fault with."""
        grown = max(self.grown_kib().values()) > MOST_KIB or max(self.more_descriptors().values()) > 0
        starved = self.received[0] < 0.9 * self.received[1]
        return not (self.dead or self.failed or grown or starved)

    def told(self) -> str:
        """In some lines."""
        lines = [
            f"{self.handovers} handovers ({self.late} late), {self.failed} peers not told,"
            f" acknowledged within {1e3 * self.longest_s:.0f} ms;"
            f" TCP {self.received[0]} of {self.received[1]} bytes, UDP {self.lost[0]} of {self.lost[1]} datagrams lost;"
            f" streams that died: {'; '.join(self.dead) or 'none'}"
        ]
        lines += [
            f"{host}: "
            + ", ".join(
                f"at {at.at_s:.0f} s {at.memory_kib} KiB and {at.descriptors} descriptors" for at in (seen[0], seen[-1])
            )
            + f"; at most {max(at.memory_kib for at in seen)} KiB and {max(at.descriptors for at in seen)} descriptors"
            for host, seen in self.seen.items()
        ]
        return "\n".join(lines)


class Runner:
    """The handovers of two agents."""

    def __init__(self, world: World, mobile: Agent, peer: Agent) -> None:
        self.world = world
        self.agents = {"mobile": mobile, "peer": peer}
        self.endured = Endured(seen={host: [] for host in self.agents})
        self.begun = time.monotonic()

    def turn(self, number: int) -> None:
        """One handover: the even ones to eth1, the odd ones to eth0."""
        interface = ("eth1", "eth0")[number % 2]
        self.endured.handovers += 1
        if number % 10 == 9:
            router = self.world.hosts["router"]
            router.ip("link set a1 down")
            time.sleep(WITHOUT_CARRIER_S)
            router.ip("link set a1 up")
            if self.agents["mobile"].in_use() != interface:
                self.endured.dead.append(f"handover {number}: a lost carrier was not left")
            return
        movers = self.agents.values() if number % 10 in (3, 6) else [self.agents["mobile"]]
        asked = [self.ask(one, interface) for one in movers]
        self.endured.late += not all(asked)

    def ask(self, agent: Agent, interface: str) -> bool:
        """Ask for a handover until it can be; whether that was at once.

        Attempts are counted, and not seconds: a virtual machine may stand still for a minute.
        """
        for attempt in range(ATTEMPTS):
            try:
                agent.command("handover", interface)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                refused = str(error.stderr)
                time.sleep(0.1)
            else:
                return attempt < ATTEMPTS_AT_ONCE
        said = (refused, json.dumps(agent.status()["interfaces"]), agent.log.read_text()[-2000:])
        raise RuntimeError(f"{interface} was refused: " + "\n".join(said))

    def look(self) -> None:
        """At both processes."""
        for host, agent in self.agents.items():
            found = look(agent.child.pid, self.begun)
            if found is None:
                raise RuntimeError(f"the agent of {host} is gone: {agent.log.read_text()}")
            self.endured.seen[host].append(found)

    def judge_handovers(self) -> None:
        """What the agents remember of the last ones; the very last may be under way."""
        for agent in self.agents.values():
            for one in agent.status()["handovers"][:-1]:
                self.endured.failed += len(one["failed"])
                self.endured.longest_s = max(self.endured.longest_s, one["delay_s"] or 0)

    def run(self, seconds: int) -> None:
        """All of them."""
        self.begun = time.monotonic()
        for number in range(int(seconds / EVERY_S)):
            time.sleep(max(0.0, self.begun + EVERY_S * number - time.monotonic()))
            if number >= SETTLED_HANDOVERS and number % LOOK_EVERY == SETTLED_HANDOVERS:
                self.look()
            if number % 10 == 0:
                self.judge_handovers()
            self.turn(number)
        self.look()


def end_of(client: subprocess.Popen[str], endured: Endured, name: str) -> dict[str, Any]:
    """What an iperf3 measured; a note if it did not come to its end."""
    out, _ = client.communicate(timeout=60)
    try:
        said: dict[str, Any] = json.loads(out)
    except ValueError:
        said = {"error": out[-200:]}
    if client.returncode != 0 or "error" in said:
        endured.dead.append(f"{name}: {said.get('error')}")
    end: dict[str, Any] = said.get("end", {})
    return end


def endure(seconds: int) -> Endured:
    """Run it so long."""
    with tempfile.TemporaryDirectory(prefix="segue-endurance-") as folder, contextlib.ExitStack() as stack:
        world = stack.enter_context(agents.world(Path(folder)))
        mobile, peer = (world.hosts[name] for name in ("mobile", "peer"))
        for port in PORTS:
            stack.enter_context(iperf_server(peer, port))
        other = stack.enter_context(world.agent("peer"))
        runner = Runner(world, stack.enter_context(world.agent("mobile")), other)
        length = ("-t", str(seconds + 2), "-i", "10")
        to, endured = identity("peer"), runner.endured
        tcp = stack.enter_context(iperf(mobile, to, PORTS[0], *length, "-b", str(TCP_BITS), "-l", "2500"))
        datagrams = ("-u", "-b", str(UDP_BITS), "-l", str(UDP_BYTES))
        udp = stack.enter_context(iperf(mobile, to, PORTS[1], *length, *datagrams))
        try:
            runner.run(seconds)
        except BaseException:
            tcp.kill()
            udp.kill()
            raise
        end = end_of(tcp, endured, "TCP")
        endured.received = (end.get("sum_received", {}).get("bytes", 0), (seconds + 2) * TCP_BITS // 8)
        end = end_of(udp, endured, "UDP")
        endured.lost = (end.get("sum", {}).get("lost_packets", 0), end.get("sum", {}).get("packets", 0))
    return endured


def main() -> int:
    """Run it and say how it was; 1 if a stream died or something grew, 2 where it cannot be run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=3600)
    seconds = parser.parse_args().seconds
    missing = agents.missing()
    if missing:
        print(missing, file=sys.stderr)
        return 2
    endured = endure(seconds)
    print(endured.told())
    return int(not endured.holds())


if __name__ == "__main__":
    sys.exit(main())

"""What a UDP stream of 100 Mbit/s loses while an agent is flooded: between identities, and by Mobile IPv6's direct way.

    python benches/agent_flood.py SEGUE_AGENT [--rate 55000] [--seconds 10]

Machines in network namespaces, as in the tests (`tests/interop/agents.py`, `mobiles.py`), iperf3 between them, and
packets of every kind that strangers can send (`attackers.py`) from a network of the attacker's, against either end and
the home agent in turn. All of it runs in front of what else the machine does. Left out, with the reason, where there
can be no namespaces.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

INTEROP = Path(__file__).resolve().parents[1] / "tests" / "interop"
PORT = 5201
STREAM = ("-u", "-b", "100M", "-l", "1200", "-w", "400K")


def ticks(child: Any) -> int:
    """Processor time of a program, ticks."""
    words = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])


def measure(world: Any, all_: dict[str, Any], to: str, options: argparse.Namespace, kinds: dict[str, Any]) -> None:
    """A line for each victim, and one for none."""
    agents, attackers = (importlib.import_module(name) for name in ("agents", "attackers"))
    for victim in (None, *kinds):
        length = options.seconds + 2
        with agents.iperf(world.hosts["mobile"], to, PORT, "-t", str(length), *STREAM) as client:
            time.sleep(1)
            said, came, used = {"sent": 0}, 0, {name: ticks(one.child) for name, one in all_.items()}
            if victim is not None:
                seen = attackers.packets_received(world.hosts[victim])
                flood = attackers.Attacker(world).flood(kinds[victim], rate=options.rate, seconds=options.seconds)
                said = json.loads(flood.communicate()[0])
                came = attackers.packets_received(world.hosts[victim]) - seen
            else:
                time.sleep(options.seconds)
            busy = {name: (ticks(one.child) - used[name]) / options.seconds for name, one in all_.items()}
            end = agents.said_by(client)["end"]["sum"]
        line = ", ".join(f"{name} {share:.0f} %" for name, share in busy.items())
        lost = f"lost {end['lost_packets']:5} of {end['packets']}"
        print(
            f"  {victim or 'nobody':8} {said['sent'] / options.seconds:8.0f}/s sent,"
            f" {came / options.seconds:8.0f}/s came; {lost}; processor: {line}",
            flush=True,
        )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agent", metavar="SEGUE_AGENT")
    parser.add_argument(
        "--rate", type=int, default=55_000, help="packets sent a second; one in twelve goes no further than the router"
    )
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    os.environ["SEGUE_AGENT"] = str(Path(options.agent).resolve())
    sys.path.insert(0, str(INTEROP))
    agents, mobiles, attackers = (importlib.import_module(name) for name in ("agents", "mobiles", "attackers"))
    reason = agents.missing()
    if reason is not None:
        print(f"the agent under a flood: left out: {reason}")
        return 0
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    for name, world_of in (("ILNPv6", agents.world), ("Mobile IPv6, the direct way", mobiles.world)):
        with tempfile.TemporaryDirectory(prefix="segue-bench-") as made, contextlib.ExitStack() as stack:
            world = stack.enter_context(world_of(Path(made), attacked=True))
            stack.enter_context(agents.iperf_server(world.hosts["peer"], PORT))
            print(f"{name}: a UDP stream of 100 Mbit/s, and {options.rate} hostile packets a second against")
            if world_of is agents.world:
                all_ = {host: stack.enter_context(world.agent(host)) for host in ("peer", "mobile")}
                places = {
                    host: f"{agents.PREFIXES[agents.LINKS[host][0]]}:{agents.NIDS[host]}" for host in ("mobile", "peer")
                }
                kinds = {
                    "mobile": attackers.of_ilnp(places["mobile"], places["peer"]),
                    "peer": attackers.of_ilnp(places["peer"], places["mobile"]),
                }
                to = agents.identity("peer")
            else:
                all_ = {host: stack.enter_context(world.role(host)) for host in ("home", "peer", "mobile")}
                to = world.plain_address("peer", "eth0")
                place = f"{mobiles.PREFIXES['a0']}:{mobiles.IDENTIFIER}"
                targets = {"mobile": (place, to), "peer": (to, place), "home": (mobiles.HOME_AGENT, place)}
                kinds = {
                    host: attackers.of_mobile_ipv6(own, other, mobiles.HOME_ADDRESS)
                    for host, (own, other) in targets.items()
                }
            measure(world, all_, to, options, kinds)
    return 0


if __name__ == "__main__":
    sys.exit(main())

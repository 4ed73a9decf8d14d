r"""Machines that know nothing of Segue, and the roles of Mobile IPv6 on three of them.

```
 mobile --- eth0 --- a0 \            / b0 --- eth0 --- peer     a correspondent with the agent
        \-- eth1 --- a1 -- router --+- c0 --- eth0 --- plain    a correspondent without
                                     \ d0 --- eth0 --- home     the home agent: a router, home network on home0
```

Everything is the kernel's, as in `agents`: radvd advertises a prefix on each link but the home agent's, hosts form
addresses, have a firewall and routes of their own.
"""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents import FIREWALL, Agent, World, advertising, has_all, interfaces, uses_first, wait_until
from lab import Namespace

HOME_ADDRESS = "2001:db8:f::1:7"
# Of the peer, where that is mobile too.
SECOND = "2001:db8:f::1:8"
HOME_AGENT = "2001:db8:f::a"
# Of the care-of addresses.
IDENTIFIER = "0:0:1:7"
KEY = "a key that nobody else has"
PREFIXES = {"a0": "2001:db8:1:0", "a1": "2001:db8:2:0", "b0": "2001:db8:3:0", "c0": "2001:db8:4:0"}
LINKS = (("a0", "mobile", "eth0"), ("a1", "mobile", "eth1"), ("b0", "peer", "eth0"), ("c0", "plain", "eth0"))
SECURITY = f'security = {{ spi = 256, key = "{KEY}" }}'


@dataclass
class Mobile(World):
    """The network of the picture."""

    def second(self) -> None:
        """Files by which the peer is a mobile node too, of the same home agent."""
        served, node = self.configuration("home"), self.configuration("mobile").read_text()
        served.write_text(served.read_text() + f'\n[[home-agent.mobile_nodes]]\nhome_address = "{SECOND}"\n{SECURITY}')
        node = node.replace(HOME_ADDRESS, SECOND).replace('["eth0", "eth1"]', '["eth0"]')
        path = self.configuration("peer")
        path.write_text(node.replace("mobile.sock", "peer.sock"))

    def configuration(self, host: str, extra: str = "") -> Path:
        """The agent's file of a host; `extra` is a line of its role."""
        devices = {"mobile": ["eth0", "eth1"], "home": ["eth0", "home0"]}.get(host, ["eth0"])
        role = {
            "mobile": [
                "[mobile-node]",
                f'home_address = "{HOME_ADDRESS}"',
                f'home_agent = "{HOME_AGENT}"',
                SECURITY,
                extra,
            ],
            "home": [
                "[home-agent]",
                f'address = "{HOME_AGENT}"',
                extra,
                "[[home-agent.mobile_nodes]]",
                f'home_address = "{HOME_ADDRESS}"',
                SECURITY,
            ],
        }.get(host, ["[correspondent]", extra])
        lines = [
            "[agent]",
            f"interfaces = {json.dumps(devices)}",
            f'socket = "{self.folder}/{host}.sock"',
            'hold_down = "500 ms"',
            *role,
        ]
        path = self.folder / f"{host}.toml"
        path.write_text("\n".join(lines))
        path.chmod(0o600)
        return path

    @contextlib.contextmanager
    def role(self, host: str) -> Iterator[Agent]:
        """An agent on a host, once it is what it is to be."""
        ready = {"mobile": is_bound, "home": has_address}.get(host, uses_first)
        with self.agent(host, ready=False) as agent:
            wait_until(lambda: ready(agent), f"the agent of {host}: {agent.log.read_text()}")
            yield agent

    def received(self, host: str, device: str) -> int:
        """Bytes that came over an interface."""
        shown = json.loads(self.run("ip", "-n", self.hosts[host].name, "-s", "-j", "link", "show", "dev", device))
        return int(shown[0]["stats64"]["rx"]["bytes"])


def is_bound(agent: Agent) -> bool:
    """Whether the home agent has acknowledged where the mobile node is, and both networks can be used."""
    if not has_all(agent):
        return False
    registration = agent.status()["registration"]
    return bool(registration["acknowledged"]) and registration["acknowledged"] == registration["care_of_address"]


def has_address(agent: Agent) -> bool:
    """Whether the home agent's address is there."""
    return any(place["address"] == HOME_AGENT for one in interfaces(agent) for place in one["locators"])


def ways(agent: Agent) -> dict[str, bool]:
    """The correspondents of a mobile node, and whether packets to them take the direct way."""
    status: dict[str, Any] = agent.status()
    return {one["address"]: one["optimized"] for one in status.get("correspondents", [])}


@contextlib.contextmanager
def world(folder: Path, *, attacked: bool = False) -> Iterator[Mobile]:
    """The network, with addresses formed. If it is `attacked`, as in `agents`."""
    names = ("mobile", "router", "peer", "plain", "home") + ("attacker",) * attacked
    with contextlib.ExitStack() as stack:
        made = Mobile(folder, {name: stack.enter_context(Namespace(name[0])) for name in names})
        router, home = made.hosts["router"], made.hosts["home"]
        for forwards in (router, home):
            forwards.sysctl("net/ipv6/conf/all/forwarding", "1")
        # a link that is down for a moment is the same one afterwards
        for name in ("all", "default"):
            router.sysctl(f"net/ipv6/conf/{name}/keep_addr_on_down", "1")
        for device, host, name in LINKS:
            made.join(device, host, name)
            router.device_up(device, f"{PREFIXES[device]}::1/64".replace(":0::", "::"))
            made.hosts[host].device_up(name)
        made.join("d0", "home", "eth0")
        router.device_up("d0", "2001:db8:5::1/64")
        home.device_up("eth0", "2001:db8:5::2/64")
        made.settle_attacker()
        # a link with nobody else on it
        home.ip("link add home0 type veth peer name home1")
        home.device_up("home1")
        home.device_up("home0", "2001:db8:f::1/64")
        home.ip("-6 route add default via 2001:db8:5::1")
        router.ip("-6 route add 2001:db8:f::/64 via 2001:db8:5::2")
        stack.enter_context(advertising(router, PREFIXES, folder))
        for host in ("mobile", "peer", "home"):
            subprocess.run(made.hosts[host].command("nft", FIREWALL), check=True)
            made.hosts[host].ip("-6 route add 2001:db8:77::/64 via fe80::77 dev eth0")
            made.hosts[host].ip("-6 rule add from 2001:db8:77::/64 table 77")
        for _, host, device in LINKS:
            wait_until(functools.partial(made.plain_address, host, device), f"an address of {host}")
        # the kernel's own streams from eth1 leave by eth1, as somebody has set up who has two networks
        mobile = made.hosts["mobile"]
        mobile.ip("-6 route add default via 2001:db8:2::1 dev eth1 table 78")
        mobile.ip(f"-6 rule add from {made.plain_address('mobile', 'eth1')} table 78")
        yield made

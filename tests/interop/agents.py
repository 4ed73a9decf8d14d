r"""Machines that know nothing of Segue, and an agent on two of them.

```
 mobile --- eth0 --- a0 \                         mobile: eth0 is preferred
        \-- eth1 --- a1 -- router --- b0 --- eth0 --- peer
                            \---- b1 --- eth1 ---/
```

Everything is the kernel's: radvd advertises a prefix on each of the router's links, hosts form addresses, have a
firewall and routes of their own, and streams that are none of the agent's. A link is taken down at the router's end:
the mobile host loses its carrier.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import build
import lab
import network
from lab import SOON, Namespace

IDENTITIES = "fd53:6567:7565:1"
NIDS = {"mobile": "2aa:0:0:1", "peer": "2aa:0:0:2"}
PREFIXES = {"a0": "2001:db8:1:0", "a1": "2001:db8:2:0", "b0": "2001:db8:3:0", "b1": "2001:db8:5:0"}
# The links of a host, by the router's names.
LINKS = {"mobile": ("a0", "a1"), "peer": ("b0", "b1")}
# Of the attacker's own link.
ATTACKER = "2001:db8:9::"
# What somebody has set up before.
FIREWALL = "table inet mine { chain in { type filter hook input priority 0; policy accept; tcp dport 23 drop; }; }"


def missing() -> str | None:
    """Why there are no agents here; None if there are."""
    for command, package in (("iperf3", "iperf3"), ("radvd", "radvd"), ("nft", "nftables")):
        if shutil.which(command) is None and not Path("/usr/sbin", command).exists():
            return f"{command} is missing, so the agent is not tested (Debian package {package})"
    return network.missing()


def program() -> Path:
    """The segue-agent to test."""
    return build.tool("segue-agent")


def debian_package(folder: Path) -> Path:
    """Its Debian package, made in a folder."""
    script = build.ROOT / "scripts" / "debian_package.py"
    command: list[str | Path] = [sys.executable, script, program(), "--out", folder]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def identity(host: str) -> str:
    """What applications know a host by."""
    return f"{IDENTITIES}:{NIDS[host].replace(':0:0:', '::')}"


def wait_until(there: Callable[[], object], what: str, *, within: float = SOON) -> None:
    """Wait for something that takes seconds at most."""
    deadline = time.monotonic() + within
    while not there():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.05)


def reaches(host: Namespace, to: str) -> bool:
    """Whether packets go to an address and back: nobody listens there, and that is said."""
    tries = f"import socket; socket.create_connection(({to!r}, 9), 1)"
    done = subprocess.run(host.command(sys.executable, "-c", tries), check=False, capture_output=True, text=True)
    return "ConnectionRefusedError" in done.stderr


@dataclass
class Agent:
    """An agent that runs."""

    host: Namespace
    socket: Path
    child: subprocess.Popen[str]
    log: Path

    def status(self) -> dict[str, Any]:
        """What it says of itself."""
        said: dict[str, Any] = json.loads(self.command("status", "--json").stdout)
        return said

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command to it."""
        whole = [str(program()), *words, "--socket", str(self.socket)]
        return subprocess.run(whole, check=True, capture_output=True, text=True, timeout=SOON)

    def in_use(self) -> str | None:
        """The interface that it uses."""
        return next((one["name"] for one in self.status()["interfaces"] if one["in_use"]), None)

    def move(self, interface: str) -> None:
        """A soft handover by hand."""
        self.command("handover", interface)
        assert self.in_use() == interface

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it, in order or not."""
        self.child.send_signal(how)
        self.child.wait(timeout=SOON)


@dataclass
class World:
    """The network of the picture."""

    folder: Path
    hosts: dict[str, Namespace] = field(default_factory=dict)

    def join(self, device: str, host: str, name: str) -> None:
        """A link of the router's to a host. Where there is an attacker, the link is a bridge of his."""
        own, attacker = self.hosts[host], self.hosts.get("attacker")
        if attacker is None:
            self.hosts["router"].ip(f"link add {device} type veth peer name {name} netns {own.name}")
        else:
            attacker.ip(f"link add {device} type bridge mcast_snooping 0")
            ends = {f"r-{device}": (self.hosts["router"], device), f"h-{device}": (own, name)}
            for port, (end, at_end) in ends.items():
                end.ip(f"link add {at_end} type veth peer name {port} netns {attacker.name}")
                attacker.ip(f"link set {port} master {device} up")
            attacker.ip(f"link set {device} up")

    def settle_attacker(self) -> None:
        """The attacker has a network of his own too, and nobody's address on the links that he is on."""
        attacker, router = self.hosts.get("attacker"), self.hosts["router"]
        if attacker is None:
            return
        router.ip(f"link add x0 type veth peer name x0 netns {attacker.name}")
        router.device_up("x0", f"{ATTACKER}1/64")
        attacker.device_up("x0", f"{ATTACKER}66/64")
        attacker.ip(f"-6 route add default via {ATTACKER}1")

    def snapshot(self, host: str) -> str:
        """What an agent may have changed: addresses, links, routes, rules and filters, without what counts down."""
        own = self.hosts[host]
        said = []
        for words in ("-6 addr", "link", "-6 route show table all", "-6 rule"):
            said.append(self.run("ip", "-n", own.name, *words.split()))
        said.append(self.run(*own.command("nft", "list", "ruleset")))
        return re.sub(r"(valid_lft|preferred_lft|expires) \d+sec", "", "\n".join(said))

    @staticmethod
    def run(*command: str) -> str:
        """What a command prints."""
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def plain_address(self, host: str, device: str) -> str:
        """The address that the kernel has formed by itself, or nothing."""
        shown = json.loads(self.run("ip", "-n", self.hosts[host].name, "-6", "-j", "addr", "show", "dev", device))
        found = [
            str(one["local"])
            for one in shown[0].get("addr_info", [])
            if one["scope"] == "global" and one["prefixlen"] == 64 and not one.get("tentative")
        ]
        return found[0] if found else ""

    def configuration(self, host: str, extra: str = "") -> Path:
        """The agent's file of a host."""
        other = "peer" if host == "mobile" else "mobile"
        places = [PREFIXES[link] for link in LINKS[other]]
        lines = [
            "[agent]",
            'interfaces = ["eth0", "eth1"]',
            f'socket = "{self.folder}/{host}.sock"',
            'hold_down = "500 ms"',
            "[ilnp]",
            f'nid = "{NIDS[host]}"',
            extra,
            "[[ilnp.peers]]",
            f'nid = "{NIDS[other]}"',
            f"locators = {json.dumps(places)}",
        ]
        path = self.folder / f"{host}.toml"
        path.write_text("\n".join(lines))
        return path

    @contextlib.contextmanager
    def agent(
        self, host: str, *, written: bool = False, ready: bool = True, environment: dict[str, str] | None = None
    ) -> Iterator[Agent]:
        """An agent on a host, by the file that is `written` already or the usual one; if it is to be `ready`, once all
        its interfaces have a locator."""
        own, log = self.hosts[host], self.folder / f"{host}.log"
        file = self.folder / f"{host}.toml" if written else self.configuration(host)
        command = own.command(program(), "run", file)
        with (
            log.open("w") as said,
            subprocess.Popen(command, stderr=said, text=True, env=os.environ | (environment or {})) as child,
        ):
            agent = Agent(own, self.folder / f"{host}.sock", child, log)
            try:
                if ready:
                    wait_until(lambda: has_all(agent), f"the agent of {host}: {log.read_text()}")
                yield agent
            finally:
                if child.poll() is None:
                    child.send_signal(signal.SIGTERM)
                    child.wait(timeout=SOON)
                print(host, log.read_text(), file=sys.stderr)


def interfaces(agent: Agent) -> list[dict[str, Any]]:
    """What it says of its interfaces; nothing as long as it does not answer."""
    if not agent.socket.exists() or agent.child.poll() is not None:
        return []
    try:
        found: list[dict[str, Any]] = agent.status()["interfaces"]
    except subprocess.CalledProcessError:
        # the socket is one that a killed agent has left
        return []
    return found


def uses_first(agent: Agent) -> bool:
    """Whether packets leave by the first interface."""
    return any(one["in_use"] for one in interfaces(agent)[:1])


def settled(found: list[dict[str, Any]]) -> bool:
    """Whether packets leave by the first of these interfaces, and each has a locator that can be used."""
    states = [[place["state"] for place in one["locators"]] for one in found]
    return any(one["in_use"] for one in found[:1]) and all(each and "pending" not in each for each in states)


def has_all(agent: Agent) -> bool:
    """Whether that is so of an agent's interfaces."""
    return settled(interfaces(agent))


@contextlib.contextmanager
def advertising(router: Namespace, prefixes: dict[str, str], folder: Path) -> Iterator[None]:
    """radvd on a router, with a prefix for each of these devices.

    The kernel's own streams take the first that is there; without a preference (RFC 4191) that would be whichever
    router was heard first.
    """
    advertisements = [
        f"interface {device} {{ AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4;"
        f" AdvDefaultPreference {'medium' if n else 'high'};"
        f" prefix {prefix}::/64 {{ AdvOnLink on; AdvAutonomous on; }}; }};".replace(":0::", "::")
        for n, (device, prefix) in enumerate(prefixes.items())
    ]
    (folder / "radvd.conf").write_text("\n".join(advertisements))
    # it ends with the test, however that ends
    command = ["setpriv", "--pdeathsig", "TERM", "radvd", "-n", "-m", "none"]
    command += ["-C", f"{folder}/radvd.conf", "-p", f"{folder}/radvd.pid"]
    with subprocess.Popen(router.command(*command), stderr=subprocess.DEVNULL) as radvd:
        try:
            yield
        finally:
            radvd.terminate()


@contextlib.contextmanager
def world(folder: Path, *, attacked: bool = False) -> Iterator[World]:
    """The network, with addresses formed. If `attacked`, with a namespace on each link that has one of its own."""
    names = ("mobile", "router", "peer") + ("attacker",) * attacked
    with contextlib.ExitStack() as stack:
        made = World(folder, {name: stack.enter_context(Namespace(name[0])) for name in names})
        router = made.hosts["router"]
        router.sysctl("net/ipv6/conf/all/forwarding", "1")
        # a link that is down for a moment is the same one afterwards
        for name in ("all", "default"):
            router.sysctl(f"net/ipv6/conf/{name}/keep_addr_on_down", "1")
        places = [(link, host, f"eth{n}") for host, links in LINKS.items() for n, link in enumerate(links)]
        for device, host, name in places:
            made.join(device, host, name)
            router.device_up(device, f"{PREFIXES[device]}::1/64".replace(":0::", "::"))
            made.hosts[host].device_up(name)
        made.settle_attacker()
        stack.enter_context(advertising(router, PREFIXES, folder))
        for host in ("mobile", "peer"):
            subprocess.run(made.hosts[host].command("nft", FIREWALL), check=True)
            made.hosts[host].ip("-6 route add 2001:db8:77::/64 via fe80::77 dev eth0")
            made.hosts[host].ip("-6 rule add from 2001:db8:77::/64 table 77")
        for _, host, device in places:
            wait_until(functools.partial(made.plain_address, host, device), f"an address of {host}")
        # the kernel's own streams from eth1 leave by eth1, as somebody has set up who has two networks
        for host, links in LINKS.items():
            via = f"{PREFIXES[links[1]]}::1".replace(":0::", "::")
            made.hosts[host].ip(f"-6 route add default via {via} dev eth1 table 78")
            made.hosts[host].ip(f"-6 rule add from {made.plain_address(host, 'eth1')} table 78")
        yield made


@contextlib.contextmanager
def iperf_server(host: Namespace, port: int, *more: str) -> Iterator[None]:
    """iperf3 -s on a host."""
    command = host.command("iperf3", "-s", "-p", str(port), *more)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            listening = host.command("ss", "-Hltn", f"sport = :{port}")
            wait_until(lambda: World.run(*listening).strip(), "iperf3")
            yield
        finally:
            server.terminate()


def iperf(host: Namespace, to: str, port: int, *more: str) -> subprocess.Popen[str]:
    """iperf3 -c on a host."""
    command = host.command("iperf3", "-c", to, "-p", str(port), "--json", *more)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def said_by(client: subprocess.Popen[str]) -> dict[str, Any]:
    """What an iperf3 that ended well has measured."""
    out, _ = client.communicate(timeout=lab.LONGEST)
    result: dict[str, Any] = json.loads(out)
    assert client.returncode == 0, result.get("error")
    return result

"""Two hosts and the links between them: network namespaces joined by the relay, which delays, loses and records.

The kernel has no netem here, and an emulated link has to be more exact than what is measured over it; so each link is
a pair of TAP devices that `peers/relay.c` forwards between. The devices live no longer than the relay, the relay no
longer than its standard input, and namespaces of a test run that was killed are removed by the next one.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import build
from process import Process

PREFIX = "sg-interop"
NUMBERS = itertools.count()
NETNS = Path("/run/netns")
# Frames with DATA or SACK that a capture keeps: what tshark reads in a few seconds.
CAPTURE_FRAMES = 20_000


def missing() -> str | None:
    """Why no network can be made here; None if it can."""
    if os.geteuid() != 0:
        return "not root: no network namespaces, so nothing is tested against other implementations"
    for command in ("ip", "nsenter"):
        if shutil.which(command) is None:
            return f"{command} is missing, so no network namespaces (Debian packages iproute2, util-linux)"
    if not Path("/dev/net/tun").exists():
        return "/dev/net/tun is missing: no links between network namespaces"
    return build.missing_compiler()


@dataclass
class Host:
    """One end of every link: a network namespace, or the place that a guest takes (`netns` None)."""

    netns: str | None
    addresses: list[str]
    devices: list[str] = field(default_factory=list)

    def command(self, *arguments: str | Path) -> list[str]:
        """`arguments` as a command that runs on this host."""
        assert self.netns is not None, "a guest runs its own programs"
        return ["nsenter", f"--net={NETNS / self.netns}", *map(str, arguments)]

    def ip(self, *arguments: str) -> None:
        """One call of ip(8) on this host."""
        assert self.netns is not None
        subprocess.run(["ip", "-n", self.netns, *arguments], check=True, capture_output=True, text=True)

    def add_address(self, link: int) -> None:
        """Give this host its address on `link`."""
        self.ip("address", "add", f"{self.addresses[link]}/64", "dev", self.devices[link], "nodad")

    def add_neighbour(self, peer: str, *, link: int, lladdr: str) -> None:
        """Have this host reach `peer` over `link`, on which it is not at home."""
        self.ip("route", "replace", f"{peer}/128", "dev", self.devices[link])
        self.ip("neigh", "replace", peer, "lladdr", lladdr, "dev", self.devices[link], "nud", "permanent")

    def delete_address(self, link: int) -> None:
        """Take this host's address on `link` away."""
        self.ip("address", "del", f"{self.addresses[link]}/64", "dev", self.devices[link])


def address(link: int, side: int) -> str:
    """The address of host `side` (0 or 1) on `link`; each link is a subnet."""
    return f"fd53:0:0:{link + 1}::{'ab'[side]}"


def mac(link: int, side: int) -> str:
    """The link-layer address of host `side` on `link`."""
    return f"02:53:47:00:{link:02x}:{side + 1:02x}"


class Network:
    """Hosts `a` and `b`, and `links` links between them, for the length of a with block.

    The capture goes to `directory`. `delay_us` is one way. With `guest_directory`, host `b` is an emulated machine
    whose network cards are sockets there; otherwise both are namespaces that have an address on every link but those
    of `unaddressed`, as (side, link).
    """

    def __init__(
        self,
        directory: Path,
        *,
        links: int = 2,
        delay_us: int = 10_000,
        seed: int = 1,
        guest_directory: Path | None = None,
        unaddressed: frozenset[tuple[int, int]] = frozenset(),
        capture_frames: int = CAPTURE_FRAMES,
    ) -> None:
        remove_abandoned()
        self.guest_directory = guest_directory
        self.capture = directory / "relay.pcapng"
        self.links = links
        self.delay_us = delay_us
        self.seed = seed
        self.capture_frames = capture_frames
        self.unaddressed = unaddressed
        name = f"{PREFIX}-{os.getpid()}-{next(NUMBERS)}"
        self.a = self._host(0, f"{name}a")
        self.b = self._host(1, None if guest_directory else f"{name}b")
        self.hosts = [self.a, self.b]

    def _host(self, side: int, netns: str | None) -> Host:
        devices = [f"link{link}" for link in range(self.links)]
        return Host(netns, [address(link, side) for link in range(self.links)], devices)

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            for host in self.hosts:
                if host.netns is not None:
                    subprocess.run(["ip", "netns", "add", host.netns], check=True)
                    undo.callback(delete_netns, host.netns)
            ends = [f"{self.delay_us},{self._port(0, link)},{self._port(1, link)}" for link in range(self.links)]
            self.relay = undo.enter_context(
                Process([build.program("relay"), self.capture, self.capture_frames, self.seed, *ends], "relay")
            )
            self.relay.wait_for("ready", timeout=10)
            for side, host in enumerate(self.hosts):
                if host.netns is not None:
                    self._configure(side, host)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A test that failed wants its capture too.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.stop()
        self._undo.close()

    def _port(self, side: int, link: int) -> str:
        netns = self.hosts[side].netns
        if netns is None:
            assert self.guest_directory is not None
            return f"unix:{self.guest_directory / f'relay{link}'}:{self.guest_directory / f'guest{link}'}"
        return f"tap:{NETNS / netns}:link{link}"

    def _configure(self, side: int, host: Host) -> None:
        assert host.netns is not None
        lines = ["link set lo up"]
        for link, device in enumerate(host.devices):
            lines.append(f"link set {device} address {mac(link, side)} txqueuelen 10000 up")
            # Nothing that is measured waits for address resolution.
            peer = address(link, 1 - side)
            lines.append(f"neigh replace {peer} lladdr {mac(link, 1 - side)} dev {device} nud permanent")
            if (side, link) not in self.unaddressed:
                lines.append(f"address add {host.addresses[link]}/64 dev {device} nodad")
        batch = "\n".join(lines)
        subprocess.run(["ip", "-n", host.netns, "-batch", "-"], input=batch, check=True, text=True)

    def command(self, line: str) -> int:
        """Tell the relay something; returns when it was done, ns of CLOCK_MONOTONIC."""
        return self.relay.ask(line, line.split(maxsplit=1)[0])

    def stop(self) -> Path:
        """Ends the relay, when what is under way has arrived: the capture is whole then."""
        if self.relay.child.poll() is None:
            time.sleep(4 * self.delay_us / 1e6 + 0.1)
        self.relay.finish()
        return self.capture


def delete_netns(name: str) -> None:
    """Remove a namespace; the devices in it go with it."""
    subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def remove_abandoned() -> None:
    """Remove the namespaces of test runs that no longer exist."""
    if not NETNS.is_dir():
        return
    for entry in NETNS.iterdir():
        match = re.fullmatch(rf"{PREFIX}-(\d+)-\d+[ab]", entry.name)
        if match is not None and not Path("/proc", match[1]).exists():
            delete_netns(entry.name)

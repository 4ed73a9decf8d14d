"""Hosts for the tests of what `segue-lab` does: network namespaces, joined by links of the simulator in real time.

Unlike `network.py`, whose relay forwards Ethernet frames, a link here is a TUN device at either end: IPv6 packets, no
neighbour discovery, nothing on the wire but what is tested.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec

import build
import pytest
from network import NETNS
from process import Process

PREFIX = "sg-lab"
NUMBERS = itertools.count()
# How long things may take that take milliseconds on an idle machine.
SOON = 20.0
# A run of some seconds that takes so long does not end.
LONGEST = 120.0

P = ParamSpec("P")


def program() -> Path:
    """The segue-lab to test."""
    return build.tool("segue-lab")


def real_time(test: Callable[P, None]) -> Callable[P, None]:
    """A test of what happens in real time, which fails if it fails three times, one after the other.

    Programs and the kernel's timers wait for processors, and a virtual machine for its host: a line is then typed
    late, a connection opened after the event. What is wrong in Segue is so every time.
    """

    @functools.wraps(test)
    def attempts(*arguments: P.args, **named: P.kwargs) -> None:
        for attempt in range(2):
            try:
                return test(*arguments, **named)
            except Exception as failed:
                print(f"attempt {attempt}: {failed}", file=sys.stderr)
        return test(*arguments, **named)

    return attempts


def run_at_all(command: list[str], **environment: str) -> dict[str, Any]:
    """What a `segue-lab run` says as JSON, also of one that was too late for its times to say anything (3)."""
    done = subprocess.run(
        [*command, "--json"],
        check=False,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        env=os.environ | environment,
    )
    assert done.returncode in (0, 3), done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["lab"]["emulation"]["too_late"] == (done.returncode == 3)
    return result


def run_in_time(command: list[str], **environment: str) -> dict[str, Any]:
    """What a `segue-lab run` that was in time says as JSON.

    A machine that is too busy (3) says nothing of what is tested: tried three times, and then left out with what it was
    late by. Any other status than 0 fails.
    """
    for attempt in range(3):
        result = run_at_all(command, **environment)
        if not result["lab"]["emulation"]["too_late"]:
            return result
        print(f"attempt {attempt}: packets were too late", file=sys.stderr)
    share = 100 * result["lab"]["emulation"]["share_late"]
    pytest.skip(f"this machine is too busy for a lab: thrice; in the end {share:.1f} % of packets were 1 ms late")


class Namespace:
    """A network namespace for the length of a with block; what is in it goes with it."""

    def __init__(self, letter: str) -> None:
        self.name = f"{PREFIX}-{os.getpid()}-{next(NUMBERS)}{letter}"

    def __enter__(self) -> Namespace:
        remove_abandoned()
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        self.ip("link set lo up")
        # addresses are there when they are added
        for name in ("all", "default"):
            self.sysctl(f"net/ipv6/conf/{name}/accept_dad", "0")
        return self

    def __exit__(self, *_: object) -> None:
        delete(self.name)

    def ip(self, arguments: str) -> None:
        """One call of ip(8) here."""
        subprocess.run(["ip", "-n", self.name, *arguments.split()], check=True, capture_output=True, text=True)

    def sysctl(self, name: str, value: str) -> None:
        """Set a variable of this namespace."""
        command = ["sh", "-c", f"echo {value} > /proc/sys/{name}"]
        subprocess.run(self.command(*command), check=True, capture_output=True)

    def command(self, *arguments: str | Path) -> list[str]:
        """`arguments` as a command that runs here."""
        return ["nsenter", f"--net={NETNS / self.name}", *map(str, arguments)]

    def device_up(self, device: str, *addresses: str, mtu: int = 1500) -> None:
        """Bring a device up with addresses, as `address/length`."""
        self.ip(f"link set {device} mtu {mtu} up")
        for address in addresses:
            self.ip(f"address add {address} dev {device} nodad")


@contextlib.contextmanager
def tun_link(*options: str, capture: Path | None = None) -> Iterator[tuple[Namespace, Namespace, Process]]:
    """Two namespaces, `fd53::a` and `fd53::b`, with a link between that does what `options` say."""
    with contextlib.ExitStack() as stack:
        a, b = (stack.enter_context(Namespace(letter)) for letter in "ab")
        command = [str(program()), "link", "--a", f"{a.name}:link0", "--b", f"{b.name}:link0", *options]
        if capture is not None:
            command += ["--pcap", str(capture)]
        link = stack.enter_context(Process(command, "link"))
        link.wait_for("ready", timeout=SOON)
        for letter, host in (("a", a), ("b", b)):
            host.device_up("link0", f"fd53::{letter}/64")
        yield a, b, link


def kernel_peer(host: Namespace, *arguments: str) -> Process:
    """The kernel's TCP in `host`."""
    return Process(host.command(build.program("tcp_peer"), *arguments), f"kernel in {host.name}")


def delete(name: str) -> None:
    """Remove a namespace; the devices in it go with it."""
    subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def remove_abandoned() -> None:
    """Remove the namespaces of test runs that no longer exist."""
    if not NETNS.is_dir():
        return
    for entry in NETNS.iterdir():
        match = re.fullmatch(rf"{PREFIX}-(\d+)-\d+[a-z]+", entry.name)
        if match is not None and not Path("/proc", match[1]).exists():
            delete(entry.name)

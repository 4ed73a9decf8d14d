"""A WireGuard tunnel between two hosts: wireguard-go, which runs in user space, set up by wg(8)."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lab
import roaming

PORT = 51820
KEEPALIVE_S = 1
SOCKETS = Path("/var/run/wireguard")
# Ahead of the programs at the tunnel's ends, so that these wait for packets and not for the tunnel to get its turn.
PRIORITY = "20"


def missing() -> str | None:
    """Why there is no tunnel here; None if there is."""
    programs = {"wireguard-go": "wireguard-go", "wg": "wireguard-tools", "chrt": "util-linux", "setpriv": "util-linux"}
    for program, package in programs.items():
        if shutil.which(program) is None:
            return f"{program} is missing (Debian package {package}): no roaming WireGuard peer"
    return None


@contextlib.contextmanager
def tunnel(mobile: lab.Namespace, correspondent: lab.Namespace, folder: Path) -> Iterator[tuple[str, str]]:
    """A tunnel, once both ends have shaken hands; gives the addresses within it, the mobile host's first."""
    # The sockets that the implementation is configured by lie in one directory for all namespaces.
    names = [f"sg{letter}{os.getpid()}" for letter in "mc"]
    keys = [wg("genkey") for _ in names]
    public = [wg("pubkey", stdin=key) for key in keys]
    hosts = (mobile, correspondent)
    addresses = ("fd53:77::1", "fd53:77::2")
    with contextlib.ExitStack() as stack:
        for name, host in zip(names, hosts, strict=True):
            # It ends with the tests, however these end.
            command = host.command("setpriv", "--pdeathsig", "KILL", "chrt", "-f", PRIORITY, "wireguard-go", "-f", name)
            program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback((SOCKETS / f"{name}.sock").unlink, missing_ok=True)
            stack.callback(program.wait)
            stack.callback(program.terminate)
        for name in names:
            wait_until((SOCKETS / f"{name}.sock").exists, f"{name} to be there")
        # The mobile host last: it begins with a handshake, and an end that is not there yet would cost it 5 s.
        for index in (1, 0):
            key = folder / f"key{index}"
            key.write_text(keys[index])
            peer = ["peer", public[1 - index], "allowed-ips", "::/0"]
            if index == 0:
                peer += ["endpoint", f"[{roaming.CORRESPONDENT}]:{PORT}", "persistent-keepalive", str(KEEPALIVE_S)]
            host, name = hosts[index], names[index]
            setting = ["wg", "set", name, "listen-port", str(PORT), "private-key", str(key), *peer]
            subprocess.run(host.command(*setting), check=True)
            host.device_up(name, f"{addresses[index]}/64", mtu=1420)
        wait_until(lambda: handshake(mobile, names[0]), "the handshake")
        yield addresses


def wg(command: str, stdin: str = "") -> str:
    """What a command of wg(8) prints."""
    return subprocess.run(["wg", command], input=stdin, check=True, capture_output=True, text=True).stdout.strip()


def handshake(host: lab.Namespace, name: str) -> bool:
    """Whether there was one."""
    command = host.command("wg", "show", name, "latest-handshakes")
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return bool(said) and said[-1] != "0"


def wait_until(there: Callable[[], bool], what: str) -> None:
    """Wait for something that takes milliseconds on an idle machine."""
    deadline = time.monotonic() + lab.SOON
    while not there():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)

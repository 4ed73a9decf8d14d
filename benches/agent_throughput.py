"""One TCP stream between two hosts: the agent's ILNPv6 beside plain veth and wireguard-go, in one run.

    python benches/agent_throughput.py SEGUE_AGENT [--repeat 7] [--seconds 3]

Two network namespaces joined by a veth pair, iperf3 between them, in turn over each; medians. Left out, with the
reason, without root or iperf3; so is what is not installed (Debian packages wireguard-go, wireguard-tools). Standard
library only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ENDS = ("a", "b")
NAMES = {end: f"sg-bench-{os.getpid()}-{end}" for end in ENDS}
PLAIN = {"a": "2001:db8:1::7", "b": "2001:db8:1::8"}
NIDS = {"a": "2aa:0:0:1", "b": "2aa:0:0:2"}
IDENTITY = "fd53:6567:7565:1:2aa::2"
TUNNEL = {"a": "fd53:77::1", "b": "fd53:77::2"}
SETTLED_S = 5.0


def inside(end: str, *command: str) -> list[str]:
    """A command in the namespace of an end."""
    return ["ip", "netns", "exec", NAMES[end], *command]


def do(*command: str, text: str | None = None) -> str:
    """What a command prints."""
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def network() -> Iterator[None]:
    """The two hosts."""
    try:
        for end in ENDS:
            do("ip", "netns", "add", NAMES[end])
        do("ip", "-n", NAMES["a"], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", NAMES["b"])
        for end in ENDS:
            do("ip", "-n", NAMES[end], "link", "set", "lo", "up")
            do("ip", "-n", NAMES[end], "link", "set", "eth0", "up")
            do("ip", "-n", NAMES[end], "address", "add", f"{PLAIN[end]}/64", "dev", "eth0", "nodad")
        yield
    finally:
        for end in ENDS:
            subprocess.run(["ip", "netns", "delete", NAMES[end]], check=False, capture_output=True)


@contextlib.contextmanager
def running(*command: str) -> Iterator[None]:
    """A program for the length of a with block."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        try:
            yield
        finally:
            program.terminate()


@contextlib.contextmanager
def agents(program: str, folder: Path) -> Iterator[None]:
    """An agent on each host, with the other in its table."""
    with contextlib.ExitStack() as stack:
        for end, other in (ENDS, ENDS[::-1]):
            file = folder / f"{end}.toml"
            file.write_text(
                f'[agent]\ninterfaces = ["eth0"]\nsocket = "{folder}/{end}.sock"\n[ilnp]\nnid = "{NIDS[end]}"\n'
                f'[[ilnp.peers]]\nnid = "{NIDS[other]}"\nlocators = ["2001:db8:1:0"]\n'
            )
            stack.enter_context(running(*inside(end, program, "run", str(file))))
        time.sleep(SETTLED_S)
        yield


@contextlib.contextmanager
def wireguard(folder: Path) -> Iterator[None]:
    """A tunnel by wireguard-go."""
    keys = {end: do("wg", "genkey").strip() for end in ENDS}
    public = {end: do("wg", "pubkey", text=keys[end]).strip() for end in ENDS}
    with contextlib.ExitStack() as stack:
        for end, other in (ENDS, ENDS[::-1]):
            device = f"sgb{os.getpid()}{end}"
            stack.enter_context(running(*inside(end, "wireguard-go", "-f", device)))
            time.sleep(1)
            key = folder / f"key-{end}"
            key.write_text(keys[end])
            peer = ["peer", public[other], "allowed-ips", "::/0", "endpoint", f"[{PLAIN[other]}]:51820"]
            do(*inside(end, "wg", "set", device, "listen-port", "51820", "private-key", str(key), *peer))
            do("ip", "-n", NAMES[end], "link", "set", device, "mtu", "1420", "up")
            do("ip", "-n", NAMES[end], "address", "add", f"{TUNNEL[end]}/64", "dev", device, "nodad")
        time.sleep(SETTLED_S)
        yield


def measure(to: str, seconds: int) -> float:
    """What iperf3 got through, bits in a second."""
    said = json.loads(do(*inside("a", "iperf3", "-c", to, "-t", str(seconds), "--json")))
    return float(said["end"]["sum_received"]["bits_per_second"])


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agent", metavar="SEGUE_AGENT")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("iperf3") is None:
        print("the agent's throughput: left out: it needs root and iperf3 (Debian package iperf3)")
        return 0
    ways = {"plain veth": PLAIN["b"], "segue-agent, ILNPv6": IDENTITY}
    with tempfile.TemporaryDirectory(prefix="segue-bench-") as made, network(), contextlib.ExitStack() as stack:
        folder = Path(made)
        stack.enter_context(agents(str(Path(options.agent).resolve()), folder))
        if shutil.which("wireguard-go") and shutil.which("wg"):
            stack.enter_context(wireguard(folder))
            ways["wireguard-go"] = TUNNEL["b"]
        stack.enter_context(running(*inside("b", "iperf3", "-s")))
        time.sleep(1)
        rates: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(options.repeat):
            for way, to in ways.items():
                rates[way].append(measure(to, options.seconds))
    plain = statistics.median(rates["plain veth"])
    print(f"one TCP stream, {options.seconds} s, medians of {options.repeat}:")
    for way, found in rates.items():
        median = statistics.median(found)
        print(
            f"  {way:20} {median / 1e9:6.2f} Gbit/s ({min(found) / 1e9:.2f} to {max(found) / 1e9:.2f}),"
            f" {median / plain:.2f} of plain veth"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""One TCP stream between two hosts: the agent's ILNPv6, by its fast path and by its device alone, beside plain veth,
wireguard-go and boringtun, in one run; and what is not the agent's, while it runs and while it does not.

    python benches/agent_throughput.py SEGUE_AGENT [--repeat 7] [--seconds 3]

Two network namespaces joined by a veth pair, iperf3 between them, in turn over each; medians. Left out, with the
reason, without root or iperf3; so is what is not installed (Debian packages wireguard-go, wireguard-tools; `cargo
install boringtun-cli`). Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from agent_hosts import ENDS, IDENTITIES, NAMES, PLAIN, SETTLED_S, agents, do, inside, network, running

# The arguments of each, in front of the name of a device; the prefix in its tunnel, and its port.
TUNNELS = {
    "wireguard-go": (["-f"], "fd53:77", 51820),
    "boringtun-cli": (["--foreground", "--disable-drop-privileges"], "fd53:78", 51821),
}
FAST, BY_TUN = "segue-agent, ILNPv6", "the same, by TUN"


@contextlib.contextmanager
def wireguard(program: str, folder: Path) -> Iterator[str]:
    """A tunnel by one of these; gives the address of its other end."""
    arguments, prefix, port = TUNNELS[program]
    addresses = dict(zip(ENDS, (f"{prefix}::1", f"{prefix}::2"), strict=True))
    keys = {end: do("wg", "genkey").strip() for end in ENDS}
    public = {end: do("wg", "pubkey", text=keys[end]).strip() for end in ENDS}
    with contextlib.ExitStack() as stack:
        for end, other in (ENDS, ENDS[::-1]):
            device = f"{program[0]}{os.getpid()}{end}"
            stack.enter_context(running(*inside(end, program, *arguments, device)))
            time.sleep(1)
            key = folder / f"key-{end}"
            key.write_text(keys[end])
            peer = ["peer", public[other], "allowed-ips", "::/0", "endpoint", f"[{PLAIN[other]}]:{port}"]
            do(*inside(end, "wg", "set", device, "listen-port", str(port), "private-key", str(key), *peer))
            do("ip", "-n", NAMES[end], "link", "set", device, "mtu", "1420", "up")
            do("ip", "-n", NAMES[end], "address", "add", f"{addresses[end]}/64", "dev", device, "nodad")
        time.sleep(SETTLED_S)
        yield addresses["b"]


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
    ways = {"plain veth": PLAIN["b"], FAST: IDENTITIES["b"]}
    without: list[float] = []
    with tempfile.TemporaryDirectory(prefix="segue-bench-") as made, network(), contextlib.ExitStack() as stack:
        folder = Path(made)
        stack.enter_context(running(*inside("b", "iperf3", "-s")))
        time.sleep(1)
        for tunnel in TUNNELS:
            if shutil.which(tunnel) and shutil.which("wg"):
                ways[tunnel] = stack.enter_context(wireguard(tunnel, folder))
        rates: dict[str, list[float]] = {way: [] for way in (*ways, BY_TUN)}
        program = str(Path(options.agent).resolve())
        # the agents end and begin again each time, so that what is compared is of the same moment
        for _ in range(options.repeat):
            without.append(measure(PLAIN["b"], options.seconds))
            with agents(program, folder):
                for way, to in ways.items():
                    rates[way].append(measure(to, options.seconds))
            time.sleep(1)
            with agents(program, folder, fast_path=False):
                rates[BY_TUN].append(measure(ways[FAST], options.seconds))
            time.sleep(1)
    plain = statistics.median(rates["plain veth"])
    print(f"one TCP stream, {options.seconds} s, medians of {options.repeat}:")
    for way, found in {"plain veth, no agent": without, **rates}.items():
        median = statistics.median(found)
        print(
            f"  {way:20} {median / 1e9:6.2f} Gbit/s ({min(found) / 1e9:.2f} to {max(found) / 1e9:.2f}),"
            f" {median / plain:.2f} of plain veth"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

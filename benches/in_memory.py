#!/usr/bin/env python3
"""What SCTP alone costs: 1 GB between two endpoints in one process, of Segue, dcsctp and sctp-proto (of str0m).

There are no sockets: packets are bytes in a queue, and time is virtual (benches/in_memory). Each run is a process of
its own, and all stacks are given the same: messages of 1,200 bytes, packets of at most 1,232 (IPv6 of 1,280 bytes
less IPv6 and UDP headers), a receive buffer of 1 MiB, a send buffer of 2 MB, one stream, ordered; CRC32c worked out
and checked by both ends; a delay of 0.2 or of 10 ms each way; nothing lost, or 1 % of all packets, chosen by the same
generator. An end gets one packet at a time and is then asked for what it has to send. Everything else is what each
stack has by itself.

dcsctp formats every packet that it sends or gets, as hexadecimal digits, before it asks its log whether that is on. So
it is measured twice: as it is on crates.io, and ("quiet") with this put into its `log_packet` when it is built:

    if !log::log_enabled!(log::Level::Info) { return; }

CPU time is that of the process, allocations are those while data moves, and the peak is what of them was allocated at
once, packets on their way among it. Medians are quoted where there are several runs. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "benches" / "in_memory" / "Cargo.toml"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "in-memory"
PROGRAM = "segue-in-memory"
LOG_PACKET = "pub fn log_packet(name: &str, ts: SocketTime, sent: bool, data: &[u8]) {\n"
QUIET = "        if !log::log_enabled!(log::Level::Info) {\n            return;\n        }\n"
DELAYS_MS = (0.2, 10)
LOSSES = (0, 1)


class BenchError(Exception):
    """Something did not build, or did not run."""


@dataclass(frozen=True)
class Stack:
    """An implementation."""

    title: str
    name: str
    program: Path


@dataclass(frozen=True)
class Cost:
    """What one run cost, for each gigabyte of user data."""

    cpu_s: float
    allocations: float
    peak_bytes: float
    packets: float


def build(*options: str) -> Path:
    """Builds the program; gives where it is."""
    command = ["cargo", "build", "--release", "--manifest-path", str(MANIFEST), "--target-dir", str(TARGET), *options]
    if subprocess.run(command, check=False).returncode:
        raise BenchError(f"cannot build: {' '.join(command)}")
    return TARGET / "release" / PROGRAM


def quiet_dcsctp() -> Path:
    """A copy of dcsctp's sources that formats nothing where the log is off."""
    command = ["cargo", "metadata", "--format-version", "1", "--manifest-path", str(MANIFEST)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        raise BenchError(f"cargo metadata: {found.stderr}")
    packages = json.loads(found.stdout)["packages"]
    source = next(Path(p["manifest_path"]).parent for p in packages if p["name"] == "dcsctp")
    copy = TARGET / "dcsctp-quiet"
    if source != copy:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy)
    library = copy / "src" / "lib.rs"
    text = library.read_text(encoding="utf-8")
    if QUIET not in text:
        if text.count(LOG_PACKET) != 1:
            raise BenchError("dcsctp has another log_packet than this script knows")
        library.write_text(text.replace(LOG_PACKET, LOG_PACKET + QUIET), encoding="utf-8")
    return copy


def stacks() -> list[Stack]:
    """Builds all of them."""
    quiet = quiet_dcsctp()
    programs = TARGET / "programs"
    programs.mkdir(parents=True, exist_ok=True)
    patched, plain = programs / "quiet", programs / "plain"
    shutil.copy2(build("--config", f"patch.crates-io.dcsctp.path={str(quiet)!r}"), patched)
    shutil.copy2(build(), plain)
    return [
        Stack("Segue", "segue", plain),
        Stack("dcsctp", "dcsctp", plain),
        Stack("dcsctp, quiet", "dcsctp", patched),
        Stack("sctp-proto", "sctp-proto", plain),
    ]


def run(stack: Stack, delay_ms: float, loss: int, size: float) -> Cost:
    """One run."""
    command = [str(stack.program), stack.name, str(delay_ms), str(loss), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{stack.title}: {done.stderr.strip()}")
    result = json.loads(done.stdout)
    gigabytes = result["bytes"] / 1e9
    return Cost(
        result["cpu_s"] / gigabytes,
        result["allocations"] / gigabytes,
        result["peak_bytes"],
        result["packets"] / gigabytes,
    )


def median(costs: list[Cost]) -> Cost:
    """Of each number by itself."""
    return Cost(*(statistics.median(values) for values in zip(*(vars(cost).values() for cost in costs), strict=True)))


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=float, default=1e9, help="user data of a run (default: %(default)g)")
    parser.add_argument("--runs", type=int, default=1, help="runs of each (default: %(default)s)")
    options = parser.parse_args()
    try:
        built = stacks()
        heading = f"{'':15}{'CPU s/GB':>10}{'MB/s of CPU':>13}{'allocations/GB':>16}{'peak MB':>9}{'packets/GB':>12}"
        for loss in LOSSES:
            for delay in DELAYS_MS:
                print(f"\n{delay} ms each way, {f'{loss} % lost' if loss else 'nothing lost'}\n{heading}", flush=True)
                costs: dict[Stack, list[Cost]] = {stack: [] for stack in built}
                for _ in range(options.runs):
                    for stack in built:
                        costs[stack].append(run(stack, delay, loss, options.bytes))
                for stack, found in costs.items():
                    cost = median(found)
                    print(
                        f"{stack.title:15}{cost.cpu_s:10.2f}{1000 / cost.cpu_s:13.0f}{cost.allocations:16,.0f}"
                        f"{cost.peak_bytes / 1e6:9.1f}{cost.packets:12,.0f}",
                        flush=True,
                    )
    except BenchError as error:
        print(f"in_memory: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

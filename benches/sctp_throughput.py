#!/usr/bin/env python3
"""One SCTP association in UDP over the loopback interface: bytes per second of Segue and of libusrsctp.

What each side is given: one association between two processes on ::1, messages of 1424 bytes (one fills a packet of
1500 bytes: IPv6 40, UDP 8, SCTP 12, DATA 16), path MTU 1500 bytes, 1 MiB of send and of receive buffer, Max.Burst 4,
a SACK for every second packet, CRC32c worked out and checked on both ends (usrsctp leaves it out on loopback by
default: that is switched off), one stream, ordered. Segue asks the kernel for 4 MiB of socket buffer and uses UDP
segmentation offload in both directions; libusrsctp sets up its UDP sockets itself and has no such thing.

All four pairs of sender and receiver are run in turn, several times; what the receiver counted is divided by the
time from its first message to its last, and medians are quoted. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEER_SOURCE = HERE / "peers" / "usrsctp_bulk.c"

MESSAGE = 1424
MTU = 1500
BUFFER = 1 << 20
PORT = 6001
RECEIVER_UDP = 9910
SENDER_UDP = 9911


class BenchError(Exception):
    """A side did not run, or did not do what it was asked."""


@dataclass
class Stack:
    """An implementation: how its two ends are started, and how its receiver's output is read."""

    name: str
    receive: list[str]
    send: Callable[[float], list[str]]
    read: Callable[[str], tuple[int, float]]


def segue(program: str) -> Stack:
    """Segue's `segue-sctp`."""
    common = ["--json", "--address", "::1", "--mtu", f"{MTU} B"]
    common += ["--send-buffer", f"{BUFFER} B", "--receive-buffer", f"{BUFFER} B"]

    def send(seconds: float) -> list[str]:
        ports = ["--local-port", str(PORT + 1), "--udp-port", str(SENDER_UDP), "--remote-udp-port", str(RECEIVER_UDP)]
        bulk = ["--bytes", "1000 GB", "--size", f"{MESSAGE} B", "--duration", f"{seconds} s"]
        return [program, "connect", "::1", str(PORT), *ports, *bulk, *common]

    def read(output: str) -> tuple[int, float]:
        events = [json.loads(line) for line in output.splitlines()]
        summary = next((event for event in events if event["event"] == "summary"), None)
        if summary is None or summary["first_received_ns"] is None:
            raise BenchError("Segue received nothing")
        time_ns = summary["last_received_ns"] - summary["first_received_ns"]
        return summary["received_bytes"], time_ns / 1e9

    receive = [program, "listen", "--once", "--port", str(PORT), "--udp-port", str(RECEIVER_UDP), *common]
    return Stack("segue", receive, send, read)


def usrsctp(directory: Path) -> Stack | None:
    """libusrsctp's, compiled here; None if it cannot be."""
    program = directory / "usrsctp_bulk"
    compiler = shutil.which("cc")
    if compiler is None:
        print("SKIPPED: no C compiler, so there is nothing to compare with\n")
        return None
    built = subprocess.run(
        [compiler, "-O2", "-o", str(program), str(PEER_SOURCE), "-lusrsctp", "-lpthread"],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        print(
            "SKIPPED: libusrsctp (Debian package libusrsctp-dev) cannot be linked: there is nothing to compare with\n"
        )
        return None

    def send(seconds: float) -> list[str]:
        numbers = [RECEIVER_UDP, SENDER_UDP, PORT, MESSAGE, MTU, BUFFER, max(1, round(seconds))]
        return [str(program), "send", *map(str, numbers)]

    def read(output: str) -> tuple[int, float]:
        count, seconds = output.split()
        return int(count), float(seconds)

    receive = [str(program), "receive", *map(str, [RECEIVER_UDP, PORT, MTU, BUFFER])]
    return Stack("usrsctp", receive, send, read)


def run_pair(sender: Stack, receiver: Stack, seconds: float) -> float:
    """One transfer; bytes per second."""
    limit = 3 * seconds + 30
    with subprocess.Popen(receiver.receive, stdout=subprocess.PIPE, text=True) as receiving:
        try:
            time.sleep(0.3)
            sending = subprocess.run(sender.send(seconds), stdout=subprocess.DEVNULL, timeout=limit, check=False)
            if sending.returncode != 0:
                raise BenchError(f"{sender.name} to {receiver.name}: the sender's exit status is {sending.returncode}")
            output, _ = receiving.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise BenchError(f"{sender.name} to {receiver.name} does not end") from None
        finally:
            receiving.kill()
    if receiving.returncode != 0:
        raise BenchError(f"{sender.name} to {receiver.name}: the receiver's exit status is {receiving.returncode}")
    count, elapsed = receiver.read(output)
    if elapsed < seconds / 2:
        raise BenchError(f"{sender.name} to {receiver.name}: data for {elapsed:.1f} s only")
    return count / elapsed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("program", help="segue-sctp, built in release")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a transfer (default 5)")
    parser.add_argument("--repetitions", type=int, default=3, help="transfers of each pair (default 3)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        ours, theirs = segue(arguments.program), usrsctp(Path(directory))
        stacks = [ours] if theirs is None else [ours, theirs]
        pairs = [(sender, receiver) for sender in stacks for receiver in stacks]
        rates: dict[tuple[str, str], list[float]] = {(s.name, r.name): [] for s, r in pairs}
        for _ in range(arguments.repetitions):
            for sender, receiver in pairs:
                rates[sender.name, receiver.name].append(run_pair(sender, receiver, arguments.seconds))
    print(f"One SCTP association in UDP on ::1: messages of {MESSAGE} B, MTU {MTU} B, {BUFFER >> 20} MiB of buffer,")
    print(f"CRC32c on; {arguments.seconds:g} s a transfer, medians of {arguments.repetitions}, smallest .. largest.\n")
    median = {pair: statistics.median(values) for pair, values in rates.items()}
    for (sender_name, receiver_name), values in rates.items():
        label = f"{sender_name} to {receiver_name}"
        spread = f"({min(values) / 1e6:.1f} .. {max(values) / 1e6:.1f})"
        print(f"{label:<20} {median[sender_name, receiver_name] / 1e6:8.1f} MB/s  {spread}")
    if theirs is not None:
        ratio = median["segue", "segue"] / median["usrsctp", "usrsctp"]
        print(f"\nsegue to segue / usrsctp to usrsctp: {ratio:.2f}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"sctp_throughput: {error}")

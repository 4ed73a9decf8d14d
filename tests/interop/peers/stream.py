"""A steady stream over a kernel's transport, and what the program at its end sees of it.

    stream.py receive tcp|mptcp|udp ADDRESS PORT LOG
    stream.py send    tcp|mptcp|udp ADDRESS PORT SECONDS

The receiver logs, a line per read, when the read returned and when the kernel took in the packet that ended the wait
for it (SO_TIMESTAMPNS), both in ns of CLOCK_REALTIME, and how many bytes there were. `--connect` says which end calls;
the other listens. Standard library only, and no module of the tests: it runs in processes of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import struct
import time
from pathlib import Path

MPTCP = 262
SO_TIMESTAMPNS = 35
BYTES = 1200
PACE_S = 0.002
# A program that waits for a processor is late; a real-time priority keeps that short.
PRIORITY = 10
LISTENING: list[socket.socket] = []


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("receive", "send"))
    parser.add_argument("transport", choices=("tcp", "mptcp", "udp"))
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("rest", help="the log of a receiver, the seconds of a sender")
    parser.add_argument("--connect", action="store_true", help="call the other end instead of listening")
    parser.add_argument("--source", help="the address to call from")
    options = parser.parse_args()
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    with opened(options) as connection:
        say("connected")
        if options.role == "receive":
            receive(connection, Path(options.rest))
        else:
            send(connection, float(options.rest), datagrams=options.transport == "udp")
    say("ended")


def opened(options: argparse.Namespace) -> socket.socket:
    """The socket that data goes over."""
    if options.transport == "udp":
        made = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        stamped(made)
        if options.connect:
            made.connect((options.address, options.port))
        else:
            made.bind((options.address, options.port))
        return made
    protocol = MPTCP if options.transport == "mptcp" else socket.IPPROTO_TCP
    made = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, protocol)
    stamped(made)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if options.connect:
        if options.source:
            made.bind((options.source, 0))
        made.connect((options.address, options.port))
        return made
    made.bind((options.address, options.port))
    made.listen()
    say("listening")
    connection, _ = made.accept()
    # Linux takes an MP_JOIN (RFC 8684 section 3.2) only while somebody listens on the port.
    LISTENING.append(made)
    stamped(connection)
    return connection


def stamped(made: socket.socket) -> None:
    """Ask for the kernel's times of arrival."""
    made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)


def receive(connection: socket.socket, log: Path) -> None:
    """Read until the stream ends, or a datagram says so, and write the log.

    No more than a message at a time: the kernel's time is that of the last packet that a read takes from.
    """
    lines = []
    while True:
        data, ancillary, _, _ = connection.recvmsg(BYTES, 256)
        now = time.clock_gettime_ns(time.CLOCK_REALTIME)
        if not data or data == b"end":
            break
        stamp = 0
        for level, kind, value in ancillary:
            if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                seconds, nanoseconds = struct.unpack("@ll", value[:16])
                stamp = seconds * 1_000_000_000 + nanoseconds
        lines.append(f"{now} {stamp} {len(data)}\n")
    log.write_text("".join(lines))


def send(connection: socket.socket, seconds: float, *, datagrams: bool) -> None:
    """Send at an even pace; what a transport does not take in time is sent when it does."""
    begin = time.monotonic()
    sent = 0
    with contextlib.suppress(ConnectionRefusedError):
        while (elapsed := time.monotonic() - begin) < seconds:
            while sent < elapsed / PACE_S:
                if datagrams:
                    with contextlib.suppress(OSError):
                        connection.send(sent.to_bytes(8, "big") * (BYTES // 8))
                else:
                    connection.sendall(bytes(BYTES))
                sent += 1
            time.sleep(PACE_S)
        if datagrams:
            for _ in range(5):
                connection.send(b"end")
                time.sleep(0.05)


def say(what: str) -> None:
    """A line of the log that the tests wait for."""
    print(time.monotonic_ns(), what, flush=True)


if __name__ == "__main__":
    main()

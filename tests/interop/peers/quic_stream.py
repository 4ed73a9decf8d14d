"""A steady flow of QUIC datagrams (RFC 9221) by aioquic, to a client that goes on from another address.

    quic_stream.py send    ADDRESS PORT SECONDS
    quic_stream.py receive ADDRESS PORT LOG --source ADDRESS

The receiver is the client. A line "move ADDRESS" on its standard input makes it go on from there, with the connection
IDs that it has, as when a NAT or its network rebinds it (RFC 9000 section 9). Its log is that of `stream.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import socket
import struct
import sys
import time
from pathlib import Path

from aioquic._buffer import Buffer
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, DatagramFrameReceived, HandshakeCompleted
from aioquic.quic.packet import pull_quic_header
from stream import BYTES, PACE_S, PRIORITY, SO_TIMESTAMPNS, say, stamped

from segue.programs.quic import CONNECTION_ID_BYTES, configuration

PAYLOAD = 1000


class Endpoint:
    """A connection, the socket under it, and the loop that serves both."""

    def __init__(self, connection: QuicConnection | None, made: socket.socket) -> None:
        self.connection = connection
        self.socket = made
        self.lines: list[str] = []
        self.ready = self.ended = False

    def move(self, address: str) -> None:
        """Go on from another address."""
        assert self.connection is not None
        self.socket.close()
        self.socket = bound(address, 0)
        self.connection.send_ping(1)

    def turn(self, until: float) -> None:
        """Send what there is, wait for packets, a timer or a command until then, and deal with it."""
        now = time.monotonic()
        if self.connection is not None:
            for data, address in self.connection.datagrams_to_send(now):
                # A link that is gone: what is sent there is lost.
                with contextlib.suppress(OSError):
                    self.socket.sendto(data, address)
            timer = self.connection.get_timer()
            until = min(until, timer) if timer is not None else until
        waiting = (
            [self.socket] if self.connection is None or not self.connection._is_client else [self.socket, sys.stdin]
        )
        readable, _, _ = select.select(waiting, [], [], max(until - time.monotonic(), 0))
        if sys.stdin in readable:
            self.move(sys.stdin.readline().split()[1])
        elif readable:
            self.receive()
        now = time.monotonic()
        if self.connection is not None and (timer := self.connection.get_timer()) is not None and timer <= now:
            self.connection.handle_timer(now)
        self.handle_events(0)

    def receive(self) -> None:
        """One packet."""
        try:
            data, ancillary, _, address = self.socket.recvmsg(4096, 256)
        except OSError:
            return
        stamp = 0
        for level, kind, value in ancillary:
            if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                seconds, nanoseconds = struct.unpack("@ll", value[:16])
                stamp = seconds * 1_000_000_000 + nanoseconds
        if self.connection is None:
            header = pull_quic_header(Buffer(data=data), host_cid_length=CONNECTION_ID_BYTES)
            self.connection = QuicConnection(
                configuration=configuration(is_client=False, datagram_bytes=BYTES),
                original_destination_connection_id=header.destination_cid,
            )
        self.connection.receive_datagram(data, address, time.monotonic())
        self.handle_events(stamp)

    def handle_events(self, stamp: int) -> None:
        """What the connection has to say."""
        if self.connection is None:
            return
        while (event := self.connection.next_event()) is not None:
            if isinstance(event, HandshakeCompleted):
                self.ready = True
            elif isinstance(event, ConnectionTerminated):
                self.ended = True
            elif isinstance(event, DatagramFrameReceived):
                self.lines.append(f"{time.clock_gettime_ns(time.CLOCK_REALTIME)} {stamp} {len(event.data)}\n")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=("receive", "send"))
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("rest", help="the log of a receiver, the seconds of a sender")
    parser.add_argument("--source", default="::")
    options = parser.parse_args()
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    if options.role == "send":
        send(Endpoint(None, bound(options.address, options.port)), float(options.rest))
    else:
        connection = QuicConnection(configuration=configuration(is_client=True, datagram_bytes=BYTES))
        connection.connect((options.address, options.port, 0, 0), time.monotonic())
        receive(Endpoint(connection, bound(options.source, 0)), Path(options.rest))
    say("ended")


def send(endpoint: Endpoint, seconds: float) -> None:
    """Datagrams at an even pace from the handshake on, then the end of the connection."""
    say("listening")
    while not endpoint.ready:
        endpoint.turn(time.monotonic() + 1)
    say("connected")
    assert endpoint.connection is not None
    begin, sent = time.monotonic(), 0
    while (elapsed := time.monotonic() - begin) < seconds:
        while sent < elapsed / PACE_S:
            # A window that is full costs datagrams, not time.
            if len(endpoint.connection._datagrams_pending) < 4:
                endpoint.connection.send_datagram_frame(bytes(PAYLOAD))
            sent += 1
        endpoint.turn(begin + (sent + 1) * PACE_S)
    endpoint.connection.close()
    endpoint.turn(time.monotonic() + PACE_S)


def receive(endpoint: Endpoint, log: Path) -> None:
    """Log datagrams until the connection ends."""
    while not endpoint.ended:
        if endpoint.ready:
            say("connected")
            endpoint.ready = False
        endpoint.turn(time.monotonic() + 1)
    log.write_text("".join(endpoint.lines))


def bound(address: str, port: int) -> socket.socket:
    """A socket at an address."""
    made = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    stamped(made)
    made.bind((address, port))
    return made


if __name__ == "__main__":
    main()

"""One end of an application of a scenario over QUIC, by aioquic (extra `quic`): `python -m segue.programs.quic`.

Its options, its signals and the line that it ends with are those of `segue-lab app`. Streams take the place of TCP, and
datagrams (RFC 9221) that of UDP. The client migrates (RFC 9000 section 9): when the address changes that its kernel
would send from, it goes on from there with another connection ID.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import select
import signal
import socket
import ssl
import sys
import time
from dataclasses import dataclass, field

from aioquic._buffer import Buffer
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, DatagramFrameReceived, HandshakeCompleted, StreamDataReceived
from aioquic.quic.packet import QuicHeader, QuicPacketType, pull_quic_header
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

PROTOCOL = "segue"
CONNECTION_ID_BYTES = 8
DATAGRAM_FRAME_BYTES = 65535
STREAM = 0
"""The client opens it by one byte, so that either end can send."""
HELLO = b"\0"
TOGETHER_NS = 1_000_000
LONGEST_NS = 10_000_000
"""As `segue-lab app` has them: how close reads are that are one burst, and how long one is at most."""
CHUNK = 1 << 16
SMALLEST_INITIAL = 1200
BUFFERED = 1 << 18
"""Bytes that a sender without a pace has waiting, at most."""
PATTERN = bytes(range(251)) * 600
AGAIN_S = 0.2
RTMGRP_IPV6_IFADDR = 0x100
RTMGRP_IPV6_ROUTE = 0x400


@dataclass
class Account:
    """What an end has done.

    Attributes:
        bursts: First and last time, in nanoseconds of the monotonic clock, and bytes.
    """

    sent: int = 0
    received: int = 0
    wrong: int = 0
    answers: int = 0
    bursts: list[list[int]] = field(default_factory=list)
    failed: str | None = None

    def read(self, data: bytes) -> None:
        """Data of a stream has come, the next in order."""
        for at in range(0, len(data), CHUNK):
            piece = data[at : at + CHUNK]
            begin = (self.received + at) % 251
            if PATTERN[begin : begin + len(piece)] != piece:
                self.wrong += len(piece)
        self.note(len(data))

    def note(self, count: int) -> None:
        """So many bytes have come."""
        now = time.monotonic_ns()
        self.received += count
        if self.bursts and now - self.bursts[-1][1] < TOGETHER_NS and now - self.bursts[-1][0] < LONGEST_NS:
            self.bursts[-1][1] = now
            self.bursts[-1][2] += count
        else:
            self.bursts.append([now, now, count])

    def line(self) -> str:
        """As `segue-lab app` ends."""
        gaps = [later[0] - earlier[1] for earlier, later in zip(self.bursts, self.bursts[1:], strict=False)]
        return json.dumps(
            {
                "event": "app",
                "time_ns": time.monotonic_ns(),
                "sent_bytes": self.sent,
                "received_bytes": self.received,
                "wrong_bytes": self.wrong,
                "answers": self.answers,
                "longest_gap_ns": max(gaps, default=0),
                "reads": self.bursts,
                "failed": self.failed,
            }
        )


class End:
    """A connection, the socket under it, and what is done over it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.account = Account()
        self.socket = bound(options.listen or options.from_port)
        self.connection: QuicConnection | None = None
        self.is_ready = self.has_ended = self.stopped = False
        self.begin_s = 0.0
        self.messages = 0
        self.waiting = 0
        self.greeted = False

    def run(self) -> None:
        """Until the work is done, the peer has gone, or somebody asks it to stop."""
        watch = None
        if self.options.connect:
            watch = watched_addresses()
            self.connect()
        while not (self.stopped or self.has_ended):
            until = time.monotonic() + AGAIN_S
            if self.is_ready:
                until = min(until, self.work())
            self.turn(until, watch)
        if self.connection is not None:
            self.connection.close()
            self.flush()

    def connect(self) -> None:
        """Begins the handshake."""
        host, port = self.options.connect
        self.peer = (host, port, 0, 0)
        self.source = source_towards(self.peer)
        self.connection = QuicConnection(configuration=configuration(is_client=True))
        self.connection.connect(self.peer, time.monotonic())

    def work(self) -> float:
        """Sends what is due; gives when something is due next."""
        options, connection = self.options, self.connection
        assert connection is not None
        now = time.monotonic()
        if options.ask and self.waiting == 0:
            self.write(options.message)
            self.waiting = options.response
        if not options.send:
            return now + AGAIN_S
        limit = options.size if options.size is not None else sys.maxsize
        if options.rate is None:
            # aioquic does not say how much waits to be sent
            while self.account.sent < limit and len(connection._streams[STREAM].sender._buffer) < BUFFERED:
                self.write(min(CHUNK, limit - self.account.sent))
            self.end_at(limit)
            return now + 0.001
        interval = options.message * 8 / options.rate
        while self.account.sent < limit and self.begin_s + self.messages * interval <= now:
            self.messages += 1
            if options.udp:
                with contextlib.suppress(ValueError):
                    connection.send_datagram_frame(PATTERN[: options.message])
                self.account.sent += options.message
            else:
                self.write(min(options.message, limit - self.account.sent))
        self.end_at(limit)
        return self.begin_s + self.messages * interval if self.account.sent < limit else now + AGAIN_S

    def end_at(self, limit: int) -> None:
        """The end of the stream follows the last byte, once; who gets that ends the connection."""
        if self.account.sent >= limit and not self.options.udp:
            assert self.connection is not None
            self.connection.send_stream_data(STREAM, b"", end_stream=True)
            self.options.send = False

    def write(self, count: int) -> None:
        """The next bytes of the stream."""
        assert self.connection is not None
        begin = self.account.sent % 251
        self.connection.send_stream_data(STREAM, PATTERN[begin : begin + count])
        self.account.sent += count

    def turn(self, until: float, watch: socket.socket | None) -> None:
        """Sends what there is, and waits for packets, a timer or a change of addresses until then."""
        self.flush()
        timer = self.connection.get_timer() if self.connection is not None else None
        until = min(until, timer) if timer is not None else until
        sockets = [self.socket] if watch is None else [self.socket, watch]
        try:
            readable, _, _ = select.select(sockets, [], [], max(until - time.monotonic(), 0))
        except InterruptedError:
            return
        if watch is not None and watch in readable:
            watch.recv(65536)
            self.migrate()
        if self.socket in readable:
            self.receive()
        now = time.monotonic()
        if self.connection is not None and (timer := self.connection.get_timer()) is not None and timer <= now:
            self.connection.handle_timer(now)
        self.handle_events()

    def flush(self) -> None:
        """Sends the packets that are there."""
        if self.connection is None:
            return
        for data, address in self.connection.datagrams_to_send(time.monotonic()):
            # a network that has gone: what is sent there is lost
            with contextlib.suppress(OSError):
                self.socket.sendto(data, address)

    def migrate(self) -> None:
        """Goes on from the address that the kernel would send from now, if that is another."""
        source = source_towards(self.peer)
        if source is None or source == self.source or self.connection is None:
            return
        self.source = source
        self.socket.close()
        self.socket = bound(0)
        if self.is_ready:
            self.connection.change_connection_id()
            self.connection.send_ping(1)

    def receive(self) -> None:
        """The packets that are there."""
        for _ in range(64):
            try:
                data, address = self.socket.recvfrom(65536)
            except (BlockingIOError, ConnectionError):
                return
            if self.connection is None:
                header = initial_header(data)
                if header is None:
                    continue
                self.connection = QuicConnection(
                    configuration=configuration(is_client=False),
                    original_destination_connection_id=header.destination_cid,
                )
            self.connection.receive_datagram(data, address, time.monotonic())

    def handle_events(self) -> None:
        """What the connection has to say."""
        while self.connection is not None and (event := self.connection.next_event()) is not None:
            if isinstance(event, HandshakeCompleted):
                if self.options.connect:
                    self.connection.send_stream_data(STREAM, HELLO)
                    self.begin()
            elif isinstance(event, ConnectionTerminated):
                self.has_ended = True
                if event.error_code != 0:
                    self.account.failed = event.reason_phrase or f"error {event.error_code}"
            elif isinstance(event, DatagramFrameReceived):
                self.account.note(len(event.data))
            elif isinstance(event, StreamDataReceived):
                self.handle_data(event.data, is_last=event.end_stream)

    def begin(self) -> None:
        """Data may be sent from now on."""
        self.is_ready, self.begin_s = True, time.monotonic()

    def handle_data(self, data: bytes, *, is_last: bool) -> None:
        """Data of the stream."""
        if not self.options.connect and not self.greeted and data:
            self.greeted, data = True, data[1:]
            self.begin()
        if data:
            self.account.read(data)
        if self.options.ask:
            self.waiting -= len(data)
            self.account.answers += int(self.waiting == 0 and bool(data))
        elif self.options.answer:
            self.waiting += len(data)
            while self.waiting >= self.options.message:
                self.waiting -= self.options.message
                self.account.answers += 1
                self.write(self.options.response)
        if is_last:
            self.has_ended = True


def initial_header(data: bytes) -> QuicHeader | None:
    """The header of what may begin a connection: an Initial packet, in a full datagram (RFC 9000 section 14.1)."""
    try:
        header = pull_quic_header(Buffer(data=data), host_cid_length=CONNECTION_ID_BYTES)
    except ValueError:
        return None
    return header if header.packet_type == QuicPacketType.INITIAL and len(data) >= SMALLEST_INITIAL else None


def bound(port: int) -> socket.socket:
    """A socket at any address."""
    made = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.bind(("::", port))
    return made


def source_towards(peer: tuple[str, int, int, int]) -> str | None:
    """The address that the kernel would send to a peer from; `None` if there is no way."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(peer)
        except OSError:
            return None
        return str(probe.getsockname()[0])


def watched_addresses() -> socket.socket:
    """A socket that can be read when addresses or routes change (rtnetlink(7))."""
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    made.bind((0, RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE))
    return made


def configuration(*, is_client: bool, datagram_bytes: int = DATAGRAM_FRAME_BYTES) -> QuicConfiguration:
    """A certificate of its own making that nobody verifies, and datagrams of so many bytes (RFC 9221 section 3)."""
    made = QuicConfiguration(is_client=is_client, alpn_protocols=[PROTOCOL], max_datagram_frame_size=datagram_bytes)
    made.connection_id_length = CONNECTION_ID_BYTES
    if is_client:
        made.verify_mode = ssl.CERT_NONE
        return made
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, PROTOCOL)])
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + dt.timedelta(days=1))
    made.certificate, made.private_key = builder.sign(key, hashes.SHA256()), key
    return made


def endpoint(text: str) -> tuple[str, int]:
    """`[ADDRESS]:PORT`."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Command line: that of `segue-lab app`."""
    parser = argparse.ArgumentParser(prog="python -m segue.programs.quic")
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument("--listen", type=int)
    end.add_argument("--connect", type=endpoint)
    part = parser.add_mutually_exclusive_group(required=True)
    for name in ("send", "receive", "ask", "answer"):
        part.add_argument(f"--{name}", action="store_true")
    over = parser.add_mutually_exclusive_group(required=True)
    over.add_argument("--tcp", action="store_true", help="a stream in its place")
    over.add_argument("--udp", action="store_true", help="datagrams in its place")
    parser.add_argument("--from-port", type=int, default=0)
    parser.add_argument("--message", type=int, default=1000)
    parser.add_argument("--response", type=int, default=1000)
    parser.add_argument("--rate", type=int)
    parser.add_argument("--size", type=int)
    return parser.parse_args(arguments)


def main() -> None:
    """One end, from the first packet to the last."""
    end = End(parsed())

    def stop(*_: object) -> None:
        end.stopped = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        end.run()
    except OSError as error:
        end.account.failed = str(error)
    print(end.account.line(), flush=True)
    sys.exit(int(end.account.failed is not None))


if __name__ == "__main__":
    main()

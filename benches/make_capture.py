#!/usr/bin/env python3
"""Write a large capture to measure `segue analyze` with: the same bytes every time, in seconds. Standard library only.

What a gateway of a small office would record: tens of TCP connections over IPv4 and IPv6, most of them downloads, with
an acknowledgement for every other segment, timestamps, losses that SACK repairs; some UDP; and two hosts that move. One
is an MPTCP connection (RFC 8684) whose first subflow falls silent and whose second takes over, one a QUIC connection
(RFC 9000) that goes on from another address. Checksums are right; no packet is cut.

The classic pcap format, Ethernet, microseconds: what every program that is compared reads.
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import ipaddress
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

MS = 1_000_000
SECOND = 1000 * MS
DURATION = 300 * SECOND
# When a host moves, and how long it hears nothing.
MOVE = 150 * SECOND
SILENCE = 400 * MS
EPOCH = 1_767_225_600 * SECOND
# Of the capture at the other end: how long packets take from one to the other, and what its clock shows more.
DELAY = 4 * MS
OTHER_CLOCK = 3 * SECOND
SERVER_MAC = bytes((2, 0, 0, 0, 255, 1))

PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)
MSS = 1428
BLOCK = random.Random(5).randbytes(4096)
BATCH = 4096

SYN, ACK, PUSH, FIN = 0x02, 0x10, 0x08, 0x01
TCP, UDP = 6, 17

Packet = tuple[int, bytes]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", type=float, default=1e9, help="about how many bytes")
    arguments = parser.parse_args()
    with arguments.out.open("wb") as file:
        packets = write_capture(file, int(arguments.size))
    print(f"{arguments.out}: {arguments.out.stat().st_size / 1e6:.0f} MB, {packets} packets")


def write_capture(file: BinaryIO, size: int) -> int:
    """Write a capture of about `size` bytes; returns the number of packets."""
    file.write(PCAP_HEADER)
    count = 0
    batch: list[bytes] = []
    for at, frame in heapq.merge(*flows(size), key=lambda packet: packet[0]):
        seconds, rest = divmod(EPOCH + at, SECOND)
        batch += (struct.pack("<IIII", seconds, rest // 1000, len(frame), len(frame)), frame)
        count += 1
        if len(batch) >= BATCH:
            file.write(b"".join(batch))
            batch.clear()
    file.write(b"".join(batch))
    return count


def write_other_end(file: BinaryIO, capture: BinaryIO) -> None:
    """Write what was captured beside the servers, by another clock, where `capture` was made beside the clients."""
    file.write(capture.read(len(PCAP_HEADER)))
    whole = memoryview(capture.read())

    def records(*, down: bool) -> Iterator[tuple[int, memoryview]]:
        at = 0
        while at < len(whole):
            seconds, micros, length, _ = struct.unpack_from("<IIII", whole, at)
            end = at + 16 + length
            if (whole[at + 22 : at + 28] == SERVER_MAC) is down:
                delay = -DELAY if down else DELAY
                yield seconds * SECOND + micros * 1000 + delay + OTHER_CLOCK, whole[at + 8 : end]
            at = end

    for at, record in heapq.merge(records(down=True), records(down=False), key=lambda entry: entry[0]):
        seconds, rest = divmod(at, SECOND)
        file.write(struct.pack("<II", seconds, rest // 1000))
        file.write(record)


def flows(size: int) -> list[Iterator[Packet]]:
    """Every flow, as packets in order of time; together about `size` bytes."""
    # A segment of data comes with half an acknowledgement, and each with its headers and that of the file.
    data = int(size * 0.905)
    number = random.Random(11)
    downloads = [number.paretovariate(1.3) for _ in range(44)]
    moving = 0.04 * data
    udp = 0.06 * data
    scale = (data - 2 * moving - udp) / sum(downloads)
    made: list[Iterator[Packet]] = []
    for index, share in enumerate(downloads):
        start = number.randrange(0, DURATION // 3)
        made.append(
            TcpFlow(
                path=Path4or6(index, version=4 if index % 2 else 6),
                start=start,
                duration=number.randrange(DURATION // 4, DURATION - start),
                data_bytes=int(share * scale),
                rtt=number.randrange(8 * MS, 120 * MS),
                upload=index % 6 == 5,
                seed=index,
            ).packets()
        )
    made += [udp_flow(index, int(udp / 6)) for index in range(6)]
    made.append(mptcp(int(moving)))
    made.append(quic(int(moving)))
    return made


# Frames.


def fold(total: int) -> int:
    """The checksum of a sum of 16-bit words (RFC 1071)."""
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def words(data: bytes) -> int:
    """The sum of the 16-bit words of `data`."""
    padded = data + b"\0" * (len(data) % 2)
    return sum(struct.unpack(f">{len(padded) // 2}H", padded))


PAYLOAD_SUMS: dict[int, int] = {}


def payload_sum(length: int) -> int:
    """The sum of the first `length` bytes of the block that all payloads are taken from."""
    if length not in PAYLOAD_SUMS:
        PAYLOAD_SUMS[length] = words(BLOCK[:length])
    return PAYLOAD_SUMS[length]


@dataclass
class Direction:
    """One direction of a flow: what of its headers never changes, made once."""

    source: ipaddress.IPv4Address | ipaddress.IPv6Address
    destination: ipaddress.IPv4Address | ipaddress.IPv6Address
    source_port: int
    destination_port: int
    source_mac: bytes
    destination_mac: bytes
    heads: dict[tuple[int, int], bytes] = field(default_factory=dict)
    pseudo: int = 0

    def __post_init__(self) -> None:
        self.pseudo = words(self.source.packed + self.destination.packed)
        self.ports = struct.pack(">HH", self.source_port, self.destination_port)
        self.port_sum = self.source_port + self.destination_port

    def head(self, protocol: int, length: int) -> bytes:
        """Ethernet and IP headers before `length` bytes of transport."""
        known = self.heads.get((protocol, length))
        if known is not None:
            return known
        macs = self.destination_mac + self.source_mac
        if self.source.version == 4:
            ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, 60, protocol, 0)
            ip += self.source.packed + self.destination.packed
            made = macs + b"\x08\x00" + ip[:10] + struct.pack(">H", fold(words(ip))) + ip[12:]
        else:
            ip = struct.pack(">IHBB", 0x60000000, length, protocol, 60) + self.source.packed + self.destination.packed
            made = macs + b"\x86\xdd" + ip
        self.heads[protocol, length] = made
        return made

    def tcp(self, seq: int, ack: int, flags: int, options: bytes = b"", data: int = 0) -> bytes:
        """A frame with a TCP segment of `data` bytes."""
        header = 20 + len(options)
        first = ((header // 4) << 12) | flags
        window = 64240 if flags & SYN else 4096
        total = self.pseudo + TCP + header + data + self.port_sum + first + window + payload_sum(data)
        total += (seq >> 16) + (seq & 0xFFFF) + (ack >> 16) + (ack & 0xFFFF)
        total += words(options) if options else 0
        fixed = struct.pack(">IIHHHH", seq, ack, first, window, fold(total), 0)
        return b"".join((self.head(TCP, header + data), self.ports, fixed, options, BLOCK[:data]))

    def udp(self, beginning: bytes, length: int) -> bytes:
        """A frame with a datagram of `length` bytes that begins with `beginning`."""
        data = beginning + BLOCK[: length - len(beginning)]
        total = self.pseudo + UDP + 2 * (8 + length) + self.port_sum + words(beginning)
        # The rest is shifted by an even number of bytes only.
        total += payload_sum(length - len(beginning))
        header = struct.pack(">HH", 8 + length, fold(total) or 0xFFFF)
        return b"".join((self.head(UDP, 8 + length), self.ports, header, data))


@dataclass(frozen=True)
class Path4or6:
    """The addresses of a client and a server; `place` is the network that the client is in."""

    index: int
    version: int
    place: int = 0
    port: int = 443

    def directions(self) -> tuple[Direction, Direction]:
        """Server to client, client to server."""
        if self.version == 4:
            client: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.IPv4Address(
                (10 << 24) | (self.place << 16) | (self.index + 2)
            )
            server: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.IPv4Address(
                (198 << 24) | (51 << 16) | (100 << 8) | (self.index % 20 + 1)
            )
        else:
            client = ipaddress.IPv6Address(f"2001:db8:{self.place + 1:x}::{self.index + 2:x}")
            server = ipaddress.IPv6Address(f"2001:db8:ffff::{self.index % 20 + 1:x}")
        ours, theirs = bytes((2, 0, 0, 0, self.place, self.index)), SERVER_MAC
        client_port = 40_000 + 7 * self.index + self.place
        down = Direction(server, client, self.port, client_port, theirs, ours)
        up = Direction(client, server, client_port, self.port, ours, theirs)
        return down, up


# Transports.


def timestamps(value: int, echo: int) -> bytes:
    """The timestamps option (RFC 7323), padded."""
    return struct.pack(">BBBBII", 1, 1, 8, 10, value & 0xFFFFFFFF, echo & 0xFFFFFFFF)


@dataclass
class TcpFlow:
    """A TCP connection that moves data one way at an even pace, seen beside the client."""

    path: Path4or6
    start: int
    duration: int
    data_bytes: int
    rtt: int
    upload: bool
    seed: int

    def packets(self) -> Iterator[Packet]:
        """Its packets, in order of time."""
        number = random.Random(self.seed)
        down, up = self.path.directions()
        iss, peer_iss = number.getrandbits(32), number.getrandbits(32)
        at = self.start
        options = struct.pack(">BBHBB", 2, 4, 1460, 4, 2) + struct.pack(">BBII", 8, 10, at // MS, 0)
        options += struct.pack(">BBBB", 1, 3, 3, 7)
        yield at, up.tcp(iss, 0, SYN, options)
        at += self.rtt
        yield at, down.tcp(peer_iss, (iss + 1) & 0xFFFFFFFF, SYN | ACK, options)
        at += MS // 10
        client_seq, server_seq = (iss + 1) & 0xFFFFFFFF, (peer_iss + 1) & 0xFFFFFFFF
        yield at, up.tcp(client_seq, server_seq, ACK, timestamps(at // MS, at // MS))
        yield at + MS, up.tcp(client_seq, server_seq, ACK | PUSH, timestamps(at // MS, at // MS), 320)
        client_seq = (client_seq + 320) & 0xFFFFFFFF
        at += self.rtt
        if self.upload:
            yield from self.bulk(number, up, down, client_seq, server_seq, at, self.rtt)
        else:
            yield from self.bulk(number, down, up, server_seq, client_seq, at, MS // 10)

    def bulk(
        self,
        number: random.Random,
        sender: Direction,
        receiver: Direction,
        seq: int,
        ack: int,
        at: int,
        delay: int,
    ) -> Iterator[Packet]:
        """Data from `sender`, acknowledged `delay` after it passed here; one segment in a thousand is lost before."""
        segments = max(self.data_bytes // MSS, 2)
        gap = max(self.duration // segments, 1000)
        # Acknowledgements to come, in order of time, where they come late.
        waiting: list[Packet] = []
        hole: int | None = None
        repair_at = 0
        for index in range(segments):
            now = at + index * gap + number.randrange(gap // 4 + 1)
            while waiting and waiting[0][0] <= now:
                yield waiting.pop(0)
            stamp = timestamps(now // MS, (now - self.rtt) // MS)
            current = (seq + index * MSS) & 0xFFFFFFFF
            upper = (current + MSS) & 0xFFFFFFFF
            if hole is None and number.random() < 0.001 and index < segments - 1:
                hole, repair_at = current, now + self.rtt + 3 * gap
                continue
            if hole is not None and now >= repair_at:
                yield now, sender.tcp(hole, ack, ACK, stamp, MSS)
                hole = None
            yield now, sender.tcp(current, ack, ACK, stamp, MSS)
            if hole is not None:
                sack = struct.pack(">BBBBII", 1, 1, 5, 10, (hole + MSS) & 0xFFFFFFFF, upper)
                answer = receiver.tcp(ack, hole, ACK, stamp + sack)
            elif index % 2:
                answer = receiver.tcp(ack, upper, ACK, stamp)
            else:
                continue
            if delay < gap // 4:
                yield now + delay, answer
            else:
                waiting.append((now + delay, answer))
        end = at + segments * gap + self.rtt
        while waiting and waiting[0][0] <= end:
            yield waiting.pop(0)
        last = (seq + segments * MSS) & 0xFFFFFFFF
        if hole is not None:
            yield end, sender.tcp(hole, ack, ACK, timestamps(end // MS, end // MS), MSS)
        yield end + MS, sender.tcp(last, ack, ACK | FIN, timestamps(end // MS, end // MS))
        yield end + 2 * MS, receiver.tcp(ack, (last + 1) & 0xFFFFFFFF, ACK | FIN, timestamps(end // MS, end // MS))
        yield end + 3 * MS, sender.tcp((last + 1) & 0xFFFFFFFF, (ack + 1) & 0xFFFFFFFF, ACK)


def udp_flow(index: int, size: int) -> Iterator[Packet]:
    """Datagrams at an even pace: a call, a game, a tunnel."""
    down, up = Path4or6(60 + index, version=4 if index % 2 else 6, port=5000 + index).directions()
    length = (160, 300, 1200)[index % 3]
    datagrams = size // length
    gap = DURATION // datagrams
    for number in range(datagrams):
        at = number * gap + index * 1000
        beginning = struct.pack(">BBHII", 0x80, 111, number & 0xFFFF, at // 20_833 & 0xFFFFFFFF, index)
        yield at, (up if number % 4 == 0 else down).udp(beginning, length)


def mptcp(size: int) -> Iterator[Packet]:
    """An MPTCP download (RFC 8684) whose first subflow falls silent and whose second goes on."""
    keys = [hashlib.sha256(side).digest()[:8] for side in (b"client", b"server")]
    hashes = [hashlib.sha256(key).digest() for key in keys]
    token = hashes[1][:4]
    data_seq = int.from_bytes(hashes[1][-8:], "big") + 1
    segments = size // MSS
    gap = (DURATION - 2 * SECOND) // segments
    rtt = 30 * MS
    first, second = Path4or6(100, version=6), Path4or6(100, version=6, place=1)
    down, up = first.directions()
    at = SECOND
    yield at, up.tcp(1000, 0, SYN, struct.pack(">BBHBBBB", 2, 4, 1440, 30, 4, 0x01, 0x01))
    yield at + rtt, down.tcp(5000, 1001, SYN | ACK, struct.pack(">BBHBBBB", 2, 4, 1440, 30, 12, 0x01, 0x01) + keys[1])
    capable = struct.pack(">BBBB", 30, 20, 0x01, 0x01) + keys[0] + keys[1]
    yield at + rtt + MS, up.tcp(1001, 5001, ACK, capable)
    moved = False
    base, offset = 5001, 0
    silent_until = 0
    for index in range(segments):
        now = at + 2 * rtt + index * gap
        if now >= MOVE and not moved:
            moved, silent_until = True, now + SILENCE
            down, up = second.directions()
            join = struct.pack(">BBBB", 30, 12, 0x10, 2) + token + b"\x11\x22\x33\x44"
            begin = silent_until - 2 * rtt
            yield begin, up.tcp(9000, 0, SYN, struct.pack(">BBH", 2, 4, 1440) + join)
            answer = struct.pack(">BBBB", 30, 16, 0x10, 0) + hashes[0][:8] + b"\x55\x66\x77\x88"
            yield begin + rtt, down.tcp(7000, 9001, SYN | ACK, struct.pack(">BBH", 2, 4, 1440) + answer)
            yield begin + rtt + MS, up.tcp(9001, 7001, ACK, struct.pack(">BBBB", 30, 24, 0x10, 0) + hashes[1][:20])
            base, offset = 7001, index
        now = max(now, silent_until + (index - offset) * MS // 2) if moved else now
        seq = (base + (index - offset) * MSS) & 0xFFFFFFFF
        mapping = struct.pack(">BBBB", 30, 18, 0x20, 0x0C) + struct.pack(">Q", (data_seq + index * MSS) % 2**64)
        mapping += struct.pack(">IH", (seq - base + 1) & 0xFFFFFFFF, MSS) + b"\x01\x01"
        yield now, down.tcp(seq, 9001 if moved else 1001, ACK, mapping, MSS)
        if index % 2:
            data_ack = struct.pack(">BBBB", 30, 12, 0x20, 0x03) + struct.pack(
                ">Q", (data_seq + (index + 1) * MSS) % 2**64
            )
            yield now + MS // 10, up.tcp(9001 if moved else 1001, (seq + MSS) & 0xFFFFFFFF, ACK, data_ack)


def quic(size: int) -> Iterator[Packet]:
    """A QUIC download (RFC 9000): long headers first, then short ones; the client goes on from another address."""
    client_id, server_id = b"\xc1" * 8, b"\x5e" * 8
    length = 1252
    datagrams = size // length
    gap = (DURATION - 2 * SECOND) // datagrams
    first, second = Path4or6(110, version=4), Path4or6(110, version=4, place=1)
    down, up = first.directions()
    at = SECOND
    initial = struct.pack(">BIB", 0xC3, 1, 8)
    yield at, up.udp(initial + b"\x0a" * 8 + b"\x08" + client_id + b"\0", length)
    yield at + 20 * MS, down.udp(initial + client_id + b"\x08" + server_id + b"\0", length)
    moved, silent_until = 0, 0
    for index in range(datagrams):
        now = at + 50 * MS + index * gap
        if now >= MOVE + 20 * SECOND and not moved:
            moved, silent_until = index, now + SILENCE
            down, up = second.directions()
            # The client probes the new path (section 9.1) before data comes over it.
            yield silent_until - 20 * MS, up.udp(b"\x43" + server_id + b"\0", 1200)
        now = max(now, silent_until + (index - moved) * MS // 2) if moved else now
        yield now, down.udp(b"\x41" + client_id + b"\0", length)
        if index % 4 == 3:
            yield now + MS // 10, up.udp(b"\x42" + server_id + b"\0", 40)


if __name__ == "__main__":
    main()

"""Captures by hand: pcap files of TCP that moves from one address or interface to another."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv6Address

ETHERNET, RAW_IP = 1, 101
MSS = 1000
SYN, ACK = 0x02, 0x10

Packet = tuple[float, bytes]


def pcap(packets: Iterable[Packet], *, link: int = RAW_IP, snap: int = 262_144) -> bytes:
    """A classic pcap file with nanoseconds."""
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snap, link)]
    for at, data in packets:
        nanoseconds = round((1_700_000_000 + at) * 1e9)
        kept = data[:snap]
        parts.append(struct.pack("<IIII", *divmod(nanoseconds, 10**9), len(kept), len(data)) + kept)
    return b"".join(parts)


def pcapng(packets: Iterable[tuple[float, int, bytes]], names: tuple[str, ...]) -> bytes:
    """A pcapng file of raw IP with an interface for each name; a packet says on which it was."""
    parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for name in names:
        options = option(2, name.encode()) + option(9, b"\x09") + option(0, b"")
        parts.append(block(1, struct.pack("<HHI", RAW_IP, 0, 0) + options))
    for at, interface, data in packets:
        high, low = divmod(round((1_700_000_000 + at) * 1e9), 2**32)
        head = struct.pack("<IIIII", interface, high, low, len(data), len(data))
        parts.append(block(6, head + padded(data)))
    return b"".join(parts)


def block(kind: int, body: bytes) -> bytes:
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + padded(value)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


@dataclass(frozen=True)
class Way:
    """Addresses of both ends of an IPv6 TCP connection."""

    server: str = "2001:db8:c::2"
    client: str = "2001:db8:1::2"
    server_port: int = 443
    client_port: int = 40_000

    def packet(self, *, down: bool, seq: int, ack: int, flags: int = ACK, data: int = 0) -> bytes:
        """A segment from the server (`down`) or from the client. The checksum is left out; nobody looks at it."""
        ends = (self.server, self.client) if down else (self.client, self.server)
        ports = (self.server_port, self.client_port) if down else (self.client_port, self.server_port)
        segment = struct.pack(">HHIIHHHH", *ports, seq, ack, (5 << 12) | flags, 60_000, 0, 0) + bytes(data)
        header = struct.pack(">IHBB", 0x6000_0000, len(segment), 6, 64)
        return header + b"".join(IPv6Address(end).packed for end in ends) + segment


def download(
    way: Way, *, count: int = 400, gap_s: float = 0.005, move_after: int = 200, silence_s: float = 0.4
) -> Iterator[tuple[float, int, bytes]]:
    """A download that goes silent once and then goes on over interface 1: (time, interface, packet)."""
    yield 0.0, 0, way.packet(down=False, seq=100, ack=0, flags=SYN)
    yield 0.01, 0, way.packet(down=True, seq=500, ack=101, flags=SYN | ACK)
    yield 0.011, 0, way.packet(down=False, seq=101, ack=501)
    for number in range(count):
        moved = number >= move_after
        at = 0.02 + number * gap_s + (silence_s if moved else 0.0)
        seq = 501 + number * MSS
        yield at, int(moved), way.packet(down=True, seq=seq, ack=101, data=MSS)
        yield at + 0.0001, int(moved), way.packet(down=False, seq=101, ack=seq + MSS)


def udp(source: str, destination: str, payload: bytes, port: int = 51820) -> bytes:
    """An IPv6 packet with a datagram between the same ports."""
    datagram = struct.pack(">HHHH", port, port, 8 + len(payload), 0) + payload
    header = struct.pack(">IHBB", 0x6000_0000, len(datagram), 17, 64)
    return header + b"".join(IPv6Address(end).packed for end in (source, destination)) + datagram


def wireguard_data(receiver: int, counter: int, length: int) -> bytes:
    """A transport data message, of nothing but zeros where it is encrypted."""
    return struct.pack("<BxxxIQ", 4, receiver, counter) + bytes(length + 16)

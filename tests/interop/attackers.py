"""What an attacker does who is on each link of `agents.world(attacked=True)` and has a network of his own.

Off the path he sends whatever he likes from `x0`, with whatever source; on it he sees what passes, and sends to
whichever end.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import build
from agents import Agent, World
from lab import Namespace
from network import NETNS

CLONE_NEWNET = 0x40000000
ETH_P_ALL, ETH_P_IPV6 = 3, 0x86DD
HOP_BY_HOP, TCP, UDP, IPV6, ROUTING, ICMPV6, NONE, OPTIONS, MOBILITY = 0, 6, 17, 41, 43, 58, 59, 60, 135
LOCATOR_UPDATE = 156
HOTI, COTI, HOT, COT, BU, BACK, ERROR = range(1, 8)
ETHERNET = 14


def checksum(source: bytes, destination: bytes, protocol: int, upper: bytes) -> int:
    """RFC 8200 section 8.1."""
    data = source + destination + struct.pack("!IHBB", len(upper), 0, 0, protocol) + upper
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@dataclass
class Kind:
    """A packet, with what is drawn anew each time that it is sent."""

    source: str
    destination: str
    next_header: int
    payload: bytes
    # of the whole packet
    random: tuple[tuple[int, int], ...] = ()
    # protocol, where the upper layer begins, its field, and where the source of the pseudo-header is
    sum: tuple[int, int, int, int] | None = None

    def bytes(self) -> bytes:
        """The packet, summed up."""
        places = IPv6Address(self.source).packed + IPv6Address(self.destination).packed
        whole = struct.pack("!IHBB", 6 << 28, len(self.payload), self.next_header, 64) + places + self.payload
        if self.sum is None:
            return whole
        protocol, upper, field, source = self.sum
        made = checksum(whole[source : source + 16], whole[24:40], protocol, whole[upper:])
        return whole[: upper + field] + struct.pack("!H", made) + whole[upper + field + 2 :]

    def line(self) -> str:
        """As `peers/flood.c` reads it."""
        words = [self.bytes().hex(), *(f"random={a}-{b}" for a, b in self.random)]
        if self.sum is not None:
            words.append("sum={}@{}+{},{}".format(*self.sum))
        return " ".join(words)


# Source addresses that are drawn: anywhere that packets are routed to, and in one network.
ANYWHERE, IN_ONE = (10, 24), (14, 24)


def nonce(upper: int, value: bytes = b"\0" * 4) -> bytes:
    """Destination options with a nonce (RFC 6744 section 2)."""
    return struct.pack("!BBBB", upper, 0, 0x8B, len(value)) + value


def datagram(port: int = 5201) -> bytes:
    """UDP with a little data, its checksum not done."""
    return struct.pack("!HHHH", 40_002, port, 20, 0) + b"\0" * 12


def of_ilnp(to: str, peer: str, *, one_network: bool = False) -> list[Kind]:
    """Whatever may be thrown at a host with ILNPv6 at `to`, who talks to `peer`."""
    drawn = IN_ONE if one_network else ANYWHERE
    update = struct.pack("!BBHBBH", LOCATOR_UPDATE, 0, 0, 1, 1, 0) + IPv6Address("2001:db8:9::").packed[:8]
    update += struct.pack("!HH", 0, 3600)
    quoted = Kind(to, peer, OPTIONS, nonce(UDP) + datagram()).bytes()
    problem = struct.pack("!BBHI", 4, 2, 0, 42) + quoted
    syn = struct.pack("!HHIIBBHHH", 40_001, 5201, 1, 0, 5 << 4, 2, 65_535, 0, 0)
    echo = struct.pack("!BBHHH", 128, 0, 0, 1, 1)
    # where sources, nonces and ports are, which are drawn
    of_nonce, of_port = (44, 48), (48, 50)
    summed = {kind: (kind, 48, field, 8) for kind, field in ((UDP, 6), (TCP, 16), (ICMPV6, 2))}
    return [
        Kind("2001:db8:9::", to, OPTIONS, nonce(UDP) + datagram(), (drawn, of_nonce, of_port), summed[UDP]),
        Kind("2001:db8:9::", to, OPTIONS, nonce(TCP) + syn, (drawn, of_nonce, of_port), summed[TCP]),
        Kind(peer, to, OPTIONS, nonce(UDP) + datagram(), (of_nonce, of_port), summed[UDP]),
        Kind(peer, to, OPTIONS, nonce(ICMPV6) + update, (of_nonce,), summed[ICMPV6]),
        Kind(peer, to, ICMPV6, problem, ((92, 96),), (ICMPV6, 40, 2, 8)),
        Kind(peer, to, UDP, datagram(), (), (UDP, 40, 6, 8)),
        Kind("2001:db8:9::", to, ICMPV6, echo, (drawn,), (ICMPV6, 40, 2, 8)),
        *malformed_options("2001:db8:9::", to, drawn),
    ]


def malformed_options(source: str, to: str, drawn: tuple[int, int]) -> list[Kind]:
    """Options that do not end, headers that do not, and chains of them."""
    chain = bytes([OPTIONS, 0, 1, 4, 0, 0, 0, 0]) * 8 + bytes([NONE, 0, 0x8B, 12, 0, 0, 0, 0])
    return [
        Kind(source, to, OPTIONS, struct.pack("!BBBB", UDP, 0, 0x8B, 200) + b"\0" * 4 + datagram(), (drawn,)),
        Kind(source, to, OPTIONS, struct.pack("!BB", UDP, 200) + b"\0" * 30, (drawn, (42, 60))),
        Kind(source, to, OPTIONS, b"\0" * 64, (drawn, (40, 104))),
        Kind(source, to, OPTIONS, chain, (drawn,)),
        Kind(source, to, HOP_BY_HOP, struct.pack("!BB", OPTIONS, 0) + b"\0" * 14, (drawn, (42, 56))),
    ]


def mobility(kind: int, body: bytes) -> bytes:
    """RFC 6275 section 6.1.1, its checksum not done."""
    body += b"\0" * (-(6 + len(body)) % 8)
    return struct.pack("!BBBBH", NONE, (6 + len(body)) // 8 - 1, kind, 0, 0) + body


def home_address(upper: int, address: str = "2001:db8:f::") -> bytes:
    """Destination options with a Home Address option (RFC 6275 section 6.3), whose address begins at 48."""
    return struct.pack("!BBBBBBBB", upper, 2, 1, 2, 0, 0, 0xC9, 16) + IPv6Address(address).packed


def of_mobile_ipv6(to: str, peer: str, home: str) -> list[Kind]:
    """Whatever may be thrown at a correspondent, home agent or mobile node at `to`, who talks to `peer`.

    `home` is a home address that it knows."""
    # a Binding Update with nonce indices and an authenticator that is drawn
    update = struct.pack("!HHH", 1, 0x8000, 100) + struct.pack("!BBHH", 4, 4, 0, 0)
    update = mobility(BU, update + struct.pack("!BB", 5, 12) + b"\0" * 12)
    registration = struct.pack("!HHH", 1, 0xC000, 100) + struct.pack("!BBBI", 9, 17, 1, 256) + b"\0" * 12
    registration = mobility(BU, registration)
    direct, through = (MOBILITY, 40, 4, 8), (MOBILITY, 64, 4, 48)
    anywhere = "2001:db8:9::"
    inner = Kind(home, "2001:db8:3::1", UDP, datagram(), (), (UDP, 40, 6, 8)).bytes()
    return [
        Kind(anywhere, to, MOBILITY, mobility(HOTI, b"\0" * 10), (ANYWHERE, (48, 56)), direct),
        Kind(anywhere, to, MOBILITY, mobility(COTI, b"\0" * 10), (ANYWHERE, (48, 56)), direct),
        Kind(peer, to, MOBILITY, mobility(HOT, b"\0" * 18), ((46, 64),), direct),
        Kind(peer, to, MOBILITY, mobility(COT, b"\0" * 18), ((46, 64),), direct),
        Kind(peer, to, MOBILITY, mobility(BACK, struct.pack("!BBHH", 0, 0, 0, 100)), ((48, 50),), direct),
        Kind(anywhere, to, OPTIONS, home_address(MOBILITY) + update, (ANYWHERE, (50, 64), (70, 72)), through),
        Kind(anywhere, to, OPTIONS, home_address(MOBILITY, home) + update, (ANYWHERE, (70, 72)), through),
        Kind(anywhere, to, OPTIONS, home_address(MOBILITY, home) + registration, (ANYWHERE, (83, 95)), through),
        Kind(anywhere, to, OPTIONS, home_address(UDP) + datagram(), (ANYWHERE, (50, 64)), (UDP, 64, 6, 48)),
        Kind(anywhere, to, IPV6, inner, (ANYWHERE,)),
        Kind(anywhere, to, MOBILITY, b"\0" * 40, (ANYWHERE, (40, 80))),
        Kind(anywhere, to, MOBILITY, mobility(0x77, b"\0" * 34), (ANYWHERE, (46, 80)), direct),
        *malformed_options(anywhere, to, ANYWHERE),
    ]


def binding_error(to: str, peer: str, home: str) -> Kind:
    """`peer` has no binding of `home`, it says (RFC 6275 section 6.1.9)."""
    return Kind(peer, to, MOBILITY, mobility(ERROR, b"\1\0" + IPv6Address(home).packed), (), (MOBILITY, 40, 4, 8))


@dataclass
class Attacker:
    """The fourth namespace of a world."""

    world: World

    @property
    def namespace(self) -> Namespace:
        """Where he is."""
        return self.world.hosts["attacker"]

    def flood(
        self, kinds: list[Kind], *, rate: float, seconds: float, host: str | None = None
    ) -> subprocess.Popen[str]:
        """Packets at a rate: from his own network, or, to a `host`, on its first link."""
        device, mac = self._way(host)
        words = [str(build.program("flood")), device, mac, str(rate), str(seconds)]
        lines = "\n".join(kind.line() for kind in kinds)
        running = subprocess.Popen(
            self.namespace.command(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert running.stdin is not None
        running.stdin.write(lines)
        running.stdin.close()
        running.stdin = None
        return running

    def send(self, kinds: list[Kind]) -> None:
        """Each once, from his own network."""
        device, mac = self._way(None)
        with packet_socket(self.namespace, device) as out:
            header = bytes.fromhex(mac.replace(":", "")) + b"\2\0\0\0\0\7" + struct.pack("!H", ETH_P_IPV6)
            for kind in kinds:
                out.send(header + kind.bytes())

    def _way(self, host: str | None) -> tuple[str, str]:
        if host is None:
            return "x0", mac_of(self.world.hosts["router"], "x0")
        link = {"mobile": "a0", "peer": "b0", "home": "d0"}[host]
        return f"h-{link}", mac_of(self.world.hosts[host], "eth0")


@contextlib.contextmanager
def in_front() -> Iterator[None]:
    """What is begun meanwhile runs in front of all that has no real-time priority: what is lost, Segue has lost."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, *before)


def mac_of(host: Namespace, device: str) -> str:
    """The link-layer address of a device."""
    shown = json.loads(World.run("ip", "-n", host.name, "-j", "link", "show", "dev", device))
    return str(shown[0]["address"])


def packet_socket(host: Namespace, device: str) -> socket.socket:
    """One that sees what passes a device there, both ways, and puts frames on it."""
    made: list[socket.socket] = []

    def there() -> None:
        # a thread has a namespace of its own, and ends with it
        with (NETNS / host.name).open() as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        made.append(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)))

    thread = threading.Thread(target=there)
    thread.start()
    thread.join()
    [tap] = made
    tap.bind((device, ETH_P_ALL))
    return tap


def frames(tap: socket.socket, wanted: Callable[[bytes], bool], seconds: float) -> Iterator[bytes]:
    """IPv6 frames that pass within so many seconds."""
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        tap.settimeout(left)
        try:
            frame = tap.recv(1 << 16)
        except TimeoutError:
            return
        if frame[12:14] == struct.pack("!H", ETH_P_IPV6) and wanted(frame[ETHERNET:]):
            yield frame


def upper_layer(packet: bytes) -> tuple[int, bytes]:
    """Protocol and bytes behind the extension headers."""
    kind, at = packet[6], 40
    while kind in (HOP_BY_HOP, ROUTING, OPTIONS) and at + 2 <= len(packet):
        kind, at = packet[at], at + 8 * (packet[at + 1] + 1)
    return kind, packet[at:]


def is_locator_update(packet: bytes) -> bool:
    """Whether it says where somebody is (RFC 6743 section 2)."""
    kind, upper = upper_layer(packet)
    return kind == ICMPV6 and upper[:1] == bytes([LOCATOR_UPDATE]) and upper[5] == 1


def is_binding_update(packet: bytes) -> bool:
    """Whether it is a Binding Update."""
    kind, upper = upper_layer(packet)
    return kind == MOBILITY and upper[2] == BU


def memory(agent: Agent) -> int:
    """What an agent has in memory, bytes."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{agent.child.pid}/status").read_text())
    assert found is not None
    return 1024 * int(found[1])


def packets_received(host: Namespace, device: str = "eth0") -> int:
    """Packets that came over an interface."""
    shown = json.loads(World.run("ip", "-n", host.name, "-s", "-j", "link", "show", "dev", device))
    return int(shown[0]["stats64"]["rx"]["packets"])


def where_things_are(agent: Agent) -> dict[str, Any]:
    """What must not change because somebody says so: where peers are, and by which way packets go. Of the sessions with
    one identifier the oldest: whoever uses it too has a session of his own, to which nothing of the peer's goes."""
    status = agent.status()
    registration = status.get("registration") or {}
    return {
        "in use": [one["name"] for one in status["interfaces"] if one["in_use"]],
        "locators": [[place["address"] for place in one["locators"]] for one in status["interfaces"]],
        "sessions": [
            {key: one[key] for key in ("peer", "mode", "called", "locators")}
            for one in status.get("sessions", [])
            if "2aa::" in one["peer"]
        ][:1],
        "registration": {key: registration.get(key) for key in ("care_of_address", "acknowledged")},
        "correspondents": [one for one in status.get("correspondents", []) if one["optimized"]],
        "bindings": [
            {key: one[key] for key in ("home_address", "care_of_address", "at")} for one in status.get("bindings", [])
        ],
        "handovers": len(status["handovers"]),
    }


def counted(agent: Agent) -> dict[str, int]:
    """Everything that it has counted."""
    return {
        f"{part} {name}": number for part, all_ in agent.status()["counters"].items() for name, number in all_.items()
    }

"""One interface to the ends of an association: segue-sctp, usrsctp, the Linux kernel."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import build
from guest import Guest, GuestPeer
from network import Host
from process import Process

# A port of its own for every association: a guest's former sockets may linger.
PORTS = itertools.count(5000)
UDP_PORT = 9899
# Longest wait for anything that takes a few round trips.
SOON = 10.0

Peer = Process | GuestPeer


@dataclass(frozen=True)
class Settings:
    """What both ends of an association are set to. Times in milliseconds."""

    udp: bool = False
    rto_initial: int = 200
    rto_min: int = 100
    rto_max: int = 1000
    path_retrans: int = 1
    association_retrans: int = 10
    heartbeat: int = 500
    sack: int = 20
    key: str | None = None
    auth_chunks: tuple[int, ...] = ()
    buffer: int = 1 << 20
    log: bool = False


@dataclass(frozen=True)
class End:
    """Where an end runs and what it talks to; `remote` is empty for the one that listens."""

    host: Host
    port: int
    local: list[str]
    remote: list[str]


def segue(end: End, settings: Settings, *extra: str) -> Process:
    """segue-sctp; what it is to do is in its arguments."""
    command: list[str] = [str(build.tool("segue-sctp"))]
    if end.remote:
        command += ["connect", ",".join(end.remote), str(end.port), "--local-port", str(end.port)]
    else:
        command += ["listen", "--port", str(end.port)]
    command += [f"--address={address}" for address in end.local]
    command += ["--json"]
    command += [f"--udp-port={UDP_PORT}", f"--remote-udp-port={UDP_PORT}"] if settings.udp else ["--raw"]
    command += [f"--rto-initial={settings.rto_initial} ms", f"--rto-min={settings.rto_min} ms"]
    command += [f"--rto-max={settings.rto_max} ms", f"--hb-interval={settings.heartbeat} ms"]
    command += [f"--sack-delay={settings.sack} ms"]
    command += [f"--path-max-retrans={settings.path_retrans}"]
    command += [f"--association-max-retrans={settings.association_retrans}"]
    command += [f"--send-buffer={settings.buffer} B", f"--receive-buffer={settings.buffer} B"]
    if settings.key is not None:
        command.append(f"--auth-key={key_file(settings.key)}")
    command += [f"--auth-chunk={chunk}" for chunk in settings.auth_chunks]
    return Process(end.host.command(*command, *extra), "segue-sctp")


def key_file(key: str) -> str:
    """A key as peer.c takes it, ID:HEX, as segue-sctp does: ID:FILE."""
    number, _, digits = key.partition(":")
    path = build.TARGET / f"key-{digits}"
    path.touch(0o600)
    path.chmod(0o600)
    path.write_bytes(bytes.fromhex(digits))
    return f"{number}:{path}"


def arguments(end: End, settings: Settings) -> list[str]:
    """The command line of peer.c."""
    words = ["connect" if end.remote else "listen", str(end.port)]
    words += [f"local={address}" for address in end.local] + [f"remote={address}" for address in end.remote]
    words.append(f"udp={UDP_PORT}:{UDP_PORT}" if settings.udp else "udp=0:0")
    words.append(f"rto={settings.rto_initial}:{settings.rto_min}:{settings.rto_max}")
    words += [f"hb={settings.heartbeat}", f"sack={settings.sack}", f"path-retrans={settings.path_retrans}"]
    words += [f"association-retrans={settings.association_retrans}", f"buffer={settings.buffer}"]
    words += [f"log={int(settings.log)}"]
    if settings.key is not None:
        words.append(f"key={settings.key}")
    return words + [f"auth-chunk={chunk}" for chunk in settings.auth_chunks]


def usrsctp(end: End, settings: Settings) -> Process:
    """peer.c on usrsctp."""
    return Process(end.host.command(build.program("usrsctp_peer"), *arguments(end, settings)), "usrsctp")


def linux(guest: Guest) -> Callable[[End, Settings], GuestPeer]:
    """peer.c on the kernel of a guest."""

    def start(end: End, settings: Settings) -> GuestPeer:
        return GuestPeer(guest, *arguments(end, settings))

    return start


def ends(
    a: Host, b: Host, *, a_connects: bool, a_links: Sequence[int] = (0, 1), b_links: Sequence[int] = (0, 1)
) -> tuple[End, End]:
    """The ends of an association between two hosts, with their addresses on these links."""
    port = next(PORTS)
    first = End(a, port, [a.addresses[link] for link in a_links], [])
    second = End(b, port, [b.addresses[link] for link in b_links], [])
    if a_connects:
        return replace(first, remote=second.local), second
    return first, replace(second, remote=first.local)

r"""A mobile host with two links, and captures of what its kernel's transports do when one of them goes.

```
 mobile --- link0 --- router --- eth0 --- correspondent
        \-- link1 --/
 fd53:1::2 (link0), fd53:2::2 (link1)     fd53:c::2
```

Plain veth pairs and the kernel's own forwarding, addresses and routes; nothing here knows of Segue. A link is taken
down at the router's end, as when an access point disappears: the mobile host loses the carrier and keeps its device,
and the packet sockets on it stay open. The captures are dumpcap's, of both links in one pcapng file at the mobile host.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import network
from lab import SOON, Namespace
from process import Process

DUMPCAP = shutil.which("dumpcap")
STREAM = Path(__file__).resolve().parent / "peers" / "stream.py"
QUIC_STREAM = STREAM.with_name("quic_stream.py")
CORRESPONDENT = "fd53:c::2"
MOBILE = ("fd53:1::2", "fd53:2::2")
# An address of the mobile host that is on neither link.
STAYING = "fd53:9::2"
PORT = 5001
# A packet crosses these links in well under a millisecond.
UNDER_WAY_NS = 20_000_000


def missing(*, mptcp: bool = False) -> str | None:
    """Why there is no such network here; None if there is."""
    if (reason := network.missing()) is not None:
        return reason
    if DUMPCAP is None:
        return "dumpcap is missing, so nobody captures (Debian package tshark or wireshark-common)"
    enabled = Path("/proc/sys/net/mptcp/enabled")
    if mptcp and not enabled.exists():
        return "this kernel has no MPTCP"
    return None


@dataclass(frozen=True)
class Roaming:
    """The three hosts."""

    mobile: Namespace
    router: Namespace
    correspondent: Namespace

    def link_down(self, link: int) -> int:
        """The access point of a link disappears; gives when nothing can be under way any more, ns of CLOCK_REALTIME."""
        self.router.ip(f"link set m{link} down")
        return time.clock_gettime_ns(time.CLOCK_REALTIME) + UNDER_WAY_NS


@contextlib.contextmanager
def roaming() -> Iterator[Roaming]:
    """The network, with both links up and the default route over link 0."""
    with contextlib.ExitStack() as stack:
        mobile, router, correspondent = (stack.enter_context(Namespace(letter)) for letter in "mrc")
        for device, host, name in (("m0", mobile, "link0"), ("m1", mobile, "link1"), ("c0", correspondent, "eth0")):
            router.ip(f"link add {device} type veth peer name {name} netns {host.name}")
        for host in (mobile, router, correspondent):
            # A link-local address takes part in nothing here, but solicitations come from it.
            host.sysctl("net/ipv6/conf/default/addr_gen_mode", "0")
        router.sysctl("net/ipv6/conf/all/forwarding", "1")
        for link in (0, 1):
            router.device_up(f"m{link}", f"fd53:{link + 1}::1/64")
            mobile.device_up(f"link{link}", f"{MOBILE[link]}/64")
            # Each address leaves by its own link.
            table = 101 + link
            mobile.ip(f"-6 rule add from {MOBILE[link]} table {table}")
            mobile.ip(f"-6 route add default via fd53:{link + 1}::1 dev link{link} table {table}")
        router.device_up("c0", "fd53:c::1/64")
        correspondent.device_up("eth0", f"{CORRESPONDENT}/64")
        correspondent.ip("-6 route add default via fd53:c::1 dev eth0")
        mobile.ip("-6 route add default via fd53:1::1 dev link0")
        yield Roaming(mobile, router, correspondent)


@contextlib.contextmanager
def capturing(host: Namespace, path: Path, *devices: str) -> Iterator[None]:
    """dumpcap on `devices` of a host, from the first packet after this begins to the last before it ends."""
    assert DUMPCAP is not None
    options = [argument for device in devices for argument in ("-i", device)]
    command = host.command(DUMPCAP, *options, "-q", "-n", "-B", "16", "-w", path)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        try:
            said = ""
            # It names its file once it captures.
            while "File:" not in said:
                line = program.stderr.readline()
                assert line, f"dumpcap ended: {said}"
                said += line
            yield
            # What the kernel still holds for it.
            time.sleep(0.2)
        finally:
            program.send_signal(signal.SIGINT)
            program.stderr.read()
            program.wait(timeout=SOON)


def stream(host: Namespace, *arguments: str | Path) -> Process:
    """`peers/stream.py` on a host."""
    return Process(host.command(sys.executable, STREAM, *arguments), f"stream in {host.name}")


def quic_stream(host: Namespace, *arguments: str | Path) -> Process:
    """`peers/quic_stream.py` on a host."""
    return Process(host.command(sys.executable, QUIC_STREAM, *arguments), f"QUIC in {host.name}")


@dataclass(frozen=True)
class Silence:
    """How long a receiving program got nothing when a link went.

    Attributes:
        arrivals_s: From the arrival, in the kernel, of the last data before to that of the first data after, seconds.
        reads_s: From the return of the read before to that of the read after, as the program saw it, seconds.
        lateness_s: How long after the arrival the later of these two reads returned, seconds.
    """

    arrivals_s: float
    reads_s: float
    lateness_s: float


def silence(log: Path, down_ns: int) -> Silence:
    """From the log of `peers/stream.py`: the wait that went on when the link was down, or the next if that was longer.

    The next belongs to it because one packet on a new path is no proof that data has moved there.
    """
    reads = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
    after_down = next(place for place, (at, _, _) in enumerate(reads) if at > down_ns)
    waits = itertools.pairwise(reads[after_down - 1 : after_down + 2])
    (before, stamp_before, _), (after, stamp_after, _) = max(waits, key=lambda pair: pair[1][0] - pair[0][0])
    late = max(before - stamp_before, after - stamp_after)
    return Silence((stamp_after - stamp_before) / 1e9, (after - before) / 1e9, late / 1e9)

"""Our TCP against the kernel's, over an emulated link that does things to packets.

Ours is `segue-lab tcp` behind a TUN device in a namespace, the kernel's is `peers/tcp_peer.c` in that namespace. The
tests end with tshark reading the whole capture, taken at the kernel's end of the link, with checksums validated.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import lab
import network
import pytest
import tcp_capture
import tshark
from process import Process
from tcp_capture import FIN, MSS, RST, SACK, SACK_PERMITTED, SYN, TIMESTAMPS, WINDOW_SCALE, Segment

REASON = network.missing() or (None if tshark.TSHARK else "tshark is not installed")
pytestmark = pytest.mark.skipif(REASON is not None, reason=REASON or "")

BOTH_ROLES = pytest.mark.parametrize("ours_connects", [True, False], ids=["ours-connects", "ours-listens"])
PORT = 5001
THE_KERNEL, OURS = "fd53::a", "fd53::b"
FAST = ("--rate=100 Mbit/s", "--delay=5 ms", "--queue=1000 packets")
BAD = (
    *("--rate=50 Mbit/s", "--delay=5 ms", "--queue=1000 packets", "--loss=0.01", "--return-loss=0.01"),
    *("--jitter=3 ms", "--reorder", "--duplicate=0.01"),
)
ECONNREFUSED, ECONNRESET = "111", "104"


@dataclass
class Pair:
    """The two ends of a connection."""

    ours: Process
    kernel: Process
    capture: Path

    def both(self, command: str) -> None:
        """Tell both ends the same, at once."""
        self.ours.tell(command)
        self.kernel.tell(command)

    def wait_for_both(self, event: str, timeout: float = lab.SOON) -> None:
        self.ours.wait_for(event, timeout=timeout)
        self.kernel.wait_for(event, timeout=timeout)

    def check_received(self, *, by_ours: int, by_kernel: int) -> None:
        """Each end has got all that the other sent, right, and its end."""
        for end, expected in ((self.ours, by_ours), (self.kernel, by_kernel)):
            fields = end.wait_for("end", timeout=lab.SOON).fields
            assert (fields["bytes"], fields["wrong"]) == (str(expected), "0"), end.name

    def segments(self) -> list[Segment]:
        """Ends our end, and reads the capture."""
        self.ours.finish()
        return tcp_capture.segments(self.capture, ours=OURS)


@contextlib.contextmanager
def pair(
    directory: Path,
    *,
    ours_connects: bool,
    link: Sequence[str] = FAST,
    ours: Sequence[str] = (),
    kernel: Sequence[str] = (),
    sysctls: Sequence[str] = (),
) -> Iterator[Pair]:
    """A connection, established."""
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(lab.Namespace("k"))
        for name in sysctls:
            host.sysctl(f"net/ipv4/{name}", "0")
        capture = directory / "tcp.pcapng"
        own = start_ours(stack, host, *ours, *link, f"--pcap={capture}", connects=ours_connects)
        if ours_connects:
            other = stack.enter_context(lab.kernel_peer(host, "listen", str(PORT), *kernel))
            other.wait_for("listening", timeout=lab.SOON)
            own.tell("connect")
        else:
            other = stack.enter_context(lab.kernel_peer(host, "connect", OURS, str(PORT), *kernel))
        both = Pair(own, other, capture)
        both.wait_for_both("connected")
        yield both


def start_ours(stack: contextlib.ExitStack, host: lab.Namespace, *options: str, connects: bool) -> Process:
    """Our end, with the device in `host` up."""
    role = ["connect", THE_KERNEL, str(PORT)] if connects else ["listen", str(PORT)]
    command = [str(lab.program()), "tcp", "--tun", f"{host.name}:tun0", "--address", OURS, *options, *role]
    own = stack.enter_context(Process(command, "ours"))
    own.wait_for("ready", timeout=lab.SOON)
    host.device_up("tun0", f"{THE_KERNEL}/64")
    return own


@pytest.mark.slow
@BOTH_ROLES
def test_twenty_megabytes_each_way(tmp_path: Path, *, ours_connects: bool) -> None:
    with pair(tmp_path, ours_connects=ours_connects) as ends:
        ends.both("send 20000000")
        ends.both("close")
        ends.wait_for_both("closed", timeout=90)
        ends.check_received(by_ours=20_000_000, by_kernel=20_000_000)
        segments = ends.segments()
    for syn in (s for s in segments if s.has(SYN)):
        assert {MSS, WINDOW_SCALE, SACK_PERMITTED, TIMESTAMPS} <= syn.options
    assert all(TIMESTAMPS in s.options for s in segments if not s.has(RST))
    # the kernel offered more than 64 kB, and we used it
    assert max(s.window for s in segments if s.source == THE_KERNEL) > 65_535


@BOTH_ROLES
def test_five_megabytes_each_way_over_a_link_that_loses_repeats_and_reorders(
    tmp_path: Path, *, ours_connects: bool
) -> None:
    with pair(tmp_path, ours_connects=ours_connects, link=BAD) as ends:
        ends.both("send 5000000")
        ends.both("close")
        ends.wait_for_both("closed", timeout=120)
        ends.check_received(by_ours=5_000_000, by_kernel=5_000_000)
        segments = ends.segments()
        summary = ends.ours.wait_for("summary", timeout=lab.SOON).fields
    assert "'lost': 0" not in summary["from_kernel"], "nothing was lost: the test tested nothing"
    for source in (THE_KERNEL, OURS):
        assert any(SACK in s.options for s in segments if s.source == source), f"no SACK from {source}"


@pytest.mark.parametrize("without", ["tcp_timestamps", "tcp_sack", "tcp_window_scaling"])
def test_what_the_kernel_does_not_offer_is_done_without(tmp_path: Path, *, without: str) -> None:
    option = {"tcp_timestamps": TIMESTAMPS, "tcp_sack": SACK_PERMITTED, "tcp_window_scaling": WINDOW_SCALE}[without]
    with pair(tmp_path, ours_connects=False, link=BAD, sysctls=[without]) as ends:
        ends.both("send 500000")
        ends.both("close")
        ends.wait_for_both("closed", timeout=60)
        ends.check_received(by_ours=500_000, by_kernel=500_000)
        segments = ends.segments()
    assert not any(option in s.options for s in segments)


@pytest.mark.parametrize("first", ["ours", "kernel"])
def test_one_end_closes_and_the_other_goes_on_sending(tmp_path: Path, *, first: str) -> None:
    with pair(tmp_path, ours_connects=True) as ends:
        closer, other = (ends.ours, ends.kernel) if first == "ours" else (ends.kernel, ends.ours)
        ends.both("send 1000")
        closer.tell("close")
        other.wait_for("end", timeout=lab.SOON)
        other.tell("send 1000000")
        other.tell("close")
        ends.wait_for_both("closed")
        sent = {"ours": 1000, "kernel": 1_001_000} if first == "ours" else {"ours": 1_001_000, "kernel": 1000}
        ends.check_received(by_ours=sent["kernel"], by_kernel=sent["ours"])
        assert not any(s.has(RST) for s in ends.segments())


@BOTH_ROLES
def test_both_ends_close_at_once(tmp_path: Path, *, ours_connects: bool) -> None:
    with pair(tmp_path, ours_connects=ours_connects, link=("--delay=100 ms",)) as ends:
        ends.both("send 5000")
        time.sleep(0.5)
        ends.both("close")
        ends.wait_for_both("closed")
        ends.check_received(by_ours=5000, by_kernel=5000)
        segments = ends.segments()
    fins = {s.source: s for s in segments if s.has(FIN)}
    assert set(fins) == {THE_KERNEL, OURS}
    for source, fin in fins.items():
        other = fins[OURS if source == THE_KERNEL else THE_KERNEL]
        assert fin.ack <= other.seq + other.length, "a FIN acknowledges the other: they did not cross"
    assert not any(s.has(RST) for s in segments)


@pytest.mark.parametrize("seed", range(1, 9))
def test_both_ends_close_at_once_over_a_link_that_loses_a_third(tmp_path: Path, *, seed: int) -> None:
    link = ("--delay=20 ms", f"--seed={seed}", "--loss=0.3", "--return-loss=0.3", "--duplicate=0.1")
    with pair(tmp_path, ours_connects=seed % 2 == 0, link=link) as ends:
        ends.both("send 3000")
        ends.both("close")
        ends.wait_for_both("closed", timeout=120)
        ends.check_received(by_ours=3000, by_kernel=3000)
        ends.segments()


@pytest.mark.parametrize("who", ["ours", "kernel"])
def test_a_reset_ends_it_at_both_ends(tmp_path: Path, *, who: str) -> None:
    with pair(tmp_path, ours_connects=True) as ends:
        ends.both("send 100000")
        ends.wait_for_both("sent")
        ends.wait_for_both("progress")
        if who == "ours":
            ends.ours.tell("reset")
            assert ends.kernel.wait_for("failed", timeout=lab.SOON).fields["error"] == ECONNRESET
        else:
            ends.kernel.tell("reset")
            assert ends.ours.wait_for("failed", timeout=lab.SOON).fields["how"] == "reset"
        resets = [s for s in ends.segments() if s.has(RST)]
    assert resets
    assert resets[0].source == (OURS if who == "ours" else THE_KERNEL)


@BOTH_ROLES
def test_nobody_listens(tmp_path: Path, *, ours_connects: bool) -> None:
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(lab.Namespace("k"))
        capture = tmp_path / "tcp.pcapng"
        own = start_ours(stack, host, f"--pcap={capture}", connects=ours_connects)
        if ours_connects:
            own.tell("connect")
            assert own.wait_for("failed", timeout=lab.SOON).fields["how"] == "refused"
        else:
            other = stack.enter_context(lab.kernel_peer(host, "connect", OURS, str(PORT + 1)))
            assert other.wait_for("failed", timeout=lab.SOON).fields["error"] == ECONNREFUSED
        own.finish()
        assert any(s.has(RST) for s in tcp_capture.segments(capture, ours=OURS))


@pytest.mark.parametrize("reader", ["ours", "kernel"])
def test_a_reader_that_pauses_closes_the_window_and_opens_it_again(tmp_path: Path, *, reader: str) -> None:
    ours = ("--paused", "--receive-buffer=60 kB") if reader == "ours" else ()
    kernel = ("paused", "rcvbuf=60000") if reader == "kernel" else ()
    with pair(tmp_path, ours_connects=True, ours=ours, kernel=kernel) as ends:
        writer, other = (ends.kernel, ends.ours) if reader == "ours" else (ends.ours, ends.kernel)
        writer.tell("send 1000000")
        writer.tell("close")
        time.sleep(3)
        assert not other.find("progress")
        other.tell("resume")
        other.wait_for("end", timeout=lab.SOON)
        other.tell("close")
        ends.wait_for_both("closed")
        received = (1_000_000, 0) if reader == "ours" else (0, 1_000_000)
        ends.check_received(by_ours=received[0], by_kernel=received[1])
        segments = ends.segments()
    source, sink = (THE_KERNEL, OURS) if reader == "ours" else (OURS, THE_KERNEL)
    closed = [s for s in segments if s.source == sink and s.window == 0 and not s.has(SYN)]
    assert closed, "the window was never closed"
    first, last = closed[0].at, closed[-1].at
    assert last - first > 1, "it was not kept closed"
    probes = [s for s in segments if s.source == source and first < s.at <= last]
    # persist timer: 200 ms or more, doubled
    assert 2 <= len(probes) <= 12, f"{len(probes)} probes"


def test_the_kernel_finds_out_that_we_are_gone() -> None:
    """A segment for a connection that there is not is answered by a RST that the kernel takes for one."""
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(lab.Namespace("k"))
        own = start_ours(stack, host, connects=False)
        other = stack.enter_context(lab.kernel_peer(host, "connect", OURS, str(PORT)))
        other.wait_for("connected", timeout=lab.SOON)
        own.finish()
        again = start_ours(stack, host, connects=False)
        other.tell("send 1000")
        assert other.wait_for("failed", timeout=lab.SOON).fields["error"] == ECONNRESET
        again.finish()
        assert again.wait_for("summary", timeout=lab.SOON).fields["resets_sent"] != "0"

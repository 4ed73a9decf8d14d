"""What the tests against other SCTP implementations share: who the peers are, and what is judged of every capture."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import build
import guest
import network
import peers
import pytest
import tshark
from network import Network
from peers import Peer, Settings
from process import Process


@dataclass
class Judge:
    """A pair of hosts with an association between ours and another implementation, and its capture's verdict."""

    name: str
    start_other: Callable[[peers.End, Settings], Peer]
    make_network: Callable[[], Network]
    stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def connect(
        self,
        settings: Settings,
        *extra: str,
        ours_connects: bool,
        our_links: Sequence[int] = (0, 1),
        other_links: Sequence[int] = (0, 1),
        other_settings: Settings | None = None,
    ) -> tuple[Process, Peer]:
        """Start both ends, with addresses on these links, and wait until the association is up.

        `extra` goes to segue-sctp; `other_settings` are those of the other end where they differ.
        """
        self.network = self.stack.enter_context(self.make_network())
        a, b = self.network.hosts
        ours, theirs = peers.ends(a, b, a_connects=ours_connects, a_links=our_links, b_links=other_links)
        theirs_set = other_settings or settings
        if ours_connects:
            other = self._start_other(theirs, theirs_set)
            other.wait_for("ready", timeout=peers.SOON)
            own = self.stack.enter_context(peers.segue(ours, settings, *extra))
        else:
            own = self.stack.enter_context(peers.segue(ours, settings, *extra))
            own.wait_for("listening", timeout=peers.SOON)
            other = self._start_other(theirs, theirs_set)
        own.wait_for("connected", timeout=peers.SOON)
        other.wait_for("up", timeout=peers.SOON)
        return own, other

    def _start_other(self, end: peers.End, settings: Settings) -> Peer:
        other = self.start_other(end, settings)
        self.stack.enter_context(other)
        return other

    def packets(self) -> list[tshark.SctpPacket]:
        """The capture, once nothing more comes; tshark must have no objection to any packet of it."""
        capture = self.network.stop()
        assert tshark.complaints(capture) == []
        return tshark.sctp_packets(capture)


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[guest.Guest]:
    """The emulated machine, booted once, with an address on each of its links."""
    with guest.Guest(tmp_path_factory.mktemp("guest")) as running:
        running.boot()
        for link in range(guest.LINKS):
            running.do(f"link eth{link} up")
            running.do(f"address add eth{link} {network.address(link, 1)}")
        yield running


@pytest.fixture(params=["usrsctp", "linux"])
def judge(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Judge]:
    """The other implementation, with a network to it that is made when `connect` is called."""
    reason = network.missing() or (None if tshark.TSHARK else "tshark is not installed")
    if request.param == "usrsctp":
        reason = reason or build.missing_header("usrsctp.h", "libusrsctp-dev")
        if reason is None:
            made = Judge("usrsctp", peers.usrsctp, lambda: Network(tmp_path))
    else:
        reason = reason or guest.missing()
        if reason is None:
            running: guest.Guest = request.getfixturevalue("machine")
            made = Judge("linux", peers.linux(running), lambda: Network(tmp_path, guest_directory=running.directory))
    if reason is not None:
        pytest.skip(reason)
    with made.stack:
        yield made

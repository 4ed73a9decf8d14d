"""A pair of hosts that speak to each other, and what tshark makes of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import peers
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
    others: list[Peer] = field(default_factory=list)

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
        self.others.append(other)
        self.stack.enter_context(other)
        return other

    def crashed(self) -> bool:
        """Whether the other implementation died of itself, as usrsctp 0.9.5 now and then does in its timer thread."""
        return any(other.crashed() for other in self.others)

    def packets(self) -> list[tshark.SctpPacket]:
        """The capture, once nothing more comes; tshark must have no objection to any packet of it."""
        capture = self.network.stop()
        assert tshark.complaints(capture) == []
        return tshark.sctp_packets(capture)

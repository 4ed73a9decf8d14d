"""A pair of hosts that speak to each other, and what tshark makes of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import peers
import pytest
import tshark
from network import Network
from peers import Peer, Settings
from process import Event, Process

# Crashes of other implementations that no packet causes, by the thread in which they happen. usrsctp handles packets in
# threads of other names ("SCTP/IP6 rcv", "SCTP/UDP/IP6 rcv").
KNOWN_CRASHES = {("usrsctp", "SCTP timer"): "usrsctp 0.9.5 dies now and then in its timer thread"}
# What usrsctp dies of in any thread: its sctp_asconf_timer() gives back a reference to the peer's address with each
# repetition of an ASCONF, also where it has taken none because there is no other address to repeat it to. With the
# fourth the address is freed, and whoever uses it next dies: the timer thread, or the one that handles the next packet.
# So it is in 0.9.5, and in the repository to this day. No packet causes it: an acknowledgement does not come.
FREED = "usrsctp frees the address of a peer that has one, if no ASCONF to it is answered, and goes on to use it"
# It has been sent so often when the timer expires that frees it.
FREED_AFTER = 4
# A crash without a word.
UNSAID = Event(0, "crashed", {"thread": "?"})


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

    def crashes(self) -> list[str]:
        """In which threads the other implementation died of a signal; "?" where it could not say."""
        dead = [other for other in self.others if other.crashed()]
        return [event.fields["thread"] for other in dead for event in other.find("crashed")[:1] or [UNSAID]]

    def excuse(self) -> str | None:
        """Why a crash of the other implementation says nothing of ours: it is known, and no packet of ours was wrong.

        None if there is no such reason, as when a packet was being handled: then it is for us to show that it was a
        legitimate one.
        """
        found = self.crashes()
        if not found or tshark.complaints(capture := self.network.stop()):
            return None
        freed = FREED if self.name == "usrsctp" and self.has_freed(tshark.sctp_packets(capture)) else None
        known = [freed or KNOWN_CRASHES.get((self.name, thread)) for thread in found]
        return None if None in known else known[0]

    def has_freed(self, packets: Sequence[tshark.SctpPacket]) -> bool:
        """Whether the other end sent its last ASCONF, which was not answered, so often to one address: see `FREED`."""
        theirs = self.network.hosts[1].addresses
        to: list[str] = []
        for packet in packets:
            if packet.has("ASCONF ACK") and packet.destination in theirs:
                to.clear()
            elif packet.has("ASCONF") and packet.source in theirs:
                to.append(packet.destination)
        return len(to) >= FREED_AFTER and len(set(to)) == 1

    def consider_crashes(self, report: pytest.TestReport) -> None:
        """A crash of the other implementation is a failure, whatever the test found.

        If it is excused, a test that failed by it says nothing about ours: it is skipped, and the crash is named.
        """
        if report.skipped or not (crashes := self.crashes()):
            return
        path, line, _ = report.location
        if (excuse := self.excuse()) is None:
            report.outcome = "failed"
            said = f"\n{report.longrepr}" if report.longrepr else ""
            report.longrepr = f"{self.name} died of a signal in {', '.join(crashes)}{said}"
        elif report.failed:
            report.outcome = "skipped"
            report.longrepr = (path, line or 0, excuse)

    def packets(self) -> list[tshark.SctpPacket]:
        """The capture, once nothing more comes; tshark must have no objection to any packet of it."""
        capture = self.network.stop()
        assert tshark.complaints(capture) == []
        return tshark.sctp_packets(capture)

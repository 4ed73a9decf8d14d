"""Associations between ours and two implementations that nobody here wrote: usrsctp and the Linux kernel's.

Every test ends with tshark reading the whole capture, checksums validated, without an objection.
"""

from __future__ import annotations

import time

import pytest
import tshark
from judge import Judge
from peers import SOON, Peer, Settings
from process import Process

BOTH_ROLES = pytest.mark.parametrize("ours_connects", [True, False], ids=["ours-connects", "ours-listens"])
# 1000 bytes every 5 ms.
STREAM = ("--rate=1.6 Mbit/s", "--size=1000 B", "--verify")
SET_UP = ["INIT", "INIT ACK", "COOKIE ECHO", "COOKIE ACK"]
GRACEFUL_END = ["SHUTDOWN", "SHUTDOWN ACK", "SHUTDOWN COMPLETE"]


def chunks(packets: list[tshark.SctpPacket]) -> list[str]:
    """All chunks of all packets that arrived, in order."""
    return [chunk for packet in packets if not packet.lost for chunk in packet.chunks]


def check_totals(own: Process, other: Peer, *, sent_by_other: int) -> None:
    """Each end has received every message that the other one sent, no byte of it wrong."""
    summary = own.wait_for("summary", timeout=SOON).fields
    end = other.wait_for("end", timeout=SOON).fields
    assert int(summary["received_messages"]) == sent_by_other
    assert summary["malformed"] == "0"
    assert end["messages"] == summary["sent_messages"]
    assert end["wrong"] == "0"


@BOTH_ROLES
@pytest.mark.parametrize("udp", [False, True], ids=["raw", "udp"])
def test_data_flows_both_ways_and_the_end_is_graceful(judge: Judge, *, ours_connects: bool, udp: bool) -> None:
    # the other end is to be done when this one ends the association, on a busy machine and in an emulated one too
    own, other = judge.connect(Settings(udp=udp), *STREAM, "--duration=8 s", ours_connects=ours_connects)
    other.tell("send 60 1000 2000")
    own.wait_for("closed", timeout=SOON)
    check_totals(own, other, sent_by_other=60)
    packets = judge.packets()
    assert tshark.is_subsequence([*SET_UP, "DATA", "SACK", *GRACEFUL_END], chunks(packets))
    # the other addresses were probed, over the link that leads to them
    probed = {(packet.destination, packet.link) for packet in packets if packet.has("HEARTBEAT")}
    hosts = judge.network.hosts
    assert {(hosts[0].addresses[1], 1), (hosts[1].addresses[1], 1)} <= probed
    # the answer may come from another address of the host
    assert len([packet for packet in packets if packet.has("HEARTBEAT ACK")]) >= 2


@BOTH_ROLES
def test_the_other_end_shuts_down(judge: Judge, *, ours_connects: bool) -> None:
    own, other = judge.connect(Settings(), *STREAM, ours_connects=ours_connects)
    other.tell("send 100 1000 0")
    other.wait_for("sent", timeout=SOON)
    other.tell("shutdown")
    own.wait_for("closed", timeout=SOON)
    other.wait_for("end", timeout=SOON)
    packets = judge.packets()
    assert tshark.is_subsequence([*SET_UP, "DATA", *GRACEFUL_END], chunks(packets))
    first = next(packet for packet in packets if packet.has("SHUTDOWN"))
    assert first.source in judge.network.b.addresses


@BOTH_ROLES
@pytest.mark.parametrize("by_ours", [True, False], ids=["ours-aborts", "other-aborts"])
def test_an_abort_ends_both_ends(judge: Judge, *, ours_connects: bool, by_ours: bool) -> None:
    script = ("--script=300 ms abort",) if by_ours else ()
    own, other = judge.connect(Settings(), *STREAM, *script, ours_connects=ours_connects)
    if not by_ours:
        other.tell("abort")
        own.wait_for("aborted", timeout=SOON)
    other.wait_for("end", timeout=SOON)
    packets = judge.packets()
    assert tshark.is_subsequence([*SET_UP, "ABORT"], chunks(packets))
    assert "SHUTDOWN" not in chunks(packets)


@BOTH_ROLES
def test_a_link_that_fails_stops_neither_direction(judge: Judge, *, ours_connects: bool) -> None:
    own, other = judge.connect(Settings(log=True), *STREAM, ours_connects=ours_connects)
    other.tell("send 700 1000 5000")
    time.sleep(1)
    down = judge.network.command("down 0") / 1e9
    other.wait_for("sent", timeout=3 * SOON)
    other.tell("shutdown")
    own.wait_for("closed", timeout=SOON)
    check_totals(own, other, sent_by_other=700)
    after = [packet for packet in judge.packets() if packet.at > down + 1.5 and packet.has("DATA")]
    for host in judge.network.hosts:
        assert {packet.link for packet in after if packet.source in host.addresses} == {1}

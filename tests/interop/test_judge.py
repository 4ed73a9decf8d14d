"""What is made of a crash of the other implementation."""

from __future__ import annotations

import contextlib
import ctypes
import signal
import subprocess
from pathlib import Path

import build
import network
import peers
import pytest
import tshark
from judge import FREED, FREED_AFTER, KNOWN_CRASHES, Judge
from network import Network
from peers import Settings
from process import Process

pytestmark = pytest.mark.skipif(
    (MISSING := network.missing() or build.missing_header("usrsctp.h", "libusrsctp-dev")) is not None
    or tshark.TSHARK is None,
    reason=str(MISSING or "tshark is not installed"),
)


def crash(other: Process, thread: str) -> None:
    """Have this thread of it die."""
    tasks = Path("/proc", str(other.child.pid), "task")
    task = next(task for task in tasks.iterdir() if (task / "comm").read_text().strip() == thread)
    assert ctypes.CDLL(None).tgkill(other.child.pid, int(task.name), signal.SIGSEGV) == 0
    other.child.wait(10)
    for reader in other.readers:
        reader.join(10)


def packet(source: str, destination: str, *chunks: str) -> tshark.SctpPacket:
    """One of a capture."""
    return tshark.SctpPacket(0, 0, source, destination, list(chunks), lost=False)


def report(outcome: str) -> pytest.TestReport:
    """Of a test that found nothing, or something."""
    passed = outcome == "passed"
    return pytest.TestReport(
        "test", ("file", 1, "test"), {}, "passed" if passed else "failed", None if passed else "no answer", "call"
    )


@pytest.mark.parametrize("thread", ["SCTP timer", "SCTP/IP6 rcv"])
def test_a_crash_is_a_failure_unless_no_packet_was_being_handled(tmp_path: Path, thread: str) -> None:
    judge = Judge("usrsctp", peers.usrsctp, lambda: Network(tmp_path))
    known = KNOWN_CRASHES.get(("usrsctp", thread))
    with judge.stack:
        _, other = judge.connect(Settings(), ours_connects=True)
        assert isinstance(other, Process)
        found = {outcome: report(outcome) for outcome in ("passed", "failed")}
        for one in found.values():
            judge.consider_crashes(one)
        assert {outcome: one.outcome for outcome, one in found.items()} == {"passed": "passed", "failed": "failed"}
        crash(other, thread)
        assert judge.crashes() == [thread]
        for one in found.values():
            judge.consider_crashes(one)
    if known is None:
        assert (found["passed"].outcome, found["failed"].outcome) == ("failed", "failed")
        assert "usrsctp died of a signal in SCTP/IP6 rcv" in str(found["failed"].longrepr)
        assert "no answer" in str(found["failed"].longrepr)
    else:
        assert (found["passed"].outcome, found["failed"].outcome) == ("passed", "skipped")
        assert found["failed"].longrepr == ("file", 1, known)


def test_a_known_crash_is_no_excuse_if_tshark_objects_to_a_packet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = Judge("usrsctp", peers.usrsctp, lambda: Network(tmp_path))
    with judge.stack:
        _, other = judge.connect(Settings(), ours_connects=True)
        assert isinstance(other, Process)
        crash(other, "SCTP timer")
        assert judge.excuse() is not None
        monkeypatch.setattr(tshark, "complaints", lambda _: ["packet 7: malformed"])
        failed = report("failed")
        judge.consider_crashes(failed)
    assert failed.outcome == "failed"


def test_a_crash_after_an_asconf_that_nobody_answered_is_excused_in_any_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = Judge("usrsctp", peers.usrsctp, lambda: Network(tmp_path))
    keys = [Settings(key=f"1:{digit * 32}", rto_min=50) for digit in "ab"]
    with judge.stack:
        _, other = judge.connect(keys[0], ours_connects=True, our_links=(0,), other_links=(0,), other_settings=keys[1])
        assert isinstance(other, Process)
        other.tell(f"add {network.address(1, 1)}")
        # of itself, unless Debian has mended it
        with contextlib.suppress(subprocess.TimeoutExpired):
            other.child.wait(6)
        if not other.crashed():
            crash(other, "SCTP/IP6 rcv")
        for reader in other.readers:
            reader.join(10)
        failed = report("failed")
        judge.consider_crashes(failed)
        seen = (judge.crashes(), tshark.complaints(judge.network.stop()), other.tail())
        assert (failed.outcome, failed.longrepr) == ("skipped", ("file", 1, FREED)), seen
        monkeypatch.setattr(tshark, "complaints", lambda _: ["packet 7: malformed"])
        failed = report("failed")
        judge.consider_crashes(failed)
    assert failed.outcome == "failed"


def test_an_asconf_that_was_answered_or_went_elsewhere_frees_nothing(tmp_path: Path) -> None:
    judge = Judge("usrsctp", peers.usrsctp, lambda: Network(tmp_path))
    judge.network = Network(tmp_path)
    ours, theirs = (host.addresses for host in judge.network.hosts)
    sent = [packet(theirs[0], ours[0], "AUTH", "ASCONF")] * FREED_AFTER
    assert judge.has_freed(sent)
    assert not judge.has_freed(sent[1:])
    assert not judge.has_freed([*sent, packet(ours[0], theirs[0], "AUTH", "ASCONF ACK")])
    assert not judge.has_freed([*sent[1:], packet(theirs[0], ours[1], "AUTH", "ASCONF")])
    assert not judge.has_freed([packet(ours[0], theirs[0], "AUTH", "ASCONF")] * FREED_AFTER)

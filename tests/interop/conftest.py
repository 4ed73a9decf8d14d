"""What the tests against other SCTP implementations share: who the peers are, and what is judged of every capture."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import build
import guest
import network
import peers
import pytest
import tshark
from judge import Judge
from network import Network


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A crash of the other implementation is part of the verdict."""
    report = yield
    judge = getattr(item, "funcargs", {}).get("judge")
    if report.when == "call" and isinstance(judge, Judge):
        judge.consider_crashes(report)
    return report

"""The links of `segue-lab` in real time: what they are told to do is what the kernel's packets meet."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
from pathlib import Path

import lab
import network
import pytest

REASON = network.missing()
pytestmark = pytest.mark.skipif(REASON is not None, reason=REASON or "")

PORT = 5001


def test_a_link_has_its_rate_and_its_delay() -> None:
    """8 Mbit/s and 30 ms each way; a handshake waits for nothing else."""
    with contextlib.ExitStack() as stack:
        options = ("--rate=8 Mbit/s", "--delay=30 ms", "--queue=30 packets")
        a, b, link = stack.enter_context(lab.tun_link(*options))
        receiver = stack.enter_context(lab.kernel_peer(b, "listen", str(PORT)))
        receiver.wait_for("listening", timeout=lab.SOON)
        sender = stack.enter_context(lab.kernel_peer(a, "connect", "fd53::b", str(PORT)))
        rtt_ms = int(sender.wait_for("connected", timeout=lab.SOON).fields["rtt_us"]) / 1000
        # the kernel rounds what it measures; a busy machine adds to it, but not another 30 ms
        assert 59 < rtt_ms < 85
        sender.tell("send 5000000")
        sender.tell("close")
        receiver.wait_for("end", timeout=30)
        log = [(event.at / 1e9, int(event.fields["bytes"])) for event in receiver.find("progress")]
        link.finish()
    rates = [8 * (b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(log, log[5:], strict=False)]
    # 1428 bytes of data in packets of 1500
    assert 0.93 * 8e6 < statistics.median(rates) <= 8e6 * 1428 / 1500 * 1.01


def test_a_link_that_is_cut_carries_nothing_until_it_is_mended(tmp_path: Path) -> None:
    capture = tmp_path / "link.pcapng"
    with contextlib.ExitStack() as stack:
        a, b, link = stack.enter_context(lab.tun_link("--delay=1 ms", capture=capture))
        receiver = stack.enter_context(lab.kernel_peer(b, "listen", str(PORT)))
        receiver.wait_for("listening", timeout=lab.SOON)
        sender = stack.enter_context(lab.kernel_peer(a, "connect", "fd53::b", str(PORT)))
        sender.wait_for("connected", timeout=lab.SOON)
        link.ask("cut", "cut")
        sender.tell("send 1000")
        sender.tell("close")
        with pytest.raises(AssertionError, match="no end"):
            receiver.wait_for("end", timeout=1)
        link.ask("mend", "mend")
        end = receiver.wait_for("end", timeout=lab.SOON).fields
        link.finish()
    assert (end["bytes"], end["wrong"]) == ("1000", "0")
    assert capture.stat().st_size > 500


def test_what_is_written_wrongly_is_one_line() -> None:
    for arguments, expected in (
        (["link", "--a", "tun0", "--b", "x:tun1"], "expected a namespace and a device"),
        (["goodput", "--loss=2"], "expected a probability"),
        (["goodput", "--rate=10"], "no unit"),
        (["goodput", "--profile=linux-1.0"], "linux-1.0"),
        (["link", "--a", "sg-no-such:t0", "--b", "sg-no-such:t1"], "sg-no-such"),
        (["ilnp", "--tun=x:t0", "--interface=e0", "--config=/nonexistent.toml"], "/nonexistent.toml"),
    ):
        command = [str(lab.program()), *arguments]
        result = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert result.returncode == 2, arguments
        assert expected in result.stderr
        assert result.stderr.count("\n") == 1, result.stderr

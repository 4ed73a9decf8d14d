"""ILNPv6 under the kernel's own TCP: an unmodified iperf3 keeps its connection while its host changes networks.

The network and the handoff are those of `ilnp_iperf.py`. Between the hosts there is nothing of ours.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections import Counter
from math import inf
from pathlib import Path

import ilnp_iperf
import lab
import pytest
import tshark
from ilnp_iperf import CELLS, CORRESPONDENT_NID, FIXED, MOBILE_NID, Outcome, Settings, World

REASON = ilnp_iperf.missing() or (None if tshark.TSHARK else "tshark is not installed")
pytestmark = pytest.mark.skipif(REASON is not None, reason=REASON or "")

# Protocols, types and options as tshark has them.
TCP, ICMPV6 = "tcp", "icmpv6"
LOCATOR_UPDATE, PARAMETER_PROBLEM = "156", "4"
NONCE_OPTION = "0x8b"


def packets(capture: Path) -> list[dict[str, str]]:
    """The packets of a capture, as far as they matter here."""
    fields = ["frame.protocols", "ipv6.src", "ipv6.dst", "ipv6.opt.type", "icmpv6.type", "icmpv6.checksum.status"]
    fields += ["tcp.checksum.status", "frame.len", "_ws.malformed", "frame.interface_name", "tcp.flags.reset"]
    fields += ["frame.time_relative"]
    wanted = [argument for name in fields for argument in ("-e", name)]
    form = ["-o", "tcp.check_checksum:TRUE", "-T", "fields", "-E", "separator=/t", "-E", "occurrence=f"]
    return [
        dict(zip(fields, line.split("\t"), strict=True)) for line in tshark.run(capture, *form, *wanted).splitlines()
    ]


def check_capture(capture: Path, settings: Settings) -> None:
    """Every packet between the hosts is ILNPv6 as the RFCs have it."""
    found = packets(capture)
    between = [p for p in found if TCP in p["frame.protocols"].split(":")]
    assert len(between) > 1000
    # iperf3's server closes its end when it has seen enough, and the rest of the data is answered by resets: what
    # waits in queues, seconds where the machine is slow
    resets = [float(p["frame.time_relative"]) for p in between if p["tcp.flags.reset"] in ("1", "True")]
    assert min(resets, default=inf) > float(between[-1]["frame.time_relative"]) - 5
    good = tshark.CHECKSUM_GOOD
    for packet in between:
        assert packet["ipv6.opt.type"] == NONCE_OPTION
        assert {packet["ipv6.src"].split("::")[0], packet["ipv6.dst"].split("::")[0]} <= {*CELLS, FIXED}
        assert int(packet["frame.len"]) <= 1500
    assert max(int(p["frame.len"]) for p in between) == 1500, "the nonce costs no more than it must"
    if settings.checksum == "ipv6":
        assert Counter(p["tcp.checksum.status"] for p in between) == {good: len(between)}
    else:
        # over the identifiers alone, which tshark rightly calls bad; that the kernel takes them at the other end,
        # as TCP's own, says that they are what they should be
        bad = sum(p["tcp.checksum.status"] != good for p in between)
        assert bad > 0.99 * len(between)
    assert all(p["_ws.malformed"] == "" for p in found)
    signalling = [p for p in found if p["icmpv6.type"] == LOCATOR_UPDATE]
    assert signalling
    assert {p["icmpv6.checksum.status"] for p in signalling} == {good}
    assert not any(p["icmpv6.type"] == PARAMETER_PROBLEM for p in found), "somebody's kernel saw a nonce"


def check_outcome(outcome: Outcome) -> None:
    # the loss of cell 1 is told, but hands off nothing: cell 2 is in use by then
    assert [handoff["to"].startswith(CELLS[1]) for handoff in outcome.handoffs] == [True]
    assert outcome.longest_silence < 1
    # of 20 Mbit/s, headers and the nonce off
    assert outcome.bits_per_second > 10e6
    after = [rate for start, rate in outcome.intervals if start > outcome.lost_at + ilnp_iperf.INTERVAL_S]
    assert min(after) > 0
    for summary in outcome.shims:
        assert summary["malformed"] == "0"


@pytest.mark.parametrize(
    ("settings", "reverse"),
    [
        (Settings(), False),
        (Settings(), True),
        (Settings(nonce="96-bit", checksum="identifiers"), False),
    ],
    ids=["mobile-sends", "mobile-receives", "96-bit-nonce-and-identifier-checksum"],
)
@lab.real_time
def test_iperf3_survives_a_soft_handoff(tmp_path: Path, settings: Settings, *, reverse: bool) -> None:
    outcome = ilnp_iperf.handoff(tmp_path, settings, reverse=reverse)
    check_outcome(outcome)
    for capture in outcome.captures:
        check_capture(capture, settings)
    mobile = packets(outcome.captures[0])
    cells = {p["frame.interface_name"] for p in mobile if TCP in p["frame.protocols"].split(":")}
    assert cells == {"cell1", "cell2"}


@lab.real_time
def test_a_kernel_that_does_not_know_the_nonce_gets_plain_ipv6(tmp_path: Path) -> None:
    """The correspondent is a host without a shim: its kernel answers the nonce, and the shim falls back."""
    with contextlib.ExitStack() as stack:
        world = stack.enter_context(World(tmp_path))
        host = world.correspondent
        host.ip(f"address add {FIXED}::2/64 dev net nodad")
        host.ip(f"-6 route replace default via {FIXED}::a dev net")
        mobile = stack.enter_context(world.shim(world.mobile, MOBILE_NID, ["cell1"], Settings()))
        server = host.command("iperf3", "--server", "--one-off", "--bind", f"{FIXED}::2")
        listening = subprocess.Popen(server, stdout=subprocess.DEVNULL)
        stack.callback(listening.kill)
        time.sleep(0.5)
        client = ["iperf3", "--client", f"{FIXED}::2", "--time", "2", "--json"]
        output = subprocess.run(
            world.mobile.command(*client), check=False, capture_output=True, text=True, timeout=60
        ).stdout
        mobile.wait_for("fell_back", timeout=lab.SOON)
        mobile.finish()
    assert json.loads(output)["end"]["sum_received"]["bits_per_second"] > 5e6
    found = packets(world.capture(world.mobile))
    problems = [p for p in found if p["icmpv6.type"] == PARAMETER_PROBLEM]
    assert problems, "the kernel did not mind the nonce"
    plain = [p for p in found if TCP in p["frame.protocols"].split(":") and p["ipv6.opt.type"] == ""]
    assert len(plain) > 1000
    assert {p["tcp.checksum.status"] for p in plain if p["ipv6.src"].startswith(CELLS[0])} == {tshark.CHECKSUM_GOOD}


@pytest.mark.slow
@lab.real_time
def test_the_identity_stays_while_no_network_is_in_reach(tmp_path: Path) -> None:
    """Everything is lost for two seconds, and comes back elsewhere: the connection goes on."""
    settings = Settings()
    with contextlib.ExitStack() as stack:
        world = stack.enter_context(World(tmp_path))
        fixed = stack.enter_context(world.shim(world.correspondent, CORRESPONDENT_NID, ["net"], settings))
        mobile = stack.enter_context(world.shim(world.mobile, MOBILE_NID, ["cell1", "cell2"], settings))
        other = stack.enter_context(lab.kernel_peer(world.correspondent, "listen", "5001"))
        other.wait_for("listening", timeout=lab.SOON)
        address = ilnp_iperf.identity(CORRESPONDENT_NID)
        own = stack.enter_context(lab.kernel_peer(world.mobile, "connect", address, "5001"))
        own.wait_for("connected", timeout=lab.SOON)
        own.tell("send 40000000")
        other.wait_for("progress", timeout=lab.SOON)
        world.r1.ip("link set cell down")
        mobile.wait_for("address_lost", timeout=lab.SOON)
        time.sleep(2)
        world.r2.ip("link set cell up")
        mobile.wait_for("handoff_done", timeout=lab.SOON)
        own.tell("close")
        end = other.wait_for("end", timeout=90).fields
        assert (end["bytes"], end["wrong"]) == ("40000000", "0")
        for shim in (mobile, fixed):
            shim.finish()

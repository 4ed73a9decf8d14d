"""`segue analyze` on captures that nobody shaped for it, beside what the receiving program saw.

Kernel TCP, kernel MPTCP and wireguard-go between network namespaces (`roaming.py`), captured by dumpcap. The
interruption that the analysis finds must be that of the receiving program within 5 ms: by when its reads returned, and
by when the kernel took in the packets that ended the waits. A run in which one of the two reads came late is none to
judge by, and is made again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import roaming
import wireguard
from lab import SOON
from process import Process
from roaming import CORRESPONDENT, MOBILE, PORT, STAYING, Roaming

import segue
from segue import explain
from segue.findings import TrafficFlow, TrafficHandover

AGREE_S = 0.005
ATTEMPTS = 4
# How long the stream is sent, until its link goes, and without any way where the kernel knows no other by itself.
SENT_S = 2.4
BEFORE_S = 0.8
WITHOUT_S = 0.4


@dataclass(frozen=True)
class Recorded:
    """What a run leaves behind."""

    mobile: Path
    correspondent: Path
    silence: roaming.Silence


def record(
    network: Roaming, folder: Path, ends: Callable[[ExitStack, Path], Process], move: Callable[[], int]
) -> Recorded:
    """Capture at both hosts while a stream is sent and the mobile host moves.

    `ends` starts both programs and gives the receiver; `move` gives when the link was down.
    """
    log, mn, cn = folder / "log", folder / "mn.pcapng", folder / "cn.pcapng"
    with (
        roaming.capturing(network.mobile, mn, "link0", "link1"),
        roaming.capturing(network.correspondent, cn, "eth0"),
        ExitStack() as stack,
    ):
        receiver = ends(stack, log)
        time.sleep(BEFORE_S)
        down_ns = move()
        receiver.wait_for("ended", timeout=SOON)
        receiver.finish()
    return Recorded(mn, cn, roaming.silence(log, down_ns))


def download(network: Roaming, transport: str, source: str) -> Callable[[ExitStack, Path], Process]:
    """The mobile host calls from `source`, the correspondent sends."""

    def ends(stack: ExitStack, log: Path) -> Process:
        options = (transport, CORRESPONDENT, str(PORT))
        sender = stack.enter_context(roaming.stream(network.correspondent, "send", *options, str(SENT_S)))
        sender.wait_for("listening", timeout=SOON)
        calling = ("receive", *options, log, "--connect", "--source", source)
        receiver = stack.enter_context(roaming.stream(network.mobile, *calling))
        receiver.wait_for("connected", timeout=SOON)
        return receiver

    return ends


def tcp(folder: Path) -> Recorded:
    """TCP to an address that stays while the host loses one link and takes the other."""
    with roaming.roaming() as network:
        network.mobile.ip(f"address add {STAYING}/128 dev lo")
        network.router.ip(f"-6 route add {STAYING}/128 via {MOBILE[0]} dev m0")

        def move() -> int:
            down_ns = network.link_down(0)
            time.sleep(WITHOUT_S)
            network.mobile.ip("-6 route replace default via fd53:2::1 dev link1")
            network.router.ip(f"-6 route replace {STAYING}/128 via {MOBILE[1]} dev m1")
            return down_ns

        return record(network, folder, download(network, "tcp", STAYING), move)


def mptcp(folder: Path) -> Recorded:
    """MPTCP with a second subflow for backup, whose first one's link is taken down."""
    with roaming.roaming() as network:
        network.mobile.ip(f"mptcp endpoint add {MOBILE[1]} dev link1 subflow backup")
        return record(network, folder, download(network, "mptcp", MOBILE[0]), lambda: network.link_down(0))


def wireguard_peer(folder: Path) -> Recorded:
    """Datagrams through a tunnel to a peer that loses its address and goes on from another."""
    with roaming.roaming() as network, wireguard.tunnel(network.mobile, network.correspondent, folder) as addresses:

        def ends(stack: ExitStack, log: Path) -> Process:
            options = ("udp", addresses[0], str(PORT))
            receiver = stack.enter_context(roaming.stream(network.mobile, "receive", *options, log))
            receiver.wait_for("connected", timeout=SOON)
            # Longer than the others: the correspondent learns where its peer is from the next keepalive.
            seconds = str(SENT_S + wireguard.KEEPALIVE_S)
            stack.enter_context(roaming.stream(network.correspondent, "send", *options, seconds, "--connect"))
            return receiver

        def move() -> int:
            down_ns = network.link_down(0)
            time.sleep(WITHOUT_S)
            network.mobile.ip(f"address del {MOBILE[0]}/64 dev link0")
            network.mobile.ip("-6 route replace default via fd53:2::1 dev link1")
            return down_ns

        return record(network, folder, ends, move)


def quic(folder: Path) -> Recorded:
    """QUIC datagrams to a client that loses its link and goes on from another address with the same connection IDs."""
    with roaming.roaming() as network:
        receivers: list[Process] = []

        def ends(stack: ExitStack, log: Path) -> Process:
            options = (CORRESPONDENT, str(PORT))
            sender = stack.enter_context(roaming.quic_stream(network.correspondent, "send", *options, str(SENT_S)))
            sender.wait_for("listening", timeout=SOON)
            calling = ("receive", *options, log, "--source", MOBILE[0])
            receivers.append(stack.enter_context(roaming.quic_stream(network.mobile, *calling)))
            receivers[0].wait_for("connected", timeout=SOON)
            return receivers[0]

        def move() -> int:
            down_ns = network.link_down(0)
            time.sleep(WITHOUT_S)
            receivers[0].tell(f"move {MOBILE[1]}")
            return down_ns

        return record(network, folder, ends, move)


def judged(run: Callable[[Path], Recorded], folder: Path) -> Recorded:
    """A run in which the receiving program was not late when it mattered."""
    late = 0.0
    for attempt in range(ATTEMPTS):
        place = folder / str(attempt)
        place.mkdir()
        recorded = run(place)
        late = recorded.silence.lateness_s
        if late < AGREE_S / 2:
            return recorded
    pytest.skip(f"reads came up to {late * 1e3:.1f} ms late in each of {ATTEMPTS} runs: too busy to judge times by")


def only_handover(recorded: Recorded, *captures: Path) -> tuple[TrafficFlow, TrafficHandover]:
    """The one handover of the data to the mobile host."""
    findings = segue.analyze(*captures).findings
    assert not findings.is_partial
    flows = {flow.id: flow for flow in findings.flows}
    found = [h for h in findings.handovers if flows[h.flow].direction(h.direction).useful_bytes > 100_000]
    assert len(found) == 1, f"{found}, the program was interrupted for {recorded.silence}"
    return flows[found[0].flow], found[0]


def agree(handover: TrafficHandover, silence: roaming.Silence) -> None:
    """The analysis and the receiving program saw the same interruption."""
    assert silence.arrivals_s > 0.15, silence
    assert handover.interruption_s == pytest.approx(silence.arrivals_s, abs=AGREE_S), silence
    assert handover.interruption_s == pytest.approx(silence.reads_s, abs=AGREE_S), silence


def test_kernel_tcp_over_another_interface(tmp_path: Path) -> None:
    if reason := roaming.missing():
        pytest.skip(reason)
    recorded = judged(tcp, tmp_path)
    flow, handover = only_handover(recorded, recorded.mobile)
    assert (flow.protocol, handover.kind) == ("tcp", "interface")
    assert explain.moved(handover, flow) == ("link0", "link1")
    agree(handover, recorded.silence)
    _, both = only_handover(recorded, recorded.mobile, recorded.correspondent)
    agree(both, recorded.silence)
    assert both.ends is not None
    assert both.ends.lost_packets > 0
    assert both.ends.retransmissions > 0


def test_kernel_mptcp_over_another_subflow(tmp_path: Path) -> None:
    if reason := roaming.missing(mptcp=True):
        pytest.skip(reason)
    recorded = judged(mptcp, tmp_path)
    for captures in ((recorded.mobile,), (recorded.mobile, recorded.correspondent)):
        flow, handover = only_handover(recorded, *captures)
        assert (flow.protocol, handover.kind) == ("mptcp", "mptcp-subflow")
        assert [text.split()[0] for text in explain.moved(handover, flow)] == list(MOBILE)
        agree(handover, recorded.silence)


def test_wireguard_peer_that_roams(tmp_path: Path) -> None:
    if reason := roaming.missing() or wireguard.missing():
        pytest.skip(reason)
    recorded = judged(wireguard_peer, tmp_path)
    flow, handover = only_handover(recorded, recorded.mobile)
    assert (flow.protocol, handover.kind) == ("wireguard", "wireguard-endpoint")
    assert [text.split()[0] for text in explain.moved(handover, flow)] == list(MOBILE)
    agree(handover, recorded.silence)


def test_quic_client_that_is_rebound(tmp_path: Path) -> None:
    if reason := roaming.missing():
        pytest.skip(reason)
    pytest.importorskip("aioquic", reason="aioquic is not installed (pip): no QUIC client that moves")
    recorded = judged(quic, tmp_path)
    flow, handover = only_handover(recorded, recorded.mobile)
    assert (flow.protocol, handover.kind) == ("quic", "quic-path")
    assert [text.split()[0] for text in explain.moved(handover, flow)] == list(MOBILE)
    agree(handover, recorded.silence)

"""tshark judges captures of handoffs below TCP: Mobile IPv6 and ILNPv6 messages by name, and every checksum."""

from __future__ import annotations

import subprocess
import sysconfig
from collections import Counter
from pathlib import Path

import pytest
import tshark

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "scenarios" / "papers" / "ilnp.toml"
SEGUE = Path(sysconfig.get_path("scripts")) / "segue"

# A flow that is short and slow enough to be dissected in seconds, across the handoff of either protocol.
SETTINGS = ["duration=38 s", "application.0.start=28 s", "tcp.window_clamp=32 KiB", "ilnp.checksum=ipv6"]

# RFC 6275 section 6.1: types of the mobility header.
HOTI, COTI, HOT, COT, BU, BA = "1", "2", "3", "4", "5", "6"
LOCATOR_UPDATE = "156"
GOOD = "1"
EXPERT_ERROR = str(0x800000)

FIELDS = [
    "frame.number", "_ws.malformed", "_ws.expert.severity", "tcp.checksum.status", "icmpv6.checksum.status",
    "mip6.mhtype", "icmpv6.type",
]  # fmt: skip

pytestmark = pytest.mark.skipif(
    tshark.TSHARK is None,
    reason="tshark is not installed (Debian package tshark): captures are not checked with it",
)


def dissected(capture: Path) -> list[dict[str, str]]:
    """A row per packet: the fields, values of nested packets joined by commas."""
    assert tshark.TSHARK is not None
    command = [tshark.TSHARK, "-r", str(capture), "-o", "tcp.check_checksum:TRUE", "-T", "fields"]
    for field in FIELDS:
        command += ["-e", field]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in result.stdout.splitlines()]


@pytest.fixture(scope="module", params=["mip6", "mip6-ro", "ilnp-hard", "ilnp-soft"])
def handoff(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Path]]:
    scheme = str(request.param)
    directory = tmp_path_factory.mktemp(scheme)
    command = [str(SEGUE), "run", str(SCENARIO), "--set", f"scheme={scheme}", "--pcap", str(directory), "--json"]
    for setting in SETTINGS:
        command += ["--set", setting]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return scheme, sorted(directory.glob("*.pcapng"))


def test_every_packet_is_read_without_complaint(handoff: tuple[str, list[Path]]) -> None:
    _, captures = handoff
    assert [capture.stem for capture in captures] == ["cn", "mn"]
    for capture in captures:
        rows = dissected(capture)
        assert len(rows) > 1000
        for row in rows:
            number = row["frame.number"]
            assert not row["_ws.malformed"], f"{capture.name} packet {number}"
            assert EXPERT_ERROR not in row["_ws.expert.severity"].split(","), f"{capture.name} packet {number}"
            for field in ("tcp.checksum.status", "icmpv6.checksum.status"):
                states = set(row[field].split(",")) - {""}
                assert states <= {GOOD}, f"{capture.name} packet {number}: {field} {states}"
        assert sum(row["tcp.checksum.status"] == GOOD for row in rows) > 1000, "TCP checksums were not verified"


def test_messages_of_the_handoff_are_named(handoff: tuple[str, list[Path]]) -> None:
    scheme, captures = handoff
    kinds: Counter[str] = Counter()
    for row in dissected(captures[1]):
        kinds.update(f"mh {kind}" for kind in row["mip6.mhtype"].split(",") if kind)
        kinds.update(f"icmpv6 {kind}" for kind in row["icmpv6.type"].split(",") if kind)
    expected = {
        "mip6": {f"mh {BU}": 1, f"mh {BA}": 1},
        "mip6-ro": {f"mh {BU}": 2, f"mh {BA}": 2} | {f"mh {kind}": 1 for kind in (HOTI, COTI, HOT, COT)},
        "ilnp-hard": {f"icmpv6 {LOCATOR_UPDATE}": 2},
        "ilnp-soft": {f"icmpv6 {LOCATOR_UPDATE}": 4},
    }[scheme]
    found = {kind: count for kind, count in kinds.items() if kind.startswith("mh") or kind.endswith(LOCATOR_UPDATE)}
    assert found == expected

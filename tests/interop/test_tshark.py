"""tshark judges our captures: a SIGMA handover packet by packet; and the judge is put to the test itself."""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
import tshark

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "scenarios" / "papers" / "sigma.toml"
SEGUE = Path(sysconfig.get_path("scripts")) / "segue"

# RFC 8200 section 3 and RFC 9260 section 3.1, from the first byte of a packet without extension headers.
IPV6_HEADER_BYTES = 40
NEXT_HEADER = 6
SCTP, ICMPV6 = 132, 58
# pcapng: block types and the fixed part before an enhanced packet block's data.
SECTION_HEADER_BLOCK, ENHANCED_PACKET_BLOCK = 0x0A0D0D0A, 6
ENHANCED_PACKET_HEADER_BYTES = 28

pytestmark = pytest.mark.skipif(
    tshark.TSHARK is None,
    reason="tshark is not installed (Debian package tshark): captures are not checked with it",
)


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Captures of all hosts over the first 30 s of the SIGMA scenario: at least one whole handover."""
    directory = tmp_path_factory.mktemp("sigma")
    command = [SEGUE, "run", SCENARIO, "--set", "duration=30 s", "--pcap", directory, "--json"]
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    found = sorted(directory.glob("*.pcapng"))
    assert len(found) >= 2, "a capture per host: the mobile and the correspondent node at least"
    return found


def test_tshark_reads_every_packet_of_a_handover(captures: list[Path]) -> None:
    """No malformed packet, no expert error, and every checksum validated and good."""
    for capture in captures:
        assert tshark.complaints(capture) == []


def test_tshark_names_the_address_parameters(captures: list[Path]) -> None:
    """The handover's ASCONF chunks carry Add IP, Set Primary and Delete IP, under these names."""
    seen: set[int] = set()
    for capture in captures:
        for row in tshark.rows(capture):
            seen |= row.parameter_types
    assert {tshark.ADD_IP_ADDRESS, tshark.SET_PRIMARY_ADDRESS, tshark.DELETE_IP_ADDRESS} <= seen
    text = "".join(tshark.described(capture) for capture in captures)
    for name in ("Add IP address parameter", "Set primary address parameter", "Delete IP address parameter"):
        assert name in text


def flip_sctp_checksum(packet: bytearray) -> None:
    """One bit of the CRC32c itself."""
    packet[IPV6_HEADER_BYTES + 8] ^= 0x01


def flip_sctp_body(packet: bytearray) -> None:
    """One bit of the last byte of the packet, with the checksum as it was."""
    packet[-1] ^= 0x80


def overlong_sctp_chunk(packet: bytearray) -> None:
    """A chunk whose length passes the end of the packet."""
    packet[IPV6_HEADER_BYTES + 14 : IPV6_HEADER_BYTES + 16] = b"\xff\xff"


def flip_icmpv6_checksum(packet: bytearray) -> None:
    """One bit of the ICMPv6 checksum."""
    packet[IPV6_HEADER_BYTES + 2] ^= 0x01


@pytest.mark.parametrize(
    ("next_header", "damage", "complaint"),
    [
        (SCTP, flip_sctp_checksum, "SCTP checksum bad"),
        (SCTP, flip_sctp_body, "SCTP checksum bad"),
        (SCTP, overlong_sctp_chunk, "malformed"),
        (ICMPV6, flip_icmpv6_checksum, "ICMPv6 checksum bad"),
    ],
)
def test_damage_to_one_packet_is_noticed(
    captures: list[Path],
    tmp_path: Path,
    next_header: int,
    damage: Callable[[bytearray], None],
    complaint: str,
) -> None:
    """The judge can say no: one damaged packet in an otherwise good capture is found, and only that one."""
    good, (number, start, length) = first_packet(captures, next_header)
    content = bytearray(good.read_bytes())
    packet = content[start : start + length]
    damage(packet)
    content[start : start + length] = packet
    damaged = tmp_path / good.name
    damaged.write_bytes(content)
    found = tshark.complaints(damaged)
    assert any(text.startswith(f"{good.name} packet {number}: {complaint}") for text in found), found
    assert all(text.startswith(f"{good.name} packet {number}:") for text in found), found


def test_validation_that_is_off_is_noticed(captures: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the preference tshark verifies no SCTP checksum: the check says so instead of passing."""
    monkeypatch.setattr(tshark, "PREFERENCES", [])
    assert any("SCTP checksum unverified" in text for text in tshark.complaints(captures[0]))


def first_packet(captures: list[Path], next_header: int) -> tuple[Path, tuple[int, int, int]]:
    """The first packet of that kind: its file, and its number from 1, first byte and length there."""
    for capture in captures:
        content = capture.read_bytes()
        for position in packet_positions(content):
            if content[position[1] + NEXT_HEADER] == next_header:
                return capture, position
    raise AssertionError(f"no packet with next header {next_header} in any capture")


def packet_positions(content: bytes) -> list[tuple[int, int, int]]:
    """Number from 1, first byte and captured length of every packet of a pcapng file of raw IPv6 packets."""
    assert int.from_bytes(content[0:4], "little") == SECTION_HEADER_BLOCK
    order: Literal["little", "big"] = "little" if content[8:12] == b"\x4d\x3c\x2b\x1a" else "big"
    positions: list[tuple[int, int, int]] = []
    offset = 0
    while offset < len(content):
        block_type = int.from_bytes(content[offset : offset + 4], order)
        block_length = int.from_bytes(content[offset + 4 : offset + 8], order)
        if block_type == ENHANCED_PACKET_BLOCK:
            captured = int.from_bytes(content[offset + 20 : offset + 24], order)
            positions.append((len(positions) + 1, offset + ENHANCED_PACKET_HEADER_BYTES, captured))
        offset += block_length
    return positions

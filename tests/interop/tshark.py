"""What tshark says about a capture, as a list of complaints.

tshark does not validate SCTP checksums unless told to, and a validation that is off looks like one that
passed. So every packet must carry an explicit "good": a checksum that is unverified or absent is a complaint
like a bad one.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TSHARK = shutil.which("tshark")

# Values of tshark's *.checksum.status fields.
CHECKSUM_GOOD = "1"
CHECKSUM_STATUS = {"0": "bad", "1": "good", "2": "unverified", "3": "not present", "": "not reported"}
# Value of _ws.expert.severity.
EXPERT_ERROR = 0x800000

# RFC 5061 section 4.2 by parameter type, and how tshark names them.
ADD_IP_ADDRESS = 0xC001
DELETE_IP_ADDRESS = 0xC002
SET_PRIMARY_ADDRESS = 0xC004

# The value is "crc-32c" (or the description, "CRC 32c"). tshark accepts "crc32c" without a word and validates
# nothing.
PREFERENCES = ["-o", "sctp.checksum:crc-32c"]
FIELDS = [
    "frame.number",
    "frame.protocols",
    "frame.len",
    "frame.cap_len",
    "_ws.malformed",
    "_ws.expert.severity",
    "_ws.expert.message",
    "sctp.checksum.status",
    "icmpv6.checksum.status",
    "sctp.parameter_type",
]


@dataclass(frozen=True)
class Row:
    """One packet as dissected."""

    number: int
    protocols: list[str]
    length: int
    captured_length: int
    malformed: bool
    expert_errors: list[str]
    sctp_checksum: str
    icmpv6_checksum: str
    parameter_types: frozenset[int]


def rows(capture: Path) -> Iterator[Row]:
    """Every packet of `capture`, with SCTP checksum validation on."""
    wanted = [argument for name in FIELDS for argument in ("-e", name)]
    form = ["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=|"]
    for line in run(capture, *form, *wanted).splitlines():
        value = dict(zip(FIELDS, line.split("\t"), strict=True))
        severities = [int(text, 0) for text in split(value["_ws.expert.severity"])]
        yield Row(
            number=int(value["frame.number"]),
            protocols=value["frame.protocols"].split(":"),
            length=int(value["frame.len"]),
            captured_length=int(value["frame.cap_len"]),
            malformed=value["_ws.malformed"] != "",
            expert_errors=[value["_ws.expert.message"]] if EXPERT_ERROR in severities else [],
            sctp_checksum=value["sctp.checksum.status"],
            icmpv6_checksum=value["icmpv6.checksum.status"],
            parameter_types=frozenset(int(text, 0) for text in split(value["sctp.parameter_type"])),
        )


def complaints(capture: Path) -> list[str]:
    """Everything that is wrong with `capture`; empty if tshark reads every packet of it without objection."""
    found: list[str] = []
    count = 0
    for row in rows(capture):
        count += 1
        where = f"{capture.name} packet {row.number}"
        if row.malformed:
            found.append(f"{where}: malformed")
        if row.captured_length != row.length:
            found.append(f"{where}: {row.captured_length} of {row.length} bytes captured")
        found += [f"{where}: expert error: {text}" for text in row.expert_errors]
        if "sctp" in row.protocols and row.sctp_checksum != CHECKSUM_GOOD:
            found.append(f"{where}: SCTP checksum {CHECKSUM_STATUS[row.sctp_checksum]}")
        if "icmpv6" in row.protocols and row.icmpv6_checksum != CHECKSUM_GOOD:
            found.append(f"{where}: ICMPv6 checksum {CHECKSUM_STATUS[row.icmpv6_checksum]}")
        if not {"sctp", "icmpv6", "udp"} & set(row.protocols):
            found.append(f"{where}: not recognised beyond {row.protocols[-1]}")
    if count == 0:
        found.append(f"{capture.name}: no packets")
    return found


def described(capture: Path) -> str:
    """tshark's full text for the packets with an ASCONF chunk: what it calls each parameter."""
    return run(capture, "-Y", "sctp.chunk_type == 0xc1", "-O", "sctp")


def run(capture: Path, *arguments: str) -> str:
    """tshark's standard output for `capture`."""
    assert TSHARK is not None
    command = [TSHARK, "-n", "-r", str(capture), *PREFERENCES, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def split(aggregate: str) -> list[str]:
    """The values of a field that may occur more than once."""
    return [text for text in aggregate.split("|") if text]


# RFC 9260 section 3.2, RFC 4895, RFC 5061: chunk types as the tests name them.
CHUNK_NAMES = {
    0: "DATA",
    1: "INIT",
    2: "INIT ACK",
    3: "SACK",
    4: "HEARTBEAT",
    5: "HEARTBEAT ACK",
    6: "ABORT",
    7: "SHUTDOWN",
    8: "SHUTDOWN ACK",
    9: "ERROR",
    10: "COOKIE ECHO",
    11: "COOKIE ACK",
    14: "SHUTDOWN COMPLETE",
    15: "AUTH",
    128: "ASCONF ACK",
    192: "FORWARD TSN",
    193: "ASCONF",
}


@dataclass(frozen=True)
class SctpPacket:
    """One SCTP packet of a capture; `at` is s of the capture's clock."""

    at: float
    link: int
    source: str
    destination: str
    chunks: list[str]
    lost: bool

    def has(self, *names: str) -> bool:
        """Whether its chunks are, among others and in this order, of these types."""
        return is_subsequence(list(names), self.chunks)


def sctp_packets(capture: Path) -> list[SctpPacket]:
    """The SCTP packets of a capture of the relay."""
    fields = ["frame.time_epoch", "frame.interface_id", "ipv6.src", "ipv6.dst", "sctp.chunk_type", "frame.comment"]
    wanted = [argument for name in fields for argument in ("-e", name)]
    form = ["-Y", "sctp", "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=|"]
    packets: list[SctpPacket] = []
    for line in run(capture, *form, *wanted).splitlines():
        time, link, source, destination, types, comment = line.split("\t")
        names = [CHUNK_NAMES.get(int(text, 0), text) for text in split(types)]
        packets.append(SctpPacket(float(time), int(link), source, destination, names, comment != ""))
    return packets


def is_subsequence(wanted: list[str], found: list[str]) -> bool:
    """Whether `wanted` occurs in `found` in this order, other things between."""
    rest = iter(found)
    return all(name in rest for name in wanted)

"""What tshark says about TCP in a capture: every segment without objection, and what the tests look for in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tshark

# Off by default; without it a bad checksum looks like a good one.
CHECKED = ("-o", "tcp.check_checksum:TRUE")
# The streams are random bytes: now and then they look like the beginning of some protocol, whose reassembly then fails.
DATA_ONLY = ("-o", "tcp.desegment_tcp_streams:FALSE", "-d", "tcp.port==1-65535,data")
FIELDS = [
    "frame.number",
    "frame.time_relative",
    "frame.protocols",
    "_ws.malformed",
    "_ws.expert.severity",
    "_ws.expert.message",
    "tcp.checksum.status",
    "ipv6.src",
    "tcp.flags",
    "tcp.seq",
    "tcp.ack",
    "tcp.len",
    "tcp.window_size",
    "tcp.option_kind",
    "tcp.analysis.flags",
]
# What the kernel writes now and then where the checksum is zero, when it cuts a super-packet into segments. The two
# zeros of one's complement are the same to every receiver; we do not write it.
OTHER_ZERO = "0xffff instead of 0x0000"
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10

# Kinds of options (RFC 9293 section 3.1, RFC 7323, RFC 2018).
MSS, WINDOW_SCALE, SACK_PERMITTED, SACK, TIMESTAMPS = "2", "3", "4", "5", "8"


@dataclass(frozen=True)
class Segment:
    """A TCP segment; numbers count from the SYN of each direction."""

    at: float
    source: str
    flags: int
    seq: int
    ack: int
    length: int
    window: int
    options: frozenset[str]

    def has(self, *flags: int) -> bool:
        return all(self.flags & flag for flag in flags)


def segments(capture: Path, *, ours: str) -> list[Segment]:
    """All segments of `capture`, at each of which tshark has nothing to complain of. `ours` is our address."""
    wanted = [argument for name in FIELDS for argument in ("-e", name)]
    form = ["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=|"]
    found: list[Segment] = []
    complaints: list[str] = []
    for line in tshark.run(capture, *CHECKED, *DATA_ONLY, *form, *wanted).splitlines():
        value = dict(zip(FIELDS, line.split("\t"), strict=True))
        if "tcp" not in value["frame.protocols"].split(":"):
            continue
        where = f"packet {value['frame.number']}"
        other_zero = OTHER_ZERO in value["_ws.expert.message"]
        if value["tcp.checksum.status"] != tshark.CHECKSUM_GOOD and not (other_zero and value["ipv6.src"] != ours):
            complaints.append(f"{where}: checksum {tshark.CHECKSUM_STATUS[value['tcp.checksum.status']]}")
        if value["_ws.malformed"]:
            complaints.append(f"{where}: malformed")
        if tshark.EXPERT_ERROR in [int(text, 0) for text in tshark.split(value["_ws.expert.severity"])]:
            complaints.append(f"{where}: {value['_ws.expert.message']}")
        found.append(
            Segment(
                at=float(value["frame.time_relative"]),
                source=value["ipv6.src"],
                flags=int(value["tcp.flags"], 0),
                seq=int(value["tcp.seq"]),
                ack=int(value["tcp.ack"] or 0),
                length=int(value["tcp.len"]),
                window=int(value["tcp.window_size"]),
                options=frozenset(tshark.split(value["tcp.option_kind"])),
            )
        )
    assert not complaints, f"{len(complaints)} objections: {complaints[:5]}"
    assert found, "no TCP in the capture"
    return found

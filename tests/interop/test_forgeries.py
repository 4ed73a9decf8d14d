"""What is forged from a third network namespace moves nobody: `segue-lab run` with an attacker beside the two hosts."""

from __future__ import annotations

import json
import shutil
import struct
import sys
from collections.abc import Iterator
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import build
import lab
import network
import pytest

REASON = network.missing() or (None if shutil.which("iperf3") else "iperf3 is missing (Debian package iperf3)")
pytestmark = [pytest.mark.waits, pytest.mark.skipif(REASON is not None, reason=REASON or "")]

SCENARIOS = build.ROOT / "scenarios" / "lab"
FORGE = Path(__file__).parent / "peers" / "forge.py"

# The attacker: the third host, on the fourth link, with a program that needs neither peer nor port.
ATTACKER = """
[[host]]
name = "attacker"
spoofs = true

[[link]]
name = "attacker-core"
between = ["attacker", "core"]
rate = "100 Mbit/s"
delay = "0 ms"
queue = "1000 packets"

[[application]]
kind = "constant-rate"
transport = "udp"
from = "attacker"
to = "cn"
start = "1.5 s"
rate = "100 bit/s"
message = "100 B"
command = {command}
"""
SHORT = {
    "duration": "8 s",
    "cell.one.present": "0 s..5 s",
    "cell.two.present": "3 s..",
    "application.0.start": "1.5 s",
    "application.0.size": "10 MB",
    "application.0.command": json.dumps(
        ["iperf3", "-c", "{peer}", "-p", "{port}", "-t", "5", "-b", "20M", "-l", "2500"]
    ),
    "application.1.start": "1 s",
    "application.2.start": "1 s",
}
# The address plan of a scenario: cells from 2001:db8:2:: on, links from 2001:db8:ff00:: on; identifiers have the number
# of the host and of its interface.
CELL_ONE, CELL_TWO, CN_LINK, ATTACKER_LINK = (f"2001:db8:{part}:" for part in ("2", "3", "ff00", "ff03"))
ATTACKED = {
    "ilnp-soft": [
        "--scheme=ilnp", f"--here={ATTACKER_LINK}:ff:fe02:0",
        f"--mobile={CELL_ONE}:ff:fe01:0", f"--mobile={CELL_TWO}:ff:fe01:0", f"--correspondent={CN_LINK}:ff:fe00:0",
    ],
    "mip6-ro": [
        "--scheme=mip6", f"--here={ATTACKER_LINK}:1", f"--agent={CELL_ONE}:1",
        f"--mobile={CELL_ONE}:ff:fe01:0", f"--mobile={CELL_TWO}:ff:fe01:1", f"--correspondent={CN_LINK}:1",
    ],
}  # fmt: skip
# By which its victims have dropped it, and what must not have happened.
DROPPED = {
    "ilnp-soft": {"cn": ["lu_missing_nonce", "lu_wrong_nonce", "wrong_nonce"], "mn": ["lu_wrong_nonce"]},
    "mip6-ro": {"cn": ["expired_nonce", "malformed"], "mn": ["unexpected", "ignored"], "r1": ["unauthenticated"]},
}
# Of what is forged to be refused, this alone is answered: by a packet each (RFC 6275 sections 9.4 and 9.5.4).
ANSWERED = ("home test init of nobody", "care-of test init of nobody", "binding update, guessed")


def run(scheme: str, folder: Path) -> dict[str, Any]:
    """A short run under attack."""
    text = (SCENARIOS / f"{scheme}.toml").read_text()
    words = [sys.executable, str(FORGE), *ATTACKED[scheme]]
    file = folder / f"{scheme}.toml"
    file.write_text(text + ATTACKER.format(command=json.dumps(words)))
    settings = [f"--set={key}={value}" for key, value in SHORT.items()]
    return lab.run_in_time([str(lab.program()), "run", str(file), "--predict", f"--out={folder / 'out'}", *settings])


def packets(file: Path) -> Iterator[bytes]:
    """IPv6 packets of a pcapng file as the lab writes it (enhanced packet blocks)."""
    data = file.read_bytes()
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            captured = struct.unpack_from("<I", data, at + 20)[0]
            yield data[at + 28 : at + 28 + captured]
        at += length


@pytest.mark.parametrize("scheme", list(ATTACKED))
@lab.real_time
def test_what_is_forged_from_a_third_namespace_moves_nobody(scheme: str, tmp_path: Path) -> None:
    result = run(scheme, tmp_path)
    out = tmp_path / "out"
    attack = json.loads((out / "app3-client.out").read_text())
    assert min(attack["sent"].values()) > 50, attack
    # as without it: nobody dies, nothing is lost, and nobody moves but the mobile host, as often as in the simulator,
    # where there is no attack
    assert [one for one in result["flows"] if one["from"] != "attacker" and one["state"] == "dead"] == []
    of_ours = [move for move in result["handovers"] if move["host"] != "attacker"]
    assert len(of_ours) == len(result["prediction"]["handovers"])
    assert sum(move["lost_packets"] or 0 for move in of_ours) == 0
    counters = result["lab"]["counters"]
    told = {"lu_received": counters["mn"].get("lu_ack_received"), "bindings_accepted": 1}
    assert all(counters["cn"][name] == count for name, count in told.items() if name in counters["cn"]), counters["cn"]
    for node, names in DROPPED[scheme].items():
        for name in names:
            assert counters[node][name] > 50, (node, counters[node])
    there = IPv6Address(f"{ATTACKER_LINK}:")
    # what came to the attacker's link: never data, and no more packets than it had sent
    own, to_it = 0, []
    for raw in packets(out / "attacker.pcapng"):
        inbound = raw[24:32] == there.packed[:8]
        own += not inbound
        to_it += [raw] if inbound else []
    # the last rounds may leave when the run is over
    sent = sum(attack["sent"].values())
    assert 0.9 * sent < own <= sent
    assert len(to_it) <= sum(attack["sent"].get(name, 0) for name in ANSWERED)
    assert {next_header(raw) for raw in to_it} <= {135}


def next_header(raw: bytes) -> int:
    """The upper layer's number, behind destination options and routing headers."""
    kind, at = raw[6], 40
    while kind in (43, 60):
        kind, at = raw[at], at + 8 * (raw[at + 1] + 1)
    return kind

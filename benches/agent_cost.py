"""What the agent costs: added round-trip time while nothing else is sent, and memory with a thousand sessions.

    python benches/agent_cost.py SEGUE_AGENT [--rounds 4000] [--sessions 1000]

Two network namespaces joined by a veth pair. First a datagram goes to and fro through identities and one without the
agent, in turn, one at a time with a pause in between; medians. Then a thousand peers call: a program that speaks
ILNPv6 for as many node identifiers as are asked for, each with a nonce of its own, whose datagrams a program of this
host answers. A peer carries on: it has had its answer when a second one with the host's nonce has come back. Left
out, with the reason, without root. Standard library only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import struct
import sys
import tempfile
import time
from ipaddress import IPv6Address
from pathlib import Path

from agent_hosts import ENDS, IDENTITIES, NAMES, NIDS, PLAIN, agents, do, inside, network, running

PORT = 7
PAUSE_S = 0.002
SIZE = 64
# Strangers of one network (48 bits) may begin so many sessions at once and no more: the peers are from many.
PEERS_ROUTE = "2001:db8:4000::/40"
PEERS_PER_NETWORK = 20
# Who is not heard again after his first packet is soon forgotten.
ANSWERS = 2
UDP = 17
DESTINATION_OPTIONS = 60
ILNP_NONCE = 0x8B
PATIENCE_S = 60.0


def echo(*hosts: str) -> None:
    """Answer datagrams to these addresses for ever."""
    sockets = []
    for host in hosts:
        one = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        one.bind((host, PORT))
        sockets.append(one)
    if len(sockets) > 1 and os.fork() == 0:
        sockets = sockets[1:]
    while True:
        data, sender = sockets[0].recvfrom(2048)
        sockets[0].sendto(data, sender)


def ask(rounds: int, *hosts: str) -> None:
    """Round-trip times to these addresses in turn, microseconds, as JSON."""
    sockets = []
    for host in hosts:
        one = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        one.settimeout(1)
        one.connect((host, PORT))
        sockets.append(one)
    times: list[list[float]] = [[] for _ in hosts]
    for number in range(rounds):
        for one, found in zip(sockets, times, strict=True):
            time.sleep(PAUSE_S)
            before = time.perf_counter_ns()
            one.send(number.to_bytes(4, "big") * (SIZE // 4))
            one.recv(2048)
            found.append((time.perf_counter_ns() - before) / 1000)
    print(json.dumps(times))


def internet_checksum(data: bytes) -> int:
    """RFC 1071."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def first_packet(source: IPv6Address, destination: IPv6Address, nonce: bytes) -> bytes:
    """A datagram of 8 bytes with an ILNP nonce of 32 bits (RFC 6744 section 2)."""
    datagram = struct.pack("!HHHH", 40000, PORT, 16, 0) + nonce * 2
    pseudo = source.packed + destination.packed + struct.pack("!IHBB", len(datagram), 0, 0, UDP)
    checksum = internet_checksum(pseudo + datagram) or 0xFFFF
    datagram = datagram[:6] + checksum.to_bytes(2, "big") + datagram[8:]
    option = bytes([UDP, 0, ILNP_NONCE, 4]) + nonce
    fixed = struct.pack("!IHBB", 6 << 28, len(option) + len(datagram), DESTINATION_OPTIONS, 64)
    return fixed + source.packed + destination.packed + option + datagram


def be_peers(count: int, mac: str) -> None:
    """Call from so many node identifiers, until each has had its answers with a nonce; prints how many had."""
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x86DD))
    link.bind(("eth0", 0))
    link.settimeout(0.02)
    destination = IPv6Address(f"2001:db8:1:0:{NIDS['a']}")
    header = bytes.fromhex(mac.replace(":", "")) + bytes(link.getsockname()[4]) + b"\x86\xdd"
    places = [(0x4000 + number // PEERS_PER_NETWORK, number + 1) for number in range(count)]
    answers = {IPv6Address(f"2001:db8:{network:x}:0:2bb:0:0:{one:x}").packed: 0 for network, one in places}
    silent = set(answers)
    deadline = time.monotonic() + PATIENCE_S
    while silent and time.monotonic() < deadline:
        for source in list(silent)[:100]:
            # the nonce of each is the same every time, and no other's
            nonce = b"\x5e" + source[-3:]
            link.send(header + first_packet(IPv6Address(source), destination, nonce))
        with contextlib.suppress(TimeoutError):
            while silent:
                packet = link.recv(2048)[14:]
                if packet[6] == DESTINATION_OPTIONS and packet[42] == ILNP_NONCE:
                    peer = packet[24:40]
                    answers[peer] = answers.get(peer, 0) + 1
                    if answers[peer] >= ANSWERS:
                        silent.discard(peer)
    print(count - len(silent))


def resident_kib(process: int) -> int:
    """Resident memory."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    found = next(line for line in lines if line.startswith("VmRSS:"))
    return int(found.split()[1])


def measure(program: str, rounds: int, sessions: int) -> dict[str, float]:
    """Medians of round trips, microseconds; resident memory, KiB; sessions, and peers that had an answer."""
    this, python = str(Path(__file__).resolve()), sys.executable
    with tempfile.TemporaryDirectory(prefix="segue-bench-") as made, network(), contextlib.ExitStack() as stack:
        processes = stack.enter_context(agents(program, Path(made)))
        for end in ENDS:
            stack.enter_context(running(*inside(end, python, this, "--echo", PLAIN[end], IDENTITIES[end])))
        time.sleep(1)
        said = do(*inside("a", python, this, "--ask", str(rounds), PLAIN["b"], IDENTITIES["b"]))
        plain, through = (statistics.median(times) for times in json.loads(said))
        before = resident_kib(processes["a"])
        do("ip", "-n", NAMES["a"], "-6", "route", "add", PEERS_ROUTE, "via", PLAIN["b"])
        mac = json.loads(do("ip", "-n", NAMES["a"], "-j", "link", "show", "eth0"))[0]["address"]
        answered = int(do(*inside("b", python, this, "--peers", str(sessions), mac)))
        status = json.loads(do(program, "status", "--json", "--socket", f"{made}/a.sock"))
        return {
            "plain_us": plain,
            "through_us": through,
            "before_kib": before,
            "sessions_kib": resident_kib(processes["a"]),
            "sessions": sum(session["mode"] == "ilnp" for session in status["sessions"]),
            "answered": answered,
        }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agent", metavar="SEGUE_AGENT")
    parser.add_argument("--rounds", type=int, default=4000)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("the agent's delay and memory: left out: they need root")
        return 0
    found = measure(str(Path(options.agent).resolve()), options.rounds, options.sessions)
    if options.json:
        print(json.dumps(found))
        return 0
    plain, through = found["plain_us"], found["through_us"]
    print(f"round trip of a datagram, one at a time, medians of {options.rounds}:")
    print(f"  plain veth {plain:.0f} us, segue-agent at both ends {through:.0f} us: {through - plain:.0f} us more")
    print(
        f"resident memory: {found['before_kib']} KiB with one session, {found['sessions_kib']} KiB with"
        f" {found['sessions']}; {found['answered']} of {options.sessions} peers had an answer"
    )
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--echo"]:
        echo(*sys.argv[2:])
    elif sys.argv[1:2] == ["--ask"]:
        ask(int(sys.argv[2]), *sys.argv[3:])
    elif sys.argv[1:2] == ["--peers"]:
        be_peers(int(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(main())

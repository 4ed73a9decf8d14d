"""Sends questions to a resolver on this machine that are damaged in every way, and counts what comes back."""

from __future__ import annotations

import json
import random
import socket
import struct
import sys


def question(name: str, kind: int) -> bytes:
    """A question for addresses, with EDNS."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    header = struct.pack("!6H", 7, 0x0100, 1, 0, 0, 1)
    return header + labels + b"\0" + struct.pack("!2H", kind, 1) + struct.pack("!BHHIH", 0, 41, 1232, 0, 0)


def damaged(chance: random.Random, message: bytes) -> bytes:
    """The message with some of its bytes changed, cut or followed by others."""
    out = bytearray(message)
    for _ in range(chance.randrange(1, 5)):
        out[chance.randrange(len(out))] = chance.randrange(256)
    if chance.random() < 0.3:
        del out[chance.randrange(len(out)) :]
    if chance.random() < 0.3:
        out += chance.randbytes(chance.randrange(200))
    return bytes(out)


def main() -> None:
    """2,000 over UDP, 50 over TCP."""
    chance = random.Random(1)
    intact = question("plain.example", 28)
    answers = sent = 0
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as datagrams:
        datagrams.setblocking(False)
        for _ in range(2000):
            datagrams.sendto(damaged(chance, intact), ("::1", 53))
            sent += 1
            try:
                while True:
                    answers += len(datagrams.recv(65535)) > 0
            except BlockingIOError:
                pass
    for _ in range(50):
        with socket.create_connection(("::1", 53), timeout=5) as stream:
            message = damaged(chance, intact)
            claimed = chance.choice([len(message), len(message) + 9, 0xFFFF, 0])
            stream.sendall(struct.pack("!H", claimed) + message)
            sent += 1
    json.dump({"sent": sent, "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main()

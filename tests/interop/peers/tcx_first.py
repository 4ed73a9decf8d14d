"""Another program of the kernel's at an interface: in front of all that are there, it lets every packet pass.

    python tcx_first.py INTERFACE

Stays until it is ended; prints a line once it is there. Linux 6.6; standard library only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import sys

BPF = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
LOAD, CREATE_LINK = 5, 28
SCHED_CLS, TCX_INGRESS, BEFORE = 3, 46, 1 << 3
# r0 = TCX_PASS; exit
CODE = struct.pack("=BBhi", 0xB7, 0, 0, 0) + struct.pack("=BBhi", 0x95, 0, 0, 0)


def bpf(command: int, attributes: bytes) -> int:
    """The call; gives a descriptor."""
    libc = ctypes.CDLL(None, use_errno=True)
    given = ctypes.create_string_buffer(attributes, 128)
    made: int = libc.syscall(BPF, command, given, len(given))
    if made < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return made


def main() -> int:
    """Attach, and stay."""
    code, license_ = ctypes.create_string_buffer(CODE), ctypes.create_string_buffer(b"MIT")
    program = struct.pack(
        "=IIQQIIQII16sII",
        SCHED_CLS,
        2,
        ctypes.addressof(code),
        ctypes.addressof(license_),
        0,
        0,
        0,
        0,
        0,
        b"first",
        0,
        TCX_INGRESS,
    )
    index = socket.if_nametoindex(sys.argv[1])
    bpf(CREATE_LINK, struct.pack("=IIII", bpf(LOAD, program), index, TCX_INGRESS, BEFORE))
    print("ready", flush=True)
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())

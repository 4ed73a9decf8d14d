"""Two hosts for the benches of the agent: network namespaces joined by a veth pair, and an agent on each.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

ENDS = ("a", "b")
NAMES = {end: f"sg-bench-{os.getpid()}-{end}" for end in ENDS}
PLAIN = {"a": "2001:db8:1::7", "b": "2001:db8:1::8"}
NIDS = {"a": "2aa:0:0:1", "b": "2aa:0:0:2"}
IDENTITIES = {"a": "fd53:6567:7565:1:2aa::1", "b": "fd53:6567:7565:1:2aa::2"}
SETTLED_S = 5.0


def inside(end: str, *command: str) -> list[str]:
    """A command in the namespace of an end."""
    return ["ip", "netns", "exec", NAMES[end], *command]


def do(*command: str, text: str | None = None) -> str:
    """What a command prints."""
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def network() -> Iterator[None]:
    """The two hosts."""
    try:
        for end in ENDS:
            do("ip", "netns", "add", NAMES[end])
        do("ip", "-n", NAMES["a"], "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", NAMES["b"])
        for end in ENDS:
            do("ip", "-n", NAMES[end], "link", "set", "lo", "up")
            do("ip", "-n", NAMES[end], "link", "set", "eth0", "up")
            do("ip", "-n", NAMES[end], "address", "add", f"{PLAIN[end]}/64", "dev", "eth0", "nodad")
        yield
    finally:
        for end in ENDS:
            subprocess.run(["ip", "netns", "delete", NAMES[end]], check=False, capture_output=True)


@contextlib.contextmanager
def running(*command: str) -> Iterator[int]:
    """A program for the length of a with block; gives the number of its process."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
        try:
            yield program.pid
        finally:
            program.terminate()


@contextlib.contextmanager
def agents(program: str, folder: Path, *, fast_path: bool = True) -> Iterator[dict[str, int]]:
    """An agent on each host, with the other in its table, that may have the kernel carry packets; gives the numbers of
    their processes.

    Their control sockets are in the folder.
    """
    processes = {}
    with contextlib.ExitStack() as stack:
        for end, other in (ENDS, ENDS[::-1]):
            file = folder / f"{end}.toml"
            file.write_text(
                f'[agent]\ninterfaces = ["eth0"]\nsocket = "{folder}/{end}.sock"\n'
                f"fast_path = {str(fast_path).lower()}\n"
                f'[ilnp]\nnid = "{NIDS[end]}"\n'
                f'[[ilnp.peers]]\nnid = "{NIDS[other]}"\nlocators = ["2001:db8:1:0"]\n'
            )
            processes[end] = stack.enter_context(running(*inside(end, program, "run", str(file))))
        time.sleep(SETTLED_S)
        yield processes

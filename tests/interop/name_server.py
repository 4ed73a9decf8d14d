"""BIND 9 as the primary server of a zone, in a namespace: what agents ask and publish to."""

from __future__ import annotations

import base64
import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab import SOON, Namespace

ZONE = "example"
ADDRESS = "2001:db8:53::53"
SEARCHED = "/usr/sbin:/sbin:/usr/bin:/bin"
# Of a key: what the agent's file and BIND's have.
SECRET = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


def missing() -> str | None:
    """Why there is no such server here; None if there is."""
    for command, package in (("named", "bind9"), ("dig", "bind9-dnsutils")):
        if shutil.which(command, path=SEARCHED) is None:
            return f"{command} is missing, so the agent's names are not tested (Debian package {package})"
    return None


@dataclass(frozen=True)
class NameServer:
    """A server that runs.

    Attributes:
        host: Where it runs.
        log: What it says.
    """

    host: Namespace
    log: Path

    def records(self, name: str, kind: str) -> list[str]:
        """What it has of a name, in its words."""
        return dig(self.host, name, kind, f"@{ADDRESS}")


def dig(host: Namespace, name: str, kind: str, *more: str) -> list[str]:
    """The data of an answer, a line each."""
    command = host.command("dig", "+short", "+tries=1", "+time=5", name, kind, *more)
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=SOON)
    return sorted(done.stdout.splitlines())


@contextlib.contextmanager
def name_server(host: Namespace, folder: Path, publishers: tuple[str, ...], *records: str) -> Iterator[NameServer]:
    """A server with `records` in its zone; each of `publishers` has a key for its own name there."""
    host.ip(f"address add {ADDRESS}/128 dev lo nodad")
    keys = "".join(f'key {name} {{ algorithm hmac-sha256; secret "{SECRET}"; }};\n' for name in publishers)
    grants = " ".join(f"grant {name} name {name}.{ZONE}. NID L64 AAAA;" for name in publishers)
    lines = [
        "$TTL 5",
        f"@ IN SOA ns.{ZONE}. host.{ZONE}. 1 1200 180 1209600 1",
        f"  IN NS ns.{ZONE}.",
        f"ns IN AAAA {ADDRESS}",
        *records,
    ]
    (folder / "zone").write_text("\n".join(lines) + "\n")
    (folder / "named.conf").write_text(
        f"{keys}"
        f'options {{ directory "{folder}"; listen-on {{ none; }}; listen-on-v6 {{ {ADDRESS}; }};\n'
        "  pid-file none; session-keyfile none; recursion no; dnssec-validation no; };\n"
        "controls { };\n"
        f'zone "{ZONE}" {{ type primary; file "zone"; update-policy {{ {grants} }}; }};\n'
    )
    log = folder / "named.log"
    command = host.command("named", "-g", "-n", "1", "-c", folder / "named.conf")
    with log.open("w") as said, subprocess.Popen(command, stdout=said, stderr=said) as child:
        try:
            end = time.monotonic() + SOON
            while "running" not in log.read_text():
                assert child.poll() is None, log.read_text()
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.05)
            yield NameServer(host, log)
        finally:
            child.terminate()
            child.wait(timeout=SOON)

"""An ssh session between two namespaces: lines typed at one end are said back by the other."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab import SOON, Namespace

PORT = 2222
SERVER = "/usr/sbin/sshd"


def missing() -> str | None:
    """Why there are no sessions here; None if there are."""
    if shutil.which("ssh") is None or not Path(SERVER).exists():
        return "sshd or ssh is missing, so no session goes through handovers (Debian package openssh-server)"
    return None


@dataclass
class Session:
    """A session that is open, with a program at its other end that says back what it reads."""

    client: subprocess.Popen[bytes]
    lines: int = 0

    def say(self, within: float = SOON) -> float:
        """Type a line and wait until it is said back: how long that took, in seconds."""
        self.lines += 1
        line = f"line {self.lines}\n".encode()
        assert self.client.stdin is not None
        assert self.client.stdout is not None
        begun = time.monotonic()
        self.client.stdin.write(line)
        self.client.stdin.flush()
        said = b""
        while said != line:
            left = begun + within - time.monotonic()
            ready, _, _ = select.select([self.client.stdout], [], [], max(0, left))
            assert ready, f"the ssh session was silent for {within} s after line {self.lines}"
            piece = os.read(self.client.stdout.fileno(), 4096)
            assert piece, f"the ssh session ended at line {self.lines} with status {self.client.poll()}"
            said += piece
            assert line.startswith(said), said
        return time.monotonic() - begun


def key(folder: Path, name: str) -> Path:
    """A new key pair."""
    path = folder / name
    if not path.exists():
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return path


@contextlib.contextmanager
def opened(command: list[str]) -> Iterator[Session]:
    """The session that a command opens; it ends well."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        made = Session(shell)
        try:
            made.say()
            yield made
            assert shell.stdin is not None
            shell.stdin.close()
            assert shell.wait(timeout=SOON) == 0
        finally:
            if shell.poll() is None:
                shell.terminate()


@contextlib.contextmanager
def session(server: Namespace, client: Namespace, to: str, folder: Path) -> Iterator[Session]:
    """A server of its own on one host, whose only user comes by a key of the test, and a session from another host."""
    host_key, user_key = key(folder, "host"), key(folder, "user")
    allowed = folder / "allowed"
    allowed.write_text(user_key.with_suffix(".pub").read_text())
    configuration = folder / "sshd_config"
    lines = {
        "Port": PORT,
        "HostKey": host_key,
        "AuthorizedKeysFile": allowed,
        "PidFile": "none",
        "UsePAM": "no",
        # the folder of a test may be writable for all
        "StrictModes": "no",
        "PermitRootLogin": "prohibit-password",
        "PasswordAuthentication": "no",
    }
    configuration.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
    # its folder for children without privileges is there for this server alone
    place = "mount -t tmpfs none /run && mkdir /run/sshd && exec"
    serving = server.command("unshare", "--mount", "sh", "-c", f"{place} {SERVER} -D -e -f {configuration}")
    options = ["-p", str(PORT), "-i", str(user_key), "-F", "none", "-o", "BatchMode=yes"]
    options += ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
    log = folder / "sshd.log"
    with log.open("w") as said, subprocess.Popen(serving, stderr=said) as daemon:
        try:
            deadline = time.monotonic() + SOON
            listening = server.command("ss", "-Hltn", f"sport = :{PORT}")
            while not subprocess.run(listening, check=True, capture_output=True).stdout.strip():
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            with opened(client.command("ssh", *options, f"root@{to}", "cat")) as made:
                yield made
        finally:
            daemon.terminate()

"""Machines: each a systemd that has booted, in a container (systemd-nspawn) over the files of this system.

What a machine writes is in a tmpfs, what it mounts in a mount namespace of its own: both go with its processes. These
are in a cgroup, and go with the test, or with the next one if it was killed. Its network is a namespace that is there
before.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lab
from agents import wait_until
from lab import Namespace
from network import NETNS

SYSTEMD = Path("/lib/systemd/systemd")
# The network, the folder of the cgroup, and what follows is for systemd-nspawn. Of what this system would start, and of
# what it forbids packages, the machine knows nothing. /dev/net/tun is everybody's, as udev has it, and what devices a
# service may open is up to a program (BPF).
SCRIPT = """
set -e
exec 3< "$1"
echo $$ > "$2/cgroup.procs"
mount --bind "${2%/*}" /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mkdir /run/upper /run/work /run/root
mknod -m 666 /run/tun c 10 200
mount -t overlay -o lowerdir=/,upperdir=/run/upper,workdir=/run/work overlay /run/root
rm -rf /run/root/etc/systemd/system/*.wants /run/root/usr/sbin/policy-rc.d /run/root/etc/hostname
tr -d - < /proc/sys/kernel/random/uuid > /run/root/etc/machine-id
shift 2
exec setpriv --pdeathsig TERM systemd-nspawn --quiet --directory=/run/root --network-namespace-path=/proc/self/fd/3 \\
    --capability=CAP_NET_ADMIN,CAP_BPF --system-call-filter=bpf --bind=/run/tun:/dev/net/tun \\
    --register=no --keep-unit "$@"
"""
ENVIRONMENT = ("HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8")


def missing() -> str | None:
    """Why no machine can be booted here; None if it may be tried."""
    for command, package in (("systemd-nspawn", "systemd-container"), (str(SYSTEMD), "systemd")):
        if shutil.which(command) is None:
            return f"{command} is missing, so the agent is on no machine with systemd (Debian package {package})"
    if not os.access(groups(), os.W_OK):
        return "no cgroup of the second version can be made here: the agent is on no machine with systemd"
    return None


@functools.cache
def groups() -> Path:
    """Where cgroups are, of the second version; a place that is not, if nowhere."""
    found = re.search(r"^\S+ (\S+) cgroup2 ", Path("/proc/mounts").read_text(), re.MULTILINE)
    return Path(found[1] if found else "/nowhere")


@contextlib.contextmanager
def group(name: str) -> Iterator[Path]:
    """A cgroup for the length of a with block. Those of test runs that no longer exist go first."""
    for path in groups().glob(f"{lab.PREFIX}-*-*"):
        if not Path("/proc", path.name.split("-")[2]).exists():
            is_removed(path)
    path = groups() / name
    path.mkdir()
    try:
        yield path
    finally:
        wait_until(lambda: is_removed(path), f"the end of what ran in {path}")


def is_removed(group: Path) -> bool:
    """Whether a cgroup is gone. What is in it is killed, which takes a moment."""
    with contextlib.suppress(OSError):
        (group / "cgroup.kill").write_text("1")
        for folder, _, _ in os.walk(group, topdown=False):
            Path(folder).rmdir()
    return not group.exists()


def nspawn(network: Namespace, cgroup: Path, *options: str) -> list[str]:
    """systemd-nspawn on a network, as a command."""
    script = ["unshare", "--mount", "sh", "-c", SCRIPT, "machine"]
    return [*script, str(NETNS / network.name), str(cgroup), *options]


@functools.cache
def refusal() -> str | None:
    """Why a container does not start, in the words of who refuses; None if it does."""
    with Namespace("refusal") as network, group(network.name) as cgroup:
        command = nspawn(network, cgroup, "--pipe", "true")
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=lab.SOON)
    return None if done.returncode == 0 else f"no container can be started here: {done.stderr.strip()}"


@dataclass
class Machine:
    """A machine that is up."""

    name: str
    # the process that is its first
    init: int

    def path(self, inside: str) -> Path:
        """A file of the machine, from outside."""
        return Path(f"/proc/{self.init}/root{inside}")

    def write(self, inside: str, text: str, mode: int = 0o644) -> None:
        """Write a file of the machine."""
        path = self.path(inside)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def command(self, line: str) -> list[str]:
        """A line that root types on the machine, as a command."""
        inside = ["nsenter", f"--target={self.init}", "--all", "--root", "--", "env", "-i", "-C", "/root", *ENVIRONMENT]
        return [*inside, "bash", "-c", line]

    def run(self, line: str, *, answer: str = "") -> str:
        """What a line prints that ends well; if it asks, with this answer."""
        done = subprocess.run(
            self.command(line), check=False, input=answer, capture_output=True, text=True, timeout=lab.LONGEST
        )
        assert done.returncode == 0, f"{self.name}: {line}: {done.stdout}{done.stderr}"
        return done.stdout


def first_process(nspawn: int) -> int | None:
    """The process that is the first of a container, once it has become systemd."""
    # a process may end while it is looked at
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for child in Path(f"/proc/{nspawn}/task/{nspawn}/children").read_text().split():
            status = Path("/proc", child, "status").read_text()
            if re.search(r"^Name:\tsystemd\n(?s:.*)^NSpid:.*\t1$", status, re.MULTILINE):
                return int(child)
    return None


@contextlib.contextmanager
def booted(name: str, network: Namespace, folder: Path) -> Iterator[Machine]:
    """A machine on a network, with what every system starts. What is on its console goes to a file in `folder`."""
    log = folder / f"{name}.console"
    with group(network.name) as cgroup, log.open("w") as said, contextlib.ExitStack() as stack:
        command = nspawn(network, cgroup, f"--machine={name}", "--console=pipe", "--boot")
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
        stack.callback(shut_down, child)
        wait_until(lambda: first_process(child.pid) or child.poll() is not None, f"the container of {name}")
        init = first_process(child.pid)
        assert init is not None, log.read_text()
        made = Machine(name, init)
        wait_until(made.path("/run/systemd/private").exists, f"the systemd of {name}")
        made.run("systemctl is-system-running --wait || systemctl is-active multi-user.target")
        yield made


def shut_down(nspawn: subprocess.Popen[bytes]) -> None:
    """End a container in order, or else at once; its processes are gone afterwards."""
    nspawn.terminate()
    try:
        nspawn.wait(timeout=lab.SOON)
    except subprocess.TimeoutExpired:
        nspawn.kill()
        nspawn.wait()

"""The Linux kernel's SCTP, in an emulated machine: Debian's kernel, an initramfs of ours, two network cards.

The kernel that tests run on has no SCTP, and KVM is rarely there; so qemu emulates the processor. One machine is booted
for all tests; its cards are datagram sockets, which each test's relay binds anew.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

import build
from network import mac
from process import Event, Process

QEMU = shutil.which("qemu-system-x86_64")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "segue" / "linux"
LINKS = 2
# Under emulation, on a machine that does other things too.
BOOT_SECONDS = 180


def kernel() -> Path | None:
    """The directory of the newest kernel that scripts/linux_kernel.sh fetched."""
    found = [path.parent for path in CACHE.glob("*/modules")]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def missing() -> str | None:
    """Why no guest can be run here; None if one can."""
    if QEMU is None:
        return (
            "qemu-system-x86_64 is missing, so the Linux kernel's SCTP is not tested against (package qemu-system-x86)"
        )
    if kernel() is None:
        return "no kernel in the cache, so the Linux kernel's SCTP is not tested against (scripts/linux_kernel.sh)"
    return build.missing_header("linux/sctp.h", "linux-libc-dev")


class Guest(Process):
    """The machine; its log is that of its init and of the peer that runs on it."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        found = kernel()
        assert found is not None
        assert QEMU is not None
        self.directory = directory
        initramfs = directory / "initramfs"
        write_initramfs(initramfs, found)
        # Not "microvm": it boots as fast, but has one clock to calibrate the others by, and hangs where that fails on a
        # busy machine.
        command = f"{QEMU} -machine pc -accel tcg -m 192 -nodefaults -no-user-config"
        command += f" -nographic -no-reboot -kernel {found / 'vmlinuz'} -initrd {initramfs}"
        command += f" -serial file:{directory / 'console'}"
        arguments = [*command.split(), "-append", "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check"]
        arguments += ["-device", "virtio-serial-pci", "-chardev", "stdio,id=port,signal=off"]
        arguments += ["-device", "virtserialport,chardev=port"]
        for link in range(LINKS):
            ends = f"local.type=unix,local.path={directory / f'guest{link}'}"
            ends += f",remote.type=unix,remote.path={directory / f'relay{link}'}"
            arguments += ["-netdev", f"dgram,id=net{link},{ends}"]
            arguments += ["-device", f"virtio-net-pci,romfile=,netdev=net{link},mac={mac(link, 1)}"]
        super().__init__(arguments, "guest")

    def boot(self) -> None:
        """Wait until its init takes commands."""
        try:
            self.wait_for("init", timeout=BOOT_SECONDS, did="boot")
        except AssertionError as error:
            console = (self.directory / "console").read_text(errors="replace")
            raise AssertionError(f"{error}\n{console[-2000:]}") from None

    def do(self, line: str) -> None:
        """One of init's commands."""
        verb = line.split(maxsplit=1)[0]
        start = len(self.events)
        self.tell(f"!{line}")
        self.wait_for("init", timeout=10, start=start, did=verb)


class GuestPeer:
    """A peer on a guest, with the interface of a process of its own."""

    def __init__(self, guest: Guest, *arguments: str) -> None:
        self.guest = guest
        self.arguments = arguments
        self.name = "Linux"
        self.start = len(guest.events)

    def __enter__(self) -> Self:
        self.guest.do(f"run {' '.join(self.arguments)}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.guest.do("end")

    @property
    def events(self) -> list[Event]:
        """What this peer has logged."""
        return self.guest.events[self.start :]

    def tell(self, line: str) -> None:
        """Give a command."""
        self.guest.tell(line)

    def ask(self, line: str, answer: str, timeout: float = 10) -> int:
        """Give a command and wait for the event that answers it; returns the event's time."""
        return self.guest.ask(line, answer, timeout)

    def find(self, name: str, start: int = 0, **fields: str) -> list[Event]:
        """Events of that name with these values."""
        return self.guest.find(name, self.start + start, **fields)

    def crashed(self) -> bool:
        """Whether it ended by a signal: the emulated machine would say so in its log, and has not been seen to."""
        return False

    def wait_for(self, name: str, *, timeout: float, start: int = 0, count: int = 1, **fields: str) -> Event:
        """The `count`th such event, once it has come."""
        return self.guest.wait_for(name, timeout=timeout, start=self.start + start, count=count, **fields)

    def tail(self, lines: int = 25) -> str:
        """The end of its log, for messages."""
        return self.guest.tail(lines)


def write_initramfs(path: Path, kernel_directory: Path) -> None:
    """An archive in cpio's "newc" form: init, the peer, the modules and three directories to mount on."""
    files = {file.name: file for file in kernel_directory.iterdir() if file.name != "vmlinuz"}
    files |= {"init": build.program("linux_init"), "peer": build.program("linux_peer")}
    with path.open("wb") as archive:
        entries = [(name, 0o040755, b"") for name in ("dev", "proc", "sys")]
        entries += [(name, 0o100755, file.read_bytes()) for name, file in sorted(files.items())]
        for inode, (name, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], start=1):
            encoded = name.encode() + b"\0"
            numbers = [inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0]
            header = b"070701" + b"".join(b"%08x" % number for number in numbers) + encoded
            archive.write(padded(header) + padded(content))


def padded(content: bytes) -> bytes:
    """Filled up to a multiple of 4 bytes."""
    return content + bytes(-len(content) % 4)

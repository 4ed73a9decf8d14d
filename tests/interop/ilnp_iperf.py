#!/usr/bin/env python3
"""An unmodified iperf3 over the kernel's TCP while its host hands off between two networks, by ILNPv6 under it.

```
 mobile             r1 (cell 1)  \\
 iperf3 -c, kernel's TCP          core ---- correspondent: iperf3 -s, kernel's TCP
 TUN, segue-lab     r2 (cell 2)  /          TUN, segue-lab
```

Everything between the two hosts is the kernel's: routers are namespaces with forwarding on and radvd, 20 Mbit/s (tbf)
to and from each cell. The mobile starts in cell 1; after a while cell 2 comes into reach, and later cell 1 is lost: a
soft handoff. Prints what iperf3 measured, and what the shims have to say. Root only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import lab
import network
from lab import Namespace
from process import Process

RATE = "20mbit"
# Locators of the cells and of the correspondent's network.
CELLS = ("2001:db8:0:1", "2001:db8:0:2")
FIXED = "2001:db8:0:3"
IDENTITIES = "fd53:6567:7565:1"
MOBILE_NID, CORRESPONDENT_NID = "0:0:0:1", "0:0:0:2"
# What the longer nonce adds to packets (RFC 6744 section 2), and the shorter one.
NONCE_BYTES = {"32-bit": 8, "96-bit": 16}
INTERVAL_S = 0.5


def missing() -> str | None:
    """Why this cannot be run here; None if it can."""
    for command, package in (("iperf3", "iperf3"), ("radvd", "radvd"), ("tc", "iproute2")):
        if shutil.which(command) is None and not Path("/usr/sbin", command).exists():
            return f"{command} is missing, so ILNP is not tested under the kernel's TCP (Debian package {package})"
    return network.missing()


def identity(nid: str) -> str:
    """The address that applications have for the host with this identifier."""
    return f"{IDENTITIES}:{nid}"


@dataclass
class Settings:
    """What can be chosen."""

    nonce: str = "32-bit"
    checksum: str = "ipv6"
    # More lines of the shim's configuration, at either end.
    extra: str = ""


class World:
    """The network of the picture, for the length of a with block. Cell 2 is out of reach at first."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.mobile, self.r1, self.r2, self.core, self.correspondent = (Namespace(letter) for letter in "mpqxc")

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            for host in (self.mobile, self.r1, self.r2, self.core, self.correspondent):
                undo.enter_context(host)
            for host in (self.r1, self.r2, self.core):
                host.sysctl("net/ipv6/conf/all/forwarding", "1")
                # a router whose interface goes down and up again is the router it was
                for name in ("all", "default"):
                    host.sysctl(f"net/ipv6/conf/{name}/keep_addr_on_down", "1")
            for number, router in enumerate((self.r1, self.r2), 1):
                self._join(self.mobile, f"cell{number}", router, "cell")
                self._join(router, "north", self.core, f"down{number}")
                router.device_up("cell", "fe80::a/64", f"{CELLS[number - 1]}::a/64")
                router.device_up("north", "fe80::b/64")
                self.core.device_up(f"down{number}", "fe80::a/64")
                router.ip("-6 route add default via fe80::a dev north")
                self.core.ip(f"-6 route add {CELLS[number - 1]}::/64 via fe80::b dev down{number}")
                for device in ("north", "cell"):
                    self._tc(router, f"qdisc add dev {device} root tbf rate {RATE} burst 16kb latency 50ms")
                self.mobile.ip(f"link set cell{number} up")
            self._join(self.correspondent, "net", self.core, "fixed")
            self.core.device_up("fixed", "fe80::a/64", f"{FIXED}::a/64")
            self.correspondent.ip("link set net up")
            self.r2.ip("link set cell down")
            for router, device, prefix in (
                (self.r1, "cell", CELLS[0]),
                (self.r2, "cell", CELLS[1]),
                (self.core, "fixed", FIXED),
            ):
                undo.enter_context(self._radvd(router, device, prefix))
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    @contextlib.contextmanager
    def shim(self, host: Namespace, nid: str, interfaces: list[str], settings: Settings) -> Iterator[Process]:
        """ILNPv6 of `host`, with its TUN device up and the first address ready."""
        config = self.directory / f"{host.name}.toml"
        lines = [f'nid = "{nid}"', f'identity_prefix = "{IDENTITIES}"', f'nonce = "{settings.nonce}"']
        lines += [f'checksum = "{settings.checksum}"', settings.extra]
        if nid == MOBILE_NID:
            lines += ["[[peers]]", f'nid = "{CORRESPONDENT_NID}"', f'locators = ["{FIXED}"]']
        config.write_text("\n".join(lines))
        command = [str(lab.program()), "ilnp", "--tun", f"{host.name}:ilnp0", "--config", str(config)]
        command += [f"--interface={name}" for name in interfaces]
        command += ["--solicitation-delay=100 ms", f"--pcap={self.capture(host)}"]
        with Process(command, f"shim of {host.name}") as shim:
            shim.wait_for("ready", timeout=lab.SOON)
            mtu = 1500 - NONCE_BYTES[settings.nonce]
            host.device_up("ilnp0", f"{identity(nid)}/64", mtu=mtu)
            host.ip("-6 route add default dev ilnp0")
            shim.wait_for("address_ready", timeout=lab.SOON)
            yield shim

    def capture(self, host: Namespace) -> Path:
        """Where the packets of its interfaces are written."""
        return self.directory / f"{host.name}.pcapng"

    def _join(self, a: Namespace, a_device: str, b: Namespace, b_device: str) -> None:
        a.ip(f"link add {a_device} type veth peer name {b_device} netns {b.name}")

    def _tc(self, host: Namespace, arguments: str) -> None:
        subprocess.run(host.command("tc", *arguments.split()), check=True, capture_output=True)

    @contextlib.contextmanager
    def _radvd(self, router: Namespace, device: str, prefix: str) -> Iterator[None]:
        config = self.directory / f"radvd-{router.name}.conf"
        config.write_text(
            # intervals for mobile hosts (RFC 6275 section 7.5), which radvd takes with the option that says so
            f"interface {device} {{ AdvSendAdvert on; IgnoreIfMissing on; AdvIntervalOpt on; MinRtrAdvInterval 0.2;\n"
            f" MaxRtrAdvInterval 0.4; MinDelayBetweenRAs 0.1; prefix {prefix}::/64 {{ }}; }};\n"
        )
        config.chmod(0o644)
        log = (self.directory / f"radvd-{router.name}.log").open("w")
        pid = self.directory / f"radvd-{router.name}.pid"
        arguments = ["radvd", "--nodaemon", "-C", str(config), "-p", str(pid), "-m", "stderr"]
        with log, subprocess.Popen(router.command(*arguments), stdout=log, stderr=log) as child:
            try:
                yield
            finally:
                child.terminate()


@dataclass
class Outcome:
    """What came of a transfer with a handoff."""

    # Bits per second of each interval, and when it began, s.
    intervals: list[tuple[float, float]]
    bits_per_second: float
    retransmits: int
    # When cell 2 came into reach and when cell 1 was lost, s.
    reachable_at: float
    lost_at: float
    handoffs: list[dict[str, str]]
    shims: list[dict[str, Any]] = field(default_factory=list)
    captures: list[Path] = field(default_factory=list)

    @property
    def longest_silence(self) -> float:
        """Seconds in a row of which iperf3 counted nothing."""
        longest = run = 0.0
        for _, rate in self.intervals:
            run = run + INTERVAL_S if rate == 0 else 0.0
            longest = max(longest, run)
        return longest


def handoff(directory: Path, settings: Settings, *, seconds: int = 12, reverse: bool = False) -> Outcome:
    """A transfer from the mobile to the correspondent, or the other way, in the middle of which the mobile moves."""
    with contextlib.ExitStack() as stack:
        world = stack.enter_context(World(directory))
        fixed = stack.enter_context(world.shim(world.correspondent, CORRESPONDENT_NID, ["net"], settings))
        mobile = stack.enter_context(world.shim(world.mobile, MOBILE_NID, ["cell1", "cell2"], settings))
        server = ["iperf3", "--server", "--one-off", "--bind", identity(CORRESPONDENT_NID)]
        listening = subprocess.Popen(world.correspondent.command(*server), stdout=subprocess.DEVNULL)
        stack.callback(listening.kill)
        time.sleep(0.5)
        client = ["iperf3", "--client", identity(CORRESPONDENT_NID), "--time", str(seconds), "--json"]
        client += ["--interval", str(INTERVAL_S), *(["--reverse"] if reverse else [])]
        start = time.monotonic()
        child = subprocess.Popen(world.mobile.command(*client), stdout=subprocess.PIPE, text=True)
        stack.callback(child.kill)
        time.sleep(seconds / 3)
        reachable_at = time.monotonic() - start
        world.r2.ip("link set cell up")
        mobile.wait_for("handoff_done", timeout=seconds / 3)
        time.sleep(max(0.0, start + seconds * 2 / 3 - time.monotonic()))
        lost_at = time.monotonic() - start
        world.r1.ip("link set cell down")
        output, _ = child.communicate(timeout=seconds + 30)
        result = json.loads(output)
        assert child.returncode == 0, result.get("error")
        for shim in (mobile, fixed):
            shim.finish()
        received = result["end"]["sum_received"]
        return Outcome(
            intervals=[(i["sum"]["start"], i["sum"]["bits_per_second"]) for i in result["intervals"]],
            bits_per_second=received["bits_per_second"],
            retransmits=result["end"]["sum_sent"].get("retransmits", 0),
            reachable_at=reachable_at,
            lost_at=lost_at,
            handoffs=[event.fields for event in mobile.find("handoff_done")],
            shims=[shim.wait_for("summary", timeout=lab.SOON).fields for shim in (mobile, fixed)],
            captures=[world.capture(world.mobile), world.capture(world.correspondent)],
        )


def main() -> int:
    """Run it once and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=12)
    parser.add_argument("--reverse", action="store_true", help="from the correspondent to the mobile")
    parser.add_argument("--nonce", choices=sorted(NONCE_BYTES), default="32-bit")
    parser.add_argument("--checksum", choices=("ipv6", "identifiers"), default="ipv6")
    arguments = parser.parse_args()
    reason = missing()
    if reason is not None:
        print(f"SKIPPED: {reason}")
        return 0
    settings = Settings(nonce=arguments.nonce, checksum=arguments.checksum)
    with tempfile.TemporaryDirectory(prefix="sg-ilnp") as directory:
        outcome = handoff(Path(directory), settings, seconds=arguments.seconds, reverse=arguments.reverse)
    for start, rate in outcome.intervals:
        notes = [
            note
            for at, note in ((outcome.reachable_at, "cell 2 in reach"), (outcome.lost_at, "cell 1 lost"))
            if start <= at < start + INTERVAL_S
        ]
        print(f"{start:6.1f} s {rate / 1e6:8.2f} Mbit/s  {', '.join(notes)}".rstrip())
    print(f"{outcome.bits_per_second / 1e6:.2f} Mbit/s, {outcome.retransmits} retransmissions")
    print(f"longest silence {outcome.longest_silence:.1f} s")
    for handoff_done in outcome.handoffs:
        print(f"handoff to {handoff_done['to']} acknowledged after {int(handoff_done['delay_ns']) / 1e6:.1f} ms")
    for name, summary in zip(("mobile", "correspondent"), outcome.shims, strict=True):
        print(f"{name}: {summary}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

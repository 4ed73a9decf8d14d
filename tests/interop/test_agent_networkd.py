"""systemd-networkd on the interface that the agent uses: neither takes away what the other has set up."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import agents
import lab
import pytest
from agents import Agent, World, identity, wait_until

NETWORKD = Path("/lib/systemd/systemd-networkd")
REASON = agents.missing()
if REASON is None and not NETWORKD.exists():
    REASON = f"{NETWORKD} is missing, so the agent is not tested beside it (Debian package systemd)"
pytestmark = [pytest.mark.waits, pytest.mark.skipif(REASON is not None, reason=REASON or "")]
# In a mount namespace of its own: its files, and a /sys that says that nobody waits for udev.
SCRIPT = f"""
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
install -d -o systemd-network -g systemd-network /run/systemd/network /run/systemd/netif/{{,links,leases,lldp}}
cat > /run/systemd/network/10-agent.network
mount -o remount,ro /sys
exec {NETWORKD} < /dev/null
"""
MANAGED = "[Match]\nName=eth0\n[Network]\nIPv6AcceptRA=yes\n"


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[World]:
    """Two machines and a router between them."""
    with agents.world(tmp_path) as world:
        yield world


@contextlib.contextmanager
def networkd(machines: World) -> Iterator[Path]:
    """networkd on the mobile host, without a memory of an earlier one; its log."""
    log = machines.folder / "networkd.log"
    command = machines.hosts["mobile"].command("unshare", "-m", "bash", "-c", SCRIPT)
    with (
        log.open("w") as said,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=said, text=True) as child,
    ):
        try:
            assert child.stdin is not None
            with child.stdin as file:
                file.write(MANAGED)
            wait_until(lambda: "eth0: Configuring with" in log.read_text(), "networkd", within=lab.LONGEST)
            wait_until(lambda: of_networkd(machines), "an address of networkd's", within=lab.LONGEST)
            yield log
        finally:
            child.terminate()
            child.wait(timeout=lab.SOON)
            print(log.read_text())


def of_networkd(machines: World) -> list[str]:
    """Default routes by router advertisements that networkd, and not the kernel, has set up on eth0."""
    said = machines.run("ip", "-n", machines.hosts["mobile"].name, "-6", "route", "show", "default", "dev", "eth0")
    return re.findall(r"proto ra\b", said)


def locator_of(agent: Agent) -> str:
    """The agent's address on eth0."""
    (place,) = agents.interfaces(agent)[0]["locators"]
    return str(place["address"])


def holds(machines: World, address: str) -> bool:
    """Whether the kernel has an address on eth0."""
    shown = machines.run("ip", "-n", machines.hosts["mobile"].name, "-6", "addr", "show", "dev", "eth0")
    return f" {address}/" in shown


def test_networkd_and_the_agent_leave_each_other_alone(machines: World) -> None:
    """It manages the interface before the agent begins, starts anew beside it, and goes on when the agent has ended."""
    mobile = machines.hosts["mobile"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(machines.agent("peer"))
        with contextlib.ExitStack() as first:
            first.enter_context(networkd(machines))
            agent = stack.enter_context(machines.agent("mobile"))
            wait_until(lambda: agents.reaches(mobile, identity("peer")), "the peer")
            address = locator_of(agent)
            assert holds(machines, address)
        # one that finds an address that is none of its own removes it, perhaps; the agent has it again then
        with networkd(machines):
            wait_until(lambda: holds(machines, address), "the agent's address")
            wait_until(lambda: agents.has_all(agent), "a locator that can be used")
            wait_until(lambda: agents.reaches(mobile, identity("peer")), "the peer")
            assert agent.in_use() == "eth0"
            agent.end()
            assert not holds(machines, address)
            # what networkd has set up is as it was
            assert of_networkd(machines)
            plain = machines.plain_address("mobile", "eth0")
            assert plain.startswith(agents.PREFIXES["a0"].replace(":0", ""))

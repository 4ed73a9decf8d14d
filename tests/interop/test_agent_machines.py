r"""docs/agent.md on machines with systemd: its ten minutes, each line as it stands there, and the unit.

```
 server --- eth0 ---\                        /--- eth0 --- laptop
 laptop -- wlan0 --- home --- router --- away
  other -- wlan0 ---/                        \--- eth0 --- other
```

`home` and `away` are bridges of the router's, each a network with a prefix. A link is taken down at the router's end.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import agents
import build
import machine
import pytest
import secure_shell
from agents import World, wait_until
from lab import Namespace
from machine import Machine

REASON = agents.missing() or machine.missing() or secure_shell.missing()
if REASON is None and shutil.which("apt-get") is None:
    REASON = "apt-get is missing, so the agent's Debian package is not installed on machines (Debian package apt)"
pytestmark = [
    pytest.mark.waits,
    # one set of machines for all
    pytest.mark.xdist_group("machines"),
    pytest.mark.skipif(REASON is not None, reason=REASON or ""),
]

DOCUMENT = (build.ROOT / "docs" / "agent.md").read_text()
TEXT = DOCUMENT.partition("\n## Two laptops")[2].partition("\n## ")[0]
INSTALL, START = (
    re.findall(r"^\$ (.*)$", block, re.MULTILINE)
    for block in re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
)
(CALL,) = re.findall(r"^`(ssh \S+)` on a laptop goes on ", TEXT, re.MULTILINE)
(PURGE,) = re.findall(r"^`(.* purge .*)` takes all of it away\.$", TEXT, re.MULTILINE)
(EXPOSURE,) = map(float, re.findall(r"^gives it (\d\.\d), of 10", DOCUMENT, re.MULTILINE))
SERVER, LAPTOP = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
FILES = {
    "server": SERVER,
    "laptop": LAPTOP,
    # each laptop is the other one's
    "other": re.sub(r"(?<=2aa:0:0:)[13]", lambda nid: "31"["13".index(nid[0])], LAPTOP),
}
FILE, SOCKET = "/etc/segue/agent.toml", "/run/segue/agent.sock"
IDENTITIES = {name: f"{agents.IDENTITIES}:2aa::{nid}" for name, nid in (("server", 2), ("laptop", 1), ("other", 3))}
PREFIXES = {"home": "2001:db8:3:0", "away": "2001:db8:2:0"}
# What each is joined to, by its interfaces; it prefers the first.
LINKS = {
    "server": {"eth0": "home"},
    "laptop": {"wlan0": "home", "eth0": "away"},
    "other": {"wlan0": "home", "eth0": "away"},
}
SSHD = "HostKey /etc/ssh/key\nUsePAM no\nStrictModes no\n"
SSH = "BatchMode yes\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"


@dataclass
class Home:
    """The machines of the picture."""

    world: World
    machines: dict[str, Machine] = field(default_factory=dict)
    # what the lines of the document have said on each
    said: dict[str, list[str]] = field(default_factory=dict)
    # what was on the laptop before
    before: str = ""


def status(on: Machine) -> dict[str, Any]:
    """What the agent of a machine says of itself."""
    said: dict[str, Any] = json.loads(on.run(f"segue-agent status --json --socket {SOCKET}"))
    return said


def is_settled(on: Machine) -> bool:
    """Whether the agent of a machine has set up everything, and uses what it prefers."""
    return agents.settled(status(on)["interfaces"])


def uses(on: Machine, interface: str) -> bool:
    """Whether packets leave by an interface."""
    return [one["name"] for one in status(on)["interfaces"] if one["in_use"]] == [interface]


def of_unit(on: Machine, *names: str) -> list[str]:
    """Properties of the agent's unit, of one moment."""
    said = on.run(f"systemctl show --property={','.join(names)} segue-agent")
    values = dict(line.split("=", 1) for line in said.splitlines())
    return [values[name] for name in names]


def runs_anew(on: Machine, before: str) -> bool:
    """Whether the unit is active, with another process than before."""
    state, pid = of_unit(on, "ActiveState", "MainPID")
    return state == "active" and pid != before


def addresses(on: Machine) -> list[tuple[str, str]]:
    """Its global addresses, with the names of their interfaces."""
    links = json.loads(on.run("ip -json -6 address show scope global"))
    return sorted((link["ifname"], one["local"]) for link in links for one in link.get("addr_info", []) if one)


def found(world: World, on: Machine) -> str:
    """What there may be of an agent on a machine: in its network, of users, files and units."""
    places = "/etc /run /lib/systemd /usr/lib/sysusers.d /usr/sbin /usr/share /var"
    lines = "getent passwd; getent group", f"find {places} -xdev -name '*segue*'", "systemctl list-units --all 'segue*'"
    return "\n".join([world.snapshot(on.name), *map(on.run, lines)])


@contextlib.contextmanager
def networks(folder: Path) -> Iterator[World]:
    """The networks of the picture, with advertisements."""
    with contextlib.ExitStack() as stack:
        world = World(folder, {name: stack.enter_context(Namespace(name)) for name in ("router", *LINKS)})
        router = world.hosts["router"]
        router.sysctl("net/ipv6/conf/all/forwarding", "1")
        for bridge, prefix in PREFIXES.items():
            router.ip(f"link add {bridge} type bridge mcast_snooping 0")
            router.device_up(bridge, f"{prefix}::1/64".replace(":0::", "::"))
        for name, links in LINKS.items():
            for device, bridge in links.items():
                router.ip(f"link add {name}-{device} type veth peer name {device} netns {world.hosts[name].name}")
                router.ip(f"link set {name}-{device} master {bridge} up")
                world.hosts[name].device_up(device)
        stack.enter_context(agents.advertising(router, PREFIXES, folder))
        for name, links in LINKS.items():
            for device in links:
                wait_until(functools.partial(world.plain_address, name, device), f"an address of {name}")
        yield world


def prepare(on: Machine, package: Path, folder: Path) -> None:
    """Have the package, a sudo, and an sshd that root of the others gets in at by a key."""
    shutil.copy(package, on.path("/root"))
    on.write("/usr/local/bin/sudo", '#!/bin/sh\nexec "$@"\n', 0o755)
    key = secure_shell.key(folder, "key")
    for place in ("/etc/ssh/key", "/root/.ssh/id_ed25519"):
        on.write(place, key.read_text(), 0o600)
    on.write("/root/.ssh/authorized_keys", key.with_suffix(".pub").read_text())
    on.write("/root/.ssh/config", SSH)
    on.write("/etc/ssh/sshd_config", SSHD)
    on.run("systemctl start ssh")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The machines, on which all that the document says has been typed."""
    refusal = machine.refusal()
    if refusal is not None:
        pytest.skip(refusal)
    folder = tmp_path_factory.mktemp("home")
    package = agents.debian_package(folder)
    architecture = package.stem.rpartition("_")[2]
    with contextlib.ExitStack() as stack:
        made = Home(stack.enter_context(networks(folder)))
        for name, file in FILES.items():
            on = stack.enter_context(machine.booted(name, made.world.hosts[name], folder))
            made.machines[name] = on
            prepare(on, package, folder)
            if name == "laptop":
                made.before = found(made.world, on)
            made.said[name] = [on.run(line.replace("amd64", architecture)) for line in INSTALL]
            on.write(FILE, file, 0o600)
            made.said[name] += [on.run(line) for line in START]
        for on in made.machines.values():
            wait_until(functools.partial(is_settled, on), f"the agent of {on.name}")
        yield made


def test_each_line_does_what_the_document_says(home: Home) -> None:
    for name, (_, doctor, address, check, _, _, state) in home.said.items():
        on, links = home.machines[name], LINKS[name]
        assert {line.split()[0] for line in doctor.splitlines()} == {"ok"}, doctor
        for device, bridge in links.items():
            assert re.search(rf"^{device}@\S+ +UP +{PREFIXES[bridge]}:", address, re.MULTILINE), address
        assert check == ""
        assert state.startswith(f"identity {IDENTITIES[name]} on segue0"), state
        assert re.search(rf"^{next(iter(links))} +in use ", state, re.MULTILINE), state
        assert of_unit(on, "ActiveState", "UnitFileState") == ["active", "enabled"]


def test_an_ssh_session_goes_on_while_the_laptop_moves(home: Home) -> None:
    """From the Wi-Fi to the cable, in another network, and back."""
    laptop = home.machines["laptop"]
    with secure_shell.opened(laptop.command(f"{CALL} cat")) as session:
        for now, interface in (("down", "eth0"), ("up", "wlan0")):
            home.world.hosts["router"].ip(f"link set laptop-wlan0 {now}")
            session.say()
            wait_until(functools.partial(uses, laptop, interface), interface)
            session.say()
        assert IDENTITIES["server"] in laptop.run(START[-1]).partition("session with")[2]
    wait_until(functools.partial(is_settled, laptop), "the cable's locator")


def test_the_laptops_call_each_other_at_home(home: Home) -> None:
    for caller, called in (("laptop", "other"), ("other", "laptop")):
        assert home.machines[caller].run(f"ssh {IDENTITIES[called]} hostname") == f"{called}\n"


def test_the_service_has_a_user_of_its_own_and_two_capabilities(home: Home) -> None:
    laptop = home.machines["laptop"]
    (pid,) = of_unit(laptop, "MainPID")
    assert laptop.run(f"ps -o user:20= -p {pid}") == "segue-agent\n"
    said = laptop.run(f"cat /proc/{pid}/status")
    # CAP_NET_ADMIN and CAP_NET_RAW
    for line in (r"Cap(Eff|Prm):\t0*3000", r"Cap(Inh|Amb):\t0*", r"NoNewPrivs:\t1", r"Seccomp:\t2"):
        assert re.search(rf"^{line}$", said, re.MULTILINE), said
    exposure = laptop.run("systemd-analyze security --no-pager segue-agent").rpartition(": ")[2].split()[0]
    assert float(exposure) <= EXPOSURE


@pytest.mark.parametrize(
    ("name", "line", "restarts"),
    [
        ("laptop", "systemctl restart segue-agent", "0"),
        ("laptop", "kill -9 {}", "1"),
        ("server", "systemctl restart segue-agent", "0"),
    ],
)
def test_the_service_comes_back_with_what_it_had(home: Home, name: str, line: str, restarts: str) -> None:
    """In order, and after a kill. Connections begin anew, also those to a machine whose agent knows nobody any more."""
    own, laptop = home.machines[name], home.machines["laptop"]
    before = addresses(own)
    (pid,) = of_unit(own, "MainPID")
    own.run(line.format(pid))
    wait_until(functools.partial(runs_anew, own, pid), "another process")
    wait_until(functools.partial(is_settled, own), "its locators")
    assert of_unit(own, "NRestarts") == [restarts]
    assert addresses(own) == before
    assert laptop.run(f"{CALL} hostname") == "server\n"


def test_a_purge_takes_all_of_it_away(home: Home) -> None:
    """Also from a machine whose agent runs."""
    laptop = home.machines["laptop"]
    laptop.run(PURGE, answer="y\n")
    assert found(home.world, laptop) == home.before

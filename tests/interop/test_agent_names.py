"""Names with `segue-agent`: what applications get, what is published, and two hosts that find each other again."""

from __future__ import annotations

import contextlib
import functools
import json
import shlex
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import agents
import lab
import name_server
import pytest
import secure_shell
from agents import Agent, World, identity, wait_until
from lab import Namespace
from name_server import ADDRESS, SECRET, ZONE, NameServer, dig

REASON = agents.missing() or secure_shell.missing() or name_server.missing()
pytestmark = [pytest.mark.waits, pytest.mark.skipif(REASON is not None, reason=REASON or "")]
PLAIN, LONG = f"plain.{ZONE}", f"long.{ZONE}"


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[World]:
    """Two machines and a router between them."""
    with agents.world(tmp_path) as world:
        yield world


@pytest.fixture
def server(machines: World) -> Iterator[NameServer]:
    """A server beside the router, with a host that has no agent and one whose text is long."""
    text = " ".join(f'"{letter * 250}"' for letter in "abcdefgh")
    others = (f"plain IN AAAA {machines.plain_address('peer', 'eth0')}", f"long IN TXT {text}")
    router = machines.hosts["router"]
    with name_server.name_server(router, machines.folder, ("mobile", "peer"), *others) as running:
        yield running


def write(machines: World, host: str, *more: str, secret: str = SECRET, publishes: bool = True) -> None:
    """The file of a host that knows its peers by names alone."""
    lines = [
        "[agent]",
        'interfaces = ["eth0", "eth1"]',
        f'socket = "{machines.folder}/{host}.sock"',
        'hold_down = "500 ms"',
        "[ilnp]",
        f'nid = "{agents.NIDS[host]}"',
        *more,
        "[names]",
        f'upstream = ["{ADDRESS}"]',
    ]
    if publishes:
        lines += [
            "[names.publish]",
            f'name = "{host}.{ZONE}"',
            f'server = "{ADDRESS}"',
            f'key = {{ name = "{host}", secret = "{secret}" }}',
            "addresses = true",
        ]
    path = machines.folder / f"{host}.toml"
    path.write_text("\n".join(lines))
    path.chmod(0o600)


def published(agent: Agent) -> str:
    """How far the agent is with its own name."""
    state: str = agent.status()["names"]["published"]["state"]
    return state


def is_published(agent: Agent) -> bool:
    """Whether the server has it."""
    return published(agent) == "published"


@contextlib.contextmanager
def both(machines: World) -> Iterator[tuple[Agent, Agent]]:
    """An agent on either machine, with their names published."""
    for host in agents.LINKS:
        write(machines, host)
    with machines.agent("peer", written=True) as peer, machines.agent("mobile", written=True) as mobile:
        for agent in (mobile, peer):
            wait_until(functools.partial(is_published, agent), "the name to be published")
        yield mobile, peer


def in_resolv_conf(machines: World, host: str, *command: str) -> list[str]:
    """A command that finds the agent's resolver where every program looks for one."""
    file = machines.folder / "resolv.conf"
    file.write_text("nameserver ::1\n")
    inside = f"mount --bind {file} /etc/resolv.conf && exec {shlex.join(command)}"
    return machines.hosts[host].command("unshare", "--mount", "sh", "-c", inside)


def addresses(machines: World, host: str, name: str) -> list[str]:
    """What the C library finds, in its order."""
    command = in_resolv_conf(machines, host, "getent", "ahostsv6", name)
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=lab.SOON)
    return [line.split()[0] for line in done.stdout.splitlines() if "STREAM" in line]


def places(*links: str) -> list[str]:
    """The prefixes of links, as BIND writes them."""
    return [agents.PREFIXES[link] for link in links]


def locators_at(server: NameServer, host: str) -> list[str]:
    """Where the server has a host, the best first."""
    pairs = [line.split() for line in server.records(f"{host}.{ZONE}", "L64")]
    return [place for _, place in sorted(pairs, key=lambda pair: int(pair[0]))]


def counted(agent: Agent, name: str, part: str = "names") -> int:
    """A counter."""
    return int(agent.status()["counters"].get(part, {}).get(name, 0))


def test_applications_get_identities_by_name_and_all_else_as_it_is(machines: World, server: NameServer) -> None:
    """getaddrinfo, dig and ssh; types and names that are none of the agent's come back as the server has them."""
    host = machines.hosts["mobile"]
    with both(machines) as (mobile, _):
        assert server.records(f"peer.{ZONE}", "NID") == [f"10 {agents.NIDS['peer']}"]
        assert addresses(machines, "mobile", f"peer.{ZONE}") == [identity("peer")]
        assert addresses(machines, "mobile", f"mobile.{ZONE}") == [identity("mobile")]
        # whoever does not speak ILNP finds the kernel's own addresses
        own = {machines.plain_address("peer", device) for device in ("eth0", "eth1")}
        assert set(server.records(f"peer.{ZONE}", "AAAA")) == own
        plain = machines.plain_address("peer", "eth0")
        assert addresses(machines, "mobile", PLAIN) == [plain]
        with agents.iperf_server(machines.hosts["peer"], 5201):
            assert agents.said_by(agents.iperf(host, plain, 5201, "-t", "1"))["end"]["sum_received"]["bytes"] > 0
        for name, kind in ((PLAIN, "AAAA"), (PLAIN, "A"), (ZONE, "SOA"), (f"peer.{ZONE}", "L64"), (LONG, "TXT")):
            assert dig(host, name, kind, "@::1") == server.records(name, kind), (name, kind)
        shown = subprocess.run(
            host.command("dig", "@::1", "+bufsize=512", "+ignore", LONG, "TXT"),
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        assert "tc" in shown.split("flags:")[1].split(";")[0].split(), shown
        for name, code in ((f"nobody.{ZONE}", "NXDOMAIN"), ("elsewhere.test", "REFUSED")):
            said = subprocess.run(host.command("dig", "@::1", name, "AAAA"), check=True, capture_output=True, text=True)
            assert f"status: {code}" in said.stdout, said.stdout
        # the name is all that the file has of the peer
        with secure_shell.session(machines.hosts["peer"], host, identity("peer"), machines.folder) as shell:
            assert shell.say() < 2
        status = mobile.status()
        known = {one["identity"]: one for one in status["names"]["known"]}
        assert known[identity("peer")]["name"] == f"peer.{ZONE}"
        assert known[identity("peer")]["source"] == "dns"
        assert counted(mobile, "look_ups") == 1, status["counters"]
        shown = mobile.command("status").stdout
        assert f"mobile.{ZONE}" in shown
        assert f"peer.{ZONE}" in shown


def test_a_handover_is_published(machines: World, server: NameServer) -> None:
    """Who looks the host up after it finds it where it is."""
    with both(machines) as (mobile, _):
        assert locators_at(server, "mobile")[0] == places("a0")[0]
        mobile.move("eth1")
        wait_until(lambda: locators_at(server, "mobile")[0] == places("a1")[0], "the new locator")
        machines.hosts["router"].ip("link set a0 down")
        wait_until(lambda: locators_at(server, "mobile") == places("a1"), "the old locator to be gone")
        assert counted(mobile, "updates") >= 3
        assert counted(mobile, "updates_refused") == 0


def is_only_at(server: NameServer, host: str, link: str) -> bool:
    """Whether the server has a host at one link and no other."""
    return locators_at(server, host) == places(link)


def has_one(agent: Agent) -> bool:
    """Whether the second network is gone."""
    up: bool = agent.status()["interfaces"][1]["is_up"]
    return not up


@lab.real_time
def find_each_other_again(machines: World, server: NameServer) -> None:
    """Both have one network each, and at the same moment lose that and get another: neither can be told."""
    router, host, peer = (machines.hosts[name] for name in ("router", "mobile", "peer"))
    old, new = ("a0", "b0"), ("a1", "b1")
    for link in old:
        router.ip(f"link set {link} up")
    for name in agents.LINKS:
        wait_until(functools.partial(machines.plain_address, name, "eth0"), "an address")
    with contextlib.ExitStack() as stack:
        mobile, other = stack.enter_context(both(machines))
        for link in new:
            router.ip(f"link set {link} down")
        for agent in (mobile, other):
            wait_until(functools.partial(has_one, agent), "one network")
        # neither learns of the network that the other will be in
        for name, links in agents.LINKS.items():
            wait_until(functools.partial(is_only_at, server, name, links[0]), "the first locator alone")
        [to] = addresses(machines, "mobile", f"peer.{ZONE}")
        shell = stack.enter_context(secure_shell.session(peer, host, to, machines.folder))
        stack.enter_context(agents.iperf_server(peer, 5201))
        stream = stack.enter_context(agents.iperf(host, to, 5201, "-t", "25", "-b", "5M"))
        time.sleep(2)
        looked_up = counted(mobile, "look_ups")
        begun = time.monotonic()
        # in one call of ip(8) each, at most a few milliseconds apart
        lines = [f"link set {link} down" for link in old] + [f"link set {link} up" for link in new]
        subprocess.run(["ip", "-n", router.name, "-batch", "-"], input="\n".join(lines), check=True, text=True)
        waited = shell.say(within=20)
        print("both ends moved: a line of ssh after", time.monotonic() - begun, "s, waited", waited)
        assert (mobile.in_use(), other.in_use()) == ("eth1", "eth1")
        assert counted(mobile, "look_ups") > looked_up
        assert f'looked up peer={to} locators="{places("b1")[0]}"' in plain_text(mobile.log)
        assert shell.say() < 2
        received = agents.said_by(stream)["end"]["sum_received"]["bytes"]
    # what was held up is made up for
    assert received > 0.7 * 25 * 5e6 / 8, received


def plain_text(log: Path) -> str:
    """A log without colours."""
    text = log.read_text()
    while "\x1b[" in text:
        before, _, behind = text.partition("\x1b[")
        text = before + behind.partition("m")[2]
    return text


def test_two_hosts_that_lose_their_networks_at_once_find_each_other_by_name(
    machines: World, server: NameServer
) -> None:
    """As it says."""
    find_each_other_again(machines, server)


def test_names_of_the_file_need_no_server(machines: World) -> None:
    """A laboratory: the peers of the file have names, and their places are tried when both have moved."""
    for name in agents.LINKS:
        other = "peer" if name == "mobile" else "mobile"
        path = machines.configuration(name)
        path.write_text(path.read_text() + f'\nname = "{other}.lab"\n[names]\n')
    host, router = machines.hosts["mobile"], machines.hosts["router"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(machines.agent("peer", written=True))
        mobile = stack.enter_context(machines.agent("mobile", written=True))
        assert addresses(machines, "mobile", "peer.lab") == [identity("peer")]
        assert addresses(machines, "peer", "mobile.lab") == [identity("mobile")]
        assert addresses(machines, "mobile", "other.lab") == []
        known = [one for one in mobile.status()["names"]["known"] if one["source"] == "file"]
        assert [one["name"] for one in known] == ["peer.lab"]
        shell = stack.enter_context(
            secure_shell.session(machines.hosts["peer"], host, identity("peer"), machines.folder)
        )
        lines = ["link set a0 down", "link set b0 down"]
        subprocess.run(["ip", "-n", router.name, "-batch", "-"], input="\n".join(lines), check=True, text=True)
        print("without a server: a line of ssh after", shell.say(within=20))


@pytest.mark.usefixtures("server")
def test_strangers_and_damaged_questions_get_nothing(machines: World) -> None:
    """The resolver is this machine's alone; what is no question changes nothing."""
    write(machines, "mobile", publishes=False)
    with machines.agent("mobile", written=True) as mobile:
        listening = World.run(*machines.hosts["mobile"].command("ss", "-Hlnut", "sport = :53"))
        assert listening.count("[::1]:53") == 2, listening
        assert len(listening.splitlines()) == 2, listening
        script = Path(__file__).with_name("peers") / "dns_noise.py"
        done = subprocess.run(
            machines.hosts["mobile"].command("python3", script), check=True, capture_output=True, text=True, timeout=60
        )
        said = json.loads(done.stdout)
        # no more answers than questions, and none longer
        assert said["sent"] >= 2000
        assert said["answers"] <= said["sent"]
        assert mobile.child.poll() is None
        assert addresses(machines, "mobile", PLAIN) == [machines.plain_address("peer", "eth0")]
        assert counted(mobile, "query_malformed") > 100
        assert len(list(Path(f"/proc/{mobile.child.pid}/fd").iterdir())) < 60


def test_a_key_of_others_is_refused(machines: World, server: NameServer) -> None:
    """A file that others read is not used; a server that does not know the key is named in `status`."""
    write(machines, "mobile", secret=SECRET[::-1].lstrip("=") + "=")
    file = machines.folder / "mobile.toml"
    file.chmod(0o644)
    done = subprocess.run([agents.program(), "check", file], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "has a key and mode 0644: expected a file that others cannot read" in done.stderr
    file.chmod(0o600)
    with machines.agent("mobile", written=True) as mobile:
        wait_until(lambda: counted(mobile, "update_answer_not_authentic") > 0, "the server's refusal")
        assert published(mobile) == "under way"
        assert server.records(f"mobile.{ZONE}", "L64") == []


def resolved_by(host: Namespace, name: str) -> bytes:
    """The raw answer of the resolver to a question for addresses: for tests that look at bytes."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    question = struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", 28, 1)
    code = (
        "import socket,sys;s=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM);s.settimeout(5);"
        "s.sendto(bytes.fromhex(sys.argv[1]),('::1',53));sys.stdout.buffer.write(s.recv(4096))"
    )
    command = host.command("python3", "-c", code, question.hex())
    return subprocess.run(command, check=True, capture_output=True, timeout=lab.SOON).stdout


@pytest.mark.usefixtures("server")
def test_a_question_without_edns_is_answered_without(machines: World) -> None:
    """RFC 6891 section 6.1.1: OPT is for who sent it. The question comes back in the letters that it was asked in."""
    with both(machines):
        answer = resolved_by(machines.hosts["mobile"], f"PeEr.{ZONE}")
    counts = struct.unpack("!6H", answer[:12])
    assert counts[0] == 7
    assert counts[2:] == (1, 1, 0, 0)
    assert b"\x04PeEr" in answer[:20]
    assert answer[-16:] == socket.inet_pton(socket.AF_INET6, identity("peer"))

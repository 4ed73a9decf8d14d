"""`segue-agent` under attack, from a network of the attacker's own and from the path: nothing moves that should not,
nothing grows, and what goes on goes on. What an attacker *can* do is here too, as SECURITY.md says it."""

from __future__ import annotations

import contextlib
import json
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from ipaddress import IPv6Address
from pathlib import Path

import agents
import attackers
import lab
import mobiles
import pytest
from agents import Agent, World, identity, iperf, iperf_server, said_by, wait_until
from attackers import Attacker, Kind, counted, memory, packets_received, where_things_are
from mobiles import HOME_ADDRESS, HOME_AGENT, Mobile

REASON = agents.missing()
pytestmark = [pytest.mark.waits, pytest.mark.skipif(REASON is not None, reason=REASON or "")]
FORGE = Path(__file__).parent / "peers" / "forge.py"
PORT = 5201
# One in twelve goes no further than the router.
RATE = 55_000
SECONDS = 6
# Where the hosts of ILNPv6 are, by link.
PLACES = {link: f"{agents.PREFIXES[link]}:{agents.NIDS[host]}" for host in agents.LINKS for link in agents.LINKS[host]}
CARE_OF_ADDRESS = f"{mobiles.PREFIXES['a0']}:{mobiles.IDENTIFIER}"
MEMORY_THAT_A_FLOOD_MAY_TAKE = 16 << 20


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[World]:
    """Two machines, a router, and an attacker on each link."""
    with agents.world(tmp_path, attacked=True) as world:
        yield world


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Mobile]:
    """The machines of Mobile IPv6, and an attacker on each link."""
    with mobiles.world(tmp_path, attacked=True) as world:
        yield world


@contextlib.contextmanager
def talking(world: World, *, seconds: int, udp: bool = False) -> Iterator[tuple[Agent, Agent, subprocess.Popen[str]]]:
    """Agents of mobile and peer, and a stream between their identities, which has begun."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(iperf_server(world.hosts["peer"], PORT))
        other = stack.enter_context(world.agent("peer"))
        agent = stack.enter_context(world.agent("mobile"))
        rate = ("-u", "-b", "100M", "-l", "1200", "-w", "400K") if udp else ("-b", "10M")
        client = stack.enter_context(iperf(world.hosts["mobile"], identity("peer"), PORT, "-t", str(seconds), *rate))
        wait_until(lambda: [one["mode"] for one in other.status()["sessions"]] == ["ilnp"], "the session")
        yield agent, other, client


@contextlib.contextmanager
def talking_directly(
    world: Mobile, *, seconds: int, udp: bool = False
) -> Iterator[tuple[dict[str, Agent], subprocess.Popen[str]]]:
    """The agents of Mobile IPv6, and a stream from the home address that takes the direct way."""
    peer = world.plain_address("peer", "eth0")
    with contextlib.ExitStack() as stack:
        stack.enter_context(iperf_server(world.hosts["peer"], PORT))
        all_ = {host: stack.enter_context(world.role(host)) for host in ("home", "peer", "mobile")}
        rate = ("-u", "-b", "100M", "-l", "1200", "-w", "400K") if udp else ("-b", "10M")
        client = stack.enter_context(iperf(world.hosts["mobile"], peer, PORT, "-t", str(seconds), *rate))
        wait_until(lambda: mobiles.ways(all_["mobile"]).get(peer), "the direct way")
        yield all_, client


def forge(world: World, seconds: float, *words: str) -> dict[str, int]:
    """What `peers/forge.py` sends from the attacker's network."""
    command = world.hosts["attacker"].command(sys.executable, FORGE, *words)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forger:
        time.sleep(seconds)
        forger.terminate()
        out, _ = forger.communicate(timeout=lab.SOON)
    sent: dict[str, int] = json.loads(out)["sent"]
    assert min(sent.values()) > 10, sent
    return sent


def more(before: dict[str, int], after: dict[str, int], name: str) -> int:
    """By how much a count has grown."""
    return after.get(name, 0) - before.get(name, 0)


def forged_update(seen: bytes, locator: str) -> bytes:
    """A frame that says that the sender of `seen`, a frame with a nonce, is at `locator`: with that nonce."""
    packet = seen[attackers.ETHERNET :]
    [source, destination] = (IPv6Address(packet[at : at + 16]) for at in (8, 24))
    said = struct.pack("!BBHBBH", attackers.LOCATOR_UPDATE, 0, 0, 1, 1, 0) + IPv6Address(locator).packed[:8]
    options = attackers.nonce(attackers.ICMPV6, packet[44:48])
    payload = options + said + struct.pack("!HH", 0, 3600)
    kind = Kind(str(source), str(destination), attackers.OPTIONS, payload, (), (attackers.ICMPV6, 48, 2, 8))
    return seen[: attackers.ETHERNET] + kind.bytes()


def advertisement(router: str, mac: str, *, lifetime: int, prefix: str | None = None) -> bytes:
    """A frame with a router advertisement of high preference (RFC 4861 section 4.2, RFC 4191 section 2.2)."""
    high = 0b01 << 3
    said = struct.pack("!BBHBBHII", 134, 0, 0, 64, high, lifetime, 0, 0)
    said += bytes([1, 1]) + bytes.fromhex(mac.replace(":", ""))
    if prefix is not None:
        said += struct.pack("!BBBBIII", 3, 4, 64, 0xC0, 3600, 3600, 0) + IPv6Address(prefix).packed
    kind = Kind(router, "ff02::1", attackers.ICMPV6, said, (), (attackers.ICMPV6, 40, 2, 8)).bytes()
    to = bytes.fromhex("333300000001") + bytes.fromhex(mac.replace(":", "")) + bytes.fromhex("86dd")
    # hop limit 255, or it has been through a router
    return to + kind[:7] + b"\xff" + kind[8:]


def lives(client: subprocess.Popen[str], rate: float, seconds: float) -> None:
    """A TCP stream has got through what it was to."""
    received = said_by(client)["end"]["sum_received"]["bytes"]
    assert received > 0.8 * rate / 8 * seconds, received


def lost(client: subprocess.Popen[str]) -> float:
    """The share of its datagrams that a stream has lost."""
    end = said_by(client)["end"]["sum"]
    assert end["packets"] > 10_000, end
    return float(end["lost_packets"] / end["packets"])


@lab.real_time
def flood_hosts(machines: World) -> None:
    attacker = Attacker(machines)
    with attackers.in_front(), talking(machines, seconds=2 * SECONDS + 6, udp=True) as (agent, other, client):
        places = {"mobile": (agent, PLACES["a0"], PLACES["b0"]), "peer": (other, PLACES["b0"], PLACES["a0"])}
        for host, (victim, own, talks_to) in places.items():
            before, grown, seen = where_things_are(victim), memory(victim), packets_received(machines.hosts[host])
            counts = counted(victim)
            with attacker.flood(attackers.of_ilnp(own, talks_to), rate=RATE, seconds=SECONDS) as flood:
                said = json.loads(flood.communicate(timeout=lab.LONGEST)[0])
            came = packets_received(machines.hosts[host]) - seen
            now = counted(victim)
            print(
                host,
                said,
                came,
                memory(victim) - grown,
                {k: v - counts.get(k, 0) for k, v in now.items() if v != counts.get(k, 0)},
            )
            assert where_things_are(victim) == before
            assert memory(victim) - grown < MEMORY_THAT_A_FLOOD_MAY_TAKE
            assert more(counts, now, "packets too_many_strangers") > said["sent"] / 4
            # those that have not carried on, those that others began with the peer's identifier, and the one
            assert len(victim.status()["sessions"]) <= 256 + 8 + 1
        # none on a machine that does nothing else: benches/agent_flood.py
        assert lost(client) < 0.001


@pytest.mark.alone
def test_a_stream_loses_nothing_under_a_flood(machines: World) -> None:
    """100 Mbit/s between identities, and 50,000 packets a second of every kind against either end."""
    flood_hosts(machines)


@lab.real_time
def flood_mobile_ipv6(homes: Mobile) -> None:
    attacker = Attacker(homes)
    peer = homes.plain_address("peer", "eth0")
    targets = {
        "peer": (peer, CARE_OF_ADDRESS),
        "home": (HOME_AGENT, CARE_OF_ADDRESS),
        "mobile": (CARE_OF_ADDRESS, peer),
    }
    with attackers.in_front(), talking_directly(homes, seconds=3 * SECONDS + 8, udp=True) as (all_, client):
        for host, (own, talks_to) in targets.items():
            victim = all_[host]
            before, grown, seen = where_things_are(victim), memory(victim), packets_received(homes.hosts[host])
            counts = counted(victim)
            kinds = attackers.of_mobile_ipv6(own, talks_to, HOME_ADDRESS)
            with attacker.flood(kinds, rate=RATE, seconds=SECONDS) as flood:
                said = json.loads(flood.communicate(timeout=lab.LONGEST)[0])
            came = packets_received(homes.hosts[host]) - seen
            now = counted(victim)
            print(
                host,
                said,
                came,
                memory(victim) - grown,
                {k: v - counts.get(k, 0) for k, v in now.items() if v != counts.get(k, 0)},
            )
            assert where_things_are(victim) == before
            assert memory(victim) - grown < MEMORY_THAT_A_FLOOD_MAY_TAKE
        # none on a machine that does nothing else: benches/agent_flood.py
        assert lost(client) < 0.001


@pytest.mark.alone
@pytest.mark.slow
def test_a_stream_of_a_mobile_node_loses_nothing_under_a_flood(homes: Mobile) -> None:
    """100 Mbit/s by the direct way, and 50,000 packets a second of every kind against each of the three."""
    flood_mobile_ipv6(homes)


@lab.real_time
def forge_locator_updates(machines: World) -> None:
    mobile = [f"--mobile={PLACES[link]}" for link in agents.LINKS["mobile"]]
    peer = [f"--correspondent={PLACES[link]}" for link in agents.LINKS["peer"]]
    with talking(machines, seconds=9) as (agent, other, client):
        before = [where_things_are(one) for one in (agent, other)]
        forge(machines, 5, "--scheme=ilnp", f"--here={agents.ATTACKER}66", *mobile, *peer, "--rate=50")
        counts = counted(other)
        assert min(counts["ilnp lu_missing_nonce"], counts["ilnp lu_wrong_nonce"]) > 100, counts
        assert counted(agent)["ilnp lu_wrong_nonce"] > 100
        assert [where_things_are(one) for one in (agent, other)] == before
        lives(client, 10e6, 9)


def test_locator_updates_with_guessed_nonces_move_nobody(machines: World) -> None:
    """Nor do acknowledgements, or data with the peer's identifier: RFC 6744."""
    forge_locator_updates(machines)


@lab.real_time
def forge_errors(machines: World) -> None:
    attacker = Attacker(machines)
    own, to = PLACES["a0"], PLACES["b0"]
    quotes = [
        Kind(own, to, attackers.OPTIONS, attackers.nonce(attackers.TCP) + b"\0" * 40).bytes(),
        Kind(own, to, attackers.TCP, b"\0" * 40).bytes(),
    ]
    said = [
        struct.pack("!BBHI", kind, code, 0, word)
        for kind, code, word in ((4, 2, 42), (4, 1, 40), (1, 4, 0), (2, 0, 1280))
    ]
    summed = (attackers.ICMPV6, 40, 2, 8)
    kinds = [
        Kind(source, own, attackers.ICMPV6, head + quote, ((92, 96),), summed)
        for source in (to, "2001:db8:9::66")
        for quote in quotes
        for head in said
    ]
    # from before the first packet on, which nobody has answered yet
    with attacker.flood(kinds, rate=2000, seconds=14), talking(machines, seconds=5) as (agent, _, client):
        lives(client, 10e6, 5)
        counts = counted(agent)
        assert counts["ilnp icmp_not_ours"] > 1000, counts
        assert not counts.get("ilnp fallbacks"), counts
        assert [one["mode"] for one in agent.status()["sessions"]] == ["ilnp"]


def test_who_is_off_the_path_makes_no_session_fall_back(machines: World) -> None:
    """By no ICMPv6 error, since one has to quote the nonce."""
    forge_errors(machines)


@lab.real_time
def replay_locator_updates(machines: World) -> None:
    attacker = Attacker(machines)
    to_peer = bytes.fromhex(attackers.mac_of(machines.hosts["peer"], "eth0").replace(":", ""))

    def is_told(packet: bytes) -> bool:
        return attackers.is_locator_update(packet)

    with (
        attackers.packet_socket(attacker.namespace, "h-b0") as tap,
        talking(machines, seconds=14) as (agent, other, client),
    ):
        agent.move("eth1")
        seen = [frame for frame in attackers.frames(tap, is_told, 1) if frame[:6] == to_peer]
        assert seen, "no update passed"
        agent.move("eth0")
        time.sleep(1)
        before = where_things_are(other)
        for _ in range(20):
            for frame in seen:
                tap.send(frame)
            time.sleep(0.05)
        # and while it moves once more, there and back
        for interface in ("eth1", "eth0"):
            agent.move(interface)
            for _ in range(10):
                for frame in seen:
                    tap.send(frame)
                time.sleep(0.05)
        time.sleep(1)
        counts, came = counted(other), packets_received(machines.hosts["mobile"])
        away = packets_received(machines.hosts["mobile"], "eth1")
        time.sleep(1)
        assert counts["ilnp lu_replayed"] > 10, counts
        now = where_things_are(other)
        assert sorted(now["sessions"][0]["locators"]) == sorted(before["sessions"][0]["locators"])
        # what comes back comes where the host is
        came = packets_received(machines.hosts["mobile"]) - came
        away = packets_received(machines.hosts["mobile"], "eth1") - away
        # acknowledgements, of which one may be for many segments; what is not the agent's comes by either
        assert came > 15, (came, away)
        assert away < came / 2, (came, away)
        lives(client, 10e6, 14)


def test_locator_updates_that_are_replayed_move_nobody_back(machines: World) -> None:
    """Seen on the path and sent again byte for byte, after a later move and during one."""
    replay_locator_updates(machines)


@lab.real_time
def forge_with_the_nonce(machines: World) -> None:
    attacker = Attacker(machines)

    def has_nonce(packet: bytes) -> bool:
        return (
            packet[6] == attackers.OPTIONS and packet[42] == 0x8B and packet[8:24] == IPv6Address(PLACES["a0"]).packed
        )

    with (
        attackers.packet_socket(attacker.namespace, "h-b0") as tap,
        attackers.packet_socket(attacker.namespace, "x0") as own,
        talking(machines, seconds=12) as (_, other, client),
    ):
        theirs = f"{agents.ATTACKER}2aa:0:0:1".replace("::", ":0:")
        attacker.namespace.ip(f"address replace {theirs}/64 dev x0 nodad")
        seen = next(attackers.frames(tap, has_nonce, 2))
        tap.send(forged_update(seen, agents.ATTACKER))
        to_him = IPv6Address(theirs).packed
        came = next(attackers.frames(own, lambda packet: packet[24:40] == to_him, 2), None)
        assert came is not None, other.status()["sessions"]
        # until the host finds that nothing comes back, and tells where it is, or goes to its other network
        wait_until(lambda: "2001:db8:9:0" not in other.status()["sessions"][0]["locators"], "the host to tell again")
        lives(client, 10e6, 9)


@pytest.mark.slow
def test_who_is_on_the_path_reads_the_nonce_and_can_move_a_session(machines: World) -> None:
    """A nonce is no encryption: he gets what is sent until the host tells again; TLS and ssh are what protects that."""
    forge_with_the_nonce(machines)


@lab.real_time
def advertise_from_a_rogue_router(machines: World) -> None:
    attacker, router = Attacker(machines), machines.hosts["router"]
    shown = json.loads(World.run("ip", "-n", router.name, "-6", "-j", "addr", "show", "dev", "a0", "scope", "link"))
    true = next(place["local"] for one in shown for place in one.get("addr_info", []) if "local" in place)
    mac = attackers.mac_of(router, "a0")
    with (
        attackers.packet_socket(attacker.namespace, "h-a0") as link,
        talking(machines, seconds=14) as (agent, _, client),
    ):
        # the router is said to be none any more, in its own name
        link.send(advertisement(true, mac, lifetime=0))
        wait_until(lambda: agent.in_use() == "eth1", "the other network", within=3)
        wait_until(lambda: agent.in_use() == "eth0", "the router's own advertisement, and the better network")
        # another says that he is a better one, in another network, and forwards nothing
        for _ in range(6):
            link.send(advertisement("fe80::bad", "02:00:00:00:0b:ad", lifetime=600, prefix="2001:db8:bad::"))
            time.sleep(0.5)
        lives(client, 10e6, 10)
        status = agent.status()
    print(status["handovers"], [one["locators"] for one in status["interfaces"]])


def test_a_rogue_router_does_not_end_a_connection(machines: World) -> None:
    """What he does to the kernel's default route is neighbour discovery's own weakness; the session goes on over the
    other network, or over the router that answers."""
    advertise_from_a_rogue_router(machines)


@lab.real_time
def forge_mobile_ipv6(homes: Mobile) -> None:
    peer = homes.plain_address("peer", "eth0")
    words = ["--scheme=mip6", f"--here={agents.ATTACKER}66", f"--agent={HOME_AGENT}", f"--mobile={HOME_ADDRESS}"]
    with talking_directly(homes, seconds=9) as (all_, client):
        before = {host: where_things_are(one) for host, one in all_.items()}
        forge(homes, 5, *words, f"--mobile={CARE_OF_ADDRESS}", f"--correspondent={peer}", "--rate=50")
        counts = {host: counted(one) for host, one in all_.items()}
        assert counts["home"]["home-agent unauthenticated"] > 100, counts["home"]
        refused = ("expired_nonce", "unauthenticated", "malformed")
        assert sum(counts["peer"].get(f"correspondent {name}", 0) for name in refused) > 100, counts["peer"]
        assert counts["mobile"]["mobile-node unexpected"] > 100, counts["mobile"]
        assert {host: where_things_are(one) for host, one in all_.items()} == before
        lives(client, 10e6, 9)


def test_binding_updates_tests_and_errors_that_are_forged_move_nobody(homes: Mobile) -> None:
    """Without key, tokens or cookies: RFC 6275 sections 15.2 to 15.4, RFC 4285."""
    forge_mobile_ipv6(homes)


@lab.real_time
def replay_binding_updates(homes: Mobile) -> None:
    attacker = Attacker(homes)
    with (
        attackers.packet_socket(attacker.namespace, "h-b0") as at_peer,
        attackers.packet_socket(attacker.namespace, "h-d0") as at_home,
        talking_directly(homes, seconds=14) as (all_, client),
    ):
        agent = all_["mobile"]
        agent.move("eth1")
        taps = {"peer": at_peer, "home": at_home}
        seen = {host: list(attackers.frames(tap, attackers.is_binding_update, 1)) for host, tap in taps.items()}
        assert all(seen.values()), seen
        agent.move("eth0")
        wait_until(lambda: list(mobiles.ways(agent).values()) == [True], "the direct way again")
        before = {host: where_things_are(one) for host, one in all_.items()}
        counts = {host: counted(all_[host]) for host in taps}
        for _ in range(100):
            for host, tap in taps.items():
                for frame in seen[host]:
                    tap.send(frame)
            time.sleep(0.01)
        time.sleep(0.5)
        assert {host: where_things_are(one) for host, one in all_.items()} == before
        now = {host: counted(all_[host]) for host in taps}
        assert more(counts["home"], now["home"], "home-agent bad_sequence") > 50, now["home"]
        assert more(counts["home"], now["home"], "home-agent errors_withheld") > 20, now["home"]
        refused = ("bad_sequence", "expired_nonce", "unauthenticated")
        assert sum(more(counts["peer"], now["peer"], f"correspondent {name}") for name in refused) > 30, now["peer"]
        lives(client, 10e6, 14)


def test_binding_updates_that_are_replayed_move_nobody_back(homes: Mobile) -> None:
    """By home agent and correspondent they are refused, and the refusals are few: ten a second for each mobile node."""
    replay_binding_updates(homes)


def test_a_correspondent_answers_so_many_tests_of_a_network(homes: Mobile) -> None:
    """4,000 in two seconds, of sources that are drawn from one network: 40 at once, and 20 in a second."""
    attacker, peer = Attacker(homes), homes.plain_address("peer", "eth0")
    kinds = list(attackers.of_mobile_ipv6(peer, CARE_OF_ADDRESS, HOME_ADDRESS)[:2])
    for kind in kinds:
        kind.random = ((16, 24), (48, 56))
    with homes.role("peer") as other, attackers.packet_socket(attacker.namespace, "h-b0") as link:
        with attacker.flood(kinds, rate=2000, seconds=2) as flood:
            answers = list(attackers.frames(link, is_test, 3))
            said = json.loads(flood.communicate(timeout=lab.LONGEST)[0])
        counts = counted(other)
    assert said["sent"] > 1000, said
    assert 40 <= len(answers) <= 40 + 3 * 20, (len(answers), counts)
    assert counts["packets too_many_strangers"] > said["sent"] / 2, counts


@lab.real_time
def forge_binding_errors(homes: Mobile) -> None:
    attacker, peer = Attacker(homes), homes.plain_address("peer", "eth0")
    error = attackers.binding_error(CARE_OF_ADDRESS, peer, HOME_ADDRESS)
    with attackers.in_front(), talking_directly(homes, seconds=10, udp=True) as (all_, client):
        agent = all_["mobile"]
        before = where_things_are(agent)["registration"]
        with attacker.flood([error], rate=1000, seconds=4) as flood:
            flood.communicate(timeout=lab.LONGEST)
        assert where_things_are(agent)["registration"] == before
        wait_until(lambda: mobiles.ways(agent)[peer], "the direct way again")
        assert lost(client) < 0.001


@pytest.mark.alone
def test_a_forged_binding_error_costs_a_detour_and_nothing_else(homes: Mobile) -> None:
    """Of a stream of which nothing comes back: by the home agent, until the correspondent has been asked again."""
    forge_binding_errors(homes)


def is_test(packet: bytes) -> bool:
    """Whether it answers a test."""
    kind, upper = attackers.upper_layer(packet)
    return kind == attackers.MOBILITY and upper[2] in (attackers.HOT, attackers.COT)


def test_the_doctor_tries_a_filter_of_system_calls() -> None:
    """As the last, for it is upon the doctor from then on."""
    done = subprocess.run([agents.program(), "doctor"], check=False, capture_output=True, text=True, timeout=lab.SOON)
    assert done.stdout.splitlines()[-1] == "ok       a filter of its own system calls", done

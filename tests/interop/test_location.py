"""The location manager against BIND 9: our client updates BIND's zone, and BIND's nsupdate and dig our server's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import build
import pytest

TOOLS = {
    name: shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") for name in ("named", "nsupdate", "dig")
}
MISSING = [name for name, path in TOOLS.items() if path is None]

ZONE = "loc.example"
NAME = f"mh.{ZONE}"
OLD, NEW = "2001:db8:2::1", "2001:db8:3::1"
START_S = 15.0

pytestmark = [
    pytest.mark.skipif(
        bool(MISSING),
        reason=f"{', '.join(MISSING)} not installed (Debian packages bind9, bind9-dnsutils): "
        "the location manager is not tested with BIND",
    ),
]


def binary() -> Path:
    """The segue-location to test."""
    return build.tool("segue-location")


@dataclass(frozen=True)
class Server:
    """A server on loopback.

    Attributes:
        port: UDP and TCP.
        key: Key file that may change NAME.
        wrong_key: A key file with the same name and another secret.
    """

    port: int
    key: Path
    wrong_key: Path

    def ours(self, *arguments: str, key: Path | None = None, rest: tuple[str, ...] = ()) -> Result:
        """Run our client."""
        command = [binary(), *arguments, f"--server=127.0.0.1:{self.port}", "--zone", ZONE, "--json"]
        command += ["--key", key] if key else []
        done = subprocess.run(
            [*map(str, command), NAME, *rest], capture_output=True, text=True, timeout=30, check=False
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def update(self, address: str, *options: str, key: Path | None = None) -> Result:
        """Our client updates."""
        return self.ours("update", "--ttl=1 s", *options, key=key or self.key, rest=(address,))

    def lookup(self, *options: str, key: Path | None = None) -> Result:
        """Our client looks up."""
        return self.ours("lookup", *options, key=key)

    def dig(self, *arguments: str) -> str:
        """BIND's dig."""
        assert TOOLS["dig"]
        command = [TOOLS["dig"], "@127.0.0.1", "-p", str(self.port), "+time=2", "+tries=1", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout

    def nsupdate(self, script: str, *options: str, key: Path | None = None) -> subprocess.CompletedProcess[str]:
        """BIND's nsupdate."""
        assert TOOLS["nsupdate"]
        text = f"server 127.0.0.1 {self.port}\nzone {ZONE}\n{script}\nsend\n"
        command = [TOOLS["nsupdate"], *options, "-k", str(key or self.key)]
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=30, check=False)


@dataclass(frozen=True)
class Result:
    """What our client said."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, object]:
        """Its result."""
        found = json.loads(self.stdout)
        assert isinstance(found, dict)
        return found


def write_key(path: Path, secret: str) -> Path:
    path.write_text(f'key "mh-key" {{\n\talgorithm hmac-sha256;\n\tsecret "{secret}";\n}};\n')
    path.chmod(0o600)
    return path


def free_port() -> int:
    """A port that is free for UDP and TCP on loopback."""
    for _ in range(100):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
            tcp.bind(("127.0.0.1", 0))
            port = int(tcp.getsockname()[1])
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
                try:
                    udp.bind(("127.0.0.1", port))
                except OSError:
                    continue
                return port
    raise AssertionError("no port is free for both UDP and TCP")


def wait_until_served(server: Server, child: subprocess.Popen[str], log: Path) -> None:
    """Wait for the first answer."""
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert child.poll() is None, log.read_text()
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            if probe.connect_ex(("127.0.0.1", server.port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"no server within {START_S} s: {log.read_text()}")


def stop(child: subprocess.Popen[str]) -> None:
    child.terminate()
    try:
        child.wait(timeout=10)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def keys_in(directory: Path) -> tuple[Path, Path]:
    good = write_key(directory / "mh.key", "x" * 42 + "w=")
    wrong = write_key(directory / "wrong.key", "y" * 42 + "w=")
    return good, wrong


@pytest.fixture(scope="module")
def bind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """BIND with a zone that the key may change."""
    directory = tmp_path_factory.mktemp("bind")
    key, wrong = keys_in(directory)
    server = Server(free_port(), key, wrong)
    (directory / "zone").write_text(
        f"$TTL 5\n@ IN SOA ns.{ZONE}. host.{ZONE}. 1 1200 180 1209600 5\n  IN NS ns.{ZONE}.\nns IN AAAA ::1\n"
    )
    (directory / "named.conf").write_text(
        f'include "{key}";\n'
        f'options {{ directory "{directory}"; listen-on port {server.port} {{ 127.0.0.1; }};\n'
        "  listen-on-v6 { none; };\n"
        f'  pid-file "{directory}/pid"; session-keyfile "{directory}/session.key"; recursion no;\n'
        "  dnssec-validation no; };\n"
        "controls { };\n"
        f'zone "{ZONE}" {{ type primary; file "zone"; update-policy {{ grant mh-key name {NAME}. AAAA; }}; }};\n'
    )
    log = directory / "log"
    command = [TOOLS["named"], "-g", "-n", "1", "-c", str(directory / "named.conf")]
    assert command[0]
    with log.open("w") as output:
        child = subprocess.Popen([str(c) for c in command], stdout=output, stderr=output, text=True)
        try:
            wait_until_served(server, child, log)
            yield server
        finally:
            stop(child)


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Server]:
    """Our server with the same zone and key."""
    key, wrong = keys_in(tmp_path)
    server = Server(free_port(), key, wrong)
    config = tmp_path / "location.toml"
    config.write_text(
        f'listen = ["127.0.0.1:{server.port}"]\ndirectory = "state"\n'
        f'[[zone]]\nname = "{ZONE}"\naddresses = ["::1"]\n'
        f'[[key]]\nfile = "mh.key"\nnames = ["{NAME}", "*.key.{ZONE}"]\n'
    )
    log = tmp_path / "log"
    with log.open("w") as output:
        command = [str(binary()), "serve", "--config", str(config)]
        child = subprocess.Popen(command, stdout=output, stderr=output, text=True)
        try:
            wait_until_served(server, child, log)
            yield server
        finally:
            stop(child)


@pytest.fixture(params=["bind", "ours"])
def either(request: pytest.FixtureRequest) -> Server:
    """Either server: our client does not know which."""
    server = request.getfixturevalue(request.param)
    assert isinstance(server, Server)
    return server


def test_our_client_moves_a_name(either: Server) -> None:
    for address in (OLD, NEW):
        updated = either.update(address)
        assert updated.status == 0, updated.stderr
        assert updated.json["address"] == address
        found = either.lookup()
        assert (found.status, found.json["addresses"], found.json["ttl_s"]) == (0, [address], 1)
        assert either.lookup(key=either.key).json["addresses"] == [address], "signed too"
    gone = either.ours("update", "--delete", key=either.key)
    assert gone.status == 0, gone.stderr
    nobody = either.lookup()
    assert nobody.status == 1
    assert nobody.json["failure"] == "no such name"


def test_a_wrong_key_changes_nothing(either: Server) -> None:
    assert either.update(OLD).status == 0
    refused = either.update(NEW, "--attempts=1", key=either.wrong_key)
    assert refused.status == 1
    assert "key is wrong (TSIG error 16)" in str(refused.json["failure"])
    assert either.lookup().json["addresses"] == [OLD]


@pytest.mark.parametrize("offset", [-3600, 3600])
def test_a_wrong_clock_changes_nothing_and_is_named(either: Server, offset: int) -> None:
    assert either.update(OLD).status == 0
    refused = either.update(NEW, f"--clock-offset={offset}")
    assert refused.status == 1
    assert "the server's clock is " in str(refused.json["failure"])
    assert either.lookup().json["addresses"] == [OLD]


def test_a_name_that_the_key_is_not_for_is_refused(either: Server) -> None:
    other = f"other.{ZONE}"
    command = [binary(), "update", f"--server=127.0.0.1:{either.port}", "--zone", ZONE, "--key", either.key, other, NEW]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (1, f"segue location: {other}: refused: REFUSED\n")


def test_nsupdate_and_dig_work_with_our_server(ours: Server) -> None:
    done = ours.nsupdate(f"update add {NAME} 7 AAAA {OLD}")
    assert done.returncode == 0, done.stderr
    assert ours.dig("+short", NAME, "AAAA").split() == [OLD]
    answer = ours.dig(NAME, "AAAA")
    assert "status: NOERROR" in answer
    assert " aa" in answer.split("flags:")[1].split(";")[0]
    assert f"{NAME}." in answer
    assert "\t7\tIN\tAAAA" in answer
    done = ours.nsupdate(f"prereq yxrrset {NAME} AAAA\nupdate delete {NAME} AAAA\nupdate add {NAME} 7 AAAA {NEW}")
    assert done.returncode == 0, done.stderr
    assert ours.dig("+tcp", "+short", NAME, "AAAA").split() == [NEW]
    assert ours.dig("-k", str(ours.key), "+short", NAME, "AAAA").split() == [NEW]
    assert "Couldn't verify signature" not in ours.dig("-k", str(ours.key), NAME, "AAAA")


def test_nsupdate_is_told_what_is_wrong(ours: Server) -> None:
    for script, key, expected in (
        (f"prereq nxdomain ns.{ZONE}\nupdate add {NAME} 7 AAAA {OLD}", ours.key, "YXDOMAIN"),
        (f"prereq yxdomain {NAME}\nupdate add {NAME} 7 AAAA {OLD}", ours.key, "NXDOMAIN"),
        (f"prereq yxrrset ns.{ZONE} A\nupdate add {NAME} 7 AAAA {OLD}", ours.key, "NXRRSET"),
        (f"update add other.{ZONE} 7 AAAA {OLD}", ours.key, "REFUSED"),
        (f"update add {NAME} 7 AAAA {OLD}", ours.wrong_key, "BADSIG"),
    ):
        done = ours.nsupdate(script, key=key)
        assert done.returncode != 0
        assert expected in done.stderr, done.stderr
    assert "status: NXDOMAIN" in ours.dig(NAME, "AAAA")


def test_dig_gets_every_kind_of_answer(ours: Server) -> None:
    assert ours.nsupdate(f"update add {NAME} 7 AAAA {OLD}\nupdate add {NAME} 7 TXT hello").returncode == 0
    assert ours.nsupdate(f"update add a.key.{ZONE} 7 CNAME {NAME}").returncode == 0
    aliased = ours.dig(f"a.key.{ZONE}", "AAAA")
    assert "CNAME" in aliased
    assert OLD in aliased
    soa = ours.dig("+short", ZONE, "SOA").split()
    assert soa[0] == f"ns.{ZONE}."
    assert int(soa[2]) == 3
    assert ours.dig("+short", ZONE, "NS").split() == [f"ns.{ZONE}."]
    both = ours.dig(NAME, "ANY")
    assert "TXT" in both
    assert "AAAA" in both
    nodata = ours.dig(NAME, "A")
    assert "status: NOERROR" in nodata
    assert "ANSWER: 0" in nodata
    assert "SOA" in nodata
    assert "status: REFUSED" in ours.dig("www.example.org", "AAAA")
    assert "Transfer failed" in ours.dig(ZONE, "AXFR")
    assert "status: NXDOMAIN" in ours.dig(f"key.{NAME}", "AAAA")


def test_nothing_is_lost_when_the_server_is_killed(tmp_path: Path) -> None:
    key, _ = keys_in(tmp_path)
    port = free_port()
    server = Server(port, key, key)
    config = tmp_path / "location.toml"
    config.write_text(
        f'listen = ["127.0.0.1:{port}"]\ndirectory = "state"\n[[zone]]\nname = "{ZONE}"\n'
        f'[[key]]\nfile = "mh.key"\nnames = ["{NAME}"]\n'
    )
    log = tmp_path / "log"
    for found, address in (([], OLD), ([OLD], NEW), ([NEW], None)):
        with log.open("a") as output:
            command = [str(binary()), "serve", "--config", str(config)]
            child = subprocess.Popen(command, stdout=output, stderr=output, text=True)
            try:
                wait_until_served(server, child, log)
                assert server.dig("+short", NAME, "AAAA").split() == found
                if address:
                    moved = f"update delete {NAME} AAAA\nupdate add {NAME} 7 AAAA {address}"
                    assert server.nsupdate(moved).returncode == 0
            finally:
                child.send_signal(signal.SIGKILL)
                child.wait()


def test_keys_that_others_can_read_are_refused(ours: Server, tmp_path: Path) -> None:
    before = ours.update(OLD)
    assert before.status == 0, before.stderr
    config = tmp_path / "location.toml"
    for mode in (0o640, 0o604, 0o620, 0o644):
        ours.key.chmod(mode)
        for arguments in (["serve", f"--config={config}"], ["lookup", "--server=127.0.0.1", f"--key={ours.key}", NAME]):
            done = subprocess.run([binary(), *arguments], capture_output=True, text=True, timeout=30, check=False)
            assert done.returncode == 2
            assert done.stderr.count("\n") == 1
            assert f"{ours.key}: its mode is {mode:o}, so that others than its owner have the key" in done.stderr
    ours.key.chmod(0o400)
    assert ours.lookup(key=ours.key).status == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["update", "--server=127.0.0.1", "--zone=loc.example", "mh.other.example", NEW], "is not in the zone"),
        (["update", "--server=127.0.0.1", "mh.loc.example", NEW], "--zone: expected the zone of the identity"),
        (["lookup", "--server=nowhere", NAME], "--server nowhere: expected an address"),
        (["lookup", "--server=127.0.0.1", "home:fe80"], "expected home: and an IPv6 address"),
        (["update", "--server=127.0.0.1", "--zone=loc.example", "--ttl=5", NAME, NEW], "--ttl"),
        (["serve", "--config=/nonexistent.toml"], "/nonexistent.toml: cannot be read"),
        (["update", "--server=127.0.0.1", "--zone=loc.example", "--key=/nonexistent", NAME, NEW], "cannot be read"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments: list[str], complaint: str) -> None:
    done = subprocess.run([binary(), *arguments], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1

"""`segue-lab run`: scenarios with the kernel of this machine. A smoke of some 20 s."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import build
import lab
import network
import pytest
import roaming
import wireguard

REASON = network.missing() or (None if shutil.which("iperf3") else "iperf3 is missing (Debian package iperf3)")
pytestmark = [pytest.mark.waits, pytest.mark.skipif(REASON is not None, reason=REASON or "")]

SCENARIOS = build.ROOT / "scenarios" / "lab"
# The second network comes at 2 s and the first goes at 4 s; iperf3 has 4 s.
SHORT = {
    "duration": "7 s",
    "cell.one.present": "0 s..4 s",
    "cell.two.present": "2 s..",
    "application.0.start": "1.5 s",
    "application.0.size": "10 MB",
    "application.1.start": "1 s",
    "application.2.start": "1 s",
}
# Their programs are our own: it is their reads that are looked at.
OTHERS = ("mptcp", "wireguard", "quic")
IPERF = ["iperf3", "-c", "{peer}", "-p", "{port}", "-t", "4", "-b", "20M", "-l", "2500", "-N"]


def ours(process: int | None = None) -> list[str]:
    """Namespaces of a run, by the number of its process, or of all runs that are no more; others may go on beside."""
    folder = Path("/run/netns")
    names = [path.name for path in folder.iterdir()] if folder.exists() else []
    owners = {name: int(name.split(".")[1]) for name in names if name.startswith("segue-lab.")}
    if process is None:
        return [name for name, owner in owners.items() if not Path(f"/proc/{owner}").exists()]
    return [name for name, owner in owners.items() if owner == process]


def command(scheme: str, out: Path, *more: str) -> list[str]:
    """The command line of a short run of a scheme's scenario, or of a file."""
    file = scheme if scheme.endswith(".toml") else str(SCENARIOS / f"{scheme}.toml")
    settings = SHORT | ({} if scheme in OTHERS else {"application.0.command": json.dumps(IPERF)})
    if scheme == "cmt-lan":
        settings = {key: value for key, value in SHORT.items() if not key.startswith("application.")}
        settings |= {"application.0.start": "1 s", "application.0.size": "12 MB"}
    words = [f"--set={key}={value}" for key, value in settings.items()]
    return [str(lab.program()), "run", file, f"--out={out}", *words, *more]


def run(scheme: str, out: Path, *more: str) -> dict[str, Any]:
    """A short run as JSON."""
    return lab.run_in_time(command(scheme, out, *more), SEGUE_PYTHON=sys.executable)


@lab.real_time
def test_iperf3_survives_a_soft_handoff_of_ilnp_under_the_kernels_tcp(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    conditions = ["--set", 'assert=["lost == 0"]', "--assert", "dead_flows == 0", "--junit", str(junit)]
    result = run("ilnp-soft", tmp_path, "--predict", *conditions)
    assert [(one["condition"], one["holds"]) for one in result["lab"]["conditions"]] == [
        ("lost == 0", True), ("dead_flows == 0", True)
    ]  # fmt: skip
    suite = ElementTree.parse(junit).getroot()
    # two conditions, both ends of three applications, and the emulation
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("9", "0", "0")
    assert [host["settings"]["route"] for host in result["lab"]["hosts"]] == ["congctl cubic", "congctl cubic"]
    clients = [program for program in result["lab"]["programs"] if program["role"] == "client"]
    assert clients[0]["exit_status"] == 0
    assert clients[0]["command"][0] == "iperf3"
    assert "receiver" in (tmp_path / clients[0]["stdout"]).read_text()
    moved = [handover for handover in result["handovers"] if handover["host"] == "mn"]
    # iperf3, somebody who types every 50 ms, and datagrams every 5 ms
    assert len(moved) == len(result["prediction"]["handovers"]) == 3
    # 50 ms are the pacing of who types; a segment that was lost would wait for 200
    assert max(handover["interruption_s"] for handover in moved) < 0.15
    assert sorted(path.name for path in tmp_path.glob("*.pcapng")) == ["cn.pcapng", "mn.pcapng"]
    # the captures, by an analysis that shares no code with the ledger, say the same
    of_captures = {round(h["interruption_s"], 6) for h in result["lab"]["analysis"]["handovers"]}
    assert {round(h["interruption_s"], 6) for h in moved} <= of_captures
    assert not ours()


@lab.real_time
def test_mobile_ipv6_tunnels_and_leaves_a_network_that_lets_nothing_through(tmp_path: Path) -> None:
    """With its home agent: the second network is up to the end, and a blackhole from 5 s on."""
    scenario = tmp_path / "blackhole.toml"
    event = '\n[[event]]\nkind = "blackhole"\non = "two"\nat = "5 s"\n'
    scenario.write_text((SCENARIOS / "mip6.toml").read_text() + event)
    result = run(str(scenario), tmp_path, "--predict", "--set=cell.one.present=0 s..")
    gaps = {}
    for world, metrics in (("lab", result), ("simulator", result["prediction"])):
        udp = [flow for flow in metrics["flows"] if flow["transport"] == "udp" and flow["to"] == "cn"]
        gaps[world] = udp[0]["longest_gap_s"]
    # 3 round trips of a millisecond, 100 ms, the pacing, and what a busy machine takes; without probes, to the end
    assert 0.03 < gaps["lab"] < 0.15, gaps
    assert abs(gaps["lab"] - gaps["simulator"]) < 0.05, gaps


def happening(scheme: str, out: Path, event: str) -> str:
    """The file of a scheme, with an event in it."""
    scenario = out / "event.toml"
    scenario.write_text((SCENARIOS / f"{scheme}.toml").read_text() + f"\n[[event]]\n{event}\n")
    return str(scenario)


BOTH_THERE = ("--set=cell.one.present=0 s..", "--set=cell.two.present=1 s..")


def states(result: dict[str, Any]) -> dict[int, str]:
    """How the flows to the correspondent ended, by their port."""
    return {flow["destination_port"]: flow["state"] for flow in result["flows"] if flow["to"] == "cn"}


@lab.real_time
def test_a_router_that_hangs_is_left_though_its_network_stays_up(tmp_path: Path) -> None:
    scenario = happening("ilnp-soft", tmp_path, 'kind = "router-down"\non = "r2"\nat = "4 s"')
    result = run(scenario, tmp_path, *BOTH_THERE, "--assert", "dead_flows == 0")
    assert [one["holds"] for one in result["lab"]["conditions"]] == [True]
    moved = [handover["time"] for handover in result["handovers"] if handover["time"] > 4]
    assert moved, "all that flows is moved to the other network"
    udp = [flow for flow in result["flows"] if flow["transport"] == "udp" and flow["to"] == "cn"]
    assert 0.03 < udp[0]["longest_gap_s"] < 1.0


@lab.real_time
def test_a_renumbered_network_is_a_handover_under_the_kernels_tcp(tmp_path: Path) -> None:
    """Without grace: what is sent to the old locator after that gets nowhere."""
    scenario = happening("ilnp-soft", tmp_path, 'kind = "renumber"\non = "two"\nat = "4 s"\nfor = "0 s"')
    result = run(scenario, tmp_path, *BOTH_THERE, "--assert", "dead_flows == 0")
    assert [one["holds"] for one in result["lab"]["conditions"]] == [True]
    assert "2001:db8:8000:" in {handover["to"][:14] for handover in result["handovers"] if handover["time"] > 4}


@lab.real_time
def test_without_a_scheme_the_kernel_begins_from_the_new_prefix_and_what_has_the_old_one_dies(tmp_path: Path) -> None:
    scenario = happening("none", tmp_path, 'kind = "renumber"\non = "one"\nat = "4 s"\nfor = "0 s"')
    more = ("--set=application.2.transport=tcp", "--set=application.2.start=5 s", "--set=application.2.size=20 kB")
    result = run(scenario, tmp_path, "--set=cell.one.present=0 s..", "--set=cell.two.present=6900 ms..", *more)
    ended = states(result)
    assert (ended[9001], ended[9002] != "dead") == ("dead", True), ended
    assert reads(result, 2)[:2] == (20_000, 0)


@lab.real_time
def test_tcp_of_programs_goes_on_over_sigma_when_its_address_is_replaced(tmp_path: Path) -> None:
    event = 'kind = "address-change"\non = "mn"\nat = "4 s"\nfor = "0 s"'
    scenario = happening("sigma-tcp", tmp_path, event)
    result = run(scenario, tmp_path, *BOTH_THERE, "--set=application.1.size=10 kB", "--assert", "dead_flows == 0")
    assert [one["holds"] for one in result["lab"]["conditions"]] == [True]
    assert {handover["host"] for handover in result["handovers"]} == {"mn"}
    assert reads(result, 1)[:2] == (10_000, 0)


@pytest.mark.slow
@lab.real_time
def test_two_hosts_that_move_at_once_find_each_other_again(tmp_path: Path) -> None:
    """Its own conditions are that no flow dies and none is interrupted for four seconds."""
    file = SCENARIOS / "both-ends-move.toml"
    result = lab.run_in_time([str(lab.program()), "run", str(file), f"--out={tmp_path}"])
    assert [one["holds"] for one in result["lab"]["conditions"]] == [True, True]
    for host in ("a", "b"):
        times = [handover["time"] for handover in result["handovers"] if handover["host"] == host]
        assert any(4 < time < 6 for time in times), times
        assert any(time > 8 for time in times), times


@lab.real_time
def test_concurrent_multipath_transfer_goes_on_when_a_network_goes(tmp_path: Path) -> None:
    result = run("cmt-lan", tmp_path, "--predict", "--assert", "dead_flows == 0")
    lab, simulator = result["flows"], result["prediction"]["flows"]
    assert lab[0]["packets_sent"] == pytest.approx(simulator[0]["packets_sent"], rel=0.01)


@lab.real_time
def test_tcp_of_programs_goes_on_over_sigma_when_its_network_goes(tmp_path: Path) -> None:
    """iperf3, somebody who types, and a line each 5 ms: connections of the kernel's, streams of one association."""
    settings = {"application.0.command": json.dumps([*IPERF, "-J"]), "application.1.size": "10 kB",
                "application.2.transport": "tcp", "application.2.size": "200 kB"}  # fmt: skip
    more = [f"--set={key}={value}" for key, value in settings.items()]
    result = run("sigma-tcp", tmp_path, *more, "--assert", "dead_flows == 0", "--assert", "lost == 0", "--predict")
    assert "prediction" not in result
    assert [flow["transport"] for flow in result["flows"]] == ["sctp", "sctp"]
    assert result["warnings"] == [], "there is nothing that has no effect"
    assert {handover["host"] for handover in result["handovers"]} == {"mn"}
    # all bytes arrive, as they were sent
    assert reads(result, 1)[:2] == (10_000, 0)
    assert reads(result, 2)[:2] == (200_000, 0)
    said = json.loads((tmp_path / "app0-client.out").read_text())["end"]
    # 20 Mbit/s for 4 s; who has read all but the last tells the other that it is over
    assert said["sum_received"]["bytes"] == pytest.approx(10_000_000, rel=0.01)
    # what iperf3 read is known from the proxy, which does not look at it
    read, wrong, _ = reads(result, 0)
    assert read == pytest.approx(said["sum_sent"]["bytes"], rel=0.01)
    assert wrong is None
    # 50 ms are the pacing of who types, the rest is what a busy machine delays: no timeout, which takes a second
    assert max(reads(result, number)[2] for number in range(3)) < 0.9
    for counters in result["lab"]["counters"].values():
        assert counters.pop("proxy_connections") == 4, "iperf3 has two"
        assert set(counters.values()) == {0}
    assert not ours()


@pytest.mark.slow
@lab.real_time
def test_many_connections_over_sigma_end_as_their_programs_end_them(tmp_path: Path) -> None:
    """More than there are streams, and one that is not read: it stops no other. When they end does not matter."""
    program = [sys.executable, str(Path(__file__).parent / "peers" / "connections.py")]
    settings = {"application.0.command": json.dumps([*program, "connect", "{peer}", "{port}", "200"]),
                "application.0.server": json.dumps([*program, "serve", "{port}"]), "duration": "12 s"}  # fmt: skip
    set_by = [f"--set={key}={value}" for key, value in settings.items()]
    result = lab.run_at_all(command("sigma-tcp", tmp_path, *set_by), SEGUE_PYTHON=sys.executable)
    said = json.loads((tmp_path / "app0-client.out").read_text())
    assert (said["answered"], said["reset"]) == (180, 20)
    # the buffers of two kernels, and a window between them
    assert said["stuck_bytes"] > 256 * 1024
    for counters in result["lab"]["counters"].values():
        assert counters.pop("proxy_connections") == 202
        assert set(counters.values()) == {0}


@lab.real_time
def test_without_a_scheme_connections_die_with_their_address(tmp_path: Path) -> None:
    result = run("none", tmp_path)
    states = {flow["destination_port"]: flow["state"] for flow in result["flows"] if flow["to"] == "cn"}
    assert states[9001] == states[9002] == "dead"
    assert not ours()


def reads(result: dict[str, Any], application: int) -> tuple[int, int | None, float]:
    """Bytes that an application's receiver read, the wrong ones if known, its longest gap from 3.5 s on in seconds."""
    own = next(entry for entry in result["lab"]["received"] if entry["application"] == application)
    gaps = [end - begin for begin, end in own["gaps_s"] if end > 3.5]
    return own["bytes"], own["wrong_bytes"], max(gaps, default=0.0)


def over_mptcp(scheme: str, out: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """A run over the kernel's MPTCP, and what the receiver of the line typed each 50 ms noted."""
    if reason := roaming.missing(mptcp=True):
        pytest.skip(reason)
    result = run("mptcp", out, f"--set=scheme={scheme}", "--predict")
    assert "prediction" not in result
    assert [entry["application"] for entry in result["lab"]["left_out"]] == [2]
    return result, next(entry for entry in result["lab"]["received"] if entry["application"] == 1)


@lab.real_time
def test_kernel_mptcp_goes_on_when_the_endpoint_of_the_network_that_went_is_deleted(tmp_path: Path) -> None:
    result, typed = over_mptcp("mptcp-delete", tmp_path)
    assert reads(result, 0)[:2] == (10_000_000, 0)
    assert 0 < reads(result, 0)[2] < 0.2
    # somebody who types every 50 ms is heard to the end
    assert typed["end_s"] > 6.8


@lab.real_time
def test_kernel_mptcp_carries_all_while_its_network_is_there_when_the_endpoint_stays(tmp_path: Path) -> None:
    """What becomes of it after that is the kernel's affair: it goes on at once, or waits for timers, seconds even."""
    result, _ = over_mptcp("mptcp", tmp_path)
    read, wrong, _ = reads(result, 0)
    # 2.5 MB/s from 1.5 s on: all that was sent until the first network went, at 4 s
    assert (wrong, 6_000_000 < read <= 10_000_000) == (0, True), read


@lab.real_time
def test_wireguard_roams_when_its_network_goes(tmp_path: Path) -> None:
    if reason := wireguard.missing():
        pytest.skip(reason)
    result = run("wireguard", tmp_path)
    assert reads(result, 0)[:2] == (10_000_000, 0)
    # datagrams every 5 ms: one lost costs 10
    assert 0.005 < reads(result, 2)[2] < 1


@lab.real_time
def test_a_client_over_quic_migrates_when_its_network_goes(tmp_path: Path) -> None:
    python = [sys.executable, "-c", "import segue.programs.quic"]
    if (done := subprocess.run(python, check=False, capture_output=True, text=True)).returncode != 0:
        pytest.skip(f"no QUIC: {done.stderr.splitlines()[-1]}")
    result = run("quic", tmp_path)
    assert reads(result, 0)[:2] == (10_000_000, 0)
    assert 0 < reads(result, 0)[2] < 1
    assert 0.005 < reads(result, 2)[2] < 1


@lab.real_time
def test_what_a_killed_run_leaves_is_gone_after_the_next(tmp_path: Path) -> None:
    with subprocess.Popen(command("none", tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        deadline = time.monotonic() + lab.SOON
        while len(ours(first.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        first.kill()
    assert len(ours(first.pid)) == 2
    with subprocess.Popen(
        command("none", tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as second:
        time.sleep(2)
        os.kill(second.pid, signal.SIGINT)
        said = second.communicate(timeout=lab.SOON)[1]
    assert second.returncode == 130
    assert said.count("which an earlier run had left") == 2
    assert not ours()


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder of an ordinary user, with the program and the scenario."""
    with tempfile.TemporaryDirectory(prefix="segue-lab-test-") as folder:
        path = Path(folder)
        path.chmod(0o777)
        for file in (lab.program(), SCENARIOS / "none.toml"):
            shutil.copy(file, path)
        yield path


def as_nobody(folder: Path, *more: str) -> list[str]:
    """The command line of a short run, by a user who may do nothing in particular."""
    words = command("none", folder / "out", *more)
    own = [str(folder / Path(words[0]).name), "run", str(folder / "none.toml"), *words[3:]]
    return [*nobody(folder), *own]


TUN_FOR_ALL = 'mknod -m 666 "$0" c 10 200 && mount --bind "$0" /dev/net/tun && exec "$@"'


def nobody(folder: Path) -> list[str]:
    """What runs a command as that user, with a /dev/net/tun for all, as most machines have it."""
    device = folder / "tun"
    device.unlink(missing_ok=True)
    own = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    return ["unshare", "--mount", "sh", "-c", TUN_FOR_ALL, str(device), *own]


def without_root(folder: Path) -> None:
    """Skips where the kernel lets no user make namespaces."""
    for words in (["unshare", "-Urnm", "true"], ["sh", "-c", ": <>/dev/net/tun"]):
        tried = subprocess.run([*nobody(folder), *words], check=False, capture_output=True, text=True)
        if tried.returncode != 0:
            pytest.skip(f"users may make no namespaces and TUN devices here: {tried.stderr.strip()}")


@lab.real_time
def test_without_root_hosts_are_in_a_user_namespace_and_its_owner_keeps_what_is_written(public: Path) -> None:
    without_root(public)
    done = subprocess.run(as_nobody(public, "--json"), check=False, capture_output=True, text=True)
    # without priority, packets may be too late on a machine that does other things, which is said
    assert done.returncode in (0, 3), done.stderr
    result = json.loads(done.stdout)
    assert result["lab"]["privileges"] == "user namespace"
    assert result["lab"]["real_time_priority"] is False
    assert "without root, in a user namespace: packets have no real-time priority" in done.stderr
    assert (done.returncode == 3) == result["lab"]["emulation"]["too_late"]
    iperf = next(one for one in result["lab"]["programs"] if one["role"] == "client")
    assert iperf["command"][0] == "iperf3"
    sent = [flow["transferred_bytes"] for flow in result["flows"] if flow["to"] == "cn"]
    assert max(sent) > 1_000_000
    assert {path.stat().st_uid for path in (public / "out").iterdir()} == {65534}


def test_without_root_a_tun_device_that_is_roots_is_one_line(public: Path) -> None:
    without_root(public)
    words = [word.replace("-m 666", "-m 600") for word in as_nobody(public)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "/dev/net/tun: Permission denied" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


@lab.real_time
def test_what_a_killed_run_of_a_user_leaves_is_gone_after_the_next(public: Path) -> None:
    without_root(public)
    with subprocess.Popen(as_nobody(public), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        deadline = time.monotonic() + lab.SOON
        while not (left := programs_in(public)) and time.monotonic() < deadline:
            time.sleep(0.05)
        first.kill()
    assert left
    with subprocess.Popen(as_nobody(public), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as second:
        time.sleep(2)
        os.kill(second.pid, signal.SIGTERM)
        said = second.communicate(timeout=lab.SOON)[1]
    assert second.returncode == 130
    assert said.count("which an earlier run had left") >= len(left)
    assert not programs_in(public)


def programs_in(folder: Path) -> list[str]:
    """Built-in applications of the program in `folder` that run."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                words = (process / "cmdline").read_text().split("\0")
                if words[:2] == [str(folder / "segue-lab"), "app"]:
                    found.append(process.name)
    return found


def test_what_is_written_wrongly_is_one_line(tmp_path: Path) -> None:
    for more, expected in (
        (["--assert", "interruption < 50"], "`50`: expected a time such as 50 ms"),
        (
            ["--set", 'application.0.command=["iperf3", "{pear}"]'],
            "`{pear}`: expected {peer} or {port}",
        ),
        (["--set", "application.1.by_name=true"], "by_name"),
        (["--set", "sead=1"], "sead"),
        (["--set", "scheme=wireguard", "--assert", "lost == 0"], "expected no conditions"),
        (["--set", "scheme=wireguard", "--set", "application.1.transport=sctp"], "application[1].transport"),
        (
            ["--set", "scheme=sigma", "--set", "application.1.transport=sctp"],
            "application[1]: the scheme has one association",
        ),
        (["--set", "nothing"], "expected KEY=VALUE"),
    ):
        done = subprocess.run([*command("none", tmp_path), *more], check=False, capture_output=True, text=True)
        assert done.returncode == 2, done.stderr
        assert expected in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr

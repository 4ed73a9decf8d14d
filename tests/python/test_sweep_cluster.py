"""Sweeps on a Ray cluster: what needs no Ray, and what a real one on this machine does."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

import segue
from segue import RunError, ScenarioError, __version__
from segue.scenarios import Scenario, bundled, load
from segue.sweeps import worker
from segue.sweeps.axes import parse_axes
from segue.sweeps.cluster import run_on_worker
from segue.sweeps.files import pack
from segue.sweeps.parts import OF, Parts, remove
from segue.sweeps.plan import Plan
from segue.sweeps.worker import Failed, Made, Outcome, Refused, Shared, digest_of, run_batch, self_test

SHORT = {"duration": "20 s"}
TEST = bundled(worker.SELF_TEST).text


def shared(text: str, **other: object) -> Shared:
    fields = {"name": "s", "text": text, "files": {}, "extra": (), "version": __version__, "self_test": self_test(TEST)}
    return Shared(**fields | {"self_test_text": TEST} | other)  # type: ignore[arg-type]


def nothing(digest: str) -> bytes:
    raise AssertionError(digest)


def test_a_worker_makes_the_rows_of_a_batch_in_order() -> None:
    text = load("sigma").text
    made = run_batch(shared(text), [(SHORT, 3), (SHORT | {"l2.latency": "300 ms"}, 1)], nothing)
    assert isinstance(made, Made)
    runs = [segue.run("sigma", SHORT, seed=3), segue.run("sigma", SHORT | {"l2.latency": "300 ms"}, seed=1)]
    assert [row["event_log_hash"] for row in made.rows] == [run.metrics.event_log_hash for run in runs]
    assert made.took_s > 0
    wrong = run_batch(shared(text), [({"l2.latency": "3 parsec"}, 1)], nothing)
    assert isinstance(wrong, Failed)
    assert wrong.is_input


def test_another_program_is_refused() -> None:
    text = load("sigma").text
    batch = [(SHORT, 1)]
    other = run_batch(shared(text, version="9.9.9"), batch, nothing)
    assert other == Refused(f"has Segue {__version__}, expected 9.9.9")
    other = run_batch(shared(text, self_test="0123"), batch, nothing)
    assert other == Refused(f"its self-test gives {self_test(TEST)}, expected 0123")
    # the self-test is one: other conditions give another hash
    assert self_test(TEST) != self_test(TEST.replace('delay = "2 ms"', 'delay = "3 ms"'))


@pytest.mark.parametrize("place", ["beside", "below", "above", "absolute"])
def test_files_that_are_named_travel_by_their_content(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "scenarios"
    folder.mkdir()
    name = {"beside": "way.csv", "below": "traces/way.csv", "above": "../way.csv"}.get(place, str(tmp_path / "way.csv"))
    trace = folder / name
    trace.parent.mkdir(exist_ok=True)
    content = b"time_s,rate_bps\n0,1000000\n"
    trace.write_bytes(content)
    (folder / "mine.toml").write_text(load("sigma").text)
    setting = f'{{ file = "{name}", format = "csv" }}'
    plan = Plan.of(load(folder / "mine.toml"), parse_axes({"link.0.trace": [setting]}), SHORT)
    here = segue.sweep(folder / "mine.toml", {"link.0.trace": [setting]}, SHORT, seeds=[1]).frame
    packed = pack(plan)
    assert list(packed.contents.items()) == [(digest_of(content), content)]
    trace.unlink()
    of_all = shared(packed.plan.scenario.text, files=packed.files)
    asked = [(packed.plan.overrides(0), 1)]
    made = run_batch(of_all, asked, packed.contents.__getitem__)
    assert isinstance(made, Made)
    assert made.rows[0]["event_log_hash"] == here["event_log_hash"][0]
    changed = shared(packed.plan.scenario.text, files={**packed.files, "other": digest_of(b"other")})
    failed = run_batch(changed, asked, lambda _: b"changed")
    assert isinstance(failed, Failed)
    assert "was changed on its way" in failed.text


def test_files_in_a_scenario_are_found_wherever_they_are_named(tmp_path: Path) -> None:
    for name in ("cells.csv", "walk.xml", "up.csv"):
        (tmp_path / name).write_text(name)
    text = """
        [[cell]]
        from_csv = { file = "cells.csv" }
        [[mobile]]
        mobility = { file = 'walk.xml', format = "sumo-fcd" }
        [[link]]
        up.trace = { file = "up.csv" }
        down.trace = { file = "none.csv" }
    """
    scenario = Scenario("s", str(tmp_path / "s.toml"), text)
    plan = Plan(scenario, parse_axes({"a": "1"}), {}, (), ((0,),))
    assert sorted(pack(plan).files) == ["cells.csv", "up.csv", "walk.xml"]


@pytest.mark.parametrize("place", ["{}", "ways/{}", "../{}", "/{}", "../of {{i}}/{}"])
def test_files_of_populations_are_those_of_all_of_them(tmp_path: Path, place: str) -> None:
    """Two phones, each with a way of its own; a file of the same folder that is nobody's way does not travel."""
    folder = tmp_path / "scenarios"
    folder.mkdir()
    name = place.format("way{i}.txt")
    name = f"{tmp_path}{name}" if name.startswith("/") else name
    contents = []
    for number in range(2):
        way = folder / name.replace("{i}", str(number))
        way.parent.mkdir(exist_ok=True)
        contents.append(f"0 {number} 0 60 {90 + number} 0\n".encode())
        way.write_bytes(contents[-1])
        (way.parent / "notes.txt").write_text("notes")
    mobile = f"""
        [[mobile]]
        host = "phone{{i}}"
        count = "{{phones}}"
        mobility = {{ file = "{name}", format = "bonnmotion", node = "0" }}
    """
    text = re.sub(r"(?m)^\[\[mobile\]\]\n(?:.+\n)*", lambda _: mobile, load("templates/population").text)
    (folder / "mine.toml").write_text(text)
    grid, overrides = {"duration": ["20 s"]}, {"phones": "2"}
    plan = Plan.of(load(folder / "mine.toml"), parse_axes(grid), overrides)
    here = segue.sweep(folder / "mine.toml", grid, overrides, seeds=[1]).frame
    packed = pack(plan)
    assert sorted(packed.contents.values()) == sorted(contents)
    shutil.rmtree(folder)
    of_all = shared(packed.plan.scenario.text, files=packed.files)
    made = run_batch(of_all, [(packed.plan.overrides(0), 1)], packed.contents.__getitem__)
    assert isinstance(made, Made), made
    assert made.rows[0]["event_log_hash"] == here["event_log_hash"][0]


def test_parts_are_of_one_sweep(tmp_path: Path) -> None:
    plan = Plan.of(load("sigma"), parse_axes({"l2.latency": "100ms,200ms"}), SHORT, ["flows.0.state"])
    folder = tmp_path / "r.parts"
    parts = Parts(folder, plan, {}, "hash")
    assert parts.read() == {}
    assert not folder.exists()
    found = segue.sweep("sigma", {"l2.latency": "100ms,200ms"}, SHORT, seeds=2, metrics=["flows.0.state"]).frame
    rows = [
        {name: value for name, value in row.items() if name not in {"l2_latency_s", "seed"}} for row in found.to_dicts()
    ]
    tasks = [(point, seed) for point in (0, 1) for seed in (1, 2)]
    parts.add(tasks[:3], rows[:3])
    parts.add(tasks[3:], rows[3:])
    again = Parts(folder, plan, {}, "hash")
    assert again.read() == dict(zip(tasks, rows, strict=True))
    again.add([(0, 3)], rows[:1])
    assert len(list(folder.glob("*.parquet"))) == 3
    for other in ({"a": "b"}, {}):
        with pytest.raises(ScenarioError, match="parts of another sweep"):
            Parts(folder, plan, other, "hash" if other else "another")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    with pytest.raises(ScenarioError, match="expected a folder with parts"):
        Parts(tmp_path / "mine", plan, {}, "hash")
    remove(tmp_path / "mine")
    remove(folder)
    assert (folder.exists(), (tmp_path / "mine" / "thesis.txt").exists()) == (False, True)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: content[: len(content) // 2], id="cut"),
        pytest.param(lambda _: b"", id="empty"),
        pytest.param(lambda content: content.replace(b"\x00", b"\x01", 1), id="a bit"),
    ],
)
def test_a_part_that_is_damaged_is_said_and_made_again(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    plan = Plan.of(load("sigma"), parse_axes({"l2.latency": "100ms,200ms"}), SHORT, ["signalling.bytes"])
    [row] = made_of(run_batch(shared(load("sigma").text, extra=plan.extra), [(SHORT, 1)], nothing)).rows
    folder = tmp_path / "r[1].parts"
    before = Parts(folder, plan, {}, "hash")
    for number in range(3):
        before.add([(0, number)], [row])
    [file] = folder.glob("part-000001-*.parquet")
    file.write_bytes(damage(file.read_bytes()))
    told: list[str] = []
    after = Parts(folder, plan, {}, "hash")
    assert list(after.read(told.append)) == [(0, 0), (0, 2)]
    assert told == [f"{file}: is damaged, and its runs are made again"]
    # nothing that is there is replaced, and it is said once
    after.add([(0, 1)], [row])
    after.add([(1, 1)], [row])
    again = Parts(folder, plan, {}, "hash").read(told.append)
    assert (set(again), len(told)) == ({(0, 0), (0, 1), (0, 2), (1, 1)}, 1)


def made_of(outcome: Outcome) -> Made:
    assert isinstance(outcome, Made), outcome
    return outcome


def test_parts_of_which_nobody_can_say_what_they_are_of_are_refused(tmp_path: Path) -> None:
    plan = Plan.of(load("sigma"), parse_axes({"l2.latency": "100ms"}), SHORT)
    (tmp_path / OF).write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match="parts of another sweep"):
        Parts(tmp_path, plan, {}, "hash")


def ray_of_this_process() -> SimpleNamespace:
    """What stands in for Ray where it is not installed: batches are made as they are asked for."""
    remote = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda *asked: lambda: run_on_worker(*asked)))
    return SimpleNamespace(
        is_initialized=lambda: True,
        put=lambda value: value,
        get=lambda value: value() if callable(value) else value,
        wait=lambda under_way, **_: (under_way[:1], under_way[1:]),
        cluster_resources=lambda: {"CPU": 2},
        remote=lambda **_: lambda _function: remote,
        get_runtime_context=lambda: SimpleNamespace(get_node_id=lambda: "node"),
        util=SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1"),
        exceptions=SimpleNamespace(RayTaskError=OSError, RuntimeEnvSetupError=OSError, RayError=OSError),
    )


def test_what_runs_warn_of_on_a_cluster_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", ray_of_this_process())
    asked = ("call", {"scheme": "sigma,none", "l2.latency": "100ms,200ms"}, {"duration": "20 s"})
    here: list[str] = []
    there: list[str] = []
    own = segue.sweep(*asked, seeds=2, tell=here.append)
    of_cluster = segue.sweep(*asked, seeds=2, on="ray", parts=tmp_path / "r.parts", tell=there.append)
    assert of_cluster.frame.equals(own.frame)
    assert [text for text in here if "has no effect" in text] == here != []
    assert there == here


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def descendants(pid: int) -> Iterator[int]:
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield int(child)
        with contextlib.suppress(FileNotFoundError):
            yield from descendants(int(child))


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return ""


ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "300",
    "RAY_agent_register_timeout_ms": "300000",
    # not behind everything else that a machine does
    "RAY_worker_niceness": "0",
}  # fmt: skip


class Machines:
    """A cluster of this machine alone: its nodes are processes of ours."""

    def __init__(self) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        # short, for the names of sockets, and not where a user's cluster says that it is
        self._folder = tempfile.mkdtemp(prefix="ray-")
        self._nodes: list[subprocess.Popen[str]] = []

    def add(self, *options: str, **environment: str) -> int:
        """Another node; its process."""
        ports = ("--metrics-export-port", "--dashboard-agent-grpc-port", "--dashboard-agent-listen-port",
                 "--runtime-env-agent-port")  # fmt: skip
        # with ports given, nothing waits for agents that are slow to begin
        given = [word for port in ports for word in (port, str(free_port()))]
        head = ["--head", "--port", self.address.partition(":")[2], "--temp-dir", self._folder,
                "--include-dashboard=false", "--ray-client-server-port", str(free_port())]  # fmt: skip
        where = ["--address", self.address] if self._nodes else head
        ray = str(Path(sys.executable).with_name("ray"))
        node = subprocess.Popen(
            [ray, "start", *where, "--node-ip-address", "127.0.0.1", "--block", "--object-store-memory", "80000000",
             *given, *options],
            env={**os.environ, **ENVIRONMENT, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip
        self._nodes.append(node)
        assert node.stdout is not None
        said = []
        for line in node.stdout:
            said.append(line)
            if "--block" in line or "Ray runtime started" in line:
                break
        else:
            pytest.fail("".join(said))
        return node.pid

    def workers_at_work(self) -> list[int]:
        """Processes of ours that have a batch."""
        return [pid for node in self._nodes for pid in descendants(node.pid) if name_of(pid).startswith("ray::run_on")]

    def end(self) -> None:
        for node in reversed(self._nodes):
            own = [node.pid, *descendants(node.pid)]
            for pid in own:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            node.wait()
            assert node.stdout is not None
            node.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'segue[ray]'")
    cluster = Machines()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setenv("RAY_ADDRESS", cluster.address)
        try:
            cluster.add("--num-cpus", "2")
            yield cluster
        finally:
            cluster.end()


GRID = {"l2.latency": "100ms..300ms/2ms", "mobile.speed": "5 m/s, 10 m/s"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_rows_of_a_cluster_are_those_of_this_machine(machines: Machines, tmp_path: Path) -> None:
    del machines
    told: list[str] = []
    here = segue.sweep("sigma", GRID, SHORT, seeds=2)
    there = segue.sweep("sigma", GRID, SHORT, seeds=2, on="ray", tell=told.append)
    assert told == []
    paths = [sweep.write(tmp_path / name) for sweep, name in ((here, "a.parquet"), (there, "b.parquet"))]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with pytest.raises(ScenarioError, match="did you mean `signalling`"):
        segue.sweep("sigma", GRID, SHORT, seeds=1, metrics=["signaling.bytes"], on="ray")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_a_lost_worker_had_is_made_again(machines: Machines, tmp_path: Path) -> None:
    """A worker is killed in the middle, and the sweep is stopped in the middle and taken up again from its parts."""
    longer = {"duration": "40 s"}
    here = segue.sweep("sigma", GRID, longer, seeds=4)
    told: list[str] = []
    parts = tmp_path / "r.parts"
    killed: list[int] = []

    def kill_one(_what: str, done: int, total: int) -> None:
        if not killed and total / 4 < done < total / 2:
            killed.extend(machines.workers_at_work()[:1])
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    cut = segue.sweep("sigma", GRID, longer, seeds=4, on="ray", parts=parts, budget=1.0, tell=told.append)
    assert cut.missing > 0
    there = segue.sweep("sigma", GRID, longer, seeds=4, on="ray", parts=parts, progress=kill_one, tell=told.append)
    assert killed
    assert [text for text in told if "a worker was lost" in text]
    assert there.frame.equals(here.frame)
    assert pl.read_parquet(parts / "part-*.parquet").height == here.frame.height


@pytest.mark.slow
def test_the_command_of_the_document_runs(machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del machines
    text = (Path(__file__).resolve().parents[2] / "docs" / "sweep-on-ray.md").read_text()
    [command] = re.findall(r"^segue sweep .*--out results\.parquet --on ray$", text.partition("## ")[0], re.MULTILINE)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    ran = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
    )
    assert ran.returncode == 0, ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["results.parquet"]
    assert pl.read_parquet(tmp_path / "results.parquet").height == 15


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_machine_with_another_program_is_refused_by_name(machines: Machines, tmp_path: Path) -> None:
    # what stands in for an older installation
    (tmp_path / "sitecustomize.py").write_text("import segue\nsegue.__version__ = '0.0.1'\n")
    machines.add("--num-cpus", "2", PYTHONPATH=str(tmp_path))
    told: list[str] = []
    deadline = time.monotonic() + 120
    while not told and time.monotonic() < deadline:
        there = segue.sweep("sigma", GRID, SHORT, seeds=2, on="ray", tell=told.append)
    assert len(told) == 1
    assert told[0].startswith(f"worker {socket.gethostname()} (")
    assert told[0].endswith(f"is refused: has Segue 0.0.1, expected {__version__}")
    assert there.frame.equals(segue.sweep("sigma", GRID, SHORT, seeds=2).frame)


def test_without_a_cluster_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ScenarioError, match="needs Ray: pip install"):
        segue.sweep("sigma", GRID, SHORT, on="ray")
    with pytest.raises(ScenarioError, match="expected ray, or ray://"):
        segue.sweep("sigma", GRID, SHORT, on="dask")


def test_an_address_that_a_cluster_has_left_behind_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def init(address: str, **_: object) -> None:
        asked.append(address)
        raise ConnectionError("nobody is there" if address == "auto" else "stop here")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init, is_initialized=lambda: False))
    with pytest.raises(RunError, match="Ray cannot be started here: stop here"):
        segue.sweep("sigma", GRID, SHORT, on="ray")
    assert asked == ["auto", "local"]

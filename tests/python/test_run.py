from __future__ import annotations

import importlib
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import segue
from segue import _native
from segue.runner import Runner
from segue.running import job, keep_of_jobs
from segue.scenarios import load

SHORT = {"duration": "20 s"}


@pytest.fixture(scope="module")
def run() -> segue.Run:
    return segue.run("sigma", SHORT, seed=3)


def test_metrics_and_frames_agree(run: segue.Run) -> None:
    assert run.metrics.seed == 3
    assert run.metrics.duration_s == 20
    assert run.handovers.height == len(run.metrics.handovers)
    sent = run.packets.filter((pl.col("action") == "sent") & (pl.col("kind") == "DATA") & (pl.col("node") == "cn"))
    assert sent["packet_id"].n_unique() == run.metrics.packets_sent > 100
    assert int(sent["retransmission"].sum()) == run.metrics.packets_retransmitted
    assert run.positions["x_m"].min() == 0
    assert run.cells["radius_m"].to_list() == [40.0, 40.0]
    assert set(run.signalling["step"].unique()) >= {1, 2, 3}


def test_numbers_are_not_copied_on_their_way_to_polars(run: segue.Run) -> None:
    # Two frames made from the same table see the same memory, which is the simulator's.
    native = run._native.table("packets")
    assert native is not None
    first, second = pl.DataFrame(native), pl.DataFrame(native)
    for column in ("time_ns", "packet_id", "length_bytes"):
        addresses = {_address(frame[column]) for frame in (first, second)}
        addresses.add(_arrow_address(native, column))
        assert len(addresses) == 1, column


def test_frames_outlive_their_run() -> None:
    frame = segue.run("sigma", {"duration": "5 s"}).positions
    assert frame["time_ns"][0] == 0
    assert frame.height > 1


def test_without_a_trace_frames_say_so() -> None:
    run = segue.run("sigma", {"duration": "1 s"}, trace=False)
    assert run.table_names == []
    with pytest.raises(ValueError, match="trace=False"):
        _ = run.packets


def test_same_seed_same_hash_another_seed_another() -> None:
    hashes = [segue.run("sigma", SHORT, seed=seed, trace=False).metrics.event_log_hash for seed in (1, 1, 2)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_recording_changes_nothing(run: segue.Run) -> None:
    bare = segue.run("sigma", SHORT, seed=3, trace=False)
    captured = segue.run("sigma", SHORT, seed=3, trace=True, pcap=True)
    assert bare.metrics_json == run.metrics_json == captured.metrics_json
    assert all(content[:4] == b"\x0a\x0d\x0d\x0a" for _, content in captured.captures())
    assert captured.captures()


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"mobile.sped": "5 m/s"}, ["mobile", "sped", "speed"]),
        ({"mobile.speed": "5"}, ["mobile.speed"]),
        ({"l2.latency": "-3 ms"}, ["l2.latency"]),
    ],
)
def test_wrong_override_is_one_line_that_names_the_key(overrides: dict[str, str], words: list[str]) -> None:
    with pytest.raises(segue.ScenarioError) as caught:
        segue.run("sigma", overrides)
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in message
    assert all(word in message for word in words), message


def test_error_in_any_job_is_found_before_a_run_begins() -> None:
    scenario = load("sigma")
    told: list[tuple[int, int]] = []
    jobs = [job(scenario, {"duration": "500 s"}), job(scenario, {"duration": "soon"})]
    with pytest.raises(segue.ScenarioError, match="duration"):
        Runner(threads=1).runs(jobs, progress=lambda done, total: told.append((done, total)))
    assert told == []


def test_progress_runs_from_none_to_all() -> None:
    told: list[tuple[int, int]] = []
    jobs = [job(load("sigma"), {"duration": "1 s"}, seed=seed) for seed in range(4)]
    Runner(threads=2).runs(jobs, progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 4)
    assert told[-1] == (4, 4)
    assert told == sorted(told)


def test_what_progress_raises_ends_the_runs() -> None:
    def stop(done: int, _total: int) -> None:
        if done:
            raise LookupError("enough")

    jobs = [job(load("sigma"), {"duration": "2000 s"}, seed=seed) for seed in range(50)]
    jobs.insert(0, job(load("sigma"), {"duration": "1 s"}))
    started = time.monotonic()
    with pytest.raises(LookupError, match="enough"):
        Runner(threads=2).runs(jobs, progress=stop)
    assert time.monotonic() - started < 10


def test_what_is_kept_is_in_the_order_of_jobs_and_runs_are_let_go() -> None:
    seen: list[weakref.ref[segue.Run]] = []
    still_there: list[int] = []

    def seed_of(run: segue.Run) -> int:
        still_there.append(sum(one() is not None for one in seen))
        seen.append(weakref.ref(run))
        return run.metrics.seed

    # the first takes longest
    lasts = ["40 s", *["1 s"] * 7]
    jobs = [job(load("sigma"), {"duration": last}, seed=seed) for seed, last in enumerate(lasts)]
    assert keep_of_jobs(jobs, seed_of, threads=2) == list(range(8))
    assert still_there == [0] * 8


def test_what_keeping_raises_ends_the_runs() -> None:
    def stop(_run: segue.Run) -> None:
        raise LookupError("of no use")

    jobs = [job(load("sigma"), {"duration": "2000 s"}, seed=seed) for seed in range(50)]
    jobs.insert(0, job(load("sigma"), {"duration": "1 s"}))
    started = time.monotonic()
    with pytest.raises(LookupError, match="of no use"):
        keep_of_jobs(jobs, stop, threads=2)
    assert time.monotonic() - started < 10


def test_ctrl_c_interrupts_a_run() -> None:
    code = "import segue; print('go', flush=True); segue.run('sigma', {'duration': '1000000 s'}, trace=False)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "go\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    assert process.returncode != 0


def test_no_jobs_no_runs() -> None:
    assert _native.run_many([], 4) == []


def test_scenario_may_be_text_file_or_name(tmp_path: Path) -> None:
    text = load("sigma").text
    path = tmp_path / "mine.toml"
    path.write_text(text)
    runs = [segue.run(source, {"duration": "2 s"}, trace=False) for source in (text, path, str(path), "papers/sigma")]
    assert len({run.metrics_json for run in runs}) == 1


def _address(series: pl.Series) -> int:
    return series.to_numpy(allow_copy=False).ctypes.data


def _arrow_address(table: object, column: str) -> int:
    chunk = pa.table(table)[column].chunk(0)
    return int(chunk.buffers()[1].address)


def test_the_function_run_shadows_no_module() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("segue.run")
    assert callable(segue.run)


def test_a_correspondent_that_speaks_ipv6_alone_is_spoken_to_without_a_nonce() -> None:
    text = load("papers/ilnp").text.replace('name = "cn"\n', 'name = "cn"\nplain = true\n', 1)
    upward = {"scheme": "ilnp-soft", "application.0.from": "mn", "application.0.to": "cn", "duration": "17 s"}
    run = segue.run(text, upward)
    assert [flow.sender for flow in run.metrics.flows] == ["mn"]
    assert run.metrics.flows[0].transferred_bytes > 1_000_000
    told = run.packets.filter((pl.col("kind") == "PARAMETER-PROBLEM") & (pl.col("action") == "received"))
    assert set(told["node"]) == {"mn"}
    moving = text.replace("radios = 2", "radios = 2\nplain = true", 1)
    with pytest.raises(segue.ScenarioError, match=r"host\[1\].plain: `mn` moves: expected a host that stays"):
        segue.run(moving, upward)


def test_folders_may_be_named_by_text(tmp_path: Path) -> None:
    made = segue.run("sigma", {"duration": "3 s"}, trace=str(tmp_path / "frames"), pcap=str(tmp_path / "captures"))
    assert made.packets.height > 0
    assert (tmp_path / "frames" / "packets.parquet").is_file()
    assert [name for name, _ in made.captures()] == sorted(path.name for path in (tmp_path / "captures").iterdir())
    with pytest.raises(segue.ScenarioError, match="trace: expected the name of a folder"):
        segue.run("sigma", {"duration": "3 s"}, trace="")
    with pytest.raises(segue.ScenarioError, match="pcap: expected the name of a folder"):
        segue.run("sigma", {"duration": "3 s"}, pcap="")

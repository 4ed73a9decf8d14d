"""Results that are kept, and found again."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import segue
from segue import _native
from segue.cli import commands
from segue.papers.sigma import experiment as sigma
from segue.runner import Runner
from segue.running import job
from segue.scenarios import load
from segue.store import Counts, Store, default_folder

SHORT = {"duration": "20 s"}
FRAMES = ("packets", "windows", "signalling", "positions", "cells")


def jobs(count: int, *, trace: bool = False) -> list[_native.Job]:
    return [job(load("sigma"), SHORT, seed=seed, trace=trace) for seed in range(count)]


def hashes(runner: Runner, asked: list[_native.Job]) -> list[str]:
    return runner.keep(asked, lambda run: run.metrics.event_log_hash)


def counts(*, made: int = 0, found: int = 0, same: int = 0) -> Counts:
    return Counts(made, found, same)


@pytest.mark.parametrize("trace", [False, True])
def test_what_is_found_is_what_was_made(tmp_path: Path, trace: bool) -> None:
    scenario = load("sigma")
    conditioned = _native.Job(
        scenario.text, scenario.file, [("duration", "20 s")], 3, trace, None, None, ["loss < 5 %"]
    )
    plain = Runner().runs([conditioned])[0]
    first = Runner(store=Store(tmp_path))
    made = first.runs([conditioned])[0]
    second = Runner(store=Store(tmp_path))
    found = second.runs([conditioned])[0]
    assert (first.counts, second.counts) == (counts(made=1), counts(found=1))
    for run in (made, found):
        assert run.metrics_json == plain.metrics_json
        assert run.scenario_toml == plain.scenario_toml
        assert run.verdicts == plain.verdicts != []
        assert run.junit == plain.junit
        assert run.table_names == plain.table_names
        assert run.capture_names == []
        if trace:
            assert all(getattr(run, name).equals(getattr(plain, name)) for name in FRAMES)
        else:
            with pytest.raises(ValueError, match="trace=False"):
                _ = run.packets


def test_a_point_is_itself_however_it_is_written() -> None:
    scenario = load("sigma")
    point = job(scenario, {"duration": "20 s", "l2.latency": "200 ms"}, seed=1).identity()
    assert job(scenario, {"l2.latency": "0.2 s", "duration": "20000 ms"}, seed=1).identity() == point
    others = [
        job(scenario, {"duration": "20 s", "l2.latency": "201 ms"}, seed=1),
        job(scenario, {"duration": "20 s", "l2.latency": "200 ms"}, seed=2),
        job(scenario, {"duration": "20 s", "l2.latency": "200 ms"}, seed=1, trace=True),
        _native.Job(
            scenario.text,
            scenario.file,
            [("duration", "20 s"), ("l2.latency", "200 ms")],
            1,
            False,
            None,
            None,
            ["loss < 5 %"],
        ),
    ]
    assert len({point, *(one.identity() for one in others)}) == 5
    unseeded = job(scenario, SHORT)
    assert unseeded.identity() == job(scenario, SHORT, seed=segue.run("sigma", SHORT).metrics.seed).identity()


def test_files_that_a_scenario_names_are_part_of_it(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.toml"
    scenario.write_text(load("sigma").text)
    way = tmp_path / "way.csv"
    trace = {"link.0.trace": '{ file = "way.csv", format = "csv" }'}
    seen = set()
    for rate in (2_000_000, 1_000_000, 2_000_000):
        way.write_text(f"time_s,rate_bps\n0,{rate}\n")
        seen.add(job(load(scenario), SHORT | trace).identity())
    assert len(seen) == 2


def test_what_is_asked_twice_is_made_once(tmp_path: Path) -> None:
    asked = [*jobs(3), *jobs(2)]
    runner = Runner(store=Store(tmp_path), threads=2)
    told: list[tuple[int, int]] = []
    kept = runner.keep(asked, lambda run: run.metrics.event_log_hash, progress=lambda *one: told.append(one))
    assert runner.counts == counts(made=3, same=2)
    assert kept == hashes(Runner(), asked)
    assert (told[0], told[-1]) == ((0, 3), (3, 3))
    assert hashes(runner, jobs(4)) == hashes(Runner(), jobs(4))
    assert runner.counts == counts(made=4, found=3, same=2)


def test_fresh_makes_each_anew_and_once(tmp_path: Path) -> None:
    hashes(Runner(store=Store(tmp_path)), jobs(2))
    runner = Runner(store=Store(tmp_path), fresh=True)
    hashes(runner, jobs(2))
    hashes(runner, jobs(3))
    assert runner.counts == counts(made=3, found=2)


def test_frames_that_somebody_has_removed_are_made_again(tmp_path: Path) -> None:
    Runner(store=Store(tmp_path)).runs(jobs(2, trace=True))
    next((tmp_path / "frames").glob("*/packets.parquet")).unlink()
    runner = Runner(store=Store(tmp_path))
    made = runner.runs(jobs(2, trace=True))
    assert runner.counts == counts(made=1, found=1)
    assert [run.packets.height for run in made] == [run.packets.height for run in Runner().runs(jobs(2, trace=True))]


def test_what_was_not_used_for_longest_goes(tmp_path: Path) -> None:
    old = Store(tmp_path)
    for one in jobs(4, trace=True):
        Runner(store=old).runs([one])
    sizes = [size for (size,) in old._runs.execute("SELECT bytes FROM run")]
    limited = Store(tmp_path, limit_bytes=round(3.5 * max(sizes)))
    # the first has been used last
    Runner(store=limited).runs(jobs(1, trace=True))
    assert len(limited) == len(list((tmp_path / "frames").iterdir())) == 3
    runner = Runner(store=limited)
    runner.runs(jobs(1, trace=True))
    assert runner.counts == counts(found=1)
    # more than the limit, but in use
    kept = Runner(store=limited).runs(jobs(6, trace=True))
    assert len(limited) == 6
    assert all(run.packets.height for run in kept)


def test_a_store_that_was_killed_has_all_that_was_finished(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_store import jobs
from segue.runner import Runner
from segue.store import Store
runner = Runner(store=Store(Path({str(tmp_path)!r})), threads=2)
runner.keep(jobs(400, trace=True), lambda run: None, progress=lambda done, total: print(done, flush=True))
"""
    reported = 0
    for rounds in range(1, 4):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            reported = max(reported, int(line))
            if reported >= 12 * rounds:
                break
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert list(tmp_path.glob("making-*"))
    store = Store(tmp_path)
    there = len(store)
    assert 36 <= reported <= there < 400
    assert len(list(tmp_path.glob("making-*"))) == 1
    runner = Runner(store=store)
    runs = runner.runs(jobs(there, trace=True))
    assert runner.counts.found >= reported
    assert [run.metrics.event_log_hash for run in runs[:8]] == hashes(Runner(), jobs(8))
    assert all(run.packets.height for run in runs)
    store.close()
    assert not list(tmp_path.glob("making-*"))


def test_two_at_a_time_share_a_store(tmp_path: Path) -> None:
    one, other = Store(tmp_path), Store(tmp_path)
    assert len(list(tmp_path.glob("making-*"))) == 2
    hashes(Runner(store=one), jobs(2))
    runner = Runner(store=other)
    hashes(runner, jobs(3))
    assert runner.counts == counts(made=1, found=2)


def test_what_is_no_store_of_ours_is_refused_and_nothing_of_it_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite3"
    path.write_text("somebody else's")
    with pytest.raises(OSError, match=r"runs\.sqlite3: .*not a database"):
        Store(tmp_path)
    assert path.read_text() == "somebody else's"
    path.unlink()
    with sqlite3.connect(path) as later:
        later.execute("PRAGMA user_version = 7")
    with pytest.raises(OSError, match="version 7 of the store: expected 1"):
        Store(tmp_path)


def test_a_store_that_cannot_be_is_said_and_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SEGUE_STORE", str(tmp_path / "file" / "store"))
    assert commands._store() is None
    assert "segue: no results are kept: " in capsys.readouterr().err
    monkeypatch.setenv("SEGUE_STORE", "")
    assert commands._store() is None
    assert capsys.readouterr().err == ""


def test_the_store_is_in_the_cache_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SEGUE_STORE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "segue"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_folder() == Path.home() / ".cache" / "segue"


def test_what_came_about_how_is_said() -> None:
    assert commands._told(counts(made=7)) == "7 simulations"
    told = commands._told(counts(made=4, found=3, same=2))
    assert told == (
        "9 simulations: 4 made, 3 found, made before by this program (--fresh makes them anew), 2 the same as another"
    )


def test_a_reproduction_is_the_same_from_the_store(tmp_path: Path) -> None:
    from segue.papers.sigma import location

    made, found = (Runner(store=Store(tmp_path)) for _ in range(2))
    first, second = (location.measure(quick=True, runner=one) for one in (made, found))
    assert first == second == location.measure(quick=True, runner=Runner())
    assert made.counts.made > 10
    assert found.counts == counts(found=made.counts.made + made.counts.found, same=made.counts.same)


def test_frames_of_a_grid_come_from_the_store_unchanged(tmp_path: Path) -> None:
    from segue.grid import run_grids

    grid = sigma.grids(quick=True)[0]
    small = type(grid)(grid.name, [type(a)(a.key, a.column, a.values[:2], a.unit) for a in grid.axes], SHORT)
    frames = [run_grids([small], load("sigma"), [1], runner=Runner(store=Store(tmp_path)))[grid.name] for _ in range(2)]
    assert isinstance(frames[0], pl.DataFrame)
    assert frames[0].equals(frames[1])
    shutil.rmtree(tmp_path)

"""Results that are kept, and found again."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import segue
from segue import _native
from segue import store as store_module
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
    assert runner.counts == counts(made=4, same=5)


@pytest.mark.parametrize("trace", [False, True])
def test_fresh_makes_each_anew_and_once(tmp_path: Path, trace: bool) -> None:
    before = Runner(store=Store(tmp_path)).runs(jobs(3, trace=trace))
    runner = Runner(store=Store(tmp_path), fresh=True)
    for asked in (2, 3):
        runner.runs(jobs(asked, trace=trace))
    assert runner.counts == counts(made=3, same=2)
    # what was replaced is still to be read
    assert all(run.packets.height for run in before if trace)
    assert len(list((tmp_path / "frames").iterdir())) == 3 * trace


def test_files_that_change_in_between_do_not_change_what_is_run(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(load("sigma").text)
    trace = {"link.0.trace": '{ file = "way.csv", format = "csv" }'}

    def asked(rate: int) -> _native.Job:
        (tmp_path / "way.csv").write_text(f"time_s,rate_bps\n0,{rate}\n")
        return job(load(tmp_path / "mine.toml"), SHORT | trace)

    slow = hashes(Runner(), [asked(1_000_000)])
    one = asked(1_000_000)
    identity = one.identity()
    asked(2_000_000)
    assert hashes(Runner(store=Store(tmp_path)), [one]) == slow
    assert one.identity() == identity


@pytest.mark.parametrize("spoil", ["remove", "cut"])
def test_frames_that_are_not_whole_are_made_again(tmp_path: Path, spoil: str) -> None:
    Runner(store=Store(tmp_path)).runs(jobs(2, trace=True))
    file = next((tmp_path / "frames").glob("*/packets.parquet"))
    content = file.read_bytes()
    file.unlink()
    if spoil == "cut":
        file.write_bytes(content[: len(content) // 2])
    runner = Runner(store=Store(tmp_path))
    made = runner.runs(jobs(2, trace=True))
    assert runner.counts == counts(made=1, found=1)
    assert [run.packets.height for run in made] == [run.packets.height for run in Runner().runs(jobs(2, trace=True))]


@pytest.mark.parametrize(
    ("column", "content"),
    [
        ("metrics", b"garbage"),
        ("metrics", zlib.compress(b"{}")),
        ("metrics", zlib.compress(b"[1]")),
        ("metrics", "words"),
        ("scenario", zlib.compress(b"\xff")),
        ("verdicts", "[1]"),
        ("verdicts", "{"),
        ("made_at", "yesterday"),
    ],
)
def test_a_damaged_result_is_said_once_and_made_anew(tmp_path: Path, column: str, content: bytes | str) -> None:
    expected = hashes(Runner(store=Store(tmp_path)), jobs(2))
    with contextlib.closing(sqlite3.connect(tmp_path / "runs.sqlite3", isolation_level=None)) as runs:
        runs.execute(f"UPDATE run SET {column} = ?", (content,))
        # as long as it was, as far as anybody could tell
        runs.execute("UPDATE run SET bytes = length(metrics) + length(scenario)")
    told: list[str] = []
    runner = Runner(store=Store(tmp_path, tell=told.append))
    assert hashes(runner, jobs(2)) == expected
    assert (runner.counts, len(told)) == (counts(made=2), 1)
    assert "damaged" in told[0]
    runner = Runner(store=Store(tmp_path, tell=told.append))
    assert hashes(runner, jobs(2)) == expected
    assert (runner.counts, len(told)) == (counts(found=2), 1)


@pytest.mark.parametrize("fresh", [False, True])
def test_a_damaged_row_has_nothing_removed_outside_of_the_store(tmp_path: Path, fresh: bool) -> None:
    folder = tmp_path / "store"
    Runner(store=Store(folder)).runs(jobs(1, trace=True))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis").write_text("precious")
    for name in ("../../own", str(tmp_path / "own"), ".", ".."):
        with contextlib.closing(sqlite3.connect(folder / "runs.sqlite3", isolation_level=None)) as runs:
            runs.execute("UPDATE run SET folder = ?", (name,))
        told: list[str] = []
        Runner(store=Store(folder, tell=told.append), fresh=fresh).runs(jobs(1, trace=True))
        assert (len(told), (folder / "frames").is_dir()) == (0 if fresh else 1, True)
    with contextlib.closing(sqlite3.connect(folder / "runs.sqlite3", isolation_level=None)) as runs:
        runs.execute("UPDATE run SET folder = '../../own'")
    Store(folder, limit_bytes=0)
    assert (tmp_path / "own" / "thesis").read_text() == "precious"


def test_what_was_not_used_for_longest_goes(tmp_path: Path) -> None:
    old = Store(tmp_path)
    for one in jobs(4, trace=True):
        Runner(store=old).runs([one])
    sizes = [size for (size,) in old._runs.execute("SELECT bytes FROM run")]
    # the first is used last
    held = Runner(store=Store(tmp_path)).runs(jobs(1, trace=True))
    limited = Store(tmp_path, limit_bytes=round(3.5 * max(sizes)))
    assert len(limited) == len(list((tmp_path / "frames").iterdir())) == 3
    runner = Runner(store=limited)
    runner.runs(jobs(2, trace=True))
    assert runner.counts == counts(made=1, found=1)
    # more than the limit, but in use
    kept = Runner(store=limited).runs(jobs(6, trace=True))
    assert len(limited) == 6
    none = Store(tmp_path, limit_bytes=0)
    assert len(none) == len(list((tmp_path / "frames").iterdir())) == 0
    assert all(run.packets.height for run in [*held, *kept])


def test_what_has_ended_before_an_error_is_kept(tmp_path: Path) -> None:
    def stop(run: segue.Run) -> None:
        if run.metrics.seed == 2:
            raise LookupError("enough")

    runner = Runner(store=Store(tmp_path), threads=1)
    with pytest.raises(LookupError, match="enough"):
        runner.keep(jobs(5), stop)
    assert len(Store(tmp_path)) == 3


def in_processes(code: str, count: int) -> list[subprocess.Popen[str]]:
    head = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_store import jobs
from segue.runner import Runner
from segue.store import Store
"""
    command = [sys.executable, "-c", head + code]
    return [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]


def sessions(store: Path) -> list[Path]:
    return list(store.glob("session-*.lock"))


def test_a_store_that_was_killed_has_all_that_was_finished(tmp_path: Path) -> None:
    code = f"""
runner = Runner(store=Store(Path({str(tmp_path)!r})), threads=2)
runner.keep(jobs(400, trace=True), lambda run: None, progress=lambda done, total: print(done, flush=True))
"""
    reported = 0
    for rounds in range(1, 4):
        (process,) = in_processes(code, 1)
        assert process.stdout is not None
        for line in process.stdout:
            reported = max(reported, int(line))
            if reported >= 12 * rounds:
                break
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert len(sessions(tmp_path)) == 1
    store = Store(tmp_path)
    there = len(store)
    assert 36 <= reported <= there < 400
    assert len(sessions(tmp_path)) == 1
    runner = Runner(store=store)
    runs = runner.runs(jobs(there, trace=True))
    # two threads: one may have ended before the one of a smaller seed
    assert runner.counts.found >= there - 2
    assert [run.metrics.event_log_hash for run in runs[:8]] == hashes(Runner(), jobs(8))
    assert all(run.packets.height for run in runs)
    store.close()
    assert not sessions(tmp_path)


def test_several_processes_make_the_same_at_a_time(tmp_path: Path) -> None:
    code = f"""
runner = Runner(store=Store(Path({str(tmp_path)!r})), threads=1, fresh=True)
runs = [run for _ in range(3) for run in runner.runs(jobs(10, trace=True))]
print(sum(run.packets.height for run in runs))
"""
    processes = in_processes(code, 3)
    outputs = {process.communicate(timeout=100)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(outputs) == 1
    assert not sessions(tmp_path)
    runner = Runner(store=Store(tmp_path))
    assert all(run.packets.height for run in runner.runs(jobs(10, trace=True)))
    assert runner.counts == counts(found=10)
    # one that two have replaced at a time may be left over, for an hour
    assert 10 <= len(list((tmp_path / "frames").iterdir())) < 30


def test_two_stores_share_a_folder(tmp_path: Path) -> None:
    one, other = Store(tmp_path), Store(tmp_path)
    assert len(sessions(tmp_path)) == 2
    hashes(Runner(store=one), jobs(2))
    runner = Runner(store=other)
    hashes(runner, jobs(3))
    assert runner.counts == counts(made=1, same=2)


def test_a_store_that_fails_is_told_once_and_done_without(tmp_path: Path) -> None:
    told: list[str] = []
    store = Store(tmp_path, tell=told.append)
    with contextlib.closing(sqlite3.connect(tmp_path / "runs.sqlite3")) as somebody:
        somebody.execute("DROP TABLE run")
    runner = Runner(store=store)
    for trace in (False, True):
        runs = runner.runs(jobs(2, trace=trace))
        assert [run.metrics.event_log_hash for run in runs] == hashes(Runner(), jobs(2))
    assert all(run.packets.height for run in runs)
    assert len(told) == 1
    assert "results are not kept: no such table: run" in told[0]


def test_a_store_that_another_process_has_is_waited_for_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(tmp_path).close()
    other = sqlite3.connect(tmp_path / "runs.sqlite3", isolation_level=None, check_same_thread=False)
    monkeypatch.setattr(store_module, "SILENCE_S", 0.1)
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        other.execute("ROLLBACK")

    other.execute("BEGIN IMMEDIATE")
    store = Store(tmp_path, tell=tell)
    assert told == [f"{tmp_path}: another process has it, which is waited for (10 s at most)"]
    assert hashes(Runner(threads=1, store=store), jobs(1))
    assert (len(store), len(told)) == (1, 1)


def test_tables_stay_in_memory_where_there_is_no_place_for_them(tmp_path: Path) -> None:
    told: list[str] = []
    runner = Runner(store=Store(tmp_path, tell=told.append))
    (session,) = sessions(tmp_path)
    session.with_suffix("").rmdir()
    runs = runner.runs(jobs(2, trace=True))
    assert all(run.packets.height for run in runs)
    assert len(told) == 1
    # nor are they taken for runs without tables
    again = Runner(store=Store(tmp_path))
    assert again.runs(jobs(2, trace=True))[0].packets.equals(runs[0].packets)
    assert again.counts == counts(made=2)


def test_jobs_that_write_files_are_refused(tmp_path: Path) -> None:
    scenario = load("sigma")
    for folders in ((tmp_path / "tables", None), (None, tmp_path / "captures")):
        one = _native.Job(scenario.text, scenario.file, [], 1, False, *folders)
        with pytest.raises(ValueError, match="expected one without"):
            Runner(store=Store(tmp_path)).runs([one])


def test_what_is_no_store_of_ours_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite3"
    path.write_text("somebody else's")
    with pytest.raises(OSError, match=r"runs\.sqlite3: .*not a database"):
        Store(tmp_path)
    assert path.read_text() == "somebody else's"
    path.unlink()
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE run (of TEXT)")
    content = path.read_bytes()
    with pytest.raises(OSError, match="expected a store of results, or nothing"):
        Store(tmp_path)
    assert path.read_bytes() == content
    path.unlink()
    Store(tmp_path).close()
    with contextlib.closing(sqlite3.connect(path)) as later:
        later.execute("PRAGMA user_version = 7")
    with pytest.raises(OSError, match="version 7 of the store: expected 1"):
        Store(tmp_path)
    assert not sessions(tmp_path)


def test_a_damaged_store_is_said_though_what_is_said_of_it_is_no_text(tmp_path: Path) -> None:
    Store(tmp_path).close()
    path = tmp_path / "runs.sqlite3"
    content = bytearray(path.read_bytes())
    content[content.index(b"CREATE TABLE run") + 17] = 0xFF
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"runs\.sqlite3: "):
        Store(tmp_path)


def test_a_store_that_cannot_be_is_said_and_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SEGUE_STORE", str(tmp_path / "file" / "store"))
    assert commands.open_store() is None
    assert "segue: no results are kept: " in capsys.readouterr().err
    monkeypatch.setenv("SEGUE_STORE", "")
    assert commands.open_store() is None
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("SEGUE_STORE", str(tmp_path))
    monkeypatch.setattr(store_module, "LEAST_FREE_BYTES", 1 << 62)
    assert commands.open_store() is None
    assert "of room on its disk" in capsys.readouterr().err


def test_the_store_is_in_the_cache_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SEGUE_STORE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "segue"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_folder() == Path.home() / ".cache" / "segue"


def test_what_came_about_how_is_said(tmp_path: Path) -> None:
    assert commands.told_counts(counts(made=7), None) == "7 simulations"
    told = commands.told_counts(counts(made=4, found=3, same=2), Store(tmp_path))
    assert told == f"9 simulations, 3 of them found in {tmp_path} (--fresh makes them anew), 2 the same as others"


def test_a_reproduction_is_the_same_from_the_store(tmp_path: Path) -> None:
    from segue.papers.sigma import location

    made = Runner(store=Store(tmp_path))
    first = location.measure(quick=True, runner=made)
    found = Runner(store=Store(tmp_path))
    second = location.measure(quick=True, runner=found)
    assert first == second == location.measure(quick=True, runner=Runner())
    assert made.counts.made > 10
    assert found.counts == counts(found=made.counts.asked)


def test_frames_of_a_grid_come_from_the_store_unchanged(tmp_path: Path) -> None:
    from segue.papers.grid import run_grids

    grid = sigma.grids(quick=True)[0]
    small = type(grid)(grid.name, [type(a)(a.key, a.column, a.values[:2], a.unit) for a in grid.axes], SHORT)
    made, found = [], []
    for _ in range(2):
        runner = Runner(store=Store(tmp_path))
        made.append(run_grids([small], load("sigma"), [1], runner=runner)[grid.name])
        found.append(runner.counts.found)
    assert made[0].height == found[1] > found[0] == 0
    assert made[0].equals(made[1])

"""Captures and tables go to disk while a run goes; what fails leaves one line and nothing else."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import segue

SEGUE = [sys.executable, "-c", "from segue.cli import main; main()"]
MEGABYTE = 1_000_000
BUFFER = 1 << 18
"""Bytes of a file that wait to be written."""
SHORT = "200 ms"
"""Of bench/bulk, whose captures are then shorter than that."""


def run_limited(limit: Callable[[], None], *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, with limits of its own."""
    command = [*SEGUE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)


def sizes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_a_capture_larger_than_the_memory_there_is(tmp_path: Path) -> None:
    limit = 300 * MEGABYTE

    def address_space() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = run_limited(address_space, "run", "bench/bulk", "--set", "duration=16 s", "--json", "--pcap", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("captures: ")
    assert done.stderr.count("\n") == 1
    assert sizes(tmp_path) > limit
    assert sorted(path.name for path in tmp_path.iterdir()) == ["receiver.pcapng", "sender.pcapng"]
    analysis = segue.analyze(tmp_path / "receiver.pcapng")
    assert analysis.findings.captures[0].partial is None


@pytest.mark.parametrize(("option", "suffix"), [("--pcap", ".pcapng"), ("--trace", ".parquet")])
def test_a_file_that_cannot_grow_ends_the_run_in_one_line(tmp_path: Path, option: str, suffix: str) -> None:
    def file_size() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (BUFFER, BUFFER))

    folder = tmp_path / "out"
    done = run_limited(file_size, "run", "bench/bulk", "--set", "duration=100 s", option, folder)
    assert done.returncode == 1
    assert done.stderr.startswith(f"segue: {folder}/")
    assert done.stderr.endswith(f"{suffix}: File too large\n")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--pcap", "--trace", "--report"])
def test_a_full_disk_ends_the_run_in_one_line(tmp_path: Path, option: str) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    folder = tmp_path / "disk"
    folder.mkdir()
    target = folder / ("out.html" if option == "--report" else "out")
    duration = "30 s" if option == "--report" else "60 s"
    size = "32k" if option == "--report" else "256k"
    scenario = "sigma" if option == "--report" else "bench/bulk"
    script = (
        f"mount -t tmpfs -o size={size} tmpfs {folder} && shift && "
        f'"$@" run {scenario} --set duration="{duration}" {option} {target}; '
        f"echo status $?; ls -A {folder}; ls -A {folder}/*"
    )
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", "-"]
    done = subprocess.run([*unshare, *SEGUE], capture_output=True, text=True, check=False)
    if "status" not in done.stdout:
        pytest.skip(f"no tmpfs here: {done.stderr.strip()}")
    assert done.stdout == "status 1\n", done
    lines = [line for line in done.stderr.splitlines() if line.startswith("segue: ")]
    assert len(lines) == 1
    assert lines[0].startswith(f"segue: {target}")
    assert lines[0].endswith("No space left on device")


def test_what_cannot_be_written_after_a_run_takes_its_other_files_along(tmp_path: Path) -> None:
    old = tmp_path / "t" / "handovers.parquet"
    old.parent.mkdir()
    # what it cannot be replaced by is found out only then
    old.symlink_to("nowhere/else")
    options = ("--pcap", tmp_path / "p", "--trace", tmp_path / "t", "--csv", tmp_path / "c")
    done = run_limited(lambda: None, "run", "bench/bulk", "--set", f"duration={SHORT}", *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == [
        Path("t"),
        Path("t/handovers.parquet"),
    ]


def test_a_file_that_cannot_end_leaves_none_with_a_name(tmp_path: Path) -> None:
    places = [tmp_path / "p", tmp_path / "t"]
    settings = {"duration": SHORT}
    segue.run("bench/bulk", settings, pcap=places[0], trace=places[1])
    captures, tables = ([path.stat().st_size for path in place.iterdir()] for place in places)
    # all tables are whole; the captures end in what waits to be written
    limit = (max(tables) + min(captures)) // 2
    assert max(tables) < limit < min(captures) <= max(captures) < BUFFER
    for place in places:
        shutil.rmtree(place)

    def file_size() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    options = ("--set", f"duration={SHORT}", "--pcap", places[0], "--trace", places[1])
    done = run_limited(file_size, "run", "bench/bulk", *options)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.endswith(".pcapng: File too large\n")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_of_the_same_number_left_is_passed_over(tmp_path: Path) -> None:
    left = [tmp_path / f".mh.pcapng.{os.getpid()}-{number}.part" for number in range(1000)]
    for path in left:
        path.write_bytes(b"left")
    result = segue.run("sigma", {"duration": "1 s"}, trace=False, pcap=tmp_path)
    assert "mh.pcapng" in result.capture_names
    assert all((tmp_path / name).is_file() for name in result.capture_names)
    assert all(path.read_bytes() == b"left" for path in left)
    assert len(list(tmp_path.iterdir())) == len(left) + len(result.capture_names)


def test_what_a_killed_process_left_goes_with_the_next_capture_in_its_folder(tmp_path: Path) -> None:
    """Not what another is writing, what is young, and what no process of ours has named so."""
    dead, begun, young, other = (
        tmp_path / name
        for name in (".mh.pcapng.7-0.part", ".cn.pcapng.8-0.part", ".ar1.pcapng.9-0.part", ".mh.pcapng.part")
    )
    for path in (dead, begun, young, other):
        path.write_bytes(b"left")
    for path in (dead, begun, other):
        os.utime(path, (time.time() - 3600,) * 2)
    with begun.open() as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        result = segue.run("sigma", {"duration": "1 s"}, trace=False, pcap=tmp_path)
    assert {path for path in tmp_path.iterdir() if path.suffix == ".part"} == {begun, young, other}
    assert all((tmp_path / name).is_file() for name in result.capture_names)


def test_a_link_to_what_is_not_there_stays_and_the_capture_is_made(tmp_path: Path) -> None:
    out, folder = tmp_path / "out", tmp_path / "folder"
    out.mkdir()
    folder.mkdir()
    # a relative one goes from its own folder, and may lead to another
    (out / "sender.pcapng").symlink_to("../folder/via")
    (folder / "via").symlink_to("target")
    command = [*SEGUE, "run", "bench/bulk", "--set", f"duration={SHORT}", "--pcap", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (out / "sender.pcapng").is_symlink()
    assert (folder / "via").is_symlink()
    assert (folder / "target").stat().st_size > 0
    assert sorted(path.name for path in folder.iterdir()) == ["target", "via"]


def test_links_in_a_circle_are_an_error(tmp_path: Path) -> None:
    one, other = tmp_path / "sender.pcapng", tmp_path / "other"
    one.symlink_to(other)
    other.symlink_to(one)
    command = [*SEGUE, "run", "bench/bulk", "--set", f"duration={SHORT}", "--pcap", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"segue: {one}: too many levels of symbolic links\n")
    assert one.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "sender.pcapng"]


def test_tables_in_files_are_those_in_memory(tmp_path: Path) -> None:
    short = {"duration": "30 s"}
    in_memory = segue.run("sigma", short, seed=3)
    in_files = segue.run("sigma", short, seed=3, trace=tmp_path)
    names = in_memory.table_names
    assert names
    assert in_files.table_names == names
    for name in names:
        frame = pl.read_parquet(tmp_path / f"{name}.parquet")
        assert frame.equals(getattr(in_memory, name)), name
        assert frame.equals(getattr(in_files, name)), name
    assert in_memory.packets.height > 0


def test_captures_of_a_run_outlive_nothing_but_it() -> None:
    result = segue.run("sigma", {"duration": "5 s"}, trace=False, pcap=True)
    names = [name for name, _ in result.captures()]
    assert names
    folder = result._pcap_folder
    assert folder is not None
    assert folder.is_dir()
    del result
    assert not folder.exists()


@pytest.mark.parametrize("option", ["--pcap", "--trace"])
def test_a_refused_run_makes_no_folder(tmp_path: Path, option: str) -> None:
    folder = tmp_path / "a" / "b"
    done = run_limited(lambda: None, "run", "sigma", "--set", "l2.latancy=1 s", option, folder)
    assert done.returncode == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_warnings_go_to_stderr_and_into_the_json(form: tuple[str, ...]) -> None:
    settings = ("--set", "duration=20 s", "--set", "application.0.transport=tcp", "--set", "ilnp.nonce=96-bit")
    done = run_limited(lambda: None, "run", "sigma", *settings, *form)
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert [line.removeprefix("segue: warning: ")[:30] for line in lines] == [
        'scheme = "sigma" has no effect',
        "--set ilnp.nonce=96-bit has no",
    ]
    if form:
        warnings = json.loads(done.stdout)["warnings"]
        assert [f"segue: warning: {warning['text']}" for warning in warnings] == lines
        assert [(warning["kind"], warning["host"]) for warning in warnings] == [
            ("scheme-without-effect", "mh"),
            ("key-without-effect", None),
        ]
    warned = segue.run("sigma", {"duration": "20 s", "application.0.transport": "tcp"}, trace=False).metrics.warnings
    assert [warning.kind for warning in warned] == ["scheme-without-effect"]

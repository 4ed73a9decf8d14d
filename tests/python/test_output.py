from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from segue.output import check_apart, check_directory, write_file


def test_file_is_written_with_its_directory(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a" / "b.txt", "text")
    assert path.read_text() == "text"
    assert path.stat().st_mode & 0o444 == 0o444
    assert [entry.name for entry in path.parent.iterdir()] == ["b.txt"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_interrupted_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    path = write_file(tmp_path / "claims.json", "old")

    def interrupted(*_: object) -> None:
        raise error

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(error):
        write_file(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["claims.json"]


def test_what_a_killed_write_has_left_goes_with_the_next(tmp_path: Path) -> None:
    """Not what another process is writing, what is young, and what is of another file."""
    kill = (
        "import os, sys, pathlib, segue.output as o\n"
        "pathlib.Path.chmod = lambda *_: os.kill(os.getpid(), 9)\n"
        "o.write_file(pathlib.Path(sys.argv[1]), 'new')\n"
    )
    path = tmp_path / "claims.json"
    for name in (path, tmp_path / "claims.json.md"):
        killed = subprocess.run([sys.executable, "-c", kill, str(name)], check=False)
        assert killed.returncode == -signal.SIGKILL
    dead, of_another = sorted(tmp_path.iterdir(), key=lambda entry: ".md." in entry.name)
    begun, young = (tmp_path / f".claims.json.{'abcdefg'}{n}.part" for n in "12")
    for file in (begun, young):
        file.write_text("")
    hour_ago = time.time() - 3600
    for file in (dead, of_another, begun):
        os.utime(file, (hour_ago, hour_ago))
    with begun.open() as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        write_file(path, "text")
    assert sorted(tmp_path.iterdir()) == sorted([path, of_another, begun, young])


def test_directory_that_cannot_be_made_is_an_error_before_work_begins(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        check_directory(tmp_path / "file" / "report")


def test_checked_directory_is_made_with_its_first_file(tmp_path: Path) -> None:
    check_directory(tmp_path / "new" / "report")
    assert list(tmp_path.iterdir()) == []
    assert write_file(tmp_path / "new" / "report" / "file", "text").read_text() == "text"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_reported_with_the_name_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, mode: str) -> object:
        os.close(handle)
        return Path("/dev/full").open(mode, buffering=0)

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(OSError, match=r"No space left.*claims\.json"):
        write_file(tmp_path / "claims.json", "text")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="regular file"):
        write_file(pipe, "text")
    assert pipe.is_fifo()


def test_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_file(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_link_to_what_is_not_there_stays_and_the_file_is_made(tmp_path: Path) -> None:
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    # a relative one goes from its own folder
    link.symlink_to("folder/via")
    (folder / "via").symlink_to("target")
    write_file(link, "text")
    assert link.is_symlink()
    assert (folder / "via").is_symlink()
    assert (folder / "target").read_text() == "text"
    assert sorted(p.name for p in folder.iterdir()) == ["target", "via"]


def test_what_is_read_is_not_written(tmp_path: Path) -> None:
    source, link, other = tmp_path / "source", tmp_path / "link", tmp_path / "other"
    source.write_text("text")
    link.symlink_to(source)
    other.write_text("")
    for path in (other, tmp_path / "new"):
        check_apart(path, [source, tmp_path / "missing"])
    for path in (source, link):
        with pytest.raises(OSError, match="expected another name"):
            check_apart(path, [tmp_path / "missing", source])

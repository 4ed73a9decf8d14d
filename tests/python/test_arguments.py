"""Arguments that are no text, and names that are none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from segue.cli.new import SCHEMA


def given(folder: Path, *arguments: str | bytes) -> subprocess.CompletedProcess[str]:
    """The command with these arguments, to the byte."""
    return subprocess.run(
        [os.fsencode(sys.executable), b"-c", b"from segue.cli import main; main()", *map(os.fsencode, arguments)],
        capture_output=True, text=True, check=False, cwd=folder, timeout=120,
    )  # fmt: skip


def refused(folder: Path, *arguments: str | bytes) -> str:
    """The only line of a command that is refused and leaves the folder as it is."""
    before = sorted(folder.rglob("*"))
    done = given(folder, *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert sorted(folder.rglob("*")) == before
    return done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", b"a\xff.toml"),
        ("check", b"a\xff.toml"),
        ("sweep", b"a\xff.toml", "--grid", "l2.latency=100ms"),
        ("run", "sigma", "--assert", b"r\xff"),
        ("run", "sigma", "--set", b"l2.latency=\xff"),
        ("sweep", "sigma", "--grid", b"l2.latency=1\xff"),
        ("new", b"a\xff"),
        ("keys", b"\xff"),
        ("scenarios", "show", b"\xff"),
    ],
    ids=repr,
)
def test_arguments_that_are_not_utf8_are_refused(tmp_path: Path, arguments: tuple[str | bytes, ...]) -> None:
    assert "expected UTF-8" in refused(tmp_path, *arguments)


@pytest.mark.parametrize("name", ["", ".", "..", "/", "a/", "a/.."])
def test_new_refuses_what_is_no_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").mkdir()
    assert "expected the name of a scenario" in refused(tmp_path, "new", name)


@pytest.mark.parametrize("name", ["/dev/null", "/proc/mine", "/sys/kernel/mine", "link/mine"])
def test_new_begins_nothing_among_devices(tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to("/dev")
    assert "expected an ordinary directory" in refused(tmp_path, "new", name)


@pytest.mark.parametrize("content", [b"mine", b"\xff", b'{"title": "mine"}', b"[1]"])
def test_new_replaces_no_schema_that_is_not_its_own(tmp_path: Path, content: bytes) -> None:
    (tmp_path / SCHEMA).write_bytes(content)
    assert SCHEMA in refused(tmp_path, "new", "mine")
    assert (tmp_path / SCHEMA).read_bytes() == content
    assert given(tmp_path, "new", "mine", "--force").returncode == 0
    assert (tmp_path / SCHEMA).read_bytes() != content


def test_new_beside_a_folder_of_the_schemas_name_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / SCHEMA).mkdir()
    assert "is a directory" in refused(tmp_path, "new", "mine", "--force")


def test_new_brings_a_schema_of_its_own_up_to_date(tmp_path: Path) -> None:
    assert given(tmp_path, "new", "one").returncode == 0
    current = (tmp_path / SCHEMA).read_text()
    (tmp_path / SCHEMA).write_text(current.replace("latency", "delay"))
    assert given(tmp_path, "new", "two").returncode == 0
    assert (tmp_path / SCHEMA).read_text() == current

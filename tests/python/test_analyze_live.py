"""`segue analyze` on what is compressed, comes through standard input, or is still being captured."""

from __future__ import annotations

import gzip
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from capture_files import Way, download, pcap, pcapng
from command import Segue
from segue import CaptureError, analyze
from segue.cli.live import Lines, line
from segue.findings import Glance
from test_cli import one_line

COMMAND = [sys.executable, "-c", "from segue.cli import main; main()", "analyze"]
WAIT_S = 60
# What the first part of a capture ends in the middle of, so that something is under way.
BEFORE_THE_MOVE = 0.3


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    packets = list(download(Way()))
    return {"pcapng": pcapng(packets, ("wlan0", "lte0")), "pcap": pcap((at, data) for at, _, data in packets)}


def result(document: str) -> dict[str, Any]:
    """A document without the name of its file."""
    loaded: dict[str, Any] = json.loads(document)
    del loaded["captures"][0]["file"]
    return loaded


def fed(arguments: list[str], pieces: Iterator[bytes]) -> subprocess.CompletedProcess[str]:
    """The command on standard input that comes in pieces."""
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        for piece in pieces:
            os.write(process.stdin.fileno(), piece)
        output, errors = process.communicate(timeout=WAIT_S)
    return subprocess.CompletedProcess(arguments, process.returncode, output.decode(), errors.decode())


def cut(content: bytes) -> Iterator[bytes]:
    """Pieces of 1 to 40 bytes."""
    at, length = 0, 1
    while at < len(content):
        yield content[at : at + length]
        at += length
        length = length * 7 % 41


# Compressed.


def test_a_compressed_capture_is_known_by_its_content(segue: Segue, tmp_path: Path, files: dict[str, bytes]) -> None:
    content = files["pcapng"]
    expected = result(analyze(("x", content)).json)
    half = len(content) // 2
    members = gzip.compress(content[:half], mtime=0) + gzip.compress(content[half:], mtime=0)
    # a name that says something else
    path = tmp_path / "mn.pcapng"
    path.write_bytes(members)
    assert result(segue("analyze", path, "--json").stdout) == expected
    seen: list[tuple[int, int]] = []
    analyze(path, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(members), len(members))


def test_a_capture_that_zstd_compressed(segue: Segue, tmp_path: Path, files: dict[str, bytes]) -> None:
    (tmp_path / "mn.pcap").write_bytes(files["pcap"])
    try:
        subprocess.run(["zstd", "-q", "mn.pcap"], cwd=tmp_path, check=True)
    except FileNotFoundError:
        pytest.skip("zstd is not installed")
    document = segue("analyze", tmp_path / "mn.pcap.zst", "--json").stdout
    assert result(document) == result(analyze(tmp_path / "mn.pcap").json)


def test_a_compressed_capture_that_breaks_off(segue: Segue, tmp_path: Path, files: dict[str, bytes]) -> None:
    path = tmp_path / "mn.pcap.gz"
    packed = gzip.compress(files["pcap"], mtime=0)
    path.write_bytes(packed[: len(packed) // 2])
    broken = segue("analyze", path)
    assert broken.returncode == 0
    assert "PARTIAL" in broken.stdout
    assert "what gzip compressed breaks off" in " ".join(broken.stdout.split())
    path.write_bytes(packed[:15])
    assert "what gzip compressed breaks off" in one_line(segue("analyze", path))


def test_a_bomb_is_refused_in_one_line(segue: Segue, tmp_path: Path) -> None:
    path = tmp_path / "bomb.pcap"
    with gzip.GzipFile(path, "wb", compresslevel=9, mtime=0) as file:
        file.write(pcap([]))
        for _ in range(300):
            file.write(bytes(1 << 20))
    message = one_line(segue("analyze", path))
    assert "bomb.pcap" in message
    assert "1000 times its size" in message


# Standard input.


@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_standard_input_may_come_in_small_pieces(files: dict[str, bytes], form: str) -> None:
    content = files[form]
    expected = result(analyze(("x", content)).json)
    assert result(fed(["-", "--json"], cut(content[:20_000])).stdout)["captures"] != expected["captures"]
    done = fed(["-", "--json"], cut(content))
    assert (done.returncode, done.stderr) == (0, "")
    assert result(done.stdout) == expected
    assert result(fed(["-", "--json"], iter([gzip.compress(content)])).stdout) == expected


def test_what_standard_input_cannot_be_is_refused(tmp_path: Path, files: dict[str, bytes]) -> None:
    path = tmp_path / "cn.pcap"
    path.write_bytes(files["pcap"])
    for arguments in (["-", str(path)], [str(path), "-"]):
        assert "standard input: can be read only once" in one_line(fed(arguments, iter([])))
    assert "standard input: the file is empty" in one_line(fed(["-"], iter([])))
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [*COMMAND, "-"], stdin=theirs, capture_output=True, text=True, timeout=WAIT_S, check=False
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert "standard input: it is a terminal" in one_line(done)


# Live.


def test_live_ends_with_the_result_of_any_other(files: dict[str, bytes]) -> None:
    content = files["pcapng"]
    expected = result(analyze(("x", content)).json)
    done = fed(["--live", "-", "--json"], iter([content]))
    assert done.returncode == 0
    assert result(done.stdout) == expected
    # what was found meanwhile is a line each time, beside the document
    assert re.match(r"\d+\.\d s: \d+ packets?, 1 flow, ", done.stderr)
    plain = fed(["--live", "-"], iter([content]))
    assert (plain.returncode, plain.stderr) == (0, "")
    first, rest = plain.stdout.split("\n", 1)
    assert "packet" in first
    assert "1 handover" in rest


def test_two_captures_cannot_be_watched(segue: Segue, tmp_path: Path, files: dict[str, bytes]) -> None:
    paths = []
    for name, content in files.items():
        paths.append(tmp_path / name)
        paths[-1].write_bytes(content)
    assert "--live" in one_line(segue("analyze", "--live", *paths))
    with pytest.raises(CaptureError, match="one to watch"):
        analyze(*paths, live=print)


class Watched:
    """A capture of which the beginning came, that is watched by the command, and goes on."""

    def __init__(self, arguments: list[str], begin: bytes, output: int) -> None:
        # as wide as its terminal is
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [*COMMAND, "--live", "-", *arguments],
            stdin=subprocess.PIPE, stdout=output, stderr=subprocess.PIPE, env=environment,
        )  # fmt: skip
        assert self.process.stdin is not None
        self._input = self.process.stdin.fileno()
        self.more(begin)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:
            self.process.kill()

    def more(self, content: bytes) -> None:
        """Go on with the capture."""
        os.write(self._input, content)

    def until(self, reader: int, words: str) -> str:
        """What is written, until these words are."""
        text = ""
        until = time.monotonic() + WAIT_S
        while words not in text:
            ready, _, _ = select.select([reader], [], [], max(0, until - time.monotonic()))
            assert ready, f"{words!r} did not come: {text!r}"
            text += os.read(reader, 65_536).decode(errors="replace")
        return text


def parts(content: bytes, at: float = BEFORE_THE_MOVE) -> tuple[bytes, bytes]:
    """A capture cut in two, within a packet."""
    middle = int(len(content) * at)
    return content[:middle], content[middle:]


def test_ctrl_c_ends_the_capture_with_the_result_of_what_came(files: dict[str, bytes]) -> None:
    begin, _ = parts(files["pcapng"], 0.9)
    with Watched(["--json"], begin, subprocess.PIPE) as watched:
        assert watched.process.stdout is not None
        assert watched.process.stderr is not None
        # packets that are all there, and a silence that goes on while nothing comes
        watched.until(watched.process.stderr.fileno(), "silent: flow 0 for ")
        watched.process.send_signal(signal.SIGINT)
        # whoever writes goes on as long as he is let
        output = watched.process.stdout.read()
        assert watched.process.wait(timeout=WAIT_S) == 0
    ended = result(output.decode())
    expected = result(analyze(("x", begin)).json)
    assert (ended["captures"][0].pop("partial"), expected["captures"][0].pop("partial") is None) == (None, False)
    assert ended == expected


def test_a_terminal_has_a_table_that_goes_on(files: dict[str, bytes]) -> None:
    begin, rest = parts(files["pcapng"])
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (30, 140))
    try:
        with Watched([], begin, theirs) as watched:
            table = watched.until(ours, "longest")
            assert "0 handovers" in table
            assert "Ctrl-C ends the capture" in table
            watched.more(rest)
            table = watched.until(ours, "405 ms")
            for words in ("wlan0", "lte0", "405 ms"):
                assert words in table
            watched.process.send_signal(signal.SIGINT)
            watched.until(ours, "another interface")
            assert watched.process.wait(timeout=WAIT_S) == 0
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_program_is_told_what_was_found_so_far(files: dict[str, bytes]) -> None:
    seen: list[Glance] = []
    analysis = analyze(("x", files["pcapng"]), live=seen.append)
    assert seen
    assert seen[0].start_time_ns == analysis.findings.start_time_ns
    assert seen == sorted(seen, key=lambda glance: glance.packets)


def glances(files: dict[str, bytes]) -> Iterator[Glance]:
    """What was found, at the beginning and near the end of the capture."""
    for share in (0.1, 0.9):
        seen: list[Glance] = []
        part, _ = parts(files["pcapng"], share)
        analyze(("x", part), live=seen.append)
        findings = analyze(("x", part)).findings
        flows = tuple(replace(row, flow=findings.flow(row.flow.id)) for row in seen[-1].flows)
        last = findings.handovers[-1] if findings.handovers else None
        yield replace(
            seen[-1], time_s=findings.duration_s, packets=findings.captures[0].packets, flows=flows, last_handover=last,
            handovers=len(findings.handovers),
        )  # fmt: skip


def test_a_line_says_what_moved_last_and_what_is_silent(files: dict[str, bytes]) -> None:
    early, late = glances(files)
    assert line(early).endswith("1 flow, 0 handovers")
    assert "1 handover; the last at 1.420 s: flow 0 from wlan0 to lte0, 405 ms without new data" in line(late)
    assert "silent" not in line(late)
    quiet = replace(late, quiet_s=2.5)
    assert "nothing for 2.50 s" in line(quiet)
    assert re.search(r"silent: flow 0 for 2\.5\d s", line(quiet))
    [row] = late.flows
    for state, said in (("idle", False), ("closed", False), ("active", True), ("unknown", True)):
        other = replace(quiet, flows=(replace(row, flow=replace(row.flow, state=state)),))
        assert ("silent" in line(other)) is said
    dead = replace(quiet, flows=(replace(row, flow=replace(row.flow, state="dead")),))
    assert line(dead).endswith("dead: flow 0")


def test_lines_come_no_more_often_than_every_second(files: dict[str, bytes]) -> None:
    early, late = glances(files)
    now = [0.0]
    stream = io.StringIO()
    lines = Lines(stream, lambda: now[0])
    told = []
    for at, glance in ((0.0, early), (0.5, late), (1.0, late), (2.5, late), (10.9, late), (11.0, late), (11.5, early)):
        now[0] = at
        before = stream.getvalue()
        lines.show(glance)
        if stream.getvalue() != before:
            told.append(at)
    assert told == [0.0, 1.0, 11.0]

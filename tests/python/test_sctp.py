"""`segue sctp`: handing over to the program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from segue.cli.sctp import PROGRAM, VARIABLE, find_program

COMMAND = [sys.executable, "-c", "from segue.cli import main; main()", "sctp"]


def sctp(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        timeout=60,
    )


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_arguments_output_and_status_are_the_programs(tmp_path: Path) -> None:
    fake = program(tmp_path / "fake", 'printf "%s|" "$@"; exit 7')
    result = sctp("connect", "::1", "--help", "--", "-x y", **{VARIABLE: str(fake)})
    assert result.returncode == 7
    assert result.stdout == "connect|::1|--help|--|-x y|"


def test_a_variable_that_names_no_program_is_one_line(tmp_path: Path) -> None:
    result = sctp("ping", **{VARIABLE: str(tmp_path)})
    assert result.returncode == 2
    assert result.stderr == f"segue: ${VARIABLE} is {tmp_path}, which is not a program\n"


def test_the_program_beside_the_interpreter_goes_before_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = tmp_path / "environment" / "bin"
    elsewhere = tmp_path / "elsewhere"
    for directory in (beside, elsewhere):
        directory.mkdir(parents=True)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(elsewhere))
    monkeypatch.setattr(sys, "prefix", str(beside.parent))
    on_path = program(elsewhere / PROGRAM, "exit 0")
    assert find_program() == str(on_path)
    assert find_program() == str(on_path)
    own = program(beside / PROGRAM, "exit 0")
    assert find_program() == str(own)


def test_without_the_program_it_says_how_to_build_it(tmp_path: Path) -> None:
    code = f"import sys; sys.prefix = {str(tmp_path)!r}; from segue.cli import main; main()"
    environment = {**os.environ, "PATH": str(tmp_path)}
    environment.pop(VARIABLE, None)
    result = subprocess.run(
        [sys.executable, "-c", code, "sctp", "listen"], capture_output=True, text=True, check=False, env=environment
    )
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "make build" in result.stderr


def test_a_file_goes_through_the_loopback_interface(tmp_path: Path) -> None:
    content = os.urandom(300_000)
    (tmp_path / "sent").write_bytes(content)
    udp = "29899"
    listen = ["listen", "--once", "--json", "--address", "::1", "--udp-port", udp, "--save", str(tmp_path / "received")]
    with subprocess.Popen([*COMMAND, *listen], stdout=subprocess.PIPE, text=True) as listening:
        try:
            assert listening.stdout is not None
            assert json.loads(listening.stdout.readline())["event"] == "listening"
            sent = sctp("connect", "::1", "5001", "--remote-udp-port", udp, "--send", str(tmp_path / "sent"))
            assert sent.returncode == 0, sent.stderr
            assert listening.wait(timeout=30) == 0
        finally:
            listening.kill()
    assert (tmp_path / "received").read_bytes() == content


def test_ctrl_c_reaches_the_program(tmp_path: Path) -> None:
    fake = program(tmp_path / "fake", 'trap "echo caught; exit 130" INT; echo ready; while :; do sleep 0.05; done')
    with subprocess.Popen(
        [*COMMAND, "listen"], stdout=subprocess.PIPE, text=True, env={**os.environ, VARIABLE: str(fake)}
    ) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "ready\n"
            time.sleep(0.1)
            running.send_signal(2)
            assert running.stdout.read() == "caught\n"
            assert running.wait(timeout=30) == 130
        finally:
            running.kill()

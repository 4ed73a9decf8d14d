"""Every `segue` command and every line of Python in the README and in docs/ is run as it stands there.

By default here, document by document, in a folder with `scenarios` and `.venv` as a checkout has them. What another
test runs, and what none does, stands in `ELSEWHERE` with the reason: a new command is run until it stands there too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
SEGUE = re.compile(r"(?:^|[\s/])segue(?:-agent|-lab|-sctp|-location)? ")

ELSEWHERE = {
    r"segue(-| )agent ": "wants root; tests/interop/test_agent_document.py and test_agent_machines.py",
    r"segue lab ": "wants root, and takes minutes; tests/python/test_lab_document.py and tests/interop",
    r"segue location ": "a server in another terminal, and BIND's tsig-keygen; tests/interop/test_location.py",
    r"segue sctp .*2001:db8:1::|segue sctp listen --once --verify": "wants addresses in namespaces; tests/interop",
    r"tcpdump .*\| ": "another program; tests/python/test_analyze_live.py pipes captures",
    r"segue analyze MN \[CN\]": "says what there is",
    r"docs/python.md:": "tests/python/test_python_document.py",
    r"docs/sweep.md:": "tests/python/test_sweep_document.py",
    r"docs/sweep-on-ray.md:": "a cluster; tests/python/test_sweep_cluster.py",
}
"""By a pattern of the document with the command."""

LONG = r"segue reproduce "
"""Takes minutes; a part of each is in tests/python/test_reproduce*.py."""

OF_OTHERS = {"dumpcap -i wlan0 -i wwan0 -w mn.pcapng": [("out/mh.pcapng", "mn.pcapng"), ("out/cn.pcapng", "cn.pcapng")]}
"""Captures that other programs would make, from those that a command before made."""

BEFORE = {"docs/analyze.md": "for one in out later; do segue run sigma --set duration='40 s' --pcap $one/; done"}


@dataclass(frozen=True)
class Command:
    document: str
    text: str
    is_python: bool = False

    @property
    def elsewhere(self) -> str | None:
        whole = f"{self.document}: {self.text}"
        return next((why for pattern, why in ELSEWHERE.items() if re.search(pattern, whole)), None)

    @property
    def is_long(self) -> bool:
        return re.search(LONG, self.text) is not None


def commands_of(document: str) -> list[Command]:
    """Lines of shell with `segue` in them, or that stand for another program, and blocks of Python."""
    text = (ROOT / document).read_text(encoding="utf-8")
    found = []
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if language == "python":
            found.append(Command(document, block, is_python=True))
        elif language in {"", "sh", "bash", "console"}:
            lines = block.replace("\\\n", " ").splitlines()
            lines = [line.removeprefix("$ ").strip() for line in lines]
            found += [Command(document, line) for line in lines if SEGUE.search(line) or line in OF_OTHERS]
    return found


COMMANDS = [command for document in DOCUMENTS for command in commands_of(document)]


def in_checkout(folder: Path) -> dict[str, str]:
    """Make a folder like a checkout in which everything is built; the environment for commands in it."""
    (folder / "scenarios").symlink_to(ROOT / "scenarios")
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    shutil.copy(ROOT / "README.md", folder)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "MPLBACKEND": "Agg", "SEGUE_STORE": str(folder / "store")}


def ran(command: str | list[str], folder: Path, environment: dict[str, str]) -> None:
    line = ["bash", "-c", command] if isinstance(command, str) else command
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=1200)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def run_all(document: str, folder: Path, *, long: bool) -> list[str]:
    """Run the commands of a document, all but the long ones or those alone; what was run."""
    environment = in_checkout(folder)
    if document in BEFORE:
        ran(BEFORE[document], folder, environment)
    made: list[str] = []
    python = ""
    for command in commands_of(document):
        if command.elsewhere is not None or command.is_long != long:
            continue
        made.append(command.text)
        if command.is_python:
            # a block goes on where the one before it ended
            python += command.text
            ran([sys.executable, "-c", python], folder, environment)
        elif command.text in OF_OTHERS:
            for source, copy in OF_OTHERS[command.text]:
                shutil.copy(folder / source, folder / copy)
        elif " sctp listen " in command.text:
            # in one of two terminals
            other = in_another_terminal(command.text, folder, environment)
        elif " sctp " in command.text:
            with other:
                try:
                    ran(command.text, folder, environment)
                finally:
                    other.terminate()
        else:
            ran(command.text, folder, environment)
    return made


def in_another_terminal(command: str, folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Begin a command that listens at the UDP port of RFC 6951, and go on when it does."""
    begun = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=folder, env=environment)
    end = time.monotonic() + 30
    while f":{9899:04X} " not in Path("/proc/net/udp6").read_text(encoding="ascii"):
        assert begun.poll() is None, command
        assert time.monotonic() < end, command
        time.sleep(0.05)
    return begun


HERE = [one for one in DOCUMENTS if any(c.elsewhere is None and not c.is_long for c in commands_of(one))]


@pytest.mark.parametrize("document", HERE)
def test_commands_run_as_they_stand_there(document: str, tmp_path: Path) -> None:
    made = run_all(document, tmp_path, long=False)
    assert made
    if document == "README.md":
        assert (tmp_path / "received").exists()
        assert (tmp_path / "compared" / "compare.svg").is_file()


@pytest.mark.slow
def test_papers_are_reproduced_as_the_readme_says(tmp_path: Path) -> None:
    assert len(run_all("README.md", tmp_path, long=True)) >= 4


def test_every_command_is_looked_at() -> None:
    assert len(COMMANDS) > 80
    assert {command.document for command in COMMANDS} >= {
        "README.md",
        "docs/analyze.md",
        "docs/leo.md",
        "docs/python.md",
    }


@pytest.mark.parametrize("pattern", ELSEWHERE)
def test_what_is_excepted_is_there_and_the_test_that_runs_it_too(pattern: str) -> None:
    found = [one for one in COMMANDS if re.search(pattern, f"{one.document}: {one.text}")]
    assert found, "no document has it"
    for name in re.findall(r"(?:tests/(?:python|interop)/)\S+\.py", ELSEWHERE[pattern]):
        assert (ROOT / name).is_file()


def test_a_command_that_fails_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"segue run nowhere.toml"):
        ran(
            "segue run nowhere.toml",
            tmp_path,
            {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        )

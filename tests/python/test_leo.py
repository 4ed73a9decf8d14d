"""What docs/leo.md shows is what runs give."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from command import Segue

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "leo.md").read_text()
COMMANDS = [line for line in PAGE.splitlines() if line.startswith("segue ")]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("leo_table", ROOT / "scripts" / "leo_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def rows_of(name: str) -> list[str]:
    _, _, rest = PAGE.partition(f"<!-- made by scripts/leo_table.py: {name} -->\n")
    table, _, _ = rest.partition("<!-- end -->")
    return table.split("\n")


def test_the_table_of_interruptions_is_what_runs_give(script: ModuleType) -> None:
    cases = ["sigma", "sigma-eager", "sigma-planned", "cmt", "mip6-ro", "ilnp-soft-planned"]
    made = script.interruptions(cases).lines
    shown = rows_of("interruptions")
    assert [row for row in made if row not in shown] == [], "make docs"
    assert len(made) == 2 + len(cases)
    named = [row.split("`")[1] for row in shown if row.startswith("| `")]
    assert named[1:] == list(script.CASES)


def test_the_tables_of_transfers_are_what_runs_give(script: ModuleType) -> None:
    made = script.transfers([("ilnp-soft-planned", "tcp")]).lines
    assert made[-1] in rows_of("transfers"), "make docs"
    [*_, sctp] = script.reconfigurations(["100 ms"]).lines
    cell = sctp.removeprefix("| `sctp` | ").removesuffix(" |")
    [shown] = [row for row in rows_of("reconfigurations") if row.startswith("| `sctp`")]
    assert shown.split(" | ")[2] == cell, "make docs"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_page_run_as_they_stand(segue: Segue, command: str) -> None:
    _, *arguments = shlex.split(command)
    done = segue(*arguments, "--set", "duration=35 s")
    assert (done.returncode, done.stderr) == (0, "")
    assert "throughput" in done.stdout


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) == 3

"""Commands and lines of scenarios in docs/lab.md are taken as they stand there; those that are cheap are run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

import segue as package
from command import Segue
from segue.cli.program import find_program

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "lab.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def commands_of(block: str) -> list[list[str]]:
    """The words of each line; of comments nothing."""
    lines = block.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


COMMANDS = [words for language, block in BLOCKS if not language for words in commands_of(block)]
FRAGMENTS = [block for language, block in BLOCKS if language == "toml"]
PROGRAMS = {"segue", "python", "make", "pip", "."}


def of(*program: str) -> list[list[str]]:
    """The commands that begin with these words."""
    return [words for words in COMMANDS if tuple(words[: len(program)]) == program]


def told(words: list[str]) -> str:
    return shlex.join(words)


def test_all_commands_of_the_document_are_looked_at() -> None:
    assert len(of("segue", "lab", "run")) >= 7
    assert len(of("segue", "lab", "compare")) >= 2
    assert len(of("segue", "run")) >= 1
    assert len(of("python")) >= 1
    assert {words[0] for words in COMMANDS} <= PROGRAMS
    assert len(FRAGMENTS) >= 4


@pytest.mark.parametrize("words", COMMANDS, ids=told)
def test_files_that_are_named_are_there(words: list[str]) -> None:
    files = [word.rpartition("=")[2] for word in words if word.endswith((".toml", ".py"))]
    assert [file for file in files if not (ROOT / file).is_file()] == []


@pytest.mark.parametrize("words", of("segue"), ids=told)
def test_the_command_line_takes_the_options(segue: Segue, words: list[str]) -> None:
    if words[1:3] == ["lab", "run"]:
        try:
            find_program("segue-lab")
        except click.ClickException as missing:
            pytest.skip(missing.message)
    helped = segue(*words[1:], "--help", cwd=ROOT)
    assert helped.returncode == 0, helped.stderr
    # a word that is no option is not forgiven for the sake of `--help`
    assert segue(*words[1:], "--nonsense", "--help", cwd=ROOT).returncode == 2


@pytest.mark.parametrize("words", of("python"), ids=told)
def test_scripts_take_the_options(words: list[str]) -> None:
    helped = subprocess.run(
        [sys.executable, *words[1:], "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert helped.returncode == 0, helped.stderr


@pytest.mark.parametrize("words", of("segue", "run"), ids=told)
def test_runs_of_the_simulator_are_as_the_document_says(segue: Segue, words: list[str], tmp_path: Path) -> None:
    # what is written goes elsewhere
    at = words.index("--junit") + 1
    junit = tmp_path / words[at]
    files = [str(ROOT / word) if word.endswith(".toml") else word for word in words]
    files[at] = str(junit)
    done = segue(*files[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "<testcase" in junit.read_text()


def scenario_with(fragment: str) -> str:
    """One of the lab's scenarios, of the scheme that a fragment is about, with the fragment in it."""
    scheme = "ilnp-soft" if "[ilnp]" in fragment else "none"
    text = (ROOT / "scenarios" / "lab" / f"{scheme}.toml").read_text()
    if "=" in fragment.partition("[")[0]:
        # keys of the file itself go before its first section
        return fragment + text
    for section in re.findall(r"^\[[\w.]+\]$", fragment, re.MULTILINE):
        # one section cannot be there twice
        text = re.sub(rf"^{re.escape(section)}\n(?:[^\[\n][^\n]*\n)*", "", text, flags=re.MULTILINE)
    return f"{text}\n{fragment}"


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_lines_of_scenarios_are_taken(fragment: str) -> None:
    assert package.Scenario("lab", "lab.toml", scenario_with(fragment)).description


def test_a_line_that_no_scenario_has_is_not_taken() -> None:
    wrong = FRAGMENTS[-1].replace("detect_silence", "detect_silnce")
    assert wrong != FRAGMENTS[-1]
    with pytest.raises(package.ScenarioError, match="detect_silnce"):
        assert package.Scenario("lab", "lab.toml", scenario_with(wrong)).description

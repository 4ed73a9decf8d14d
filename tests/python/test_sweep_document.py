"""Commands of docs/sweep.md are run as they stand there, one after another, and so is its Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from segue.sweeps.columns import METRICS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "sweep.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = [block for language, block in BLOCKS if not language]
MOST_WORDS = 700
MOST_COMMANDS = 5


def test_the_page_is_short() -> None:
    assert len(TEXT.split()) <= MOST_WORDS
    assert 4 <= len(COMMANDS) <= MOST_COMMANDS
    assert all(block.startswith("segue ") for block in COMMANDS)


def test_commands_run_as_they_stand_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    said = []
    for block in COMMANDS:
        ran = subprocess.run(
            ["bash", "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600
        )
        assert (ran.returncode, ran.stderr) == (0, ""), block
        said.append(ran.stdout)
    assert pl.read_parquet(tmp_path / "results.parquet").height == 3 * 3 * 6
    assert "whenever one stops" in said[1]
    made = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert made == {
        "results.parquet", "results-interruption.svg", "results-interruption.png",
        "figures/results-throughput.svg", "figures/results-throughput.png",
        "figures/results-loss.svg", "figures/results-loss.png",
        "compared/compare.csv", "compared/compare.svg", "compared/compare.png",
    }  # fmt: skip


def test_its_python_runs(tmp_path: Path) -> None:
    [code] = [block for language, block in BLOCKS if language == "python"]
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=300)


def test_all_columns_and_words_are_named() -> None:
    named = set(re.findall(r"`([\w.]+)`", TEXT))
    whole = {
        f"{stem}{end}" for stem in ("handover_latency", "interruption") for end in ("_median_s", "_mean_s", "_p95_s")
    }
    known = {metric.column for metric in METRICS} - whole
    assert known <= named

"""docs/python.md: its Python runs as it stands there, and its tables have what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import segue

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
FRAMES = ("handovers", "flows", "hosts")
TRACED = ("packets", "windows", "signalling", "positions", "cells")
CODE = "\n".join(re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))


def test_its_python_runs(tmp_path: Path) -> None:
    script = f"import matplotlib\nmatplotlib.use('Agg')\n{CODE}"
    subprocess.run([sys.executable, "-W", "error", "-c", script], cwd=tmp_path, check=True, timeout=300)
    assert {path.name for path in tmp_path.iterdir()} >= {"walk.segue", "walk.png"}


def test_all_figures_are_in_its_table() -> None:
    table = TEXT.partition("## Figures")[2].partition("\n## ")[0]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert named == set(segue.plot.__all__)


def described(frame: str) -> dict[str, str]:
    """Columns of a frame's table with their types."""
    section = TEXT.partition(f"### `{frame}`\n")[2].partition("\n### ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.+?) \| .", section, re.MULTILINE))


@pytest.fixture(scope="module")
def run() -> segue.Run:
    return segue.run("sigma", {"duration": "30 s"}, seed=1, pcap=True)


@pytest.mark.parametrize("name", [*FRAMES, *TRACED])
def test_columns_of_frames_are_those_of_the_document(run: segue.Run, name: str) -> None:
    frame: pl.DataFrame = getattr(run, name)
    assert described(name) == {column: str(kind) for column, kind in frame.schema.items()}
    assert list(described(name)) == frame.columns


def test_all_frames_of_a_run_are_described(run: segue.Run) -> None:
    assert set(run.table_names) == set(TRACED)
    assert re.findall(r"^### `(\w+)`", TEXT, re.MULTILINE) == [*FRAMES, *TRACED]


def test_every_column_of_a_frame_is_in_its_docstring() -> None:
    for name in (*FRAMES, *TRACED):
        text = getattr(segue.Run, name).__doc__ or getattr(segue.Run, name).func.__doc__
        assert [column for column in described(name) if f"`{column}`" not in text] == [], name


def same(frame: pl.DataFrame) -> None:
    table = frame.to_pandas()
    assert list(table.columns) == frame.columns
    assert len(table) == frame.height
    for column in frame.columns:
        assert table[column].isna().sum() == frame[column].null_count(), column
    numbers = [column for column, kind in frame.schema.items() if kind.is_numeric()]
    for column in numbers:
        assert table[column].sum() == pytest.approx(frame[column].cast(pl.Float64).sum()), column


def test_every_frame_goes_to_pandas(run: segue.Run) -> None:
    for name in (*FRAMES, *TRACED):
        same(getattr(run, name))
    same(segue.run("templates/vertical").cells)
    frames = segue.analyze(*run.captures(), series=True).frames()
    assert {"handovers", "flows", "throughput", "segments"} <= set(frames)
    for frame in frames.values():
        same(frame)
    found = segue.sweep("scale", {"scheme": ["mip6"]}, {"phones": 10, "probes": 1}, seeds=2)
    same(found.frame)
    same(found.summary("interruption"))

"""docs/python.md: its Python runs as it stands there, and its tables have what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import segue

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
CODE = "\n".join(re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))


def test_its_python_runs(tmp_path: Path) -> None:
    script = f"import matplotlib\nmatplotlib.use('Agg')\n{CODE}"
    subprocess.run([sys.executable, "-W", "error", "-c", script], cwd=tmp_path, check=True, timeout=300)
    assert {path.name for path in tmp_path.iterdir()} >= {"walk.segue", "walk.png"}


def test_all_figures_are_in_its_table() -> None:
    table = TEXT.partition("## Figures")[2]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert named == set(segue.plot.__all__)

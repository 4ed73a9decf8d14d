"""Shared by all tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from command import Segue


@pytest.fixture(scope="session")
def segue() -> Segue:
    """Runs the command in a process of its own and gives status, output and errors back."""

    def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from segue.cli import main; main()", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd,
            timeout=120,
        )

    return run

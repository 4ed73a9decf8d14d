"""Shared by all tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import Segue
from segue.store import FOLDER_VARIABLE


@pytest.fixture(scope="session", autouse=True)
def _no_results_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither find what the user has run nor leave anything there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(tmp_path_factory.mktemp("store")))
        yield


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

"""What a worker of a cluster does: the runs of a batch, on a machine that may have nothing but Segue."""

from __future__ import annotations

import atexit
import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from segue import RunError, ScenarioError, __version__
from segue.running import Run, job, run, take_of_jobs
from segue.scenarios import Scenario
from segue.sweeps.columns import Row
from segue.sweeps.execution import warnings_of
from segue.sweeps.plan import row_of_run

SELF_TEST = "sigma"
SELF_TEST_OVERRIDES = {"duration": "12 s", "l2.latency": "300 ms"}
"""Long enough for a handover."""

Fetch = Callable[[str], bytes]
"""Gives the content of a file by its digest."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all batches of a sweep have in common.

    Attributes:
        name: Name of the scenario.
        text: Its text; files that it names are named as in `files`.
        files: Digests of the files by their names, none of which leads out of a folder.
        extra: Metrics beside those of every sweep.
        version: Segue's, of who asks.
        self_test: `self_test()` there.
        self_test_text: The scenario of that.
    """

    name: str
    text: str
    files: Mapping[str, str]
    extra: tuple[str, ...]
    version: str
    self_test: str
    self_test_text: str


@dataclass(frozen=True, slots=True)
class Made:
    """Rows of a batch, in its order, how long they took, and what its runs warn of, each once."""

    rows: list[Row]
    took_s: float
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Refused:
    """The worker is not to be used."""

    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A run could not be carried to its end, or what was asked for is wrong."""

    text: str
    is_input: bool


Outcome = Made | Refused | Failed


def run_batch(shared: Shared, batch: Sequence[tuple[Mapping[str, str], int]], fetch: Fetch) -> Outcome:
    """Make runs, each of overrides and a seed, one after another."""
    if reason := _difference(shared.version, shared.self_test, shared.self_test_text):
        return Refused(reason)
    begin = time.monotonic()
    try:
        scenario = Scenario(shared.name, str(_folder(shared, fetch) / "scenario.toml"), shared.text)
        jobs = [job(scenario, overrides, seed=seed) for overrides, seed in batch]
        rows: dict[int, Row] = {}
        warned: dict[str, None] = {}

        def take(number: int, one: Run) -> None:
            rows[number] = row_of_run(one.metrics_json, shared.extra)
            warned.update(dict.fromkeys(warnings_of(one)))

        take_of_jobs(jobs, take, threads=1)
    except (ScenarioError, RunError) as error:
        return Failed(str(error), isinstance(error, ScenarioError))
    return Made([rows[number] for number in range(len(batch))], time.monotonic() - begin, list(warned))


def digest_of(content: bytes) -> str:
    """By which files travel."""
    return hashlib.blake2b(content, digest_size=32).hexdigest()


@cache
def self_test(text: str) -> str:
    """Hash of the event log of a run that every build makes alike, on every machine."""
    return run(Scenario(SELF_TEST, SELF_TEST, text), SELF_TEST_OVERRIDES, seed=1, trace=False).metrics.event_log_hash


@cache
def _difference(version: str, expected: str, text: str) -> str:
    """What differs from who asks; nothing if all is the same."""
    if version != __version__:
        return f"has Segue {__version__}, expected {version}"
    try:
        found = self_test(text)
    except (ScenarioError, RunError) as error:
        return f"does not run the self-test: {error}"
    return "" if found == expected else f"its self-test gives {found}, expected {expected}"


_folders: dict[tuple[tuple[str, str], ...], Path] = {}


def _folder(shared: Shared, fetch: Fetch) -> Path:
    """A folder of this process with the files that the scenario names, fetched once."""
    key = tuple(sorted(shared.files.items()))
    if key not in _folders:
        folder = Path(tempfile.mkdtemp(prefix="segue-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        unpack(folder, shared.files, fetch)
        _folders[key] = folder
    return _folders[key]


def unpack(folder: Path, files: Mapping[str, str], fetch: Fetch) -> None:
    """Write files into a folder, from where they have their names.

    Raises:
        RunError: One is not what its digest says.
    """
    for name, digest in files.items():
        content = fetch(digest)
        if digest_of(content) != digest:
            raise RunError(f"{name}: was changed on its way")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

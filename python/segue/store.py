"""Results of runs, kept: what has been run with the same program is not run again.

A store is a folder: `runs.sqlite3` has what runs measured, `frames/` their tables as Parquet files. A result goes by
all that it follows from: the scenario with its overrides and the files that it names, the seed, the conditions, and
the program, down to the bytes of the simulator. It is there from the moment the run ends, whatever happens to the
process afterwards.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import time
import weakref
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from segue import _native
from segue.running import Progress, Run, available_threads

Kept = TypeVar("Kept")

FOLDER_VARIABLE = "SEGUE_STORE"
"""The environment variable that says where the store of `segue reproduce` is."""
LIMIT_BYTES = 4 << 30
"""What that store has at most: what was not used for longest goes."""

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS run (
        identity BLOB PRIMARY KEY,
        made_at REAL NOT NULL,
        used_at REAL NOT NULL,
        bytes INTEGER NOT NULL,
        frames TEXT NOT NULL,
        metrics BLOB NOT NULL,
        scenario BLOB NOT NULL,
        verdicts TEXT NOT NULL,
        junit TEXT NOT NULL
    ) WITHOUT ROWID
"""
_VERSION = 1
_PARTS = "making-"


@dataclass(frozen=True, slots=True)
class Counts:
    """How results came about: made now, found in the store, or the same as another that was asked for."""

    made: int = 0
    found: int = 0
    same: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.made + other.made, self.found + other.found, self.same + other.same)


@dataclass(frozen=True, slots=True)
class StoredResult:
    """What `segue.Run` asks of a result, without a simulator behind it."""

    metrics_json: str
    scenario_toml: str
    verdicts: list[tuple[str, bool, str]]
    junit: str
    table_names: list[str]

    @property
    def capture_names(self) -> list[str]:
        """None are kept."""
        return []

    def table(self, _name: str) -> None:
        """None is in memory: they are files."""


class Store:
    """Results in a folder. Several processes may use it at a time."""

    def __init__(self, folder: Path, *, limit_bytes: int | None = None) -> None:
        """Open the store, or begin one.

        Args:
            folder: Where it is, or is to be.
            limit_bytes: What is kept at most; all, if left out.

        Raises:
            OSError: It cannot be read or written, or is none of ours.
        """
        self.folder = folder
        self._limit = limit_bytes
        self._opened_at = time.time()
        (folder / "frames").mkdir(parents=True, exist_ok=True)
        path = folder / "runs.sqlite3"
        try:
            self._runs = sqlite3.connect(path, timeout=60, isolation_level=None)
            self._runs.execute("PRAGMA journal_mode = WAL")
            self._runs.execute("PRAGMA synchronous = NORMAL")
            (version,) = self._runs.execute("PRAGMA user_version").fetchone()
            if version not in (0, _VERSION):
                raise OSError(f"{path}: version {version} of the store: expected {_VERSION}")
            self._runs.execute(_SCHEMA)
            self._runs.execute(f"PRAGMA user_version = {_VERSION}")
        except sqlite3.Error as error:
            raise OSError(f"{path}: {error}") from error
        self._remove_abandoned()
        self._parts = Path(tempfile.mkdtemp(prefix=_PARTS, dir=folder))
        lock = os.open(self._parts, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        self._end = weakref.finalize(self, _close, self._runs, self._parts, lock)

    def close(self) -> None:
        """Let go of it. Runs whose tables are here can be read on."""
        self._end()

    def __len__(self) -> int:
        (count,) = self._runs.execute("SELECT count(*) FROM run").fetchone()
        return int(count)

    def keep_of_jobs(
        self,
        jobs: Sequence[_native.Job],
        keep: Callable[[Run], Kept],
        *,
        threads: int | None = None,
        progress: Progress | None = None,
        fresh: bool = False,
    ) -> tuple[list[Kept], Counts]:
        """As `segue.running.keep_of_jobs`, for what is not here yet; `keep` is called once for jobs that are the same.

        Args:
            jobs: From `segue.running.job`.
            keep: Called with each run, in this thread.
            threads: As many as this process may use, if left out.
            progress: Told how far it has come, of all jobs that differ.
            fresh: Make all of them, but what has been made since the store was opened.
        """
        identities = [_identity(one) for one in jobs]
        distinct = dict(zip(identities, jobs, strict=True))
        kept: dict[bytes, Kept] = {}
        for identity in distinct:
            if (run := self._find(identity, made_since=self._opened_at if fresh else 0.0)) is not None:
                kept[identity] = keep(run)
        found = len(kept)
        missing = [identity for identity in distinct if identity not in kept]

        def take(index: int, native: _native.Run) -> None:
            kept[missing[index]] = keep(self._put(missing[index], native, self._part(index)))

        def tell(done: int, _total: int) -> None:
            if progress is not None:
                progress(found + done, len(distinct))

        wanted = [
            distinct[identity].tracing_into(self._part(index)) if distinct[identity].traces else distinct[identity]
            for index, identity in enumerate(missing)
        ]
        _native.run_many(wanted, threads or available_threads(), tell, take)
        self._trim()
        counts = Counts(len(missing), found, len(jobs) - len(distinct))
        return [kept[identity] for identity in identities], counts

    def _part(self, index: int) -> Path:
        return self._parts / str(index)

    def _frames(self, identity: bytes) -> Path:
        return self.folder / "frames" / identity.hex()

    def _find(self, identity: bytes, *, made_since: float) -> Run | None:
        row = self._runs.execute(
            "SELECT frames, metrics, scenario, verdicts, junit FROM run WHERE identity = ? AND made_at >= ?",
            (identity, made_since),
        ).fetchone()
        if row is None:
            return None
        frames, metrics, scenario, verdicts, junit = row
        names = frames.split()
        folder = self._frames(identity)
        # whoever cleans up a cache may have taken files, and left the row
        if not all((folder / f"{name}.parquet").is_file() for name in names):
            return None
        self._runs.execute("UPDATE run SET used_at = ? WHERE identity = ?", (time.time(), identity))
        stored = StoredResult(
            zlib.decompress(metrics).decode(),
            zlib.decompress(scenario).decode(),
            [(condition, holds, text) for condition, holds, text in json.loads(verdicts)],
            junit,
            names,
        )
        return Run(stored, trace_folder=folder if names else None)

    def _put(self, identity: bytes, native: _native.Run, part: Path) -> Run:
        """Keep a run, whose tables are in `part` if it has any."""
        names = native.table_names
        folder = self._frames(identity)
        if names:
            # the one before is the same; whoever reads it has it open
            with contextlib.suppress(FileNotFoundError):
                folder.rename(part.with_suffix(".old"))
            part.rename(folder)
        metrics = zlib.compress(native.metrics_json.encode(), 1)
        scenario = zlib.compress(native.scenario_toml.encode(), 1)
        size = len(metrics) + len(scenario) + sum((folder / f"{name}.parquet").stat().st_size for name in names)
        now = time.time()
        self._runs.execute(
            "INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (identity, now, now, size, " ".join(names), metrics, scenario, json.dumps(native.verdicts), native.junit),
        )
        return Run(native, trace_folder=folder if names else None)

    def _trim(self) -> None:
        """Forget what was not used for longest, until it is a tenth below the limit; nothing that is in use here."""
        if self._limit is None:
            return
        (size,) = self._runs.execute("SELECT coalesce(sum(bytes), 0) FROM run").fetchone()
        if size <= self._limit:
            return
        oldest = self._runs.execute(
            "SELECT identity, bytes FROM run WHERE used_at < ? ORDER BY used_at", (self._opened_at,)
        ).fetchall()
        for identity, own in oldest:
            if size <= 0.9 * self._limit:
                break
            self._runs.execute("DELETE FROM run WHERE identity = ?", (identity,))
            shutil.rmtree(self._frames(identity), ignore_errors=True)
            size -= own

    def _remove_abandoned(self) -> None:
        """What processes were making that are no more."""
        for folder in self.folder.glob(f"{_PARTS}*"):
            with contextlib.suppress(FileNotFoundError, BlockingIOError):
                lock = os.open(folder, os.O_RDONLY)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(lock)


def default_folder() -> Path | None:
    """Where `segue reproduce` has its results: `SEGUE_STORE` (none if empty), or `segue` in the user's cache."""
    given = os.environ.get(FOLDER_VARIABLE)
    if given is not None:
        return Path(given) if given else None
    cached = os.environ.get("XDG_CACHE_HOME")
    return (Path(cached) if cached else Path.home() / ".cache") / "segue"


def _identity(job: _native.Job) -> bytes:
    return hashlib.blake2b(job.identity(), digest_size=32, key=_program()).digest()


@cache
def _program() -> bytes:
    """A digest of the simulator: what two builds of it make may differ."""
    with Path(_native.__file__).open("rb") as file:
        return hashlib.file_digest(file, "blake2b").digest()


def _close(runs: sqlite3.Connection, parts: Path, lock: int) -> None:
    runs.close()
    shutil.rmtree(parts, ignore_errors=True)
    os.close(lock)

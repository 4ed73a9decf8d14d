"""Results of runs, kept: what has been run with the same program is not run again.

A store is a folder of this machine: `runs.sqlite3` has what runs measured, `frames/` their tables as Parquet files. A
result goes by all that it follows from: the scenario with its overrides and the files that it names, the seed, the
conditions, and the program, down to the bytes of the simulator. What has been told as done is there, whatever happens
to the process afterwards.

Each process has a folder of its own beside that, `session-*`, with a lock: the tables of the runs that it has in hand
are there under other names (hard links), so that nobody takes them away.
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
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from segue import _native
from segue.running import Kept, Progress, Run, available_threads

FOLDER_VARIABLE = "SEGUE_STORE"
"""The environment variable that says where the store of `segue reproduce` is."""
LIMIT_BYTES = 4 << 30
"""From where on what was not used for longest goes from that store, when it is opened and after it was used."""
LEAST_FREE_BYTES = 1 << 30
"""With less room than this on its disk, there is no store: tables of runs would fill it."""
FORGOTTEN_S = 3600.0
"""Tables that belong to no result go at this age: the process that made them was killed before it had said so."""

_APPLICATION = 0x5E60E
_VERSION = 1
_DAMAGE = (zlib.error, ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What comes of a row that somebody, or a failing disk, has changed."""
PATIENCE_S = 10.0
"""For how long another process is waited for, which has the store for some milliseconds at a time."""
SILENCE_S = 1.0
"""For how long without a word."""
_SCHEMA = """
    CREATE TABLE run (
        identity BLOB PRIMARY KEY,
        made_at REAL NOT NULL,
        used_at REAL NOT NULL,
        bytes INTEGER NOT NULL,
        folder TEXT NOT NULL,
        tables TEXT NOT NULL,
        metrics BLOB NOT NULL,
        scenario BLOB NOT NULL,
        verdicts TEXT NOT NULL,
        junit TEXT NOT NULL
    ) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Counts:
    """How results came about: made now, found in the store, or the same as another of this store's time."""

    made: int = 0
    found: int = 0
    same: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.made + other.made, self.found + other.found, self.same + other.same)

    @property
    def asked(self) -> int:
        """All of them."""
        return self.made + self.found + self.same


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

    def __init__(
        self, folder: Path, *, limit_bytes: int | None = None, tell: Callable[[str], object] = warnings.warn
    ) -> None:
        """Open the store, or begin one.

        Args:
            folder: Where it is, or is to be.
            limit_bytes: From where on what was not used for longest goes; never, if left out.
            tell: Told, once each, if the store fails, and if another process is waited for.

        Raises:
            OSError: It cannot be read or written, has no room, or is none of ours.
        """
        self.folder = folder
        self._limit = limit_bytes
        self._tell = tell
        self._opened_at = time.time()
        _check_loaded()
        (folder / "frames").mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(folder).free < LEAST_FREE_BYTES:
            raise OSError(f"{folder}: expected {LEAST_FREE_BYTES >> 30} GiB of room on its disk")
        self._runs = _open(folder / "runs.sqlite3", tell)
        self._session = _Session(folder)
        self._failed = False
        self._found_damage = False
        self._remove_forgotten()
        self._trim()

    def __len__(self) -> int:
        (count,) = self._runs.execute("SELECT count(*) FROM run").fetchone()
        return int(count)

    def close(self) -> None:
        """Let go of it; tables of its runs are not to be had afterwards."""
        self._runs.close()
        self._session.end()

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

        Arguments and errors are those of `take_of_jobs`.
        """
        kept: dict[int, Kept] = {}

        def take(index: int, run: Run) -> None:
            kept[index] = keep(run)

        first, counts = self.take_of_jobs(jobs, take, threads=threads, progress=progress, fresh=fresh)
        return [kept[index] for index in first], counts

    def take_of_jobs(
        self,
        jobs: Sequence[_native.Job],
        take: Callable[[int, Run], object],
        *,
        threads: int | None = None,
        progress: Progress | None = None,
        fresh: bool = False,
    ) -> tuple[list[int], Counts]:
        """Have the runs of jobs taken: those that are here, then the others as they end.

        If the store fails (its disk is full, say) that is told, and the rest is made without it.

        Args:
            jobs: From `segue.running.job`.
            take: Called in this thread with each run and the number of its job, the first of those that are the same;
                what it raises ends the runs, of which those that ended are here.
            threads: As many as this process may use, if left out.
            progress: Told how far it has come, of all jobs that differ.
            fresh: Make all of them, but what has been made since the store was opened.

        Returns:
            Of each job the number of the first that is the same; how the results came about.

        Raises:
            ValueError: A job writes files of its own.
        """
        if any(one.writes_files for one in jobs):
            raise ValueError("a job with a folder for tables or captures: expected one without")
        threads = threads or available_threads()
        identities = [_identity(one) for one in _native.identities(jobs, threads)]
        first: dict[bytes, int] = {}
        for index, identity in enumerate(identities):
            first.setdefault(identity, index)
        missing = []
        earlier = 0
        for identity, index in first.items():
            run, made_at = self._find(identity, made_since=self._opened_at if fresh else 0.0)
            if run is None:
                missing.append(index)
            else:
                take(index, run)
                earlier += made_at < self._opened_at
        found = len(first) - len(missing)
        parts = [self._part() if jobs[index].traces else None for index in missing]

        def put(number: int, native: _native.Run) -> None:
            index = missing[number]
            take(index, self._put(identities[index], native, parts[number]))

        def tell(done: int, _total: int) -> None:
            if progress is not None:
                progress(found + done, len(first))

        wanted = [
            jobs[index] if part is None else jobs[index].tracing_into(part)
            for index, part in zip(missing, parts, strict=True)
        ]
        try:
            _native.run_many(wanted, threads, tell, put)
        finally:
            self._trim()
        counts = Counts(len(missing), earlier, len(jobs) - len(missing) - earlier)
        return [first[identity] for identity in identities], counts

    def _find(self, identity: bytes, *, made_since: float) -> tuple[Run | None, float]:
        """The run, if it is here whole, and when it was made."""
        row = None
        with self._going_on():
            row = self._runs.execute(
                "SELECT made_at, bytes, folder, tables, metrics, scenario, verdicts, junit FROM run"
                " WHERE identity = ? AND made_at >= ?",
                (identity, made_since),
            ).fetchone()
        if row is None:
            return None, 0.0
        made_at, *kept = row
        try:
            made_at = float(made_at)
            run = self._restored(*kept)
        except _DAMAGE as error:
            self._drop(identity, error)
            return None, 0.0
        if run is None:
            return None, 0.0
        with self._going_on():
            self._runs.execute("UPDATE run SET used_at = ? WHERE identity = ?", (time.time(), identity))
        return run, made_at

    def _restored(
        self, size: int, folder: str, tables: str, metrics: bytes, scenario: bytes, verdicts: str, junit: str
    ) -> Run | None:
        """The run of a row, unless files of it are missing or another has taken its place.

        Raises:
            One of `_DAMAGE`: The row is not what was written.
        """
        stored = StoredResult(
            zlib.decompress(metrics).decode(),
            zlib.decompress(scenario).decode(),
            [(condition, holds, text) for condition, holds, text in json.loads(verdicts)],
            junit,
            tables.split(),
        )
        lengths = [len(metrics), len(scenario)]
        part = None
        if stored.table_names:
            try:
                part = self._session.part()
                lengths += [_link(self._frames(folder), part, name) for name in stored.table_names]
            except OSError:
                # whoever cleans up a cache may have taken files, and left the row
                return None
        # or the machine may have gone down before all of them were written
        if sum(lengths) != size:
            return None
        run = Run(stored, trace_folder=part, holds=self._session)
        # read now, when there is another way to have them
        _ = run.metrics
        return run

    def _drop(self, identity: bytes, error: Exception) -> None:
        """Forget a result that is damaged, which is said once."""
        with self._going_on():
            self._runs.execute("DELETE FROM run WHERE identity = ?", (identity,))
        if not self._found_damage:
            self._tell(f"{self.folder}: damaged results are made anew: {type(error).__name__}: {error}")
        self._found_damage = True

    def _put(self, identity: bytes, native: _native.Run, part: Path | None) -> Run:
        """Keep a run, whose tables are in `part` if it has any; one that is here already is replaced."""
        if part is None and native.table_names:
            # there was no room for them but in memory
            return Run(native)
        with self._going_on():
            metrics = zlib.compress(native.metrics_json.encode(), 1)
            scenario = zlib.compress(native.scenario_toml.encode(), 1)
            names = native.table_names
            folder = ""
            size = len(metrics) + len(scenario)
            if part is not None:
                own = Path(tempfile.mkdtemp(prefix=f"{identity.hex()[:16]}-", dir=self.folder / "frames"))
                folder = own.name
                size += sum(_link(part, own, name) for name in names)
            before = self._runs.execute("SELECT folder FROM run WHERE identity = ?", (identity,)).fetchone()
            now = time.time()
            self._runs.execute(
                "INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (identity, now, now, size, folder, " ".join(names), metrics, scenario, json.dumps(native.verdicts),
                 native.junit),
            )  # fmt: skip
            if before is not None:
                self._remove_frames(before[0])
        return Run(native, trace_folder=part, holds=self._session)

    def _frames(self, folder: str) -> Path:
        """The tables of a row.

        Raises:
            ValueError: What the row has is no name of a folder of this store.
        """
        if Path(folder).name != folder or folder in ("", ".."):
            raise ValueError(f"{folder}: expected the name of a folder")
        return self.folder / "frames" / folder

    def _remove_frames(self, folder: str) -> None:
        """Remove the tables of a row, if it has any: nothing outside of the store, whatever the row says."""
        with contextlib.suppress(ValueError, TypeError):
            shutil.rmtree(self._frames(folder), ignore_errors=True)

    def _part(self) -> Path | None:
        """A folder for tables of a run, if there can be one; else they stay in memory."""
        try:
            return self._session.part()
        except OSError as error:
            self._fail(error)
            return None

    def _trim(self) -> None:
        """Forget what was not used for longest until it is a tenth below the limit, but what was used since opening."""
        if self._limit is None:
            return
        with self._going_on():
            (size,) = self._runs.execute("SELECT coalesce(sum(bytes), 0) FROM run").fetchone()
            if size <= self._limit:
                return
            oldest = self._runs.execute(
                "SELECT identity, used_at, bytes, folder FROM run WHERE used_at < ? ORDER BY used_at",
                (self._opened_at,),
            ).fetchall()
            for identity, used_at, own, folder in oldest:
                if size <= 0.9 * self._limit:
                    break
                # somebody else may have used it by now
                gone = self._runs.execute("DELETE FROM run WHERE identity = ? AND used_at = ?", (identity, used_at))
                if gone.rowcount:
                    size -= own
                    self._remove_frames(folder)

    def _remove_forgotten(self) -> None:
        """Tables that belong to no result."""
        with self._going_on():
            known = {folder for (folder,) in self._runs.execute("SELECT folder FROM run")}
            for folder in (self.folder / "frames").iterdir():
                if folder.name not in known and time.time() - folder.stat().st_mtime > FORGOTTEN_S:
                    shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def _going_on(self) -> Iterator[None]:
        """Whatever goes wrong with the store is said once, and results are had without it."""
        try:
            yield
        except (sqlite3.Error, UnicodeError, OSError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self._failed:
            self._tell(f"{self.folder}: results are not kept: {error}")
        self._failed = True


class _Session:
    """The folder of a process, which is its own as long as it has the lock."""

    def __init__(self, store: Path) -> None:
        _remove_abandoned(store)
        self._lock, lock = _locked(store)
        self._folder = Path(lock).with_suffix("")
        self._folder.mkdir()
        self._count = 0
        self.end = weakref.finalize(self, _end, self._folder, Path(lock), self._lock, os.getpid())

    def part(self) -> Path:
        """A folder for tables of a run, which is there while the session is."""
        self._count += 1
        part = self._folder / str(self._count)
        part.mkdir()
        return part


def default_folder() -> Path | None:
    """Where `segue reproduce` has its results: `SEGUE_STORE` (none if empty), or `segue` in the user's cache.

    Raises:
        RuntimeError: The user has no home.
    """
    given = os.environ.get(FOLDER_VARIABLE)
    if given is not None:
        return Path(given) if given else None
    cached = os.environ.get("XDG_CACHE_HOME")
    return (Path(cached) if cached else Path.home() / ".cache") / "segue"


class _Results(sqlite3.Connection):
    """A connection that waits for other processes, and says so, once, when that takes long."""

    def __init__(self, path: Path, tell: Callable[[str], object]) -> None:
        super().__init__(path, timeout=SILENCE_S, isolation_level=None, check_same_thread=False)
        self._waiting = f"{path.parent}: another process has it, which is waited for ({PATIENCE_S:g} s at most)"
        self._tell = tell
        self._has_told = False

    def execute(self, *arguments: Any) -> sqlite3.Cursor:  # noqa: ANN401 -- as sqlite3 has it
        """As `sqlite3.Connection.execute`."""
        try:
            return super().execute(*arguments)
        except sqlite3.OperationalError as error:
            if self._has_told or error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
        self._has_told = True
        self._tell(self._waiting)
        super().execute(f"PRAGMA busy_timeout = {round(1000 * (PATIENCE_S - SILENCE_S))}")
        return super().execute(*arguments)


def _open(path: Path, tell: Callable[[str], object]) -> sqlite3.Connection:
    """The results, which are left as they are if they are not ours."""
    with contextlib.ExitStack() as stack:
        try:
            runs = _Results(path, tell)
            stack.callback(runs.close)
            runs.execute("BEGIN IMMEDIATE")
            (application,) = runs.execute("PRAGMA application_id").fetchone()
            (version,) = runs.execute("PRAGMA user_version").fetchone()
            (tables,) = runs.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if (application, version, tables) == (0, 0, 0):
                runs.execute(_SCHEMA)
                runs.execute(f"PRAGMA application_id = {_APPLICATION}")
                runs.execute(f"PRAGMA user_version = {_VERSION}")
            elif application != _APPLICATION:
                raise OSError(f"{path}: expected a store of results, or nothing")
            elif version != _VERSION:
                raise OSError(f"{path}: version {version} of the store: expected {_VERSION}")
            runs.execute("COMMIT")
            runs.execute("PRAGMA journal_mode = WAL")
            runs.execute("PRAGMA synchronous = NORMAL")
        # what sqlite3 says of a damaged file may be no text
        except (sqlite3.Error, UnicodeError) as error:
            raise OSError(f"{path}: {error}") from error
        stack.pop_all()
    return runs


def _identity(of_job: bytes) -> bytes:
    """What the result of a job goes by: its own identity, and the program."""
    return hashlib.blake2b(of_job, digest_size=32, key=_program()).digest()


@cache
def _program() -> bytes:
    """A digest of the simulator: what two builds of it make may differ."""
    with Path(_native.__file__).open("rb") as file:
        return hashlib.file_digest(file, "blake2b").digest()


def _check_loaded() -> None:
    """Make sure that the simulator in memory is the one on the disk, by whose digest results go."""
    path = Path(_native.__file__)
    maps = Path("/proc/self/maps")
    if not maps.is_file():
        return
    # address, mode, offset, device, inode, path
    inodes = {line.split()[4] for line in maps.read_text().splitlines() if line.endswith(path.name)}
    if str(path.stat().st_ino) not in inodes:
        raise OSError(f"{path}: was replaced since it was loaded")


def _link(place: Path, to: Path, name: str) -> int:
    """The file of a table is in two places from now on; its length."""
    file = to / f"{name}.parquet"
    file.hardlink_to(place / f"{name}.parquet")
    return file.stat().st_size


def _locked(store: Path) -> tuple[int, str]:
    """A lock that nobody else has: its descriptor and file."""
    while True:
        lock, name = tempfile.mkstemp(prefix="session-", suffix=".lock", dir=store)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # whoever looked for abandoned ones may have been faster
        with contextlib.suppress(FileNotFoundError):
            if Path(name).stat().st_ino == os.fstat(lock).st_ino:
                return lock, name
        os.close(lock)


def _remove_abandoned(store: Path) -> None:
    """Folders of processes that are no more."""
    for name in store.glob("session-*.lock"):
        # somebody else's, who works with it
        with contextlib.suppress(OSError):
            lock = os.open(name, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(name.with_suffix(""), ignore_errors=True)
                name.unlink()
            finally:
                os.close(lock)


def _end(folder: Path, name: Path, lock: int, pid: int) -> None:
    # a child that was forked has its parent's session, not one of its own
    if os.getpid() != pid:
        return
    shutil.rmtree(folder, ignore_errors=True)
    name.unlink(missing_ok=True)
    os.close(lock)

"""Runs in files: all that there is of one, in one file that another session, or somebody else, loads again."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import weakref
import zipfile
import zlib
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from segue import _native
from segue.output import write_file
from segue.running import Run

if TYPE_CHECKING:
    import polars as pl

FORMAT = 1
"""What is in a file of a run: a ZIP with `run.json` (this number, the version of segue, verdicts, names),
`metrics.json`, `scenario.toml`, `junit.xml`, `tables/*.parquet` and `captures/*.pcapng`."""

LARGEST = 4 << 30
"""No part of a file is taken to be larger, bytes."""


class Saved:
    """What a file has of a run, in the place of the simulator's own result."""

    def __init__(self, content: bytes, source: str) -> None:
        """Raises ScenarioError: It is no file of a run, or of another format."""
        self._source = source
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
            self._head = json.loads(self._part("run.json"))
        except (zipfile.BadZipFile, ValueError) as error:
            raise self._refused(str(error)) from None
        if not isinstance(self._head, dict) or self._head.get("format") != FORMAT:
            raise self._refused("another format")
        lists = [self._head.get(name) for name in ("verdicts", "tables", "captures")]
        if not all(isinstance(one, list) for one in lists):
            raise self._refused("run.json is not whole")
        parts = ["metrics.json", "scenario.toml", "junit.xml"]
        parts += [f"tables/{name}.parquet" for name in self.table_names]
        parts += [f"captures/{name}" for name in self.capture_names]
        if missing := set(parts) - set(self._archive.namelist()):
            raise self._refused(f"{min(missing)} is missing")

    def _refused(self, why: str) -> _native.ScenarioError:
        return _native.ScenarioError(f"{self._source}: {why}: expected a file that Run.save of this segue has written")

    def _part(self, name: str) -> bytes:
        try:
            if self._archive.getinfo(name).file_size > LARGEST:
                raise self._refused(f"{name} is larger than {LARGEST} bytes")
            return self._archive.read(name)
        # what the library says of damaged and of encrypted parts, and of methods that it has not
        except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, RuntimeError) as error:
            raise self._refused(f"{name}: {error}") from None

    def _text(self, name: str) -> str:
        try:
            return self._part(name).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._refused(f"{name}: {error}") from None

    @cached_property
    def metrics_json(self) -> str:
        """Metrics as one JSON document."""
        return self._text("metrics.json")

    @cached_property
    def scenario_toml(self) -> str:
        """The scenario as run."""
        return self._text("scenario.toml")

    @property
    def verdicts(self) -> list[tuple[str, bool, str]]:
        """Of each condition: it, whether it holds, and both in words."""
        return [(str(condition), bool(holds), str(text)) for condition, holds, text in self._head["verdicts"]]

    @cached_property
    def junit(self) -> str:
        """The conditions as test cases."""
        return self._text("junit.xml")

    @property
    def table_names(self) -> list[str]:
        """Names of the frames."""
        return [str(name) for name in self._head["tables"]]

    @property
    def capture_names(self) -> list[str]:
        """Names of the captures."""
        return [str(name) for name in self._head["captures"]]

    def table(self, name: str) -> pl.DataFrame | None:
        """A frame; None if there is none of that name."""
        import polars as pl

        if name not in self.table_names:
            return None
        try:
            return pl.read_parquet(io.BytesIO(self._part(f"tables/{name}.parquet")))
        except pl.exceptions.PolarsError as error:
            raise self._refused(f"tables/{name}.parquet: {error}") from None

    def unpack_captures(self, folder: Path) -> None:
        """Writes the captures into a folder."""
        for name in self.capture_names:
            # a name is no path out of the folder
            (folder / Path(name).name).write_bytes(self._part(f"captures/{name}"))


def to_bytes(run: Run) -> bytes:
    """All that there is of a run, as `Run.save` writes it."""
    content = io.BytesIO()
    captures = run.captures()
    head = {
        "format": FORMAT,
        "segue": _native.__version__,
        "verdicts": [[one.condition, one.holds, one.text] for one in run.verdicts],
        "tables": run.table_names,
        "captures": [name for name, _ in captures],
    }
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, part: str | bytes, method: int = zipfile.ZIP_DEFLATED) -> None:
            # the same run is the same file, whenever it is saved
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = method
            archive.writestr(info, part)

        add("run.json", json.dumps(head))
        add("metrics.json", run.metrics_json)
        add("scenario.toml", run.scenario_toml)
        add("junit.xml", run.junit)
        for name in run.table_names:
            table = io.BytesIO()
            run.frame(name).write_parquet(table)
            add(f"tables/{name}.parquet", table.getvalue(), zipfile.ZIP_STORED)
        for name, capture in captures:
            add(f"captures/{name}", capture)
    return content.getvalue()


def from_bytes(content: bytes, source: str = "<bytes>") -> Run:
    """The run that `to_bytes` has made this of.

    Raises:
        ScenarioError: It has not; `source` names it then.
    """
    saved = Saved(content, source)
    if not saved.capture_names:
        return Run(saved)
    folder = Path(tempfile.mkdtemp(prefix="segue-"))
    try:
        saved.unpack_captures(folder)
        run = Run(saved, pcap_folder=folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(run, shutil.rmtree, str(folder), ignore_errors=True)
    return run


def save(run: Run, path: str | Path) -> Path:
    """Write a run into one file; see `Run.save`."""
    return write_file(Path(path), to_bytes(run))


def load(path: str | Path) -> Run:
    """The run that `Run.save` has written into a file: metrics, frames, captures, as they were.

    Raises:
        ScenarioError: It is no such file.
        OSError: It cannot be read.

    >>> load("no run")
    Traceback (most recent call last):
      ...
    FileNotFoundError: [Errno 2] No such file or directory: 'no run'
    """
    return from_bytes(Path(path).read_bytes(), str(path))

"""Rows of a sweep that is going on, as Parquet files in a folder: those of a cluster are there as they come."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from segue._native import ScenarioError, __version__
from segue.output import write_file
from segue.sweeps.columns import Row, schema
from segue.sweeps.plan import Plan, Task
from segue.sweeps.worker import digest_of

OF = "sweep.json"
"""Says which sweep the parts are of."""


class Parts:
    """A folder of parts; it is made with the first of them."""

    def __init__(self, folder: Path, plan: Plan, files: Mapping[str, str], self_test: str) -> None:
        """A folder that is empty, not there, or of the same sweep.

        Args:
            folder: The folder.
            plan: What is run; how many seeds there are is no part of that.
            files: Digests of the files that the scenario names.
            self_test: Of the program.

        Raises:
            ScenarioError: It has parts of another sweep.
        """
        self._folder = folder
        self._plan = plan
        self._count = 0
        self._of = json.dumps({"of": _digest(plan, files, self_test)})
        named = folder / OF
        there = named.read_text(encoding="utf-8", errors="replace") if named.is_file() else None
        if there is None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ScenarioError(f"{folder}: expected a folder with parts of this sweep, or none")
        if there is not None and there != self._of:
            raise ScenarioError(f"{folder}: has parts of another sweep: remove it, or give another --out")

    def read(self, tell: Callable[[str], object] = warnings.warn) -> dict[Task, Row]:
        """The rows that are there. A part that is damaged is told of, and removed: its runs are made again."""
        import polars as pl

        rows: dict[Task, Row] = {}
        paths = sorted(self._folder.glob("part-*.parquet"))
        self._count = len(paths)
        for path in paths:
            content = path.read_bytes()
            # before it is read: what is damaged may make polars panic, or be read as something else
            if path.name.rpartition("-")[2] != _ending(content):
                tell(f"{path}: is damaged, and its runs are made again")
                path.unlink()
                continue
            for row in pl.read_parquet(io.BytesIO(content)).to_dicts():
                rows[row.pop("point"), row.pop("seed")] = row
        return rows

    def add(self, tasks: Sequence[Task], rows: Sequence[Row]) -> None:
        """Write rows as another part, with a digest of it in its name."""
        import polars as pl

        if not (self._folder / OF).is_file():
            write_file(self._folder / OF, self._of)
        types: dict[str, pl.DataType] = {"point": pl.UInt64(), "seed": pl.UInt64()}
        types |= schema(self._plan.extra, rows)
        table = [{"point": point, "seed": seed, **row} for (point, seed), row in zip(tasks, rows, strict=True)]
        frame = pl.DataFrame([{name: row.get(name) for name in types} for row in table], schema=types, strict=False)
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        content = buffer.getvalue()
        write_file(self._folder / f"part-{self._count:06}-{_ending(content)}", content)
        self._count += 1


def remove(folder: Path) -> None:
    """Remove the parts of a sweep whose results are written."""
    if (folder / OF).is_file():
        shutil.rmtree(folder, ignore_errors=True)


def _ending(content: bytes) -> str:
    return f"{digest_of(content)[:16]}.parquet"


def _digest(plan: Plan, files: Mapping[str, str], self_test: str) -> str:
    what = (
        __version__, self_test, plan.scenario.text, sorted(files.items()), sorted(plan.fixed.items()),
        [(axis.key, axis.settings) for axis in plan.axes], plan.extra,
    )  # fmt: skip
    return hashlib.blake2b(repr(what).encode(), digest_size=32).hexdigest()

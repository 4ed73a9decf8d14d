"""Documents of runs in a directory: a comparison that was stopped goes on from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from segue.lab.record import files_of
from segue.lab.trials.plan import Combination
from segue.output import write_file
from segue.running import job

INDEX = "index.json"


class Documents:
    """What runs said, `SCHEME-EVENT-N.json`, and `index.json`: what of, by a digest of all that decides about a run.

    The index has a digest of what is kept of each run, too: what was damaged since is not taken.

    Frames of a run, if they are recorded, are in the folder `SCHEME-EVENT-N`. Without a directory nothing is kept.
    """

    def __init__(self, directory: Path | None, program: str, *, predict: bool, conditions: Sequence[str]) -> None:
        self._directory = directory
        self._common = [_digest(Path(program).read_bytes()), predict, list(conditions)]
        self._index: dict[str, str] = {}
        self._begun: dict[str, str] = {}
        if directory is not None and (directory / INDEX).is_file():
            self._index = _read(directory / INDEX)

    def folder(self, combination: Combination, number: int) -> Path | None:
        """Where the frames of a run go, if it is to be recorded and there is a directory."""
        if self._directory is None or not combination.is_recorded:
            return None
        return self._directory / f"{combination.name}-{number}"

    def find(self, combination: Combination, number: int) -> str | None:
        """The document of the very same run, if there is one.

        Raises:
            ScenarioError: A file that the scenario names cannot be read any more.
        """
        name = _name(combination, number)
        if self._directory is None or name not in self._index:
            return None
        try:
            content = (self._directory / name).read_bytes()
            known = self._entry(combination, number, self._digest(combination, number), content)
        except OSError:
            return None
        return content.decode() if self._index[name] == known else None

    def put(self, combination: Combination, number: int, document: str) -> None:
        """Keep what a run said that has begun; it is whole before the index names it.

        Raises:
            OSError: It cannot be written.
        """
        if self._directory is None:
            return
        name = _name(combination, number)
        write_file(self._directory / name, document)
        self._index[name] = self._entry(combination, number, self._begun[name], document.encode())
        self._write_index(self._directory)

    def begin(self, combination: Combination, number: int) -> None:
        """A run begins: what is kept of it is no longer whole.

        Raises:
            OSError: The index cannot be written.
            ScenarioError: A file that the scenario names cannot be read any more.
        """
        if self._directory is None:
            return
        name = _name(combination, number)
        # of the files as they are when it begins: they may be changed while it goes on
        self._begun[name] = self._digest(combination, number)
        if self._index.pop(name, None) is not None:
            self._write_index(self._directory)

    def _write_index(self, directory: Path) -> None:
        write_file(directory / INDEX, json.dumps(self._index, indent=1, sort_keys=True) + "\n")

    def _entry(self, combination: Combination, number: int, run: str, document: bytes) -> str:
        """What the index has of a run: which it is, and what is kept of it."""
        folder = self.folder(combination, number)
        files = [] if folder is None else [_digest_of_file(file) for file in files_of(folder)]
        return f"{run} {_digest(json.dumps([_digest(document), *files]).encode())}"

    def _digest(self, combination: Combination, number: int) -> str:
        """Of all that decides about a run: as in `segue.store`, with what is in the files that the scenario names."""
        one = job(combination.scenario, combination.settings, seed=combination.seed + number - 1)
        return _digest(json.dumps([*self._common, one.identity().hex()]).encode())


def _name(combination: Combination, number: int) -> str:
    return f"{combination.name}-{number}.json"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest_of_file(file: Path) -> str | None:
    if not file.is_file():
        return None
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _read(file: Path) -> dict[str, str]:
    """An index; of a file that is none nothing is taken."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return {}
    return {str(name): str(entry) for name, entry in found.items()} if isinstance(found, dict) else {}

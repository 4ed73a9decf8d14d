"""What `segue-lab run --record` leaves in a folder: the document, the scenario as run, and the frames."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segue.metrics import Metrics

if TYPE_CHECKING:
    import polars as pl

_Piece = dict[str, list[Any]] | list[dict[str, Any]]

DOCUMENT = "document.json"
TABLES = "tables.jsonl"
SCENARIO = "scenario.toml"


class Record:
    """One run with real hosts, with the frames of `segue.Run`.

    Raises:
        OSError: A file of it is missing.
        ValueError: One is none of `segue-lab`'s.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.document: Mapping[str, Any] = _object((folder / DOCUMENT).read_text(encoding="utf-8"), DOCUMENT)
        self.scenario_toml = (folder / SCENARIO).read_text(encoding="utf-8")
        self.metrics = metrics_of(self.document)
        predicted = self.document.get("prediction")
        self.prediction = None if predicted is None else Metrics.from_json(json.dumps(predicted))

    @property
    def lab(self) -> Mapping[str, Any]:
        """What is the lab's own: lateness, hosts, programs, captures."""
        lab: Mapping[str, Any] = self.document["lab"]
        return lab

    @property
    def packets(self) -> pl.DataFrame:
        """See `segue.Run.packets`."""
        return self._frames["packets"]

    @property
    def windows(self) -> pl.DataFrame:
        """See `segue.Run.windows`: of our SCTP; a kernel does not say."""
        return self._frames["windows"]

    @property
    def signalling(self) -> pl.DataFrame:
        """See `segue.Run.signalling`."""
        return self._frames["signalling"]

    @property
    def positions(self) -> pl.DataFrame:
        """See `segue.Run.positions`."""
        return self._frames["positions"]

    @property
    def cells(self) -> pl.DataFrame:
        """See `segue.Run.cells`."""
        return self._frames["cells"]

    @cached_property
    def _frames(self) -> dict[str, pl.DataFrame]:
        import polars as pl

        schemas = _schemas()
        parts: dict[str, list[pl.DataFrame]] = {name: [pl.DataFrame(schema=schemas[name])] for name in schemas}
        with (self._folder / TABLES).open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                where = f"{TABLES}, line {number}"
                piece = _object(line, where)
                try:
                    for name, schema in schemas.items():
                        columns = _columns(piece[name], piece["nodes"], list(schema))
                        parts[name].append(pl.DataFrame(columns, schema=schema))
                except (AttributeError, IndexError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
                    raise ValueError(f"{where}: expected tables of segue-lab: {error!r}") from None
        return {name: pl.concat(own) for name, own in parts.items()}


def is_whole(folder: Path) -> bool:
    """Whether all files of a record are there."""
    return all(file.is_file() for file in files_of(folder))


def files_of(folder: Path) -> list[Path]:
    """The files of a record."""
    return [folder / name for name in (DOCUMENT, TABLES, SCENARIO)]


def metrics_of(document: Mapping[str, Any]) -> Metrics:
    """The metrics in what `segue-lab run --json` says."""
    own = {name: value for name, value in document.items() if name not in ("lab", "prediction")}
    return Metrics.from_json(json.dumps(own))


def _object(text: str, where: str) -> dict[str, Any]:
    """A JSON object, or else a `ValueError`, also where it is nested too deeply to be read."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: expected JSON: {error}") from None
    if isinstance(found, dict):
        return found
    raise ValueError(f"{where}: expected a JSON object")


def _columns(table: _Piece, nodes: list[str], names: list[str]) -> dict[str, list[Any]]:
    """A piece of a table by columns; of cells there is a row each, and times that come in pairs."""
    if isinstance(table, list):
        table = {name: [row[name] for row in table] for name in names}
        pairs = table["present_s"]
        table["present_s"] = [None if one is None else [end for pair in one for end in pair] for one in pairs]
    if "node" in table:
        table["node"] = [nodes[number] for number in table["node"]]
    return {name: table[name] for name in names}


def _schemas() -> dict[str, dict[str, pl.DataType]]:
    """The frames as the native module has them."""
    import polars as pl

    at: dict[str, pl.DataType] = {"time_ns": pl.UInt64(), "node": pl.String()}
    ends: dict[str, pl.DataType] = {"source": pl.String(), "destination": pl.String()}
    return {
        "packets": {
            **at, "action": pl.String(), "cause": pl.String(), "interface": pl.UInt8(), "packet_id": pl.UInt64(),
            "connection": pl.UInt32(), **ends, "kind": pl.String(), "tsn": pl.UInt32(), "length_bytes": pl.UInt32(),
            "retransmission": pl.Boolean(),
        },
        "windows": {
            **at, "connection": pl.UInt32(), **ends, "cwnd_bytes": pl.UInt32(), "ssthresh_bytes": pl.UInt32(),
            "flightsize_bytes": pl.UInt32(), "rto_ns": pl.UInt64(), "primary": pl.Boolean(),
        },
        "signalling": {**at, "step": pl.UInt8(), "event": pl.String(), "detail": pl.String()},
        "positions": {**at, "x_m": pl.Float64(), "y_m": pl.Float64()},
        "cells": {
            "name": pl.String(), "x_m": pl.Float64(), "y_m": pl.Float64(), "radius_m": pl.Float64(),
            "present_s": pl.List(pl.Float64()),
        },
    }  # fmt: skip

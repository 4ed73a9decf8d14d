"""Files that are not quite those of a sweep, and what is no file at all."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import segue as package
from command import Segue
from segue import ScenarioError
from segue.sweeps.result import METADATA, Sweep

FOREIGN = "expected a Parquet file that segue sweep has written"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    grid = {"l2.latency": "100ms,200ms", "scheme": "sigma,mip6"}
    result = package.sweep("sigma", grid, {"duration": "20 s"}, seeds=1, metrics=["signalling.bytes"])
    return result.write(tmp_path_factory.mktemp("sweep") / "sweep.parquet")


def changed(
    written: Path, to: Path, table: Callable[[pl.DataFrame], pl.DataFrame], head: Callable[[dict[str, Any]], object]
) -> Path:
    """The file with its table and its metadata changed."""
    raw = json.loads(pl.read_parquet_metadata(written)[METADATA])
    new = head(raw)
    text = new if isinstance(new, str) else json.dumps(raw if new is None else new)
    table(pl.read_parquet(written)).write_parquet(to, metadata={METADATA: text})
    return to


def same(frame: pl.DataFrame) -> pl.DataFrame:
    return frame


def test_what_is_changed_in_nothing_is_read(written: Path, tmp_path: Path) -> None:
    path = changed(written, tmp_path / "same.parquet", same, lambda _: None)
    assert Sweep.read(path).frame.equals(pl.read_parquet(written))


def test_a_file_of_before_transfers_could_be_bounds_is_read(written: Path, tmp_path: Path) -> None:
    path = changed(written, tmp_path / "old.parquet", lambda f: f.drop("transfer_time_censored"), lambda _: None)
    found = Sweep.read(path)
    assert "transfer_time_censored" not in found.frame.columns
    assert found.summary("transfer_time").is_empty()
    assert found.summary("interruption").height == 4


TABLES: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "metric dropped": lambda f: f.drop("interruption_s"),
    "bound dropped": lambda f: f.drop("interruption_censored"),
    "seed dropped": lambda f: f.drop("seed"),
    "extra dropped": lambda f: f.drop("signalling.bytes"),
    "axis as words": lambda f: f.with_columns(pl.col("l2_latency_s").cast(pl.String)),
    "axis with nulls": lambda f: f.with_columns(pl.lit(None, pl.Float64).alias("l2_latency_s")),
    "axis with other values": lambda f: f.with_columns(pl.col("l2_latency_s") + 1),
    "words with other values": lambda f: f.with_columns(pl.lit("else").alias("scheme")),
    "metric as lists": lambda f: f.with_columns(pl.concat_list("interruption_s")),
    "metric as words": lambda f: f.with_columns(pl.lit("x").alias("interruption_s")),
    "metric without end": lambda f: f.with_columns(pl.lit(float("inf")).alias("interruption_s")),
    "metric that is no number": lambda f: f.with_columns(pl.lit(float("nan")).alias("interruption_s")),
    "bound as numbers": lambda f: f.with_columns(pl.lit(1.0).alias("interruption_censored")),
    "extra as lists": lambda f: f.with_columns(pl.concat_list("signalling.bytes")),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_is_not_what_its_metadata_say_is_refused(written: Path, tmp_path: Path, name: str) -> None:
    path = changed(written, tmp_path / "other.parquet", TABLES[name], lambda _: None)
    with pytest.raises(ScenarioError, match=FOREIGN):
        Sweep.read(path)


def axis_with(**entries: object) -> Callable[[dict[str, Any]], object]:
    return lambda raw: raw["axes"][0].update(entries)


HEADS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a list": lambda _: [],
    "deep": lambda _: "[" * 100_000 + "]" * 100_000,
    "no JSON": lambda _: "{",
    "no scenario": lambda raw: raw.pop("scenario") and None,
    "scenario": lambda raw: raw.update(scenario=[1]),
    "version": lambda raw: raw.update(version=None),
    "overrides": lambda raw: raw.update(overrides=[1]),
    "metrics": lambda raw: raw.update(metrics="words"),
    "budget": lambda raw: raw.update(budget_s="words"),
    "endless budget": lambda raw: raw.update(budget_s=float("inf")),
    "missing": lambda raw: raw.update(missing=-1),
    "rule": lambda raw: raw.update(rule=3),
    "no seeds": lambda raw: raw["rule"].update(seeds=[]),
    "seeds": lambda raw: raw["rule"].update(seeds=["x"]),
    "until": lambda raw: raw["rule"].update(until="what"),
    "most": lambda raw: raw["rule"].update(most=1e300),
    "no axes": lambda raw: raw.update(axes=[]),
    "axis": lambda raw: raw.update(axes=[[1]]),
    "key": axis_with(key=3),
    "unit": axis_with(unit="furlong"),
    "mixed values": axis_with(values=[0.1, "x"]),
    "endless values": axis_with(values=[0.1, float("inf")]),
    "values beyond a double": axis_with(values=[0.1, 10**400]),
    "truth": axis_with(values=[True, False]),
    "settings": axis_with(settings=["100 ms"]),
    "twice": lambda raw: raw["axes"].append(raw["axes"][0]),
}


@pytest.mark.parametrize("name", HEADS)
def test_metadata_of_other_types_are_refused(written: Path, tmp_path: Path, name: str) -> None:
    path = changed(written, tmp_path / "other.parquet", same, HEADS[name])
    with pytest.raises(ScenarioError, match=FOREIGN):
        Sweep.read(path)


def test_a_file_of_another_table_is_one_line(segue: Segue, written: Path, tmp_path: Path) -> None:
    path = changed(written, tmp_path / "other.parquet", TABLES["metric as lists"], lambda _: None)
    done = segue("plot", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"segue: {path}: {FOREIGN}\n"


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_regular_file_is_refused(segue: Segue, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "pipe.parquet"
    os.mkfifo(path)
    if kind == "device":
        path = Path("/dev/zero")
        if not stat.S_ISCHR(path.stat().st_mode):
            pytest.skip("no /dev/zero")
    done = segue("plot", path, "--out", tmp_path / "figure.svg")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"segue: {path}: expected a regular file\n")

"""Whether a file of a sweep is one: what is in it is what its metadata say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from segue.sweeps.axes import SUFFIXES
from segue.sweeps.columns import LATER, bound_column, schema

if TYPE_CHECKING:
    import polars as pl

    from segue.sweeps.axes import Axis


def check_metadata(raw: object) -> None:
    """Make sure that metadata have the entries of `Sweep.write`, each of its type.

    Raises:
        ValueError: They have not.
        KeyError: One is missing.
    """
    document = _mapping(raw, "metadata")
    for name in ("scenario", "version"):
        _expect(isinstance(document[name], str), name)
    overrides = _mapping(document["overrides"], "overrides")
    _expect(_are_texts(list(overrides.values())), "overrides")
    _expect(_are_texts(document["metrics"]), "metrics")
    budget_s = document["budget_s"]
    _expect(budget_s is None or _is_number(budget_s), "budget_s")
    _expect(_is_count(document["missing"]), "missing")
    rule = _mapping(document["rule"], "rule")
    seeds = _list(rule["seeds"], "seeds")
    _expect(bool(seeds) and all(_is_count(seed) for seed in seeds), "seeds")
    _expect(rule["until"] is None or isinstance(rule["until"], str), "until")
    _expect(_is_count(rule["most"]), "most")
    axes = [_mapping(axis, "axis") for axis in _list(document["axes"], "axes")]
    _expect(bool(axes), "axes")
    for axis in axes:
        _check_axis(axis)
    columns = [axis["column"] for axis in axes]
    _expect(len(set(columns)) == len(columns), "columns")


def check_frame(frame: pl.DataFrame, axes: Sequence[Axis], extra: Sequence[str]) -> None:
    """Make sure that a table has the columns of a sweep over these axes, of their types, and what can be drawn in them.

    Raises:
        ValueError: It has not.
    """
    import polars as pl

    types: dict[str, pl.DataType] = {axis.column: pl.Float64() if axis.is_numeric else pl.String() for axis in axes}
    types |= {"seed": pl.UInt64()} | schema((), ())
    for name, kind in types.items():
        if name in extra or (name in LATER and name not in frame.columns):
            continue
        _expect(frame.schema.get(name) == kind, name)
    # what a path of the document leads to
    for name in extra:
        _expect(frame.schema.get(name) in {pl.Float64(), pl.Boolean(), pl.String()}, name)
        bound = bound_column(name)
        _expect(bound in extra or frame.schema.get(bound, pl.Boolean()) == pl.Boolean(), bound)
    for axis in axes:
        _expect(frame[axis.column].null_count() == 0 and bool(frame[axis.column].is_in(axis.values).all()), axis.column)
    _expect(frame["seed"].null_count() == 0, "seed")
    for name, kind in frame.schema.items():
        if kind == pl.Float64():
            _expect(bool(frame[name].drop_nulls().is_finite().all()), name)


def _check_axis(axis: Mapping[str, object]) -> None:
    for name in ("key", "column", "unit"):
        _expect(isinstance(axis[name], str), name)
    _expect(axis["unit"] in {"", *SUFFIXES}, "unit")
    values, settings = _list(axis["values"], "values"), _list(axis["settings"], "settings")
    _expect(bool(values) and (_are_texts(values) or all(_is_number(value) for value in values)), "values")
    _expect(_are_texts(settings) and len(settings) == len(values), "settings")


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _mapping(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError(what)
    return value


def _list(value: object, what: str) -> list[object]:
    if not isinstance(value, list):
        raise TypeError(what)
    return value


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**1000 and isfinite(value)

"""What came of a sweep: a table, with what it is a table of."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segue._native import ScenarioError, __version__
from segue.output import read_file, write_file
from segue.sweeps.axes import Axis, find_axis, parse_axis
from segue.sweeps.checking import check_frame, check_metadata
from segue.sweeps.columns import Metric, Row, find_metric, schema
from segue.sweeps.stopping import Rule

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from segue.sweeps.plan import Plan, Task

METADATA = "segue"
"""Key of the file's metadata."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """Results of a sweep.

    Attributes:
        frame: A row per run, in the order of points and then of seeds: the axes' columns (`Axis.column`), `seed`, those
            of `segue.sweeps.columns.METRICS`, further metrics that were asked for, and `event_log_hash`. Times are in
            seconds, rates in bit/s, sizes in bytes. A metric that a run has not is null; one whose column in
            `..._censored` says so is a lower bound.
        scenario: Name of the scenario.
        axes: The axes, the slowest first.
        overrides: What all runs share.
        rule: How many seeds each point has.
        extra: Metrics that were asked for beside those of every sweep.
        budget_s: The budget that stopped it, seconds; `None` if none did.
        missing: Runs that are missing for that.
        version: Of Segue, that made the runs.
    """

    frame: pl.DataFrame
    scenario: str
    axes: tuple[Axis, ...]
    overrides: Mapping[str, str]
    rule: Rule
    extra: tuple[str, ...]
    budget_s: float | None
    missing: int
    version: str

    @classmethod
    def of(
        cls, plan: Plan, rule: Rule, rows: Mapping[Task, Row], *, budget_s: float | None = None, missing: int = 0
    ) -> Sweep:
        """From its rows, in whatever order they came."""
        import polars as pl

        tasks = sorted(rows)
        types: dict[str, pl.DataType] = {
            axis.column: pl.Float64() if axis.is_numeric else pl.String() for axis in plan.axes
        }
        types |= {"seed": pl.UInt64()} | schema(plan.extra, [rows[task] for task in tasks])
        table = [{**plan.labels(task[0]), "seed": task[1], **rows[task]} for task in tasks]
        frame = pl.DataFrame([{name: row.get(name) for name in types} for row in table], schema=types, strict=False)
        return cls(frame, plan.scenario.name, plan.axes, plan.fixed, rule, plan.extra, budget_s, missing, __version__)

    def __repr__(self) -> str:
        axes = ", ".join(axis.key for axis in self.axes)
        return f"<Sweep of {self.scenario!r} over {axes}: {self.frame.height} runs>"

    def _repr_html_(self) -> str:
        return f"<p>{self.note()}</p>{self.frame._repr_html_()}"

    def note(self) -> str:
        """How many seeds there are, by what rule, and what stopped it."""
        text = self.rule.note()
        if self.budget_s is not None:
            text += f" Stopped by the budget of {self.budget_s:g} s, with {self.missing} runs missing."
        return text

    def metric(self, name: str) -> Metric:
        """The metric of a word or a column.

        Raises:
            ScenarioError: There is none.
        """
        return find_metric(name, self.extra)

    def axis(self, name: str) -> Axis:
        """The axis of a key or a column.

        Raises:
            ScenarioError: There is none.
        """
        return find_axis(self.axes, name)

    def where(self, conditions: Mapping[str, str]) -> Sweep:
        """The part at which these keys have these values, as the grid has them: `{"scheme": "sigma"}`.

        Raises:
            ScenarioError: No such axis, or value of it.
        """
        import polars as pl

        kept, axes = self.frame, list(self.axes)
        for name, text in conditions.items():
            axis = self.axis(name)
            asked = parse_axis(axis.key, text)
            # of words among them, or several units, numbers are what is written: one alone would be taken for its value
            wanted = asked.values if axis.is_numeric else asked.settings
            if any(value not in axis.values for value in wanted):
                raise ScenarioError(f"{name}={text}: expected one of {', '.join(axis.settings)}")
            places = [place for place, value in enumerate(axis.values) if value in wanted]
            axes[axes.index(axis)] = replace(
                axis,
                values=tuple(axis.values[place] for place in places),
                settings=tuple(axis.settings[place] for place in places),
            )
            kept = kept.filter(pl.col(axis.column).is_in(wanted))
        return replace(self, frame=kept, axes=tuple(axes))

    def summary(self, metric: str) -> pl.DataFrame:
        """Medians over the seeds of each point, with their intervals.

        Returns:
            The axes' columns; `median`, `low`, `high` in the unit of the metric; `coverage` of the interval, at least;
            `n`, runs that have the metric; `censored`, how many of them are lower bounds; `median_censored` and
            `high_censored`, whether the median and the upper end are (see `segue.Spread`). Points of which no run has
            it are left out.

        Raises:
            ScenarioError: There is no such metric, or it is words.
        """
        import polars as pl

        from segue.stats import is_median_bound, median_interval

        found = self.metric(metric)
        if self.frame.schema[found.column] == pl.String():
            raise ScenarioError(f"metric `{metric}`: is words, expected numbers")
        columns = [axis.column for axis in self.axes]
        rows: list[dict[str, object]] = []
        for key, group in self.frame.group_by(columns, maintain_order=True):
            own = group.drop_nulls(found.column)
            values = own[found.column].cast(pl.Float64).to_list()
            if not values:
                continue
            interval = median_interval(values, self.rule.confidence(group.height))
            bounds = own.filter(pl.col(found.bound))[found.column].to_list() if found.bound in own.columns else []
            least = min(bounds, default=None)
            rows.append(
                dict(zip(columns, key, strict=True))
                | {"median": interval.median, "low": interval.low, "high": interval.high,
                   "coverage": interval.coverage, "n": len(values), "censored": len(bounds),
                   "median_censored": least is not None and is_median_bound(values, least),
                   "high_censored": least is not None and interval.high >= least}
            )  # fmt: skip
        types = {name: self.frame.schema[name] for name in columns}
        types |= dict.fromkeys(("median", "low", "high", "coverage"), pl.Float64())
        types |= dict.fromkeys(("n", "censored"), pl.Int64())
        types |= dict.fromkeys(("median_censored", "high_censored"), pl.Boolean())
        return pl.DataFrame(rows, schema=types)

    def figure(self, metric: str = "interruption", *, x: str | None = None, hue: str | None = None) -> Figure:
        """Medians of a metric over an axis, a curve for each value of another, with intervals.

        Args:
            metric: Its word, or column.
            x: Key of the axis below; the one with the most numbers if left out.
            hue: Key of the axis that is told apart by colours; the other one if left out.

        Raises:
            ScenarioError: No such metric or axis, or there is a third axis with several values: see `where`.
        """
        from segue.figures.sweep import sweep_figure

        return sweep_figure(self, metric, x=x, hue=hue)

    def write(self, path: str | Path) -> Path:
        """Write it as one Parquet file, which any reader takes, and `Sweep.read` with all that belongs to it.

        Raises:
            OSError: It cannot be written.
        """
        buffer = io.BytesIO()
        self.frame.write_parquet(buffer, metadata={METADATA: json.dumps(self._metadata(), ensure_ascii=False)})
        return write_file(Path(path), buffer.getvalue())

    @classmethod
    def read(cls, path: str | Path) -> Sweep:
        """What `write` wrote.

        Raises:
            ScenarioError: It is no such file.
            OSError: It cannot be read.
        """
        import polars as pl

        content = read_file(Path(path))
        try:
            raw = json.loads(pl.read_parquet_metadata(io.BytesIO(content))[METADATA])
            check_metadata(raw)
            return cls._from_metadata(pl.read_parquet(io.BytesIO(content)), raw)
        except (pl.exceptions.PolarsError, ScenarioError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise ScenarioError(f"{path}: expected a Parquet file that segue sweep has written") from error

    def _metadata(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "scenario": self.scenario,
            "axes": [
                {"key": axis.key, "column": axis.column, "unit": axis.unit, "values": list(axis.values),
                 "settings": list(axis.settings)}
                for axis in self.axes
            ],
            "overrides": dict(self.overrides),
            "rule": self.rule.to_json(),
            "metrics": list(self.extra),
            "budget_s": self.budget_s,
            "missing": self.missing,
        }  # fmt: skip

    @classmethod
    def _from_metadata(cls, frame: pl.DataFrame, raw: Mapping[str, Any]) -> Sweep:
        axes = tuple(
            Axis(one["key"], one["column"], one["unit"], tuple(one["values"]), tuple(one["settings"]))
            for one in raw["axes"]
        )
        extra = tuple(raw["metrics"])
        check_frame(frame, axes, extra)
        return cls(
            frame, raw["scenario"], axes, raw["overrides"], Rule.from_json(raw["rule"], extra), extra,
            raw["budget_s"], raw["missing"], raw["version"],
        )  # fmt: skip

"""What of a run becomes a row of a sweep, and by which words it is asked for."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from segue._native import ScenarioError
from segue.sweeps.bounds import bound_at

if TYPE_CHECKING:
    import polars as pl

    from segue.distributions import Spread
    from segue.metrics import Metrics

Cell = float | int | bool | str | None
Row = dict[str, Cell]

HASH = "event_log_hash"


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that a run has.

    Attributes:
        word: What it is asked for by: that of conditions (`--assert "interruption < 50 ms"`) where those have it.
        column: Its column.
        unit: "s", "bit/s", "B", "" of counts and shares.
        label: For an axis, without the unit.
        of: Takes it from a run; nothing if the run has none.
        bound: The column that says whether it is no more than a lower bound, if it can be.
        is_bound: Takes that from a run.
    """

    word: str
    column: str
    unit: str
    label: str
    of: Callable[[Metrics], Cell]
    bound: str = ""
    is_bound: Callable[[Metrics], bool | None] | None = None


def _of_spread(name: str, what: str) -> Callable[[Metrics], Any]:
    def take(metrics: Metrics) -> Any:  # noqa: ANN401 - a number, or whether it is a bound
        spread: Spread | None = getattr(metrics, name)
        return None if spread is None else getattr(spread, what)

    return take


def _lost(metrics: Metrics) -> int:
    return metrics.packets_lost_to_handover + metrics.packets_lost_to_queue + metrics.packets_lost_otherwise


def _gaps(metrics: Metrics) -> list[tuple[float, bool]]:
    """Interruptions, and what was silent around what the scenario has happen, as (seconds, whether a lower bound)."""
    spread = metrics.interruption_s
    by_handovers = [] if spread is None else [(spread.max, spread.max_censored)]
    around = [flow.around_events for flow in metrics.flows if flow.around_events is not None]
    return by_handovers + [(gap.duration_s, gap.censored) for gap in around]


def _longest(metrics: Metrics) -> float | None:
    return max((seconds for seconds, _ in _gaps(metrics)), default=None)


def _longest_is_bound(metrics: Metrics) -> bool | None:
    gaps = _gaps(metrics)
    return any(is_bound for _, is_bound in gaps) if gaps else None


def _transfer(metrics: Metrics) -> float | None:
    """How long it took, or has taken by the end of the run."""
    return metrics.unfinished_transfer_s if metrics.transfer_time_s is None else metrics.transfer_time_s


def _transfer_is_bound(metrics: Metrics) -> bool | None:
    return None if _transfer(metrics) is None else metrics.transfer_time_s is None


METRICS: tuple[Metric, ...] = (
    Metric("interruption", "interruption_s", "s", "longest interruption", _longest,
           "interruption_censored", _longest_is_bound),
    Metric("interruption.median", "interruption_median_s", "s", "median interruption",
           _of_spread("interruption_s", "median"),
           "interruption_median_censored", _of_spread("interruption_s", "median_censored")),
    Metric("interruption.p95", "interruption_p95_s", "s", "95th percentile of interruptions",
           _of_spread("interruption_s", "p95"),
           "interruption_p95_censored", _of_spread("interruption_s", "p95_censored")),
    Metric("interruptions", "interruptions", "", "interruptions",
           lambda m: 0 if m.interruption_s is None else m.interruption_s.count),
    Metric("handover_latency", "handover_latency_max_s", "s", "longest handover latency",
           _of_spread("handover_latency_s", "max")),
    Metric("handover_latency.median", "handover_latency_median_s", "s", "median handover latency",
           _of_spread("handover_latency_s", "median")),
    Metric("handover_latency.mean", "handover_latency_mean_s", "s", "mean handover latency",
           lambda m: m.handover_latency_mean_s),
    Metric("longest_gap", "longest_gap_s", "s", "longest time without new data", lambda m: m.longest_gap_s,
           "longest_gap_censored", lambda m: m.longest_gap_is_bound),
    Metric("handovers", "handovers", "", "handovers", lambda m: len(m.handovers)),
    Metric("dead_flows", "dead_flows", "", "flows that died",
           lambda m: sum(flow.state == "dead" for flow in m.flows)),
    Metric("loss", "loss", "", "share of data packets lost", lambda m: _lost(m) / max(m.packets_sent, 1)),
    Metric("lost", "lost_packets", "", "data packets lost", _lost),
    Metric("lost_to_handover", "lost_to_handover_packets", "", "data packets lost to handover",
           lambda m: m.packets_lost_to_handover),
    Metric("retransmissions", "retransmissions", "", "data packets sent again", lambda m: m.packets_retransmitted),
    Metric("timeouts", "timeouts", "", "retransmission timeouts", lambda m: m.timeouts),
    Metric("throughput", "throughput_bps", "bit/s", "throughput", lambda m: m.throughput_bps),
    Metric("delivered", "delivered_bytes", "B", "data delivered", lambda m: m.delivered_bytes),
    Metric("transfer_time", "transfer_time_s", "s", "transfer time", _transfer,
           "transfer_time_censored", _transfer_is_bound),
    Metric("packets_sent", "packets_sent", "", "data packets sent", lambda m: m.packets_sent),
    Metric("signalling", "signalling_bytes", "B", "signalling of mobility", lambda m: m.signalling.bytes),
    Metric("signalling.packets", "signalling_packets", "", "packets of signalling", lambda m: m.signalling.packets),
    Metric("corrupt_messages", "corrupt_messages", "", "corrupt messages", lambda m: m.corrupt_messages),
)  # fmt: skip
"""Every sweep has them all as columns, and the hash of the event log."""

LATER = ("transfer_time_censored",)
"""Columns that files of earlier versions have not."""

_BY_NAME = {name: metric for metric in METRICS for name in (metric.column, metric.word)}


def find_metric(name: str, extra: Sequence[str] = ()) -> Metric:
    """The metric of a word, or of a column; one of the document by its path if it is among `extra`.

    >>> find_metric("interruption").column
    'interruption_s'

    Raises:
        ScenarioError: There is none; it says which was meant.
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name in extra:
        return Metric(name, name, _unit_of(name), name, lambda _: None, bound_column(name))
    known = [*(metric.word for metric in METRICS), *extra]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean `{near[0]}`?" if near else f"expected one of {', '.join(known)}"
    raise ScenarioError(f"metric `{name}`: {hint}")


def bound_column(path: str) -> str:
    """The column that says whether what is at a path of the document is a lower bound."""
    return f"{path}_censored"


def number_in(cell: Cell) -> float | None:
    """A cell as a number; words are none."""
    return None if cell is None or isinstance(cell, str) else float(cell)


def row_of(metrics: Metrics, document: dict[str, Any] | None, extra: Sequence[str]) -> Row:
    """The row of a run, without the columns of axes.

    Args:
        metrics: Of the run.
        document: The same as the simulator writes it, for what is in `extra`.
        extra: Paths in it, beside `METRICS`.

    Raises:
        ScenarioError: A path leads nowhere, or to what is neither number nor text.
    """
    row: Row = {}
    for metric in METRICS:
        row[metric.column] = metric.of(metrics)
        if metric.is_bound is not None:
            row[metric.bound] = metric.is_bound(metrics)
    for path in extra:
        row[bound_column(path)] = bound_at(document or {}, path)
    for path in extra:
        row[path] = _at(document or {}, path)
    row[HASH] = metrics.event_log_hash
    return row


def _at(document: dict[str, Any], path: str) -> Cell:
    """What is at `signalling.by_kind.BU.packets` or `applications.0.mos`; nothing where a run has no such entry."""
    at: Any = document
    for depth, part in enumerate(path.split(".")):
        if isinstance(at, dict):
            if depth == 0 and part not in at:
                near = difflib.get_close_matches(part, at, n=1, cutoff=0.5)
                hint = f"did you mean `{near[0]}`?" if near else f"expected one of {', '.join(at)}"
                raise ScenarioError(f"metric `{path}`: {hint}")
            at = at.get(part)
        elif isinstance(at, list) and part.isdecimal():
            at = at[int(part)] if int(part) < len(at) else None
        elif at is not None:
            raise ScenarioError(f"metric `{path}`: expected the path of a number, and `{part}` is not in one")
    if isinstance(at, (dict, list)):
        inside = ", ".join(at) if isinstance(at, dict) else f"0 to {len(at) - 1}"
        raise ScenarioError(f"metric `{path}`: expected the path of a number, and it goes on: {inside}")
    return at if at is None or isinstance(at, (bool, str)) else float(at)


_OF_SPREADS = {"min", "max", "mean", "median", "p5", "p25", "p75", "p90", "p95", "p99"}


def _unit_of(column: str) -> str:
    """By what a name of the document ends in."""
    endings = {"_s": "s", "_bps": "bit/s", "_bytes": "B", "bytes": "B"}
    # of `interruption_s.max` the unit is in the name above
    name = next((part for part in reversed(column.split(".")) if part not in _OF_SPREADS), "")
    return next((unit for ending, unit in endings.items() if name.endswith(ending)), "")


def schema(extra: Sequence[str], rows: Sequence[Row]) -> dict[str, pl.DataType]:
    """Types of the columns of `row_of`: those of `extra` are what the rows have, the others always the same.

    Whether what is at a path of `extra` is a lower bound is a column if any of the rows says so, or that it is none.
    """
    import polars as pl

    types: dict[str, pl.DataType] = {}
    for metric in METRICS:
        types[metric.column] = pl.Float64() if metric.unit in {"s", "bit/s"} or metric.word == "loss" else pl.UInt64()
        if metric.bound:
            types[metric.bound] = pl.Boolean()
    for path in extra:
        kinds = {type(row[path]) for row in rows} - {type(None)}
        types[path] = {frozenset({bool}): pl.Boolean(), frozenset({str}): pl.String()}.get(
            frozenset(kinds), pl.Float64()
        )
        bound = bound_column(path)
        if bound not in types and any(row.get(bound) is not None for row in rows):
            types[bound] = pl.Boolean()
    types[HASH] = pl.String()
    return types

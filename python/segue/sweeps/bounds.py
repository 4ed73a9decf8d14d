"""Which numbers of a run's document are no more than lower bounds, by what stands beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_OF_DISTRIBUTIONS = {"min", "p5", "p10", "p25", "median", "p75", "p90", "p95", "p99", "max"}
_OF_ENTRIES = {"interruption_s", "duration_s"}
"""What `censored` of the same entry is of."""


def bound_at(document: Mapping[str, Any], path: str) -> bool | None:
    """Whether what a path leads to is a lower bound; nothing where nobody says, or where it leads to nothing.

    >>> bound_at({"hosts": [{"longest_gap_s": 3.0, "dead_flows": 1}]}, "hosts.0.longest_gap_s")
    True
    """
    *above, name = path.split(".")
    beside: Any = document
    for part in above:
        beside = _inside(beside, part)
    value = _inside(beside, name)
    if not isinstance(beside, Mapping) or not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    said = beside.get(f"{name}_censored")
    if isinstance(said, bool):
        return said
    if "bound_from" in beside:
        return _of_distribution(beside["bound_from"], name, value)
    rule = _BY_NAME.get(name)
    ruled = None if rule is None else rule(beside, document)
    if ruled is None and name in _OF_ENTRIES and isinstance(beside.get("censored"), bool):
        return bool(beside["censored"])
    return ruled


def _inside(value: object, part: str) -> object:
    if isinstance(value, Mapping):
        return value.get(part)
    if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
        return value[int(part)]
    return None


def _of_distribution(bound_from: float | None, name: str, value: float) -> bool | None:
    """See `segue.populations.Distribution`."""
    if name == "mean":
        return bound_from is not None
    return bound_from is not None and value >= bound_from if name in _OF_DISTRIBUTIONS else None


def _of_gap(beside: Mapping[str, Any], _: Mapping[str, Any]) -> bool | None:
    """The longest gap of a run, a host or a flow, which the silence of a dead flow may come to exceed."""
    if "dead_flows" in beside:
        return bool(beside["dead_flows"])
    flows = [beside] if "state" in beside else beside.get("flows", [])
    return any(flow.get("state") == "dead" for flow in flows)


def _of_interruption(beside: Mapping[str, Any], document: Mapping[str, Any]) -> bool | None:
    """The longest interruption of a flow: by a handover, or an outage."""
    if "outages" not in beside or "id" not in beside:
        return None
    moves = [row for row in document.get("handovers", ()) if row.get("flow") == beside["id"]]
    return any(one["censored"] for one in [*moves, *beside["outages"]])


_BY_NAME: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], bool | None]] = {
    "longest_gap_s": _of_gap,
    "interruption_s": _of_interruption,
    "silence_s": lambda *_: True,
    "unfinished_transfer_s": lambda *_: True,
    # of a film that stood still as the run ended
    "stalled_s": lambda beside, _: beside.get("stalled_at_end"),
}

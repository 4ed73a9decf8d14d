"""Report of a run with real hosts: that of a run, what is the lab's own, and the simulator's figures beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from segue.explain import size
from segue.lab.record import Record
from segue.metrics import Metrics
from segue.output import write_file
from segue.report.html import Section, page, table_section
from segue.report.run import populations_of, sections_of
from segue.summary import counts, headline

OF_THE_SIMULATOR = ("event log",)
"""Names of the summary's rows that tell nothing of a run in real time."""


def write_lab_report(record: Record, path: Path, flows: Sequence[int] = ()) -> Path:
    """Write the report of a run of the lab as one HTML file.

    Args:
        record: The run.
        path: The file.
        flows: Numbers of the flows to show by themselves; without any, the worst, the median and the best.

    Raises:
        ValueError: If the run has no flow of such a number.
    """
    metrics, lab = record.metrics, record.lab
    late = "; packets were too late for these figures to say much" if lab["emulation"]["too_late"] else ""
    lead = f"Seed {metrics.seed}, {metrics.duration_s:g} s in real time on Linux {lab['kernel']}{late}."
    sections = [
        *populations_of(metrics),
        _summary(metrics, record.prediction),
        _emulation(lab),
        _programs(lab["programs"]),
        *_received(lab),
        *sections_of(record, flows),
        *_captures(lab),
        _hosts(lab["hosts"]),
    ]
    return write_file(path, page(f"Run of {metrics.scenario} in the lab", lead, sections))


def _summary(metrics: Metrics, prediction: Metrics | None) -> Section:
    """What it came to, and what the same file comes to in the simulator."""
    worlds = {"lab": _rows(metrics)} | ({} if prediction is None else {"simulator": _rows(prediction)})
    rows: list[list[str]] = []
    for name in dict.fromkeys(name for world in worlds.values() for name in world):
        columns = [world.get(name, ["none"]) for world in worlds.values()]
        for place, texts in enumerate(zip_longest(*columns, fillvalue="")):
            rows.append(["" if place else name, *texts])
    return table_section("Summary", ["", *(worlds if len(worlds) > 1 else [""])], rows)


def _rows(metrics: Metrics) -> dict[str, list[str]]:
    """What a run came to, by name; a row of the summary that has none goes on with what is above it."""
    rows: dict[str, list[str]] = {}
    last = ""
    for name, text in [*headline(metrics), *counts(metrics)]:
        last = name or last
        if last not in OF_THE_SIMULATOR:
            rows.setdefault(last, []).append(text)
    return rows


def _emulation(lab: Mapping[str, Any]) -> Section:
    """How late packets were handed over, and what the machine was set to."""
    late, packets = lab["emulation"], lab["packets"]
    rows = [
        ["packets", str(late["packets"])],
        *([f"late, {name}", f"{late[key]:.2f} ms"] for name, key in _LATE.items()),
        *([["longest stall", f"{1e3 * late['longest_stall_s']:.2f} ms"]] if "longest_stall_s" in late else []),
        ["later than 1 ms", f"{100 * late['share_late']:.3f} %" + (", too many" if late["too_late"] else "")],
        *_standstills(late.get("machine")),
        *([["steal time of the processors", _seconds(lab["steal_s"])]] if lab.get("steal_s") is not None else []),
        ["from kernels, malformed", f"{packets['from_kernels']}, {packets['malformed']}"],
        ["to kernels, refused", f"{packets['to_kernels']}, {packets['refused_by_kernels']}"],
        ["privileges", lab["privileges"]],
        ["real-time priority", "yes" if lab["real_time_priority"] else "no"],
        ["processors kept awake, nice of programs", f"{lab['processors_kept_awake']}, {lab['programs_nice']}"],
        ["offloads", lab["offloads"]],
    ]
    return table_section("Emulation", ["", ""], rows)


def _standstills(machine: Mapping[str, Any] | None) -> list[list[str]]:
    """What of it was the machine's, where that was looked at."""
    if machine is None:
        return []
    most, total = machine["longest_ms"], machine["total_ms"]
    said = f"{machine['standstills']} times, {most:.2f} ms at most, {total:.2f} ms in all"
    rows = [["processors stood still", said]]
    if machine["standstills"]:
        own = ", ".join(f"{machine[key]:.2f} ms ({name})" for name, key in _LATE.items() if key in machine)
        rows.append(["late but for that", f"{own}; {100 * machine['share_late']:.3f} % later than 1 ms"])
    return rows


_LATE = {"median": "median_ms", "99 %": "p99_ms", "99.9 %": "p999_ms", "most": "most_ms"}


def _programs(programs: Sequence[Mapping[str, Any]]) -> Section:
    if not programs:
        return Section("Programs", "<p>None: all transports are ours.</p>")
    rows = [
        [
            str(one["application"]),
            one["role"],
            one["host"],
            " ".join(one["command"]),
            _seconds(one["started_s"]),
            _seconds(one["ended_s"]),
            _ended(one),
        ]
        for one in programs
    ]
    return table_section("Programs", ["application", "end", "host", "command", "begun", "ended", "how"], rows)


def _received(lab: Mapping[str, Any]) -> list[Section]:
    """What programs read, where packets do not show whose data they have."""
    if lab["figures"] != "received":
        return []
    rows = [
        [
            str(one["application"]),
            one["host"],
            str(one["bytes"]),
            _seconds(one["begin_s"]),
            _seconds(one["end_s"]),
            _seconds(max((end - begin for begin, end in one["gaps_s"]), default=None)),
            one["failed"] or "",
        ]
        for one in lab["received"]
    ]
    columns = ["application", "host", "bytes", "from", "until", "longest time without data", "failed"]
    section = table_section("What programs read", columns, rows)
    text = "The figures of packets below are those of subflows, of a tunnel, or of an association."
    return [replace(section, body=f"<p>{text}</p>{section.body}")]


def _ended(program: Mapping[str, Any]) -> str:
    if program["stopped"]:
        return "stopped with the run"
    status = program["exit_status"]
    return "never begun" if status is None and program["started_s"] is None else f"exit status {status}"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f} s"


def _captures(lab: Mapping[str, Any]) -> list[Section]:
    files = [Path(name) for name in lab["captures"]]
    if not files:
        return []
    rows = [[str(file), size(file.stat().st_size) if file.is_file() else "gone"] for file in files]
    if lab["handovers_to_confirm"] is not None:
        shown = f"{lab['handovers_confirmed_by_captures']} of {lab['handovers_to_confirm']}"
        rows.append(["handovers that they show with the same interruption and loss", shown])
    return [table_section("Captures", ["", ""], rows)]


def _hosts(hosts: Sequence[Mapping[str, Any]]) -> Section:
    """What was set in each namespace, and what it came with."""
    names = sorted({name for host in hosts for name in host["settings"]})
    rows = [
        ["identity", *(host["identity"] or "none" for host in hosts)],
        ["MTU", *(str(host["mtu"]) for host in hosts)],
        *([name.removeprefix("net/"), *(host["settings"].get(name, "") for host in hosts)] for name in names),
    ]
    return table_section("Namespaces", ["", *(host["name"] for host in hosts)], rows)

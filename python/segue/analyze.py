"""Handover numbers from captures of anything: `segue.analyze`."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segue import _native

if TYPE_CHECKING:
    import polars as pl

    from segue.findings import Findings, Glance, Series

CaptureSource = str | Path | tuple[str, bytes]
"""A file, "-" for standard input, or bytes under a name, as `Run.captures` gives them."""

STANDARD_INPUT = "-"

FRAMES = ("handovers", "flows", "paths", "outages", "interruptions", "shares", "signals")
"""Frames of every analysis."""
FRAMES_OF_SERIES = ("throughput", "segments", "gaps")
"""Those that want `series=True`."""

Progress = Callable[[int, int], object]
"""Called with (bytes read, bytes in all), from the calling thread."""

Live = Callable[["Glance"], object]
"""Called with what was found so far, from the calling thread."""


class Analysis:
    """What one or two captures say. Dataclasses in `findings`; frames are polars frames, made when first asked for.

    Times in frames are seconds from the first packet (`findings.start_time_ns`).
    """

    def __init__(self, document: str, *, series: bool = True) -> None:
        self._document = document
        self._may_have_series = series

    def __repr__(self) -> str:
        files = ", ".join(capture.file for capture in self.findings.captures)
        return f"<Analysis of {files}: {len(self.findings.handovers)} handovers>"

    def _repr_html_(self) -> str:
        """What it came to, for a notebook: flows and handovers."""
        files = ", ".join(capture.file for capture in self.findings.captures)
        told = [f"{files}: {self.flows['flow'].n_unique()} flows, {self.handovers.height} handovers", *self.warnings()]
        text = "".join(f"<p>{escape(line)}</p>" for line in told)
        return f"{text}{self.flows._repr_html_()}{self.handovers._repr_html_()}"

    @property
    def json(self) -> str:
        """Everything as one JSON document."""
        return self._document

    def without_series(self) -> str:
        """The document without the points for figures."""
        if not self._may_have_series or not any(True for _ in self._series()):
            return self._document
        document = json.loads(self._document)
        for flow in document["flows"]:
            for name in ("forward", "reverse"):
                flow[name]["series"] = None
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False)

    def warnings(self) -> list[str]:
        """What a reader has to know before believing the rest, a line each."""
        return [warning["text"] for warning in json.loads(self._document)["warnings"]]

    @cached_property
    def findings(self) -> Findings:
        """Everything, typed."""
        from segue.findings import Findings

        return Findings.from_json(self._document)

    @cached_property
    def handovers(self) -> pl.DataFrame:
        """A row per handover.

        As of every handover `host`, `flow`, `layer`, `from`, `to` (addresses of the end that moved), `time` (seconds
        from the first packet), `interruption_s`, `censored`, `latency_s`, `handoff_delay_s`, `begin_s`, `end_s`,
        `soft`, `since_s`, `t_d_s`, `t_c_s`, `t_r_s`, `t_n_s`, `first_data_s`, `t_a_s`, `threshold_bps`,
        `lost_packets`, `retransmissions`, `spurious_retransmissions`; and of captures `protocol`, `a`, `b` (the flow's
        ends), `direction`, `kind`, `from_text`, `to_text` (what the paths differ in), `settling_gap_s`,
        `t_a_is_capped`, `throughput_before_bps`, `throughput_after_bps`, `rtt_before_s`, `rtt_after_s`,
        `out_of_order_packets`, `packets_sent`. What cannot be known is null.
        """
        from segue import explain

        flows = {flow.id: flow for flow in self.findings.flows}
        rows = []
        for handover in self.findings.handovers:
            flow = flows.get(handover.flow)
            old, new = explain.moved(handover, flow)
            own = {
                "from": handover.from_,
                "protocol": flow.protocol if flow else None,
                "a": str(flow.a) if flow else None,
                "b": str(flow.b) if flow else None,
                "from_text": old,
                "to_text": new,
                "t_a_is_capped": handover.adaptation.is_capped if handover.adaptation else None,
                "packets_sent": handover.ends.packets_sent if handover.ends else None,
            }
            parts = {name: getattr(handover.parts, name) if handover.parts else None for name in _PARTS}
            rest = {name: getattr(handover, name) for name in _HANDOVERS if name not in own and name not in parts}
            rows.append(own | parts | rest)
        return _frame(rows, _HANDOVERS)

    @cached_property
    def flows(self) -> pl.DataFrame:
        """Two rows per flow, one for each direction.

        `flow`, `protocol`, `mobility`, `a`, `b`, `parent`, `begin_s`, `end_s`, `direction`, and what `DirectionReport`
        has; round trip times as `rtt_median_s`, `rtt_min_s`, `rtt_max_s`; `outages` is their number.
        `censored` says that `longest_gap_s` is a lower bound.
        """
        rows = []
        for flow in self.findings.flows:
            for name in ("forward", "reverse"):
                way = flow.direction(name)
                rtt, ends = way.rtt_s, way.ends
                rows.append(
                    {
                        "flow": flow.id,
                        "protocol": flow.protocol,
                        "mobility": flow.mobility,
                        "a": str(flow.a),
                        "b": str(flow.b),
                        "parent": flow.parent,
                        "begin_s": flow.begin_s,
                        "end_s": flow.end_s,
                        "direction": name,
                        "outages": len(way.outages),
                        "rtt_median_s": rtt.median if rtt else None,
                        "rtt_min_s": rtt.min if rtt else None,
                        "rtt_max_s": rtt.max if rtt else None,
                        "lost_packets": ends.lost_packets if ends else None,
                        "spurious_retransmissions": ends.spurious_retransmissions if ends else None,
                        **{column: getattr(way, column) for column in _DIRECTION},
                        "censored": way.longest_gap_is_bound,
                    }
                )
        return _frame(rows, _FLOWS)

    @cached_property
    def paths(self) -> pl.DataFrame:
        """A row per path of a flow: `flow` and what `Path` has."""
        rows = [
            {"flow": flow.id} | {column: getattr(path, column) for column in _PATHS if column != "flow"}
            for flow in self.findings.flows
            for path in flow.paths
        ]
        return _frame(rows, _PATHS)

    @cached_property
    def interruptions(self) -> pl.DataFrame:
        """A row per pause that no change of path explains, as `Interruption` has it."""
        rows = [{column: getattr(pause, column) for column in _INTERRUPTIONS} for pause in self.findings.interruptions]
        return _frame(rows, _INTERRUPTIONS)

    @cached_property
    def outages(self) -> pl.DataFrame:
        """A row per outage of a direction that no handover accounts for, the silence of a dead one included.

        `flow`, `direction`, `since_s`, `duration_s`, `censored` (no new byte came: the duration is a lower bound).
        """
        rows = [
            {"flow": flow.id, "direction": name, "since_s": outage.since_s, "duration_s": outage.duration_s,
             "censored": outage.censored}
            for flow in self.findings.flows
            for name in ("forward", "reverse")
            for outage in flow.direction(name).outages
        ]  # fmt: skip
        return _frame(rows, _OUTAGES)

    @cached_property
    def shares(self) -> pl.DataFrame:
        """A row per path of a direction that used several at once, or in turn.

        `flow`, `direction`, `changes` (times that data went on over another of them), `path`, `data_bytes`, `share`.
        """
        rows = [
            {"flow": share.flow, "direction": share.direction, "changes": share.changes, "path": part.path,
             "data_bytes": part.data_bytes, "share": part.share}
            for share in self.findings.shares
            for part in share.paths
        ]  # fmt: skip
        return _frame(rows, _SHARES)

    @cached_property
    def signals(self) -> pl.DataFrame:
        """A row per message of mobility signalling, as `Signal` has it."""
        rows = [{column: getattr(signal, column) for column in _SIGNALS} for signal in self.findings.signals]
        return _frame(rows, _SIGNALS)

    @cached_property
    def throughput(self) -> pl.DataFrame:
        """Useful bytes by time, flow, direction and path: `flow`, `direction`, `path`, `time_s`, `bin_s`, `bytes`.

        Needs `series=True`.
        """
        rows = []
        for number, name, way in self._with_series():
            rows += [
                {"flow": number, "direction": name, "path": path, "time_s": place * way.bin_s, "bin_s": way.bin_s,
                 "bytes": size}
                for place, path, size in way.throughput
            ]  # fmt: skip
        return _frame(rows, _THROUGHPUT)

    @cached_property
    def segments(self) -> pl.DataFrame:
        """Segments, thinned out where there are too many: `flow`, `direction`, `path`, `time_s`, `offset`, `mark`.

        Needs `series=True`.
        """
        rows = []
        for number, name, way in self._with_series():
            rows += [
                {"flow": number, "direction": name, "path": path, "time_s": at, "offset": offset, "mark": mark}
                for at, offset, path, mark in way.segments
            ]
        return _frame(rows, _SEGMENTS)

    @cached_property
    def gaps(self) -> pl.DataFrame:
        """Times between arrivals of data, new or not: `flow`, `direction`, `time_s` (of the end), `gap_s`, `arrivals`.

        Where there are too many, `gap_s` is the longest of so many `arrivals` in a row: none that is longer is left
        out. Needs `series=True`.
        """
        rows = []
        for number, name, way in self._with_series():
            rows += [
                {"flow": number, "direction": name, "time_s": at, "gap_s": lasted, "arrivals": way.arrivals_per_gap}
                for at, lasted in way.gaps
            ]
        return _frame(rows, _GAPS)

    def frames(self) -> dict[str, pl.DataFrame]:
        """Every frame that there is, by name."""
        names = list(FRAMES)
        if any(True for _ in self._series()):
            names += FRAMES_OF_SERIES
        return {name: getattr(self, name) for name in names}

    def _series(self) -> Iterator[tuple[int, str, Series]]:
        for flow in self.findings.flows:
            for name in ("forward", "reverse"):
                series = flow.direction(name).series
                if series is not None:
                    yield flow.id, name, series

    def _with_series(self) -> list[tuple[int, str, Series]]:
        found = list(self._series())
        # of flows of a packet or none there are no points
        if not found and not self._may_have_series and self.findings.flows:
            raise ValueError("no points: the analysis was made with series=False")
        return found


def analyze(
    *captures: CaptureSource,
    series: bool = False,
    max_flows: int | None = None,
    progress: Progress | None = None,
    live: Live | None = None,
) -> Analysis:
    """Find flows and handovers in one capture, or in two of the same traffic taken at both ends.

    Whatever was captured: TCP, MPTCP, SCTP, QUIC, WireGuard, any UDP, over IPv4 or IPv6, Mobile IPv6 or ILNPv6; pcap or
    pcapng, compressed by gzip or zstd or not; Ethernet, Linux cooked, raw IP or loopback. Files are read as a stream:
    their size does not matter.

    Args:
        captures: One, or two: the mobile host's and its correspondent's. Files, "-" for standard input, which has to be
            the only one, or (name, bytes).
        series: Keep points for figures: `Analysis.throughput`, `Analysis.segments`, `Analysis.gaps`.
        max_flows: Report at most so many flows, those with handovers first, then the largest; the engine's if left out.
        progress: Told how far it has come, in bytes of the files.
        live: Told what was found so far, four times a second at most, while the only capture is still being made. Then
            Ctrl-C ends the capture, and the result is of what came by then; a second one ends the analysis.

    Raises:
        CaptureError: A file is no capture, or cannot be read; one line. What breaks off in the middle is analysed as
            far as it goes, and marked (`Findings.is_partial`).
        KeyboardInterrupt: Ctrl-C.

    >>> import segue
    >>> run = segue.run("sigma", {"duration": "40 s"}, trace=False, pcap=True)
    >>> segue.analyze(*run.captures()).handovers["kind"].unique().to_list()
    ['sctp-path']
    """
    sources = [_source(capture) for capture in captures]
    _check_two(sources)
    if live is not None and len(sources) != 1:
        raise _native.CaptureError(f"{len(sources)} captures given, expected one to watch")
    told = None if progress is None else _progress_of(progress, sources)
    document = _native.analyze(sources, series, max_flows, told, None if live is None else _glances(live))
    return Analysis(document, series=series)


def _glances(live: Live) -> Callable[[str], object]:
    from segue.findings import Glance

    return lambda document: live(Glance.from_json(document))


def _source(capture: CaptureSource) -> tuple[str, bytes | None]:
    if isinstance(capture, tuple):
        return capture
    return os.fspath(capture), None


def _check_two(sources: Sequence[tuple[str, bytes | None]]) -> None:
    """One file under two names would make every packet its own copy."""
    files = [Path(name) for name, content in sources if content is None and name != STANDARD_INPUT]
    # What cannot be read is for the engine to say.
    with contextlib.suppress(OSError):
        if len(files) == 2 and files[0].samefile(files[1]):
            raise _native.CaptureError(f"{files[1]}: given twice, expected the capture of the other end, or none")
    for file in files if len(sources) == 2 else ():
        if file.is_fifo():
            raise _native.CaptureError(f"{file}: a pipe can be read only once, expected a file beside another capture")


def _progress_of(progress: Progress, sources: Sequence[tuple[str, bytes | None]]) -> Callable[[int], object]:
    """What is told of bytes read, beside how many there are: two captures are read twice, first for their clocks."""
    total = 0
    for name, content in sources:
        # What cannot be read is for the engine to say.
        with contextlib.suppress(OSError):
            total += Path(name).stat().st_size if content is None else len(content)
    total *= len(sources)
    return lambda done: progress(min(done, total), total)


def _frame(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(rows, schema={name: getattr(pl, kind) for name, kind in columns.items()}, orient="row")


# Columns by name, and their polars type.
_DIRECTION = {
    "vantage": "String",
    "packets": "UInt64",
    "data_packets": "UInt64",
    "data_bytes": "UInt64",
    "useful_bytes": "UInt64",
    "throughput_bps": "Float64",
    "duplicate_packets": "UInt64",
    "out_of_order_packets": "UInt64",
    "retransmissions": "UInt64",
    "state": "String",
    "dead_since_s": "Float64",
    "silence_s": "Float64",
    "longest_gap_s": "Float64",
    "longest_gap_at_s": "Float64",
    "censored": "Boolean",
    "attempts": "UInt64",
}
_ENDS = {"lost_packets": "UInt64", "spurious_retransmissions": "UInt64"}
_PARTS = {
    "soft": "Boolean",
    "since_s": "Float64",
    "t_d_s": "Float64",
    "t_c_s": "Float64",
    "t_r_s": "Float64",
    "t_n_s": "Float64",
    "first_data_s": "Float64",
    "t_a_s": "Float64",
    "threshold_bps": "Float64",
}
_HANDOVERS = {
    "host": "String",
    "flow": "UInt64",
    "layer": "String",
    "from": "String",
    "to": "String",
    "time": "Float64",
    "interruption_s": "Float64",
    "censored": "Boolean",
    "latency_s": "Float64",
    "handoff_delay_s": "Float64",
    "begin_s": "Float64",
    "end_s": "Float64",
    **_PARTS,
    "lost_packets": "UInt64",
    "retransmissions": "UInt64",
    "spurious_retransmissions": "UInt64",
    "protocol": "String",
    "a": "String",
    "b": "String",
    "direction": "String",
    "kind": "String",
    "from_text": "String",
    "to_text": "String",
    "settling_gap_s": "Float64",
    "t_a_is_capped": "Boolean",
    "throughput_before_bps": "Float64",
    "throughput_after_bps": "Float64",
    "rtt_before_s": "Float64",
    "rtt_after_s": "Float64",
    "out_of_order_packets": "UInt64",
    "packets_sent": "UInt64",
}
_FLOWS = {
    "flow": "UInt64",
    "protocol": "String",
    "mobility": "String",
    "a": "String",
    "b": "String",
    "parent": "UInt64",
    "begin_s": "Float64",
    "end_s": "Float64",
    "direction": "String",
    **_DIRECTION,
    "outages": "UInt64",
    "rtt_median_s": "Float64",
    "rtt_min_s": "Float64",
    "rtt_max_s": "Float64",
    **_ENDS,
}
_PATHS = {
    "flow": "UInt64",
    "id": "UInt64",
    "direction": "String",
    "source": "String",
    "destination": "String",
    "source_port": "UInt64",
    "destination_port": "UInt64",
    "tunnelled": "Boolean",
    "interface": "String",
    "first_s": "Float64",
    "last_s": "Float64",
    "data_packets": "UInt64",
    "data_bytes": "UInt64",
}
_INTERRUPTIONS = {
    "flow": "UInt64",
    "direction": "String",
    "begin_s": "Float64",
    "duration_s": "Float64",
    "ended_by_retransmission": "Boolean",
    "retransmissions": "UInt64",
    "censored": "Boolean",
}
_OUTAGES = {
    "flow": "UInt64",
    "direction": "String",
    "since_s": "Float64",
    "duration_s": "Float64",
    "censored": "Boolean",
}
_SHARES = {
    "flow": "UInt64",
    "direction": "String",
    "changes": "UInt64",
    "path": "UInt64",
    "data_bytes": "UInt64",
    "share": "Float64",
}
_SIGNALS = {
    "time_s": "Float64",
    "capture": "UInt64",
    "interface": "UInt64",
    "kind": "String",
    "source": "String",
    "destination": "String",
    "about": "String",
    "flow": "UInt64",
}
_THROUGHPUT = {
    "flow": "UInt64",
    "direction": "String",
    "path": "UInt64",
    "time_s": "Float64",
    "bin_s": "Float64",
    "bytes": "UInt64",
}
_SEGMENTS = {
    "flow": "UInt64",
    "direction": "String",
    "path": "UInt64",
    "time_s": "Float64",
    "offset": "UInt64",
    "mark": "String",
}
_GAPS = {
    "flow": "UInt64",
    "direction": "String",
    "time_s": "Float64",
    "gap_s": "Float64",
    "arrivals": "UInt64",
}

"""Running scenarios."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from segue import _native
from segue.metrics import Metrics
from segue.scenarios import Scenario, load

if TYPE_CHECKING:
    import polars as pl

    from segue.saved import Saved
    from segue.store import StoredResult

NS_PER_S = 1e9

_PARTS = ("soft", "since_s", "t_d_s", "t_c_s", "t_r_s", "t_n_s", "first_data_s", "t_a_s", "threshold_bps")

Kept = TypeVar("Kept")

Progress = Callable[[int, int], object]
"""Called with (runs done, runs in all), from the calling thread."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a condition on a run comes to.

    Attributes:
        condition: As given: "interruption < 50 ms".
        holds: Whether it holds.
        text: In words, with what the run has.
    """

    condition: str
    holds: bool
    text: str


class Run:
    """Result of a run. Frames are polars frames over the simulator's own memory, made when first asked for.

    Times in frames are `time_ns`: nanoseconds of simulated time (UInt64). Frames need `trace=True`, or a folder, from
    which they are then read.
    """

    def __init__(
        self,
        native: _native.Run | StoredResult | Saved,
        *,
        trace_folder: Path | None = None,
        pcap_folder: Path | None = None,
        holds: object = None,
    ) -> None:
        """A run whose tables, or captures, are in a folder; that is there as long as what it `holds`."""
        self._native = native
        self._holds = holds
        self._trace_folder = trace_folder
        self._pcap_folder = pcap_folder

    def __repr__(self) -> str:
        return f"<Run of {self.metrics.scenario!r}, seed {self.metrics.seed}>"

    def _repr_html_(self) -> str:
        """What it came to, for a notebook."""
        from segue.summary import as_html

        return as_html(self.metrics)

    def __reduce__(self) -> tuple[Callable[[bytes], Run], tuple[bytes]]:
        """Pickled with all that there is of it."""
        from segue.saved import from_bytes, to_bytes

        return from_bytes, (to_bytes(self),)

    def save(self, path: str | Path) -> Path:
        """Write all that there is of it, frames and captures included, into one file, which `segue.load` reads.

        Raises:
            OSError: It cannot be written.
        """
        from segue.saved import save

        return save(self, path)

    @cached_property
    def metrics(self) -> Metrics:
        """Metrics of the run."""
        return Metrics.from_json(self._native.metrics_json)

    @property
    def metrics_json(self) -> str:
        """Metrics as one JSON document."""
        return self._native.metrics_json

    @property
    def scenario_toml(self) -> str:
        """The scenario as run, overrides applied."""
        return self._native.scenario_toml

    @property
    def verdicts(self) -> list[Verdict]:
        """Of each condition, those of the scenario (`assert`) first."""
        return [Verdict(*verdict) for verdict in self._native.verdicts]

    @property
    def junit(self) -> str:
        """The conditions as test cases of a JUnit file; without any, one that passes."""
        return self._native.junit

    @cached_property
    def handovers(self) -> pl.DataFrame:
        """A row per handover of a host and a flow, of whatever scheme; what a scheme has not is null.

        `host`, `flow`, `layer`, `from`, `to`, `time` (seconds), `interruption_s`, `censored` (the interruption is a
        lower bound), `latency_s`, `handoff_delay_s`, `begin_s`, `end_s`, `soft`, `since_s`, `t_d_s`, `t_c_s`, `t_r_s`,
        `t_n_s`, `first_data_s`, `t_a_s`, `threshold_bps`, `lost_packets`, `retransmissions`,
        `spurious_retransmissions`: see `segue.Handover`; these have the names of the metrics' JSON and of
        `segue.analyze`. `sender` and `receiver` are the ends of the flow.
        """
        import polars as pl

        flows = {flow.id: flow for flow in self.metrics.flows}
        rows = []
        for row in self.metrics.handovers:
            flow = None if row.flow is None else flows[row.flow]
            rows.append(
                [row.host, row.flow, row.layer, row.from_address, row.to_address, row.time_s, row.interruption_s,
                 row.censored, row.latency_s, row.handoff_delay_s, row.begin_s, row.end_s]
                + [None if row.parts is None else getattr(row.parts, name) for name in _PARTS]
                + [row.lost_packets, row.retransmissions, row.spurious_retransmissions]
                + ([None, None] if flow is None else [flow.sender, flow.receiver])
            )  # fmt: skip
        return pl.DataFrame(rows, schema=_handover_schema(), orient="row")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """A row per direction of a connection in which data was sent, and per application that never sent any.

        `flow` (its number), `sender`, `receiver`, `transport`, `source_port`, `destination_port`, `begin_s`, `state`
        ("closed", "idle", "active", "dead"), `dead_since_s`, `silence_s`, `longest_gap_s`, `longest_gap_at_s`,
        `censored` (that gap is a lower bound), `outages` (how many no handover accounts for), `handovers`,
        `interruption_s` (the longest), `transferred_bytes`, `throughput_bps`, `packets_sent`, `retransmissions`,
        `lost_packets`,
        `spurious_retransmissions`, `in_flight_packets`: see `segue.metrics.Flow`.
        """
        import polars as pl

        moves = Counter(row.flow for row in self.metrics.handovers)
        rows = [
            [flow.id, flow.sender, flow.receiver, flow.transport, flow.source_port, flow.destination_port, flow.begin_s,
             flow.state, flow.dead_since_s, flow.silence_s, flow.longest_gap_s, flow.longest_gap_at_s,
             flow.longest_gap_is_bound,
             len(flow.outages), moves[flow.id], flow.interruption_s, flow.transferred_bytes, flow.throughput_bps,
             flow.packets_sent, flow.retransmissions, flow.lost_packets, flow.spurious_retransmissions,
             flow.in_flight_packets]
            for flow in self.metrics.flows
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=_flow_schema(), orient="row")

    @cached_property
    def hosts(self) -> pl.DataFrame:
        """A row per host that has flows or moves.

        `host`, `flows`, `dead_flows`, `handovers`, `interruption_median_s`, `interruption_p95_s`, `interruption_max_s`
        (null without any), whether each is a lower bound (`interruption_median_censored`, `interruption_p95_censored`,
        `interruption_max_censored`), `interruptions_censored`, `longest_gap_s`, `longest_gap_censored` (that
        is a lower bound), `delivered_bytes`, `throughput_bps`.
        """
        import polars as pl

        rows = [
            [host.host, host.flows, host.dead_flows, host.handovers]
            + ([None] * 6 + [0] if (gaps := host.interruption_s) is None else
               [gaps.median, gaps.p95, gaps.max, gaps.median_censored, gaps.p95_censored, gaps.max_censored,
                gaps.censored])
            + [host.longest_gap_s, host.longest_gap_is_bound, host.delivered_bytes, host.throughput_bps]
            for host in self.metrics.hosts
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=_host_schema(), orient="row")

    @cached_property
    def packets(self) -> pl.DataFrame:
        """A row per packet event at a host and chunk, and per drop anywhere.

        `time_ns`, `node`, `action` ("sent", "received", "dropped"), `cause` of a drop, `interface`, `packet_id`,
        `connection` (number of the association or connection; null of an INIT and of what belongs to none), `source`,
        `destination`, `kind` (chunk or message), `tsn` (of DATA; cumulative ack of SACK), `length_bytes` of the IPv6
        packet, `retransmission`.
        """
        return self.frame("packets")

    @cached_property
    def windows(self) -> pl.DataFrame:
        """A row per change of a path of the data sender.

        `time_ns`, `node`, `connection`, `source`, `destination`, `cwnd_bytes`, `ssthresh_bytes`, `flightsize_bytes`,
        `rto_ns`, `primary`.
        """
        return self.frame("windows")

    @cached_property
    def signalling(self) -> pl.DataFrame:
        """A row per signalling event: `time_ns`, `node`, `step` (1 to 5; 0 for others), `event`, `detail`."""
        return self.frame("signalling")

    @cached_property
    def positions(self) -> pl.DataFrame:
        """Sampled positions: `time_ns`, `node`, `x_m`, `y_m`."""
        return self.frame("positions")

    @cached_property
    def cells(self) -> pl.DataFrame:
        """Radio cells: `name`, `x_m`, `y_m`, `radius_m`, `present_s`.

        `present_s` is of cells that come and go by the clock: a beginning and an end for each time that they are there.
        """
        return self.frame("cells")

    @property
    def table_names(self) -> list[str]:
        """Names of the recorded frames."""
        return self._native.table_names

    @property
    def capture_names(self) -> list[str]:
        """Names of the captures, if `pcap` was asked for."""
        return self._native.capture_names

    def captures(self) -> list[tuple[str, bytes]]:
        """Captures as (file name, pcapng bytes), if `pcap` was asked for; read from their files."""
        if self._pcap_folder is None:
            return []
        return [(name, (self._pcap_folder / name).read_bytes()) for name in self._native.capture_names]

    def frame(self, name: str) -> pl.DataFrame:
        """A recorded frame by its name, one of `table_names`.

        Raises:
            ValueError: It was not recorded.
        """
        import polars as pl

        if self._trace_folder is not None:
            return pl.read_parquet(self._trace_folder / f"{name}.parquet")
        table = self._native.table(name)
        if table is None:
            raise ValueError(f"no {name}: the run was made with trace=False")
        return pl.DataFrame(table)


def run(
    scenario: str | Path | Scenario,
    overrides: Mapping[str, object] | None = None,
    *,
    seed: int | None = None,
    trace: bool | str | Path = True,
    pcap: bool | str | Path = False,
    conditions: Sequence[str] = (),
) -> Run:
    """Run a scenario.

    Args:
        scenario: A file, the name of a bundled scenario ("papers/sigma" or "sigma"), or TOML text.
        overrides: Dotted keys to values, as the scenario would have them: `{"l2.latency": "200 ms"}`.
        seed: Seed; the scenario's if left out.
        trace: Record the frames: in memory, or in this folder as Parquet files, which are written while the run goes.
        pcap: Record a pcapng capture per host: in a temporary folder, or in this one. They too are written while the
            run goes, and have their names when it is over.
        conditions: What has to be so of it, beside what the scenario says: `["interruption < 50 ms"]`; see
            `Run.verdicts`.

    Raises:
        ScenarioError: The scenario, an override or a condition is wrong.
        RunError: The run could not be carried to its end.
        KeyboardInterrupt: Ctrl-C.

    >>> result = run("sigma", {"duration": "20 s"}, seed=3, trace=False)
    >>> result.metrics.seed
    3
    """
    if seed is not None and not 0 <= seed < 2**64:
        raise _native.ScenarioError(f"seed: {seed}: expected a whole number from 0 to 2^64 - 1")
    source = scenario if isinstance(scenario, Scenario) else load(scenario)
    trace_folder = _folder("trace", trace)
    pcap_folder = Path(tempfile.mkdtemp(prefix="segue-")) if pcap is True else _folder("pcap", pcap)
    wanted = _native.Job(
        source.text,
        source.file,
        override_list(overrides),
        seed,
        trace is True,
        trace_folder,
        pcap_folder,
        list(conditions),
    )
    try:
        result = Run(_native.run(wanted), trace_folder=trace_folder, pcap_folder=pcap_folder)
    except BaseException:
        if pcap is True:
            shutil.rmtree(str(pcap_folder), ignore_errors=True)
        raise
    if pcap is True:
        weakref.finalize(result, shutil.rmtree, str(pcap_folder), ignore_errors=True)
    return result


def check(scenario: Scenario, overrides: Mapping[str, object] | None = None, *, conditions: Sequence[str] = ()) -> None:
    """Make sure that a scenario can be run with these overrides and conditions, without running it.

    Raises:
        ScenarioError: It cannot.
    """
    _native.check(scenario.text, scenario.file, override_list(overrides), list(conditions))


def keep_of_jobs(
    jobs: Iterable[_native.Job],
    keep: Callable[[Run], Kept],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[Kept]:
    """Run many jobs in Rust threads; what is kept of each is in the order of the jobs, however many threads there are.

    Args:
        jobs: From `job`.
        keep: Called in this thread with each run as it ends, which is then let go; what it raises ends the runs.
        threads: As many as this process may use, if left out.
        progress: Told how far it has come.
    """
    kept = _native.run_many(list(jobs), threads or available_threads(), progress, lambda _, native: keep(Run(native)))
    return cast("list[Kept]", kept)


def take_of_jobs(
    jobs: Iterable[_native.Job],
    take: Callable[[int, Run], object],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Run many jobs as `keep_of_jobs` does; `take` is called with the number of each and its run, as they end."""
    _native.run_many(
        list(jobs), threads or available_threads(), progress, lambda index, native: take(index, Run(native))
    )


def job(
    scenario: Scenario,
    overrides: Mapping[str, object] | None = None,
    *,
    seed: int | None = None,
    trace: bool = False,
) -> _native.Job:
    """One job for `keep_of_jobs`, or for a `segue.runner.Runner`."""
    return _native.Job(scenario.text, scenario.file, override_list(overrides), seed, trace)


def override_list(overrides: Mapping[str, object] | None) -> list[tuple[str, str]]:
    """Overrides as the simulator takes them: TOML values as text."""
    return [(key, _toml_value(value)) for key, value in (overrides or {}).items()]


def available_threads() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _folder(name: str, given: bool | str | Path) -> Path | None:
    """The folder that is named, if one is."""
    if isinstance(given, bool):
        return None
    if given == "":
        raise _native.ScenarioError(f"{name}: expected the name of a folder, and it is empty")
    return Path(given)


def _toml_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _handover_schema() -> dict[str, pl.DataType]:
    import polars as pl

    times = ("latency_s", "handoff_delay_s", "begin_s", "end_s")
    return {
        "host": pl.String(), "flow": pl.UInt64(), "layer": pl.String(), "from": pl.String(), "to": pl.String(),
        "time": pl.Float64(), "interruption_s": pl.Float64(), "censored": pl.Boolean(),
        **dict.fromkeys(times, pl.Float64()), **dict.fromkeys(_PARTS, pl.Float64()), "soft": pl.Boolean(),
        "lost_packets": pl.UInt64(), "retransmissions": pl.UInt64(), "spurious_retransmissions": pl.UInt64(),
        "sender": pl.String(), "receiver": pl.String(),
    }  # fmt: skip


def _flow_schema() -> dict[str, pl.DataType]:
    import polars as pl

    counts = ("packets_sent", "retransmissions", "lost_packets", "spurious_retransmissions", "in_flight_packets")
    return {
        "flow": pl.UInt64(), "sender": pl.String(), "receiver": pl.String(), "transport": pl.String(),
        "source_port": pl.UInt16(), "destination_port": pl.UInt16(), "begin_s": pl.Float64(), "state": pl.String(),
        "dead_since_s": pl.Float64(), "silence_s": pl.Float64(), "longest_gap_s": pl.Float64(),
        "longest_gap_at_s": pl.Float64(), "censored": pl.Boolean(), "outages": pl.UInt64(), "handovers": pl.UInt64(),
        "interruption_s": pl.Float64(),
        "transferred_bytes": pl.UInt64(), "throughput_bps": pl.Float64(), **dict.fromkeys(counts, pl.UInt64()),
    }  # fmt: skip


def _host_schema() -> dict[str, pl.DataType]:
    import polars as pl

    gaps = ("interruption_median_s", "interruption_p95_s", "interruption_max_s")
    bounds = ("interruption_median_censored", "interruption_p95_censored", "interruption_max_censored")
    return {
        "host": pl.String(), "flows": pl.UInt64(), "dead_flows": pl.UInt64(), "handovers": pl.UInt64(),
        **dict.fromkeys(gaps, pl.Float64()), **dict.fromkeys(bounds, pl.Boolean()),
        "interruptions_censored": pl.UInt64(), "longest_gap_s": pl.Float64(), "longest_gap_censored": pl.Boolean(),
        "delivered_bytes": pl.UInt64(), "throughput_bps": pl.Float64(),
    }  # fmt: skip

"""What runs of a comparison came to: medians per flow, with what is no more than a lower bound marked as such."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor
from pathlib import Path
from typing import Any

from segue.lab.record import metrics_of
from segue.lab.trials.plan import Application, Combination, quantity
from segue.lab.trials.received import (
    AROUND_S,
    Received,
    Window,
    datagrams_lost,
    end_of_data_s,
    is_complete,
    longest_gap,
    received,
    throughput_bps,
)
from segue.metrics import Flow, Metrics
from segue.running import Verdict

FIRST_PORT = 9000
"""Of the programs of the lab: an application's is this and its number."""
EXIT_TOO_LATE = 3
LEAST_FOR_RATIO_MS = 1.0
"""Of less the ratio says nothing: packets may be so late and count as in time."""


@dataclass(frozen=True, slots=True)
class LabRun:
    """One run of one combination.

    Attributes:
        metrics: Of the run with real hosts.
        prediction: Of the simulator on the same file, if asked for.
        too_late: So many packets were late that the figures are the machine's: they are not used.
        share_late: Share of packets delivered more than 1 ms late.
        failed: Numbers of applications whose client failed by itself.
        finished: Those whose client ended by itself, and well.
        verdicts: Of the conditions.
        received: By application, what its receiver read: of programs of ours.
        left_out: Applications that the scheme does not carry.
        changes_s: When addresses came or went, seconds of the run.
        kernel: Its release.
        record: The folder with its frames, if they were recorded.
    """

    metrics: Metrics
    prediction: Metrics | None
    too_late: bool
    share_late: float
    failed: frozenset[int]
    verdicts: tuple[Verdict, ...] = ()
    received: Mapping[int, Received] = field(default_factory=dict)
    left_out: frozenset[int] = frozenset()
    changes_s: tuple[float, ...] = ()
    finished: frozenset[int] = frozenset()
    kernel: str = ""
    record: Path | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """A measurement, of which some are lower bounds."""

    value: float
    censored: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """Median of several runs, with the least and the greatest, in their unit.

    A median is a lower bound if it is as great as the least of those that are, or greater: see `segue.Spread`.

    Attributes:
        median: Median.
        low: Least.
        high: Greatest.
        count: Of how many.
        censored: How many of them are lower bounds.
        median_censored: Whether the median is one.
    """

    median: float
    low: float
    high: float
    count: int
    censored: int
    median_censored: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One flow of one combination: the application's data, not what its ends say to each other besides.

    Attributes:
        scheme: The scheme.
        event: The event.
        network: What that happens to; empty where it is planned.
        flow: What tells the flow from others, its rate or kind.
        transport: Over what.
        pacing_ms: Time between two of its messages.
        runs: Runs of which there are figures.
        too_late: Runs that were too late and are not used.
        ended_before: Runs in which all data was through before anything happened: they have no interruption.
        interruption_ms: Beyond the pacing: see `interruption`; `None` if there is none.
        lost: Packets lost; of a scheme of others, datagrams that its receiver did not read.
        before_bps: Throughput before what happens, bit/s.
        after_bps: Throughput after it, bit/s.
        predicted_ms: Interruption in the simulator.
        predicted_ended_before: As `ended_before`.
        ratio: Of the two medians, the lab's to the simulator's; `None` where either is a lower bound or the
            simulator's is under `LEAST_FOR_RATIO_MS`.
    """

    scheme: str
    event: str
    network: str
    flow: str
    transport: str
    pacing_ms: float
    runs: int
    too_late: int
    ended_before: int
    interruption_ms: Estimate | None
    lost: Estimate | None
    before_bps: Estimate | None
    after_bps: Estimate | None
    predicted_ms: Estimate | None
    predicted_ended_before: int
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Result:
    """A combination and its runs."""

    combination: Combination
    runs: tuple[LabRun, ...]

    @property
    def usable(self) -> list[LabRun]:
        """Those that were not too late."""
        return [run for run in self.runs if not run.too_late]

    @property
    def refuted(self) -> list[str]:
        """Conditions that do not hold, in words, of the runs that count."""
        return [
            f"run {number}: {verdict.text}"
            for number, run in enumerate(self.runs, 1)
            for verdict in verdicts(run, self.combination)
            if not run.too_late and not verdict.holds
        ]


def parse(document: str, *, status: int = 0) -> LabRun:
    """What `segue-lab run --json` wrote.

    Args:
        document: Its standard output.
        status: Its exit status.

    Raises:
        ValueError: It is no such document.
    """
    raw: dict[str, Any] = json.loads(document)
    try:
        lab, prediction = raw["lab"], raw.get("prediction")
        failed = {program["application"] for program in lab["programs"] if _is_failed(program)}
        finished = {program["application"] for program in lab["programs"] if _is_finished(program)}
        return LabRun(
            metrics_of(raw),
            None if prediction is None else Metrics.from_json(json.dumps(prediction)),
            status == EXIT_TOO_LATE or bool(lab["emulation"]["too_late"]),
            float(lab["emulation"]["share_late"]),
            frozenset(failed),
            tuple(Verdict(**verdict) for verdict in lab["conditions"]),
            received(lab.get("received", ())),
            frozenset(entry["application"] for entry in lab.get("left_out", ())),
            tuple(change["time_s"] for change in lab.get("changes", ())),
            frozenset(finished),
            str(lab.get("kernel", "")),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not the document of a run of the lab: {error}") from error


def interruption(flow: Flow | None, combination: Combination, number: int, *, failed: bool = False) -> Value:
    """For how long a flow was interrupted beyond its own pacing, seconds. This is the definition.

    The longest time without new data around a handover, in an outage (`interruption_s` of a run) or around what the
    scenario has happen (`around_events`), which ends after that begins, and begins while it lasts, or within a second
    of one that lasts to the end. Less the time between two messages of the application, and never less than zero:
    somebody who types every 50 ms and is heard every 50 ms is not interrupted. What is dead, what is silent when the
    run ends, and what ended because its program gave up, is a lower bound; so is a flow of which nothing was ever seen.

    Args:
        flow: The flow, if there was one.
        combination: What was run.
        number: Of its application.
        failed: Its program gave up.
    """
    if flow is None:
        return Value(combination.duration_s, censored=True)
    longest, is_bound = flow.interruption_s or 0.0, flow.state == "dead"
    if flow.around_events is not None:
        longest = max(longest, flow.around_events.duration_s)
        is_bound |= flow.around_events.censored
    if flow.state == "dead":
        longest = max(longest, flow.silence_s or 0.0)
    elif failed:
        longest, is_bound = max(longest, combination.duration_s - flow.end_s), True
    beyond = max(0.0, longest - combination.applications[number].pacing_s)
    return Value(beyond, is_bound)


def ended_before(flow: Flow | None, metrics: Metrics, combination: Combination, number: int, *, finished: bool) -> bool:
    """Whether all of an application's data was through before anything happened, so that nothing was to be interrupted.

    Args:
        flow: Its flow, if there was one.
        metrics: Of the run.
        combination: What was run.
        number: Of the application.
        finished: Its program has ended by itself, and well.
    """
    if flow is None or flow.state not in ("closed", "idle"):
        return False
    size = combination.applications[number].size_bytes
    is_through = flow.state == "closed" or finished or (size is not None and flow.transferred_bytes >= size)
    happens = [event.at_s for event in metrics.scenario_events[:1]]
    happens += [one.time_s for one in metrics.handovers if one.host in (flow.sender, flow.receiver)][:1]
    return is_through and bool(happens) and flow.end_s < min(happens)


def interruptions(run: LabRun, combination: Combination) -> list[Value]:
    """Of each application whose data was not through before, as the table has them."""
    found = [
        (number, find_flow(run.metrics, combination.applications, number))
        for number in range(len(combination.applications))
    ]
    return [
        interruption(flow, combination, number, failed=number in run.failed)
        for number, flow in found
        if not _is_over(run, flow, combination, number)
    ]


def verdicts(run: LabRun, combination: Combination) -> list[Verdict]:
    """What became of conditions: of `interruption` by the table, of the others as the run says."""
    return [_judged(one, run, combination) for one in run.verdicts]


def estimate(values: Iterable[Value]) -> Estimate | None:
    """Their median; `None` of none.

    >>> estimate([Value(1.0), Value(2.0), Value(9.0, censored=True)])
    Estimate(median=2.0, low=1.0, high=9.0, count=3, censored=1, median_censored=False)
    """
    ordered = sorted(values, key=lambda one: one.value)
    if not ordered:
        return None
    numbers = [one.value for one in ordered]
    bounds = [one.value for one in ordered if one.censored]
    half = len(numbers) // 2
    # of an even number, the greater of the two says whether it is one
    median = numbers[half] if len(numbers) % 2 else (numbers[half - 1] + numbers[half]) / 2
    return Estimate(
        median, numbers[0], numbers[-1], len(numbers), len(bounds), bool(bounds) and numbers[half] >= bounds[0]
    )


def rows(results: Sequence[Result]) -> list[Row]:
    """A row per combination and application."""
    return [_row(one, number) for one in results for number in range(len(one.combination.applications))]


def find_flow(metrics: Metrics, applications: Sequence[Application], number: int) -> Flow | None:
    """The flow with an application's data: of all that goes between its ends, either way, what carried most.

    Who downloads asks in a hundred bytes, and what matters is the answer. In the lab an application has the port of its
    program. In the simulator, and of SCTP, there is no such port: connections are in the order of applications, and
    each has its data before the answers.
    """
    own = applications[number]
    alike = [place for place, other in enumerate(applications) if _same_ends(other, own)]
    labelled: dict[int, list[Flow]] = {}
    others: list[Flow] = []
    for flow in metrics.flows:
        if flow.transport != own.transport or {flow.sender, flow.receiver} != {own.sender, own.receiver}:
            continue
        ports = (flow.source_port - FIRST_PORT, flow.destination_port - FIRST_PORT)
        place = next((place for place in range(len(applications)) if place in ports), None)
        if place is None:
            others.append(flow)
        elif place in alike:
            labelled.setdefault(place, []).append(flow)
    if number not in labelled:
        opened = [one for one in _connections(others) if one[0].sender == own.sender]
        labelled |= zip([place for place in alike if place not in labelled], opened, strict=False)
    # of the same, or nothing at all, the direction that the scenario has
    return max(
        labelled.get(number, []), key=lambda flow: (flow.transferred_bytes, flow.sender == own.sender), default=None
    )


def _connections(flows: Sequence[Flow]) -> list[list[Flow]]:
    """Those whose ends are the same put together, in order; a second one the same way is another connection's."""
    found: list[list[Flow]] = []
    for flow in flows:
        answered = (flow.receiver, flow.sender, flow.destination_port, flow.source_port)
        for one in found:
            if [(f.sender, f.receiver, f.source_port, f.destination_port) for f in one] == [answered]:
                one.append(flow)
                break
        else:
            found.append([flow])
    return found


def read_interruption(run: LabRun, combination: Combination, number: int) -> Value | None:
    """The same for a scheme of others, by what the receiving program read, seconds.

    Its packets do not show whose data they carry: they are encrypted, or of several subflows. The longest time without
    data around a change of addresses, or around the event; less the time between two messages. Of a program of others
    nobody knows what it read: it has none.

    Args:
        run: The run.
        combination: What was run.
        number: Of the application.
    """
    own = run.received.get(number)
    if own is None and not combination.applications[number].is_observed:
        return None
    if own is None or own.begin_s is None:
        return Value(combination.duration_s, censored=True)
    application, duration_s = combination.applications[number], combination.duration_s
    longest, lasted = longest_gap(
        own,
        _windows(run, combination, own),
        duration_s=end_of_data_s(own, application, duration_s=duration_s),
        is_complete=is_complete(own, application, duration_s=duration_s),
    )
    return Value(max(0.0, longest - application.pacing_s), lasted)


def _row(result: Result, number: int) -> Row:
    combination = result.combination
    if combination.is_by_reads:
        return _row_by_reads(result, number)
    usable = result.usable
    found = [(run, find_flow(run.metrics, combination.applications, number)) for run in usable]
    there = [(run.metrics, flow, number in run.failed) for run, flow in found if flow is not None]
    lasting = [(run, flow) for run, flow in found if not _is_over(run, flow, combination, number)]
    in_lab = _in_ms(interruption(flow, combination, number, failed=number in run.failed) for run, flow in lasting)
    simulated = [
        (run.prediction, find_flow(run.prediction, combination.applications, number))
        for run in usable
        if run.prediction is not None
    ]
    lasting_there = [
        flow for metrics, flow in simulated if not ended_before(flow, metrics, combination, number, finished=False)
    ]
    in_simulator = _in_ms(interruption(flow, combination, number) for flow in lasting_there)
    return _row_of(
        result,
        number,
        runs=len(usable),
        ended_before=len(usable) - len(lasting),
        interruption_ms=in_lab,
        lost=estimate(Value(float(flow.lost_packets)) for _, flow, _ in there),
        before_bps=estimate(_throughputs(combination, number, there, after=False)),
        after_bps=estimate(_throughputs(combination, number, there, after=True)),
        predicted_ms=in_simulator,
        predicted_ended_before=len(simulated) - len(lasting_there),
    )


def _is_over(run: LabRun, flow: Flow | None, combination: Combination, number: int) -> bool:
    if number in run.failed:
        return False
    return ended_before(flow, run.metrics, combination, number, finished=number in run.finished)


def _judged(verdict: Verdict, run: LabRun, combination: Combination) -> Verdict:
    match = re.fullmatch(r"\s*interruption\s*(<=|>=|==|!=|<|>)\s*(.+)", verdict.condition)
    if match is None or combination.is_by_reads:
        return verdict
    found, limit = interruptions(run, combination), quantity(match[2])
    if not found:
        said = "does not hold: none measured; all ended before"
        return Verdict(verdict.condition, holds=False, text=f"{verdict.condition}: {said}")
    longest, is_bound = max(one.value for one in found), any(one.censored for one in found)
    holds = {
        "<": not is_bound and longest < limit,
        "<=": not is_bound and longest <= limit,
        "==": not is_bound and longest == limit,
        "!=": longest > limit or (not is_bound and longest != limit),
        ">": longest > limit,
        ">=": longest >= limit,
    }[match[1]]
    # a bound is never rounded up
    shown = f"≥ {floor(longest * 1e4 + 1e-6) / 10:.1f} ms" if is_bound else f"{longest * 1e3:.1f} ms"
    return Verdict(verdict.condition, holds, f"{verdict.condition}: {'holds' if holds else 'does not hold'}: {shown}")


def _row_by_reads(result: Result, number: int) -> Row:
    combination = result.combination
    application = combination.applications[number]
    there = [run for run in result.usable if number not in run.left_out]
    interruptions = [read_interruption(run, combination, number) for run in there]

    def throughputs(*, after: bool) -> Iterable[Value]:
        for run in there:
            own = run.received.get(number)
            moment = None if own is None else _read_moment_s(run, combination, own)
            if own is None or moment is None:
                continue
            rate = throughput_bps(
                own,
                moment,
                after=after,
                duration_s=end_of_data_s(own, application, duration_s=combination.duration_s),
                is_complete=is_complete(own, application, duration_s=combination.duration_s),
            )
            if rate is not None:
                yield Value(rate)

    def lost() -> Iterable[Value]:
        """Of datagrams; what is missing of a stream is not lost but late."""
        is_paced = application.transport == "udp" and application.pacing_s > 0
        for own in (run.received.get(number) for run in there if is_paced):
            if own is not None:
                yield Value(float(datagrams_lost(own, application, duration_s=combination.duration_s)))

    return _row_of(
        result,
        number,
        runs=len(there),
        ended_before=0,
        interruption_ms=_in_ms(one for one in interruptions if one is not None),
        lost=estimate(lost()),
        before_bps=estimate(throughputs(after=False)),
        after_bps=estimate(throughputs(after=True)),
        predicted_ms=None,
        predicted_ended_before=0,
    )


def _row_of(
    result: Result,
    number: int,
    *,
    runs: int,
    ended_before: int,
    interruption_ms: Estimate | None,
    lost: Estimate | None,
    before_bps: Estimate | None,
    after_bps: Estimate | None,
    predicted_ms: Estimate | None,
    predicted_ended_before: int,
) -> Row:
    combination = result.combination
    application = combination.applications[number]
    return Row(
        combination.scheme,
        combination.event,
        combination.network,
        application.label,
        application.transport,
        application.pacing_s * 1e3,
        runs,
        len(result.runs) - len(result.usable),
        ended_before,
        interruption_ms,
        lost,
        before_bps,
        after_bps,
        predicted_ms,
        predicted_ended_before,
        _ratio(interruption_ms, predicted_ms),
    )


def _windows(run: LabRun, combination: Combination, own: Received) -> list[Window]:
    if combination.at_s is not None:
        return [Window(combination.at_s, combination.at_s + (combination.lasts_s or AROUND_S))]
    if events := run.metrics.scenario_events:
        return [Window(one.at_s, one.at_s + (one.for_s or AROUND_S)) for one in events]
    return [Window(change, change + AROUND_S) for change in run.changes_s if change > (own.begin_s or 0.0)]


def _read_moment_s(run: LabRun, combination: Combination, own: Received) -> float | None:
    """When it happens: the event, or the first change of addresses."""
    windows = _windows(run, combination, own)
    return windows[0].from_s if windows else None


def _throughputs(
    combination: Combination, number: int, there: Iterable[tuple[Metrics, Flow, bool]], *, after: bool
) -> Iterable[Value]:
    """In whole seconds before what happens, or after it to the flow's end."""
    for metrics, flow, failed in there:
        moment = _moment_s(combination, metrics, flow)
        if moment is None:
            continue
        last = _last_second(flow, combination, number, failed=failed)
        begin, end = (ceil(moment), last) if after else (ceil(flow.begin_s), floor(moment))
        if end > begin:
            # seconds at the end without any are not in the list
            yield Value(sum(flow.received_bytes_by_second[begin:end]) * 8 / (end - begin))


def _last_second(flow: Flow, combination: Combination, number: int, *, failed: bool) -> int:
    """Where its whole seconds end: with all that it had to send, with its life, or with the run."""
    if failed:
        return floor(combination.duration_s)
    size = combination.applications[number].size_bytes
    if size is not None and flow.transferred_bytes >= size:
        filled = [second for second, count in enumerate(flow.received_bytes_by_second) if count]
        return max(filled, default=0)
    return floor(flow.end_s)


def _moment_s(combination: Combination, metrics: Metrics, flow: Flow) -> float | None:
    """When it happens: the event, or else the flow's first handover, or its death."""
    if metrics.scenario_events:
        return metrics.scenario_events[0].at_s
    if combination.at_s is not None:
        return combination.at_s
    moves = [one.time_s for one in metrics.handovers if one.flow == flow.id and one.time_s > flow.begin_s]
    return min(moves, default=flow.dead_since_s)


def _in_ms(values: Iterable[Value]) -> Estimate | None:
    return estimate(Value(one.value * 1e3, one.censored) for one in values)


def _ratio(lab: Estimate | None, simulator: Estimate | None) -> float | None:
    if lab is None or simulator is None or lab.median_censored or simulator.median_censored:
        return None
    return lab.median / simulator.median if simulator.median >= LEAST_FOR_RATIO_MS else None


def _same_ends(a: Application, b: Application) -> bool:
    return (a.sender, a.receiver, a.transport) == (b.sender, b.receiver, b.transport)


def _is_finished(program: dict[str, Any]) -> bool:
    return program["role"] == "client" and not program["stopped"] and program["exit_status"] == 0


def _is_failed(program: dict[str, Any]) -> bool:
    """Ended by itself, and not well: one that the lab stops at the end of the run has done nothing wrong."""
    return program["role"] == "client" and not program["stopped"] and program["exit_status"] != 0

"""What `segue compare` puts beside each other: schemes or settings of a scenario, scenario files, and captures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from segue._native import ScenarioError
from segue.analyze import Analysis, analyze
from segue.runner import Runner
from segue.running import Progress, Run, check, job
from segue.scenarios import Scenario, load
from segue.stats import is_median_bound, median_interval
from segue.sweeps.columns import find_metric, number_in
from segue.sweeps.execution import Caveats
from segue.sweeps.plan import row_of_run

if TYPE_CHECKING:
    from segue.findings import TrafficHandover
    from segue.metrics import Handover

LEVEL = 0.95
EACH = 1 - (1 - LEVEL) / 2
"""Confidence of each of two intervals of which a difference is made: both hold with `LEVEL` together."""
OF_RUNS = ("interruption", "interruption.median", "handover_latency.median", "loss", "throughput", "signalling")
"""Metrics that are compared if none are asked for, where all subjects are simulated."""
CAPTURES = (b"\x0a\x0d\x0d\x0a", b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1",
            b"\xa1\xb2\xcd\x34", b"\x34\xcd\xb2\xa1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd",
            *(bytes([kind, 0x2A, 0x4D, 0x18]) for kind in range(0x50, 0x60)))  # fmt: skip
"""What pcapng and pcap files begin with, and what gzip or zstd has compressed (RFC 8878 sections 3.1.1 and 3.1.2): a
scenario begins with none of it."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What is compared.

    Attributes:
        name: "interruption".
        unit: "s", "bit/s", "B" or "".
        each: Of what a value is: "seed" or "handover".
    """

    name: str
    unit: str
    each: str


OF_HANDOVERS: dict[str, tuple[Measure, Callable[[Handover | TrafficHandover], float | None]]] = {
    "interruption": (Measure("interruption", "s", "handover"), lambda one: one.interruption_s),
    "handover_latency": (Measure("handover_latency", "s", "handover"), lambda one: one.latency_s),
    "handoff_delay": (Measure("handoff_delay", "s", "handover"), lambda one: one.handoff_delay_s),
    "adaptation": (Measure("adaptation", "s", "handover"), lambda one: one.parts.t_a_s if one.parts else None),
    "lost_packets": (Measure("lost_packets", "", "handover"), lambda one: one.lost_packets),
}
"""What a handover of a capture has as well as a simulated one."""


@dataclass(frozen=True, slots=True)
class Value:
    """A number; a bound may be greater in truth. With a seed, it can be told which of another sample belongs to it."""

    value: float
    is_bound: bool = False
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """One of those that are compared.

    Attributes:
        name: What it is called.
        is_capture: It is one; else it was simulated.
        runs: By metric, a value for each seed.
        handovers: By measure of `OF_HANDOVERS`, a value for each handover of any seed; of "interruption" also one for
            each outage that no handover accounts for.
    """

    name: str
    is_capture: bool
    runs: Mapping[str, Sequence[Value]]
    handovers: Mapping[str, Sequence[Value]]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median, or a difference, with its interval; ends that nobody knows are infinite.

    Attributes:
        value: The median, or the difference of two.
        is_bound: A lower bound is in it: it may be greater, or if it is the other's, less.
        low: Lower end.
        high: Upper end.
        coverage: Of the interval, at least; 0 where there are too few values for one.
        n: Values, or pairs of them.
    """

    value: float
    is_bound: bool
    low: float
    high: float
    coverage: float
    n: int


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table: what a subject has of a measure, and how that differs from the first subject's."""

    measure: Measure
    subject: str
    estimate: Estimate | None
    difference: Estimate | None
    is_paired: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for.

    Attributes:
        subjects: `FILE`, two captures of both ends as `MN,CN`, a scheme, or `KEY=VALUE` of a scenario; `NAME=FILE`
            gives files another name. `scheme=NAME` is the scheme, whatever files there are.
        scenario: The scenario of schemes and settings.
        overrides: What all simulated subjects share.
        seeds: Seeds of each.
        metrics: What is compared; `OF_RUNS`, or with a capture `OF_HANDOVERS`, if empty.
    """

    subjects: tuple[str, ...]
    scenario: str | None = None
    overrides: Mapping[str, object] = field(default_factory=dict)
    seeds: Sequence[int] = tuple(range(1, 11))
    metrics: tuple[str, ...] = ()


def compare(
    wanted: Wanted,
    *,
    runner: Runner | None = None,
    tell: Callable[[str], object] = warnings.warn,
    progress: Progress | None = None,
) -> list[Subject]:
    """Have what is compared simulated, or read. `tell` is told what runs and analyses warn of, each once.

    Raises:
        ScenarioError: A subject is none, or two have one name.
        CaptureError: A capture cannot be analysed.
        RunError: A run could not be carried to its end.
    """
    sources = [_source(text, wanted) for text in wanted.subjects]
    names = [source.name for source in sources]
    if len(names) < 2:
        raise ScenarioError("compare: expected at least two subjects")
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ScenarioError(f"{name}: is there twice, expected NAME=FILE for another name")
    simulated = [source for source in sources if source.scenario is not None]
    metrics = metrics_of(wanted, [source.scenario is None for source in sources])
    for source in simulated:
        check(source.scenario, source.overrides)  # type: ignore[arg-type]
    jobs = [
        job(source.scenario, source.overrides, seed=seed)  # type: ignore[arg-type]
        for source in simulated
        for seed in wanted.seeds
    ]
    of_runs = metrics if len(simulated) == len(sources) else ()
    caveats = Caveats(tell)

    def keep(run: Run) -> tuple[dict[str, Value], dict[str, list[Value]]]:
        caveats.note(run)
        return _of_run(run, of_runs)

    results = iter((runner or Runner()).keep(jobs, keep, progress=progress))
    caveats.close()
    subjects = []
    for source in sources:
        if source.scenario is not None:
            subjects.append(_subject(source.name, False, [next(results) for _ in wanted.seeds]))
            continue
        analysis = analyze(*source.captures)
        for text in analysis.warnings():
            tell(f"{source.name}: {text}")
        subjects.append(subject_of(source.name, [analysis]))
    return subjects


def subject_of(name: str, results: Sequence[Run | Analysis], metrics: Sequence[str] = ()) -> Subject:
    """Runs, or analyses of captures, as one subject, with these metrics of runs."""
    made = [_of_run(one, metrics) if isinstance(one, Run) else ({}, _of_analysis(one)) for one in results]
    return _subject(name, any(isinstance(one, Analysis) for one in results), made)


def metrics_of(wanted: Wanted, are_captures: Sequence[bool]) -> tuple[str, ...]:
    """Names of what is compared.

    Raises:
        ScenarioError: One is not to be had of all subjects.
    """
    if not any(are_captures):
        names = wanted.metrics or OF_RUNS
        for name in names:
            find_metric(name)
        return names
    for name in wanted.metrics:
        if name not in OF_HANDOVERS:
            raise ScenarioError(f"metric `{name}`: expected one that captures have: {', '.join(OF_HANDOVERS)}")
    return wanted.metrics or tuple(OF_HANDOVERS)


def table(subjects: Sequence[Subject], metrics: Sequence[str]) -> list[Line]:
    """A line for each metric and subject; those that no subject has are left out."""
    lines = []
    of_handovers = any(subject.is_capture for subject in subjects)
    for name in metrics:
        measure = OF_HANDOVERS[name][0] if of_handovers else Measure(name, find_metric(name).unit, "seed")
        samples = [(one.handovers if of_handovers else one.runs).get(name, ()) for one in subjects]
        if not any(samples):
            continue
        for number, (subject, sample) in enumerate(zip(subjects, samples, strict=True)):
            difference = None if number == 0 else difference_of(samples[0], sample, is_paired=not of_handovers)
            lines.append(Line(measure, subject.name, median_of(sample), difference, not of_handovers))
    return lines


def median_of(sample: Sequence[Value], confidence: float = LEVEL) -> Estimate | None:
    """The median of a sample with its order-statistic interval, which has no upper end where it reaches to a bound."""
    if not sample:
        return None
    values = [one.value for one in sample]
    interval = median_interval(values, confidence)
    least = min((one.value for one in sample if one.is_bound), default=inf)
    high = inf if interval.high >= least else interval.high
    return Estimate(interval.median, is_median_bound(values, least), interval.low, high, interval.coverage, len(sample))


def difference_of(first: Sequence[Value], second: Sequence[Value], *, is_paired: bool) -> Estimate | None:
    """By how much the second is greater.

    Paired, it is the median of the differences of each seed, whose random streams are the same, with its
    order-statistic interval. Else it is the difference of the medians; its interval is that from the lower end of one
    to the upper end of the other, each with a confidence of `EACH` (Bonferroni's inequality), and there is none where
    there are too few values. Handovers are then taken as independent: those of one run or capture share path and
    load, so that an interval may be too narrow for others.
    """
    if not is_paired:
        a, b = median_of(first, EACH), median_of(second, EACH)
        if a is None or b is None:
            return None
        coverage = max(0.0, a.coverage + b.coverage - 1)
        is_bound = a.is_bound or b.is_bound
        return Estimate(b.value - a.value, is_bound, b.low - a.high, b.high - a.low, coverage, min(a.n, b.n))
    of_first = {one.seed: one for one in first}
    pairs = [(of_first[one.seed], one) for one in second if one.seed in of_first]
    if not pairs:
        return None
    middle = median_interval([b.value - a.value for a, b in pairs])
    # what is no more than a bound may make a difference anything, on one side
    lows = median_interval([-inf if a.is_bound else b.value - a.value for a, b in pairs])
    highs = median_interval([inf if b.is_bound else b.value - a.value for a, b in pairs])
    is_bound = lows.median == -inf or highs.median == inf
    return Estimate(middle.median, is_bound, lows.low, highs.high, middle.coverage, len(pairs))


@dataclass(frozen=True, slots=True)
class _Source:
    """A scenario with overrides, or without one a capture, or those of both ends."""

    name: str
    scenario: Scenario | None
    overrides: Mapping[str, object]
    captures: tuple[str, ...] = ()


def _source(text: str, wanted: Wanted) -> _Source:
    name, file = text, text
    head, equals, rest = text.partition("=")
    if equals and not Path(text).is_file():
        # a scheme goes by its name, whatever file has that too
        is_file = head.strip() != "scheme" and (bool(_captures(rest)) or Path(rest).is_file())
        if wanted.scenario is not None and not is_file:
            return _Source(text, load(wanted.scenario), {**wanted.overrides, head.strip(): rest.strip()})
        name, file = head, rest
    if captures := _captures(file):
        return _Source(name, None, {}, captures)
    if wanted.scenario is not None and not Path(file).is_file():
        return _Source(name, load(wanted.scenario), {**wanted.overrides, "scheme": file})
    scenario = load(file)
    if wanted.scenario is None and file in _schemes() and not Path(file).is_file():
        # the lab has files of their names, which differ in more than that
        raise ScenarioError(
            f"{file}: is a scheme, expected --scenario FILE with it, or {scenario.name} for the scenario of that name"
        )
    return _Source(scenario.name if name == file else name, scenario, wanted.overrides)


def _schemes() -> frozenset[str]:
    from segue.keys import keys

    return frozenset(choice.value for key in keys() if key.key == "scheme" for choice in key.choices)


def _captures(text: str) -> tuple[str, ...]:
    """The captures that a subject names: its file, or `MN,CN`; none if it names something else."""
    if _is_capture(Path(text)):
        return (text,)
    parts = tuple(text.split(","))
    if len(parts) < 2 or Path(text).is_file() or not any(_is_capture(Path(part)) for part in parts):
        return ()
    if len(parts) > 2:
        raise ScenarioError(f"{text}: {len(parts)} captures, expected one, or those of both ends: MN,CN")
    for part in parts:
        if not _is_capture(Path(part)):
            raise ScenarioError(f"{text}: {part}: expected a capture of the other end")
    return parts


def _is_capture(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4).startswith(CAPTURES)


def _of_run(run: Run, metrics: Sequence[str]) -> tuple[dict[str, Value], dict[str, list[Value]]]:
    seed = run.metrics.seed
    row = row_of_run(run.metrics_json, ())
    values = {}
    for name in metrics:
        metric = find_metric(name)
        value = number_in(row[metric.column])
        if value is not None:
            values[name] = Value(value, bool(row.get(metric.bound)), seed)
    moves = _of_handovers(run.metrics.handovers)
    outages = [outage for flow in run.metrics.flows for outage in flow.outages]
    moves["interruption"] += [Value(outage.duration_s, outage.censored) for outage in outages]
    return values, moves


def _subject(
    name: str, is_capture: bool, results: Sequence[tuple[dict[str, Value], dict[str, list[Value]]]]
) -> Subject:
    runs: dict[str, list[Value]] = {}
    handovers: dict[str, list[Value]] = {}
    for values, moves in results:
        for metric, value in values.items():
            runs.setdefault(metric, []).append(value)
        for measure, some in moves.items():
            handovers.setdefault(measure, []).extend(some)
    return Subject(name, is_capture, runs, handovers)


def _of_analysis(analysis: Analysis) -> dict[str, list[Value]]:
    findings = analysis.findings
    moves = _of_handovers(findings.handovers)
    ways = [flow.direction(name) for flow in findings.flows for name in ("forward", "reverse")]
    moves["interruption"] += [Value(one.duration_s, one.censored) for way in ways for one in way.outages]
    return moves


def _of_handovers(handovers: Sequence[Handover | TrafficHandover]) -> dict[str, list[Value]]:
    found: dict[str, list[Value]] = {name: [] for name in OF_HANDOVERS}
    for one in handovers:
        for name, (_, take) in OF_HANDOVERS.items():
            value = take(one)
            if value is not None:
                found[name].append(Value(float(value), bool(one.censored) if name == "interruption" else False))
    return found

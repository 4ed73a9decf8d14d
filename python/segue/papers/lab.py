"""Claims by runs with real hosts: the same files, the same seeds and the same criteria as in the simulator.

A paper's `lab` module says which points are run and hands what came of them, from either world, to the functions that
judge the claims; nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from segue import ScenarioError
from segue.lab.record import Record
from segue.lab.trials.plan import Combination, expected_s, planned
from segue.lab.trials.results import LabRun
from segue.lab.trials.results import Result as LabResult
from segue.lab.trials.runs import Told, run_all
from segue.papers.claims import NOT_RUN, Claim, InLab
from segue.recorded import Measured, Recorded
from segue.runner import Runner
from segue.running import Run, job
from segue.scenarios import Scenario

CONGESTION_CONTROL = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
RUNS = "runs"
"""The folder in `out` with the documents of runs."""


@dataclass(frozen=True, slots=True)
class Point:
    """What is run, in the lab and in the simulator.

    Attributes:
        name: For files and tables; one of its own for each point of a paper.
        scenario: The file.
        settings: Overrides.
        traced: Whether its frames are looked at.
        only_in_lab: The simulator has nothing to say of it.
    """

    name: str
    scenario: Scenario
    settings: Mapping[str, object] = field(default_factory=dict)
    traced: bool = False
    only_in_lab: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """A run that is judged.

    Attributes:
        seed: Its seed.
        run: What is known of it: frames only of a traced point.
        lab: What is the lab's own, of a run there.
    """

    seed: int
    run: Measured
    lab: LabRun | None = None

    @property
    def frames(self) -> Recorded:
        """The run with its frames.

        Raises:
            TypeError: It was not traced.
        """
        if isinstance(self.run, (Run, Record)):
            return self.run
        raise TypeError("the point is not traced")


Samples = Mapping[str, Sequence[Sample]]
"""Runs by the name of their point."""


@dataclass(frozen=True, slots=True)
class Part:
    """Claims that are judged by the same points.

    Attributes:
        claims: Their ids.
        points: What is run for them.
        judge: The claims, from runs of either world; each point has one at least.
        note: What is to be said of them in the lab.
    """

    claims: tuple[str, ...]
    points: tuple[Point, ...]
    judge: Callable[[Samples], Sequence[Claim]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the lab has of a paper.

    Attributes:
        parts: Claims that are run.
        not_run: Why the others are not, by their ids.
        repeat: Runs of each point.
    """

    parts: Sequence[Part]
    not_run: Mapping[str, str]
    repeat: int

    @property
    def points(self) -> list[Point]:
        """All points, each once, in the order of the parts."""
        return list({point.name: point for part in self.parts for point in part.points}.values())


@dataclass(frozen=True, slots=True)
class Findings:
    """What came of it.

    Attributes:
        by_claim: By id.
        runs: Runs that were made, those that were too late among them.
        simulated: The claims that were run, as the simulator's runs of the same files and seeds judge them.
        simulations: How many those are.
    """

    by_claim: Mapping[str, InLab]
    runs: int
    simulated: tuple[Claim, ...] = ()
    simulations: int = 0

    def alone(self, claims: Sequence[str]) -> list[Claim]:
        """These claims by the same runs of either world, and nothing else; one that is not run has its reason."""
        known = {claim.id: claim for claim in self.beside(self.simulated)}
        missing = (replace(_UNJUDGED, id=claim, lab=self.by_claim[claim]) for claim in claims if claim not in known)
        return [known[claim] for claim in claims if claim in known] + list(missing)

    def beside(self, claims: Sequence[Claim]) -> list[Claim]:
        """The claims of the simulator, each with the lab's."""
        unknown = InLab("", NOT_RUN, note="segue lab reproduce has no runs for it")
        return [replace(claim, lab=self.by_claim.get(claim.id, unknown)) for claim in claims]


_UNJUDGED = Claim("", "", "", "", None, "")
"""One that is not run."""


def only(plan: Plan, claims: Sequence[str]) -> Plan:
    """The parts that judge one of these claims; of the others it is said that they were not asked for.

    Raises:
        ScenarioError: There is no such claim.
    """
    known = [claim for part in plan.parts for claim in part.claims] + list(plan.not_run)
    for claim in claims:
        if claim not in known:
            raise ScenarioError(f"--claims {claim}: expected some of {', '.join(sorted(known, key=_by_number))}")
    parts = [part for part in plan.parts if not set(claims).isdisjoint(part.claims)]
    left = {claim: "was not asked for" for part in plan.parts if part not in parts for claim in part.claims}
    return replace(plan, parts=parts, not_run={**left, **plan.not_run})


def _by_number(claim: str) -> tuple[str, int]:
    return claim[:1], int(claim[1:])


def combinations_of(plan: Plan) -> list[Combination]:
    """The points as `segue.lab.trials.runs` runs them.

    Raises:
        ScenarioError: One cannot be run.
    """
    return [
        replace(planned(point.name, point.scenario, point.settings, None), is_recorded=point.traced)
        for point in plan.points
    ]


def expected_minutes(plan: Plan) -> float:
    """How long the runs take in the lab, minutes."""
    return expected_s(combinations_of(plan), plan.repeat) / 60


def run(plan: Plan, program: str, out: Path, *, runner: Runner, tell: Told = lambda *_: None) -> Findings:
    """Run everything in the lab, then in the simulator, and judge both.

    Args:
        plan: What is run.
        program: Path of `segue-lab`.
        out: Documents of runs are kept in its folder `RUNS`, from where a reproduction that was stopped goes on.
        runner: Of the simulator.
        tell: Told of each run of the lab before it begins.

    Raises:
        ScenarioError: A point cannot be run.
        RunError: A run left no figures.
        OSError: A document cannot be kept.
        KeyboardInterrupt: Ctrl-C.
    """
    results = run_all(program, combinations_of(plan), repeat=plan.repeat, tell=tell, directory=out / RUNS)
    in_lab = {one.combination.scheme: one for one in results}
    simulated = _simulate(plan, {name: one.combination.seed for name, one in in_lab.items()}, runner)
    found = dict.fromkeys(plan.not_run, InLab("", NOT_RUN))
    found = {claim: replace(one, note=plan.not_run[claim]) for claim, one in found.items()}
    claims: list[Claim] = []
    for part in plan.parts:
        found |= _judged(part, in_lab, simulated)
        claims += _simulated(part, simulated)
    return Findings(
        found, sum(len(one.runs) for one in results), tuple(claims), sum(len(own) for own in simulated.values())
    )


def missing_congestion_control(wanted: Sequence[str]) -> str:
    """Why connections cannot have these algorithms, if this kernel lacks one: what it says that it has."""
    try:
        there = CONGESTION_CONTROL.read_text(encoding="utf-8").split()
    except OSError as error:
        return f"{CONGESTION_CONTROL}: {error.strerror}"
    missing = [name for name in wanted if name not in there]
    if not missing:
        return ""
    return f"this kernel has no {' and no '.join(missing)} (tcp_available_congestion_control: {' '.join(there)})"


def _simulate(plan: Plan, seeds: Mapping[str, int], runner: Runner) -> dict[str, list[Sample]]:
    """The same files with the same seeds."""
    labels = [
        (point, seeds[point.name] + number)
        for point in plan.points
        for number in range(plan.repeat)
        if not point.only_in_lab
    ]
    jobs = [job(point.scenario, point.settings, seed=seed, trace=point.traced) for point, seed in labels]
    samples: dict[str, list[Sample]] = {}
    for (point, seed), one in zip(labels, runner.runs(jobs), strict=True):
        samples.setdefault(point.name, []).append(Sample(seed, one))
    return samples


def _judged(part: Part, in_lab: Mapping[str, LabResult], simulated: Samples) -> dict[str, InLab]:
    own = {point.name: in_lab[point.name] for point in part.points}
    runs = sum(len(one.usable) for one in own.values())
    too_late = sum(len(one.runs) for one in own.values()) - runs
    without = [name for name, one in own.items() if not one.usable]
    if without:
        note = f"all runs of {', '.join(without)} were too late: this machine was too busy"
        return {claim: InLab("", NOT_RUN, runs=runs, too_late=too_late, note=note) for claim in part.claims}
    lab = part.judge({name: _samples(one) for name, one in own.items()})
    simulator = {one.id: one for one in _simulated(part, simulated)}
    return {
        one.id: InLab(
            one.measured,
            str(one.verdict),
            simulator[one.id].measured,
            str(simulator[one.id].verdict),
            runs,
            too_late,
            " ".join(text for text in (one.criterion, part.note) if text),
        )
        for one in lab
        if one.id in part.claims
    }


def _simulated(part: Part, simulated: Samples) -> list[Claim]:
    judged = part.judge({point.name: simulated.get(point.name, ()) for point in part.points})
    return [one for one in judged if one.id in part.claims]


def _samples(result: LabResult) -> list[Sample]:
    """Those that were not too late, with their seeds."""
    seed = result.combination.seed
    return [
        Sample(seed + number, run if run.record is None else Record(run.record), run)
        for number, run in enumerate(result.runs)
        if not run.too_late
    ]

"""Claims by runs with real hosts: what is run, what is judged by it, and what is said of what is not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from command import Segue
from segue import Metrics, ScenarioError
from segue.cli import reproduce as reproduce_command
from segue.lab.trials.plan import planned
from segue.lab.trials.results import LabRun, Result
from segue.papers import lab
from segue.papers.claims import NOT_RUN, Claim, InLab, Verdict, lab_tally, to_json
from segue.papers.ilnp import lab as ilnp
from segue.papers.lab import Part, Plan, Point, Samples
from segue.papers.sigma import lab as sigma
from segue.papers.vertical import lab as vertical
from segue.report.html import claims_section
from segue.runner import Runner
from segue.scenarios import load
from synthetic import metrics

POINT = Point("a", load("papers/sigma"), {"duration": "5 s"})


def judge(samples: Samples) -> Sequence[Claim]:
    """As many seeds as there are runs, and those of the network."""
    seeds = [one.seed for one in samples["a"]]
    lost = sum(one.run.metrics.packets_lost_to_handover for one in samples["a"])
    return [Claim("S1", "nothing is lost", "0 (II)", f"{seeds}: {lost} lost", lost == 0, "none")]


def live(*, late: bool = False, lost: int = 0) -> LabRun:
    own = Metrics.from_json(json.dumps(metrics(packets_lost_to_handover=lost)))
    return LabRun(own, None, late, 0.0, frozenset())


def found(*runs: LabRun) -> InLab:
    combination = planned("a", POINT.scenario, POINT.settings, 7)
    part = Part(("S1",), (POINT,), judge)
    simulated = lab._simulate(Plan([part], {}, 1), {"a": 7}, Runner())
    return lab._judged(part, {"a": Result(combination, runs)}, simulated)["S1"]


def test_both_worlds_are_judged_by_the_same_function() -> None:
    one = found(live(), live(lost=3))
    assert one.measured == "[7, 8]: 3 lost"
    assert one.verdict == Verdict.DOES_NOT_HOLD
    # a handover of five seconds is none: nothing is lost in the simulator
    assert (one.simulated, one.simulated_verdict) == ("[7]: 0 lost", Verdict.HOLDS)
    assert (one.runs, one.too_late) == (2, 0)


def test_a_run_that_was_too_late_judges_nothing() -> None:
    one = found(live(late=True, lost=5), live())
    assert (one.measured, one.verdict) == ("[8]: 0 lost", Verdict.HOLDS)
    assert (one.runs, one.too_late) == (1, 1)
    none = found(live(late=True))
    assert (none.verdict, none.measured, none.too_late) == (NOT_RUN, "", 1)
    assert "too late" in none.note


def test_claims_have_what_the_lab_says_beside_them() -> None:
    plain = Claim("S1", "a", "b", "c", holds=True, criterion="d")
    other = replace(plain, id="S2")
    findings = lab.Findings({"S1": InLab("e", Verdict.DOES_NOT_HOLD, "f", Verdict.HOLDS, 4, 1, "g")}, 5)
    both = findings.beside([plain, other])
    entries = json.loads(to_json(both))
    assert entries[0]["lab"] == {
        "measured": "e", "verdict": "does not hold", "simulated": "f", "simulated_verdict": "holds", "runs": 4,
        "too_late": 1, "note": "g",
    }  # fmt: skip
    assert entries[1]["lab"]["verdict"] == NOT_RUN
    assert "lab" not in json.loads(to_json([plain]))[0]
    assert lab_tally(both) == "0 of 1 hold in the lab, 1 not run"
    page = claims_section(both)
    assert "by 4 of 5 runs" in page.body
    assert "not run" in page.body


def test_what_a_kernel_lacks_is_read_and_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "available"
    monkeypatch.setattr(lab, "CONGESTION_CONTROL", file)
    file.write_text("reno cubic\n")
    assert "no hybla and no veno" in lab.missing_congestion_control(["hybla", "veno"])
    assert "I7" in ilnp.plan().not_run
    file.write_text("reno cubic hybla veno\n")
    assert not lab.missing_congestion_control(["hybla", "veno"])
    assert "I7" not in ilnp.plan().not_run
    assert any("hybla" in point.name for point in ilnp.plan().points)


@pytest.mark.parametrize(
    ("plan", "claims"),
    [
        (ilnp.plan(quick=True), [f"I{n}" for n in range(1, 15)] + ["S12"]),
        (sigma.plan(quick=True), [f"S{n}" for n in range(1, 12)]),
        (vertical.plan(quick=True), [f"V{n}" for n in range(1, 10)]),
    ],
    ids=["ilnp", "sigma", "vertical"],
)
def test_every_claim_is_run_or_has_its_reason(plan: Plan, claims: list[str]) -> None:
    run = [claim for part in plan.parts for claim in part.claims]
    assert sorted([*run, *plan.not_run]) == sorted(claims)
    assert all(plan.not_run.values())
    # each point is a scenario that can be run, of a name of its own
    combinations = lab.combinations_of(plan)
    assert len({one.name for one in combinations}) == len(plan.points)
    assert 3 < lab.expected_minutes(plan) < 30


def test_only_what_is_asked_for_is_run() -> None:
    plan = lab.only(sigma.plan(quick=True), ["S11"])
    assert [part.claims for part in plan.parts] == [("S11",)]
    assert plan.not_run["S1"] == "was not asked for"
    with pytest.raises(ScenarioError, match="--claims S99: expected some of S1, S2"):
        lab.only(plan, ["S99"])


def test_claims_that_are_asked_for_have_the_simulators_of_the_same_runs_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = {name: Claim(name, "a", "b", f"of {name}", holds=True, criterion="d") for name in ("I8", "I9")}
    beside = InLab("in the lab", Verdict.HOLDS, "in the simulator", Verdict.HOLDS, 2)
    not_run = InLab("", NOT_RUN, note="no hybla")
    findings = lab.Findings({"I8": beside, "I9": beside, "I7": not_run}, 9, tuple(claims.values()), 5)
    monkeypatch.setattr(lab, "run", lambda *_, **__: findings)
    monkeypatch.setattr(reproduce_command, "find_program", lambda _: "segue-lab")

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the whole paper is simulated")

    monkeypatch.setattr("segue.papers.ilnp.reproduce.reproduce", never)
    monkeypatch.setenv("COLUMNS", "200")
    ran = CliRunner().invoke(
        reproduce_command.reproduce, ["ilnp", "--quick", "--claims", "I8,I7", "--out", str(tmp_path)]
    )
    assert ran.exception is None, ran.output
    assert "9 runs in the lab, 5 simulations" in ran.output
    assert "in the simulator" in ran.output
    assert "no hybla" in ran.output
    said = json.loads((tmp_path / "claims.json").read_text())
    assert [(one["id"], one["measured"], one["lab"]["simulated"]) for one in said] == [
        ("I8", "of I8", "in the simulator"),
        ("I7", "", ""),
    ]
    assert "of I8" in (tmp_path / "report.html").read_text()


def test_wrong_input_is_one_line(segue: Segue) -> None:
    done = segue("lab", "reproduce", "cmt")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "sigma" in done.stderr

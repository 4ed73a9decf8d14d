"""`segue lab compare`, from documents of real runs (`lab_runs/*.json`: 10 s, the event at 5 s)."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from math import floor
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.axes import Axes

from command import Segue
from segue import RunError, ScenarioError
from segue.cli.trials import table_row
from segue.figures.style import render
from segue.figures.trials import comparison
from segue.lab.trials.outputs import as_csv, as_json, as_junit
from segue.lab.trials.plan import EVENTS, MODELS, OTHERS, Combination, Timing, combinations, expected_s, quantity
from segue.lab.trials.results import Estimate, LabRun, Result, Value, estimate, find_flow, interruption, parse, rows
from segue.lab.trials.runs import run_all
from segue.metrics import Flow, Outage
from segue.running import Verdict
from segue.scenarios import load

DOCUMENTS = Path(__file__).parent / "lab_runs"
SHORT = {"duration": "10 s"}

PROGRAM = """#!{python}
# in the place of segue-lab: has recorded documents
import json, re, sys
from pathlib import Path
text = Path(sys.argv[2]).read_text()
scheme = re.search('^scheme = "(.*)"', text, re.M)[1]
kinds = re.findall('kind = "(carrier-down|flap)"', text)
document = json.loads(Path("{documents}", f"{{scheme}}-{{kinds[0] if kinds else 'planned'}}.json").read_text())
late = "LATE" in {more!r} and scheme == "none"
document["lab"]["emulation"]["too_late"] = late
for word in sys.argv:
    if word.startswith("--assert="):
        said = "does not hold" if scheme == "none" else "holds"
        text = f"{{word[9:]}}: {{said}}: 1.0 ms"
        document["lab"]["conditions"].append({{"condition": word[9:], "holds": scheme != "none", "text": text}})
print(json.dumps(document))
{more}
sys.exit(3 if late else 0)
"""


def program(folder: Path, more: str = "") -> Path:
    path = folder / "segue-lab"
    path.write_text(PROGRAM.format(python=sys.executable, documents=DOCUMENTS, more=more))
    path.chmod(0o755)
    return path


def plan(*events: str, files: tuple[str, ...] = ("lab/none",)) -> list[Combination]:
    return combinations(files, [], events, settings=SHORT)


def document(name: str) -> LabRun:
    return parse((DOCUMENTS / f"{name}.json").read_text())


def judged(*conditions: tuple[str, bool, str]) -> LabRun:
    """A run with what became of its conditions."""
    raw = json.loads((DOCUMENTS / "none-planned.json").read_text())
    raw["lab"]["conditions"] = [
        {"condition": condition, "holds": holds, "text": f"{condition}: {said}"}
        for condition, holds, said in conditions
    ]
    return parse(json.dumps(raw), status=1)


def result(event: str, *runs: LabRun, file: str = "lab/none") -> Result:
    return Result(plan(event, files=(file,))[0], runs)


@pytest.fixture(scope="module")
def dead() -> Result:
    return result("carrier-down", document("none-carrier-down"))


@pytest.fixture(scope="module")
def moved() -> Result:
    return result("carrier-down", document("ilnp-soft-carrier-down"), file="lab/ilnp-soft")


def test_an_event_is_all_that_happens_and_happens_to_the_network_in_use() -> None:
    found = plan("planned", "carrier-down", "flap", "one-way-loss", files=("lab/none", "lab/ilnp-soft"))
    names = [(one.name, one.network, one.at_s, one.lasts_s) for one in found]
    assert names[:4] == [
        ("none-planned", "", None, None),
        ("none-carrier-down", "one", 5.0, None),
        ("none-flap", "one", 5.0, 3.0),
        ("none-one-way-loss", "one", 5.0, None),
    ]
    # it moves to the network that it finds last
    assert names[5] == ("ilnp-soft-carrier-down", "two", 5.0, None)
    assert found[0].settings == SHORT
    assert found[1].settings == {**SHORT, "cell.one.present": "0 s..", "cell.two.present": "1 s.."}
    assert found[1].scenario.text.endswith('[[event]]\nkind = "carrier-down"\non = "one"\nat = "5 s"\n')
    assert found[2].scenario.text.endswith('at = "5 s"\nfor = "3 s"\nperiod = "1 s"\n')
    assert found[7].scenario.text.endswith('on = "two"\nat = "5 s"\ntowards = "r2"\n')
    assert expected_s(found, 5) == 8 * 12 * 5


def test_routers_hosts_and_prefixes_of_the_network_in_use_are_what_events_happen_to() -> None:
    found = plan("router-down", "renumber", "address-change", files=("lab/ilnp-soft",))
    assert [(one.name, one.network, one.lasts_s) for one in found] == [
        ("ilnp-soft-router-down", "two", None),
        ("ilnp-soft-renumber", "two", None),
        ("ilnp-soft-address-change", "two", None),
    ]
    assert found[0].scenario.text.endswith('kind = "router-down"\non = "r2"\nat = "5 s"\n')
    assert found[1].scenario.text.endswith('kind = "renumber"\non = "two"\nat = "5 s"\nfor = "0 s"\n')
    assert found[2].scenario.text.endswith('on = ["mn"]\nat = "5 s"\nfor = "0 s"\nnetwork = "two"\n')
    timing = Timing(lasts="2 s")
    graceful = combinations(["lab/ilnp-soft"], [], ["renumber"], settings=SHORT, timing=timing)
    assert (graceful[0].lasts_s, graceful[0].scenario.text.endswith('for = "2 s"\n')) == (2.0, True)


def test_the_network_in_use_is_that_of_every_seed() -> None:
    found = combinations(["lab/none", "lab/mip6-ro"], [], ["blackhole"], settings=SHORT, repeat=5)
    assert [one.network for one in found] == ["one", "two"]


def test_places_and_times_may_be_given() -> None:
    timing = Timing(at="4500 ms", lasts="500 ms", places={"": "one", "none": "cn-core"})
    found = combinations(
        ["lab/none", "soft=lab/ilnp-soft"], [], ["one-way-loss"], settings=SHORT, timing=timing, seed=7
    )  # fmt: skip
    assert [(one.name, one.network, one.at_s, one.lasts_s, one.seed) for one in found] == [
        ("none-one-way-loss", "cn-core", 4.5, 0.5, 7),
        ("soft-one-way-loss", "one", 4.5, 0.5, 7),
    ]
    assert found[0].scenario.text.endswith('at = "4.5 s"\nfor = "0.5 s"\ntowards = "core"\n')


def test_a_scheme_without_a_file_of_its_own_has_the_first_with_the_scheme_set() -> None:
    found = combinations(["lab/none", "lab/ilnp-soft"], ["ilnp-soft", "ilnp-hard"], ["planned"], settings=SHORT)
    assert [(one.scheme, one.scenario.name, one.settings) for one in found] == [
        ("ilnp-soft", "lab/ilnp-soft", SHORT),
        ("ilnp-hard", "lab/none", {**SHORT, "scheme": "ilnp-hard"}),
    ]


def test_a_name_before_a_file_is_its_scheme_or_a_name_alone() -> None:
    files = ["mptcp=lab/mptcp", "lab/mptcp", "tuned=lab/ilnp-soft", "ilnp-soft=lab/ilnp-soft"]
    found = combinations(files, [], ["planned"], settings=SHORT)
    assert [(one.scheme, one.settings) for one in found] == [
        ("mptcp", {**SHORT, "scheme": "mptcp"}),
        ("mptcp-delete", SHORT),
        ("tuned", SHORT),
        ("ilnp-soft", SHORT),
    ]
    assert [one.is_of_others for one in found] == [True, True, False, False]


def test_all_schemes_are_known() -> None:
    with pytest.raises(ScenarioError) as error:
        combinations(["lab/none"], ["nothing-of-the-kind"], ["planned"])
    named = str(error.value).partition("expected one of ")[2].partition(" (")[0]
    assert set(named.split(", ")) == {*MODELS, *OTHERS}


def test_applications_are_paced_by_their_messages() -> None:
    found = plan("planned")[0].applications
    assert [(one.label, one.transport) for one in found] == [
        ("20 Mbit/s", "tcp"),
        ("16 kbit/s", "tcp"),
        ("320 kbit/s", "udp"),
    ]
    assert [one.pacing_s for one in found] == pytest.approx([0.001, 0.05, 0.005])
    assert found[0].size_bytes == 50e6


@pytest.mark.parametrize(
    ("files", "events", "timing", "words"),
    [
        (["lab/none"], ["earthquake"], Timing(), "--events earthquake: expected one of planned, carrier-down"),
        (["lab/none", "lab/none"], ["planned"], Timing(), "is for scheme `none` too, expected one"),
        (["lab/nobody"], ["planned"], Timing(), "no such file or scenario"),
        (["lab/none"], ["flap"], Timing(at="noon"), "`noon`: expected a number with its unit"),
        (["lab/none"], ["one-way-loss"], Timing(places={"": "nine"}), "--on nine: expected the name of a [[cell]]"),
        (["sigma=bench/bulk"], ["blackhole"], Timing(), "expected --on NAME, a cell or a link"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_one_line(files: list[str], events: list[str], timing: Timing, words: str) -> None:
    with pytest.raises(ScenarioError) as error:
        combinations(files, [], events, timing=timing)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_quantities_have_units() -> None:
    assert [quantity(text) for text in ("0 s", "1.5 min", "16 kbit/s", "100 B")] == [0, 90, 16000, 100]
    for wrong in ("5", "five s", "5 parsec"):
        with pytest.raises(ScenarioError):
            quantity(wrong)


def test_the_flow_of_an_application_is_the_one_with_its_data(moved: Result) -> None:
    applications = moved.combination.applications
    for metrics in (moved.runs[0].metrics, moved.runs[0].prediction):
        assert metrics is not None
        flows = [find_flow(metrics, applications, number) for number in range(3)]
        # iperf3's ends say a few hundred bytes to each other on a connection of their own
        assert [flow and (flow.transport, flow.transferred_bytes // 1000) for flow in flows] == [
            ("tcp", 17500), ("tcp", 17), ("udp", pytest.approx(340, abs=1))
        ]  # fmt: skip


def downloads(name: str) -> Result:
    """A download by curl: the host that moves asks in a hundred bytes."""
    ends = {"application.0.from": "cn", "application.0.to": "mn"} if name == "early" else {}
    combination = combinations([str(DOCUMENTS / "download.toml")], [], ["planned"], settings=ends)[0]
    return Result(combination, (document(f"download-{name}"),))


def test_the_flow_of_who_downloads_is_the_answer_and_not_the_question() -> None:
    dead, moved = downloads("none"), downloads("ilnp-soft")
    for one, received in ((dead, 5934974), (moved, 10000206)):
        run = one.runs[0]
        flow = find_flow(run.metrics, one.combination.applications, 0)
        assert flow is not None
        assert (flow.sender, flow.receiver, flow.transferred_bytes) == ("cn", "mn", received)
        assert run.prediction is not None
        simulated = find_flow(run.prediction, one.combination.applications, 0)
        assert simulated is not None
        assert simulated.sender == "mn", "in the simulator it is an upload, and that carries the data"
    assert table_row(rows([dead])[0], predicted=True)[4] == "≥ 7000.7"
    assert table_row(rows([moved])[0], predicted=True)[4] == "1.3"


def test_of_two_ways_without_the_port_of_a_program_the_one_that_carried_most() -> None:
    run = downloads("ilnp-soft").runs[0].prediction
    assert run is not None
    asks, first = downloads("ilnp-soft").combination.applications[0], run.flows[0]
    answers = replace(asks, sender="cn", receiver="mn")

    def flow(number: int, size: int, port: int, *, back: bool = False) -> Flow:
        ends = ("cn", "mn", 9, port) if back else ("mn", "cn", port, 9)
        named = dict(zip(("sender", "receiver", "source_port", "destination_port"), ends, strict=True))
        return replace(first, id=number, transferred_bytes=size, **named)  # type: ignore[arg-type]

    flows = (
        flow(0, 10, 5),
        flow(1, 90, 5, back=True),
        flow(2, 70, 6),
        flow(3, 7, 6, back=True),
        flow(4, 8, 7, back=True),
    )
    metrics = replace(run, flows=flows)
    found = [find_flow(metrics, [asks, asks, answers], number) for number in range(3)]
    assert [one and one.id for one in found] == [1, 2, 4]


def test_an_application_that_was_never_seen_is_no_other_ones_flow_and_is_not_left_out(moved: Result) -> None:
    run = moved.runs[0]
    # iperf3's, of application 0
    flows = tuple(flow for flow in run.metrics.flows if 9000 not in (flow.source_port, flow.destination_port))
    run = replace(run, metrics=replace(run.metrics, flows=flows))
    assert find_flow(run.metrics, moved.combination.applications, 0) is None
    row = rows([Result(moved.combination, (run,))])[0]
    assert row.interruption_ms == Estimate(10000, 10000, 10000, 1, 1, True)
    assert (row.runs, row.lost, row.before_bps) == (1, None, None)


def test_the_interruption_is_what_is_beyond_the_pacing(moved: Result) -> None:
    run, combination = moved.runs[0], moved.combination
    flow = find_flow(run.metrics, combination.applications, 1)
    assert flow is not None
    assert flow.interruption_s == pytest.approx(0.053359246)
    beyond = interruption(flow, combination, 1)
    assert (round(beyond.value, 9), beyond.censored) == (0.003359246, False)
    # a line each 50 ms that is heard each 50 ms
    heard = replace(
        flow, interruption_s=0.0499, longest_gap_s=0.0499, around_events=Outage(4.9, 0.0499, censored=False)
    )
    assert interruption(heard, combination, 1) == Value(0.0)


def test_a_gap_around_the_event_counts_without_a_handover_and_any_other_does_not() -> None:
    flapped = result("flap", document("none-flap"))
    flow = find_flow(flapped.runs[0].metrics, flapped.combination.applications, 2)
    assert flow is not None
    assert flow.interruption_s is None
    assert flow.around_events is not None
    value = interruption(flow, flapped.combination, 2).value
    assert value == pytest.approx(flow.around_events.duration_s - 0.005)
    assert interruption(replace(flow, around_events=None), flapped.combination, 2) == Value(0.0)
    silent = replace(flow, around_events=Outage(9.0, 1.0, censored=True))
    assert interruption(silent, flapped.combination, 2) == Value(0.995, censored=True)


def test_an_event_of_the_file_is_looked_at_as_one_of_the_command_line_is() -> None:
    flapped, own = result("flap", document("none-flap")), result("planned", document("none-flap"))
    table = rows([flapped, own])
    assert [row.interruption_ms for row in table[:3]] == [row.interruption_ms for row in table[3:]]
    assert [row.before_bps for row in table[:3]] == [row.before_bps for row in table[3:]]
    assert table[5].interruption_ms is not None
    assert table[5].interruption_ms.median > 400


def test_what_was_through_before_anything_happened_has_no_interruption() -> None:
    early = downloads("early")
    run = early.runs[0]
    row = rows([early])[0]
    assert (row.interruption_ms, row.ended_before, row.runs, row.predicted_ended_before) == (None, 1, 1, 1)
    assert row.before_bps == row.after_bps is None
    assert (row.predicted_ms, row.ratio) == (None, None)
    cells = table_row(row, predicted=True)
    assert cells[4] == cells[6] == "ended before"
    assert next(csv.DictReader(as_csv([row]).splitlines()))["ended_before"] == "1"
    assert list(fields(comparison([row]).axes[0]).values()) == ["ended before"]
    judge = Verdict("interruption < 50 ms", holds=True, text="interruption < 50 ms: holds: 1.0 ms")
    said = Result(early.combination, (replace(run, verdicts=(judge,)),)).refuted
    assert said == ["run 1: interruption < 50 ms: does not hold: none measured; all ended before"]
    # beside one that lasted until then
    both = rows([Result(early.combination, (run, *downloads("ilnp-soft").runs))])[0]
    assert table_row(both, predicted=False)[4] == "1.3 (1 ended before)"
    # a program that gave up did not end well
    failed = rows([Result(early.combination, (replace(run, failed=frozenset({0})),))])[0]
    assert failed.interruption_ms is not None
    assert failed.interruption_ms.median_censored


def test_dead_flows_are_lower_bounds_and_never_dropped(dead: Result) -> None:
    table = rows([dead])
    assert [row.interruption_ms and row.interruption_ms.median_censored for row in table] == [True] * 3
    assert [round(row.interruption_ms.median) for row in table if row.interruption_ms] == [4981, 4939, 4945]
    assert table[0].predicted_ms is not None
    assert table[0].predicted_ms.median_censored
    assert table[0].ratio is None
    assert table[2].after_bps is not None
    assert table[2].after_bps.median == pytest.approx(0.0, abs=5000)
    assert table_row(table[1], predicted=True)[4] == "≥ 4939.3"


def test_a_program_that_gave_up_leaves_a_lower_bound(moved: Result) -> None:
    run = replace(moved.runs[0], failed=frozenset({0}))
    flow = find_flow(run.metrics, moved.combination.applications, 0)
    assert flow is not None
    flow = replace(flow, end_s=6.0)
    value = interruption(flow, moved.combination, 0, failed=True)
    assert (round(value.value, 6), value.censored) == (3.999, True)
    row = rows([Result(moved.combination, (run,))])[0]
    assert row.interruption_ms is not None
    assert row.interruption_ms.censored == 1


def test_only_clients_that_ended_by_themselves_gave_up() -> None:
    raw = json.loads((DOCUMENTS / "none-carrier-down.json").read_text())
    assert document("none-carrier-down").failed == frozenset()
    for program in raw["lab"]["programs"]:
        program["stopped"] = program["application"] != 1
        program["exit_status"] = 1
    assert parse(json.dumps(raw)).failed == {1}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([(3, False), (1, False), (2, False)], Estimate(2, 1, 3, 3, 0, False)),
        ([(9, True), (1, False), (2, False)], Estimate(2, 1, 9, 3, 1, False)),
        ([(9, True), (8, True), (2, False)], Estimate(8, 2, 9, 3, 2, True)),
        # the true value of the first may be any greater one
        ([(1, True), (5, False), (6, False)], Estimate(5, 1, 6, 3, 1, True)),
        ([(1, False), (5, True)], Estimate(3, 1, 5, 2, 1, True)),
        ([(4, True)], Estimate(4, 4, 4, 1, 1, True)),
    ],
)  # fmt: skip
def test_a_median_is_a_lower_bound_from_the_least_of_them_on(
    values: list[tuple[float, bool]], expected: Estimate
) -> None:
    assert estimate(Value(*value) for value in values) == expected
    assert estimate([]) is None


def test_rows_have_loss_throughput_and_the_simulators_figures(moved: Result) -> None:
    bulk, interactive, paced = rows([moved])
    assert (bulk.scheme, bulk.event, bulk.network, bulk.flow) == ("ilnp-soft", "carrier-down", "two", "20 Mbit/s")
    assert [row.lost and row.lost.median for row in (bulk, interactive, paced)] == [0, 0, 0]
    assert bulk.before_bps is not None
    assert bulk.before_bps.median == pytest.approx(20e6, rel=0.01)
    assert bulk.after_bps is not None
    assert bulk.after_bps.median == pytest.approx(20e6, rel=0.01)
    assert bulk.ratio == pytest.approx(194.6 / 201.5, abs=0.001)
    assert interactive.ratio == pytest.approx(3.359 / 194.607, abs=0.001)


def test_throughput_ends_with_the_data_and_not_with_the_run() -> None:
    planned = result("planned", document("ilnp-soft-planned"), file="lab/ilnp-soft")
    applications = tuple(replace(one, size_bytes=17.5e6) for one in planned.combination.applications)
    row = rows([Result(replace(planned.combination, applications=applications), planned.runs)])[0]
    assert row.after_bps is not None
    assert row.after_bps.median == pytest.approx(20e6, rel=0.01)


def test_runs_that_were_too_late_are_counted_and_not_used(moved: Result) -> None:
    late = replace(moved.runs[0], too_late=True)
    table = rows([Result(moved.combination, (moved.runs[0], late))])
    assert [(row.runs, row.too_late) for row in table] == [(1, 1)] * 3
    assert table[0].interruption_ms is not None
    assert table[0].interruption_ms.count == 1
    none_left = rows([Result(moved.combination, (late,))])[0]
    assert none_left.interruption_ms is None
    assert table_row(none_left, predicted=False)[3:5] == ["0 of 1", "-"]
    assert parse((DOCUMENTS / "none-planned.json").read_text(), status=3).too_late


def test_conditions_are_judged_by_the_lab_and_said_per_run() -> None:
    run = judged(("lost == 0", False, "does not hold: 401"), ("interruption < 9 s", True, "holds: 1992.3 ms"))
    assert [(one.condition, one.holds) for one in run.verdicts] == [("lost == 0", False), ("interruption < 9 s", True)]
    found = result("planned", run)
    # that of the interruption is of the table, and a lower bound is not less than anything
    table = [row.interruption_ms for row in rows([found])]
    longest = max(one.median for one in table if one is not None)
    assert found.refuted == [
        "run 1: lost == 0: does not hold: 401",
        f"run 1: interruption < 9 s: does not hold: ≥ {floor(longest * 10) / 10:.1f} ms",
    ]
    more = judged(("interruption > 1 s", False, ""), ("interruption.median < 9 s", True, ""))
    assert result("planned", more).refuted == []
    assert result("planned", replace(run, too_late=True)).refuted == []


def test_junit_has_a_case_per_combination() -> None:
    run = document("none-planned")
    refuted = judged(("lost < 1", False, "does not hold: 401"))
    late = replace(run, too_late=True)
    suite = ElementTree.fromstring(
        as_junit([result("planned", run, late), result("planned", refuted), result("planned", late)])
    )
    assert suite.attrib == {
        "name": "segue lab compare", "tests": "3", "failures": "1", "errors": "1", "skipped": "0", "time": "40.000"
    }  # fmt: skip
    well, failed, unknown = suite
    assert (well.get("classname"), well.get("name")) == ("none", "planned")
    assert [child.tag for child in well] == ["system-out"]
    assert well[0].text == "1 of 2 runs were too late, and not used"
    assert failed[0].tag == "failure"
    assert failed[0].get("message") == "run 1: lost < 1: does not hold: 401"
    assert unknown[0].tag == "error"


def test_junit_passes_no_case_by_conditions_that_were_not_judged() -> None:
    run, others = document("none-planned"), plan("planned", files=("lab/mptcp",))[0]
    late = replace(run, too_late=True)
    results = [result("planned", run), Result(others, (run,)), Result(others, (late,))]
    suite = ElementTree.fromstring(as_junit(results, conditions=("lost == 0",)))
    assert [[child.tag for child in case][:1] for case in suite] == [[], ["skipped"], ["error"]]
    assert (suite.get("skipped"), suite.get("errors"), suite.get("failures")) == ("1", "1", "0")
    assert "what programs read" in str(suite[1][0].get("message"))
    assert len(ElementTree.fromstring(as_junit(results))[1]) == 0, "nothing was to be so"


def test_conditions_of_a_file_are_refused_before_anything_runs() -> None:
    settings = {**SHORT, "assert": '["lost == 0"]'}
    assert len(combinations(("lab/none",), ["none", "sigma"], ["planned"], settings=settings)) == 2
    with pytest.raises(ScenarioError) as error:
        combinations(("lab/none",), ["none", "mptcp"], ["planned"], settings=settings)
    assert "assert: `lost == 0`: the figures of scheme `mptcp` are what programs read" in str(error.value)


@pytest.mark.parametrize(("scheme", "asked"), [("mptcp", 0), ("sigma", 1)])
def test_conditions_are_those_of_packets(lab: Path, scheme: str, asked: int) -> None:
    own = combinations(("lab/none",), [scheme], ["planned"], settings=SHORT)
    assert own[0].is_by_reads
    words = lab / "words"
    more = f"Path({str(words)!r}).write_text(' '.join(sys.argv))"
    run_all(str(program(lab, more)), own, repeat=1, conditions=("lost == 0",))
    assert words.read_text().count("--assert=lost == 0") == asked


def test_it_is_said_of_which_scheme_nothing_is_judged(lab: Path, segue: Segue) -> None:
    ran = segue("lab", "compare", "lab/none", "--schemes", "none,mptcp", "--set", "duration=10 s", "--repeat", "1",
                "--assert", "lost == 0", "--junit", lab / "junit.xml")  # fmt: skip
    assert "segue lab: mptcp: conditions are not for this scheme" in ran.stderr
    assert "segue lab: none: conditions are not" not in ran.stderr
    assert ElementTree.fromstring((lab / "junit.xml").read_text()).get("skipped") == "1"


def test_csv_and_json_have_every_row(dead: Result, moved: Result) -> None:
    table = rows([dead, moved])
    lines = list(csv.DictReader(as_csv(table).splitlines()))
    assert [(line["scheme"], line["flow"]) for line in lines][2:4] == [
        ("none", "320 kbit/s"),
        ("ilnp-soft", "20 Mbit/s"),
    ]
    assert (lines[0]["interruption_ms_censored"], lines[3]["interruption_ms_censored"]) == ("true", "false")
    assert float(lines[3]["interruption_ms"]) == pytest.approx(194.615, abs=0.01)
    read = json.loads(as_json([dead, moved], table))
    assert len(read["rows"]) == 6
    assert read["rows"][0]["interruption_ms"]["median_censored"] is True
    assert [(run["scheme"], run["run"], run["too_late"]) for run in read["runs"]] == [
        ("none", 1, False), ("ilnp-soft", 1, False)
    ]  # fmt: skip


def fields(axes: Axes) -> dict[tuple[str, str], str]:
    """What the figure says of schemes and events, as it stands on it."""
    events = [label.get_text() for label in axes.get_xticklabels()]
    schemes = [label.get_text() for label in axes.get_yticklabels()]
    said: dict[tuple[str, str], str] = {}
    for text in axes.texts:
        column, line = (int(place) for place in text.get_position())
        key = (schemes[line], events[column])
        said[key] = " | ".join([*([said[key]] if key in said else []), text.get_text()])
    return said


def test_the_figure_has_a_panel_per_flow_and_a_field_per_scheme_and_event(dead: Result, moved: Result) -> None:
    over_sctp = Result(plan("carrier-down", files=("sigma=lab/sigma-lan",))[0], (document("sigma-carrier-down"),))
    table = rows([dead, moved, over_sctp])
    figure = comparison(table)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["20 Mbit/s over TCP", "16 kbit/s over TCP", "320 kbit/s over UDP"]
    first = fields(figure.axes[0])
    assert list(first) == [
        ("none", "carrier down"),
        ("ilnp-soft", "carrier down"),
        ("sigma (SCTP)", "carrier down"),
    ]
    assert first["none", "carrier down"].startswith("≥ 5.0 s | sim ≥")
    assert first["ilnp-soft", "carrier down"].startswith("195 ms | sim")
    assert ("sigma (SCTP)", "carrier down") not in fields(figure.axes[1]), "it carries the first alone"
    assert render(figure).svg == render(comparison(table)).svg


def test_a_wide_range_and_runs_that_were_too_late_are_said(moved: Result) -> None:
    row = rows([moved])[0]
    wide = replace(row, predicted_ms=None, interruption_ms=Estimate(210.0, 3.2, 1204.0, 5, 0, median_censored=False))
    assert fields(comparison([wide]).axes[0])["ilnp-soft", "carrier down"] == "210 ms | 3.2 ms to 1.2 s"
    late = Result(moved.combination, (replace(moved.runs[0], too_late=True),))
    assert fields(comparison(rows([late])).axes[0]) == {("ilnp-soft", "carrier down"): "too late"}
    # what a scheme does not carry has no line
    none = replace(row, scheme="mptcp", runs=0, too_late=0, interruption_ms=None)
    assert list(fields(comparison([row, none]).axes[0])) == [("ilnp-soft", "carrier down")]


@pytest.mark.parametrize("text", ["{}", "[]", '{"lab": {"programs": []}}', '{"lab": 5}', "no JSON"])
def test_what_is_no_document_of_the_lab_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not the document|Expecting value"):
        parse(text)


def test_all_are_run_once_before_any_is_run_again(tmp_path: Path) -> None:
    order: list[tuple[str, int, int]] = []
    found = plan("planned", "carrier-down")
    results = run_all(
        str(program(tmp_path)),
        found,
        repeat=2,
        tell=lambda one, number, done, _: order.append((one.event, number, done)),
    )
    assert order == [("planned", 1, 0), ("carrier-down", 1, 1), ("planned", 2, 2), ("carrier-down", 2, 3)]
    assert [len(one.runs) for one in results] == [2, 2]


def told(scheme_program: Path, folder: Path, repeat: int, conditions: Sequence[str] = ()) -> list[str]:
    """What was said of each run besides."""
    said: list[str] = []
    run_all(
        str(scheme_program), plan("planned", "carrier-down"), repeat=repeat, conditions=conditions, directory=folder,
        tell=lambda _one, _number, _done, besides: said.append(besides),
    )  # fmt: skip
    return said


def test_a_comparison_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    assert told(program(tmp_path), runs, 1) == ["", ""]
    assert told(program(tmp_path), runs, 2) == ["done before", "done before", "", ""]
    # one that was lost, and an index that is none
    (runs / "none-planned-1.json").unlink()
    assert told(program(tmp_path), runs, 1) == ["", "done before"]
    (runs / "index.json").write_text("[")
    assert told(program(tmp_path), runs, 1) == ["", ""]
    # nor one that was cut
    (runs / "none-planned-1.json").write_text("{")
    assert told(program(tmp_path), runs, 1) == ["", "done before"]
    # neither another program's nor one under other conditions
    assert told(program(tmp_path), runs, 1, conditions=["lost == 0"]) == ["", ""]
    assert told(program(tmp_path, "pass"), runs, 1, conditions=["lost == 0"]) == ["", ""]


@pytest.mark.parametrize("name", ["none-planned-1.json", "index.json"])
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(b"\xff\xfe{}", id="not UTF-8"),
        pytest.param(b"[" * 200_000, id="nested too deeply"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"none-planned-1.json": 3, "lab": 3}', id="other types"),
    ],
)
def test_what_was_damaged_since_is_run_again(tmp_path: Path, name: str, damage: bytes) -> None:
    assert told(program(tmp_path), tmp_path, 1) == ["", ""]
    (tmp_path / name).write_bytes(damage)
    assert told(program(tmp_path), tmp_path, 1)[0] == ""
    assert told(program(tmp_path), tmp_path, 1) == ["done before", "done before"]


def test_a_document_that_still_reads_as_one_but_is_another_is_run_again(tmp_path: Path) -> None:
    assert told(program(tmp_path), tmp_path, 1) == ["", ""]
    file = tmp_path / "none-planned-1.json"
    file.write_bytes(file.read_bytes().replace(b'"corrupt_messages": 0', b'"corrupt_messages": 1'))
    assert told(program(tmp_path), tmp_path, 1) == ["", "done before"]


ROWS = "radio,mcc,net,area,cell,unit,lon,lat,range,samples\nLTE,1,1,1,1,1,8.5,47.3,{},8\n"
NAMED = {
    "trace": (
        'rate = "100 Mbit/s"',
        'rate = "100 Mbit/s"\ntrace = {file = "named.txt", format = "mahimahi"}',
        ("1\n2\n", "1\n3\n"),
    ),
    "mobility": (
        'pattern = "still"\nfrom = ["0 m", "0 m"]\nspeed = "1 m/s"',
        'mobility = {file = "named.txt", format = "bonnmotion", node = 0}',
        ("0 0 0 9 1 1\n", "0 0 0 9 2 2\n"),
    ),
    "cells": (
        "# 20 Mbit/s",
        '[[cell]]\nrouter = "core"\n'
        'from_csv = {file = "named.txt", link = {rate = "1 Gbit/s", delay = "2 ms", queue = "99 packets"}}\n#',
        (ROWS.format(620), ROWS.format(640)),
    ),
}
"""Names of a file in a scenario, in the place of what it has, and two contents of that file."""


def naming(kind: str, folder: Path, name: str = "named.txt") -> list[Combination]:
    """A plan whose scenario, in that folder, names a file."""
    old, new, _ = NAMED[kind]
    text = load("lab/none").text
    assert old in text
    own = folder / "own.toml"
    own.write_text(text.replace(old, new.replace("named.txt", name), 1))
    timing = Timing(places={"": "one"})
    return combinations([str(own)], [], ["planned", "carrier-down"], settings=SHORT, timing=timing)


@pytest.mark.parametrize("kind", NAMED)
def test_runs_of_a_file_that_has_changed_since_are_made_again(tmp_path: Path, kind: str) -> None:
    first, then = NAMED[kind][2]
    named = tmp_path / "named.txt"
    named.write_text(first)
    scheme_program = str(program(tmp_path))

    def again() -> list[str]:
        said: list[str] = []
        run_all(
            scheme_program, naming(kind, tmp_path)[:1], repeat=1, directory=tmp_path / "runs",
            tell=lambda _one, _number, _done, besides: said.append(besides),
        )  # fmt: skip
        return said

    assert (again(), again()) == ([""], ["done before"])
    named.write_text(then)
    assert (again(), again()) == ([""], ["done before"])


def test_a_file_that_changes_while_a_run_goes_on_is_not_what_that_run_was_of(tmp_path: Path) -> None:
    named = tmp_path / "named.txt"
    named.write_text("1\n2\n")
    changing = str(program(tmp_path, f'Path("{named}").write_text("1\\n3\\n")'))
    said: list[str] = []
    for _ in range(3):
        run_all(
            changing, naming("trace", tmp_path)[:1], repeat=1, directory=tmp_path / "runs",
            tell=lambda _one, _number, _done, besides: said.append(besides),
        )  # fmt: skip
    assert said == ["", "", "done before"]


@pytest.mark.parametrize("name", ["named.txt", "below/named.txt", "../named.txt", "{}/named.txt"])
@pytest.mark.parametrize("kind", NAMED)
def test_files_that_a_scenario_names_are_found_whatever_happens(tmp_path: Path, kind: str, name: str) -> None:
    """The program in the place of segue-lab reads what it is given as the simulator does."""
    folder, temporary = tmp_path / "own", tmp_path / "tmp"
    for one in (folder, folder / "below", temporary):
        one.mkdir()
    name = name.format(tmp_path)
    (folder / name).write_text(NAMED[kind][2][0])
    reading = """
import subprocess
reads = "from segue.running import check; from segue.scenarios import load; check(load(%r))" % sys.argv[2]
sys.exit(2 if subprocess.run([sys.executable, "-c", reads]).returncode else 0)
"""
    both = naming(kind, folder, name)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    before[tmp_path / "segue-lab"] = program(tmp_path, reading).read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        results = run_all(str(tmp_path / "segue-lab"), both, repeat=1)
    assert [len(one.usable) for one in results] == [1, 1]
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert list(temporary.iterdir()) == []


def test_files_that_an_override_names_are_found_whatever_happens(tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("1\n3\n")
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "named.txt").write_text("1\n2\n")
    naming("trace", folder)
    looking = """
(other,) = [word.partition("=")[2].partition("=")[2] for word in sys.argv if word.startswith("--set=link.0")]
sys.exit(0 if (Path(sys.argv[2]).parent / other).read_text() == "1\\n3\\n" else 2)
"""
    timing = Timing(places={"": "one"})
    settings = {**SHORT, "link.0.trace.file": "../other.txt"}
    both = combinations(
        [str(folder / "own.toml")], [], ["planned", "carrier-down"], settings=settings, timing=timing
    )  # fmt: skip
    assert len(run_all(str(program(tmp_path, looking)), both, repeat=1)) == 2


TABLES_TOO = """
folder = Path(sys.argv[sys.argv.index("--record") + 1]); folder.mkdir(exist_ok=True)
for name in ("document.json", "tables.jsonl", "scenario.toml"): (folder / name).write_text("{{}}\\n" * 2)
"""


def test_tables_that_were_cut_are_made_again(tmp_path: Path) -> None:
    def again() -> list[str]:
        said: list[str] = []
        recorded = [replace(one, is_recorded=True) for one in plan("planned")]
        run_all(
            str(program(tmp_path, TABLES_TOO)), recorded, repeat=1, directory=tmp_path,
            tell=lambda _one, _number, _done, besides: said.append(besides),
        )  # fmt: skip
        return said

    assert (again(), again()) == ([""], ["done before"])
    (tmp_path / "none-planned-1" / "tables.jsonl").write_text("{")
    assert (again(), again()) == ([""], ["done before"])


def test_a_run_that_was_too_late_is_made_again_twice(tmp_path: Path) -> None:
    late = program(tmp_path, "'LATE'")
    assert told(late, tmp_path / "runs", 1) == ["", *["too late, once more"] * 2] * 2
    # and when it is asked for again
    assert told(late, tmp_path / "runs", 1) == ["", *["too late, once more"] * 2] * 2


@pytest.mark.parametrize(
    ("more", "kind", "words"),
    [
        ("sys.stderr.write('segue-lab: expected root\\n'); sys.exit(2)", ScenarioError, "expected root"),
        ("sys.exit(130)", KeyboardInterrupt, ""),
        ("sys.stderr.write('segue-lab: broken\\n'); sys.exit(101)", RunError, "ended with 101: broken"),
    ],
)
def test_a_run_without_figures_ends_the_comparison(
    tmp_path: Path, more: str, kind: type[BaseException], words: str
) -> None:
    with pytest.raises(kind) as error:
        run_all(str(program(tmp_path, more)), plan("planned"), repeat=1)
    assert words in str(error.value)
    assert "segue-lab: " not in str(error.value), "the command says its own name before it"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEGUE_LAB", str(program(tmp_path)))
    monkeypatch.setenv("COLUMNS", "150")
    return tmp_path


COMPARE = ("lab", "compare", "lab/none", "lab/ilnp-soft", "--set", "duration=10 s")


def test_the_command_writes_table_figure_and_junit(lab: Path, segue: Segue) -> None:
    out = lab / "made"
    ran = segue(
        *COMPARE, "--events", "planned,carrier-down", "--repeat", "2", "--predict", "--out", out,
        "--json", lab / "table.json", "--junit", out / "junit.xml",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "4 combinations, 2 times each, in real time: about 1 min 36 s" in ran.stderr
    assert "segue lab: none: events happen to one, at 5 s" in ran.stderr
    assert "segue lab: 8/8: ilnp-soft-carrier-down, run 2" in ran.stderr
    assert "≥ 4939.3" in ran.stdout
    names = sorted(path.name for path in out.iterdir())
    assert names == ["compare.csv", "compare.json", "compare.png", "compare.svg", "junit.xml", "runs"]
    assert len(list((out / "runs").glob("*-*-*.json"))) == 8
    assert (lab / "table.json").read_text() == (out / "compare.json").read_text()


@pytest.mark.usefixtures("lab")
def test_help_names_all_events_and_one_run_is_said_as_one(segue: Segue) -> None:
    said = segue("lab", "compare", "--help").stdout
    assert [event for event in EVENTS if event not in " ".join(said.split()).replace("- ", "-")] == []
    ran = segue("lab", "compare", "lab/none", "--set", "duration=10 s", "--repeat", "1")
    assert "segue lab: 1 combination, once each, in real time" in ran.stderr


def test_a_condition_that_does_not_hold_sets_the_status(lab: Path, segue: Segue) -> None:
    ran = segue(*COMPARE, "--repeat", "1", "--assert", "interruption < 50 ms", "--junit", lab / "junit.xml")
    assert ran.returncode == 1
    assert "segue lab: none-planned: run 1: interruption < 50 ms: does not hold: ≥ 1978.8 ms" in ran.stderr
    suite = ElementTree.fromstring((lab / "junit.xml").read_text())
    assert [(case.get("classname"), len(case)) for case in suite] == [("none", 1), ("ilnp-soft", 0)]


def test_a_combination_without_a_run_in_time_sets_the_status(
    lab: Path, segue: Segue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEGUE_LAB", str(program(lab, "'LATE'")))
    ran = segue(*COMPARE, "--repeat", "2")
    assert ran.returncode == 3
    assert "segue lab: none-planned: 2 of 2 runs were too late, and not used" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Missing argument"),
        (("lab/none", "--events", "earthquake"), "--events earthquake"),
        (("lab/none", "--events", ","), "expected at least one"),
        (("lab/none", "--repeat", "0"), "--repeat"),
        (("lab/none", "--set", "x"), "expected KEY=VALUE"),
        (("lab/none", "--set", "l2.latancy=1 s"), "latancy"),
        (("lab/none", "--events", "blackhole", "--on", "nine"), "nine"),
        (("lab/none", "--at", "5 s"), "--at: has no effect on what is planned"),
        (("lab/none", "--events", "planned", "--on", "one"), "--on: has no effect on what is planned"),
        (("lab/none", "--junit", "nowhere/at/all.xml"), "expected a directory that is there"),
    ],
)
def test_wrong_input_is_one_line(lab: Path, segue: Segue, arguments: tuple[str, ...], words: str) -> None:
    ran = segue("lab", "compare", *arguments, cwd=lab)
    assert ran.returncode == 2, ran.stderr
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1, ran.stderr
    assert words in ran.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_comparison_that_is_ended_waits_for_its_run_to_clean_up(
    lab: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip("the signal is ignored here")
    marks = f"""
import signal, time
def stop(*_):
    time.sleep(0.5)
    Path("{lab}/cleaned").touch()
    sys.exit(130)
signal.signal(signal.SIGINT, stop)
Path("{lab}/begun").touch()
time.sleep(60)
"""
    monkeypatch.setenv("SEGUE_LAB", str(program(lab, marks)))
    command = [sys.executable, "-c", "from segue.cli import main; main()", *COMPARE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ) as process:
        until = time.monotonic() + 60
        while not (lab / "begun").exists() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert (lab / "cleaned").exists()

"""`segue lab compare` of schemes of others: figures are what programs read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from segue.lab.trials.plan import Combination, combinations
from segue.lab.trials.received import Received, Window, datagrams_lost, longest_gap, throughput_bps
from segue.lab.trials.results import LabRun, Result, parse, read_interruption, rows
from segue.metrics import ScenarioEvent

DOCUMENT = Path(__file__).parent / "lab_runs" / "none-carrier-down.json"
# 2500 B each ms from 1 s on, nothing from 5 s to 5.3 s
STEADY = Received(1_000_000, 1.0, 9.999, (0, *[250_000] * 4, 175_000, *[250_000] * 4), ((5.0, 5.3),))


@pytest.fixture(scope="module")
def planned() -> Combination:
    return combinations(("lab/mptcp",), [], ["planned"], settings={"duration": "10 s"})[0]


@pytest.fixture(scope="module")
def event() -> Combination:
    return combinations(("lab/mptcp",), [], ["carrier-down"], settings={"duration": "10 s"})[0]


def run(own: Received | None, *, changes_s: tuple[float, ...] = (), left_out: frozenset[int] = frozenset()) -> LabRun:
    """A run in which the first application's receiver read this."""
    received = {} if own is None else {0: own}
    found = parse(DOCUMENT.read_text())
    metrics = replace(found.metrics, scenario_events=())
    return replace(found, metrics=metrics, received=received, changes_s=changes_s, left_out=left_out)


def interruption(of: LabRun, combination: Combination) -> tuple[float, bool]:
    """Of the first application, seconds, and whether it is a lower bound."""
    value = read_interruption(of, combination, 0)
    assert value is not None
    return round(value.value, 6), value.censored


def test_events_happen_to_the_network_of_a_host_without_a_scheme(event: Combination) -> None:
    assert event.is_of_others
    assert (event.scheme, event.network, event.at_s) == ("mptcp-delete", "one", 5.0)


def test_tcp_over_sigma_has_figures_of_reads_and_happens_to_the_network_of_its_association() -> None:
    # SIGMA with the policy of the one leaves its network for that which came last, that of the other stays
    for file, network in (("lab/sigma-tcp", "two"), ("lab/none", "one")):
        carried = combinations((file,), ["sigma"], ["carrier-down"], settings={"duration": "10 s"})[0]
        assert (carried.is_carried, carried.is_by_reads, carried.is_of_others) == (True, True, False)
        assert carried.network == network
    plain = combinations(("lab/sigma-lan",), [], ["planned"])[0]
    assert not plain.is_by_reads, "its SCTP is the simulator's too"


def test_an_interruption_is_the_longest_gap_around_what_happens_less_the_pacing(
    planned: Combination, event: Combination
) -> None:
    assert interruption(run(STEADY), event) == (0.299, False)
    assert interruption(run(STEADY, changes_s=(4.9,)), planned) == (0.299, False)
    # and around an event of the file as around the same from the command line
    own = run(STEADY, changes_s=(8.0,))
    happens = ScenarioEvent("blackhole", ("one",), 4.9, 1.0)
    with_event = replace(own, metrics=replace(own.metrics, scenario_events=(happens,)))
    assert interruption(with_event, planned) == (0.299, False)
    # it was long before that, or there was no change
    assert interruption(run(STEADY, changes_s=(8.0,)), planned) == (0.0, False)
    assert interruption(run(STEADY), planned) == (0.0, False)


def test_datagrams_that_were_not_read_are_lost(planned: Combination) -> None:
    paced = planned.applications[2]
    assert (paced.transport, paced.message_bytes, paced.pacing_s) == ("udp", 200.0, 0.005)
    # one each 5 ms from 1 s to 9.995 s: 1800
    whole = Received(1800 * 200, 1.0, 9.995, (), ())
    assert datagrams_lost(whole, paced, duration_s=10.0) == 0
    assert datagrams_lost(replace(whole, received_bytes=1788 * 200), paced, duration_s=10.0) == 12
    # silent from 5 s on, or just under way at the end
    assert datagrams_lost(replace(whole, received_bytes=800 * 200, end_s=4.995), paced, duration_s=10.0) == 1001
    assert datagrams_lost(replace(whole, received_bytes=1790 * 200, end_s=9.945), paced, duration_s=10.0) == 0
    assert datagrams_lost(replace(whole, received_bytes=0, begin_s=None, end_s=None), paced, duration_s=10.0) == 0
    # in a table
    lossy = replace(whole, received_bytes=1788 * 200)
    row = rows([Result(planned, (replace(run(None), received={2: lossy}),))])[2]
    assert row.lost is not None
    assert (row.transport, row.lost.median) == ("udp", 12.0)


def test_datagrams_of_a_size_end_with_it(planned: Combination, event: Combination) -> None:
    # 800 of them, one each 5 ms from 1 s to 4.995 s, of a run of 10 s
    paced = replace(planned.applications[2], size_bytes=800 * 200.0)
    whole = Received(800 * 200, 1.0, 4.995, (0, *[40_000] * 4), ())
    lossy = replace(whole, received_bytes=788 * 200)
    assert datagrams_lost(whole, paced, duration_s=10.0) == 0
    assert datagrams_lost(lossy, paced, duration_s=10.0) == 12
    assert datagrams_lost(replace(lossy, received_bytes=600 * 200, end_s=3.995), paced, duration_s=10.0) == 200

    def figures(own: Received, combination: Combination) -> tuple[tuple[float, bool], float | None]:
        sized = replace(combination, applications=(*combination.applications[:2], paced))
        of = replace(run(None), received={2: own})
        value = read_interruption(of, sized, 2)
        assert value is not None
        after = rows([Result(sized, (of,))])[2].after_bps
        return (round(value.value, 6), value.censored), None if after is None else after.median

    # all of it was through when something happened, lost or not; 200 of them were not
    assert figures(whole, event)[0] == figures(lossy, event)[0] == (0.0, False)
    early = replace(event, at_s=3.5)
    assert figures(replace(whole, received_bytes=500 * 200, end_s=3.495), early)[0] == (1.495, True)
    # a second of silence after the end is none of its throughput
    assert figures(lossy, replace(event, at_s=2.0))[1] == figures(whole, replace(event, at_s=2.0))[1] == 320_000.0


def test_silence_to_the_end_is_a_lower_bound_and_so_is_a_flow_of_which_nothing_came(event: Combination) -> None:
    dead = replace(STEADY, end_s=5.0, gaps=())
    assert interruption(run(dead), event) == (4.999, True)
    assert interruption(run(None), event) == (10.0, True)
    # all 50 MB had come by then
    done = replace(dead, received_bytes=50_000_000)
    assert interruption(run(done), event) == (0.0, False)


def test_what_nobody_looked_at_has_no_figures_and_what_nobody_heard_has_a_bound() -> None:
    # its first application is iperf3: under MPTCP nobody knows what it reads, over SIGMA the proxy does
    for scheme, shown in (("mptcp", None), ("sigma", 10_000.0)):
        own = combinations(("lab/none",), [scheme], ["carrier-down"], settings={"duration": "10 s"})[0]
        others, ours = rows([Result(own, (run(None),))])[:2]
        assert (others.runs, ours.runs) == (1, 1)
        assert (others.interruption_ms and others.interruption_ms.median) == shown, scheme
        assert ours.interruption_ms is not None, "one of ours that has said nothing has crashed"
        assert (ours.interruption_ms.median, ours.interruption_ms.median_censored) == (10_000.0, True)


def test_what_a_scheme_does_not_carry_has_no_figures(event: Combination) -> None:
    row = rows([Result(event, (run(STEADY, left_out=frozenset({2})),))])[2]
    assert (row.transport, row.runs, row.interruption_ms) == ("udp", 0, None)


def test_throughput_is_that_of_whole_seconds() -> None:
    def rate(own: Received, moment_s: float, *, after: bool) -> float | None:
        return throughput_bps(own, moment_s, after=after, duration_s=10.0, is_complete=False)

    assert rate(STEADY, 5.0, after=False) == 2_000_000
    assert rate(STEADY, 5.5, after=True) == 2_000_000
    assert rate(replace(STEADY, begin_s=None), 5.0, after=True) is None


def test_a_gap_belongs_to_what_it_overlaps() -> None:
    gap_s, is_last = longest_gap(STEADY, [Window(5.2, 6.2)], duration_s=10.0, is_complete=True)
    assert gap_s == pytest.approx(0.3)
    assert not is_last
    assert longest_gap(STEADY, [Window(5.4, 6.4)], duration_s=10.0, is_complete=True)[0] == 0.0

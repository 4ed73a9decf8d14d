"""Sweeps: grids, rows, rules of stopping, files, and the commands around them."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import segue
from command import Segue
from segue import ScenarioError
from segue.cli.sweep import Drawing, figure_text, interval_text, parse_drawing, plot_results, stems
from segue.compare import Value, median_of
from segue.figures import style
from segue.figures.style import render
from segue.runner import Runner
from segue.stats import median_interval
from segue.store import Store
from segue.summary import counts, time_text
from segue.sweeps.axes import parse_axes, parse_axis
from segue.sweeps.bounds import bound_at
from segue.sweeps.columns import METRICS, find_metric
from segue.sweeps.result import Sweep
from segue.sweeps.running import parse_budget
from segue.sweeps.stopping import Until, parse_rule

SHORT = {"duration": "20 s"}
LATENCIES = {"l2.latency": "100ms..300ms/100ms"}


@pytest.mark.parametrize(
    ("text", "settings", "column"),
    [
        ("100ms..300ms/100ms", ("100 ms", "200 ms", "300 ms"), "k_s"),
        ("100..300ms/100", ("100 ms", "200 ms", "300 ms"), "k_s"),
        ("0.1s..0.3s/100ms", ("0.1 s", "0.2 s", "0.3 s"), "k_s"),
        ("5m/s..20m/s/5m/s", ("5 m/s", "10 m/s", "15 m/s", "20 m/s"), "k_mps"),
        ("2.5m/s..20m/s*2", ("2.5 m/s", "5 m/s", "10 m/s", "20 m/s"), "k_mps"),
        ("-80dBm..-60dBm/10dB", ("-80 dBm", "-70 dBm", "-60 dBm"), "k_dbm"),
        ("10..1000*10", ("10", "100", "1000"), "k"),
        ("384kbit/s, 2 Mbit/s", ("384 kbit/s", "2 Mbit/s"), "k_bps"),
        # a range to draw from is a value
        ("1 s..2 s,2 s..3 s", ("1 s..2 s", "2 s..3 s"), "k"),
        ("mip6, sigma", ("mip6", "sigma"), "k"),
        ('{ file = "a.csv", format = "csv" },[1, 2]', ('{ file = "a.csv", format = "csv" }', "[1, 2]"), "k"),
    ],
)
def test_values_are_written_as_a_scenario_has_them(text: str, settings: tuple[str, ...], column: str) -> None:
    axis = parse_axis("k", text)
    assert (axis.settings, axis.column) == (settings, column)


def test_numbers_are_in_basic_units_and_exact() -> None:
    assert parse_axis("k", "100ms..600ms/100ms").values == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    assert parse_axis("k", ["18 km/h", "1 m/s"]).values == (5.0, 1.0)
    assert parse_axis("k", [True, False]).settings == ("true", "false")


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ({"k": ""}, "at least one value"),
        ({"k": "1s,1000ms"}, "each value once"),
        ({"k": "3..1/1"}, "from the first to the last"),
        ({"k": "1..3/0"}, "from the first to the last"),
        ({"k": "0..3*2"}, "from the first to the last"),
        ({"k": "1ms..3B/1"}, "expected one unit"),
        ({"k": "0..1/0.0000001"}, "at most 100000 values"),
        ({"a.b": "1", "a_b": "2"}, "each key once"),
        ({}, "at least one KEY=VALUES"),
        (["k"], "expected KEY=VALUES"),
    ],
)
def test_a_wrong_grid_is_one_line(grid: dict[str, str] | list[str], words: str) -> None:
    with pytest.raises(ScenarioError) as error:
        parse_axes(grid)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_row_has_what_its_run_has() -> None:
    extra = ("signalling.by_kind.RA.packets", "flows.0.state", "flows.7.state")
    found = segue.sweep("sigma", {"l2.latency": ["200 ms"]}, SHORT, seeds=[3], metrics=extra)
    [row] = found.frame.to_dicts()
    run = segue.run("sigma", {"l2.latency": "200 ms", **SHORT}, seed=3, trace=False)
    metrics = run.metrics
    assert metrics.interruption_s is not None
    assert (row["l2_latency_s"], row["seed"], row["event_log_hash"]) == (0.2, 3, metrics.event_log_hash)
    assert row["interruption_s"] == metrics.interruption_s.max
    assert row["interruption_censored"] == metrics.interruption_s.max_censored
    assert row["throughput_bps"] == metrics.throughput_bps
    assert row["loss"] == row["lost_packets"] / row["packets_sent"]
    assert row[extra[0]] == metrics.signalling.by_kind["RA"].packets > 0
    assert (row[extra[1]], row[extra[2]]) == (metrics.flows[0].state, None)


def test_what_a_path_leads_to_is_marked_where_it_is_a_lower_bound() -> None:
    """A flow that is dead from 37 s on, after a longer outage, and whose file is not through."""
    bounds = {
        "hosts.0.longest_gap_s": True, "flows.0.longest_gap_s": True, "flows.0.silence_s": True,
        "flows.0.interruption_s": True, "flows.0.outages.0.duration_s": False, "flows.0.outages.1.duration_s": True,
        "hosts.0.interruption_s.median": True, "interruption_s.min": True, "unfinished_transfer_s": True,
    }  # fmt: skip
    others = ("flows.0.packets_sent", "flows.0.state", "flows.7.longest_gap_s", "flows.0.begin_s")
    dead = {"scheme": "none", "duration": "45 s", "application.0.size": "1 GB"}
    found = segue.sweep("sigma", {"l2.latency": ["200 ms"]}, dead, seeds=1, metrics=[*bounds, *others])
    [row] = found.frame.to_dicts()
    assert {path: row[f"{path}_censored"] for path in bounds} == bounds
    assert [path for path in others if f"{path}_censored" in row] == []
    assert [found.summary(path)["median_censored"].item() for path in bounds] == list(bounds.values())
    # asked for by itself, it is that column
    again = segue.sweep("sigma", {"l2.latency": ["200 ms"]}, dead, seeds=1,
                        metrics=["hosts.0.interruption_s.max", "hosts.0.interruption_s.max_censored"])  # fmt: skip
    assert again.frame["hosts.0.interruption_s.max_censored"].to_list() == [True]


def test_percentiles_of_a_distribution_are_bounds_from_the_least_of_them_on() -> None:
    spread = {"count": 9, "bound_from": 3.0, "mean": 2.0, "median": 1.0, "p95": 3.0, "max": 4.0}
    document = {"populations": [{"interruption_s": spread, "goodput_bps": spread | {"bound_from": None}}]}
    named = {name: bound_at(document, f"populations.0.interruption_s.{name}") for name in spread}
    assert named == {"count": None, "bound_from": None, "mean": True, "median": False, "p95": True, "max": True}
    assert bound_at(document, "populations.0.goodput_bps.p95") is False


def test_a_transfer_that_has_not_ended_took_at_least_the_time_so_far() -> None:
    sizes = {"application.0.size": ["200 kB", "1 GB"]}
    found = segue.sweep("sigma", sizes, SHORT, seeds=2)
    ended, going_on = found.summary("transfer_time").to_dicts()
    assert (ended["median_censored"], going_on["median_censored"]) == (False, True)
    assert (ended["n"], going_on["n"], going_on["censored"]) == (2, 2, 2)
    run = segue.run("sigma", {"application.0.size": "1 GB", **SHORT}, seed=1, trace=False)
    so_far = 20 - run.metrics.flows[0].begin_s
    assert run.metrics.transfer_time_s is None
    assert run.metrics.unfinished_transfer_s == pytest.approx(so_far)
    assert dict(counts(run.metrics))["transfer time"] == f"{time_text(so_far, censored=True)}, not ended"
    whole = segue.run("sigma", {"application.0.size": "200 kB", **SHORT}, seed=1, trace=False).metrics
    assert whole.transfer_time_s is not None
    assert whole.unfinished_transfer_s is None
    assert dict(counts(whole))["transfer time"] == f"{whole.transfer_time_s:.3f} s"


def test_words_of_metrics_are_those_of_conditions() -> None:
    with pytest.raises(ScenarioError) as error:
        segue.run("sigma", SHORT, conditions=["nonsense < 1"])
    named = str(error.value).partition("expected one of ")[2].split(", ")
    assert len(named) == 12
    assert [name for name in named if name not in {metric.word for metric in METRICS}] == []


def test_a_condition_and_the_column_of_its_word_say_the_same() -> None:
    """A flow that never comes back, and an event: what is a lower bound, and what counts."""
    cases = [("sigma", {"duration": "22 s", "scheme": "none"}), ("lab/both-ends-move", {})]
    for scenario, overrides in cases:
        [row] = segue.sweep(scenario, {"wire": "typed"}, overrides, seeds=1).frame.to_dicts()
        value = row["interruption_s"]
        conditions = [f"interruption >= {value:.9f} s", f"interruption <= {value + 1e-6:.9f} s"]
        verdicts = segue.run(scenario, overrides, seed=1, trace=False, conditions=conditions).verdicts[-2:]
        assert [one.holds for one in verdicts] == [True, not row["interruption_censored"]]


def test_what_is_wrong_anywhere_in_the_grid_is_said_before_the_first_run() -> None:
    told: list[tuple[str, int, int]] = []
    for grid, words in (
        ({"l2.latency": "100ms,5 parsec"}, "parsec"),
        ({"l2.latncy": "100ms"}, "latncy"),
        ({"duration": "1 s"}, "is set too"),
        ({"loss": "1"}, "metric's column"),
    ):
        with pytest.raises(ScenarioError, match=words):
            segue.sweep("sigma", grid, SHORT, progress=lambda *one: told.append(one))
    assert told == []
    with pytest.raises(ScenarioError, match="did you mean `signalling`"):
        segue.sweep("sigma", LATENCIES, SHORT, seeds=1, metrics=["signaling.bytes"])
    with pytest.raises(ScenarioError, match="it goes on: packets, bytes"):
        segue.sweep("sigma", LATENCIES, SHORT, seeds=1, metrics=["signalling.by_kind.RA"])


def test_rows_do_not_depend_on_threads_or_the_store(tmp_path: Path) -> None:
    store = Store(tmp_path)
    runners = [
        Runner(threads=1),
        Runner(threads=3),
        *(Runner(store=store, fresh=fresh) for fresh in (False, False, True)),
    ]
    frames = [segue.sweep("sigma", LATENCIES, SHORT, seeds=3, runner=runner).frame for runner in runners]
    assert frames[0].height == 9
    assert frames[0].select("l2_latency_s", "seed").rows() == [(v, s) for v in (0.1, 0.2, 0.3) for s in (1, 2, 3)]
    assert all(frame.equals(frames[0]) for frame in frames)
    assert len(store) == 9


def test_points_that_are_the_same_run_have_a_row_each(tmp_path: Path) -> None:
    store = Store(tmp_path)
    # a range of one value is that value
    same = segue.sweep(
        "sigma", {"l2.latency": ["200 ms", "200 ms..200 ms"]}, SHORT, seeds=1, runner=Runner(store=store)
    )
    assert same.frame["event_log_hash"].n_unique() == 1
    assert (same.frame.height, len(store)) == (2, 1)


MORE_THAN_HALF = 0.52
"""Of values lie below a gap, and the median with them."""


def test_until_is_a_share_or_a_distance() -> None:
    assert Until.parse("interruption ±5 %").share == 0.05
    assert Until.parse("throughput +- 100 kbit/s").distance == 1e5
    assert Until.parse("handovers ±2").distance == 2
    for wrong in ("interruption", "interruption 5 %", "interruption ±0 %", "interruption ±5 B", "nonsense ±5 %"):
        with pytest.raises(ScenarioError):
            Until.parse(wrong)


def test_seeds_are_added_until_the_interval_is_narrow() -> None:
    rule = parse_rule(8, "loss ±10 %", 64, ())
    assert [len(seeds) for seeds in rule.rounds()] == [8, 8, 16, 32]
    assert [seed for seeds in rule.rounds() for seed in seeds] == list(range(1, 65))
    assert [rule.confidence(n) for n in (8, 16, 32, 64)] == [0.975, 0.9875, 0.99375, 0.996875]
    no = [False] * 8
    assert not rule.is_open([1.0] * 8, no)
    assert rule.is_open([1.0] * 7 + [2.0], no)
    assert not rule.is_open([None] * 8, no)
    # one that never came back may be anything
    assert rule.is_open([1.0] * 8, [True] + [False] * 7)
    # five cannot have 97.5 %
    assert parse_rule(5, "loss ±10 %", 64, ()).is_open([1.0] * 5, [False] * 5)


def test_too_few_seeds_for_a_look_are_refused() -> None:
    assert parse_rule(8, "loss ±10 %", 8, ()).most == 8
    with pytest.raises(ScenarioError, match="most seeds: 6: expected more, since the interval of look 2"):
        parse_rule(3, "loss ±10 %", 6, ())


def test_a_budget_is_a_time() -> None:
    for wrong in (-5.0, 0, float("nan"), float("inf"), "0 s", "5 m/s"):
        with pytest.raises(ScenarioError, match="expected a time"):
            parse_budget(wrong)


def test_a_bound_is_never_rounded_up() -> None:
    texts = [figure_text(value, censored=True) for value in (12.3456, 0.0123456, 123456.9, 0.0, 12.3)]
    assert texts == ["≥ 12.34", "≥ 0.01234", "≥ 123456", "≥ 0", "≥ 12.3"]


def test_warnings_of_runs_are_told_once() -> None:
    told: list[str] = []
    segue.sweep("call", {"scheme": "sigma"}, {"duration": "20 s"}, seeds=2, tell=told.append)
    assert len(told) == 1
    assert 'scheme = "sigma" has no effect' in told[0]


def test_a_grid_that_cannot_be_told_apart_is_refused() -> None:
    for wrong, why in [
        (["l2.latency=1 ms,2 ms", "l2={latency='1 s'}"], "expected no key above or below another"),
        (["l2.latency=1ms..2ms*1.0000000001"], "expected at most 1000 values"),
    ]:
        with pytest.raises(ScenarioError, match=why):
            parse_axes(wrong)
    for metric in ("seed", "l2_latency_s", "event_log_hash"):
        with pytest.raises(ScenarioError, match="is the name of a column"):
            segue.sweep("sigma", {"l2.latency": "1 ms, 2 ms"}, SHORT, seeds=1, metrics=[metric])


def test_a_median_next_to_a_bound_is_a_bound() -> None:
    """Of two values the greater decides, since nobody knows how great it is."""
    rule = parse_rule(2, None, 0, ())
    axis = parse_axis("l2.latency", "1 ms")
    frame = pl.DataFrame({axis.column: [0.001, 0.001], "seed": [1, 2], "interruption_s": [0.1, 25.0],
                          "interruption_censored": [False, True]})  # fmt: skip
    sweep = Sweep(frame, "one", (axis,), {}, rule, (), None, 0, "")
    [row] = sweep.summary("interruption").to_dicts()
    assert (row["median"], row["median_censored"], row["high_censored"]) == (12.55, True, True)
    told = median_of([Value(0.1, is_bound=False), Value(25.0, is_bound=True)])
    assert told is not None
    assert told.is_bound


def test_paths_have_the_unit_of_what_they_lead_to() -> None:
    names = ("interruption_s.max", "flows.0.longest_gap_s", "signalling.by_kind.BU.packets", "hosts.0.signalling.bytes")
    assert [find_metric(name, names).unit for name in names] == ["s", "s", "", "B"]


def test_names_with_dollars_are_drawn_as_they_are() -> None:
    found = segue.sweep("sigma", {"name": ["a$b$c", "$x^$"]}, SHORT, seeds=1)
    for x in ("name", None):
        assert render(found.figure("delivered", x=x)).svg


def test_a_budget_in_which_nothing_ended_leaves_files_alone(
    tmp_path: Path, segue: Segue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEGUE_STORE", "")
    out = tmp_path / "out.parquet"
    out.write_bytes(b"before")
    done = segue("sweep", "sigma", "--grid", "l2.latency=1 ms,2 ms", "--seeds", "2", "--set", "duration=300 s",
                 "--budget", "1 us", "--out", out)  # fmt: skip
    assert (done.returncode, out.read_bytes()) == (2, b"before")
    assert "no run ended in it" in done.stderr


@pytest.mark.parametrize("of_another", [False, True])
def test_stopped_intervals_cover_with_what_is_said(of_another: bool) -> None:
    """Of a median near a gap, with 1,000 sweeps: one look at 95 % each time would not do, neither for the metric whose
    interval stops a sweep nor for another that goes with it."""
    rule = parse_rule(8, "loss ±50 %", 256, ())
    random_stream = random.Random(7)

    def draw() -> float:
        return (
            random_stream.uniform(1.0, 1.2)
            if random_stream.random() < MORE_THAN_HALF
            else random_stream.uniform(9.0, 10.0)
        )

    truth, trials = 1.0 + 0.2 * 0.5 / MORE_THAN_HALF, 1000

    def coverage(confidence: Callable[[int], float]) -> float:
        covered = 0
        for _ in range(trials):
            values: list[float] = []
            for seeds in rule.rounds():
                values += [draw() for _ in seeds]
                interval = median_interval(values, confidence(len(values)))
                assert rule.until is not None
                if interval.coverage >= confidence(len(values)) and rule.until.is_met(interval):
                    break
            shown = [value * value for value in values] if of_another else values
            interval = median_interval(shown, confidence(len(values)))
            covered += interval.low <= (truth * truth if of_another else truth) <= interval.high
        return covered / trials

    # 0.95 less three standard deviations of a count of 1,000
    least = 0.95 - 3 * (0.95 * 0.05 / trials) ** 0.5
    assert coverage(rule.confidence) >= least
    assert coverage(lambda _: 0.95) < least


def test_a_sweep_until_has_more_seeds_where_more_are_needed() -> None:
    grid = {"mobile.speed": "2.5 m/s, 10 m/s"}
    found = segue.sweep("sigma", grid, {"duration": "30 s", "l2.latency": "100 ms"}, seeds=8,
                        until="handover_latency ±0.02 %", most_seeds=32)  # fmt: skip
    counts = dict(found.frame.group_by("mobile_speed_mps").len().rows())
    assert counts[2.5] == 8
    assert counts[10.0] in {16, 32}
    assert "handover_latency ±0.02 %" in found.note()
    assert "95 %" in found.note()


def test_a_budget_leaves_whole_rows_and_says_what_is_missing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    found = segue.sweep(
        "sigma",
        {"l2.latency": "100ms..400ms/1ms"},
        {"duration": "60 s"},
        seeds=50,
        budget=4,
        runner=Runner(store=store, threads=2),
    )
    assert 0 < found.frame.height < 301 * 50
    assert found.missing + found.frame.height == 301 * 50
    assert f"{found.missing} runs missing" in found.note()
    # every point once before any twice
    assert found.frame["seed"].max() == 1 or found.frame.filter(pl.col("seed") == 1).height == 301
    assert len(store) == found.frame.height
    assert (parse_budget("10m"), parse_budget("90 s"), parse_budget("1.5 min"), parse_budget(None)) == (
        600,
        90,
        90,
        None,
    )
    for wrong in ("10", "ten", "5 MB", "0 s"):
        with pytest.raises(ScenarioError, match="expected a time"):
            parse_budget(wrong)


def test_a_file_is_what_was_written(tmp_path: Path) -> None:
    found = segue.sweep("ilnp", {"scheme": ["mip6", "ilnp-soft"], "case": "lan-lan"}, {"duration": "40 s"}, seeds=2,
                        metrics=["signalling.by_kind.BU.packets"])  # fmt: skip
    path = found.write(tmp_path / "r.parquet")
    again = Sweep.read(path)
    assert again.frame.equals(found.frame)
    assert (again.axes, again.rule, again.extra, again.overrides) == (
        found.axes,
        found.rule,
        found.extra,
        found.overrides,
    )
    assert again.write(tmp_path / "again.parquet").read_bytes() == path.read_bytes()
    assert pl.read_parquet(path).columns[:3] == ["scheme", "case", "seed"]
    for wrong in (b"nonsense", pl.DataFrame({"a": [1]})):
        other = tmp_path / "other.parquet"
        if isinstance(wrong, bytes):
            other.write_bytes(wrong)
        else:
            wrong.write_parquet(other)
        with pytest.raises(ScenarioError, match="expected a Parquet file that segue sweep has written"):
            Sweep.read(other)


def made(values: dict[tuple[str, float], list[tuple[float, bool]]]) -> Sweep:
    """A sweep over scheme and latency, with these interruptions."""
    axes = parse_axes(
        {
            "scheme": sorted({key[0] for key in values}),
            "l2.latency": [f"{v} s" for v in sorted({key[1] for key in values})],
        }
    )
    rows = [
        {
            "scheme": scheme,
            "l2_latency_s": latency,
            "seed": seed,
            "interruption_s": value,
            "interruption_censored": bound,
        }
        for (scheme, latency), some in values.items()
        for seed, (value, bound) in enumerate(some, 1)
    ]  # fmt: skip
    frame = pl.DataFrame(rows)
    return Sweep(frame, "made", axes, {}, parse_rule(3, None, 0, ()), (), None, 0, "0")


def test_a_summary_says_what_is_a_lower_bound() -> None:
    sweep = made({
        ("a", 0.1): [(1.0, False), (2.0, False), (9.0, True)],
        ("a", 0.2): [(1.0, False), (8.0, True), (9.0, True)],
        ("b", 0.1): [(1.0, False), (2.0, False), (3.0, False)],
    })  # fmt: skip
    rows = sweep.summary("interruption").to_dicts()
    assert [(row["median"], row["low"], row["high"], row["n"], row["censored"]) for row in rows] == [
        (2.0, 1.0, 9.0, 3, 1), (8.0, 1.0, 9.0, 3, 2), (2.0, 1.0, 3.0, 3, 0)
    ]  # fmt: skip
    assert [(row["median_censored"], row["high_censored"]) for row in rows] == [
        (False, True),
        (True, True),
        (False, False),
    ]
    assert [interval_text(row, 1e3) for row in rows] == [
        "2000 [1000, ≥ 9000]",
        "≥ 8000 [1000, ≥ 9000]",
        "2000 [1000, 3000]",
    ]
    assert figure_text(0.012345) == "0.01235"


def test_figures_show_medians_where_they_are() -> None:
    sweep = made({(scheme, x): [(n + x, False)] * 3 for n, scheme in enumerate("ab") for x in (0.1, 0.2)})
    [axes] = sweep.figure("interruption").axes
    assert axes.get_legend_handles_labels()[1] == ["a", "b"]
    medians = [line for line in axes.lines if line.get_marker() == style.SERIES_MARKERS[1]]
    assert np.asarray(medians[0].get_ydata()).tolist() == [1100.0, 1200.0]
    assert "ms" in axes.get_ylabel()
    [other] = sweep.figure("interruption", x="scheme", hue="l2.latency").axes
    assert [label.get_text() for label in other.get_xticklabels()] == ["a", "b"]
    assert b"<svg" in render(sweep.figure("interruption")).svg


def test_a_third_axis_has_to_be_chosen_from() -> None:
    axes = parse_axes({"a": "1,2", "b": "1,2", "c": "x,y"})
    rows = [
        {"a": float(a), "b": float(b), "c": c, "seed": 1, "throughput_bps": 1.0}
        for a in (1, 2)
        for b in (1, 2)
        for c in "xy"
    ]
    sweep = Sweep(pl.DataFrame(rows), "made", axes, {}, parse_rule(1, None, 0, ()), (), None, 0, "0")
    with pytest.raises(ScenarioError, match="--where b=1"):
        sweep.figure("throughput", x="a", hue="c")
    part = sweep.where({"b": "2"})
    assert (part.frame.height, part.axis("b").settings) == (4, ("2",))
    part.figure("throughput", x="a", hue="c")
    with pytest.raises(ScenarioError, match="expected one of 1, 2"):
        sweep.where({"b": "3"})
    with pytest.raises(ScenarioError, match="expected one of a, b, c"):
        sweep.axis("d")
    with pytest.raises(ScenarioError, match="did you mean `throughput`"):
        find_metric("troughput")


@pytest.mark.parametrize(
    ("grid", "chosen"),
    [
        ("20 packets, 64 kB", "20 packets"),
        ("20packets, 64kB", "64kB"),
        ("1 s..2 s, 3 s", "3 s"),
        ("1 s..2 s, 3 s", "1 s..2 s"),
        ("off, 5", "5"),
        ("off, 5", "off,5"),
    ],
)
def test_a_part_is_chosen_by_what_is_written_where_not_all_are_numbers_of_one_unit(grid: str, chosen: str) -> None:
    [axis] = parse_axes({"a": grid})
    rows = [{"a": value, "seed": 1, "throughput_bps": 1.0} for value in axis.values]
    sweep = Sweep(pl.DataFrame(rows), "made", (axis,), {}, parse_rule(1, None, 0, ()), (), None, 0, "0")
    part = sweep.where({"a": chosen})
    assert part.axis("a").settings == parse_axes({"a": chosen})[0].settings
    assert part.frame["a"].to_list() == list(part.axis("a").values)
    assert part.where({"a": chosen}).frame.equals(part.frame)
    with pytest.raises(ScenarioError, match="expected one of"):
        sweep.where({"a": "7"})


SWEEP = ("sweep", "sigma", "--grid", "l2.latency=100ms,500ms", "--set", "duration=20 s", "--seeds", "2")


def test_the_command_line_writes_a_file_and_figures(segue: Segue, tmp_path: Path) -> None:
    ran = segue(
        *SWEEP, "--out", "r.parquet", "--plot", "x=l2.latency,y=interruption", "--metric", "throughput", cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r-interruption.png", "r-interruption.svg", "r.parquet"]
    assert "500 ms" in ran.stdout
    assert "throughput" in ran.stdout
    assert "2 seeds a point." in ran.stdout
    assert ran.stderr == ""
    drawn = segue("plot", "r.parquet", "--y", "loss", "--y", "throughput", "--out", "figures", cwd=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    names = ["r-loss.png", "r-loss.svg", "r-throughput.png", "r-throughput.svg"]
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == names
    one = segue("plot", "r.parquet", "--y", "loss", "--out", "one.svg", cwd=tmp_path)
    assert one.returncode == 0, one.stderr
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "figures" / "r-loss.svg").read_bytes()


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("scheme", "--where scheme: expected KEY=VALUE"),
        ("scheme=\udcff", "--where 'scheme=\\udcff': expected UTF-8"),
        ("scheme=mip6", "scheme=mip6: expected one of sigma, none"),
    ],
)
def test_a_part_that_is_wrong_is_one_line_of_its_option(
    tmp_path: Path, condition: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = segue.sweep("sigma", {"scheme": "sigma, none"}, SHORT, seeds=1).write(tmp_path / "r.parquet")
    with pytest.raises(ScenarioError) as error:
        plot_results(file, [parse_drawing("y=interruption")], (condition,), None)
    assert words in str(error.value)
    assert capsys.readouterr().out == ""


def test_figures_that_would_have_one_name_are_all_written(segue: Segue, tmp_path: Path) -> None:
    plots = ("y=loss,x=scheme", "y=loss,hue=scheme", "y=loss,x=scheme", "y=loss")
    asked = ("--grid", "scheme=sigma,none", *(f"--plot={one}" for one in plots))
    ran = segue(*SWEEP, *asked, "--out", "r.parquet", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    names = ["r-loss-scheme", "r-loss-scheme-2", "r-loss"]
    assert [Path(line).stem for line in ran.stdout.splitlines() if line.endswith(".svg")] == names
    assert len({(tmp_path / f"{name}.svg").read_bytes() for name in names[:2]}) == 2
    drawn = segue("plot", "r.parquet", "--y", "loss", "--y", "loss", "--out", "one.svg", cwd=tmp_path)
    assert (drawn.returncode, drawn.stdout.count("one.svg")) == (0, 1)


def test_no_name_of_a_figure_is_given_twice() -> None:
    drawings = [
        Drawing("a", "loss", "2"),
        Drawing("a", "loss", None),
        Drawing(None, "loss", "a"),
        Drawing("a-2", "loss", None),
    ]
    assert [path.name for path in stems(Path("r.parquet"), drawings)] == [
        "r-loss-a-2",
        "r-loss-a",
        "r-loss-a-3",
        "r-loss-a-2-2",
    ]


def test_a_figure_of_what_no_run_has_leaves_the_results(segue: Segue, tmp_path: Path) -> None:
    ran = segue(*SWEEP, "--out", "r.parquet", "--plot", "y=transfer_time", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (2, "segue: transfer_time: no run has it\n")
    assert [path.name for path in tmp_path.iterdir()] == ["r.parquet"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--out", "r.csv"), "expected a name that ends in .parquet"),
        (("--out", "none/r.parquet"), "expected a directory that is there"),
        (("--plot", "x=a"), "--out FILE.parquet"),
        (("--plot", "z=a", "--out", "r.parquet"), "expected x=KEY,y=METRIC,hue=KEY"),
        (("--plot", "y=nonsense", "--out", "r.parquet"), "metric `nonsense`"),
        # before the first run, which would not end
        (("--plot", "x=nonsense", "--out", "r.parquet", "--set", "duration=9999999 s"), "axis `nonsense`"),
        (("--until", "interruption 5"), "until `interruption 5`"),
        (("--budget", "soon"), "expected a time"),
        (("--most-seeds", "9"), "without --until"),
        (("--grid", "l2.latency=1s"), "each key once"),
        (("--on", "slurm"), "expected ray"),
        (("--on", "ray", "--fresh"), "neither --threads nor --fresh"),
    ],
)
def test_bad_input_is_one_line(segue: Segue, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    ran = segue(*SWEEP, *arguments, cwd=tmp_path)
    assert ran.returncode == 2
    assert words in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_drawings_are_read() -> None:
    drawing = parse_drawing("x=a.b, y=loss,hue=c")
    assert (drawing.x, drawing.metric, drawing.hue) == ("a.b", "loss", "c")
    assert parse_drawing("hue=c").metric == "interruption"


def test_a_sweep_that_was_killed_goes_on_and_ends_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("sweep", "sigma", "--grid", "l2.latency=100ms..500ms/4ms", "--set", "duration=20 s", "--seeds", "4")
    command = [sys.executable, "-c", "from segue.cli import main; main()", *arguments]
    monkeypatch.setenv("SEGUE_STORE", "")
    subprocess.run([*command, "--out", tmp_path / "whole.parquet"], check=True, capture_output=True, timeout=300)
    monkeypatch.setenv("SEGUE_STORE", str(tmp_path / "store"))
    for _ in range(2):
        process = subprocess.Popen([*command, "--out", tmp_path / "r.parquet"], stdout=subprocess.DEVNULL)
        before = len(Store(tmp_path / "store"))
        until = time.monotonic() + 120
        while len(Store(tmp_path / "store")) < before + 20:
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (tmp_path / "r.parquet").exists()
    there = len(Store(tmp_path / "store"))
    assert 40 <= there < 404
    ran = subprocess.run(
        [*command, "--out", tmp_path / "r.parquet"], check=True, capture_output=True, text=True, timeout=300
    )
    assert f"{there} of them found in" in ran.stdout
    assert (tmp_path / "r.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert json.loads(pl.read_parquet_metadata(tmp_path / "r.parquet")["segue"])["scenario"] == "papers/sigma"

from __future__ import annotations

import polars as pl
import pytest

from segue.papers.grid import Axis, Grid, run_grids, summarise
from segue.papers.sigma import experiment as ex
from segue.runner import Runner
from segue.scenarios import load

SPEED = Axis("mobile.speed", "speed_mps", [2.5, 5], "m/s")
POLICY = Axis("handover.policy", "policy", ["signal", "first-ready"])


def test_values_are_written_as_a_scenario_has_them() -> None:
    assert SPEED.override(2.5) == "2.5 m/s"
    assert SPEED.override(5) == "5 m/s"
    assert POLICY.override("signal") == "signal"


def test_points_are_every_combination_slowest_axis_first() -> None:
    grid = Grid("g", [SPEED, POLICY])
    assert grid.points() == [(2.5, "signal"), (2.5, "first-ready"), (5, "signal"), (5, "first-ready")]


def test_paper_grids_have_the_points_of_the_paper() -> None:
    grids = {grid.name: grid for grid in ex.grids()}
    assert len(grids[ex.LATENCY].points()) == 24
    assert len(grids[ex.SPEED].points()) == 32
    assert (600, 300) in grids[ex.LATENCY].points()
    assert (20, 80) in grids[ex.SPEED].points()


def test_summary_is_the_median_over_seeds_and_leaves_out_missing_values() -> None:
    frame = pl.DataFrame(
        {"x": [2, 2, 2, 1, 1, 3], "seed": [1, 2, 3, 1, 2, 1], "value": [5.0, 1.0, 3.0, None, 7.0, None]}
    )
    summary = summarise(frame, ["x"], "value")
    assert summary["x"].to_list() == [1, 2]
    assert summary["median"].to_list() == [7.0, 3.0]
    assert summary["low"].to_list() == [7.0, 1.0]
    assert summary["n"].to_list() == [1, 3]


def test_summary_of_nothing_is_empty_with_its_columns() -> None:
    frame = pl.DataFrame({"x": [1], "value": [None]}, schema={"x": pl.Int64, "value": pl.Float64})
    assert summarise(frame, ["x"], "value").columns == ["x", "median", "low", "high", "coverage", "n"]


@pytest.mark.parametrize("threads", [1, 3])
def test_results_do_not_depend_on_the_number_of_threads(threads: int) -> None:
    grid = Grid("g", [SPEED], {"duration": "20 s"})
    scenario = load("sigma")
    frame = run_grids([grid], scenario, [1, 2], runner=Runner(threads=threads))["g"]
    assert frame.select("speed_mps", "seed").rows() == [(2.5, 1), (2.5, 2), (5.0, 1), (5.0, 2)]
    one = run_grids([grid], scenario, [1, 2], runner=Runner(threads=2))["g"]
    assert frame.equals(one)
    assert frame["event_log_hash"].n_unique() == 4


def test_handovers_of_every_scheme_and_flows_that_died_are_in_the_columns() -> None:
    schemes = Grid("g", [Axis("scheme", "scheme", ["mip6", "ilnp-soft"])], {"case": "wan-lan", "duration": "40 s"})
    frame = run_grids([schemes], load("ilnp"), [1])["g"]
    assert all(count >= 1 for count in frame["handovers"])
    assert frame["latency_median_s"].null_count() == 0
    dead = Grid("d", [Axis("scheme", "scheme", ["none"])], {"duration": "22 s"})
    [row] = run_grids([dead], load("sigma"), [1])["d"].to_dicts()
    assert (row["handovers"], row["dead_flows"], row["interruptions"], row["interruptions_censored"]) == (0, 1, 1, 1)
    assert row["interruption_max_s"] == row["longest_gap_s"] > 10

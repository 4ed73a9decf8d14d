"""`segue reproduce vertical` from end to end, with few seeds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.patches import Rectangle

from segue.figures.style import render
from segue.papers.common import Reproduction
from segue.papers.vertical import experiment as ex
from segue.papers.vertical.claims import ENDS_OF_T_N
from segue.papers.vertical.figures import latencies
from segue.papers.vertical.reproduce import reproduce

SEEDS = 9


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reproduction]:
    out = tmp_path_factory.mktemp("report")
    return out, reproduce(out, seeds=SEEDS)


def test_every_claim_is_judged(done: tuple[Path, Reproduction]) -> None:
    out, result = done
    claims = json.loads((out / "claims.json").read_text())
    assert [claim["id"] for claim in claims] == [f"V{n}" for n in range(1, 10)]
    assert all(claim["measured"] and claim["criterion"] for claim in claims)
    verdicts = {claim.id: claim.holds for claim in result.claims}
    # what is far from its criterion with any seeds
    assert {name for name in ("V1", "V7", "V8") if not verdicts[name]} == set()


def test_t_n_is_read_by_each_of_its_ends(done: tuple[Path, Reproduction]) -> None:
    out, result = done
    claims = {claim.id: claim for claim in result.claims}
    for name in ("V2", "V4"):
        assert len(claims[name].readings) == len(ENDS_OF_T_N)
        assert claims[name].holds == all(one.holds for one in claims[name].readings)
    runs = pl.read_csv(out / "tables" / "runs-handovers.csv")
    upward = runs.filter(pl.col("variant").is_in(ex.UPWARD) & (pl.col("number") == 0))
    # a test or an acknowledgement comes before the binding is made
    assert (upward["first_packet_s"] < upward["t_n_s"]).all()
    assert (upward["first_packet_s"] <= upward["first_data_s"]).all()
    # and data after it, unless the home agent had none before, as on leaving home: then it tunnels data in between
    away = upward.filter(pl.col("variant") == "wlan-gprs")
    assert (away["t_n_s"] < away["first_data_s"]).all()


@pytest.mark.parametrize(
    ("first_data_s", "t_a_s", "bars", "crosses"),
    [
        ((2.0, 3.0), (1.0, 1.5), [2.0, 3.0, 1.0, 1.5], None),
        # no data over the new network, whatever is said of t_a
        ((2.0, None), (1.0, 1.5), [2.0, 1.0], [[2, 0.0]]),
        # too few packets for t_a
        ((2.0, 3.0), (None, 1.5), [2.0, 3.0, 1.5], [[1, 2.0]]),
        ((None, None), (None, None), [], [[1, 0.0], [2, 0.0]]),
    ],
)
def test_times_that_were_not_measured_are_no_bars_of_no_height(
    first_data_s: tuple[float | None, ...],
    t_a_s: tuple[float | None, ...],
    bars: list[float],
    crosses: list[list[float]] | None,
) -> None:
    times = ("t_d_s", "t_c_s", "t_r_s", "t_n_s", "first_packet_s", "share")
    runs = pl.DataFrame(
        [
            {"variant": "wlan-gprs", "number": 0, "seed": seed, "first_data_s": first, "t_a_s": t_a}
            | dict.fromkeys(times, 0.5)
            for seed, first, t_a in zip((1, 2), first_data_s, t_a_s, strict=True)
        ],
        schema_overrides={"first_data_s": pl.Float64, "t_a_s": pl.Float64},
    )
    drawn = latencies(runs, 5, "wlan-gprs")
    [axes] = drawn.figure.axes
    assert [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)] == bars
    marked = [np.asarray(line.get_xydata()).tolist() for line in axes.lines if line.get_marker() == "x"]
    assert marked == ([] if crosses is None else [crosses])
    assert drawn.table is not None
    assert drawn.table["first_data_s"].to_list() == list(first_data_s)
    assert render(drawn.figure).png


def test_figures_and_tables_are_there(done: tuple[Path, Reproduction]) -> None:
    out, _ = done
    names = [*(f"figure-{number:02}" for number in range(5, 10)), "figure-detection", "figure-remedies"]
    for name in names:
        assert (out / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (out / "figures" / f"{name}.svg").read_bytes()[:2000]
    report = (out / "report.html").read_text()
    assert "What was tried for the spread of T_n, WLAN to GPRS" in report
    assert "the widest gap in the first data" in report
    assert "Fitted or changed after a result" in report
    table = pl.read_csv(out / "tables" / "runs-table-1.csv")
    assert table.height == 8
    assert (table["min_ms"] <= table["median_ms"]).all()


def test_the_parts_of_every_handover_add_up(done: tuple[Path, Reproduction]) -> None:
    out, _ = done
    runs = pl.read_csv(out / "tables" / "runs-handovers.csv")
    counts = dict(runs.filter(pl.col("number") == 0).group_by("variant").len().iter_rows())
    expected = {variant.name: variant.seeds for variant in ex.variants(SEEDS)}
    assert counts == expected
    whole = runs.filter(pl.col("t_n_s").is_not_null())
    assert (whole["t_n_s"] - whole["t_d_s"] - whole["t_c_s"] - whole["t_r_s"]).abs().max() < 1e-6  # type: ignore[operator]
    soft = whole["variant"].str.starts_with("wlan-gprs-wlan") | whole["variant"].str.contains("-soft/")
    assert (whole["soft"] == soft).all()

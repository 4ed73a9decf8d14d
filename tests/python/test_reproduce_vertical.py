"""`segue reproduce vertical` from end to end, with few seeds."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from segue.papers.common import Reproduction
from segue.papers.vertical import experiment as ex
from segue.papers.vertical.claims import ENDS_OF_T_N
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

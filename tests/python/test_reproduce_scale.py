"""`segue reproduce scale` from end to end, with ten phones, and what it makes of loads."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from segue.papers.common import Reproduction
from segue.papers.scale import experiment as ex
from segue.papers.scale import reproduce as scale
from segue.papers.scale.saturation import Saturation, first, saturations


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reproduction]:
    out = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ex, "QUICK_PHONES", (10, 20))
        return out, scale.reproduce(out, quick=True, seeds=1)


def test_every_scheme_has_interruptions_and_a_load(done: tuple[Path, Reproduction]) -> None:
    out, result = done
    assert (result.runs, result.claims) == (8, [])
    runs = pl.read_csv(out / "tables" / "runs-scale.csv").filter(pl.col("phones") == 20)
    assert set(runs["scheme"]) == set(ex.SCHEMES)
    assert min(runs["probed"].to_list()) >= 2
    assert runs["dead_flows"].sum() == 0
    by_scheme = {row["scheme"]: row for row in runs.iter_rows(named=True)}
    # two networks at a time lose nothing, and a packet comes every 8 ms; a network that is left at its end costs more
    for scheme in ("sigma", "ilnp-soft"):
        assert ex.PROBE_PACING_S <= by_scheme[scheme]["p50_s"] < 0.05
    assert by_scheme["mip6"]["p50_s"] > 2 * by_scheme["ilnp-soft"]["p50_s"]
    loads = pl.read_csv(out / "tables" / "runs-scale-loads.csv").filter(pl.col("phones") == 20)
    updates = {(row["scheme"], row["anchor"]): row["updates_per_s"] for row in loads.iter_rows(named=True)}
    # each hands over every 30 s
    for anchor, schemes in (("home-agent", ("mip6", "mip6-ro")), ("location-manager", ("sigma", "ilnp-soft"))):
        for scheme in schemes:
            assert 0.5 * 20 / 30 <= updates[scheme, anchor] <= 4 * 20 / 30


def test_the_report_says_which_saturates_first(done: tuple[Path, Reproduction]) -> None:
    out, result = done
    assert result.summary is not None
    assert [row[0] for row in result.summary.rows] == list(ex.SCHEMES.values())
    full_first = {row[0]: row[5] for row in result.summary.rows}
    assert full_first["Mobile IPv6"] == "home agent, link"
    assert full_first["SIGMA"] == "location manager, processor"
    report = (out / "report.html").read_text()
    assert "Which saturates first, and when" in report
    for name in ("interruption", "signalling", "saturation"):
        assert (out / "figures" / f"figure-{name}.png").read_bytes().startswith(b"\x89PNG")


def test_what_a_resource_bears_follows_from_the_most_phones_with_which_it_is_not_full() -> None:
    busy = {10: 0.01, 100: 0.2, 1000: 0.99, 3000: 1.0}
    rows = [
        dict.fromkeys(ex.LOADS_SCHEMA, 0.0)
        | {"scheme": "mip6", "anchor": "home-agent", "phones": phones, "seed": 1, "busy": share}
        for phones, share in busy.items()
    ]
    loads = pl.DataFrame([{name: row[name] for name in ex.LOADS_SCHEMA} for row in rows], strict=False)
    found = saturations(loads)
    assert found == [Saturation("mip6", "home-agent", "processor", 0.002, 100, 500.0, 1000)]
    assert first(found, "mip6") == found[0]
    assert first(found, "sigma") is None


def test_a_percentile_is_a_value_that_so_many_do_not_exceed() -> None:
    values = [float(n) for n in range(1, 101)]
    assert [ex.percentile(values, p) for p in (1, 50, 95, 99, 100)] == [1.0, 50.0, 95.0, 99.0, 100.0]
    assert ex.percentile([], 50) is None


def test_a_run_of_a_point_draws_when_its_phones_move_from_its_own_seed() -> None:
    assert [point.overrides["seed"] for point in ex.points(quick=True, seeds=2)][:2] == [1, 2]
    most = [point for point in ex.points() if point.phones == max(ex.PHONES)]
    assert [point.scheme for point in most] == list(ex.SCHEMES)
    assert {point.overrides["probes"] for point in most} == {ex.MOST_PROBES}

"""`segue reproduce cmt` from end to end, with one seed and few points."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from segue.papers.cmt import ablation, buffers, remedies
from segue.papers.cmt import experiment as ex
from segue.papers.cmt.model import Scheme
from segue.papers.cmt.reproduce import reproduce
from segue.papers.common import Reproduction
from segue.running import run

IDS = [f"C{n}" for n in range(1, 8)]
FIGURES = ("figure-05", "figure-06", "figure-07", "figure-ideal", "figure-queues", "figure-beyond")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reproduction]:
    """A report of few points."""
    out = tmp_path_factory.mktemp("report")
    patch = pytest.MonkeyPatch()
    patch.setattr(ex, "QUICK_RATIOS", (1, 4))
    patch.setattr(ex, "QUICK_BUFFERS_KIB", (256, 2048))
    patch.setattr(ex, "QUICK_DWELLS_S", (10, 40))
    try:
        return out, reproduce(out, quick=True, seeds=1)
    finally:
        patch.undo()


def test_every_claim_is_judged(done: tuple[Path, Reproduction]) -> None:
    out, result = done
    claims = json.loads((out / "claims.json").read_text())
    assert [claim["id"] for claim in claims] == IDS
    assert all(claim["measured"] and claim["criterion"] for claim in claims)
    verdicts = {claim.id: claim.holds for claim in result.claims}
    assert verdicts["C2"], "the order of the schemes is far from any threshold"


def test_the_table_of_starts_has_every_one_of_them(done: tuple[Path, Reproduction]) -> None:
    out, _ = done
    runs = pl.read_csv(out / "tables" / "runs-transfers.csv")
    counted = runs.filter(pl.col("variant").is_in(list(ex.STARTS))).group_by("variant").len()
    assert dict(counted.iter_rows()) == dict.fromkeys(ex.STARTS, 2 * 2)
    report = (out / "report.html").read_text()
    assert all(name in report for name in ex.STARTS)


def test_slow_start_idles_less_where_single_packets_are_acknowledged() -> None:
    for ratio in ex.RATIOS:
        delayed, first, quick = (ex.slow_start_idle_s(ratio, n) for n in (0, 1, ex.QUICK_SACKS))
        assert delayed >= first >= quick >= ex.quicker_start_idle_s(ratio) > ex.FAST_DELAY_S, ratio


def test_figures_are_there_in_both_forms(done: tuple[Path, Reproduction]) -> None:
    out, _ = done
    for name in FIGURES:
        assert (out / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (out / "figures" / f"{name}.svg").read_bytes()[:2000]
        assert (out / "tables" / f"{name}.csv").stat().st_size > 100


@pytest.mark.parametrize("name", FIGURES[1:])
def test_figures_of_one_seed_say_that_there_are_no_intervals(done: tuple[Path, Reproduction], name: str) -> None:
    svg = (done[0] / "figures" / f"{name}.svg").read_text()
    assert "<!-- One seed a point: there are no intervals. -->" in svg


def test_the_tables_have_a_row_for_every_run(done: tuple[Path, Reproduction]) -> None:
    out, result = done
    frames = [pl.read_csv(out / "tables" / f"runs-{name}.csv") for name in ("transfers", "ablation", "remedies")]
    assert result.runs == sum(frame.height for frame in frames) + len(ex.SCHEMES)
    assert all((frame["transfer_time_s"] > 0).all() for frame in frames)
    curve = pl.read_csv(out / "tables" / "figure-05.csv")
    arrived = curve.group_by("scheme").agg(pl.col("segments").max())
    # every segment of the file arrives under every scheme: 8 MB in chunks of 1452 bytes
    assert set(arrived["segments"]) == {5510}


def test_the_simulator_has_the_same_theory_as_the_equations() -> None:
    for scheme in Scheme:
        point = ex.Point(scheme, bw_ratio=6, t_dwell_s=10)
        document = json.loads(run(ex.SCENARIO, point.settings(3), seed=3, trace=False).metrics_json)
        # the handshake takes a little less than the scenario allows for, and each ms of it counts once for each network
        assert document["theory_s"] == pytest.approx(point.theory_s(3), abs=0.005 * point.bw_ratio)
        assert document["transfer_time_s"] > 0.95 * point.theory_s(3)


def test_the_smallest_buffer_is_one_from_which_on_all_are_enough() -> None:
    assert buffers.smallest([(16, True), (32, False), (64, True)]) == 64
    assert buffers.smallest([(16, True), (32, True)]) == 16
    assert buffers.smallest([(16, True), (32, False)]) == float("inf")


def test_how_far_a_buffer_carries_ends_at_the_first_ratio_that_it_does_not() -> None:
    seeds, ratios = range(1, 7), (1, 2, 3, 4)
    best = pl.DataFrame([{"bw_ratio": r, "seed": s, "transfer_time_s": 10.0} for r in ratios for s in seeds])
    # 2 saves on all seeds, 3 on most, 4 on all again
    times: dict[int, list[float]] = {1: [9.0] * 6, 2: [9.9] * 6, 3: [9.0] * 5 + [11.0], 4: [9.0] * 6}
    cmt = pl.DataFrame(
        [{"bw_ratio": r, "seed": s, "transfer_time_s": t} for r in ratios for s, t in zip(seeds, times[r], strict=True)]
    )
    found = remedies.reach("", cmt, best)
    assert (found.low, found.median, found.high) == (2, 4, 4)
    worse = cmt.with_columns(
        pl.when(pl.col("bw_ratio") == 2).then(10.5).otherwise("transfer_time_s").alias("transfer_time_s")
    )
    assert remedies.reach("", worse, best).high == 1


def test_every_mechanism_is_switched_off_alone() -> None:
    for mechanism in ablation.MECHANISMS:
        on, off = (dict(point.settings(1)) for point in mechanism.points())
        key, value = mechanism.off
        assert off == on | {key: value}

"""`segue reproduce scale` from end to end, with ten phones, and what it makes of loads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import polars as pl
import pytest
from matplotlib.text import Annotation

from segue.papers.common import Reproduction
from segue.papers.scale import experiment as ex
from segue.papers.scale import figures
from segue.papers.scale import reproduce as scale
from segue.papers.scale.saturation import Saturation, first, saturations
from segue.runner import Runner
from segue.running import Kept, Progress, Run
from synthetic import FakeNative, handover, metrics

if TYPE_CHECKING:
    from segue import _native
    from segue._native import Job


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
    # with twenty at most none is full
    assert all(row[-1].endswith(" hosts *") for row in result.summary.rows)
    assert result.summary.note.endswith("it was not full with 20, the most that were run.")
    assert report.count(result.summary.note) == 2
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
    assert not found[0].is_extrapolated
    assert scale.resources(found).note == ""
    more = saturations(loads.filter(pl.col("phones") < 1000))
    assert (more[0].phones, more[0].is_extrapolated) == (500.0, True)
    assert scale.resources(more).rows[0][5] == "500 hosts *"


def test_a_percentile_is_a_value_that_so_many_do_not_exceed() -> None:
    values = [float(n) for n in range(1, 101)]
    assert [ex.percentile(values, p) for p in (1, 50, 95, 99, 100)] == [1.0, 50.0, 95.0, 99.0, 100.0]
    assert ex.percentile([], 50) is None


def test_a_run_of_a_point_draws_when_its_phones_move_from_its_own_seed() -> None:
    assert [point.overrides["seed"] for point in ex.points(quick=True, seeds=2)][:2] == [1, 2]
    most = [point for point in ex.points() if point.phones == max(ex.PHONES)]
    assert [point.scheme for point in most] == list(ex.SCHEMES)
    assert {point.overrides["probes"] for point in most} == {ex.MOST_PROBES}


class Given(Runner):
    """Has one run for every job."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run

    def keep(self, jobs: Iterable[Job], keep: Callable[[Run], Kept], *, progress: Progress | None = None) -> list[Kept]:
        del progress
        return [keep(self._run) for _ in jobs]


@pytest.mark.parametrize(
    ("silent_s", "median", "p95", "arrows"),
    [
        (None, "10.000 s", "19.000 s", 0),
        # the longest of all may be longer, and no more than one in twenty is
        (20, "10.000 s", "19.000 s", 0),
        (15, "10.000 s", "≥ 19.000 s", 1),
        (4, "≥ 10.000 s", "≥ 19.000 s", 2),
    ],
)
def test_a_percentile_is_a_lower_bound_where_a_silence_to_the_end_is_no_longer(
    silent_s: int | None, median: str, p95: str, arrows: int
) -> None:
    """Handovers that interrupt for 1 to 20 s; after one of them, data never came back."""
    handovers = [
        handover(20.0, changes={"host": "phone10", "interruption_s": float(n), "censored": n == silent_s})
        for n in range(1, 21)
    ]
    given = Given(Run(cast("_native.Run", FakeNative(metrics(handovers=handovers)))))
    results = ex.run([ex.Point("sigma", 100, 1)], runner=given)
    drawn = next(figures.draw(results))
    assert drawn.table is not None
    for row in (results.runs.row(0, named=True), drawn.table.row(0, named=True)):
        assert (row["p50_s"], row["p50_censored"]) == (10.0, median.startswith("≥"))
        assert (row["p95_s"], row["p95_censored"]) == (19.0, p95.startswith("≥"))
        assert (row["max_s"], row["max_censored"]) == (20.0, silent_s is not None)
    assert scale.summarise(results, []).rows[0][2:4] == [median, p95]
    assert sum(isinstance(text, Annotation) for axes in drawn.figure.axes for text in axes.texts) == arrows
    assert ("lower bounds" in drawn.figure.texts[1].get_text()) == bool(arrows)


def test_a_mean_over_runs_is_a_lower_bound_if_that_of_any_run_is() -> None:
    rows = pl.DataFrame(
        {"scheme": "sigma", "phones": 10, "p50_s": [1.0, 2.0, None], "p50_censored": [False, True, None]}
    )
    assert figures.of_points(rows, ["p50_s", "p50_censored"]).rows() == [("sigma", 10, 1.5, True)]
    assert figures.of_points(rows[::2], ["p50_s", "p50_censored"]).rows() == [("sigma", 10, 1.0, False)]

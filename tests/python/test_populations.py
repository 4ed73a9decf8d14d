"""Populations in the metrics, the terminal and the report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import segue
from pages import report_table, terminal_table
from segue import Metrics
from segue.cli.tables import print_run
from segue.figures.population import by_population
from segue.report.run import write_run_report
from segue.summary import percent_text, time_text

SHORT = {"thirds": 4, "duration": "40 s", "host.1.population": '"third {i % 3}"'}


@pytest.fixture(scope="module")
def run() -> segue.Run:
    return segue.run("walkers", SHORT)


def test_populations_are_dataclasses_whose_values_are_those_of_the_tables(run: segue.Run) -> None:
    metrics = run.metrics
    thirds, [everybody] = metrics.populations[:3], metrics.populations[3:]
    assert [one.name for one in metrics.populations] == ["third 0", "third 1", "third 2", "mobile hosts"]
    assert sum(one.hosts for one in thirds) == everybody.hosts == 12
    own = sorted(row.interruption_s for row in metrics.handovers if row.interruption_s is not None)
    outages = [outage.duration_s for flow in metrics.flows for outage in flow.outages]
    assert everybody.interruption_s is not None
    assert everybody.interruption_s.count == len(own) + len(outages) > 0
    assert everybody.interruption_s.max == max([*own, *outages])
    values, shares = zip(*everybody.interruption_s.cdf, strict=True)
    assert list(values) == sorted({*own, *outages})
    assert shares[-1] == 1.0
    assert everybody.goodput_bps is not None
    rates = [host.throughput_bps for host in metrics.hosts if host.host.startswith("walker")]
    assert everybody.goodput_bps.mean == pytest.approx(sum(rates) / 12)
    assert everybody.fairness == pytest.approx(sum(rates) ** 2 / (12 * sum(rate**2 for rate in rates)))


def test_a_document_without_populations_is_read_as_before(run: segue.Run) -> None:
    document = json.loads(run.metrics_json)
    del document["populations"]
    assert Metrics.from_json(json.dumps(document)).populations == ()


def test_the_terminal_and_the_report_begin_with_populations_and_leave_most_else_out(
    run: segue.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    print_run(run)
    told = capsys.readouterr().out
    shown = terminal_table(told, "Populations")
    text = write_run_report(run, tmp_path / "run.html").read_text()
    assert shown == report_table(text, "Populations")
    assert told.index("Populations") < told.index("throughput") < told.index("Flows")
    assert text.index('">Populations</h2>') < text.index('">Summary</h2>')
    for row, one in zip(shown, run.metrics.populations, strict=True):
        assert row["population"] == one.name
        assert row["handovers"] == str(one.handovers)
        gaps = one.interruption_s
        worst = "" if gaps is None else time_text(gaps.max, censored=gaps.is_bound(gaps.max))
        assert row["worst"] == worst
        assert one.without_path_share is not None
        assert row["without a path"] == percent_text(one.without_path_share.mean)
    assert len(terminal_table(told, "Flows")) == 3
    assert "and 9 more flows" in told
    # All columns are not for everybody: what matters most stays.
    monkeypatch.setenv("COLUMNS", "80")
    print_run(run)
    narrow = terminal_table(capsys.readouterr().out, "Populations")
    assert [row["95 %"] for row in narrow] == [row["95 %"] for row in shown]


def test_a_figure_has_a_curve_per_population_and_marks_lower_bounds(run: segue.Run) -> None:
    document = json.loads(run.metrics_json)
    everybody = document["populations"][3]["interruption_s"]
    [worst, _] = everybody["cdf"][-1]
    everybody |= {"censored": 1, "bound_from": worst}
    metrics = Metrics.from_json(json.dumps(document))
    figure = by_population(metrics, title="t", subtitle="s")
    [interruptions, goodput] = figure.axes
    [legend] = figure.legends
    named = [text.get_text().partition(":")[0] for text in legend.get_texts()]
    assert named == [*(one.name for one in metrics.populations), "lower bound"]
    for axes, unit, spreads in (
        (interruptions, 1.0, [one.interruption_s for one in metrics.populations]),
        (goodput, 1e6, [one.goodput_bps for one in metrics.populations]),
    ):
        drawn = [np.asarray(line.get_xydata(), dtype=float) for line in axes.lines if line.get_linestyle() != "None"]
        curves = [points for points in drawn if len(points)]
        known = [spread for spread in spreads if spread is not None]
        assert len(curves) == len(known) > 0
        for points, spread in zip(curves, known, strict=True):
            assert points[1:] == pytest.approx(np.array([(value / unit, share) for value, share in spread.cdf]))
    marked = [np.asarray(line.get_xdata(), float) for line in interruptions.lines if line.get_linestyle() == "None"]
    assert [list(times) for times in marked if len(times)] == [pytest.approx([worst])]


def test_what_no_population_has_is_left_out_of_the_figure() -> None:
    quiet = segue.run("hall", {"phones": 3, "duration": "4 s"}, trace=False)
    figure = by_population(quiet.metrics, title="t", subtitle="s")
    assert [axes.get_xlabel() for axes in figure.axes] == ["goodput of a host (Mbit/s)"]

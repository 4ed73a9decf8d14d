"""Populations in the metrics, the terminal and the report."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import segue
from pages import report_table, terminal_table
from segue import Metrics
from segue.cli.tables import print_run
from segue.figures.population import interruptions_by_population
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
    [axes] = interruptions_by_population(metrics, title="t", subtitle="s").axes
    curves = {re.split("[:,]", str(line.get_label()))[0]: line for line in axes.lines}
    with_gaps = [one for one in metrics.populations if one.interruption_s is not None]
    assert set(curves) == {one.name for one in with_gaps} | {"lower bound"}
    for one in with_gaps:
        assert one.interruption_s is not None
        x, y = (np.asarray(axis, dtype=float) for axis in curves[one.name].get_data())
        assert list(zip(x, y, strict=True))[1:] == list(one.interruption_s.cdf)
    assert curves["lower bound"].get_xdata() == pytest.approx([worst])

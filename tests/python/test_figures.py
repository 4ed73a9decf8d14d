from __future__ import annotations

import io
import re
from pathlib import Path

import matplotlib.image
import numpy as np
import polars as pl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import segue as package
import synthetic
from segue.figures import ladder
from segue.figures.flow import main_trace
from segue.figures.groups import Layout, bars
from segue.figures.style import render
from segue.papers.claims import Claim
from segue.papers.common import Drawn
from segue.papers.sigma import experiment as ex
from segue.papers.sigma import figures
from segue.report.html import claims_section, figure_section, page, table_section, text_section
from segue.report.run import network_figures, write_run_report

RUNS = {"none": synthetic.seamless(), "low": synthetic.seamless(switch_s=8.16), "high": synthetic.stalled()}
FRAMES = {
    ex.LATENCY: synthetic.latency_frame(),
    ex.SPEED: synthetic.speed_frame(),
    ex.POLICY: synthetic.policy_frame(),
    ex.POLICY_SPEED: synthetic.policy_speed_frame(),
}


def drawn() -> list[Drawn]:
    return [*figures.trace_figures(RUNS), *figures.grid_figures(FRAMES)]


def test_figures_4_to_15_are_all_there() -> None:
    names = [one.name for one in drawn()]
    assert sorted(names) == [*(f"figure-{n:02}" for n in range(4, 16)), "figure-policy", "figure-policy-speed"]


@pytest.mark.parametrize("one", drawn(), ids=lambda one: one.name)
def test_texts_lie_within_the_figure_and_legends_touch_no_axes(one: Drawn) -> None:
    rendered = render(one.figure)
    picture = matplotlib.image.imread(io.BytesIO(rendered.png))
    assert picture.shape[0] > 300
    assert rendered.svg.startswith(b"<?xml")
    width, height = one.figure.canvas.get_width_height()
    renderer = FigureCanvasAgg(one.figure).get_renderer()  # type: ignore[no-untyped-call]
    for text in one.figure.texts:
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0, text.get_text()
        assert box.x1 <= width, text.get_text()
    for legend in one.figure.legends:
        box = legend.get_window_extent(renderer)
        assert box.x0 >= 0
        assert box.x1 <= width
        assert box.y0 >= 0
        for axes in one.figure.axes:
            around = axes.get_tightbbox(renderer)
            assert around is not None
            assert box.y1 <= around.y0 + 1
    assert height > 0


def test_same_figure_gives_the_same_bytes() -> None:
    first, second = (render(next(figures.grid_figures(FRAMES)).figure) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        (1, "One seed a point: there are no intervals."),
        (2, "Medians over 2 seeds; order-statistic intervals, which hold them with 50 % at least."),
        (5, "Medians over 5 seeds; order-statistic intervals, which hold them with 93.7 % at least."),
    ],
)
def test_figures_say_how_well_their_intervals_hold_medians(seeds: int, said: str) -> None:
    few = {name: frame.filter(pl.col("seed") < seeds) for name, frame in FRAMES.items()}
    for one in figures.grid_figures(few):
        # those of policies have three seeds at most
        if seeds < 5 or "policy" not in one.name:
            assert one.figure.texts[1].get_text().splitlines()[-1] == said, one.name
    frame = pl.DataFrame([{"value": float(n), "where": place, "of": "a"} for n in range(seeds) for place in "xy"])
    layout = Layout("value", "where", {"x": "x", "y": "y"}, "of", {"a": "a"})
    figure = bars(frame, layout, title="t", subtitle="s", y_label="y")
    assert figure.texts[1].get_text() == f"s\n{said}"


def test_axes_are_the_papers() -> None:
    labels = {one.name: [axes.get_xlabel() for axes in one.figure.axes] for one in drawn()}
    assert labels["figure-08"] == ["time (s)"]
    assert labels["figure-12"] == ["L2 handover latency (ms)"]
    assert labels["figure-14"] == ["moving speed (m/s)"]
    curves = {one.name: [text.get_text() for text in one.figure.legends[0].get_texts()] for one in drawn()}
    assert curves["figure-14"] == [f"L2 beacon period {n} ms" for n in (20, 40, 60, 80)]
    assert curves["figure-12"] == [f"address resolution {n} ms" for n in (300, 400, 500, 600)]


def test_segments_are_shown_modulo_100_over_the_wrap_of_the_tsn() -> None:
    [sequence, *_] = figures.trace_figures({**RUNS, "low": synthetic.TraceBuilder().run()})
    for line in sequence.figure.axes[0].lines:
        values = [float(value) for value in np.asarray(line.get_ydata())]
        if len(values) > 2:
            assert 0 <= min(values) <= max(values) < 100


def test_switch_is_dated_by_its_first_segment_even_if_that_was_sent_again() -> None:
    run = RUNS["high"]
    trace = main_trace(run)
    assert trace is not None
    [switch] = trace.switches
    assert switch.first_new_s == pytest.approx(10.0)
    assert (switch.old, switch.new) == (synthetic.OLD, synthetic.NEW)


def test_run_report_is_one_file_that_asks_for_nothing_else(tmp_path: Path) -> None:
    path = write_run_report(RUNS["none"], tmp_path / "run.html")
    text = path.read_text()
    assert re.findall(r'(?:src|href)="(?!data:|#)', text) == []
    assert "<script" not in text
    assert "@import" not in text
    assert "url(" not in text.replace("url(#", "")
    for heading in ("Signalling", "TSN against time", "Congestion windows", "Position against the cells"):
        assert heading in text


def test_networks_that_come_by_the_clock_are_shown_against_time_and_not_against_places() -> None:
    times = {"lan": [], "wlan": [0.0, 35.0, 50.0, 80.0], "gprs": [20.0, 80.0]}
    cells = pl.DataFrame(
        {
            "name": list(times),
            "x_m": [0.0] * 3,
            "y_m": [0.0] * 3,
            "radius_m": [100.0] * 3,
            "present_s": pl.Series(list(times.values()), dtype=pl.List(pl.Float64)),
        }
    )
    [(title, figure)] = network_figures(cells, pl.DataFrame({"x_m": [0.0]}), [])
    [axes] = figure.axes
    assert title == "Networks in reach"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["wlan", "gprs"]
    spans = [[path.get_extents().intervalx.tolist() for path in bars.get_paths()] for bars in axes.collections]
    assert spans == [[[0.0, 35.0], [50.0, 80.0]], [[20.0, 80.0]]]


def test_report_of_a_run_without_data_shows_the_network_alone(tmp_path: Path) -> None:
    path = write_run_report(synthetic.TraceBuilder().run(), tmp_path / "run.html")
    assert re.findall(r'<img alt="([^"]*)"', path.read_text()) == ["Position against the cells"]


def test_texts_from_scenarios_are_escaped() -> None:
    claim = Claim("S1", "<b>a</b>", "p & q", '"m"', False, "<script>")
    html = page(
        "<t>",
        "<l>",
        [claims_section([claim]), text_section("<h>", "<pre>"), table_section("x", ["<c>"], [["<v>"]])],
    )
    assert not re.search(r"<(b|script|t|l|h|c|v)>", html)
    assert "does not hold" in html
    assert "0 of 1 hold" in html


def test_a_large_figure_goes_into_the_page_as_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered = render(next(figures.grid_figures(FRAMES)).figure)
    assert "image/svg+xml" in figure_section("Fig. 10. X", rendered).body
    monkeypatch.setattr("segue.report.html.SVG_LIMIT_BYTES", 10)
    assert "image/png" in figure_section("Fig. 10. X", rendered).body


def test_a_message_to_the_peer_of_another_association_arrives_there() -> None:
    run = package.run("phones", {"phones": 2, "duration": "25 s"})
    trace = main_trace(run)
    assert trace is not None
    steps = ladder.steps_between(*ladder.of_hosts(run, trace), 0.0, 25.0)
    added = [step for step in steps if step.text.startswith("ASCONF-ADD") and step.node == trace.mover]
    assert {step.to for step in added} == {"sink", "source"}

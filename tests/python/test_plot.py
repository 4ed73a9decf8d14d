"""`segue.plot`: axes in, axes out."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import segue
import synthetic
from segue.figures.arrivals import PathBins, Row, draw_paths, joined
from segue.figures.ladder import Step, shown

OF_A_RUN = ("throughput", "segments", "paths", "gaps", "windows", "handover", "signalling", "cells", "interruptions",
            "throughputs", "flows")  # fmt: skip
OF_CAPTURES = ("throughput", "segments", "paths", "gaps")


@pytest.fixture(autouse=True)
def pyplot() -> Iterator[None]:
    """Figures of pyplot's are there until somebody closes them."""
    mpl.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def run() -> segue.Run:
    return segue.run("sigma", {"duration": "40 s"}, seed=1, pcap=True)


@pytest.fixture(scope="module")
def analysis(run: segue.Run) -> segue.Analysis:
    return segue.analyze(*run.captures(), series=True)


def drawing(name: str) -> Callable[..., Axes]:
    function: Callable[..., Axes] = getattr(segue.plot, name)
    return function


def drawn(axes: Axes) -> int:
    return len(axes.lines) + len(axes.patches) + len(axes.collections) + len(axes.texts)


def labels(axes: Axes) -> list[str]:
    return axes.get_legend_handles_labels()[1]


def on_axes_of_ones_own(draw: Callable[..., Axes], *given: Any) -> Axes:
    figure = Figure()
    _, axes = figure.subplots(2)
    assert draw(*given, ax=axes) is axes
    assert [one for one in figure.axes if drawn(one) and one is not axes and one.get_label() != "<colorbar>"] == []
    figure.draw_without_rendering()
    assert figure.legends == []
    return axes


@pytest.mark.parametrize("name", OF_A_RUN)
def test_a_run_is_drawn_on_axes_that_are_given_or_on_new_ones(run: segue.Run, name: str) -> None:
    import matplotlib.pyplot as plt

    axes = on_axes_of_ones_own(drawing(name), run)
    made = drawing(name)(run)
    assert plt.gcf() is made.figure
    assert drawn(made) == drawn(axes) > 0
    assert labels(made) == labels(axes)
    assert made.get_xlabel() == axes.get_xlabel()


@pytest.mark.parametrize("name", OF_CAPTURES)
def test_captures_are_drawn_as_runs_are(run: segue.Run, analysis: segue.Analysis, name: str) -> None:
    axes = on_axes_of_ones_own(drawing(name), analysis)
    assert axes.get_xlabel() == drawing(name)(run).get_xlabel() == "time (s)"


def test_what_is_public_is_drawn_here() -> None:
    assert set(segue.plot.__all__) == {*OF_A_RUN, *OF_CAPTURES, "populations", "sweep", "comparison"}


def test_the_legend_is_left_to_the_caller_if_asked(run: segue.Run) -> None:
    [axes] = Figure().subplots(1, squeeze=False).flat
    segue.plot.windows(run, ax=axes, legend=False)
    assert axes.get_legend() is None
    assert all(label.startswith("path ") for label in labels(axes))
    segue.plot.windows(run, ax=axes)
    assert axes.get_legend() is not None


def test_throughput_is_what_arrived_by_path(run: segue.Run) -> None:
    packets = run.packets
    arrived = packets.filter((packets["kind"] == "DATA") & (packets["action"] == "received"))
    axes = segue.plot.throughput(run, bin_s=0.5)
    patches: list[Any] = list(axes.patches)
    steps = [patch.get_data() for patch in patches]
    tops, bases = (np.asarray([getattr(one, name) for one in steps]) for name in ("values", "baseline"))
    bits = ((tops - bases) * 0.5 * 1e6).sum()
    assert bits == pytest.approx(8 * arrived["length_bytes"].sum())
    assert np.diff(steps[0].edges) == pytest.approx(0.5)
    assert len(patches) == len(set(arrived["destination"]))


def test_bins_hold_so_many_packets_that_one_more_is_no_tooth() -> None:
    """A packet each 8 ms: 12 or 13 of them come in 100 ms."""
    arrived = [number * 0.008 for number in range(7500)]
    sizes = Counter(int(at / 0.1) for at in arrived)
    fine = PathBins("a", [n * 0.1 for n in sizes], [1000 * count for count in sizes.values()], 0.1)
    assert set(fine.sizes_bytes) == {12_000, 13_000}
    [wide] = joined([fine], 1000)
    assert wide.width_s == pytest.approx(0.5)
    assert set(wide.sizes_bytes) == {62_000, 63_000}
    assert sum(wide.sizes_bytes) == sum(fine.sizes_bytes)
    # what is not apart stays as it is, and so does what would be a few bins
    assert joined([fine], 10) == [fine]
    short = PathBins("a", fine.times_s[:50], fine.sizes_bytes[:50], 0.1)
    assert joined([short], 1000) == [short]
    # paths are joined alike, whatever each has
    both = joined([fine, PathBins("b", [3.3], [1000], 0.1)], 1000)
    assert (both[0].width_s, both[1].width_s, both[1].times_s) == (0.5, 0.5, [3.0])


def test_white_within_a_path_is_silence_and_not_the_distance_of_its_packets() -> None:
    """A packet each 0.9 s, and none for 4.5 s."""
    begins = [9 * number * 0.1 for number in range(20) if not 10 <= number < 14]
    slow = PathBins("a", begins, [1000] * len(begins), 0.1)
    assert np.asarray(slow.spans()) == pytest.approx(np.array([(0.0, 8.2), (12.6, 4.6)]))
    # of one that is full, nothing is joined that is apart
    full = PathBins("a", [0.0, 0.1, 0.2, 0.5, 0.6], [1] * 5, 0.1)
    assert np.asarray(full.spans()) == pytest.approx(np.array([(0.0, 0.3), (0.5, 0.2)]))
    assert PathBins("a", [3.0], [1], 0.1).spans() == [(3.0, 0.1)]
    assert PathBins("a", [], [], 0.1).spans() == []


def test_paths_that_are_used_at_once_lie_below_each_other() -> None:
    def heights(second: float) -> set[float]:
        [axes] = Figure().subplots(1, squeeze=False).flat
        bins = [PathBins(name, [at, at + 0.1], [1, 1], 0.1) for name, at in (("a", 0.0), ("b", second))]
        draw_paths(axes, [Row("flow", bins)], 1.0)
        return {round(float(np.ptp(bar.get_paths()[0].vertices[:, 1])), 3) for bar in axes.collections}

    assert heights(0.2) == {0.64}
    assert heights(0.1) == {0.32}


def test_marks_and_legends_stay_within_their_axes(analysis: segue.Analysis) -> None:
    figure = Figure(figsize=(12, 8), layout="constrained")
    for axes, name in zip(figure.subplots(2, 2).flat, OF_CAPTURES, strict=True):
        drawing(name)(analysis, ax=axes)
    figure.draw_without_rendering()
    for axes in figure.axes:
        inside = axes.get_window_extent()
        assert inside.width > 0.35 * figure.bbox.width
        legend = axes.get_legend()
        assert legend is not None
        assert legend.get_window_extent().x1 < inside.x1 + 0.05 * inside.width
        for text in axes.texts:
            assert text.get_window_extent().x1 <= inside.x1 + 1


def test_paths_have_a_legend_of_what_is_there(run: segue.Run, analysis: segue.Analysis) -> None:
    for source in (run, analysis):
        axes = on_axes_of_ones_own(segue.plot.paths, source)
        assert labels(axes)[-1] == "handover"
        assert len(labels(axes)) == 3
    named = {f"over {address}" for address in run.packets.filter(kind="DATA", action="received")["destination"]}
    assert set(labels(segue.plot.paths(run))[:-1]) == named
    # a colour that is another path in each row is named by its place
    several = segue.run("templates/population", {"duration": "20 s", "phones": "3"})
    assert labels(segue.plot.paths(several))[0] == "first path"
    assert segue.plot.paths(run, legend=False).get_legend() is None


def test_signalling_of_a_long_interruption_is_shown_from_its_beginning() -> None:
    """The cable comes back before the old network is left: 20 s without data."""
    run = segue.run("templates/vertical")
    worst = max(run.metrics.handovers, key=lambda row: row.interruption_s or 0)
    assert worst.interruption_s is not None
    assert worst.interruption_s > 10
    axes = segue.plot.signalling(run)
    texts = [text.get_text() for text in axes.texts]
    times = [float(text.removesuffix(" s")) for text in texts if re.fullmatch(r"\d+\.\d{4} s", text)]
    assert min(times) < worst.time_s - worst.interruption_s + 1
    told = {"BU", "BA", "HoTI", "CoTI"} & {text.partition(" ")[0] for text in texts}
    assert told
    assert max(times) >= worst.time_s


def test_of_much_signalling_that_is_the_same_the_first_and_the_last_are_shown() -> None:
    def step(at: float, text: str) -> Step:
        return Step(at, "mh", None, False, 0, f"{text} ({at:.1f} ms)")

    few = [step(n, "RA from a") for n in range(60)]
    assert shown(few) == few
    many = [step(0.0, "BU from b"), *(step(n, "RA from a") for n in range(1, 100)), step(100.0, "BA from c")]
    rows = shown(many)
    assert [row.time_s for row in rows] == [0, 1, 99, 100]
    assert rows[1].text == "RA from a (1.0 ms), and 97 more until 99.0000 s"


def test_gaps_are_the_times_between_arrivals() -> None:
    made = synthetic.stalled()
    axes = segue.plot.gaps(made)
    gaps = np.asarray(axes.lines[0].get_ydata())
    packets = made.packets
    times = packets.filter((packets["kind"] == "DATA") & (packets["action"] == "received"))["time_ns"].sort()
    assert gaps.max() == pytest.approx(times.diff().max() / 1e6)  # type: ignore[operator]
    assert len(gaps) == len(times) - 1


def test_gaps_of_many_arrivals_are_the_longest_of_so_many_in_a_row() -> None:
    """Captures of more arrivals than are kept for a figure: no gap is shorter or longer than it was."""
    run = segue.run("sigma", {"duration": "120 s"}, pcap=True)
    analysis = segue.analyze(*run.captures(), series=True)
    all_of_them = np.asarray(segue.plot.gaps(run).lines[0].get_ydata())
    axes = segue.plot.gaps(analysis)
    some = np.asarray(axes.lines[0].get_ydata())
    [each] = analysis.gaps["arrivals"].unique()
    assert len(some) == -(-len(all_of_them) // each) < len(all_of_them)
    assert axes.get_ylabel() == f"longest of {each} gaps between arrivals (ms)"
    expected = [all_of_them[at : at + each].max() for at in range(0, len(all_of_them), each)]
    assert some == pytest.approx(expected, abs=1e-3)


def test_cells_by_the_clock_are_drawn_against_time() -> None:
    run = segue.run("templates/vertical")
    axes = segue.plot.cells(run)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["cable", "gprs"]
    assert axes.get_xlabel() == "time (s)"


def test_populations_are_drawn_by_quantity() -> None:
    run = segue.run("templates/population", {"duration": "20 s"}, trace=False)
    axes = on_axes_of_ones_own(segue.plot.populations, run, "goodput")
    assert axes.get_xlabel() == "goodput of a host (Mbit/s)"
    assert labels(axes)[0].startswith("phone{i}: 40 hosts")
    with pytest.raises(ValueError, match="loss: expected one of interruption, goodput"):
        segue.plot.populations(run, "loss")  # type: ignore[arg-type]


def test_a_sweep_is_drawn_as_its_figure_has_it() -> None:
    found = segue.sweep("scale", {"scheme": ["mip6", "sigma"]}, {"phones": 10, "probes": 1}, seeds=2)
    axes = on_axes_of_ones_own(segue.plot.sweep, found, "throughput")
    [same] = found.figure("throughput").axes
    assert axes.get_ylabel() == same.get_ylabel()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["mip6", "sigma"]
    assert np.asarray(axes.lines[0].get_ydata()).tolist() == np.asarray(same.lines[0].get_ydata()).tolist()


def test_runs_and_captures_are_compared_by_name(run: segue.Run, analysis: segue.Analysis) -> None:
    axes = on_axes_of_ones_own(segue.plot.comparison, {"one": run, "both": [run, analysis]})
    count = run.handovers.height
    assert labels(axes) == [f"one ({count})", f"both ({count + analysis.handovers.height})"]


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("windows", {"flow": 7}, "no flow 7 with data: expected one of 0"),
        ("handover", {"number": 99}, r"no handover 99 of flow 0: expected one from 0 to \d"),
        ("signalling", {"flow": 3}, "no flow 3 with data"),
    ],
)
def test_what_is_not_there_is_said(run: segue.Run, name: str, given: dict[str, int], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        drawing(name)(run, **given)


def test_a_flow_that_captures_have_not_is_said(analysis: segue.Analysis) -> None:
    with pytest.raises(ValueError, match="no flow 9 with data in the captures"):
        segue.plot.gaps(analysis, flow=9)


def test_importing_segue_imports_no_figures() -> None:
    code = "import segue, sys; print(sorted({'matplotlib', 'polars', 'segue.plot'} & set(sys.modules))); segue.plot"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_the_example_runs_as_it_stands_there(tmp_path: Path) -> None:
    [example] = re.findall(r"\n\n((?: {4}.*\n|\n)+)", segue.plot.__doc__ or "")
    code = re.sub("^    ", "", example, flags=re.MULTILINE)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env={"MPLBACKEND": "Agg", "PATH": ""})
    assert (tmp_path / "sigma.png").stat().st_size > 10_000


@pytest.mark.parametrize("bin_s", [1e-12, 0.0, -1.0, float("nan"), 1e-300])
@pytest.mark.parametrize("name", ["throughput", "paths"])
def test_bins_that_nobody_could_see_are_refused(run: segue.Run, name: str, bin_s: float) -> None:
    with pytest.raises(ValueError, match=r"bin_s: .*expected"):
        drawing(name)(run, bin_s=bin_s)


@pytest.mark.parametrize("name", [*(name for name in OF_A_RUN if name not in OF_CAPTURES), "populations"])
def test_figures_of_a_run_refuse_captures(analysis: segue.Analysis, name: str) -> None:
    with pytest.raises(TypeError, match="Analysis: expected a run"):
        drawing(name)(analysis)

"""`segue compare`: schemes, settings, files and captures beside each other."""

from __future__ import annotations

import csv
import gzip
import io
import random
import re
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

import segue as package
from command import Segue
from segue import ScenarioError
from segue.cli.compare import as_csv, note, print_lines, text_of
from segue.compare import Estimate, Subject, Value, Wanted, compare, difference_of, median_of, table
from segue.figures.distribution import distributions

SHORT = {"duration": "30 s"}


def sample(*values: float, bounds: tuple[int, ...] = ()) -> list[Value]:
    return [Value(value, place in bounds, place) for place, value in enumerate(values)]


def test_differences_of_pairs_are_those_of_each_seed() -> None:
    first, second = sample(1, 2, 3, 4, 5, 6), sample(2, 3, 4, 5, 6, 7)
    found = difference_of(first, list(reversed(second)), is_paired=True)
    assert found == Estimate(1, False, 1, 1, 1 - 2 / 2**6, 6)
    # a seed that only one has says nothing
    assert difference_of(first[:3], second[2:], is_paired=True) == Estimate(1, False, 1, 1, 0.0, 1)
    assert difference_of(first[:1], second[1:], is_paired=True) is None


def test_what_never_came_back_leaves_a_difference_open_on_one_side() -> None:
    plain, bound = sample(1, 2, 3), sample(5, 6, 7, bounds=(2,))
    forth = difference_of(plain, bound, is_paired=True)
    back = difference_of(bound, plain, is_paired=True)
    assert forth is not None
    assert back is not None
    assert (forth.value, forth.is_bound, forth.low, forth.high) == (4, False, 4, inf)
    assert (back.value, back.is_bound, back.low, back.high) == (-4, False, -inf, -4)
    apart = difference_of(plain, sample(5, 6, 7, bounds=(0, 1)), is_paired=False)
    assert apart is not None
    assert (apart.is_bound, apart.low, apart.high) == (True, 2, inf)


def test_a_median_that_is_a_bound_is_said_to_be() -> None:
    found = median_of(sample(1, 2, 9, bounds=(2,)))
    assert found == Estimate(2, False, 1, inf, 0.75, 3)
    found = median_of(sample(1, 8, 9, bounds=(1, 2)))
    assert found is not None
    assert found.is_bound
    assert median_of([]) is None
    assert text_of(found, 1e3) == "≥ 8000 [1000, ∞]"
    assert text_of(Estimate(0.1, False, -0.1, 0.2, 0.95, 9), 1e3, sign="+") == "+100 [-100, +200]"
    # too few for an interval
    assert text_of(median_of(sample(4.0)), 1) == "4"
    assert text_of(None, 1) == "-"


def test_intervals_of_differences_cover() -> None:
    """Of two exponential distributions whose medians differ by one half, 1,000 times."""
    stream, covered, trials = random.Random(5), 0, 1000
    median = 0.6931471805599453
    for _ in range(trials):
        first = sample(*(stream.expovariate(1) for _ in range(12)))
        second = sample(*(0.5 + stream.expovariate(2) for _ in range(20)))
        found = difference_of(first, second, is_paired=False)
        assert found is not None
        assert found.coverage >= 0.95
        covered += found.low <= 0.5 + median / 2 - median <= found.high
    assert covered / trials >= 0.95 - 3 * (0.95 * 0.05 / trials) ** 0.5


def test_schemes_have_the_same_seeds_and_the_values_of_their_runs() -> None:
    wanted = Wanted(("mip6", "ilnp-soft"), "ilnp", {"duration": "40 s"}, (1, 2), ("throughput", "interruption"))
    subjects = compare(wanted)
    lines = table(subjects, wanted.metrics)
    assert [(line.measure.name, line.subject) for line in lines] == [
        (metric, scheme) for metric in wanted.metrics for scheme in wanted.subjects
    ]
    rates = [
        [package.run("ilnp", {"duration": "40 s", "scheme": scheme}, seed=seed, trace=False).metrics.throughput_bps
         for seed in (1, 2)]
        for scheme in wanted.subjects
    ]  # fmt: skip
    assert [[value.value for value in one.runs["throughput"]] for one in subjects] == rates
    differences = [b - a for a, b in zip(*rates, strict=True)]
    assert lines[1].difference is not None
    assert (lines[1].difference.value, lines[0].difference) == (sum(differences) / 2, None)
    assert (lines[1].difference.low, lines[1].difference.high) == (min(differences), max(differences))
    assert "of each seed" in note(lines)
    rows = list(csv.DictReader(io.StringIO(as_csv(lines))))
    assert [row["subject"] for row in rows] == ["mip6", "ilnp-soft"] * 2
    assert float(rows[1]["difference"]) == lines[1].difference.value


def test_of_how_many_pairs_a_difference_is_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Of a subject that has no value with some seeds there are fewer pairs than it, or the first, has values."""
    first, second = sample(1, 2, 3, 4, 5, 6)[:5], sample(1, 2, 3, 4, 5, 6, 7)[2:]
    subjects = [
        Subject(name, False, {"loss": values}, {"lost_packets": values})
        for name, values in zip("ab", (first, second), strict=True)
    ]
    lines = table(subjects, ["loss"])
    rows = list(csv.DictReader(io.StringIO(as_csv(lines))))
    assert [(row["n"], row["difference_n"]) for row in rows] == [("5", ""), ("5", "3")]
    print_lines(lines)
    _, head, *_, last = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert head[-2:] == ["pairs", "unit"]
    assert last[:3] == ["loss", "b", "5"]
    assert last[-1] == "3"
    apart = table([subjects[0], replace(subjects[1], is_capture=True)], ["lost_packets"])
    assert [row["difference_n"] for row in csv.DictReader(io.StringIO(as_csv(apart)))] == ["", ""]
    print_lines(apart)
    assert "pairs" not in capsys.readouterr().out


def test_captures_and_scenarios_are_compared_by_handovers(tmp_path: Path) -> None:
    package.run("sigma", {**SHORT, "l2.latency": "600 ms"}, seed=1, trace=False, pcap=tmp_path)
    capture = str(tmp_path / "mh.pcapng.gz")
    Path(capture).write_bytes(gzip.compress((tmp_path / "mh.pcapng").read_bytes()))
    wanted = Wanted(("l2.latency=100 ms", f"slow={capture}", "sigma"), "sigma", SHORT, (1,))
    subjects = compare(wanted)
    assert [(one.name, one.is_capture) for one in subjects] == [
        ("l2.latency=100 ms", False), ("slow", True), ("sigma", False)
    ]  # fmt: skip
    moved = package.analyze(capture).findings
    gaps = [one.interruption_s for one in moved.handovers]
    assert [value.value for value in subjects[1].handovers["interruption"]][: len(gaps)] == gaps
    lines = table(subjects, ("interruption", "lost_packets"))
    assert {line.measure.each for line in lines} == {"handover"}
    by_name = {(line.measure.name, line.subject): line for line in lines}
    slower = by_name["interruption", "slow"].difference
    assert slower is not None
    assert slower.value > 0.5
    assert by_name["lost_packets", "slow"].estimate is None
    [axes] = distributions({one.name: one.handovers["interruption"] for one in subjects}, "t", "c").axes
    _, labels = axes.get_legend_handles_labels()
    assert labels[1] == f"slow ({len(subjects[1].handovers['interruption'])})"


def test_captures_of_both_ends_are_one_subject_with_its_losses(tmp_path: Path) -> None:
    for name, latency in (("slow, or not", "600 ms"), ("fast", "100 ms")):
        package.run("sigma", {**SHORT, "l2.latency": latency}, seed=1, trace=False, pcap=tmp_path / name)
    ends = {
        name: tuple(str(tmp_path / name / f"{end}.pcapng") for end in ("mh", "cn")) for name in ("slow, or not", "fast")
    }
    # a comma in the name of a file is none between two
    alone = ends["slow, or not"][0]
    pair = ",".join(ends["fast"])
    subjects = compare(Wanted((alone, f"fast={pair}", pair)))
    assert [(one.name, one.is_capture) for one in subjects] == [(alone, True), ("fast", True), (pair, True)]
    assert [len(one.handovers["lost_packets"]) > 0 for one in subjects] == [False, True, True]
    moved = package.analyze(*ends["fast"]).findings.handovers
    assert [one.value for one in subjects[1].handovers["lost_packets"]] == [one.lost_packets for one in moved]


def test_a_pair_of_which_one_is_no_capture_is_said(tmp_path: Path) -> None:
    package.run("sigma", SHORT, seed=1, trace=False, pcap=tmp_path)
    mh = str(tmp_path / "mh.pcapng")
    for ends, said in (
        (f"{mh},gone.pcapng", "gone.pcapng: expected a capture of the other end"),
        (f"{__file__},{mh}", f"{__file__}: expected a capture of the other end"),
        (f"{mh},{mh},{mh}", "3 captures, expected one, or those of both ends: MN,CN"),
    ):
        for name in ("", "home="):
            with pytest.raises(package.ScenarioError, match=re.escape(f"{ends}: {said}")):
                compare(Wanted((f"{name}{ends}", "sigma"), "sigma", SHORT, (1,)))


def test_a_curve_of_what_never_came_back_ends_below_one() -> None:
    [axes] = distributions({"a": sample(1, 2, 3, 9, bounds=(3,)), "b": []}, "t", "c").axes
    assert np.max(axes.lines[0].get_ydata()) == 0.75
    assert axes.get_legend_handles_labels()[1] == ["a (4)", "b (none)"]


@pytest.mark.parametrize(
    ("subjects", "scenario", "words"),
    [
        (("papers/sigma",), None, "at least two"),
        (("papers/sigma", "papers/sigma"), None, "is there twice"),
        (("papers/sigma", "nonsense"), None, "no such file or scenario"),
        (("mip6", "nonsense"), "ilnp", "scheme"),
        (("mip6", "l2.latncy=1 s"), "ilnp", "latncy"),
    ],
)
def test_what_cannot_be_compared_is_one_line(subjects: tuple[str, ...], scenario: str | None, words: str) -> None:
    with pytest.raises(ScenarioError) as error:
        compare(Wanted(subjects, scenario))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("names", [("mip6", "sigma"), ("mip6", "scheme=sigma"), ("l2.latency=1 s", "scheme=sigma")])
def test_folders_and_files_that_are_named_like_schemes_are_not_taken_for_them(
    names: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("mip6", "1 s", "sigma"):
        Path(folder).mkdir()
    if names[1] == "scheme=sigma":
        Path("sigma").rmdir()
        Path("sigma").write_text("notes")
    subjects = compare(Wanted(names, "zigzag", {"duration": "12 s"}, (1,), ("throughput",)))
    rates = [subject.runs["throughput"][0].value for subject in subjects]
    settings = [{"l2.latency": "1 s"} if "l2" in names[0] else {"scheme": "mip6"}, {"scheme": "sigma"}]
    assert rates == [
        package.run("zigzag", {"duration": "12 s", **own}, seed=1, trace=False).metrics.throughput_bps
        for own in settings
    ]


def test_schemes_without_a_scenario_are_no_files_of_the_lab() -> None:
    with pytest.raises(ScenarioError, match=r"^mip6: is a scheme, expected --scenario .* or lab/mip6 for"):
        compare(Wanted(("mip6", "sigma"), None, {}, (1,), ("throughput",)))


def test_the_command_writes_a_table_and_a_figure(segue: Segue, tmp_path: Path) -> None:
    arguments = ("compare", "l2.latency=100 ms", "l2.latency=600 ms", "--scenario", "sigma", "--set", "duration=30 s")
    ran = segue(*arguments, "--seeds", "2", "--metric", "interruption", "--out", "both", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == ["compare.csv", "compare.png", "compare.svg"]
    assert "l2.latency=600 ms" in ran.stdout
    wrong = segue(*arguments, "--metric", "nonsense", "--out", "other", cwd=tmp_path)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert not (tmp_path / "other").exists()

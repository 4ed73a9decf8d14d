"""What is written replaces neither what is read nor what else is written, and that is known before the work begins."""

from __future__ import annotations

from pathlib import Path

import pytest

import segue as package
from command import Segue
from segue.scenarios import load

SHORT = ("--set", "duration=3s")


@pytest.fixture(scope="module")
def capture() -> bytes:
    return package.run("sigma", {"duration": "3s"}, trace=False, pcap=True).captures()[0][1]


def refused(segue: Segue, folder: Path, *arguments: str | Path) -> str:
    """The only line of a command that is refused and leaves the folder as it is."""
    before = {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}
    done = segue(*arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert before == {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}
    return done.stderr


@pytest.mark.parametrize(
    "outputs",
    [
        ("--junit", "x.html", "--report", "x.html"),
        ("--junit", "sub/../x.html", "--report", "x.html"),
        ("--junit", "link.html", "--report", "x.html"),
        ("--csv", "o", "--junit", "o/flows.csv"),
        ("--trace", "o", "--junit", "o/metrics.json"),
        ("--pcap", "o", "--junit", "o/mh.pcapng"),
    ],
    ids="-".join,
)
def test_two_outputs_of_one_name_are_refused(segue: Segue, tmp_path: Path, outputs: tuple[str, ...]) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.html").symlink_to("x.html")
    assert "is written twice" in refused(segue, tmp_path, "run", "sigma", *SHORT, *outputs)


def test_outputs_in_one_folder_under_names_of_their_own_are_written(segue: Segue, tmp_path: Path) -> None:
    outputs = ("--csv", "o", "--trace", "o", "--pcap", "o", "--junit", "o/x.xml")
    for _ in range(2):
        done = segue("run", "sigma", *SHORT, *outputs, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert {"flows.csv", "flows.parquet", "mh.pcapng", "x.xml"} <= {path.name for path in (tmp_path / "o").iterdir()}


@pytest.mark.parametrize(("name", "option"), [("handovers.csv", "--csv"), ("metrics.json", "--trace")])
def test_a_scenario_is_not_replaced_by_its_own_tables(segue: Segue, tmp_path: Path, name: str, option: str) -> None:
    (tmp_path / name).write_text(load("sigma").text)
    assert "is read itself" in refused(segue, tmp_path, "run", name, *SHORT, option, ".")


def test_two_outputs_of_an_analysis_of_one_name_are_refused(segue: Segue, tmp_path: Path, capture: bytes) -> None:
    (tmp_path / "c.pcapng").write_bytes(capture)
    (tmp_path / "a.html").symlink_to("a.csv")
    assert "is written twice" in refused(segue, tmp_path, "analyze", "c.pcapng", "--out", "a.csv", "--report", "a.html")


def test_a_capture_is_not_replaced_by_a_table_of_its_analysis(segue: Segue, tmp_path: Path, capture: bytes) -> None:
    (tmp_path / "flows.parquet").write_bytes(capture)
    assert "is read itself" in refused(segue, tmp_path, "analyze", "flows.parquet", "--out", ".")


@pytest.mark.parametrize(
    ("option", "name"), [("--trace", "packets.parquet"), ("--pcap", "mh.pcapng"), ("--csv", "flows.csv")]
)
def test_a_folder_in_the_place_of_an_output_is_refused_before_the_run(
    segue: Segue, tmp_path: Path, option: str, name: str
) -> None:
    (tmp_path / name).mkdir()
    assert f"{name}: is a directory, expected" in refused(segue, tmp_path, "run", "sigma", *SHORT, option, ".")


@pytest.mark.parametrize("option", ["--csv", "--pcap", "--trace", "--report", "--junit"])
def test_an_empty_name_of_an_output_of_a_run_is_refused(segue: Segue, tmp_path: Path, option: str) -> None:
    assert "expected a name" in refused(segue, tmp_path, "run", "sigma", *SHORT, option, "")


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_an_empty_name_of_an_output_of_an_analysis_is_refused(
    segue: Segue, tmp_path: Path, capture: bytes, option: str
) -> None:
    (tmp_path / "c.pcapng").write_bytes(capture)
    assert "expected a name" in refused(segue, tmp_path, "analyze", "c.pcapng", option, "")

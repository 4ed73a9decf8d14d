"""Runs in files: what is loaded is what was saved."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path

import polars as pl
import pytest

import segue as package
from command import Segue
from segue import Run, ScenarioError, load
from segue.saved import from_bytes, to_bytes

SHORT = {"duration": "30 s"}


@pytest.fixture(scope="module")
def run() -> Run:
    return package.run("papers/sigma", SHORT, pcap=True, conditions=["handovers > 100", "interruption < 1 s"])


def same(one: Run, other: Run) -> None:
    assert one.metrics == other.metrics
    assert (one.metrics_json, one.scenario_toml, one.junit) == (other.metrics_json, other.scenario_toml, other.junit)
    assert one.verdicts == other.verdicts
    assert one.table_names == other.table_names
    for name in one.table_names:
        assert one.frame(name).equals(other.frame(name)), name
    assert one.handovers.equals(other.handovers)
    assert one.captures() == other.captures()


def test_what_is_loaded_is_what_was_saved(run: Run, tmp_path: Path) -> None:
    path = run.save(tmp_path / "walk.segue")
    loaded = load(path)
    same(run, loaded)
    assert [verdict.holds for verdict in loaded.verdicts] == [False, True]
    assert len(loaded.captures()) == 2
    again = loaded.save(tmp_path / "again.segue")
    assert again.read_bytes() == path.read_bytes(), "the same run is the same file"


def test_a_run_goes_through_pickle(run: Run) -> None:
    same(run, pickle.loads(pickle.dumps(run)))


def test_frames_of_a_folder_are_saved_too(tmp_path: Path) -> None:
    folder = tmp_path / "frames"
    folder.mkdir()
    run = package.run("papers/sigma", SHORT, trace=folder)
    loaded = from_bytes(to_bytes(run))
    assert loaded.packets.equals(run.packets)


def test_a_run_without_frames_has_none(tmp_path: Path) -> None:
    loaded = load(package.run("papers/sigma", SHORT, trace=False).save(tmp_path / "x.segue"))
    assert loaded.table_names == []
    with pytest.raises(ValueError, match="no packets"):
        _ = loaded.packets


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 and no more"])
def test_what_is_no_run_is_refused_in_a_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.segue"
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=r"x\.segue: .*expected a file that Run\.save"):
        load(path)


def test_other_formats_and_other_archives_are_refused(tmp_path: Path) -> None:
    for head in ('{"format": 2}', "[]", "no json", None):
        path = tmp_path / "x.segue"
        with zipfile.ZipFile(path, "w") as archive:
            if head is not None:
                archive.writestr("run.json", head)
        with pytest.raises(ScenarioError, match=r"expected a file that Run\.save"):
            load(path)


def test_names_of_captures_lead_nowhere_else(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "evil.segue"
    with zipfile.ZipFile(path, "w") as archive, zipfile.ZipFile(run.save(tmp_path / "good.segue")) as good:
        for info in good.infolist():
            part = good.read(info)
            if info.filename == "run.json":
                head = json.loads(part)
                head["captures"] = [f"{tmp_path}/{name}" for name in head["captures"]]
                part = json.dumps(head).encode()
            archive.writestr(info.filename.replace("captures/", f"captures/{tmp_path}/"), part)
    assert load(path).metrics == run.metrics
    assert not list(tmp_path.glob("*.pcapng"))


def test_a_notebook_is_told_what_happened(run: Run) -> None:
    html = run._repr_html_()
    assert "<b>sigma, seed 1, 30 s</b>. 2 handovers of mh: the only flow lived on, the worst interruption took" in html
    assert html.count("<table>") == html.count("</table>") == 1


def test_a_notebook_is_told_what_a_capture_says(run: Run) -> None:
    analysis = package.analyze(*run.captures())
    html = analysis._repr_html_()
    assert f"{analysis.handovers.height} handovers" in html
    assert html.count("<table") == html.count("</table>") == 2


def test_tables_come_as_csv(segue: Segue, tmp_path: Path) -> None:
    done = segue("run", "papers/sigma", "--set", "duration=30 s", "--csv", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    run = package.run("papers/sigma", SHORT, trace=False)
    for name, frame in {"handovers": run.handovers, "flows": run.flows, "hosts": run.hosts}.items():
        read = pl.read_csv(tmp_path / "out" / f"{name}.csv")
        assert (read.columns, read.height) == (frame.columns, frame.height)
    assert "2 handovers of mh" in done.stdout


def test_a_damaged_file_is_refused_by_name_whatever_part_it_is(tmp_path: Path) -> None:
    """Of every part the bytes in the middle are changed, or the part is gone."""
    whole = tmp_path / "whole.segue"
    package.run("sigma", {"duration": "20 s"}).save(whole)
    names = zipfile.ZipFile(whole).namelist()
    assert len(names) > 6
    for name in names:
        less = tmp_path / "less.segue"
        with zipfile.ZipFile(whole) as old, zipfile.ZipFile(less, "w") as new:
            for other in set(names) - {name}:
                new.writestr(other, old.read(other))
        with pytest.raises(ScenarioError, match=r"less\.segue: .*expected a file that Run\.save"):
            load(less)
        damaged = bytearray(whole.read_bytes())
        part = zipfile.ZipFile(whole).getinfo(name)
        middle = part.header_offset + 30 + len(name) + part.compress_size // 2
        damaged[middle : middle + 8] = bytes(byte ^ 0xFF for byte in damaged[middle : middle + 8])
        (tmp_path / "damaged.segue").write_bytes(damaged)
        with pytest.raises(ScenarioError, match=r"damaged\.segue: .*expected a file that Run\.save"):
            read_all(load(tmp_path / "damaged.segue"))
    for head in (b"{}", b'{"format": 1}', b"[]", b"\xff"):
        with zipfile.ZipFile(tmp_path / "head.segue", "w") as new:
            new.writestr("run.json", head)
        with pytest.raises(ScenarioError, match=r"head\.segue: .*expected a file that Run\.save"):
            load(tmp_path / "head.segue")


def read_all(run: Run) -> None:
    _ = (run.metrics, run.scenario_toml, run.junit)
    for name in run.table_names:
        run.frame(name)

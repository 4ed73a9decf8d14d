"""`segue reproduce sigma` from end to end, in its quick form."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from command import Segue


@pytest.fixture(scope="module")
def report(segue: Segue, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("report")
    result = segue("reproduce", "sigma", "--quick", "--seeds", "1", "--out", out)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return out, result.stdout


def test_every_figure_is_there_in_both_forms(report: tuple[Path, str]) -> None:
    out, _ = report
    for number in range(4, 16):
        assert (out / "figures" / f"figure-{number:02}.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (out / "figures" / f"figure-{number:02}.svg").read_bytes()[:2000]


def test_claims_are_listed_with_paper_and_measured(report: tuple[Path, str]) -> None:
    out, printed = report
    claims = json.loads((out / "claims.json").read_text())
    assert [claim["id"] for claim in claims] == [f"S{n}" for n in range(1, 12)]
    for claim in claims:
        assert list(claim) == [
            "id",
            "statement",
            "paper",
            "criterion",
            "measured",
            "verdict",
            "holds",
            "note",
            "readings",
            "fitted",
        ]
        assert claim["measured"]
        assert claim["id"] in printed
    assert "report.html" in printed


def test_tables_lie_beside_the_figures(report: tuple[Path, str]) -> None:
    out, _ = report
    runs = pl.read_csv(out / "tables" / "runs-latency.csv")
    assert runs.height == 24
    figure = pl.read_csv(out / "tables" / "figure-12.csv")
    assert {"l2_latency_ms", "resolution_ms", "median", "low", "high", "coverage"} <= set(figure.columns)


def test_report_is_one_file_that_asks_for_nothing_else(report: tuple[Path, str]) -> None:
    out, _ = report
    text = (out / "report.html").read_text()
    assert re.findall(r'(?:src|href)="(?!data:|#)', text) == []
    assert "<script" not in text
    for number in range(4, 16):
        assert f"Fig. {number}." in text


def test_nothing_half_written_is_left(report: tuple[Path, str]) -> None:
    out, _ = report
    assert not [path for path in out.rglob("*") if path.name.startswith(".")]

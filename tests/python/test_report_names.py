"""What things are called in reports: links of a page, steps of messages, requests of an ASCONF."""

import re
from pathlib import Path

import polars as pl
import pytest

import segue
from segue.figures.ladder import _steps
from segue.papers.sigma import figures
from segue.report.html import Section, page
from segue.report.html import _name as name_of

SIGMA = Path(__file__).parents[2] / "scenarios" / "papers" / "sigma.toml"


def test_figures_that_are_not_in_the_paper_have_names_of_their_own_in_the_navigation() -> None:
    source = Path(figures.__file__).read_text(encoding="utf-8")
    headings = re.findall(r'"(Not in the paper: [^"]+)"', source)
    assert len(headings) == 3
    sections = [Section(heading, "", name_of(heading)) for heading in headings]
    links = re.findall(r'<a href="#s\d+">([^<]+)</a>', page("t", "l", sections))
    assert links == ["Signalling on a zigzag", "Handover latency", "Throughput against speed"]


def test_authentication_and_answers_are_of_the_step_that_they_belong_to() -> None:
    rows = [
        (1, 10, "INIT", 0),
        (2, 11, "AUTH", 2),
        (2, 11, "ASCONF-ADD+SET-PRIMARY", 2),
        (3, 12, "AUTH", 2),
        (3, 12, "ASCONF-ACK", 2),
        (4, 13, "ASCONF-DELETE", 5),
        (5, 14, "ASCONF-ACK", 5),
        (6, 15, "RS", 1),
    ]
    sent = pl.DataFrame([row[:3] for row in rows], schema=["time_ns", "packet_id", "kind"], orient="row")
    steps = _steps(sent)
    assert [steps[packet, kind] for _, packet, kind, _ in rows] == [step for *_, step in rows]


@pytest.fixture(scope="module")
def bundled() -> segue.Run:
    overrides = {"duration": "14 s", "handover.bundle": "all", "handover.policy": "first-ready"}
    return segue.run(SIGMA, overrides, trace=True)


def test_a_bundle_is_called_by_all_that_it_asks_for(bundled: segue.Run) -> None:
    kinds = set(bundled.packets["kind"])
    assert "ASCONF-ADD+SET-PRIMARY" in kinds
    assert "ASCONF-ADD" not in kinds


def test_without_a_location_manager_nobody_is_told_of_a_location(bundled: segue.Run) -> None:
    assert "route-changed" in set(bundled.signalling["event"])
    assert "location-updated" not in set(bundled.signalling["event"])


def test_times_carry_their_unit(bundled: segue.Run) -> None:
    assert bundled.handovers["time"][0] == bundled.metrics.handovers[0].time_s
    # of handovers it is as the document has it
    for table in (bundled.packets, bundled.windows, bundled.signalling, bundled.positions):
        assert "time" not in table.columns


def test_papers_are_cited_by_authors_and_year() -> None:
    sources = [path for path in Path(segue.__file__).parent.rglob("*.py*") if path.suffix in {".py", ".pyi"}]
    number = re.compile(r"(?<![.\d])00[0-4](?=,? (?:section|equation|which|[IV]+\b|\d\.))")
    assert [f"{path.name}: {found}" for path in sources for found in number.findall(path.read_text())] == []

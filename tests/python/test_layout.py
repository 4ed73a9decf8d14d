"""Tables on a terminal: every line fits, no word is torn, and what is left out is said."""

from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

import segue
from pages import summary, terminal_table
from segue.cli.findings import print_findings
from segue.cli.layout import PIPE_WIDTH, Column, new_console, print_pairs, print_table
from segue.cli.tables import print_claims, print_run
from segue.papers.claims import Claim

LONG = "2001:db8:2::ff:fe01:0"
COLUMNS = [Column("time"), Column("from", rank=1), Column("to", rank=2), Column("why", rank=3, wraps=True)]
ROWS = [["8.277 s", LONG, LONG, "the host took another address, and told its peer"], ["9 s", "", LONG, ""]]
WIDTHS = (20, 30, 40, 60, 80, 120, 200)


@pytest.fixture(scope="module")
def mip6() -> segue.Run:
    """A run whose table has all columns there are."""
    return segue.run("ilnp", {"scheme": "mip6", "case": "wan-lan", "duration": "40 s"}, pcap=True)


def words(text: str) -> list[str]:
    return [word.strip("(),;:") for word in text.split()]


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_of_a_run_is_wider_than_the_terminal_and_no_heading_is_torn(
    mip6: segue.Run, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_run(mip6)
    text = capsys.readouterr().out
    assert max(map(cell_len, text.splitlines())) <= width
    # every heading stands as a word, above its column, beside its value or among those that are left out
    for name in ("interruption", "latency", "layer", "from", "T_n", "longest", "state"):
        assert name in words(text), text


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_of_an_analysis_is_wider_than_the_terminal(
    mip6: segue.Run, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_findings(segue.analyze(*mip6.captures()[:2]).findings)
    text = capsys.readouterr().out
    assert max(map(cell_len, text.splitlines())) <= width
    assert "speed" in words(text)


@pytest.mark.parametrize("width", WIDTHS)
def test_claims_fit(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    words_of = ["what", "a", "handover", "costs"]
    print_claims([Claim("S1", " ".join(words_of), "nothing", "6.2 ms", holds=True, criterion="less")])
    text = capsys.readouterr().out
    assert max(map(cell_len, text.splitlines())) <= width
    assert set(words_of) <= set(words(text))


def test_columns_go_by_their_rank_and_are_named() -> None:
    def shown(width: int) -> str:
        console = Console(width=width, file=io.StringIO(), record=True)
        print_table(console, COLUMNS, ROWS)
        return console.export_text()

    whole = 7 + 2 * len(LONG) + 24 + 3 * 2
    assert "not shown" not in shown(whole)
    first = shown(whole - 1)
    assert f"not shown at this width: why (all need {whole} columns)" in " ".join(first.split())
    second = shown(7 + len(LONG) + 2)
    assert second.split()[:2] == ["time", "from"]
    assert "not shown at this width: to, why" in " ".join(second.split())
    assert shown(8).split()[:2] == ["time", "───────"]


def test_where_no_table_fits_a_row_is_lines_of_name_and_value(capsys: pytest.CaptureFixture[str]) -> None:
    kept = [Column("time"), Column("from\nto"), Column("lost", rank=1)]
    print_table(Console(width=30), kept, [["8.277 s", f"{LONG}\n::1", "[3]"], ["9 s", "alone", ""]])
    blocks = [re.sub(r" +", " ", line).strip() for line in capsys.readouterr().out.splitlines()]
    # the first fits with `lost` left out, so does the second
    assert blocks[0].split() == ["from"]
    print_table(Console(width=29), kept, [["8.277 s", f"{LONG}\n::1", "[3]"], ["9 s", "alone", ""]])
    blocks = [re.sub(r" +", " ", line).strip() for line in capsys.readouterr().out.splitlines()]
    assert blocks == ["time: 8.277 s", f"from: {LONG}", "to: ::1", "lost: [3]", "", "time: 9 s", "from to: alone"]


def test_names_and_values_stand_below_each_other_where_it_is_narrow(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = [("lost to handover, queue, otherwise", "0, 0, 0"), ("flow", "1"), ("", "a note")]
    print_pairs(Console(width=76), pairs)
    assert summary(capsys.readouterr().out) == {"lost to handover, queue, otherwise": "0, 0, 0", "flow": "1"}
    print_pairs(Console(width=40), pairs)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["lost to handover, queue, otherwise:", "  0, 0, 0", "flow: 1", "a note"]


@pytest.mark.parametrize(
    ("said", "width"),
    [(None, PIPE_WIDTH), ("", PIPE_WIDTH), ("x", PIPE_WIDTH), ("0", PIPE_WIDTH), ("57", 57), ("1", 20)],
)
def test_a_pipe_is_as_wide_as_columns_says(said: str | None, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if said is not None:
        monkeypatch.setenv("COLUMNS", said)
    assert new_console().width == width


def test_a_wide_terminal_has_every_column(
    mip6: segue.Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    print_run(mip6)
    text = capsys.readouterr().out
    assert "not shown" not in text
    [row] = terminal_table(text, "Handovers")
    assert {"layer", "from", "T_n", "for nothing"} <= set(row)

"""docs/counters.md is what the sources say, and scripts/counters.py reads them right."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import counters

LIST = """
struct Numbers {
    /// Packets
    /// that were sent.
    pub sent: u64,
    other: Vec<u8>,
}
        vec![
            ("all_sent", self.sent),
            // Those of another kind.
            ("others", self.other.len() as u64),
            ("of_another", numbers.elsewhere),
        ]
"""


def test_the_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    status = counters.main(["--check"])
    assert status == 0, capsys.readouterr().err


def test_a_counter_has_the_comment_of_its_field_or_its_own() -> None:
    said = counters.comments(LIST)
    assert said == {"sent": "Packets that were sent."}
    assert counters.counters(LIST, {**said, "elsewhere": "From there."}) == {
        "all_sent": "Packets that were sent.",
        "others": "Those of another kind.",
        "of_another": "From there.",
    }
    with pytest.raises(ValueError, match="of_another: expected a comment"):
        counters.counters(LIST, said)


def test_fields_of_the_macro_are_counters() -> None:
    source = "counters! {\n    /// All.\n    pub struct Counters {\n        /// Seen.\n        seen,\n    }\n}\n"
    assert counters.counters(source, {}) == {"seen": "Seen."}


def test_parts_have_their_own() -> None:
    page = counters.page()
    for name in ("too_many_strangers", "called_anew", "udp_copies", "sessions_begun", "upstream_late", "bad_sequence"):
        assert f"| `{name}` |" in page, name
    assert "no_uplink" in page.partition("## packets")[2].partition("## paths")[0]

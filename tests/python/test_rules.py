"""docs/rules.md is what the sources say, and scripts/rules.py reads them right."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import rules

ROOT = rules.ROOT
DOCUMENTS = rules.Documents(rules.SECTIONS.read_text(encoding="utf-8"))
LOSS = "crates/segue-proto/src/sctp/loss.rs"
WIRE = "crates/segue-wire/src/ipv6.rs"
TESTS = "tests/conformance/tests/rfc9260_s6_data.rs"


def read(path: str, source: str) -> rules.Reader:
    reader = rules.Reader(DOCUMENTS)
    reader.read(path, source)
    return reader


def code(path: str, source: str) -> set[tuple[str, str]]:
    reader = read(path, source)
    assert reader.errors == []
    return {(document, name) for document, all_of in reader.rules.items() for name, rule in all_of.items() if rule.code}


def test_the_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    status = rules.main(["--check"])
    assert status == 0, capsys.readouterr().err


def test_every_file_that_the_page_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / rules.PAGE).read_text())
    assert len(links) > 300
    for link in set(links):
        assert (ROOT / "docs" / link).exists(), link


def test_every_document_is_named_by_code_and_by_tests() -> None:
    reader = rules.gather(ROOT, DOCUMENTS)
    for document in DOCUMENTS.titles:
        found = reader.rules[document].values()
        assert any(rule.code for rule in found), document
        assert any(rule.tests for rule in found) or document == rules.NR_SACK, document


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("/// RFC 9260 section 7.2.4: fast", {("RFC 9260", "7.2.4")}),
        ("/// Fast (section 7.2.4).", {("RFC 9260", "7.2.4")}),
        ("//! RFC 5061\n\nfn f() {\n    // section 5.3\n}", {("RFC 5061", ""), ("RFC 5061", "5.3")}),
        ("//! RFC 5061\n\n// section 7.2.4", {("RFC 5061", ""), ("RFC 9260", "7.2.4")}),
        ("/// RFC 5061 section 5.3, then\n/// section 4.2.4", {("RFC 5061", "5.3"), ("RFC 5061", "4.2.4")}),
        ("/// As RFC\n/// 9260\n/// section\n/// 6.1 says", {("RFC 9260", "6.1")}),
        ("x += 1; // section 6.1", {("RFC 9260", "6.1")}),
        ("/// Sections 3.3.2, 3.3.3 and 5.1", {("RFC 9260", "3.3.2"), ("RFC 9260", "3.3.3"), ("RFC 9260", "5.1")}),
        ("/// RFC 8200 section 4.5", set()),
        ("/// RFC 7053 has it", {("RFC 7053", "")}),
        ("/// NR-SACK", {(rules.NR_SACK, "")}),
        ('let text = "section 6.1";', set()),
    ],
)
def test_what_a_comment_names(source: str, expected: set[tuple[str, str]]) -> None:
    assert code(LOSS, source) == expected


def test_a_bare_section_says_nothing_outside_of_sctp() -> None:
    assert code(WIRE, "/// section 4.5") == set()
    assert code(WIRE, "//! RFC 8200\n\n/// section 4.5") == set()


@pytest.mark.parametrize("source", ["/// RFC 9260 section 7.9", "/// section 99.1", "/// RFC 7496 section 4.9"])
def test_a_section_that_the_document_has_not_is_an_error(source: str) -> None:
    assert len(read(LOSS, source).errors) == 1


def test_tests_are_those_that_name_a_section_or_are_named_for_it() -> None:
    source = """
//! RFC 9260 section 6.

/// Helper of section 6.5.
fn helper() {}

/// Section 6.7: gaps.
#[test]
fn gaps() {
    // section 6.2
    helper();
}

#[test]
fn s6_2_1_2000_bytes() {}
"""
    found = {name: rule.tests[TESTS] for name, rule in read(TESTS, source).rules["RFC 9260"].items() if rule.tests}
    assert found == {"6": {""}, "6.7": {"gaps"}, "6.2": {"gaps"}, "6.2.1": {"s6_2_1_2000_bytes"}}


def test_tests_in_a_file_of_code_are_tests() -> None:
    source = """
/// Section 6.1.
fn f() {}

#[cfg(test)]
mod tests {
    // section 6.2
    #[test]
    fn g() {
    }
}
"""
    found = read(LOSS, source).rules["RFC 9260"]
    assert found["6.1"].code == {LOSS}
    assert found["6.2"].tests[LOSS] == {"g"}
    assert not found["6.2"].code

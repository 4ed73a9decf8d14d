#!/usr/bin/env python3
"""Makes docs/rules.md: which section of which document is followed in which file, and by which tests.

Read are comments and the names of tests. `RFC 5061 section 5.3` says which document; a bare `section 5.3` means the one
that was named last in the same comment, else the one that the file names first in its `//!`, else, in SCTP's folders,
RFC 9260. Where that has no such section it is the next of these. One that none of them has is an error:
rfc_sections.txt lists what they have. Tests of `rfc9260_s6_data.rs` and the like are named for their sections
(`s6_2_1_...`).

`rules.py --check` says whether the page is what would be made.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/rules.md"
SECTIONS = ROOT / "scripts" / "rfc_sections.txt"
SOURCES = ("crates", "tests/conformance")
BASE = "RFC 9260"
NR_SACK = "draft-natarajan-tsvwg-sctp-nrsack"
# Folders whose bare sections are RFC 9260's, unless something else was named.
SCTP = ("crates/segue-proto/src/sctp/", "crates/segue-wire/src/sctp/", "crates/segue-proto/tests/sctp_")

NUMBER = r"(?:\d+(?:\.\d+)*|[A-C](?![a-z]))"
MENTION = re.compile(
    rf"(?P<document>RFC (?P<rfc>\d{{4}})|{NR_SACK}|NR-SACK)"
    rf"|[Ss]ections?\s+(?P<first>{NUMBER})(?P<more>(?:(?:,|;|\s+and|\s+or|\s+to|,\s+and|\s+and\s+its\s+exceptions)\s*"
    r"(?:[A-F]\d*(?:,|\s+and)\s+)?\d+(?:\.\d+)+)*)"
)
COMMENT = re.compile(r"^\s*//[/!]?\s?(.*)$|^.*?[;{,)]\s+//\s(.*)$")
FUNCTION = re.compile(r"^(\s*)(?:pub(?:\([^)]*\))? )?(?:async )?fn (\w+)")


@dataclass
class Block:
    """A comment: contiguous lines, or what stands behind one of code."""

    words: str
    is_header: bool
    test: str
    """The test that it is about; empty if it is of none."""
    is_code: bool
    """Of no file of tests."""


@dataclass
class Rule:
    """Who names a section."""

    code: set[str] = field(default_factory=set)
    tests: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Tests by file; an empty name is the file as a whole."""


Rules = dict[str, dict[str, Rule]]
"""By document and section; an empty section is a document named as a whole."""


class Documents:
    """What sections the documents have."""

    def __init__(self, text: str) -> None:
        """Reads rfc_sections.txt."""
        self.titles: dict[str, str] = {}
        self.sections: dict[str, dict[str, str]] = {}
        name = ""
        for line in text.splitlines():
            heading = re.fullmatch(r"\[(.*?): (.*)\]", line)
            if heading is not None:
                name = heading[1]
                self.titles[name], self.sections[name] = heading[2], {}
            elif line and not line.startswith("#"):
                number, _, title = line.partition(" ")
                self.sections[name][number] = title


def blocks(path: str, source: str) -> Iterator[Block]:
    """The comments of a file, each with the test that it is about."""
    in_test_file = "/tests" in path
    waiting: list[str] = []
    is_header, marked, test, end, in_tests = False, False, "", "", False
    for line in [*source.splitlines(), "}"]:
        comment = COMMENT.match(line)
        alone = comment is not None and comment[1] is not None
        if alone and comment is not None:
            if waiting and is_header != line.lstrip().startswith("//!"):
                yield Block(" ".join(waiting), is_header, test, not (in_test_file or in_tests))
                waiting = []
            is_header = line.lstrip().startswith("//!")
            waiting.append(comment[1])
            continue
        stripped = line.strip()
        if stripped in {"#[test]", "#[cfg(test)]"} or stripped.startswith(("#[tokio::test", "#[should_panic")):
            marked = True
        function = FUNCTION.match(line)
        if function is not None and marked and not test:
            test, end = function[2], f"{function[1]}}}"
        if stripped.startswith("mod tests {") and marked:
            in_tests = True
        if not stripped.startswith("#") and waiting:
            yield Block(" ".join(waiting), is_header, test, not (in_test_file or in_tests))
            waiting = []
        if not stripped.startswith("#"):
            marked = False
        if comment is not None:
            yield Block(comment[2], False, test, not (in_test_file or in_tests))
        if test and line.rstrip() == end:
            test = ""


def tests_of(source: str) -> list[str]:
    """Names of the tests of a file."""
    return re.findall(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*(?:pub )?fn (\w+)", source)


class Reader:
    """Gathers rules file by file."""

    def __init__(self, documents: Documents) -> None:
        """With none yet."""
        self.documents = documents
        self.rules: Rules = defaultdict(lambda: defaultdict(Rule))
        self.errors: list[str] = []

    def read(self, path: str, source: str) -> None:
        """Takes what one file names."""
        found = list(blocks(path, source))
        named = re.search(r"/rfc(\d{4})_", path)
        header = " ".join(block.words for block in found if block.is_header)
        first = re.search(r"RFC \d{4}", header)
        defaults = [f"RFC {named[1]}"] if named else []
        defaults += [first[0]] if first else []
        defaults += [BASE] if path.startswith(SCTP) else []
        for block in found:
            self._read_block(path, block, defaults)
        if defaults:
            self._read_names(path, source, defaults[0])

    def _read_block(self, path: str, block: Block, defaults: list[str]) -> None:
        current = ""
        matches = list(MENTION.finditer(block.words))
        for number, match in enumerate(matches):
            if match["document"]:
                current = match["document"] if match["rfc"] else NR_SACK
                follows = matches[number + 1] if number + 1 < len(matches) else None
                if follows is None or follows["document"]:
                    self._note_document(path, block, current)
                continue
            for section in [match["first"], *re.findall(r"\d+(?:\.\d+)+", match["more"])]:
                self._note_section(path, block, [current] if current else [], defaults, section)

    def _note_document(self, path: str, block: Block, document: str) -> None:
        if document in self.documents.sections and document != BASE:
            self._note(path, block, document, "")

    def _note_section(self, path: str, block: Block, current: list[str], defaults: list[str], section: str) -> None:
        if current and current[0] not in self.documents.sections:
            return
        candidates = current + defaults
        if not current and defaults and defaults[0] not in self.documents.sections:
            return
        for document in candidates:
            if section in self.documents.sections.get(document, {}):
                self._note(path, block, document, section)
                return
        if candidates:
            self.errors.append(f"{path}: {candidates[0]} has no section {section}: {block.words.strip()[:90]}")

    def _note(self, path: str, block: Block, document: str, section: str) -> None:
        rule = self.rules[document][section]
        if block.test:
            rule.tests[path].add(block.test)
        elif block.is_code and path.startswith("crates/") and not path.endswith("/arbitrary.rs"):
            rule.code.add(path)
        elif block.is_header and not block.is_code:
            rule.tests[path].add("")

    def _read_names(self, path: str, source: str, document: str) -> None:
        """`s6_2_1_2000_bytes` is of section 6.2.1: the longest that there is."""
        sections = self.documents.sections.get(document, {})
        for test in tests_of(source):
            numbers = re.match(r"s(\d+(?:_\d+)*)", test)
            parts = numbers[1].split("_") if numbers else []
            for length in range(len(parts), 0, -1):
                section = ".".join(parts[:length])
                if section in sections:
                    self.rules[document][section].tests[path].add(test)
                    break


def page(documents: Documents, rules: Rules) -> str:
    """The text of docs/rules.md."""
    out = [
        "# Where the rules are",
        "",
        "Made by `scripts/rules.py` from comments and the names of tests; a test checks that it is up to date.",
        "A file of the code is listed where it names the section, a test where it names it or is named for it.",
        "Sections that are not listed are named nowhere.",
        "",
        "How the pieces work together: [the life of a DATA chunk](life-of-a-chunk.md)."
        if (ROOT / "docs" / "life-of-a-chunk.md").exists()
        else "",
    ]
    for document, title in documents.titles.items():
        found = rules.get(document, {})
        out += ["", f"## {document}: {title}", "", "| section | code | tests |", "|---|---|---|"]
        for section in ["", *documents.sections[document]]:
            rule = found.get(section)
            if rule is not None and (rule.code or rule.tests):
                name = f"{section} {documents.sections[document][section]}".strip() if section else "as a whole"
                out.append(f"| {name} | {_code(rule.code)} | {_tests(rule.tests)} |")
    return "\n".join(line for number, line in enumerate(out) if line or out[number - 1]) + "\n"


def _code(files: Iterable[str]) -> str:
    return ", ".join(_link(file) for file in sorted(files, key=_nearness))


def _nearness(file: str) -> tuple[int, str]:
    """The machines first, then the wire format, then who uses them."""
    order = ("crates/segue-proto/src/sctp/", "crates/segue-proto/", "crates/segue-wire/", "")
    return next(number for number, start in enumerate(order) if file.startswith(start)), file


def _tests(files: dict[str, set[str]]) -> str:
    cells = []
    for file in sorted(files, key=_nearness):
        names = sorted(name for name in files[file] if name)
        cells.append(_link(file) + (": " + ", ".join(f"`{name}`" for name in names) if names else ""))
    return "<br>".join(cells)


def _short(file: str) -> str:
    """`sctp/loss.rs` for `crates/segue-proto/src/sctp/loss.rs`, and so on."""
    for start in ("crates/segue-proto/src/", "crates/segue-proto/", "crates/segue-", "tests/conformance/tests/"):
        if file.startswith(start):
            return file.removeprefix(start).replace("/src/", "/")
    return file.removeprefix("tests/")


def _link(file: str) -> str:
    return f"[{_short(file)}]({os.path.relpath(file, 'docs')})"


def gather(root: Path, documents: Documents) -> Reader:
    """What the sources of a checkout name."""
    reader = Reader(documents)
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*.rs")):
            name = path.relative_to(root).as_posix()
            if "/target/" not in name:
                reader.read(name, path.read_text(encoding="utf-8"))
        for path in sorted((root / folder).rglob("*.pkt")):
            name = path.relative_to(root).as_posix()
            words = " ".join(
                line[2:] for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("//")
            )
            reader._read_block(name, Block(words, is_header=True, test="", is_code=False), [])
    return reader


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is out of date")
    options = parser.parse_args(arguments)
    documents = Documents(SECTIONS.read_text(encoding="utf-8"))
    reader = gather(ROOT, documents)
    for error in reader.errors:
        print(error, file=sys.stderr)
    made = page(documents, reader.rules)
    target = ROOT / PAGE
    if options.check:
        is_same = target.exists() and target.read_text(encoding="utf-8") == made
        if not is_same:
            print(f"{PAGE} is out of date: run scripts/rules.py", file=sys.stderr)
        return 0 if is_same and not reader.errors else 1
    target.write_text(made, encoding="utf-8")
    return 1 if reader.errors else 0


if __name__ == "__main__":
    sys.exit(main())

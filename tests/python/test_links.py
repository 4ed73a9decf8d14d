"""Documents link to files that are there, and name what is in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("crates/*/README.md"), *ROOT.glob("tests/*/*.md")]
)
LIFE = ROOT / "docs" / "life-of-a-chunk.md"


def links(page: Path) -> list[tuple[str, str]]:
    """Text and target of each link to a file of ours."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = re.findall(r"\[([^\]]*)\]\(([^)\s]+)\)", text)
    return [(name, target.partition("#")[0]) for name, target in found if not re.match(r"[a-z]+:|#", target)]


def missing_names(page: Path) -> list[str]:
    """What a page links to as [`Type::method`](file) or [`Type`](file), and that file does not define."""
    missing = []
    for text, target in links(page):
        name = re.fullmatch(r"`(?:\w+::)*(\w+)`", text)
        if name is not None and target.endswith(".rs"):
            source = (page.parent / target).read_text(encoding="utf-8")
            if not re.search(rf"\b(?:fn|struct|enum|trait|type|const|mod) {name[1]}\b", source):
                missing.append(f"{text} in {target}")
    return missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_that_is_linked_to_is_there(page: Path) -> None:
    missing = [target for _, target in links(page) if not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.skipif(not LIFE.exists(), reason="the page is not written yet")
def test_the_life_of_a_chunk_names_what_is_there() -> None:
    assert sum(target.endswith(".rs") for _, target in links(LIFE)) > 20
    assert missing_names(LIFE) == []


def test_a_name_that_is_gone_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.rs").write_text("impl Flight { pub fn send(&mut self) {} }\nstruct Sent;\n")
    page = tmp_path / "page.md"
    page.write_text("[`Flight::send`](a.rs), [`Sent`](a.rs), [`Flight::lose`](a.rs), [a](a.rs), [b](https://b/c.rs)")
    assert links(page)[-1] == ("a", "a.rs")
    assert missing_names(page) == ["`Flight::lose` in a.rs"]

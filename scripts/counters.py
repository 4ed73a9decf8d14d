#!/usr/bin/env python3
"""Makes docs/counters.md: what `segue agent status` counts, by part and name, from the comments of the sources.

A list of counters in Rust is pairs of a name and a field, `("udp_sent", c.udp_sent)`, or the fields of `counters! {}`.
What is said of it is the comment of the field, or the one above the pair. A counter without one is an error.

`counters.py --check` says whether the page is what would be made.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/counters.md"
AGENT, PROTO = "crates/segue-agent/src", "crates/segue-proto/src"

FIELD = re.compile(r"((?:^ *///.*\n)+)^ *(?:pub )?(\w+)(?:: \w+)?,$", re.MULTILINE)
PAIR = re.compile(r'((?:^ *//.*\n)*)^ *\("(\w+)", ([^\n]*)\),$', re.MULTILINE)
LAST_NAME = re.compile(r"(\w+)(?:\(\))?$")
# Pairs whose field has another name than that behind the last dot.
CALLED = {"update_answer_unexpected": "unexpected"}


@dataclass(frozen=True)
class Part:
    """Counters that `status` shows together.

    Attributes:
        name: As `status` has it.
        about: Whose they are.
        lists: Files with the names.
        fields: Files with the comments, if they are others.
    """

    name: str
    about: str
    lists: tuple[str, ...]
    fields: tuple[str, ...] = ()


PARTS = (
    Part("packets", "Packets of every role.",
         (f"{AGENT}/stack.rs", f"{AGENT}/run/traffic.rs", f"{AGENT}/fixed.rs"),
         (f"{PROTO}/tcp/window_clamp.rs", f"{AGENT}/stack.rs", f"{AGENT}/run/traffic.rs", f"{AGENT}/fixed.rs")),
    Part("paths", "Sizes of packets.", (f"{AGENT}/paths.rs",)),
    Part("ilnp", "An ILNPv6 host.", (f"{PROTO}/ilnp/counters.rs",)),
    Part("udp", "An ILNPv6 host, where destination options do not get through.", (f"{AGENT}/paths/carriages.rs",)),
    Part("fast-path", "An ILNPv6 host: what the kernel carries.", (f"{AGENT}/fast_path.rs",)),
    Part("names", "An ILNPv6 host with names.", (f"{AGENT}/names/counters.rs",),
         (f"{AGENT}/names/counters.rs", f"{AGENT}/names/upstream.rs", f"{PROTO}/location/client/event.rs")),
    Part("mobile-node, home-agent, correspondent", "Mobile IPv6, each role those that concern it.",
         (f"{PROTO}/mip6/counters.rs",)),
)  # fmt: skip


def _source(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8").partition("#[cfg(test)]")[0]


def comments(source: str) -> dict[str, str]:
    """What is said of the fields of structures, by name."""
    found = {}
    for lines, name in FIELD.findall(source):
        found[name] = _words(lines)
    return found


def _words(lines: str) -> str:
    return " ".join(line.strip().lstrip("/").strip() for line in lines.strip().splitlines())


def counters(source: str, said: dict[str, str]) -> dict[str, str]:
    """Counters by name, each with its comment, where `said` has those of fields.

    Raises:
        ValueError: A counter has no comment.
    """
    inside = re.search(r"counters! \{.*?pub struct \w+ \{(.*)", source, re.DOTALL)
    if inside:
        return comments(inside[1])
    found = {}
    for lines, name, value in PAIR.findall(source):
        last = LAST_NAME.search(value)
        field = CALLED.get(name, last[1] if last else "")
        about = _words(lines) or said.get(field)
        if about is None:
            raise ValueError(f"{name}: expected a comment, at it or at the field {field}")
        found[name] = about
    return found


def table(part: Part) -> list[str]:
    """The lines of a part.

    Raises:
        ValueError: A counter has no comment.
    """
    said: dict[str, str] = {}
    for file in reversed(part.fields or part.lists):
        said |= comments(_source(file))
    rows = []
    for file in part.lists:
        # of a file that has both, its own
        source = _source(file)
        try:
            found = counters(source, said | comments(source))
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error
        rows += [f"| `{name}` | {about} |" for name, about in found.items()]
    return ["", f"## {part.name}", "", part.about, "", "| name | |", "|---|---|", *rows]


def page() -> str:
    """The text of docs/counters.md."""
    out = [
        "# What the agent counts",
        "",
        "Made by `scripts/counters.py` from the comments of the sources; a test checks that it is up to date.",
        "",
        "`segue agent status` shows those that are not zero; `events_total` for Prometheus has them by `part` and",
        "`name`. They count from the start of the agent. `refused_by_INTERFACE` among the packets are those that an",
        "interface did not take.",
    ]
    for part in PARTS:
        out += table(part)
    return "\n".join(out) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is out of date")
    options = parser.parse_args(arguments)
    try:
        made = page()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    file = ROOT / PAGE
    if options.check:
        if file.exists() and file.read_text(encoding="utf-8") == made:
            return 0
        print(f"{PAGE}: out of date: run scripts/counters.py", file=sys.stderr)
        return 1
    file.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Counts what makes the protocol machines hard to follow, and fails where there is more than structure.toml allows.

Of each machine (a folder of Rust sources, tests left out):

    large-struct     structs of more than 15 fields
    open-field       fields of any visibility but private, in structs that are not plain values
    accessor         methods not private that return `&mut`, and setters
    impl-file        files with an `impl` of the type that is spread over the most of them, where it is more than one
    circle           files that import each other in a circle, through whatever other files
    long-function    functions of more than 80 lines
    long-file        files of more than 500 lines

A plain value is a struct that others may take apart: no method of it takes `&mut self`, and nothing writes to a field
of it where it is part of something else (`self.paths[i].state = ...`, or through a `&mut` that was handed in). One that
is built up in a local variable and then returned stays plain. A setter is a method, not private, called `set_*`, or for
a field in which it stores an argument, doing nothing else. To note when something happened is none
(`self.sent_at = Some(now)`), nor is what is named for what happens (`begin`).

What is written where is found by the names of types as the sources spell them: it sees through `Option`, `Box`, vectors
and maps, `let`, `if let`, `for` and methods of the machine itself, not through generics.

Limits are the counts of some day, and go down only. One that is more than the count asks to be lowered: `--lower` does
it. Exceptions each have a reason, and one that excepts nothing asks to be taken out.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rust_machine import LENDS, Machine, Method, Struct, field_visibility
from rust_source import circles, line_of, text, visibility

ROOT = Path(__file__).resolve().parent.parent
LIMITS = ROOT / "scripts" / "structure.toml"
KINDS = ("large-struct", "open-field", "accessor", "impl-file", "circle", "long-function", "long-file")
MOST_FIELDS = 15
MOST_LINES_OF_FUNCTION = 80
MOST_LINES_OF_FILE = 500


@dataclass(frozen=True)
class Finding:
    """Something that is counted."""

    kind: str
    path: Path
    line: int
    what: str
    subject: str
    """What an exception names: a struct, `Struct::method`, a function, a file."""


def findings(machine: Machine) -> Iterator[Finding]:
    """All that is found in a machine."""
    for structs in machine.structs.values():
        for struct in structs:
            yield from _of_struct(struct)
    for method in machine.methods:
        yield from _of_method(method)
    yield from _of_impls(machine)
    yield from _of_circles(machine)
    for file in machine.sources.files.values():
        if file.lines > MOST_LINES_OF_FILE:
            yield Finding("long-file", file.path, 1, f"{file.lines} lines", "/".join(file.module[1:]) or "mod")


def _of_method(method: Method) -> Iterator[Finding]:
    node, path, line = method.node, method.file.path, line_of(method.node)
    lines = node.end_point.row - node.start_point.row + 1
    if lines > MOST_LINES_OF_FUNCTION:
        yield Finding("long-function", path, line, f"{method.full_name}: {lines} lines", method.full_name)
    if not method.owner or not method.takes_mut_self or not (visibility(node) or method.in_trait):
        return
    returned = text(node.child_by_field_name("return_type"))
    if method.in_trait:
        if method.name in {"deref_mut", "index_mut", "as_mut", "borrow_mut"}:
            yield Finding("accessor", path, line, f"{method.full_name} hands out `{returned}`", method.full_name)
    elif LENDS.search(returned):
        yield Finding("accessor", path, line, f"{method.full_name} hands out `{returned}`", method.full_name)
    elif _is_setter(method):
        yield Finding("accessor", path, line, f"{method.full_name} is a setter", method.full_name)


def _of_impls(machine: Machine) -> Iterator[Finding]:
    spread = max(machine.impls, key=lambda name: (len(machine.impls[name]), name), default="")
    files = machine.impls[spread] if spread else {}
    if len(files) > 1:
        for path, line in files.items():
            yield Finding("impl-file", path, line, f"impl {spread}", spread)


def _of_circles(machine: Machine) -> Iterator[Finding]:
    files = machine.sources.files
    uses = {module: machine.sources.uses(file) for module, file in files.items()}
    for circle in circles({module: set(used) for module, used in uses.items()}):
        for module in circle:
            inside = {there: line for there, line in uses[module].items() if there in circle}
            name = "::".join(module)
            named = ", ".join("::".join(there[1:]) or "mod" for there in sorted(inside))
            what = f"{name} is in a circle of {len(circle)} files: it imports {named}"
            yield Finding("circle", files[module].path, min(inside.values()), what, name)


def _of_struct(struct: Struct) -> Iterator[Finding]:
    path = struct.file.path
    if len(struct.fields) > MOST_FIELDS:
        what = f"struct {struct.name}: {len(struct.fields)} fields"
        yield Finding("large-struct", path, struct.line, what, struct.name)
    if struct.is_plain:
        return
    why = "has methods that take `&mut self`"
    if struct.written is not None and not struct.has_methods_that_write:
        why = f"is written to in {struct.written[0].name}:{struct.written[1]}"
    for name, node, _ in struct.fields:
        seen = field_visibility(node)
        if seen:
            yield Finding(
                "open-field",
                path,
                line_of(node),
                f"{struct.name}.{name} is {seen}, and {struct.name} {why}",
                struct.name,
            )


def _is_setter(method: Method) -> bool:
    """Whether it is called `set_*`, or for a field in which it stores an argument, and does nothing else."""
    if method.name.startswith("set_"):
        return True
    body = method.node.child_by_field_name("body")
    assert body is not None
    arguments = {name for name, kind in method.parameters if text(kind) != "Instant"}
    statements = [node for node in body.named_children if node.type not in {"line_comment", "block_comment"}]
    fields = []
    for statement in statements:
        inside = statement.named_children[0] if statement.type == "expression_statement" else statement
        if inside.type != "assignment_expression":
            return False
        left, right = text(inside.child_by_field_name("left")), text(inside.child_by_field_name("right"))
        stored = re.fullmatch(r"(?:Some\()?(\w+)\)?", right)
        if not left.startswith("self.") or stored is None or stored[1] not in arguments:
            return False
        fields.append(left.rpartition(".")[2])
    return any(field in method.name for field in fields)


class Judge:
    """Holds what is found against structure.toml."""

    def __init__(self, path: Path) -> None:
        """Reads it."""
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        parsed = tomllib.loads(self.text)
        self.machines: dict[str, dict[str, Any]] = parsed["machine"]
        self.exceptions: list[dict[str, str]] = parsed.get("exception", [])
        self.counts: dict[str, Counter[str]] = {}
        self.over = 0

    def machine(self, name: str) -> Machine:
        """Reads the sources of one."""
        return Machine((self.path.parent / self.machines[name]["folder"]).resolve())

    def found(self, name: str) -> dict[str, list[Finding]]:
        """What is found in a machine, exceptions left out, by kind."""
        found: dict[str, list[Finding]] = {kind: [] for kind in KINDS}
        mine = [one for one in self.exceptions if one["machine"] == name]
        excepted = set()
        for finding in findings(self.machine(name)):
            if any((finding.kind, finding.subject) == (one["kind"], one["name"]) for one in mine):
                excepted.add((finding.kind, finding.subject))
            else:
                found[finding.kind].append(finding)
        for one in mine:
            if (one["kind"], one["name"]) not in excepted:
                print(f"{name}: the exception {one['name']} ({one['kind']}) excepts nothing: take it out")
        return {kind: sorted(some, key=lambda finding: (finding.path, finding.line)) for kind, some in found.items()}

    def judge(self, name: str, *, in_full: bool, lower: bool) -> None:
        """Prints what there is to say of a machine."""
        found = self.found(name)
        self.counts[name] = Counter({kind: len(some) for kind, some in found.items()})
        for kind, some in found.items():
            count, limit = len(some), self.machines[name][kind]
            for finding in some if in_full or count > limit else ():
                print(f"{_relative(finding.path)}:{finding.line}: {kind}: {finding.what}")
            if count > limit:
                self.over += 1
                print(f"{name}: {count} of {kind}, and {limit} are allowed", file=sys.stderr)
            elif count < limit and lower:
                self.text = lowered(self.text, name, kind, count)
            elif count < limit:
                print(f"{name}: {count} of {kind}: lower its limit of {limit} (structure.py --lower)")

    def write(self) -> None:
        """Puts the lower limits into the file."""
        self.path.write_text(self.text, encoding="utf-8")

    def print_counts(self) -> None:
        """A table of all."""
        print("".join(["machine".ljust(10), *(kind.rjust(15) for kind in KINDS)]))
        for name, counted in self.counts.items():
            print("".join([name.ljust(10), *(str(counted[kind]).rjust(15) for kind in KINDS)]))

    def print_plain(self, name: str) -> None:
        """The structs that are taken for plain values and have open fields."""
        for structs in self.machine(name).structs.values():
            for struct in structs:
                if struct.is_plain and any(field_visibility(node) for _, node, _ in struct.fields):
                    print(f"{_relative(struct.file.path)}:{struct.line}: plain: {struct.name}")


def lowered(table: str, machine: str, kind: str, count: int) -> str:
    """The text of structure.toml with another limit."""
    pattern = rf"(?ms)(^\[machine\.{re.escape(machine)}\]\n(?:(?!^\[).)*?^{re.escape(kind)} = )\d+"
    return re.sub(pattern, rf"\g<1>{count}", table)


def main(arguments: list[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machines", nargs="*", metavar="MACHINE", help="look at these only")
    parser.add_argument("--list", action="store_true", help="print every finding, and a table of the counts")
    parser.add_argument("--plain", action="store_true", help="print the plain values that have open fields")
    parser.add_argument("--lower", action="store_true", help="write today's counts where they are below the limits")
    parser.add_argument("--limits", type=Path, default=LIMITS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    judge = Judge(options.limits)
    unknown = set(options.machines) - set(judge.machines)
    if unknown:
        parser.error(f"no such machine: {', '.join(sorted(unknown))}; there are {', '.join(judge.machines)}")
    for name in options.machines or judge.machines:
        if options.plain:
            judge.print_plain(name)
        else:
            judge.judge(name, in_full=options.list, lower=options.lower)
    if options.lower:
        judge.write()
    if options.list:
        judge.print_counts()
    return 1 if judge.over else 0


def _relative(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


if __name__ == "__main__":
    sys.exit(main())

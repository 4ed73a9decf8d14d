"""Rust sources as trees: the files of a module, and what a path in one of them leads to.

Parsed by tree-sitter. Tests (`#[cfg(test)]`) are not read, and what a macro makes is unknown; but items between the
braces of a macro, as of `counters! { pub struct ... }`, are read as they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import tree_sitter_rust
from tree_sitter import Language, Node, Parser, Query, QueryCursor

RUST = Language(tree_sitter_rust.language())
ITEMS = frozenset(
    f"{kind}_item" for kind in ("struct", "enum", "union", "function", "const", "static", "trait", "type")
) | {"macro_definition"}
USES = Query(RUST, "(use_declaration) @use")
PATHS = Query(RUST, "[(scoped_identifier) (scoped_type_identifier)] @path")
NAMES = Query(RUST, "[(identifier) (type_identifier)] @name")
SCOPED = frozenset({"scoped_identifier", "scoped_type_identifier", "scoped_use_list", "use_wildcard"})

Segments = tuple[str, ...]


def text(node: Node | None) -> str:
    """Its source."""
    return "" if node is None or node.text is None else node.text.decode()


def line_of(node: Node) -> int:
    """Its first line, from 1."""
    return node.start_point.row + 1


def find_all(query: Query, node: Node) -> list[Node]:
    """What the query's one capture finds below a node, in the order of the source."""
    found = [nodes for nodes in QueryCursor(query).captures(node).values() if nodes]
    return sorted((node for nodes in found for node in nodes), key=lambda node: node.start_byte)


def is_for_tests(item: Node) -> bool:
    """Whether an attribute of it says so."""
    before = item.prev_named_sibling
    while before is not None and before.type in {"attribute_item", "line_comment", "block_comment"}:
        if text(before).replace(" ", "") in {"#[cfg(test)]", "#[test]"}:
            return True
        before = before.prev_named_sibling
    return False


def items(parent: Node) -> Iterator[Node]:
    """Items of a file or of a block of declarations, tests left out."""
    for node in parent.named_children:
        if not is_for_tests(node):
            yield node


def visibility(item: Node) -> str:
    """`pub`, `pub(super)` and so on; empty where there is none."""
    return next((text(child) for child in item.children if child.type == "visibility_modifier"), "")


@dataclass
class File:
    """A file of a module, tests left out."""

    path: Path
    module: Segments
    """From the folder's module on: `("sctp", "loss")`."""
    source: bytes
    tops: list[Node] = field(default_factory=list)
    """Items, those of modules in the file and of macros' braces among them."""
    children: set[str] = field(default_factory=set)
    """Modules in files of their own."""
    lines: int = 0
    """Of the file, less those of tests in it."""

    @cached_property
    def defined(self) -> set[str]:
        """Names of the items that are defined here."""
        return {text(item.child_by_field_name("name")) for item in self.tops if item.type in ITEMS}

    @cached_property
    def imports(self) -> list[Import]:
        """What its `use` declarations name, those in functions among them."""
        found = []
        for item in self.tops:
            for use in find_all(USES, item):
                argument = use.child_by_field_name("argument")
                assert argument is not None
                leaves = list(_leaves(argument, ()))
                found += [Import(use, segments, name, visibility(use) != "") for segments, name in leaves]
        return found

    @cached_property
    def names(self) -> set[str]:
        """Identifiers outside of `use` declarations."""
        return {text(name) for item in self.tops if item.type != "use_declaration" for name in find_all(NAMES, item)}


@dataclass
class Import:
    """One name of a `use` declaration."""

    node: Node
    segments: Segments
    name: str
    """What it is called here; `*` for all."""
    is_public: bool


def _leaves(node: Node, before: Segments) -> Iterator[tuple[Segments, str]]:
    if node.type == "use_as_clause":
        path, alias = node.child_by_field_name("path"), node.child_by_field_name("alias")
        assert path is not None
        yield before + segments_of(path), text(alias)
    elif node.type == "scoped_use_list":
        path, entries = node.child_by_field_name("path"), node.child_by_field_name("list")
        assert entries is not None
        yield from _leaves(entries, before + (segments_of(path) if path is not None else ()))
    elif node.type == "use_list":
        for entry in node.named_children:
            yield from _leaves(entry, before)
    elif node.type == "use_wildcard":
        yield before + segments_of(node.named_children[0]), "*"
    elif node.type == "self":
        yield before or ("self",), before[-1] if before else "self"
    elif node.type in {"identifier", "scoped_identifier", "crate", "super"}:
        segments = before + segments_of(node)
        yield segments, segments[-1]


def segments_of(node: Node) -> Segments:
    """`a::b` as a tuple; empty where the path begins with something else than names, such as `<T as U>::f`."""
    if node.type in SCOPED:
        path, name = node.child_by_field_name("path"), node.child_by_field_name("name")
        before = segments_of(path) if path is not None else ("",)
        return (*before, text(name)) if before else ()
    if node.type in {"identifier", "type_identifier", "crate", "super", "self", "metavariable"}:
        return (text(node),)
    return ()


def _absolute(module: Segments, segments: Segments) -> tuple[Segments, Segments]:
    """The module that a path in `module` begins in, and the rest of it."""
    if segments[0] == "crate":
        return segments[1:2], segments[2:]
    if segments[0] == "self":
        return module, segments[1:]
    while segments and segments[0] == "super":
        module, segments = module[:-1], segments[1:]
    return module, segments


class Sources:
    """The files of a folder with a `mod.rs`, as its `mod` declarations name them."""

    def __init__(self, folder: Path) -> None:
        """Reads them."""
        self.parser = Parser(RUST)
        self.files: dict[Segments, File] = {}
        self._read(folder / "mod.rs", (folder.name,), folder)

    def _read(self, path: Path, module: Segments, folder: Path) -> None:
        source = path.read_bytes()
        root = self.parser.parse(source).root_node
        file = File(path, module, source)
        file.lines = source.count(b"\n") - sum(
            node.end_point.row - node.start_point.row + 1
            for node in root.named_children
            if is_for_tests(node) and node.child_by_field_name("body") is not None
        )
        self.files[module] = file
        self._gather(file, root, folder)

    def _gather(self, file: File, parent: Node, folder: Path) -> None:
        for item in items(parent):
            body = item.child_by_field_name("body")
            if item.type == "mod_item" and body is None:
                name = text(item.child_by_field_name("name"))
                file.children.add(name)
                flat = folder / f"{name}.rs"
                self._read(flat if flat.exists() else folder / name / "mod.rs", (*file.module, name), folder / name)
            elif item.type == "mod_item" and body is not None:
                self._gather(file, body, folder)
            elif item.type == "macro_invocation":
                self._gather_macro(file, item)
            elif item.type == "expression_statement" and item.named_children[0].type == "macro_invocation":
                self._gather_macro(file, item.named_children[0])
            else:
                file.tops.append(item)

    def _gather_macro(self, file: File, invocation: Node) -> None:
        """What stands between its braces, if that reads as items."""
        tree = next((child for child in invocation.children if child.type == "token_tree"), None)
        if tree is None:
            return
        # as many line ends as before it, so that lines stay what they are
        before = b"\n" * tree.start_point.row
        inside = self.parser.parse(before + file.source[tree.start_byte + 1 : tree.end_byte - 1]).root_node
        if not inside.has_error:
            file.tops += items(inside)

    def lead_to(self, file: File, segments: Segments) -> File | None:
        """The file that defines what a path in `file` names; none if that is elsewhere.

        A name that a module only passes on (`pub use`) leads to where it comes from.
        """
        return self._lead_to(file, segments, set())

    def _lead_to(self, file: File, segments: Segments, seen: set[tuple[Segments, Segments]]) -> File | None:
        if not segments or (file.module, segments) in seen:
            return None
        seen.add((file.module, segments))
        module, rest = _absolute(file.module, segments)
        at = self.files.get(module)
        if at is None or not rest:
            return at
        name = rest[0]
        if name in at.children:
            return self._lead_to(self.files[*module, name], ("self", *rest[1:]), seen)
        if name in at.defined:
            return at
        # `use smallvec::smallvec` leads to itself, that is to another crate.
        named = [one.segments for one in at.imports if one.name == name and one.segments[0] != name]
        all_of = [one.segments for one in at.imports if one.name == "*"]
        tried = [one + rest[1:] for one in named[:1]] or [one + rest for one in all_of]
        found = (self._lead_to(at, one, seen) for one in tried)
        return next((there for there in found if there is not None), None)

    def uses(self, file: File) -> dict[Segments, int]:
        """Modules of the files that it depends on, each with the first line that says so.

        A name that is only passed on (`pub use`) is not used.
        """
        found: dict[Segments, int] = {}

        def add(segments: Segments, line: int) -> None:
            there = self.lead_to(file, segments)
            if there is not None and there is not file:
                found.setdefault(there.module, line)

        for one in file.imports:
            if not one.is_public or one.name in file.names:
                add(one.segments, line_of(one.node))
        for item in file.tops:
            if item.type != "use_declaration":
                for path in find_all(PATHS, item):
                    if path.parent is None or path.parent.type not in SCOPED | {"visibility_modifier"}:
                        add(segments_of(path), line_of(path))
        return found


def circles(edges: dict[Segments, set[Segments]]) -> list[list[Segments]]:
    """Strongly connected components of more than one node (Tarjan), sorted."""
    index: dict[Segments, int] = {}
    low: dict[Segments, int] = {}
    stack: list[Segments] = []
    found: list[list[Segments]] = []

    def visit(node: Segments) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for there in sorted(edges.get(node, ())):
            if there not in index:
                visit(there)
                low[node] = min(low[node], low[there])
            elif there in stack:
                low[node] = min(low[node], index[there])
        if low[node] == index[node]:
            at = stack.index(node)
            component = stack[at:]
            del stack[at:]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return sorted(found)

"""The structs, methods and `impl`s of a protocol machine's folder, and which structs are written to from where."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from rust_source import RUST, File, Sources, find_all, items, line_of, text, visibility
from tree_sitter import Node, Query

TYPES = Query(RUST, "(type_identifier) @type")
WRITES = Query(
    RUST,
    """[(assignment_expression left: (_) @place) (compound_assignment_expr left: (_) @place)
        (reference_expression (mutable_specifier) value: (_) @place)
        (call_expression function: (field_expression) @place)]""",
)
IDENTIFIERS = Query(RUST, "[(identifier) (shorthand_field_identifier)] @name")
# Methods of the standard library and of bytes that change what they are called on.
CHANGE = frozenset(
    {
        *(
            "append",
            "as_mut",
            "clear",
            "drain",
            "entry",
            "extend",
            "extend_from_slice",
            "fill",
            "first_entry",
            "first_mut",
        ),
        *(
            "get_mut",
            "get_or_insert",
            "get_or_insert_with",
            "insert",
            "insert_many",
            "iter_mut",
            "last_entry",
            "last_mut",
        ),
        *(
            "pop",
            "pop_back",
            "pop_first",
            "pop_front",
            "pop_last",
            "push",
            "push_back",
            "push_front",
            "remove",
            "replace",
        ),
        *("resize", "retain", "retain_mut", "rotate_left", "sort", "sort_by", "sort_by_key", "sort_unstable"),
        *("sort_unstable_by_key", "splice", "split_off", "swap", "swap_remove", "take", "truncate", "values_mut"),
    }
)
# Methods of the standard library whose result is not a part of what they are called on.
OWNED = frozenset(
    {
        *(
            "clone",
            "cloned",
            "copied",
            "collect",
            "drain",
            "len",
            "pop",
            "pop_back",
            "pop_first",
            "pop_front",
            "remove",
        ),
        *("replace", "take", "to_vec"),
    }
)
# Of a type, that it lends out something to be changed.
LENDS = re.compile(r"&\s*('\w+\s+)?mut\b")


@dataclass
class Struct:
    """A struct of a machine."""

    name: str
    file: File
    node: Node
    fields: list[tuple[str, Node, Node]]
    """Name, declaration, type."""
    line: int
    written: tuple[Path, int] | None = None
    """Where a field of it is written as part of something else."""
    has_methods_that_write: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether others may take it apart."""
        return self.written is None and not self.has_methods_that_write


@dataclass
class Method:
    """A function of an `impl`, or a free one (`owner` is empty)."""

    owner: str
    file: File
    node: Node
    in_trait: bool

    @property
    def name(self) -> str:
        """As called."""
        return text(self.node.child_by_field_name("name"))

    @property
    def full_name(self) -> str:
        """With its type."""
        return f"{self.owner}::{self.name}" if self.owner else self.name

    @property
    def takes_mut_self(self) -> bool:
        """`&mut self`."""
        parameters = self.node.child_by_field_name("parameters")
        assert parameters is not None
        return any(re.match(r"&('\w+ )?mut self", text(p)) for p in parameters.named_children)

    @property
    def parameters(self) -> list[tuple[str, Node]]:
        """Name and type of each but `self`."""
        parameters = self.node.child_by_field_name("parameters")
        assert parameters is not None
        found = []
        for parameter in parameters.named_children:
            pattern, kind = parameter.child_by_field_name("pattern"), parameter.child_by_field_name("type")
            if parameter.type == "parameter" and pattern is not None and kind is not None:
                found.append((text(pattern), kind))
        return found


def _fields(struct: Node) -> list[tuple[str, Node, Node]]:
    body = struct.child_by_field_name("body")
    if body is None:
        return []
    if body.type == "field_declaration_list":
        found = []
        for one in items(body):
            kind = one.child_by_field_name("type")
            if one.type == "field_declaration" and kind is not None:
                found.append((text(one.child_by_field_name("name")), one, kind))
        return found
    # A visibility and an attribute stand beside a type, not around it.
    types = [n for n in body.named_children if n.type not in {"visibility_modifier", "attribute_item", "line_comment"}]
    return [(str(number), node, node) for number, node in enumerate(types)]


def field_visibility(node: Node) -> str:
    """As `visibility`, of a field; one of a tuple has it beside its type."""
    if node.type == "field_declaration":
        return visibility(node)
    before = node.prev_named_sibling
    return text(before) if before is not None and before.type == "visibility_modifier" else ""


class Machine:
    """A folder's structs and methods, and what is found in them."""

    def __init__(self, folder: Path) -> None:
        """Reads it."""
        self.sources = Sources(folder)
        self.structs: dict[str, list[Struct]] = defaultdict(list)
        self.enums: set[str] = set()
        self.methods: list[Method] = []
        self.returns: dict[tuple[str, str], Node] = {}
        self.changes: set[tuple[str, str]] = set()
        """Methods that take `&mut self`."""
        self.impls: dict[str, dict[Path, int]] = defaultdict(dict)
        for file in self.sources.files.values():
            for item in file.tops:
                self._read(file, item)
        for method in self.methods:
            returned = method.node.child_by_field_name("return_type")
            if returned is not None:
                self.returns[method.owner, method.name] = returned
            if method.takes_mut_self:
                self.changes.add((method.owner, method.name))
                for struct in self.structs.get(method.owner, ()):
                    struct.has_methods_that_write = True
        for method in self.methods:
            Body(self, method).note_writes()

    def _read(self, file: File, item: Node) -> None:
        if item.type == "struct_item":
            name = text(item.child_by_field_name("name"))
            self.structs[name].append(Struct(name, file, item, _fields(item), line_of(item)))
        elif item.type == "enum_item":
            self.enums.add(text(item.child_by_field_name("name")))
        elif item.type == "function_item":
            self.methods.append(Method("", file, item, in_trait=False))
        elif item.type in {"impl_item", "trait_item"}:
            kind = item.child_by_field_name("type" if item.type == "impl_item" else "name")
            assert kind is not None
            names = [kind, *find_all(TYPES, kind)] if kind.type != "type_identifier" else [kind]
            name = next(text(node) for node in names if node.type == "type_identifier" or len(names) == 1)
            in_trait = item.type == "trait_item" or item.child_by_field_name("trait") is not None
            if not in_trait:
                self.impls[name].setdefault(file.path, line_of(item))
            body = item.child_by_field_name("body")
            for inside in items(body) if body is not None else ():
                if inside.type == "function_item":
                    self.methods.append(Method(name, file, inside, in_trait))

    def struct(self, name: str, file: File) -> Struct | None:
        """The one of that name that `file` means."""
        found = self.structs.get(name, ())
        return next((s for s in found if s.file is file), found[0] if found else None)

    def innermost(self, kind: Node) -> str:
        """The struct of this machine that a type holds: `Path` for `Option<SmallVec<[Path; 2]>>`."""
        names = [text(kind)] if kind.type == "type_identifier" else [text(n) for n in find_all(TYPES, kind)]
        return next((n for n in reversed(names) if n in self.structs or n in self.enums or n == "Self"), "")


@dataclass(frozen=True)
class Place:
    """What an expression is: the struct it holds, and whether that is part of something that outlives the function."""

    struct: str
    is_part: bool


NOWHERE = Place("", is_part=False)


@dataclass
class Body:
    """What a function writes to."""

    machine: Machine
    method: Method
    bound: dict[str, Place] = field(default_factory=dict)

    def note_writes(self) -> None:
        """Marks the structs that it writes to as parts of something else."""
        body = self.method.node.child_by_field_name("body")
        if body is None:
            return
        self.bound["self"] = Place(self.method.owner, self.method.takes_mut_self)
        for name, kind in self.method.parameters:
            is_part = LENDS.search(text(kind)) is not None
            self.bound[name.removeprefix("mut ")] = Place(self._named(self.machine.innermost(kind)), is_part)
        self._bind(body)
        for place in find_all(WRITES, body):
            self._note(place)

    def _named(self, name: str) -> str:
        return self.method.owner if name == "Self" else name

    def _note(self, place: Node) -> None:
        called = place.parent is not None and place.parent.type == "call_expression"
        node: Node | None = place
        if called:
            on, name = place.child_by_field_name("value"), text(place.child_by_field_name("field"))
            assert on is not None
            # What changes its own kind through `&mut self` is no plain value anyway; what it is part of is written to.
            if name not in CHANGE and (self._place(on).struct, name) not in self.machine.changes:
                return
            node = on
        # Every field on the way is written to, as far as it leads through parts.
        while node is not None:
            if node.type == "field_expression":
                value = node.child_by_field_name("value")
                assert value is not None
                self._mark(self._place(value), text(node.child_by_field_name("field")), line_of(node))
                node = value
            elif node.type in {"index_expression", "unary_expression", "parenthesized_expression", "try_expression"}:
                node = node.named_children[0]
            elif node.type == "call_expression":
                function = node.child_by_field_name("function")
                is_method = function is not None and function.type == "field_expression"
                node = function.child_by_field_name("value") if function is not None and is_method else None
            else:
                node = None

    def _mark(self, place: Place, name: str, line: int) -> None:
        if not place.is_part or not place.struct:
            return
        struct = self.machine.struct(place.struct, self.method.file)
        if struct is not None and struct.written is None and any(name == one for one, _, _ in struct.fields):
            struct.written = (self.method.file.path, line)

    def _bind(self, node: Node) -> None:
        """What the names are that `let`, `for`, `match` and closures bind; of two of a name, the one that is a part."""
        for child in node.named_children:
            pattern, value = child.child_by_field_name("pattern"), child.child_by_field_name("value")
            if child.type in {"let_declaration", "let_condition", "for_expression"} and pattern is not None:
                kind = child.child_by_field_name("type")
                if value is not None:
                    place = self._place(value)
                    if kind is not None and self.machine.innermost(kind):
                        place = Place(self._named(self.machine.innermost(kind)), place.is_part)
                    self._bind_pattern(pattern, place)
            elif child.type == "match_expression" and value is not None:
                place = self._place(value)
                body = child.child_by_field_name("body")
                for arm in body.named_children if body is not None else ():
                    inside = arm.child_by_field_name("pattern")
                    if inside is not None:
                        self._bind_pattern(inside, place)
            elif child.type == "call_expression":
                self._bind_closures(child)
            self._bind(child)

    def _bind_pattern(self, pattern: Node, place: Place) -> None:
        for name in [pattern] if pattern.type == "identifier" else find_all(IDENTIFIERS, pattern):
            known = self.bound.get(text(name), NOWHERE)
            if text(name) != "self" and not (known.is_part and known.struct):
                self.bound[text(name)] = place

    def _bind_closures(self, call: Node) -> None:
        """`paths.iter_mut().for_each(|path| ...)`: what the closure is given is of what it is called on."""
        function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
        if function is None or arguments is None or function.type != "field_expression":
            return
        value = function.child_by_field_name("value")
        for argument in arguments.named_children:
            parameters = argument.child_by_field_name("parameters") if argument.type == "closure_expression" else None
            if parameters is not None and value is not None:
                self._bind_pattern(parameters, self._place(value))

    def _place(self, node: Node) -> Place:
        if node.type in {"identifier", "self"}:
            return self.bound.get(text(node), NOWHERE)
        if node.type in {"index_expression", "unary_expression", "parenthesized_expression", "try_expression"}:
            return self._place(node.named_children[0])
        if node.type == "reference_expression":
            value = node.child_by_field_name("value")
            return self._place(value) if value is not None else NOWHERE
        if node.type == "field_expression":
            return self._field(node)
        if node.type == "call_expression":
            return self._call(node)
        if node.type == "struct_expression":
            name = node.child_by_field_name("name")
            return Place(self._named(self.machine.innermost(name)) if name is not None else "", is_part=False)
        return NOWHERE

    def _field(self, node: Node) -> Place:
        value, name = node.child_by_field_name("value"), text(node.child_by_field_name("field"))
        assert value is not None
        place = self._place(value)
        struct = self.machine.struct(place.struct, self.method.file)
        for one, _, kind in struct.fields if struct is not None else ():
            if one == name:
                return Place(self.machine.innermost(kind), place.is_part)
        return NOWHERE

    def _call(self, node: Node) -> Place:
        function = node.child_by_field_name("function")
        assert function is not None
        if function.type == "field_expression":
            value, name = function.child_by_field_name("value"), text(function.child_by_field_name("field"))
            assert value is not None
            place = self._place(value)
            returned = self.machine.returns.get((place.struct, name))
            if returned is not None:
                lends = LENDS.search(text(returned)) is not None
                inner = self.machine.innermost(returned)
                return Place(place.struct if inner == "Self" else inner, place.is_part and lends)
            if (place.struct, name) in self.machine.changes:
                return NOWHERE
            return Place(place.struct, place.is_part and name not in OWNED)
        if function.type == "scoped_identifier":
            owner = self._named(text(function.child_by_field_name("path")))
            returned = self.machine.returns.get((owner, text(function.child_by_field_name("name"))))
            inner = self.machine.innermost(returned) if returned is not None else ""
            return Place(owner if inner == "Self" or returned is None else inner, is_part=False)
        return NOWHERE

"""scripts/structure.py finds what it says, and nothing where there is nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import structure
from rust_machine import Machine
from rust_source import circles

CLEAN = {
    "mod.rs": """
        mod flight;
        mod rules;
        pub use rules::Rules;
        pub use flight::Flight;
    """,
    "flight.rs": """
        use super::Rules;
        /// Owner of what is under way.
        pub struct Flight { bytes: u32, sent: Vec<Sent>, rules: Rules, at: Option<Instant> }
        struct Sent { tsn: u32, state: u8 }
        /// What an acknowledgement brought.
        pub struct Outcome { pub acknowledged: u32, pub(super) lost: Vec<u32> }
        impl Flight {
            pub fn acknowledge(&mut self, tsn: u32) -> Outcome {
                let mut outcome = Outcome { acknowledged: 0, lost: Vec::new() };
                outcome.acknowledged += tsn;
                outcome.lost.push(tsn);
                for sent in &mut self.sent { sent.state = 1; }
                self.bytes -= 1;
                outcome
            }
            pub fn note_sent(&mut self, now: Instant) { self.at = Some(now); }
            pub fn bytes(&self) -> u32 { self.bytes }
            fn find(&mut self, tsn: u32) -> Option<&mut Sent> { self.sent.iter_mut().find(|s| s.tsn == tsn) }
        }
    """,
    "rules.rs": "pub struct Rules { pub mtu: u32, pub burst: u32 }",
}


def machine(folder: Path, sources: dict[str, str]) -> Machine:
    root = folder / "toy"
    for name, text in sources.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Machine(root)


def found(folder: Path, sources: dict[str, str]) -> list[tuple[str, str]]:
    return [(f.kind, f.subject) for f in structure.findings(machine(folder, sources))]


def with_impl(text: str) -> dict[str, str]:
    return CLEAN | {"rules.rs": CLEAN["rules.rs"] + text}


def test_nothing_is_found_in_a_clean_machine(tmp_path: Path) -> None:
    assert found(tmp_path, CLEAN) == []


def test_what_is_for_tests_is_not_read(tmp_path: Path) -> None:
    bad = "pub struct Open { pub a: u8 } impl Open { pub fn set_a(&mut self, a: u8) { self.a = a; } }" + "\n" * 600
    inside = f"\n#[cfg(test)]\nmod tests {{ {bad} }}"
    assert found(tmp_path, with_impl(inside)) == []
    assert found(tmp_path, with_impl("\n#[cfg(test)]\nmod tests;") | {"rules/tests.rs": bad}) == []
    assert ("accessor", "Open::set_a") in found(tmp_path, with_impl(bad))


def test_structs_of_many_fields(tmp_path: Path) -> None:
    def struct(fields: int) -> dict[str, str]:
        return with_impl(f"struct Big {{ {', '.join(f'f{n}: u8' for n in range(fields))} }}")

    assert found(tmp_path, struct(15)) == []
    assert found(tmp_path, struct(16)) == [("large-struct", "Big")]


def test_structs_in_the_braces_of_a_macro_are_read(tmp_path: Path) -> None:
    fields = ", ".join(f"pub f{n}" for n in range(16))
    typed = fields.replace(",", ": u8,") + ": u8"
    sources = with_impl(f"counters! {{ pub struct Counters {{ {typed} }} }}")
    assert found(tmp_path, sources) == [("large-struct", "Counters")]


@pytest.mark.parametrize("visibility", ["pub", "pub(super)", "pub(crate)", "pub(in crate::toy)"])
def test_open_fields_of_a_struct_with_methods_that_write(tmp_path: Path, visibility: str) -> None:
    sources = with_impl(
        f"struct S {{ {visibility} a: u8, b: u8 }} impl S {{ fn f(&mut self) {{ self.b += self.a; }} }}"
    )
    assert found(tmp_path, sources) == [("open-field", "S")]


def test_open_fields_of_a_tuple(tmp_path: Path) -> None:
    sources = with_impl("struct S(pub u8, u8, pub(super) u16); impl S { fn f(&mut self) { self.0 += 1; } }")
    assert found(tmp_path, sources) == [("open-field", "S")] * 2


@pytest.mark.parametrize(
    "body",
    [
        "self.all[0].a = 1;",
        "self.one.as_mut().unwrap().a += 1;",
        "if let Some(bag) = &mut self.one { bag.a = 1; }",
        "for bag in self.all.iter_mut() { bag.a = 1; }",
        "self.all.iter_mut().for_each(|bag| bag.a = 1);",
        "let Some(bag) = self.all.get_mut(0) else { return }; bag.a = 1;",
        "let a = &mut self.all[0].a;",
        "self.all[0].list.push(1);",
        "self.find().a = 1;",
        "match self.one.as_mut() { Some(bag) => bag.a = 1, None => {} }",
    ],
)
def test_a_struct_whose_fields_are_written_as_parts_is_no_plain_value(tmp_path: Path, body: str) -> None:
    owner = """
        struct Owner { all: Vec<Bag>, one: Option<Box<Bag>> }
        struct Bag { pub(super) a: u8, list: Vec<u8> }
        impl Owner {
            fn find(&mut self) -> &mut Bag { &mut self.all[0] }
            fn act(&mut self) { BODY }
        }
    """
    assert found(tmp_path, with_impl(owner.replace("BODY", body))) == [("open-field", "Bag")]
    read = "let bag = &self.all[0]; let mut mine = bag.clone(); mine.a = 1; self.all.push(mine);"
    assert found(tmp_path, with_impl(owner.replace("BODY", read))) == []


def test_a_struct_that_a_free_function_changes_for_others_is_no_plain_value(tmp_path: Path) -> None:
    sources = with_impl("struct Bag { pub a: u8 } fn f(bag: &mut Bag) { bag.a = 1; }")
    assert found(tmp_path, sources) == [("open-field", "Bag")]


@pytest.mark.parametrize(
    ("method", "counted"),
    [
        ("pub fn a_mut(&mut self) -> &mut Bag { &mut self.a }", True),
        ("pub(super) fn find(&mut self, n: u8) -> Option<&mut Bag> { None }", True),
        ("pub fn all(&mut self) -> impl Iterator<Item = &mut Bag> { self.l.iter_mut() }", True),
        ("pub fn set_burst(&mut self, n: u8) { self.n = n.max(1); }", True),
        ("pub(crate) fn learn_burst(&mut self, n: u8) { self.burst = n; }", True),
        ("pub fn burst_and_bag(&mut self, n: u8, a: Bag) { self.burst = n; self.bag = Some(a); }", True),
        ("pub fn begin(&mut self, n: u8) { self.burst = n; }", False),
        ("fn a_mut(&mut self) -> &mut Bag { &mut self.a }", False),
        ("pub fn a(&self) -> &Bag { &self.a }", False),
        ("pub fn lose(&mut self, n: u8) { self.n = n; self.count(); }", False),
        ("pub fn sent(&mut self, now: Instant) { self.at = Some(now); }", False),
        ("pub fn with(mut self, n: u8) -> Self { self.n = n; self }", False),
    ],
)
def test_accessors_and_setters(tmp_path: Path, method: str, counted: bool) -> None:
    sources = with_impl(f"struct Bag; struct S {{ n: u8, a: Bag }} impl S {{ {method} }}")
    assert [kind for kind, _ in found(tmp_path, sources)] == ["accessor"] * counted


def test_an_index_that_hands_out_a_part(tmp_path: Path) -> None:
    sources = with_impl(
        "struct S { n: u8 } impl IndexMut<u8> for S { fn index_mut(&mut self, at: u8) -> &mut u8 { &mut self.n } }"
    )
    assert found(tmp_path, sources) == [("accessor", "S::index_mut")]


def test_a_type_whose_methods_are_in_several_files(tmp_path: Path) -> None:
    again = "use super::Flight; impl Flight { pub fn more(&self) {} }"
    sources = CLEAN | {"mod.rs": CLEAN["mod.rs"] + "mod more;", "more.rs": again}
    assert found(tmp_path, sources) == [("impl-file", "Flight")] * 2


@pytest.mark.parametrize(
    "back",
    [
        "use super::flight::Flight;",
        "use crate::toy::flight::Outcome as Result;",
        "use super::{Flight as Sky, Rules as R};",
        "use super::Flight as F;",
        "fn f() { super::flight::Flight::new() }",
        "fn f() { use super::Flight; }",
        "use super::*; type T = u8;",
    ],
)
def test_files_that_import_each_other(tmp_path: Path, back: str) -> None:
    sources = with_impl(back)
    expected = [("circle", "toy::flight"), ("circle", "toy::rules")]
    # a name that is not used of all that are imported says nothing
    assert found(tmp_path, sources) == ([] if "*" in back else expected)


def test_files_that_import_each_other_through_a_third(tmp_path: Path) -> None:
    sources = {
        "mod.rs": "mod a; mod b; mod c { pub mod d; }",
        "a.rs": "use super::b::{self, X}; pub struct Y;",
        "b.rs": "pub use super::deep::Y; pub struct X;",
    }
    sources = sources | {"mod.rs": "mod a; mod b; mod deep;", "deep/mod.rs": "mod low; pub use low::Y;"}
    sources["deep/low.rs"] = "use super::super::a::Y as Z; pub struct Y { z: Z }"
    # b only passes Y on
    assert found(tmp_path, sources) == []
    sources["b.rs"] += " struct W { y: Y }"
    circle = [subject for kind, subject in found(tmp_path, sources) if kind == "circle"]
    assert circle == ["toy::a", "toy::b", "toy::deep::low"]


def test_circles_of_a_graph() -> None:
    a, b, c, d = (("a",), ("b",), ("c",), ("d",))
    assert circles({a: {b}, b: {c}, c: {d}, d: set()}) == []
    assert circles({a: {b}, b: {a, c}, c: {d}, d: {c}}) == [[a, b], [c, d]]
    assert circles({a: {b}, b: {c}, c: {a}, d: {a}}) == [[a, b, c]]


def test_long_functions_and_files(tmp_path: Path) -> None:
    def function(lines: int) -> dict[str, str]:
        return with_impl("\nfn f() {" + "\n" * (lines - 1) + "}")

    def file(lines: int) -> dict[str, str]:
        return CLEAN | {"rules.rs": CLEAN["rules.rs"] + "\n" * lines}

    assert found(tmp_path, function(80)) == []
    assert found(tmp_path, function(81)) == [("long-function", "f")]
    assert found(tmp_path, file(500)) == []
    assert found(tmp_path, file(501)) == [("long-file", "rules")]


def limits(folder: Path, exceptions: str = "", **allowed: int) -> Path:
    lines = [f"{kind} = {allowed.get(kind.replace('-', '_'), 0)}" for kind in structure.KINDS]
    file = folder / "structure.toml"
    file.write_text("\n".join(["[machine.toy]", 'folder = "toy"', *lines, exceptions]))
    return file


def test_a_count_above_its_limit_fails_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine(tmp_path, with_impl("\nstruct S(pub u8);\nimpl S { fn f(&mut self) {} }"))
    assert structure.main(["--limits", str(limits(tmp_path))]) == 1
    shown = capsys.readouterr()
    assert f"{tmp_path}/toy/rules.rs:2: open-field: S.0 is pub" in shown.out
    assert "toy: 1 of open-field, and 0 are allowed" in shown.err
    assert structure.main(["--limits", str(limits(tmp_path, open_field=1))]) == 0
    assert capsys.readouterr().out == ""


def test_a_count_below_its_limit_asks_for_a_lower_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine(tmp_path, with_impl("struct S(pub u8); impl S { fn f(&mut self) {} }"))
    table = limits(tmp_path, open_field=3, circle=2)
    assert structure.main(["--limits", str(table)]) == 0
    assert capsys.readouterr().out.count("lower its limit") == 2
    assert structure.main(["--lower", "--limits", str(table)]) == 0
    capsys.readouterr()
    assert table.read_text() == limits(tmp_path, open_field=1).read_text()


def test_an_exception_is_not_counted_and_one_for_nothing_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine(tmp_path, with_impl("struct S(pub u8); impl S { fn f(&mut self) {} }"))
    entry = '[[exception]]\nmachine = "toy"\nkind = "open-field"\nname = "{}"\nreason = "none"\n'
    assert structure.main(["--limits", str(limits(tmp_path, entry.format("S")))]) == 0
    assert capsys.readouterr().out == ""
    assert structure.main(["--limits", str(limits(tmp_path, entry.format("T"), open_field=1))]) == 0
    assert "the exception T (open-field) excepts nothing" in capsys.readouterr().out


def test_the_machines_are_within_their_limits() -> None:
    assert structure.main([]) == 0


def test_every_exception_of_ours_has_a_reason() -> None:
    for exception in structure.Judge(structure.LIMITS).exceptions:
        assert len(exception["reason"]) > 20, exception
        assert exception["kind"] in structure.KINDS


def test_a_name_that_is_bound_twice_stands_for_the_part(tmp_path: Path) -> None:
    sources = with_impl(
        """
        struct Owner { all: Vec<Bag> }
        struct Bag { pub a: u8 }
        impl Owner {
            fn act(&mut self) -> Option<Bag> {
                let bag = self.all.first_mut()?;
                bag.a = 1;
                if bag.a > 2 { let bag = self.all.pop()?; return Some(bag); }
                None
            }
        }
        """
    )
    assert found(tmp_path, sources) == [("open-field", "Bag")]

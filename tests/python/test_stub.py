"""The stub of the native module says what is there, and nothing else."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from segue import _native
from segue.scenarios import load

STUB = ast.parse((Path(_native.__file__).parent / "_native.pyi").read_text())
# In the stub to give `Run.table` a type; the class is that of the Arrow glue.
ONLY_IN_STUB = {"ArrowTable"}


def stub_names() -> dict[str, ast.stmt]:
    names: dict[str, ast.stmt] = {}
    for node in STUB.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names[node.name] = node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = node
    return names


def test_names_are_the_same() -> None:
    public = {name for name in dir(_native) if not name.startswith("__") or name == "__version__"}
    assert set(stub_names()) - ONLY_IN_STUB == public


@pytest.mark.parametrize("name", ["analyze", "identities", "run", "run_many", "check", "Job"])
def test_signatures_are_the_same(name: str) -> None:
    node = stub_names()[name]
    if isinstance(node, ast.ClassDef):
        node = next(n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__new__")
    assert isinstance(node, ast.FunctionDef)
    arguments = [a.arg for a in node.args.args if a.arg != "cls"]
    defaults = [ast.literal_eval(default) for default in node.args.defaults]
    signature = inspect.signature(getattr(_native, name))
    assert list(signature.parameters) == arguments
    given = [p.default for p in signature.parameters.values() if p.default is not inspect.Parameter.empty]
    assert given == defaults


@pytest.mark.parametrize("name", ["Run", "ScenarioInfo"])
def test_members_are_the_same(name: str) -> None:
    node = stub_names()[name]
    assert isinstance(node, ast.ClassDef)
    members = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
    assert members == {member for member in dir(getattr(_native, name)) if not member.startswith("__")}


def test_arrow_table_has_the_capsule_methods() -> None:
    run = _native.run(_native.Job(load("sigma").text, "sigma.toml", [("duration", "1 s")], 1, True))
    table = run.table("packets")
    assert hasattr(table, "__arrow_c_stream__")
    assert hasattr(table, "__arrow_c_schema__")
    assert run.table("nothing") is None

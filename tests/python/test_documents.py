"""What the README shows is what runs give."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import polars as pl

from segue.papers.ilnp import experiment as ex
from segue.papers.ilnp import policies
from segue.runner import Runner

ROOT = Path(__file__).resolve().parents[2]
TABLE = pl.read_csv(ROOT / "docs" / "ilnp-settings.csv")


def test_the_readme_has_the_table_of_settings_as_it_was_made() -> None:
    spec = importlib.util.spec_from_file_location("settings_table", ROOT / "scripts" / "settings_table.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    text = (ROOT / "README.md").read_text()
    assert script.with_table(text, TABLE) == text, "run scripts/settings_table.py"
    assert TABLE["measure"].n_unique() == len(policies.MEASURES) == 5
    assert set(TABLE["setting"]) == set(policies.SETTINGS)


def test_the_table_of_settings_is_what_runs_give() -> None:
    names = ["MIPv6, and eager", "ILNPv6 soft"]
    chosen = {name: policies.SETTINGS[name] for name in names}
    seeds = range(1, ex.SEEDS + 1)
    made = policies.table(policies.run(seeds, settings=chosen.values(), cases=["lan-wan"], runner=Runner()))
    column = ex.CASE_NAMES["lan-wan"]
    now = made.filter(pl.col("setting").is_in(names)).select("measure", "setting", column)
    shown = TABLE.filter(pl.col("setting").is_in(names)).select("measure", "setting", column)
    assert now.rows() == shown.rows(), "make docs"

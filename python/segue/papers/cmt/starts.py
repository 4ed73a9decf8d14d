"""What each part of a quicker start changes for CMT with an ideal buffer: the table beside claim C1."""

from __future__ import annotations

import polars as pl

from segue.papers.cmt import claims
from segue.papers.cmt import experiment as ex
from segue.papers.cmt.model import Scheme

COLUMNS = ("start", "settings", "points near equation (3)", "farthest", "SACKs sent")


def rows(runs: pl.DataFrame, plan: ex.Plan) -> list[list[str]]:
    """A row for the paper's start, and one for each other.

    Args:
        runs: From `experiment.run_points`.
        plan: What was run.
    """
    paper = [p for p in plan.ideal() if p.scheme is Scheme.CMT]
    every = {"as the paper has it": paper} | {name: plan.starts(name) for name in ex.STARTS}
    table = []
    for name, points in every.items():
        one = claims.nearness(runs, points, claims.CLOSE_SHARE, claims.CLOSE_S)
        settings = " ".join(f"{key}={value}" for key, value in ex.STARTS.get(name, {}).items())
        sacks = ex.select(runs, points)["sacks"].sum() / len(plan.seeds)
        table.append([name, settings or "-", f"{one.near} of {one.points}", one.farthest, f"{sacks:,.0f}"])
    return table

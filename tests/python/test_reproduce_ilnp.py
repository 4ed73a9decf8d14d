"""`segue reproduce ilnp` from end to end, with one seed."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from segue.papers.common import Reproduction
from segue.papers.ilnp import experiment as ex
from segue.papers.ilnp.reproduce import reproduce
from segue.running import run

IDS = [*(f"I{n}" for n in range(1, 15)), "S12"]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reproduction]:
    out = tmp_path_factory.mktemp("report")
    return out, reproduce(out, quick=True, seeds=1)


def test_every_claim_is_judged(done: tuple[Path, Reproduction]) -> None:
    out, result = done
    claims = json.loads((out / "claims.json").read_text())
    assert [claim["id"] for claim in claims] == IDS
    assert all(claim["measured"] and claim["criterion"] for claim in claims)
    verdicts = {claim.id: claim.holds for claim in result.claims}
    # what is far from its criterion with any seed
    assert {name for name in ("I1", "I6", "I10", "I11", "I12", "S12") if not verdicts[name]} == set()
    assert verdicts["I9"] is None, "the nonce costs what it should, and the rest is not judged here"
    assert not verdicts["I8"], "route optimisation is late when both hosts move, and does not fail"


def test_figures_9_to_19_are_there_in_both_forms(done: tuple[Path, Reproduction]) -> None:
    out, _ = done
    for name in [
        *(f"figure-{number:02}" for number in range(9, 20)),
        "figure-modern",
        "figure-sctp",
        "figure-settings",
    ]:
        assert (out / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (out / "figures" / f"{name}.svg").read_bytes()[:2000]
        assert (out / "tables" / f"{name}.csv").stat().st_size > 100


@pytest.mark.parametrize("name", ["figure-13", "figure-16", "figure-17", "figure-sctp", "figure-settings"])
def test_figures_of_one_seed_say_that_there_are_no_intervals(done: tuple[Path, Reproduction], name: str) -> None:
    svg = (done[0] / "figures" / f"{name}.svg").read_text()
    assert "<!-- One seed a point: there are no intervals. -->" in svg
    assert "One seed a point: there are no intervals. A line with" in (done[0] / "report.html").read_text()


def test_the_table_has_a_row_for_every_run(done: tuple[Path, Reproduction]) -> None:
    out, _ = done
    runs = pl.read_csv(out / "tables" / "runs-flows.csv")
    assert runs.height == len(ex.points())
    assert runs.select(["case", "scheme", "variant", "profile"]).is_unique().all()
    assert (runs["lost_packets"] <= runs["packets_sent"]).all()
    assert (runs["handoffs"] == 1).all()


def test_a_run_says_what_the_issue_asks_for() -> None:
    document = json.loads(
        run(
            "papers/ilnp",
            {"scheme": "ilnp-hard", "tcp.congestion_control": "veno", "case": "lan-wan"},
            trace=False,
        ).metrics_json
    )
    (handoff,) = document["handoffs"]
    assert 0.15 < handoff["handoff_delay_s"] < 0.3
    (flow,) = document["flows"]
    for key in ("transferred_bytes", "retransmissions", "lost_packets", "spurious_retransmissions", "interruption_s"):
        assert flow[key] is not None
    assert flow["lost_packets"] == sum(flow["lost_by_cause"].values())

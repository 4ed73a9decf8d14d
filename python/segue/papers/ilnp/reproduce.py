"""`segue reproduce ilnp`: runs, figures, tables, claims and the report."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from segue.papers.common import INTERVALS, Beside, Drawn, Reproduction, Stage, alone, silent, write_all
from segue.papers.ilnp import baseline, claims, extras, figures, policies
from segue.papers.ilnp import experiment as ex
from segue.report.html import Section, table, text_section
from segue.runner import Runner
from segue.scenarios import load

BASELINE_SEEDS = 5


def reproduce(
    out: Path,
    *,
    quick: bool = False,
    seeds: int | None = None,
    runner: Runner | None = None,
    stage: Stage | None = None,
    beside: Beside = alone,
) -> Reproduction:
    """Run everything and write it into `out`: see `segue.papers.common.write_all`.

    Args:
        out: Directory; made if missing.
        quick: Two seeds per point, for a first look.
        seeds: Seeds per point.
        runner: Makes the runs; one without a store, if left out.
        stage: Told what is going on.
        beside: Has what real hosts come to put beside the claims.
    """
    tell = stage or silent
    runner = runner or Runner()
    seed_list = list(range(1, (seeds or (ex.QUICK_SEEDS if quick else ex.SEEDS)) + 1))
    results = ex.run(seed_list, runner=runner, progress=lambda done, total: tell("simulating", done, total))
    more = extras.evaluate(
        quick=quick, runner=runner, progress=lambda done, total: tell("losing signalling", done, total)
    )
    over_mip6 = baseline.run(
        seed_list[:BASELINE_SEEDS],
        quick=quick,
        runner=runner,
        progress=lambda done, total: tell("SCTP over Mobile IPv6", done, total),
    )
    settings = policies.run(
        seed_list, runner=runner, progress=lambda done, total: tell("setting by setting", done, total)
    )
    judged = beside([*claims.evaluate(results.runs), *more.claims, baseline.s12(over_mip6)])
    drawing, table = baseline.figure(over_mip6)
    drawn = [
        *figures.draw(results),
        policies.figure(settings),
        Drawn("figure-sctp", "Not in the paper: SCTP over Mobile IPv6 in SIGMA's scenario", drawing, table),
    ]
    runs = results.runs.height + more.runs + over_mip6.height + settings.height
    report = write_all(
        out,
        title="ILNPv6 against Mobile IPv6, reproduced",
        lead="Phoomikiattisak, Bhatti: End-To-End Mobility for the Internet Using ILNP (2019). "
        f"{runs} simulations, {len(seed_list)} seeds per point{', quick' if quick else ''}.",
        claims=judged,
        drawn=drawn,
        tables={
            "flows": results.runs,
            "rates": results.rates,
            "baseline": over_mip6,
            "settings": settings,
            **more.frames,
        },
        closing=[_settings(settings), _method(seed_list), text_section("Scenario", load(ex.SCENARIO).text)],
        stage=tell,
    )
    return Reproduction(judged, report, runs)


def _settings(frame: pl.DataFrame) -> Section:
    """What is the protocol's, what the settings': I1 to I5."""
    rows = policies.table(frame)
    text = (
        f'{policies.intervals(frame)} A line with "and" has what the line above it has, too. The trigger, '
        "the detection of a lost link and the home agent's detection of duplicates are the paper's or its era's; the "
        "last line of each form of Mobile IPv6 is what RFC 6275 allows a host."
    )
    return Section(
        "What is the protocol's, what the settings': I1 to I5",
        f"<p>{text}</p>" + table(rows.columns, rows.rows()),
        "Settings",
    )


def _method(seeds: list[int]) -> Section:
    return text_section(
        "Method",
        f"Seeds {seeds[0]} to {seeds[-1]}. A point is a handover scenario, a scheme, a variant of TCP and a profile of "
        "it. Loss, retransmissions and spurious retransmissions come from the simulator's ledger of packet fates; "
        "tests "
        "hold them against the same figures worked out from the captures of both ends, by sequence numbers, as the "
        "paper "
        f"does. Handoff delay is between messages of the mobility protocol alone. {INTERVALS}",
        preformatted=False,
    )

"""`segue reproduce cmt`: runs, figures, tables, claims and the report."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from segue.papers.cmt import ablation, buffers, claims, figures, remedies, starts
from segue.papers.cmt import experiment as ex
from segue.papers.cmt.model import Scheme
from segue.papers.common import INTERVALS, Reproduction, Stage, silent, write_all
from segue.report.html import Section, table_section, text_section
from segue.runner import Runner
from segue.running import job
from segue.scenarios import load

STEP_S = 0.05
"""Between points of figure 5's curves."""


def reproduce(
    out: Path,
    *,
    quick: bool = False,
    seeds: int | None = None,
    runner: Runner | None = None,
    stage: Stage | None = None,
) -> Reproduction:
    """Run everything and write it into `out`: see `segue.papers.common.write_all`.

    Args:
        out: Directory; made if missing.
        quick: Two seeds per point and fewer points, for a first look.
        seeds: Seeds per point.
        runner: Makes the runs; one without a store, if left out.
        stage: Told what is going on.
    """
    tell = stage or silent
    runner = runner or Runner()
    plan = ex.Plan.of(quick=quick, seeds=seeds)
    received = received_by_scheme(plan.seeds[0], runner=runner)
    runs = ex.run_points(
        plan.points(), plan.seeds, runner=runner, progress=lambda done, total: tell("simulating", done, total)
    )
    tables = {queue: smallest_buffers(runs, plan, queue) for queue in ex.QUEUES}
    without, effects = ablation.run(
        range(1, ablation.SEEDS_TIMES * len(plan.seeds) + 1),
        runner=runner,
        progress=lambda done, total: tell("switching off", done, total),
    )
    beyond = remedies.run(plan, runner=runner, progress=lambda done, total: tell("beyond the paper", done, total))
    judged = [*claims.evaluate(runs, tables[ex.QUEUE], plan), ablation.c6(effects), remedies.c7(beyond)]
    count = len(ex.SCHEMES) + runs.height + without.height + beyond.runs.height
    report = write_all(
        out,
        title="mSCTP with concurrent multipath transfer, reproduced",
        lead="Budzisz, Ferrús, Casadevall, Amer: On Concurrent Multipath Transfer in SCTP-based handover scenarios "
        f"(2009). {count} simulations, {len(plan.seeds)} seeds per point{', quick' if quick else ''}.",
        claims=judged,
        drawn=[
            *figures.paper_figures(received, runs, tables, plan),
            figures.beyond(beyond.tables, {heading: list(group) for heading, group in remedies.GROUPS.items()}),
        ],
        tables={"transfers": runs, "ablation": without, "remedies": beyond.runs},
        closing=[
            table_section("What a quicker start is good for (claim C1)", starts.COLUMNS, starts.rows(runs, plan)),
            table_section("What each mechanism is good for (claim C6)", ablation.COLUMNS, ablation.rows(effects)),
            table_section("Beyond the paper: how far 256 kB carry", remedies.COLUMNS, remedies.rows(beyond.reaches)),
            _method(plan),
            text_section("Scenario", load(ex.SCENARIO).text),
        ],
        stage=tell,
    )
    return Reproduction(judged, report, count)


def received_by_scheme(seed: int, *, runner: Runner) -> pl.DataFrame:
    """Figure 5's curves: `scheme`, `time_s`, `segments` (different ones received by then)."""
    scenario = load(ex.SCENARIO)
    points = ex.figure_5()
    runs = runner.runs([job(scenario, p.settings(seed), seed=seed, trace=True) for p in points])
    curves = []
    for point, one in zip(points, runs, strict=True):
        data = one.packets.filter(pl.col("kind") == "DATA")
        first = data.filter(pl.col("action") == "sent")["tsn"][0]
        arrived = data.filter((pl.col("action") == "received") & (pl.col("node") == "mn")).with_columns(
            number=(pl.col("tsn").cast(pl.Int64) - first) % 2**32
        )
        once = arrived.unique("number", keep="first").sort("time_ns")
        steps = once.with_columns(step=(pl.col("time_ns") / 1e9 / STEP_S).floor()).group_by("step").len().sort("step")
        curves.append(
            steps.select(
                scheme=pl.lit(str(point.scheme)),
                time_s=(pl.col("step") + 1) * STEP_S,
                segments=pl.col("len").cum_sum().cast(pl.Int64),
            )
        )
    return pl.concat(curves)


def smallest_buffers(runs: pl.DataFrame, plan: ex.Plan, queue: int) -> pl.DataFrame:
    """Figure 7's curves with queues of so many packets."""
    points = plan.figure_7(queue)
    return buffers.enough(
        ex.select(runs, [p for p in points if p.scheme is Scheme.CMT]),
        ex.select(runs, [p for p in points if p.scheme is not Scheme.CMT]),
    )


def _method(plan: ex.Plan) -> Section:
    return text_section(
        "Method",
        f"Seeds {plan.seeds[0]} to {plan.seeds[-1]}. A seed moves the beginning of the overlap by up to "
        f"{ex.JITTER_MS} ms and decides which packets the access links lose ({ex.LOSS:.2%}); without both, all runs of "
        "a point would be the same. The transfer time is from the first DATA chunk to the last byte at the mobile "
        "node. Theory is the clamped equation with link rates less headers: "
        f"{ex.PAYLOAD_BYTES} bytes of user data in packets of {ex.PACKET_BYTES}. Where CMT is compared with mSCTP, "
        f"both have the same seed. {INTERVALS}",
        preformatted=False,
    )

"""`segue reproduce vertical`: runs, figures, table 1, claims and the report."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from segue.papers.common import INTERVALS, Beside, Reproduction, Stage, alone, silent, write_all
from segue.papers.vertical import claims, figures, spread
from segue.papers.vertical import experiment as ex
from segue.report.html import Section, table_section, text_section
from segue.runner import Runner
from segue.scenarios import load
from segue.stats import median_interval

SEEDS = 100
QUICK_SEEDS = 40
"""Twice the paper's handovers from WLAN to GPRS: means of quick and full runs are to lie on one side of a bound."""


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
        quick: Fewer seeds.
        seeds: Seeds for each upward handover; the other points have a share of them.
        runner: Makes the runs; one without a store, if left out.
        stage: Told what is going on.
        beside: Has what real hosts come to put beside the claims.
    """
    tell = stage or silent
    runner = runner or Runner()
    count = seeds or (QUICK_SEEDS if quick else SEEDS)
    results = ex.run(count, runner=runner, progress=lambda done, total: tell("simulating", done, total))
    judged = beside(claims.evaluate(results))
    runs = sum(variant.seeds for variant in ex.variants(count)) + 3
    table = table_1(results.runs)
    paper = claims.PAPER_MS["wlan-gprs"]["t_n_s"]
    tried = spread.tried(results.runs, paper)
    report = write_all(
        out,
        title="Vertical handover and adaptation time, reproduced",
        lead="Cottingham, Vidales: Is Latency the Real Enemy in Next Generation Networks? (2005). "
        f"{runs} simulations, {count} of each upward handover{', quick' if quick else ''}.",
        claims=judged,
        drawn=list(figures.draw(results)),
        tables={"handovers": results.runs, "table-1": table, "windows": results.windows},
        closing=[
            text_section("Table 1", _as_text(table)),
            table_section(spread.HEADING, spread.COLUMNS, spread.rows(results.runs, paper, tried)),
            text_section(
                "What came of it", spread.explain(results.runs, results.windows, paper, tried), preformatted=False
            ),
            _method(),
            text_section("Scenario", load(ex.SCENARIO).text),
        ],
        stage=tell,
    )
    return Reproduction(judged, report, runs)


def table_1(runs: pl.DataFrame) -> pl.DataFrame:
    """The paper's table 1 beside ours, milliseconds; and what it does not have, the first data packet."""
    rows = []
    for case in ex.UPWARD:
        for column, name in (
            ("t_n_s", "T_n"),
            ("first_packet_s", "first packet"),
            ("first_data_s", "first data"),
            ("t_a_s", "t_a"),
        ):
            values = [1e3 * value for value in ex.values(runs, case, column)]
            if not values:
                continue
            own, sigma = ex.mean_and_sigma(values)
            interval = median_interval(values)
            theirs = claims.PAPER_MS[case].get("t_a_s" if column == "t_a_s" else "t_n_s")
            rows.append(
                {
                    "handover": ex.CASE_NAMES[case],
                    "part": name,
                    "paper_mean_ms": None if theirs is None else theirs[0],
                    "paper_sigma_ms": None if theirs is None else theirs[1],
                    "mean_ms": round(own),
                    "sigma_ms": round(sigma),
                    "min_ms": round(min(values)),
                    "max_ms": round(max(values)),
                    "median_ms": round(interval.median),
                    "low_ms": round(interval.low),
                    "high_ms": round(interval.high),
                    "handovers": len(values),
                }
            )
    return pl.DataFrame(rows)


def _as_text(table: pl.DataFrame) -> str:
    head = f"{'':14}{'':12}{'paper':>16}{'ours':>16}{'range':>16}{'median [interval]':>24}{'n':>6}"
    lines = [head + "\n" + f"{'':26}{'mean (sigma)':>16}{'mean (sigma)':>16}"]
    for row in table.iter_rows(named=True):
        paper = "-" if row["paper_mean_ms"] is None else f"{row['paper_mean_ms']:.0f} ({row['paper_sigma_ms']:.0f})"
        own = f"{row['mean_ms']} ({row['sigma_ms']})"
        span = f"{row['min_ms']}..{row['max_ms']}"
        middle = f"{row['median_ms']} [{row['low_ms']}, {row['high_ms']}]"
        lines.append(
            f"{row['handover']:14}{row['part']:12}{paper:>16}{own:>16}{span:>16}{middle:>24}{row['handovers']:>6}"
        )
    return (
        "Milliseconds, from the loss of the old network. T_n: until the correspondent has the binding (equations 1 to "
        "4). First packet, first data: to the new care-of address, two more readings of where T_n ends.\n\n"
        + ("\n".join(lines))
    )


def _method() -> Section:
    return text_section(
        "Method",
        "Seeds from 1 on. t_d, t_c and t_r stand in the record of every handover (`handovers[].parts` of `segue run "
        "--json`): "
        "from the loss of the old network to the router advertisement that the new address was formed from, to the "
        "first "
        "Binding Update, to the moment at which the correspondent has it. t_a is worked out by one function from the "
        "data "
        f"packets that the mobile node receives over the new interface, simulated or captured. {INTERVALS}",
        preformatted=False,
    )

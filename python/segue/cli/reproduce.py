"""`segue lab reproduce`: the claims of a paper, judged by runs with real hosts beside the simulator's."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from segue.cli.program import every_end_is_ctrl_c, find_program
from segue.cli.progress import Bars
from segue.output import check_directory

if TYPE_CHECKING:
    from segue.lab.trials.plan import Combination
    from segue.papers.common import Reproduction
    from segue.papers.lab import Findings, Plan

LAB_PAPERS = ("ilnp", "sigma", "vertical")


@click.command(name="reproduce", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("paper", type=click.Choice(LAB_PAPERS))
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), default=Path("report-lab"), show_default=True,
              help="Where figures, tables, claims.json and report.html go, and each run's document into runs/, from "
              "where a reproduction that was stopped goes on.")  # fmt: skip
@click.option("--quick", is_flag=True, help="One run of the fewest points, for a first look.")
@click.option("--repeat", type=click.IntRange(1, 1000), metavar="N",
              help="Runs of each point in the lab.  [default: the paper's, or those of --quick]")  # fmt: skip
@click.option("--claims", "wanted", metavar="I1,I2,...", default="", help="Run what these need, and nothing else.")
@click.option("--threads", type=click.IntRange(1, 1024), metavar="N", help="Threads.  [default: all processors]")
def reproduce(paper: str, out: Path, quick: bool, repeat: int | None, wanted: str, threads: int | None) -> int:
    """Judge the claims of PAPER by runs with real hosts, and by simulations beside them.

    Both worlds run the same files with the same seeds, and the same criteria judge them. What the lab cannot run is
    said with the reason. Beside that stands what `segue reproduce PAPER` finds.
    """
    from segue.papers.lab import expected_minutes, only, run
    from segue.runner import Runner

    program = find_program("segue-lab")
    check_directory(out)
    plan: Plan = import_module(f"segue.papers.{paper}.lab").plan(quick=quick, repeat=repeat)
    claims = list(dict.fromkeys(word.strip() for word in wanted.split(",") if word.strip()))
    if claims:
        plan = only(plan, claims)
    minutes = expected_minutes(plan)
    count = len(plan.points) * plan.repeat
    then = "the same runs simulated" if claims else "simulations"
    click.echo(
        f"segue lab: {count} runs of {len(plan.points)} points in real time: about {minutes:.0f} min; then {then}",
        err=True,
    )
    runner = Runner(threads=threads)
    with every_end_is_ctrl_c():
        findings = run(plan, program, out, runner=runner, tell=_Progress(count))
    if claims:
        return _say_alone(paper, findings, claims, out, quick=quick)
    with Bars() as bars:
        bars.spin(f"preparing {paper}")
        reproduce_paper = import_module(f"segue.papers.{paper}.reproduce").reproduce
        done: Reproduction = reproduce_paper(out, quick=quick, runner=runner, stage=bars.show, beside=findings.beside)
    from segue.cli.tables import print_claims

    print_claims(done.claims, quick=quick)
    click.echo(f"{findings.runs} runs in the lab, {done.runs} simulations; report: {done.report}")
    return 0


def _say_alone(paper: str, findings: Findings, claims: list[str], out: Path, *, quick: bool) -> int:
    """What was asked for, and what it needs: the other claims of the paper are neither simulated nor drawn."""
    from segue.cli.tables import print_claims
    from segue.papers.common import silent, write_all

    found = findings.alone(claims)
    lead = f"Of the claims of {paper}: {', '.join(claims)}, by the same runs with real hosts and in the simulator."
    report = write_all(
        out, title=f"{paper} with real hosts", lead=lead, claims=found, drawn=[], tables={}, closing=[], stage=silent
    )
    print_claims(found, quick=quick)
    click.echo(f"{findings.runs} runs in the lab, {findings.simulations} simulations; report: {report}")
    return 0


class _Progress:
    """A line on standard error before each run."""

    def __init__(self, total: int) -> None:
        self._total = total

    def __call__(self, combination: Combination, number: int, done: int, besides: str) -> None:
        more = f" ({besides})" if besides else ""
        click.echo(f"segue lab: {done + 1}/{self._total}: {combination.scheme}, run {number}{more}", err=True)

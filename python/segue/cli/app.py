"""Commands and their options."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path

import click

from segue import CaptureError, RunError, ScenarioError, __version__
from segue.cli.saying import say
from segue.cli.settings import overrides

EXIT_FAILED = 1
EXIT_INPUT = 2
EXIT_INTERRUPTED = 130

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOMEM)
"""Errors of a file that are no fault of what was asked for."""

PAPERS = ("sigma", "vertical", "cmt", "ilnp", "scale")
"""The papers, and what no paper has: how many hosts an anchor bears."""

TEMPLATES = ("two-cells", "wifi-to-5g", "multipath", "vertical", "population")
"""What a scenario of one's own begins as: those of scenarios/templates."""


class _Named(click.Path):
    """A path that is not empty: an empty one would be this directory."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if value == "":
            self.fail("expected a name, and it is empty", param, ctx)
        return super().convert(value, param, ctx)


NAMED = _Named(path_type=Path)


def main() -> None:
    """Entry point: runs the command line and exits."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # what a terminal has no letter for is no reason to say nothing
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Run the command line `arguments` and return the exit status."""
    status: object = 0
    try:
        status = app.main(args=arguments, prog_name="segue", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return EXIT_INPUT
    except click.ClickException as error:
        return _fail(error.format_message(), EXIT_INPUT)
    except (CaptureError, ScenarioError) as error:
        return _fail(str(error), EXIT_INPUT)
    except RunError as error:
        return _fail(str(error), EXIT_FAILED)
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", EXIT_INTERRUPTED)
    except (BrokenPipeError, SystemExit):
        # Whoever read the output has had enough, of which click makes an exit; nothing more may be written to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        status = EXIT_FAILED if error.errno in NO_ROOM else EXIT_INPUT
        return _fail(f"{where}{error.strerror or error}", status)
    except MemoryError:
        return _fail("out of memory", EXIT_FAILED)
    return status if isinstance(status, int) else 0


class _Command(click.Command):
    """A command whose texts are UTF-8; names of files may be any bytes."""

    def invoke(self, ctx: click.Context) -> object:
        for param in self.params:
            given = ctx.params.get(param.name or "")
            # what is handed over to another program is that program's
            if param.type is not click.UNPROCESSED:
                for text in given if isinstance(given, tuple) else (given,):
                    if isinstance(text, str) and any("\ud800" <= letter <= "\udfff" for letter in text):
                        raise click.UsageError(f"{param.get_error_hint(ctx)}: {text!a}: expected UTF-8")
        return super().invoke(ctx)


class _Commands(click.Group):
    command_class = _Command
    group_class = type


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="segue", message="%(prog)s %(version)s")
def app() -> None:
    """What happens to a connection while its host moves between networks."""


@app.command(name="run")
@click.argument("scenario")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True,
              help="Override a key, as in --set l2.latency='200 ms'. May be given again.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), metavar="N", help="Seed; the scenario's if left out.")
@click.option("--json", "as_json", is_flag=True, help="Print the metrics as one JSON document.")
@click.option("--pcap", metavar="DIR", type=NAMED, help="Write a pcapng capture per host.")
@click.option("--report", metavar="FILE.html", type=NAMED, help="Write a report in one file.")
@click.option("--flow", "flows", metavar="N", type=click.IntRange(min=0), multiple=True,
              help="Show this flow in the report, not the worst, the median and the best. Repeatable.")  # fmt: skip
@click.option("--trace", metavar="DIR", type=NAMED, help="Write the frames as parquet files.")
@click.option("--csv", metavar="DIR", type=NAMED,
              help="Write the handovers, flows and hosts as CSV files.")  # fmt: skip
@click.option("--assert", "conditions", metavar="CONDITION", multiple=True,
              help='What has to be so, as in --assert "interruption < 50 ms". Repeatable.')  # fmt: skip
@click.option("--junit", metavar="FILE", type=NAMED, help="Write a test case per condition.")
def run_one(
    scenario: str,
    settings: tuple[str, ...],
    seed: int | None,
    as_json: bool,
    pcap: Path | None,
    report: Path | None,
    flows: tuple[int, ...],
    trace: Path | None,
    csv: Path | None,
    conditions: tuple[str, ...],
    junit: Path | None,
) -> int:
    """Run SCENARIO: a file, or the name of one that comes with segue."""
    from segue.cli.commands import Asked, run_scenario

    asked = Asked(pcap=pcap, report=report, flows=flows, trace=trace, conditions=conditions, junit=junit, csv=csv)
    return EXIT_FAILED if run_scenario(scenario, overrides(settings), seed, asked, as_json=as_json) else 0


@app.command(name="sweep")
@click.argument("scenario")
@click.option("--grid", "grid", metavar="KEY=VALUES", multiple=True, required=True,
              help="What to go through: --grid l2.latency=100ms..600ms/100ms (by steps; *2 by factors), "
              "--grid scheme=mip6,sigma. Repeatable, for every combination.")  # fmt: skip
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Override a key, in all runs. Repeatable.")
@click.option(
    "--seeds", type=click.IntRange(1, 100_000), default=5, show_default=True, metavar="N", help="Seeds of each point."
)
@click.option("--seed", "first_seed", type=click.IntRange(0, 2**62), default=1, show_default=True, metavar="N",
              help="The first of them.")  # fmt: skip
@click.option("--metric", "metrics", metavar="PATH", multiple=True,
              help="A further column: a path in what run --json prints: applications.0.mos. Repeatable.")  # fmt: skip
@click.option("--until", metavar="'METRIC \N{PLUS-MINUS SIGN}5 %'",
              help='Add seeds until the interval of the median is so narrow: "interruption +-5 %".')  # fmt: skip
@click.option("--most-seeds", type=click.IntRange(1, 1_000_000), metavar="N",
              help="With --until: where a point is given up.  [default: 160]")  # fmt: skip
@click.option(
    "--budget", metavar="TIME", help="Stop after this time with what there is: 10m. The same command goes on."
)
@click.option("--out", metavar="FILE.parquet", type=NAMED, help="Write a row per run.")
@click.option("--plot", "plots", metavar="x=KEY,y=METRIC,hue=KEY", multiple=True,
              help="Draw a figure (SVG and PNG beside --out); what is left out is chosen. Repeatable.")  # fmt: skip
@click.option("--on", metavar="ray[://ADDRESS:PORT]", help="Make the runs on a Ray cluster (pip install 'segue[ray]').")
@click.option("--threads", type=click.IntRange(1, 1024), metavar="N", help="Threads.  [default: all processors]")
@click.option("--fresh", is_flag=True, help="Make all runs anew, also those that this program has made before.")
def sweep(
    scenario: str,
    grid: tuple[str, ...],
    settings: tuple[str, ...],
    seeds: int,
    first_seed: int,
    metrics: tuple[str, ...],
    until: str | None,
    most_seeds: int | None,
    budget: str | None,
    out: Path | None,
    plots: tuple[str, ...],
    on: str | None,
    threads: int | None,
    fresh: bool,
) -> None:
    """Run SCENARIO at every combination of some keys' values, and print medians with their intervals.

    Results of runs are kept in the user's cache, or in the folder that SEGUE_STORE names (none if it is empty): after a
    kill the same command goes on.
    """
    from segue.cli.sweep import Asked, run_sweep

    run_sweep(
        scenario,
        overrides(settings),
        Asked(
            grid=grid,
            seeds=range(first_seed, first_seed + seeds),
            metrics=metrics,
            until=until,
            most_seeds=most_seeds,
            budget=budget,
            out=out,
            plots=plots,
            on=on,
            threads=threads,
            fresh=fresh,
        ),
    )


@app.command(name="plot")
@click.argument("results", metavar="RESULTS.parquet", type=NAMED)
@click.option("--x", metavar="KEY", help="Axis below.  [default: the one with the most numbers]")
@click.option("--y", "metrics", metavar="METRIC", multiple=True, default=("interruption",), show_default=True,
              help="What is drawn, a figure each: the words of --assert, or a column. Repeatable.")  # fmt: skip
@click.option("--hue", metavar="KEY", help="Axis whose values are colours.  [default: the other one]")
@click.option("--where", "conditions", metavar="KEY=VALUES", multiple=True, help="Only this part. Repeatable.")
@click.option("--out", metavar="FILE.svg|FILE.png|DIR", type=NAMED,
              help="Where.  [default: SVG and PNG beside RESULTS.parquet]")  # fmt: skip
def plot(
    results: Path,
    x: str | None,
    metrics: tuple[str, ...],
    hue: str | None,
    conditions: tuple[str, ...],
    out: Path | None,
) -> None:
    """Draw RESULTS.parquet of a sweep: medians over seeds with their intervals."""
    from segue.cli.sweep import Drawing, plot_results

    plot_results(results, [Drawing(x, metric, hue) for metric in metrics], conditions, out)


@app.command(name="compare")
@click.argument("subjects", metavar="A B...", nargs=-1, required=True)
@click.option("--scenario", metavar="SCENARIO", help="What schemes and KEY=VALUE are of.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Override a key, in all. Repeatable.")
@click.option("--seeds", type=click.IntRange(1, 100_000), default=10, show_default=True, metavar="N",
              help="Seeds of each that is simulated.")  # fmt: skip
@click.option("--seed", "first_seed", type=click.IntRange(0, 2**62), default=1, show_default=True, metavar="N",
              help="The first of them.")  # fmt: skip
@click.option("--metric", "metrics", metavar="METRIC", multiple=True,
              help="What is compared: the words of --assert, or columns of a sweep. Repeatable.")  # fmt: skip
@click.option("--out", metavar="DIR", type=NAMED, help="Write compare.csv, .svg and .png there.")
@click.option("--threads", type=click.IntRange(1, 1024), metavar="N", help="Threads.  [default: all processors]")
def compare(
    subjects: tuple[str, ...],
    scenario: str | None,
    settings: tuple[str, ...],
    seeds: int,
    first_seed: int,
    metrics: tuple[str, ...],
    out: Path | None,
    threads: int | None,
) -> None:
    """Put A and B beside each other: one table of differences to A with intervals, and one figure.

    Each is a scheme or KEY=VALUE of --scenario, a scenario file, a capture, or the captures of both ends as MN,CN;
    NAME=FILE gives files a name. With a capture among them, handovers are compared; else runs of the same seeds.
    """
    from segue.cli.compare import run_comparison
    from segue.compare import Wanted

    wanted = Wanted(subjects, scenario, overrides(settings), range(first_seed, first_seed + seeds), metrics)
    run_comparison(wanted, out, threads)


@app.command(name="analyze")
@click.argument("captures", metavar="MN [CN]", nargs=-1, required=True, type=NAMED)
@click.option("--live", is_flag=True,
              help="Show what was found so far while packets come; Ctrl-C ends the capture.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON document.")
@click.option("--out", metavar="FILE.parquet|FILE.csv|DIR", type=NAMED,
              help="Write the handovers as one Parquet or CSV file, or all tables into a directory.")  # fmt: skip
@click.option("--report", metavar="FILE.html", type=NAMED, help="Write a report in one file.")
@click.option("--max-flows", type=click.IntRange(1, 10_000_000), metavar="N",
              help="Report so many flows: those with handovers, then the largest.  [default: 10000]")  # fmt: skip
def analyze(
    captures: tuple[Path, ...],
    live: bool,
    as_json: bool,
    out: Path | None,
    report: Path | None,
    max_flows: int | None,
) -> None:
    """Find handovers in a capture: what moved, how long was silence, how long until full speed, and why.

    MN is a pcap or pcapng file of any traffic: TCP, MPTCP, SCTP, QUIC, WireGuard, UDP, Mobile IPv6, ILNPv6. With CN, a
    capture of the same traffic at the other end, losses are counted too; the two clocks need not agree. Both may be
    compressed by gzip or zstd; a single one may be -, standard input.
    """
    from segue.cli.analysis import Asked, analyze_captures

    analyze_captures(captures, Asked(live=live, as_json=as_json, out=out, report=report, max_flows=max_flows))


@app.command()
@click.argument("paper", type=click.Choice(PAPERS))
@click.option("--out", metavar="DIR", type=NAMED, default=Path("report"), show_default=True,
              help="Where figures, tables, claims.json and report.html go.")  # fmt: skip
@click.option("--quick", is_flag=True, help="Shorter runs or fewer of them, for a first look.")
@click.option(
    "--seeds", type=click.IntRange(1, 1000), metavar="N", help="Seeds per point.  [default: the paper's, or 5]"
)
@click.option("--threads", type=click.IntRange(1, 1024), metavar="N", help="Threads.  [default: all processors]")
@click.option("--fresh", is_flag=True, help="Make all runs anew, also those that this program has made before.")
def reproduce(paper: str, out: Path, quick: bool, seeds: int | None, threads: int | None, fresh: bool) -> None:
    """Reproduce a paper: its figures, and its claims with what became of them.

    scale is of no paper: signalling, interruptions and what saturates, with 10 to 10,000 mobile hosts.

    Results of runs are kept in the user's cache, or in the folder that SEGUE_STORE names (none if it is empty).
    """
    from segue.cli.commands import reproduce_paper

    reproduce_paper(paper, out, quick=quick, seeds=seeds, threads=threads, fresh=fresh)


@app.command(name="sctp", add_help_option=False,
             context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})  # fmt: skip
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def sctp(arguments: tuple[str, ...]) -> None:
    """SCTP over real sockets: listen, connect, ping (Linux; see segue sctp --help)."""
    from segue.cli.program import hand_over

    hand_over("segue-sctp", arguments)


@app.command(name="lab", add_help_option=False,
             context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})  # fmt: skip
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lab(arguments: tuple[str, ...]) -> int:
    """Run a scenario with real hosts and programs, compare schemes, reproduce a paper (Linux; see segue lab --help)."""
    # programs of the lab that are Python run on this one
    os.environ.setdefault("SEGUE_PYTHON", sys.executable)
    if arguments[:1] == ("compare",):
        from segue.cli.trials import compare

        status = compare.main(args=list(arguments[1:]), prog_name="segue lab compare", standalone_mode=False)
        return status if isinstance(status, int) else 0
    if arguments[:1] == ("reproduce",):
        from segue.cli.reproduce import reproduce as in_lab

        status = in_lab.main(args=list(arguments[1:]), prog_name="segue lab reproduce", standalone_mode=False)
        return status if isinstance(status, int) else 0
    from segue.cli.lab import run_with_report, with_files, without_report
    from segue.cli.program import hand_over

    words, report = without_report(with_files(arguments))
    if report is None:
        hand_over("segue-lab", words)
    return run_with_report(words, report)


@app.command(name="agent", add_help_option=False,
             context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})  # fmt: skip
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def agent(arguments: tuple[str, ...]) -> None:
    """ILNPv6 or Mobile IPv6 under this machine's applications: check, run, status, handover (Linux; has --help)."""
    from segue.cli.program import hand_over

    hand_over("segue-agent", arguments)


@app.command(name="location", add_help_option=False,
             context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})  # fmt: skip
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def location(arguments: tuple[str, ...]) -> None:
    """The location manager: serve, update, lookup (dynamic DNS; see segue location --help)."""
    from segue.cli.program import hand_over

    hand_over("segue-location", arguments)


@app.command(name="keys")
@click.argument("prefix", required=False)
@click.option("--schema", "as_schema", is_flag=True, help="Print JSON Schema of scenario files, for an editor.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print all keys as a page.")
@click.option("--json", "as_json", is_flag=True, help="Print the keys as one JSON document.")
def keys(prefix: str | None, as_schema: bool, as_markdown: bool, as_json: bool) -> None:
    """What a scenario may say: every key with its type, default and meaning.

    With PREFIX, those whose names begin with it, such as link, link.rate or sctp.
    """
    from segue.cli.keys import list_keys

    list_keys(prefix, as_schema=as_schema, as_markdown=as_markdown, as_json=as_json)


@app.command(name="check")
@click.argument("scenario")
def check(scenario: str) -> int:
    """Say all that is wrong with SCENARIO at once, with line and column, and what of it has no effect."""
    from segue.cli.check import check_file

    return EXIT_INPUT if check_file(scenario) else 0


@app.command(name="new")
@click.argument("name", metavar="NAME|FILE.toml")
@click.option(
    "--template", type=click.Choice(TEMPLATES), default="two-cells", show_default=True, help="What it begins as."
)
@click.option("--force", is_flag=True, help="Write over files that are there.")
def new(name: str, template: str, force: bool) -> None:
    """Begin a scenario of one's own: a file that runs, with comments, and its schema beside it for an editor."""
    from segue.cli.new import begin

    begin(name, template, force=force)


@app.group(name="scenarios")
def scenarios_group() -> None:
    """The scenarios that come with segue."""


@scenarios_group.command(name="list")
def scenarios_list() -> None:
    """List them."""
    from segue.cli.commands import list_scenarios

    list_scenarios()


@scenarios_group.command(name="show")
@click.argument("name")
def scenarios_show(name: str) -> None:
    """Print one."""
    from segue.scenarios import load

    click.echo(load(name).text, nl=False)


def _open_closed_streams() -> None:
    """Stand the null device in for standard streams that are closed, as a service may have them.

    Else the next file that is opened has their number, and what is printed goes into it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def _fail(message: str, status: int) -> int:
    say(message)
    return status

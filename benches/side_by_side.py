#!/usr/bin/env python3
"""Run bulk SCTP in Segue and in ns-2, and bulk TCP in Segue, ns-2 and ns-3, and print times and their ratios.

One flow on a chain of three links; and a dumbbell, where twenty flows and cross traffic share a bottleneck that loses
packets: there packets that follow each other are of different flows, and much of the work is recovery from loss.

Whole processes are timed, start-up and reading of the scenario included, for all. The runs alternate and
swap their order every time, so that a machine that slows down or speeds up does so for all; medians are
quoted. The figure that counts is wall time for the same delivered bytes: a simulator that delivers less has
done less.

What the others delivered is counted in a run of its own, since counters cost time (see peers/ns2/bulk_sctp.tcl). ns-3
is built here, with optimisation, if its library is installed (Debian package libns3-dev), and left out otherwise; it is
timed twice only, since one run takes longer than all others together. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PEERS = HERE / "peers"
NS3_MODULES = ("applications", "internet", "point-to-point", "traffic-control", "network", "core")
NS3_RUNS = 2
# All deliver one full pipe for 60 s; the start of slow start is all that may differ, and ns-3's shorter header.
SAME_WORK = 0.02


@dataclass(frozen=True)
class Bench:
    """One comparison: a scenario and what ns-2 runs for it."""

    title: str
    # Of scenarios/bench.
    scenario: str
    # A script of peers/ns2, and what it is given.
    ns2: tuple[str, ...]
    # A source of peers/ns3.
    ns3: str | None = None
    # ns-2 is to lose nothing: then what is compared is not two recoveries from loss.
    lossless: bool = False

    @property
    def path(self) -> Path:
        """The scenario's file."""
        return ROOT / "scenarios" / "bench" / f"{self.scenario}.toml"


BENCHES = (
    Bench("One SCTP association, three hops of 100 Mbit/s", "bulk", ("bulk_sctp.tcl",), lossless=True),
    Bench("One TCP connection, CUBIC, three hops of 100 Mbit/s", "tcp", ("bulk_tcp.tcl",), "bulk_tcp.cc"),
    Bench("Twenty SCTP associations, a lossy dumbbell of 100 Mbit/s", "dumbbell-sctp", ("dumbbell.tcl", "sctp")),
    Bench(
        "Twenty TCP connections, CUBIC, a lossy dumbbell of 100 Mbit/s",
        "dumbbell-tcp",
        ("dumbbell.tcl", "tcp"),
        "dumbbell_tcp.cc",
    ),
)


class BenchError(Exception):
    """A simulator did not run, or did not do what it was asked."""


@dataclass
class Side:
    """One simulator: how to start it, and what its runs gave."""

    name: str
    command: list[str]
    # Runs at most; all the repetitions if left out.
    most_runs: int | None = None
    delivered_bytes: int = 0
    packet_hops: int = 0
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    def run(self) -> str:
        """Run once and note wall and processor time; return standard output."""
        begin = time.perf_counter()
        with subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - begin
        if process.returncode != 0:
            raise BenchError(f"{self.name}: exit status {process.returncode} from {' '.join(self.command)}")
        self.wall_s.append(wall)
        self.cpu_s.append(usage.ru_utime + usage.ru_stime)
        return output

    @property
    def wall(self) -> float:
        """Median wall time, seconds."""
        return statistics.median(self.wall_s)

    @property
    def cpu(self) -> float:
        """Median processor time, seconds."""
        return statistics.median(self.cpu_s)

    @property
    def wall_per_gigabyte(self) -> float:
        """Median wall seconds for 10^9 delivered bytes."""
        return self.wall / self.delivered_bytes * 1e9

    @property
    def cpu_per_gigabyte(self) -> float:
        """Median processor seconds for 10^9 delivered bytes."""
        return self.cpu / self.delivered_bytes * 1e9


def count(side: Side, command: list[str]) -> dict[str, int]:
    """Note what the (identical) counted run of a simulator delivers; return all that it counts."""
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = [line.split() for line in output.splitlines()]
    numbers = {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}
    side.delivered_bytes, side.packet_hops = numbers["delivered_bytes"], numbers["packet_hops"]
    return numbers


def ns2_side(ns: str, bench: Bench) -> Side:
    """ns-2."""
    script, *rest = bench.ns2
    command = [ns, str(PEERS / "ns2" / script), *rest]
    side = Side("ns-2", command)
    drops = count(side, [*command, "count"])["drops"]
    if bench.lossless and drops != 0:
        raise BenchError(f"ns-2 dropped {drops} packets; the scenario is meant to lose none")
    return side


@contextmanager
def ns3_side(source: str) -> Iterator[Side | None]:
    """ns-3, built for as long as this lasts, if its library and a compiler are installed."""
    compiler = shutil.which("g++")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program"
        libraries = [f"-lns3-{module}" for module in NS3_MODULES]
        command = [compiler or "g++", "-std=c++17", "-O2", "-o", str(program), str(PEERS / "ns3" / source), *libraries]
        if compiler is None or not has_ns3(compiler):
            print("ns-3 is not installed (Debian package libns3-dev, with g++): it is left out.\n", flush=True)
            yield None
            return
        subprocess.run(command, check=True)
        side = Side("ns-3", [str(program)], most_runs=NS3_RUNS)
        count(side, [str(program), "count"])
        yield side


def has_ns3(compiler: str) -> bool:
    """Whether the compiler finds the headers of ns-3."""
    probe = subprocess.run(
        [compiler, "-std=c++17", "-E", "-x", "c++", "-"],
        input='#include "ns3/core-module.h"\n',
        capture_output=True,
        text=True,
        check=False,
    )
    return probe.returncode == 0


def note_segue(side: Side, output: str) -> None:
    """Take delivered bytes and packet hops from a run's JSON; they must be the same in every run."""
    metrics = json.loads(output)
    got = (int(metrics["delivered_bytes"]), int(metrics["packet_hops"]))
    if side.delivered_bytes and got != (side.delivered_bytes, side.packet_hops):
        raise BenchError(f"Segue: two runs of one seed differ: {got} and {(side.delivered_bytes, side.packet_hops)}")
    if 0 in got:
        raise BenchError("Segue: nothing was delivered")
    side.delivered_bytes, side.packet_hops = got


def table(sides: list[Side]) -> str:
    """What was measured, a column for each simulator."""
    rows: list[tuple[str, list[str]]] = [
        ("wall time, median of whole process, s", [f"{s.wall:.3f}" for s in sides]),
        ("  smallest .. largest, s", [f"{min(s.wall_s):.3f} .. {max(s.wall_s):.3f}" for s in sides]),
        ("processor time, median, s", [f"{s.cpu:.3f}" for s in sides]),
        ("delivered user bytes", [f"{s.delivered_bytes:,}" for s in sides]),
        ("packet hops (data and acknowledgements, each link)", [f"{s.packet_hops:,}" for s in sides]),
        ("million packet hops per second", [f"{s.packet_hops / s.wall / 1e6:.2f}" for s in sides]),
        ("wall seconds per delivered GB", [f"{s.wall_per_gigabyte:.3f}" for s in sides]),
    ]
    width = max(len(label) for label, _ in rows)
    lines = ["".ljust(width) + "".join(s.name.rjust(20) for s in sides)]
    lines += [label.ljust(width) + "".join(cell.rjust(20) for cell in cells) for label, cells in rows]
    return "\n".join(lines)


def measure(bench: Bench, segue_command: list[str], repetitions: int) -> list[Side]:
    """Run all sides `repetitions` times, or as often as they are at most, after one run each that is not counted."""
    segue = Side("Segue", [*segue_command, str(bench.path)])
    sides = [segue]
    ns = shutil.which("ns")
    if ns is None:
        print("ns-2 is not installed (Debian package ns2): it is left out.\n", flush=True)
    else:
        sides.append(ns2_side(ns, bench))
    if bench.ns3 is None:
        alternate(sides, repetitions)
        return sides
    with ns3_side(bench.ns3) as ns3:
        sides += [ns3] if ns3 else []
        alternate(sides, repetitions)
    return sides


def alternate(sides: list[Side], repetitions: int) -> None:
    """Run the sides in turn, in an order that swaps. The first is Segue, whose output is looked at."""
    for side in sides:
        if side.most_runs is None:
            side.run()
            side.wall_s.clear()
            side.cpu_s.clear()
    for repetition in range(repetitions):
        for side in sides if repetition % 2 == 0 else reversed(sides):
            if side.most_runs is not None and repetition >= side.most_runs:
                continue
            output = side.run()
            if side is sides[0]:
                note_segue(side, output)


def compare(bench: Bench, sides: list[Side], repetitions: int) -> bool:
    """Print what was measured; whether all did the same work."""
    print(f"{bench.title}, 60 s simulated, no trace; {repetitions} runs of each, alternating.\n")
    print(table(sides))
    segue, *others = sides
    same = True
    for other in others:
        print(
            f"\nSegue is {other.wall_per_gigabyte / segue.wall_per_gigabyte:.2f} times as fast as {other.name}", end=" "
        )
        print("(wall time for the same delivered bytes);", end=" ")
        print(f"{other.cpu_per_gigabyte / segue.cpu_per_gigabyte:.2f} times by processor time.")
        difference = abs(segue.delivered_bytes - other.delivered_bytes) / other.delivered_bytes
        if difference > SAME_WORK:
            print(f"bench: delivered bytes differ by {difference:.1%}: not the same work", file=sys.stderr)
            same = False
    print(flush=True)
    return same


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--json", type=Path, help="also write the measurements to this file")
    parser.add_argument("segue", nargs="+", help="command that runs a scenario and prints its metrics as JSON")
    arguments = parser.parse_args()
    same = True
    rows: list[dict[str, object]] = []
    try:
        for bench in BENCHES:
            sides = measure(bench, arguments.segue, arguments.repetitions)
            same &= compare(bench, sides, arguments.repetitions)
            rows += [{"bench": bench.scenario, "name": s.name, "wall_s": s.wall_s, "cpu_s": s.cpu_s,
                      "delivered_bytes": s.delivered_bytes, "packet_hops": s.packet_hops} for s in sides]  # fmt: skip
    except (BenchError, OSError, subprocess.CalledProcessError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

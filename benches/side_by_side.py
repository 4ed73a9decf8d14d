#!/usr/bin/env python3
"""Run the bulk SCTP scenario in Segue and in ns-2, alternately, and print both and their ratio.

Whole processes are timed, start-up and reading of the scenario included, for both. The runs alternate and
swap their order every time, so that a machine that slows down or speeds up does so for both; medians are
quoted. The figure that counts is wall time for the same delivered bytes: a simulator that delivers less has
done less.

What ns-2 delivered is counted in a run of its own, since its counters cost it time (see ns2/bulk_sctp.tcl).
Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
NS2_SCRIPT = HERE / "ns2" / "bulk_sctp.tcl"
SCENARIO = ROOT / "scenarios" / "bench" / "bulk.toml"
# Both deliver one full pipe for 60 s; the start of slow start is all that may differ.
SAME_WORK = 0.01


class BenchError(Exception):
    """A simulator did not run, or did not do what it was asked."""


@dataclass
class Side:
    """One simulator: how to start it, and what its runs gave."""

    name: str
    command: list[str]
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


def ns2_side(ns: str) -> Side:
    """ns-2 with the delivered bytes and packet hops of the (identical) counted run."""
    counted = subprocess.run([ns, str(NS2_SCRIPT), "count"], stdout=subprocess.PIPE, text=True, check=True)
    numbers = dict(line.split() for line in counted.stdout.splitlines() if len(line.split()) == 2)
    if int(numbers["drops"]) != 0:
        raise BenchError(f"ns-2 dropped {numbers['drops']} packets; the scenario is meant to lose none")
    side = Side("ns-2", [ns, str(NS2_SCRIPT)])
    side.delivered_bytes = int(numbers["delivered_bytes"])
    side.packet_hops = int(numbers["packet_hops"])
    return side


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
        ("packet hops (data and SACK, each link)", [f"{s.packet_hops:,}" for s in sides]),
        ("million packet hops per second", [f"{s.packet_hops / s.wall / 1e6:.2f}" for s in sides]),
        ("wall seconds per delivered GB", [f"{s.wall_per_gigabyte:.3f}" for s in sides]),
    ]
    width = max(len(label) for label, _ in rows)
    lines = ["".ljust(width) + "".join(s.name.rjust(20) for s in sides)]
    lines += [label.ljust(width) + "".join(cell.rjust(20) for cell in cells) for label, cells in rows]
    return "\n".join(lines)


def measure(segue_command: list[str], repetitions: int) -> list[Side]:
    """Run both sides `repetitions` times, after one run each that is not counted."""
    segue = Side("Segue", segue_command)
    sides = [segue]
    ns = shutil.which("ns")
    if ns is None:
        print("ns-2 is not installed (Debian package ns2): only Segue is measured.\n", flush=True)
    else:
        sides.append(ns2_side(ns))
    for side in sides:
        side.run()
        side.wall_s.clear()
        side.cpu_s.clear()
    for repetition in range(repetitions):
        for side in sides if repetition % 2 == 0 else reversed(sides):
            output = side.run()
            if side is segue:
                note_segue(side, output)
    return sides


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--json", type=Path, help="also write the measurements to this file")
    parser.add_argument("segue", nargs="+", help="command that runs the scenario and prints its metrics as JSON")
    arguments = parser.parse_args()
    try:
        sides = measure([*arguments.segue, str(SCENARIO)], arguments.repetitions)
    except (BenchError, OSError, subprocess.CalledProcessError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print("One SCTP association, 100 Mbit/s, 3 hops, 60 s simulated, no trace;", end=" ")
    print(f"{arguments.repetitions} runs of each, alternating.\n")
    print(table(sides))
    if arguments.json:
        rows = [{"name": s.name, "wall_s": s.wall_s, "cpu_s": s.cpu_s, "delivered_bytes": s.delivered_bytes,
                 "packet_hops": s.packet_hops} for s in sides]  # fmt: skip
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if len(sides) == 1:
        return 0
    segue, ns2 = sides
    print(f"\nSegue is {ns2.wall_per_gigabyte / segue.wall_per_gigabyte:.2f} times as fast as ns-2", end=" ")
    print("(wall time for the same delivered bytes);", end=" ")
    print(f"{ns2.cpu_per_gigabyte / segue.cpu_per_gigabyte:.2f} times by processor time.")
    difference = abs(segue.delivered_bytes - ns2.delivered_bytes) / ns2.delivered_bytes
    if difference > SAME_WORK:
        print(f"bench: delivered bytes differ by {difference:.1%}: not the same work", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

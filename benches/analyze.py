#!/usr/bin/env python3
"""Run `segue analyze`, `tshark -q -z conv,tcp` and `tcptrace` on one large capture: times, their ratios, peak memory.

The capture is made here (`make_capture.py`), the same every time, and read once before anything is timed, so that it
comes from memory for all. Whole processes are timed, the start of the interpreter included; the runs alternate and swap
their order every time; medians are quoted. All have to have seen the same TCP packets. Programs that are not installed
are left out, with the reason. Then `segue analyze` runs on two captures of that traffic, one of each end, beside one:
each of the two is read twice, and what can be goes on on two cores. The system counts a process as large as this script
while it starts it, some 26 MB: no peak below that is shown. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from make_capture import write_capture, write_other_end

SIZE = 1_000_000_000
# What is asked of `segue analyze`: so many times as fast as the other, and no more memory than this.
WANTED = {"tshark": 10.0, "tcptrace": 1.0}
MOST_MEMORY_BYTES = 200_000_000


class BenchError(Exception):
    """A program did not run, or did not see what the others saw."""


@dataclass
class Program:
    """One program: how to start it, how to find in its output how many TCP packets it saw, and what its runs gave."""

    name: str
    command: list[str]
    tcp_packets: Callable[[str], int]
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    memory_bytes: list[int] = field(default_factory=list)
    seen: int = 0

    def run(self) -> None:
        """Run once and note wall time, processor time, peak memory."""
        begin = time.perf_counter()
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            assert process.stdout is not None
            output = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            wall = time.perf_counter() - begin
            if process.returncode != 0:
                errors.seek(0)
                raise BenchError(f"{' '.join(self.command)}: status {process.returncode}: {errors.read().strip()}")
        self.wall_s.append(wall)
        self.cpu_s.append(usage.ru_utime + usage.ru_stime)
        self.memory_bytes.append(usage.ru_maxrss * 1024)
        self.seen = self.tcp_packets(output)

    @property
    def wall(self) -> float:
        """Median wall time, seconds."""
        return statistics.median(self.wall_s)

    @property
    def cpu(self) -> float:
        """Median processor time, seconds."""
        return statistics.median(self.cpu_s)

    @property
    def memory(self) -> int:
        """Greatest peak memory, bytes."""
        return max(self.memory_bytes)


def segue_tcp_packets(output: str) -> int:
    """TCP packets in the document of `segue analyze --json`."""
    flows = [flow for flow in json.loads(output)["flows"] if flow["protocol"] == "tcp"]
    return sum(flow[way]["packets"] for flow in flows for way in ("forward", "reverse"))


def tshark_tcp_packets(output: str) -> int:
    """TCP packets in the table of tshark: frames of the column `Total`."""
    rows = [line.split() for line in output.splitlines() if "<->" in line]
    # address, <->, address, then frames, bytes and a unit for each direction, then for both
    return sum(int(row[9]) for row in rows)


def tcptrace_tcp_packets(output: str) -> int:
    """TCP packets in the summary of tcptrace."""
    found = re.search(r"(\d+) TCP packets traced", output)
    if found is None:
        raise BenchError("tcptrace does not say how many packets it traced")
    return int(found[1])


def programs(segue: list[str], capture: Path) -> list[Program]:
    """Segue first, then those that are installed."""
    found = [Program("segue", [*segue, "analyze", str(capture), "--json"], segue_tcp_packets)]
    others = (
        Program("tshark", ["tshark", "-r", str(capture), "-q", "-z", "conv,tcp"], tshark_tcp_packets),
        Program("tcptrace", ["tcptrace", str(capture)], tcptrace_tcp_packets),
    )
    for other in others:
        if shutil.which(other.name) is None:
            print(f"SKIPPED: {other.name} is not installed (Debian package {other.name})", flush=True)
        else:
            found.append(other)
    return found


def measure(found: list[Program], repetitions: int) -> None:
    """Run all of them `repetitions` times, in an order that swaps."""
    for repetition in range(repetitions):
        for program in found if repetition % 2 == 0 else reversed(found):
            program.run()
    for program in found[1:]:
        if program.seen != found[0].seen:
            raise BenchError(f"{program.name} saw {program.seen} TCP packets, segue {found[0].seen}")


def compare(found: list[Program], capture: Path, repetitions: int) -> bool:
    """Print what was measured; whether what is wanted was reached."""
    size = capture.stat().st_size
    print(f"A capture of {size / 1e6:.0f} MB, {found[0].seen} TCP packets; {repetitions} runs of each, alternating.\n")
    rows = [
        ("wall time, median of whole process, s", [f"{p.wall:.3f}" for p in found]),
        ("  smallest .. largest, s", [f"{min(p.wall_s):.3f} .. {max(p.wall_s):.3f}" for p in found]),
        ("processor time, median, s", [f"{p.cpu:.3f}" for p in found]),
        ("peak memory, MB", [f"{p.memory / 1e6:.1f}" for p in found]),
        ("MB of capture per second", [f"{size / p.wall / 1e6:.0f}" for p in found]),
    ]
    width = max(len(label) for label, _ in rows)
    print("".ljust(width) + "".join(p.name.rjust(18) for p in found))
    for label, cells in rows:
        print(label.ljust(width) + "".join(cell.rjust(18) for cell in cells))
    print()
    segue, *others = found
    reached = segue.memory <= MOST_MEMORY_BYTES
    print(f"peak memory {segue.memory / 1e6:.0f} MB, wanted at most {MOST_MEMORY_BYTES / 1e6:.0f}: {verdict(reached)}")
    for other in others:
        ratio = other.wall / segue.wall
        fast = ratio >= WANTED[other.name]
        reached &= fast
        print(f"{ratio:.2f} times as fast as {other.name}, wanted at least {WANTED[other.name]:g}: {verdict(fast)}")
    print(flush=True)
    return reached


def compare_two(segue: list[str], capture: Path, repetitions: int) -> None:
    """Print what two captures cost beside one."""
    other = capture.with_name("bench-other-end.pcap")
    with capture.open("rb") as source, other.open("wb") as file:
        write_other_end(file, source)
    read_once(other)
    one = Program("one", [*segue, "analyze", str(capture), "--json"], segue_tcp_packets)
    two = Program("two", [*segue, "analyze", str(capture), str(other), "--json"], segue_tcp_packets)
    for repetition in range(repetitions):
        for program in (one, two) if repetition % 2 == 0 else (two, one):
            program.run()
    print(
        f"two captures, {os.cpu_count()} processors: {two.wall:.3f} s, {two.wall / one.wall:.2f} times as long as one; "
        f"{two.cpu / two.wall:.2f} processors busy; peak memory {two.memory / 1e6:.0f} MB\n",
        flush=True,
    )


def verdict(reached: bool) -> str:
    """In a word or two."""
    return "reached" if reached else "NOT reached"


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--size", type=float, default=SIZE, help="bytes of the capture")
    parser.add_argument("--capture", type=Path, help="read this capture instead of making one")
    parser.add_argument("segue", nargs="+", help="the command segue")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            capture = arguments.capture
            if capture is None:
                capture = Path(folder) / "bench.pcap"
                with capture.open("wb") as file:
                    write_capture(file, int(arguments.size))
            read_once(capture)
            found = programs(arguments.segue, capture)
            measure(found, arguments.repetitions)
            reached = compare(found, capture, arguments.repetitions)
            if arguments.capture is None:
                compare_two(arguments.segue, capture, arguments.repetitions)
            return 0 if reached else 1
    except (BenchError, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


def read_once(path: Path) -> None:
    """Have the system keep the file in memory, if it fits."""
    with path.open("rb") as file:
        while file.read(1 << 22):
            pass


if __name__ == "__main__":
    sys.exit(main())

"""A handover a second for ten minutes: no connection is lost, and neither memory nor descriptors of `segue-lab` grow.

    python tests/interop/endurance.py [--seconds 600]

Runs `scenarios/lab/handover-each-second.toml` and looks at the process from outside, once a second: resident memory and
open descriptors (proc(5)). Needs iperf3, root or user namespaces, and `segue-lab`: $SEGUE_LAB, the one beside this
interpreter, or the one on the PATH. Standard library only.
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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "scenarios" / "lab" / "handover-each-second.toml"
SETTLED_S = 8.0
"""By then all programs run, and the first handovers have been."""
MINUTE_S = 60.0
FULL_S = 60.0
"""By then the ledger of packets is as large as it becomes: it forgets those of more than ten seconds ago."""
MOST_BYTES_A_HANDOVER = 64
"""In the median minute; a page, in which memory is counted, is 68 bytes for each handover of a minute. Nothing of a
handover stays in memory: what the result has of one, some 360 bytes, goes to a file."""
MOST_KIB_AT_ONCE = 256
"""In all: when a queue is longer than it ever was, on a busy machine, its memory is taken once and kept. Handovers have
no part in that; but it is bounded."""
FIRST_HANDOVER_S = 6
EXIT_TOO_LATE = 3


@dataclass(frozen=True)
class Looked:
    """What a process has."""

    at_s: float
    memory_kib: int
    descriptors: int


@dataclass(frozen=True)
class Endured:
    """What became of a run.

    Attributes:
        handovers: Of the host, each counted once.
        dead: Flows that are dead.
        failed: Programs that failed.
        too_late: So many packets were late that nothing is said of the connections.
        begin: When all had begun.
        full: Since the recorder had as many packets as it ever has, a look each second; of a shorter run nothing.
        end: Last.
    """

    handovers: int
    dead: int
    failed: int
    too_late: bool
    begin: Looked
    full: Sequence[Looked]
    end: Looked

    def grows_each_handover(self) -> float | None:
        """Bytes that memory grows by with each handover, one a second, in the median minute; of a short run nothing."""
        minutes: list[float] = []
        first = next(iter(self.full), None)
        for found in self.full:
            if first is not None and found.at_s >= first.at_s + MINUTE_S:
                minutes.append((found.memory_kib - first.memory_kib) * 1024 / (found.at_s - first.at_s))
                first = found
        return statistics.median(minutes) if minutes else None

    def grown_kib(self) -> int:
        """By how much memory has grown in all since then."""
        return self.end.memory_kib - self.full[0].memory_kib if self.full else 0

    def grows(self) -> bool:
        """Whether memory or descriptors grow."""
        each = self.grows_each_handover()
        return (
            self.end.descriptors > self.begin.descriptors
            or (each is not None and each > MOST_BYTES_A_HANDOVER)
            or self.grown_kib() > MOST_KIB_AT_ONCE
        )

    def told(self) -> str:
        """In a line."""
        each = self.grows_each_handover()
        grown = ""
        if each is not None:
            grown = f"; since {self.full[0].at_s:.0f} s {self.grown_kib()} KiB more, {each:.0f} bytes a handover"
            grown += " in the median minute"
        return (
            f"{self.handovers} handovers, {self.dead} dead flows, {self.failed} failed programs; "
            f"at {self.begin.at_s:.0f} s {self.begin.memory_kib} KiB and {self.begin.descriptors} descriptors, "
            f"at {self.end.at_s:.0f} s {self.end.memory_kib} KiB and {self.end.descriptors} descriptors"
            + grown
            + (": too many packets were late" if self.too_late else "")
        )


def look(process: int, since: float) -> Looked | None:
    """At a process; nothing if it is gone."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
        descriptors = len(list(Path(f"/proc/{process}/fd").iterdir()))
    except OSError:
        return None
    memory = next((line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")), None)
    return None if memory is None else Looked(time.monotonic() - since, int(memory), descriptors)


def find_program() -> str | None:
    """The segue-lab to run."""
    beside = Path(sys.prefix) / "bin" / "segue-lab"
    return os.environ.get("SEGUE_LAB") or (str(beside) if beside.is_file() else shutil.which("segue-lab"))


def endure(program: str, seconds: int) -> Endured:
    """Run it so long.

    Raises:
        RuntimeError: It left no figures.
    """
    iperf = ["iperf3", "-c", "{peer}", "-p", "{port}", "-t", str(seconds), "-b", "2M", "-l", "2500"]
    settings = {
        "duration": f"{seconds + 10} s",
        "application.0.command": json.dumps(iperf),
        "application.0.size": f"{seconds * 250} kB",
    }
    words = [f"--set={key}={value}" for key, value in settings.items()]
    with tempfile.TemporaryDirectory(prefix="segue-endurance-") as folder, tempfile.TemporaryFile("w+") as document:
        command = [program, "run", str(SCENARIO), "--json", f"--out={folder}", *words]
        with subprocess.Popen(command, stdout=document) as process:
            since = time.monotonic()
            seen: list[Looked] = []
            while process.poll() is None:
                found = look(process.pid, since)
                # at the end, everything is read again at once, and programs are gone
                if found is not None and SETTLED_S <= found.at_s <= seconds:
                    seen.append(found)
                time.sleep(1)
        document.seek(0)
        text = document.read()
    if not text or len(seen) < 2:
        raise RuntimeError(f"segue-lab ended with {process.returncode}")
    result = json.loads(text)
    moves = {round(move["time"]) for move in result["handovers"] if move["host"] == "mn"}
    failed = [one for one in result["lab"]["programs"] if not one["stopped"] and one["exit_status"] != 0]
    return Endured(
        len(moves),
        sum(flow["state"] == "dead" for flow in result["flows"]),
        len(failed),
        process.returncode == EXIT_TOO_LATE,
        seen[0],
        [found for found in seen if found.at_s >= FULL_S],
        seen[-1],
    )


def main() -> int:
    """Run it and say how it was; 1 if a connection was lost or something grew, 2 without programs, 3 if too late."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600)
    seconds = parser.parse_args().seconds
    program = find_program()
    if program is None or shutil.which("iperf3") is None:
        missing = "iperf3" if program else "segue-lab"
        print(
            f"{missing} not found: expected segue-lab (`make build`) and iperf3 (Debian package iperf3)",
            file=sys.stderr,
        )
        return 2
    endured = endure(program, seconds)
    print(endured.told())
    if endured.too_late:
        return EXIT_TOO_LATE
    return int(endured.dead > 0 or endured.failed > 0 or endured.grows())


if __name__ == "__main__":
    sys.exit(main())

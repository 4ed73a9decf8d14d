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
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "scenarios" / "lab" / "handover-each-second.toml"
SETTLED_S = 8.0
"""By then all programs run, and the first handovers have been."""
FULL_S = 60.0
"""By then the ledger of packets is as large as it becomes: it forgets those of more than ten seconds ago."""
MOST_BYTES_A_HANDOVER = 856
"""What the result has of one comes to 428: its signalling and parts (164), what each of three flows went through (64,
with the bytes of a second), two changes of addresses (32 each), and a mark for a packet that was sent again (8). Twice
that, for what the allocator leaves unused beside it."""
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
        full: When the recorder had as many packets as it ever has; the last look of a shorter run.
        end: Last.
    """

    handovers: int
    dead: int
    failed: int
    too_late: bool
    begin: Looked
    full: Looked
    end: Looked

    def grows_each_handover(self) -> float | None:
        """Bytes by which memory grows with each handover, one a second, with a full ledger; nothing of a short run."""
        seconds = self.end.at_s - self.full.at_s
        return None if seconds < FULL_S else (self.end.memory_kib - self.full.memory_kib) * 1024 / seconds

    def told(self) -> str:
        """In a line."""
        each = self.grows_each_handover()
        return (
            f"{self.handovers} handovers, {self.dead} dead flows, {self.failed} failed programs; "
            f"at {self.begin.at_s:.0f} s {self.begin.memory_kib} KiB and {self.begin.descriptors} descriptors, "
            f"at {self.end.at_s:.0f} s {self.end.memory_kib} KiB and {self.end.descriptors} descriptors"
            + ("" if each is None else f"; since {self.full.at_s:.0f} s {each:.0f} bytes a handover")
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
        next((found for found in seen if found.at_s >= FULL_S), seen[-1]),
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
    each = endured.grows_each_handover()
    grows = endured.end.descriptors > endured.begin.descriptors or (each is not None and each > MOST_BYTES_A_HANDOVER)
    return int(endured.dead > 0 or endured.failed > 0 or grows)


if __name__ == "__main__":
    sys.exit(main())

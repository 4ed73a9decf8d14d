#!/usr/bin/env python3
"""How late `segue lab` hands packets over while iperf3 sends 100 Mbit/s: `scenarios/lab/load-100.toml`, in real time.

Says how busy the machine was before, since it is the machine that is late. Left out, with the reason, without iperf3.
Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

SCENARIO = Path(__file__).parent.parent / "scenarios" / "lab" / "load-100.toml"
# What is asked of the lab under root, in milliseconds.
WANTED_MS = {"median_ms": 0.1, "p99_ms": 0.5, "p999_ms": 2.0}
EXIT_TOO_LATE = 3


def main() -> int:
    """Run it and print a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="segue-lab, built in release")
    program = parser.parse_args().program
    if shutil.which("iperf3") is None:
        print("lab delay: left out: iperf3 is missing (Debian package iperf3)")
        return 0
    load = os.getloadavg()[0]
    done = subprocess.run([program, "run", str(SCENARIO), "--json"], check=False, capture_output=True, text=True)
    if done.returncode not in (0, EXIT_TOO_LATE):
        print(f"lab delay: left out: {done.stderr.strip()}")
        return 0
    result = json.loads(done.stdout)
    late = result["lab"]["emulation"]
    rate = max(flow["throughput_bps"] for flow in result["flows"]) / 1e6
    shown = ", ".join(f"{late[name]:.2f} ms ({name.split('_')[0]}, asked {most})" for name, most in WANTED_MS.items())
    print(
        f"lab delay, {result['lab']['privileges']}, {rate:.1f} Mbit/s, {late['packets']} packets, "
        f"load {load:.1f} before on {os.cpu_count()} processors: {shown}, most {late['most_ms']:.2f} ms; "
        f"{late['share_late']:.3%} later than 1 ms"
    )
    if machine := late["machine"]:
        print(
            f"  processors stood still {machine['standstills']} times, {machine['longest_ms']:.2f} ms at most; "
            f"but for that {machine['p99_ms']:.2f} ms (p99), {machine['p999_ms']:.2f} ms (p999), "
            f"most {machine['most_ms']:.2f} ms"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Goodput of TCP under random loss: the kernel's CUBIC and Reno, and ours, over the same link of the simulator.

The link has 10 Mbit/s, 20 ms one way, a queue of 50 packets and IPv6 packets of at most 1500 bytes; data packets are
lost independently of each other, acknowledgements are not. The kernel's TCP runs between two namespaces with a TUN
device each, and `segue-lab link` carries the packets in real time; ours runs in virtual time over the same code. TUN
devices without offloads take packets one by one, so what the kernel batches as one super-packet it cuts in software
just before the device: its bursts are those of a host whose network card does no segmentation, in front of a faster
first link.

Goodput is what the receiver's application got from 5 s after the first byte on. Each run has losses of its own; the
error is the standard error of the mean of the runs.

Root only for the kernel's side.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import lab
import network
from process import Process

LOSSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
CONTROLS = ("cubic", "reno")
LINK = ("--rate=10 Mbit/s", "--delay=20 ms", "--queue=50 packets")
WARM_UP_S = 5.0
PORT = 5001
# Time by which packets may be late on average: a hundredth of the round trip, by which goodput is divided.
MOST_LATE_MS = 0.4
# Flows of the kernel that run at the same time. Each costs a few percent of a core.
TOGETHER = 12


@dataclass(frozen=True)
class Case:
    """One run."""

    control: str
    loss: float
    seed: int


@dataclass(frozen=True)
class Mean:
    """Mean of some runs with its standard error, bit/s."""

    value: float
    error: float

    @classmethod
    def of(cls, runs: Sequence[float]) -> Mean:
        error = statistics.stdev(runs) / math.sqrt(len(runs)) if len(runs) > 1 else math.nan
        return cls(statistics.fmean(runs), error)

    def __str__(self) -> str:
        return f"{self.value / 1e6:6.3f} ± {self.error / 1e6:5.3f}"


def kernel(cases: Iterable[Case], seconds: float) -> dict[Case, float]:
    """Goodput of the kernel's TCP in each case, bit/s; all run at the same time."""
    with contextlib.ExitStack() as stack:
        receivers: dict[Case, Process] = {}
        senders, links = [], []
        for case in cases:
            link = lab.tun_link(*LINK, f"--loss={case.loss}", f"--seed={case.seed}")
            a, b, carrier = stack.enter_context(link)
            links.append(carrier)
            receivers[case] = stack.enter_context(lab.kernel_peer(b, "listen", str(PORT)))
            receivers[case].wait_for("listening", timeout=lab.SOON)
            sender = lab.kernel_peer(a, "connect", "fd53::b", str(PORT), f"cc={case.control}")
            senders.append(stack.enter_context(sender))
        for sender in senders:
            sender.wait_for("connected", timeout=lab.SOON)
            sender.tell("flood")
        time.sleep(seconds + 0.5)
        for carrier in links:
            carrier.finish()
            late_ms = mean_lateness_ms(carrier)
            assert late_ms < MOST_LATE_MS, f"packets were {late_ms:.2f} ms late: the machine is too busy to tell"
        return {case: goodput(receiver, seconds) for case, receiver in receivers.items()}


def goodput(receiver: Process, seconds: float) -> float:
    """Bits per second of the application's data, by the receiver's log."""
    log = [(event.at / 1e9, int(event.fields["bytes"])) for event in receiver.find("progress")]
    start = log[0][0]
    window = [(at, count) for at, count in log if start + WARM_UP_S <= at <= start + seconds]
    (first, before), (last, after) = window[0], window[-1]
    assert last - first > 0.8 * (seconds - WARM_UP_S), f"nothing was received after {last - start:.1f} s"
    return 8 * (after - before) / (last - first)


def mean_lateness_ms(link: Process) -> float:
    """The time by which the packets of a link that has ended arrived later than they should have."""
    summary = link.find("summary")[0].fields
    arrived = sum(ast.literal_eval(summary[direction])["arrived"] for direction in ("a_to_b", "b_to_a"))
    return int(summary["late_ns"]) / 1e6 / int(arrived)


def ours(case: Case, seconds: float) -> float:
    """Goodput of our TCP in virtual time, bit/s."""
    command: list[str] = [str(lab.program()), "goodput", *LINK, f"--loss={case.loss}", f"--seed={case.seed}"]
    command += [f"--congestion-control={case.control}", f"--duration={seconds:g} s", f"--warm-up={WARM_UP_S:g} s"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(json.loads(output.splitlines()[-1])["goodput_bps"])


def kernel_means(losses: Sequence[float], *, runs: int, seconds: float) -> dict[tuple[str, float], Mean]:
    """The kernel's side of the table."""
    cases = [Case(control, loss, seed) for seed in range(1, runs + 1) for control in CONTROLS for loss in losses]
    results: dict[Case, float] = {}
    for start in range(0, len(cases), TOGETHER):
        results |= kernel(cases[start : start + TOGETHER], seconds)
    return means(results)


def our_means(losses: Sequence[float], *, runs: int, seconds: float) -> dict[tuple[str, float], Mean]:
    """Our side."""
    cases = [Case(control, loss, seed) for seed in range(1, runs + 1) for control in CONTROLS for loss in losses]
    return means({case: ours(case, seconds) for case in cases})


def means(results: dict[Case, float]) -> dict[tuple[str, float], Mean]:
    """By congestion control and loss."""
    keys = dict.fromkeys((case.control, case.loss) for case in results)
    return {key: Mean.of([r for case, r in results.items() if (case.control, case.loss) == key]) for key in keys}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="runs of the kernel for each line")
    parser.add_argument("--our-runs", type=int, default=20, help="runs of ours for each line")
    parser.add_argument("--seconds", type=float, default=60, help="length of a run")
    parser.add_argument("--only", choices=("kernel", "ours"))
    arguments = parser.parse_args()
    reason = network.missing()
    if reason is not None:
        print(f"SKIPPED: {reason}")
        return 0
    theirs = mine = {}
    if arguments.only != "ours":
        theirs = kernel_means(LOSSES, runs=arguments.runs, seconds=arguments.seconds)
    if arguments.only != "kernel":
        mine = our_means(LOSSES, runs=arguments.our_runs, seconds=arguments.seconds)
    print(f"{'':6} {'loss':>6} {'kernel, Mbit/s':>16} {'ours, Mbit/s':>16} {'ours / kernel':>14}")
    for control in CONTROLS:
        for loss in LOSSES:
            kernels, our = theirs.get((control, loss)), mine.get((control, loss))
            ratio = f"{our.value / kernels.value:14.3f}" if kernels and our else ""
            cells = "".join(f" {mean or ''!s:>16}" for mean in (kernels, our))
            print(f"{control:6} {100 * loss:5.1f}%{cells} {ratio}".rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Concurrent multipath transfer over two paths that stay: Segue beside ns-2's SCTP/CMT agent, with ensembles of both.

Where the receive buffer blocks, a delay that differs by half a millisecond changes which path the next packets take,
and with it the rate of a minute by several per cent, in ns-2 as in Segue. One run of each then says little. So every
case is run several times by both, with the same small changes of delays and queues, and the means are compared.

    benches/cmt_beside_ns2.py                       all cases, 15 runs of each by both: some 5 minutes on two cores
    benches/cmt_beside_ns2.py --case 2,64 --case 14,512 --until 320
    benches/cmt_beside_ns2.py --as-published        Segue as scenarios/papers/cmt.toml has it, ns-2 with Max.Burst

The network is that of scenarios/papers/cmt.toml: 384 kbit/s and 80 ms, and `ratio` times that and 15 ms. Compared is
what arrives, each chunk counted once, as a share of what both links carry less the headers: ns-2 has those of IPv4,
Segue those of IPv6. Needs ns-2 (Debian package ns2) and Segue's Python package.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import segue

SCRIPT = Path(__file__).resolve().parent / "peers" / "ns2" / "cmt.tcl"
KIB = 1024
SLOW_BPS = 384_000
BEGIN_S = 20
"""Start-up is over."""
MOST_CHUNKS = 65_000
"""ns-2's receiver compares stream sequence numbers, of 16 bit, as numbers: in the 65536th chunk it stops delivering."""
MOST_RATIO = 30
"""Above it there are too few chunks for a minute."""
USER_DATA, DATA_CHUNK = 1452, 1468
PACKET_IPV6 = 1520
MTU = 1520

LIKE_NS2 = {
    "cmt.scheduler": "turns",
    "cmt.mfr": "false",
    "cmt.spare_recent": "false",
    "cmt.pf_recovery": "2",
    "cmt.own_rtt": "false",
    "cmt.ignore_stale_sacks": "false",
    "sctp.max_burst": "0",
}
"""What ns-2's agent does, as far as Segue can be set to it.

- `scheduler`: what a SACK lets go goes on one path until its window is full; the next SACK begins with the other.
- `mfr`: a chunk is fast retransmitted once; when it is lost again it waits for T3-rtx.
- `spare_recent`: a T3-rtx that expires marks all that is outstanding on the path.
- `pf_recovery`: a path that has answered its heartbeat begins with two segments (`cmtPFCwnd_`).
- `own_rtt`, `ignore_stale_sacks`: round trips are measured by any SACK; what a SACK does not report any more is
  outstanding again, even if the SACK was overtaken.
- `max_burst`: no limit. The agent applies its limit from the first acknowledged retransmission on and not before, so
  that it is switched off there too.
"""

AS_PUBLISHED: dict[str, str] = {}
"""The scenario as it is."""


@dataclass(frozen=True)
class Case:
    """Two paths and a buffer."""

    ratio: int
    rbuf_kib: int

    def __str__(self) -> str:
        return f"ratio {self.ratio}, {self.rbuf_kib} kB"

    def end(self, until_s: int) -> int:
        """When the measurement ends: before ns-2 has sent all the chunks it can, s."""
        chunks_per_s = (self.ratio + 1) * SLOW_BPS / 8 / 1500
        return min(until_s, int(MOST_CHUNKS / chunks_per_s))


CASES = [
    *(Case(ratio, rbuf) for ratio in (1, 2) for rbuf in (64, 128, 256, 512, 1024, 2048)),
    *(Case(ratio, rbuf) for ratio in (3, 4, 8, 14) for rbuf in (512, 1024, 2048)),
]
"""Those that the comparison is about: buffers of 512 kB and more, and ratios 1 and 2."""


@dataclass(frozen=True)
class Variation:
    """What the runs of an ensemble differ in."""

    slow_delay_ms: float = 80
    fast_delay_ms: float = 15
    queue: int = 50


VARIATIONS = [
    Variation(slow, fast, queue)
    for slow in (80, 79, 81, 79.5, 80.5)
    for fast, queue in ((15, 50), (14.9, 49), (15.1, 51))
]
"""By a hundredth of the delays at most, and a packet of the queues; the first is the paper's network."""


def ns2_share(case: Case, variation: Variation, until_s: int, max_burst: bool = False) -> float:
    """What ns-2 gets of what it could."""
    end = case.end(until_s)
    numbers = (case.ratio, case.rbuf_kib * KIB, variation.queue, BEGIN_S, end)
    delays = (variation.slow_delay_ms, variation.fast_delay_ms)
    command = ["ns", str(SCRIPT), *map(str, (*numbers, *delays, int(max_burst)))]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
    lines = [line.split() for line in output.splitlines()]
    return float(next(line[1] for line in lines if line[:1] == ["share"]))


def segue_share(case: Case, variation: Variation, until_s: int, settings: dict[str, str] = LIKE_NS2) -> float:
    """What Segue gets of what it could. The buffer holds as many chunks as ns-2's, which counts their headers."""
    end = case.end(until_s)
    # less than a packet of room is advertised as none
    rbuf = case.rbuf_kib * KIB // DATA_CHUNK * USER_DATA + MTU - USER_DATA
    overrides = {
        "scheme": "cmt",
        "bw_ratio": str(case.ratio),
        "rbuf": f"{rbuf} B",
        "queue.packets": str(variation.queue),
        "link.ran1.delay": f"{variation.fast_delay_ms} ms",
        "link.ran2.delay": f"{variation.slow_delay_ms} ms",
        "t_1": "0 s",
        "t_dwell": "1000 s",
        "file_size": "1 GB",
        "duration": f"{end} s",
        **settings,
    }
    metrics = segue.run("papers/cmt", overrides, trace=False).metrics
    arrived = sum(metrics.flows[0].received_bytes_by_second[BEGIN_S:end])
    possible = (case.ratio + 1) * SLOW_BPS * USER_DATA / PACKET_IPV6 * (end - BEGIN_S)
    return 8 * arrived / possible


@dataclass(frozen=True)
class Comparison:
    """Shares of the same case, by run."""

    case: Case
    ns2: Sequence[float]
    segue: Sequence[float]

    @property
    def difference(self) -> float:
        """Of Segue's mean, as a share of ns-2's."""
        return statistics.fmean(self.segue) / statistics.fmean(self.ns2) - 1

    @property
    def half_width(self) -> float:
        """Of the 95 % interval of that difference (Welch); none for single runs."""
        if min(len(self.ns2), len(self.segue)) < 2:
            return 0.0
        parts = [statistics.variance(shares) / len(shares) for shares in (self.ns2, self.segue)]
        total = sum(parts)
        if total == 0:
            return 0.0
        freedom = total**2 / sum(p**2 / (len(s) - 1) for p, s in zip(parts, (self.ns2, self.segue), strict=True))
        return t_quantile(freedom) * math.sqrt(total) / statistics.fmean(self.ns2)

    @property
    def ns2_range(self) -> float:
        """How far ns-2's own runs lie apart, as a share of their mean."""
        return (max(self.ns2) - min(self.ns2)) / statistics.fmean(self.ns2)


def t_quantile(freedom: float) -> float:
    """0.975 quantile of Student's t (Abramowitz and Stegun 26.7.5): 3 % off with two degrees of freedom, less above."""
    z = statistics.NormalDist().inv_cdf(0.975)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def compare(
    case: Case,
    variations: Iterable[Variation],
    until_s: int,
    settings: dict[str, str] = LIKE_NS2,
    max_burst: bool = False,
    jobs: int = 1,
) -> Comparison:
    """Runs a case by both, once for each variation."""
    variations = list(variations)
    with ThreadPoolExecutor(jobs) as pool:
        ns2 = pool.map(partial(ns2_share, case, until_s=until_s, max_burst=max_burst), variations)
        ours = pool.map(partial(segue_share, case, until_s=until_s, settings=settings), variations)
        return Comparison(case, list(ns2), list(ours))


def parse_case(text: str) -> Case:
    """RATIO,KB."""
    try:
        ratio, rbuf_kib = map(int, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected RATIO,KB, as in 14,512") from None
    if not (1 <= ratio <= MOST_RATIO and rbuf_kib >= 1):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a ratio of 1 to {MOST_RATIO}, and at least 1 kB")
    return Case(ratio, rbuf_kib)


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", type=parse_case, action="append", metavar="RATIO,KB", help="instead of all")
    parser.add_argument(
        "--runs", type=int, default=len(VARIATIONS), help="of each case, by both (default: %(default)s)"
    )
    parser.add_argument("--until", type=int, default=200, metavar="S", help="end of measurement (default: %(default)s)")
    parser.add_argument("--as-published", action="store_true", help="do not set Segue to what ns-2's agent does")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time (default: %(default)s)")
    arguments = parser.parse_args()
    if not 3 <= arguments.runs <= len(VARIATIONS):
        parser.error(f"--runs {arguments.runs}: expected 3 to {len(VARIATIONS)}")
    if arguments.until <= BEGIN_S:
        parser.error(f"--until {arguments.until}: expected more than {BEGIN_S} s")
    settings = AS_PUBLISHED if arguments.as_published else LIKE_NS2
    print("ratio    kB  |  ns-2: mean   sd   least  most  |  Segue: mean   sd   least  most  |  difference, 95 %")
    for case in arguments.case or CASES:
        result = compare(
            case,
            VARIATIONS[: arguments.runs],
            arguments.until,
            settings,
            max_burst=arguments.as_published,
            jobs=arguments.jobs,
        )
        columns = [
            f"{statistics.fmean(s):10.3f} {statistics.stdev(s):6.3f} {min(s):6.3f} {max(s):6.3f}"
            for s in (result.ns2, result.segue)
        ]
        print(
            f"{case.ratio:5d} {case.rbuf_kib:5d}  |  {columns[0]}  |  {columns[1]}   |"
            f" {100 * result.difference:+6.1f} % +- {100 * result.half_width:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:
        sys.exit(f"{error.filename}: not installed")

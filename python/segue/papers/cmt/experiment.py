"""What is run for the paper on mSCTP-CMT, and what is kept of each run.

Every figure needs some points; points that several figures share are run once. A point is a scheme in a setting, and a
run of it has a seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from segue.papers.cmt.model import Handover, Scheme, payload_share, transfer_time
from segue.runner import Runner
from segue.running import Progress, job
from segue.scenarios import load

SCENARIO = "papers/cmt"

SEEDS = 7
"""Enough for an interval of 95 % from order statistics (six), and a median that is one of them."""
QUICK_SEEDS = 2

RATIOS = tuple(range(1, 15))
"""Table I."""
QUICK_RATIOS = (1, 2, 3, 4, 6, 8, 11, 14)
DWELLS_S = (2, 5, 10, 15, 20, 25, 30, 35, 40)
"""Table I: 2 to 40 s."""
IDEAL_DWELLS_S = (2, 5, 10, 20, 30, 40)
QUICK_DWELLS_S = (2, 10, 20, 40)
RATIO = 4
"""Of figures 5 and 6."""
DWELL_S = 40
"""Of figure 5; the paper does not say which figure 7 has, and this one is kept."""
QUEUE = 50
"""Packets: the scenario's own choice."""
QUEUES = (20, 50, 100)

KIB = 1024
IDEAL_KIB = 2048
"""Table I: "ideal buffer up to 2 MB"."""
UNLIMITED_KIB = 65_536
"""What claim C1 calls ideal: no transfer fills it. 2 MB may block from ratio 12 on, where the fast link carries more
than that while a loss on the slow one is repaired."""
BUFFERS_KIB = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
"""Receive buffers tried for figure 7. The paper's kB are taken as 1024 bytes: its sizes are powers of two."""
QUICK_BUFFERS_KIB = (16, 32, 64, 128, 256, 512, 1024, 2048)
FIGURE_6_BUFFERS_KIB = (64, 128, 256, IDEAL_KIB)

SIZE_BYTES = 8_000_000
T_1_S = 2.0
JITTER_MS = 250
"""t_1 of a seed lies so far from `T_1_S` at most. Without this and the losses, all seeds would give the same run."""
LOSS = 1e-4
"""Packets lost on either access link, at random: some one in two transfers."""
SLOW_BPS = 384_000
WIRED_BPS = 100e6
WIRED_DELAY_S = 0.005
FAST_DELAY_S = 0.015
"""Table I."""
SLOW_START_PACKETS = 400
"""By then slow start has filled the fast link at every ratio of table I."""
CHUNK_BYTES = 1468
MTU_BYTES = 1520
INITIAL_CWND_BYTES = 4380
"""A full DATA chunk; the unit by which a SACK opens cwnd, at most, and cwnd at first (RFC 4960 section 7.2.1)."""
QUICK_SACKS = 16
"""Linux's TCP acknowledges so many packets one by one when a connection begins."""
QUICK_CWND_MTUS = 3
"""cwnd at first of usrsctp, in MTUs: four full packets go at once."""
QUICK_START = "all three: a quicker start"
STARTS = {
    "the first DATA acknowledged at once": {"sctp.quick_sacks": "1"},
    f"SACKs for single packets, {QUICK_SACKS} of them": {"sctp.quick_sacks": str(QUICK_SACKS)},
    "early retransmit": {"sctp.early_retransmit": "true"},
    f"cwnd begins with {QUICK_CWND_MTUS} MTUs": {"sctp.initial_cwnd": str(QUICK_CWND_MTUS)},
    QUICK_START: {
        "sctp.quick_sacks": str(QUICK_SACKS),
        "sctp.early_retransmit": "true",
        "sctp.initial_cwnd": str(QUICK_CWND_MTUS),
    },
    "a SACK for every packet throughout": {"sctp.sack_frequency": "1"},
    "cwnd begins with 10 MTUs": {"sctp.initial_cwnd": "10", "sctp.max_burst": "10"},
}
"""What claim C1 is tried with beside what the paper has, by name, as `--set` has it.

RFC 4960 section 5.1 has the first DATA acknowledged at once. Section 6.2 allows SACKs for single packets: slow start
then doubles cwnd in each round trip. With early retransmit (RFC 5827) a loss among the last packets of the file need
not wait for a timeout. Three MTUs are what usrsctp begins with, ten what TCP does (RFC 6928) and stacks for WebRTC have
usrsctp do: both more than RFC 4960 section 7.2.1.
"""
PAYLOAD_BYTES = 1452
PACKET_BYTES = 1520
"""User data of a full packet, and the packet as the links count it: 16 bytes of chunk header, 12 of common header, 40
of IPv6 header."""

SCHEMES = (Scheme.MSCTP_WORST, Scheme.FAILOVER, Scheme.MSCTP_BEST, Scheme.SINGLE, Scheme.CMT)
SCHEME_NAMES = {
    Scheme.MSCTP_WORST: "mSCTP worst",
    Scheme.FAILOVER: "failover",
    Scheme.MSCTP_BEST: "mSCTP best",
    Scheme.SINGLE: "single link (faster)",
    Scheme.CMT: "mSCTP-CMT",
}


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of the scenario.

    Attributes:
        scheme: What carries the data.
        bw_ratio: Faster over slower bandwidth.
        t_dwell_s: Length of the overlap, s.
        rbuf_kib: Receive buffer, KiB.
        queue_packets: Length of all queues, packets.
        variant: Name of what else is set; empty for nothing.
        overrides: What else is set, as `--set` has it.
    """

    scheme: Scheme
    bw_ratio: int = RATIO
    t_dwell_s: int = DWELL_S
    rbuf_kib: int = IDEAL_KIB
    queue_packets: int = QUEUE
    variant: str = ""
    overrides: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def settings(self, seed: int) -> dict[str, str]:
        """As `--set` has them, with what differs from seed to seed."""
        loss = f"{{ model = 'bernoulli', probability = {LOSS:g} }}"
        return {
            "t_1": f"{t_1_ms(seed)} ms",
            "link.ran1.loss": loss,
            "link.ran2.loss": loss,
            "scheme": str(self.scheme),
            "bw_ratio": str(self.bw_ratio),
            "t_dwell": f"{self.t_dwell_s} s",
            "rbuf": f"{self.rbuf_kib * KIB} B",
            "queue.packets": str(self.queue_packets),
            **dict(self.overrides),
        }

    def handover(self, seed: int | None = None) -> Handover:
        """The setting as the equations have it, link rates less the headers."""
        return Handover(
            size=SIZE_BYTES,
            bw_2=SLOW_BPS * payload_share(PAYLOAD_BYTES, PACKET_BYTES),
            bw_ratio=self.bw_ratio,
            t_1=T_1_S if seed is None else t_1_ms(seed) / 1000,
            t_dwell=self.t_dwell_s,
        )

    def theory_s(self, seed: int) -> float:
        """Clamped equation (3), (4) or (5) with that seed's t_1, s."""
        return transfer_time(self.handover(seed), self.scheme)


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is run.

    Attributes:
        seeds: Seeds of each point.
        ratios: Bandwidth ratios of figure 7.
        buffers_kib: Receive buffers of figure 7.
        dwells_s: Dwelling times of figure 6.
        ideal_dwells_s: Dwelling times of claim C1.
    """

    seeds: tuple[int, ...]
    ratios: tuple[int, ...] = RATIOS
    buffers_kib: tuple[int, ...] = BUFFERS_KIB
    dwells_s: tuple[int, ...] = DWELLS_S
    ideal_dwells_s: tuple[int, ...] = IDEAL_DWELLS_S

    @classmethod
    def of(cls, *, quick: bool, seeds: int | None) -> Plan:
        """The whole, or a first look."""
        chosen = tuple(range(1, (seeds or (QUICK_SEEDS if quick else SEEDS)) + 1))
        if quick:
            return cls(chosen, QUICK_RATIOS, QUICK_BUFFERS_KIB, QUICK_DWELLS_S, QUICK_DWELLS_S)
        return cls(chosen)

    def points(self) -> list[Point]:
        """Every point of the paper's figures and claims, once."""
        starts = [point for name in STARTS for point in self.starts(name)]
        mine = [*figure_5(), *self.figure_6(), *self.ideal(), *starts, *self.figure_7(), *self.queues()]
        return list(dict.fromkeys(mine))

    def figure_6(self) -> list[Point]:
        """Transfer time against dwelling time, for mSCTP and for CMT with several buffers."""
        others = [
            Point(scheme, t_dwell_s=dwell)
            for scheme in (Scheme.MSCTP_WORST, Scheme.MSCTP_BEST, Scheme.FAILOVER)
            for dwell in self.dwells_s
        ]
        cmt = [
            Point(Scheme.CMT, t_dwell_s=dwell, rbuf_kib=rbuf)
            for rbuf in FIGURE_6_BUFFERS_KIB
            for dwell in self.dwells_s
        ]
        return [*others, *cmt]

    def ideal(self) -> list[Point]:
        """Claim C1: every ratio and dwelling time with an ideal buffer."""
        return [
            Point(scheme, bw_ratio=ratio, t_dwell_s=dwell, rbuf_kib=UNLIMITED_KIB)
            for scheme in (Scheme.CMT, Scheme.MSCTP_BEST, Scheme.MSCTP_WORST)
            for ratio in self.ratios
            for dwell in self.ideal_dwells_s
        ]

    def starts(self, name: str) -> list[Point]:
        """The same for CMT alone, with one of `STARTS`."""
        return varied([p for p in self.ideal() if p.scheme is Scheme.CMT], name, STARTS[name])

    def figure_7(self, queue: int = QUEUE) -> list[Point]:
        """Every ratio with every buffer, beside mSCTP; fewer of both where queues are not the scenario's."""
        coarse = queue != QUEUE
        cmt = [
            Point(Scheme.CMT, bw_ratio=ratio, rbuf_kib=rbuf, queue_packets=queue)
            for ratio in (QUICK_RATIOS if coarse else self.ratios)
            for rbuf in (QUICK_BUFFERS_KIB if coarse else self.buffers_kib)
        ]
        others = [
            Point(scheme, bw_ratio=ratio, queue_packets=queue)
            for scheme in (Scheme.MSCTP_BEST, Scheme.MSCTP_WORST)
            for ratio in (QUICK_RATIOS if coarse else self.ratios)
        ]
        return [*cmt, *others]

    def queues(self) -> list[Point]:
        """Figure 7 with the other queues."""
        return [point for queue in QUEUES if queue != QUEUE for point in self.figure_7(queue)]


def figure_5() -> list[Point]:
    """All schemes in one setting."""
    return [Point(scheme) for scheme in SCHEMES]


def run_points(
    points: Sequence[Point],
    seeds: Sequence[int],
    *,
    runner: Runner,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """As `run_labels`, of each point with each seed; points in order, seeds within a point."""
    return run_labels([(point, seed) for point in points for seed in seeds], runner=runner, progress=progress)


def run_labels(
    labels: Sequence[tuple[Point, int]], *, runner: Runner, progress: Progress | None = None
) -> pl.DataFrame:
    """A row per run of a point with a seed, in order: `setting`, then `measured`."""
    scenario = load(SCENARIO)
    jobs = [job(scenario, point.settings(seed), seed=seed) for point, seed in labels]
    kept = runner.keep(jobs, lambda one: measured(one.metrics_json), progress=progress)
    rows = [setting(point, seed) | one for (point, seed), one in zip(labels, kept, strict=True)]
    return pl.DataFrame(rows, infer_schema_length=None)


def setting(point: Point, seed: int) -> dict[str, Any]:
    """The first columns of a run's row: what was run.

    `scheme`, `bw_ratio`, `t_dwell_s`, `rbuf_kib`, `queue_packets`, `variant`, `seed`; `theory_s` (the clamped
    equation).
    """
    return {
        "scheme": str(point.scheme),
        "bw_ratio": point.bw_ratio,
        "t_dwell_s": point.t_dwell_s,
        "rbuf_kib": point.rbuf_kib,
        "queue_packets": point.queue_packets,
        "variant": point.variant,
        "seed": seed,
        "theory_s": point.theory_s(seed),
    }


def measured(document: str) -> dict[str, Any]:
    """The other columns: what was measured.

    `transfer_time_s` (null if the file did not arrive whole), `spurious_fast_retransmits`, `timeouts`,
    `rbuf_blocked_s` (how long the sender had room in a congestion window, data, and no room in the peer's),
    `longest_gap_s` (between two arrivals of new data), `sacks`, `packets_sent`, `packets_retransmitted`,
    `event_log_hash`.
    """
    metrics = json.loads(document)
    return {
        "transfer_time_s": metrics["transfer_time_s"],
        "spurious_fast_retransmits": metrics["spurious_fast_retransmits"],
        "timeouts": metrics["timeouts"],
        "rbuf_blocked_s": metrics["rbuf_blocked_s"],
        "longest_gap_s": metrics["longest_gap_s"],
        "sacks": metrics["sacks_sent"],
        "packets_sent": metrics["packets_sent"],
        "packets_retransmitted": metrics["packets_retransmitted"],
        "event_log_hash": metrics["event_log_hash"],
    }


def t_1_ms(seed: int) -> int:
    """When the overlap begins, ms: drawn by the seed, evenly around `T_1_S`."""
    return round(1000 * T_1_S + random.Random(seed).uniform(-JITTER_MS, JITTER_MS))


def slow_start_idle_s(ratio: float, quick_sacks: int = 0, cwnd: int = INITIAL_CWND_BYTES) -> float:
    """How long slow start leaves the fast link idle after the first packet has left, s.

    A closed loop with nothing of the simulator in it: cwnd and chunks in bytes (RFC 4960 section 7.2.1), a SACK for
    each of the first `quick_sacks` packets and then for every second one, over the delays of table I. cwnd begins with
    `cwnd` bytes.

    >>> round(slow_start_idle_s(14), 2), round(slow_start_idle_s(14, QUICK_SACKS), 2), round(slow_start_idle_s(1), 2)
    (0.15, 0.1, 0.03)
    """
    packet_bits = PACKET_BYTES * 8
    transmission = packet_bits / (ratio * SLOW_BPS)
    one_way = WIRED_DELAY_S + FAST_DELAY_S
    to_link = one_way + packet_bits / WIRED_BPS
    flightsize, waiting = 0, 0
    now = free = idle = 0.0
    sent: list[float] = []
    for number in range(SLOW_START_PACKETS):
        while flightsize < cwnd:
            sent.append(now)
            flightsize += CHUNK_BYTES
        reaches = sent[number] + to_link
        idle += max(reaches - free, 0.0)
        free = max(reaches, free) + transmission
        waiting += 1
        if number < quick_sacks or waiting == 2:
            # cwnd was full, or the sender would have gone on
            cwnd += min(waiting * CHUNK_BYTES, MTU_BYTES)
            flightsize -= waiting * CHUNK_BYTES
            waiting, now = 0, free + one_way
    return idle


def quicker_start_idle_s(ratio: float) -> float:
    """The same with `QUICK_START`, s.

    >>> round(quicker_start_idle_s(14), 2)
    0.08
    """
    return slow_start_idle_s(ratio, QUICK_SACKS, QUICK_CWND_MTUS * MTU_BYTES)


def timed(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with `transfer_time_s` infinite where the file did not arrive whole: longer than any that did."""
    return frame.with_columns(pl.col("transfer_time_s").cast(pl.Float64).fill_null(float("inf")))


def saved_s(slower: pl.DataFrame, faster: pl.DataFrame, by: Sequence[str] = ("seed",)) -> pl.DataFrame:
    """What the second saves of the transfer time of the first, `saved_s`, for all that they share of `by`.

    Where neither file arrived whole there is nothing to compare, and no row.
    """
    both = (timed(one).select(*by, **{name: "transfer_time_s"}) for name, one in (("slow", slower), ("fast", faster)))
    joined = next(both).join(next(both), on=list(by), how="inner")
    return joined.with_columns(saved_s=pl.col("slow") - pl.col("fast")).filter(pl.col("saved_s").is_not_nan())


def select(frame: pl.DataFrame, points: Iterable[Point]) -> pl.DataFrame:
    """The rows of these points."""
    wanted = pl.DataFrame(
        [
            {
                "scheme": str(p.scheme),
                "bw_ratio": p.bw_ratio,
                "t_dwell_s": p.t_dwell_s,
                "rbuf_kib": p.rbuf_kib,
                "queue_packets": p.queue_packets,
                "variant": p.variant,
            }
            for p in dict.fromkeys(points)
        ]
    )
    return frame.join(wanted, on=wanted.columns, how="semi")


def varied(points: Iterable[Point], variant: str, overrides: dict[str, str]) -> list[Point]:
    """The same points with something else set, under a name."""
    return [replace(point, variant=variant, overrides=tuple(overrides.items())) for point in points]


def theory_s(scheme: Scheme, t_dwell_s: float, bw_ratio: float = RATIO) -> float:
    """Clamped equation (3), (4) or (5) at any dwelling time, s; link rates less the headers."""
    return transfer_time(replace(Point(scheme).handover(), bw_ratio=bw_ratio, t_dwell=t_dwell_s), scheme)

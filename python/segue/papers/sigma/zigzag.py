"""Claim S11: what it saves a host that zigzags to deactivate its old address instead of deleting it.

It is step 5 of Fu et al. 2005 II-A.

The scenario is `scenarios/zigzag.toml`. The variants differ in `handover.delete` alone: with "deactivate" the host
keeps its old address and the peer is asked to leave it alone; with "on-link-down" the address is deleted, and obtained
and added again whenever the host is back.

Everything is counted per crossing of the border, which the path of the host makes the same number for both, and not per
handover: a host that gets no address in the overlap turns round in the other cell and is back in the old one before it
has another, so that a crossing may have no handover at all, and the longest time without data.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from statistics import mean, median

import polars as pl
from matplotlib.figure import Figure

from segue.figures.sweep import Curves, Panel, curves
from segue.papers.claims import Claim
from segue.papers.grid import summarise
from segue.recorded import Recorded
from segue.runner import Runner
from segue.running import Progress, job
from segue.scenarios import load
from segue.stats import median_interval

SCENARIO = "zigzag"
DURATION = "120 s"
QUICK_DURATION = "60 s"
VARIANTS = ("on-link-down", "deactivate")
SPEEDS_MPS = (1.0, 2.0, 4.0, 6.0, 8.0, 12.0)
"""In the overlap of 10 m a new address is ready, some 1.2 s after its entry (a beacon, attaching, router discovery, and
a second of duplicate address detection), up to 8 m/s, and at 12 m/s no longer."""

VARIANT = "delete"
MPS = "speed_mps"
PACKETS = "signalling_packets_per_crossing"
BYTES = "signalling_bytes_per_crossing"
READY = "ready_s"
INTERRUPTION = "interruption_median_s"
INTERRUPTION_MEAN = "interruption_mean_s"
ADVERTISEMENTS_LOST = "advertisements_lost_per_crossing"
MEASURES = (PACKETS, BYTES, READY, INTERRUPTION, INTERRUPTION_MEAN, ADVERTISEMENTS_LOST)

SIGNALLING = (
    "RS", "RA", "NS", "NA", "UDP", "AUTH", "HEARTBEAT", "HEARTBEAT-ACK",
)  # fmt: skip
"""Kinds of packets that are neither data nor acknowledge it nor set the association up: address configuration (DHCPv6
is UDP), path verification, and all whose names begin with ASCONF. An authenticated ASCONF is a row of AUTH and one of
ASCONF, and one packet."""
SPACING_S = 0.008
"""Times without data that differ by no more count as the same: it is the time between two packets of the stream. Less
than that is a packet that waits for a beacon or another frame, in or out of a handover."""
LEAST_COVERAGE = 0.9
"""Of an interval that says something beyond chance: five seeds reach 0.9375, four 0.875."""


def run(seeds: Sequence[int], *, quick: bool, runner: Runner, progress: Progress | None = None) -> pl.DataFrame:
    """A row per run: variant, `speed_mps`, `seed`, and what `measure` gives."""
    scenario = load(SCENARIO)
    points = [(variant, speed, seed) for variant in VARIANTS for speed in SPEEDS_MPS for seed in seeds]
    jobs = [
        job(scenario, overrides(variant, speed, quick=quick), seed=seed, trace=True) for variant, speed, seed in points
    ]
    measured = runner.keep(jobs, measure, progress=progress)
    rows = [
        {VARIANT: variant, MPS: speed, "seed": seed, **one}
        for (variant, speed, seed), one in zip(points, measured, strict=True)
    ]
    return pl.DataFrame(rows)


def overrides(variant: str, speed: float, *, quick: bool) -> dict[str, str]:
    """What a variant sets at a speed, m/s."""
    return {
        "handover.delete": variant,
        "mobile.speed": f"{speed:g} m/s",
        "duration": QUICK_DURATION if quick else DURATION,
    }


def measure(result: Recorded) -> dict[str, float | int | None]:
    """Numbers of one traced run.

    `crossings` of the border, from entering the overlap to entering it again, and `handovers`;
    `signalling_packets_per_crossing` and `signalling_bytes_per_crossing`, of IPv6 packets that the mobile host sent or
    received; `ready_s`, median time from the link's being up to an address that the peer can send to, returns to a cell
    only; `interruption_median_s` and `interruption_mean_s`, over all crossings, of the longest time without new data;
    `advertisements_lost_per_crossing`, router advertisements that collided on the radio channel.
    """
    signalling = result.signalling.sort("time_ns")
    node = signalling.filter(pl.col("event") == "link-up")["node"]
    mobile = signalling.filter(pl.col("node") == node[0]) if not node.is_empty() else signalling.clear()
    # The first cell is entered at the beginning.
    entered = mobile.filter(pl.col("event") == "enters")["time_ns"].to_list()[1:]
    counts: dict[str, float | int | None] = {
        "crossings": max(len(entered) - 1, 0),
        "handovers": len(result.metrics.handovers),
    }
    if len(entered) < 2:
        return counts | dict.fromkeys(MEASURES)
    count = len(entered) - 1
    at_host = result.packets.filter(pl.col("node") == node[0])
    packets = at_host.filter(
        pl.col("action").is_in(["sent", "received"])
        & (pl.col("kind").is_in(list(SIGNALLING)) | pl.col("kind").str.starts_with("ASCONF"))
    ).unique("packet_id")
    arrivals = at_host.filter((pl.col("action") == "received") & (pl.col("kind") == "DATA"))
    interruptions = _interruptions(
        entered,
        arrivals.group_by("tsn").agg(pl.col("time_ns").min())["time_ns"].sort().to_list(),
        int(result.metrics.duration_s * 1e9),
    )
    waits = _waits(mobile)
    lost = result.packets.filter((pl.col("action") == "dropped") & (pl.col("kind") == "RA"))
    return counts | {
        PACKETS: packets.height / count,
        BYTES: int(packets["length_bytes"].sum()) / count,
        READY: median(waits) if waits else None,
        INTERRUPTION: median(interruptions),
        INTERRUPTION_MEAN: mean(interruptions),
        ADVERTISEMENTS_LOST: lost.height / count,
    }


def _interruptions(entered: Sequence[int], arrivals: Sequence[int], end: int) -> list[float]:
    """By crossing: seconds of the longest time without new data that begins in it.

    Where none begins since nothing arrives in all of it, that which spans it.
    """
    times = [0, *arrivals, end]
    longest = []
    for start, stop in pairwise(entered):
        first = bisect_left(times, start)
        last = bisect_left(times, stop)
        begins = range(first, last) if first < last else (first - 1,)
        longest.append(max(times[i + 1] - times[i] for i in begins) / 1e9)
    return longest


def _waits(signalling: pl.DataFrame) -> list[float]:
    """Seconds from each `link-up` in a cell that the host was in before to the next address that is ready."""
    seen: set[str] = set()
    up_ns: int | None = None
    waits: list[float] = []
    for row in signalling.iter_rows(named=True):
        if row["event"] == "link-up":
            up_ns = row["time_ns"] if row["detail"] in seen else None
            seen.add(row["detail"])
        elif row["event"] in ("add-acknowledged", "address-reused") and up_ns is not None:
            waits.append((row["time_ns"] - up_ns) / 1e9)
            up_ns = None
    return waits


def s11(frame: pl.DataFrame) -> Claim:
    """The claim, from the frame of `run`."""
    tables = {column: _medians(frame, column) for column in MEASURES}
    less = {
        column: bool(table) and all(deactivated < deleted for deleted, deactivated in table.values())
        for column, table in tables.items()
    }
    interruption = tables[INTERRUPTION]
    lower_at = [speed for speed, (a, b) in interruption.items() if b < a - SPACING_S]
    higher_at = [speed for speed, (a, b) in interruption.items() if b > a + SPACING_S]
    surely_higher_at = _surely_higher(frame)
    latency = bool(lower_at) and not higher_at and not surely_higher_at
    rest = less[PACKETS] and less[BYTES] and less[READY] and latency
    # of too few seeds no difference is beyond chance
    holds = None if rest and surely_higher_at is None else rest

    def each(column: str, scale: float, digits: int) -> str:
        return ", ".join(
            f"{speed:g} m/s {a * scale:.{digits}f} and {b * scale:.{digits}f}"
            for speed, (a, b) in tables[column].items()
        )

    return Claim(
        "S11",
        "deactivating the old address lets a host that zigzags use it again, with less signalling and latency than "
        "deleting and adding it",
        "reduces latency and signalling traffic caused by obtaining a new address (II-A, step 5; no numbers)",
        f"deleted and deactivated, medians over seeds: packets per crossing {each(PACKETS, 1, 1)}; bytes "
        f"{each(BYTES, 1, 0)}; from link up to a ready address, ms, {each(READY, 1e3, 0)}; longest time without data "
        f"in a crossing, ms, its median {each(INTERRUPTION, 1e3, 1)}, its mean {each(INTERRUPTION_MEAN, 1e3, 0)}",
        holds,
        f"at every speed: fewer packets ({_met(less[PACKETS])}), fewer bytes ({_met(less[BYTES])}), a "
        f"shorter time until an address is ready ({_met(less[READY])}); and for latency ({_met(latency)}), the longest "
        f"time without data in a crossing: its median over crossings higher by more than {SPACING_S * 1e3:g} ms, a "
        f"packet spacing, at no speed (so it is at {_speeds(higher_at)}) and lower by as much at one or more "
        f"({_speeds(lower_at)}), its mean higher beyond chance at no speed ("
        + ("not judged, of so few seeds" if surely_higher_at is None else f"so it is at {_speeds(surely_higher_at)}")
        + ", by the interval over five seeds or more of the difference between runs of one seed).",
        "Where a new address "
        "comes in time for the end of the overlap, the data sees one packet spacing either way: what is saved there is "
        "signalling, and latency only where the host is too fast for duplicate address detection. The mean has in it "
        "the crossings without an address: the router's advertisement, which answers a solicitation from the "
        "unspecified address by multicast and is sent once, collides with a frame of the host's own, and the next "
        "solicitation follows after 4 s, whatever is done with "
        f"addresses (lost advertisements per 100 crossings {each(ADVERTISEMENTS_LOST, 100, 1)}). Handover latency as "
        "Fu et al. 2005 VI-A defines it would leave out those crossings that end without a handover, where the host "
        "turns round first, and so favour the variant that misses more. Signalling is address configuration, ASCONF "
        "and path "
        "verification. Addresses come from SLAAC with duplicate address detection of one second; a reused one needs "
        "neither that nor Add IP Address nor path verification. a_rwnd belongs to the association, so the zero window "
        "for one address that the paper speaks of is a private ASCONF parameter here.",
        fitted="Latency was the mean over handovers, no higher by more than a millisecond, until it had been seen to "
        "leave out the crossings without a handover. Crossings are compared since then, a packet spacing is what "
        "counts as the same, and 12 m/s was added, since up to 8 m/s both variants are in time.",
    )


def figure(frame: pl.DataFrame) -> tuple[Figure, pl.DataFrame]:
    """Signalling against speed, with its table, which has the other quantities too."""
    parts = {column: summarise(frame.drop_nulls(column), [MPS, VARIANT], column) for column in MEASURES}
    summary = pl.concat([part.with_columns(quantity=pl.lit(column)) for column, part in parts.items()])
    drawn = curves(
        parts[PACKETS],
        Curves(
            x=MPS,
            series=VARIANT,
            x_label="moving speed (m/s)",
            series_label="{}",
            names={"on-link-down": "deleted", "deactivate": "deactivated"},
        ),
        panels=[Panel("signalling packets per crossing")],
        title="Zigzag: the old address deleted, or deactivated and used again",
        subtitle="SLAAC with duplicate address detection of 1 s.",
    )
    return drawn, summary


def _surely_higher(frame: pl.DataFrame) -> list[float] | None:
    """Speeds at which the mean time without data is higher with deactivation, beyond chance.

    `None` if that could be told at none, since there are too few seeds.
    """
    deleted, deactivated = (frame.filter(pl.col(VARIANT) == variant) for variant in VARIANTS)
    pairs = deleted.join(deactivated, on=[MPS, "seed"], suffix="_b").with_columns(
        difference=pl.col(f"{INTERRUPTION_MEAN}_b") - pl.col(INTERRUPTION_MEAN)
    )
    surely, told = [], False
    for (speed,), group in pairs.drop_nulls("difference").sort(MPS).group_by(MPS, maintain_order=True):
        interval = median_interval(group["difference"].to_list())
        enough = interval.coverage >= LEAST_COVERAGE
        told |= enough
        if enough and interval.low > SPACING_S:
            surely.append(speed)
    return surely if told else None


def _medians(frame: pl.DataFrame, column: str) -> dict[float, tuple[float, float]]:
    """By speed: the median with deletion and with deactivation; speeds that lack one are left out."""
    summary = summarise(frame.drop_nulls(column), [MPS, VARIANT], column)
    values = {(row[MPS], row[VARIANT]): float(row["median"]) for row in summary.iter_rows(named=True)}
    return {
        speed: (values[speed, VARIANTS[0]], values[speed, VARIANTS[1]])
        for speed in sorted({speed for speed, _ in values})
        if all((speed, variant) in values for variant in VARIANTS)
    }


def _speeds(speeds: Sequence[float]) -> str:
    return ", ".join(f"{speed:g} m/s" for speed in speeds) or "no speed"


def _met(condition: bool) -> str:
    return "met" if condition else "not met"

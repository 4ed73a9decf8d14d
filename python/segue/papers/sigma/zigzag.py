"""Claim S11: what it saves a host that zigzags to deactivate its old address instead of deleting it (000 II-A, step 5).

The scenario is `scenarios/zigzag.toml`. The variants differ in `handover.delete` alone: with "deactivate" the host
keeps its old address and the peer is asked to leave it alone; with "on-link-down" the address is deleted, and obtained
and added again whenever the host is back.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

import polars as pl
from matplotlib.figure import Figure

from segue.grid import summarise
from segue.papers.claims import Claim
from segue.plot.sweep import Panel, curves
from segue.run import Progress, Run, job, run_jobs
from segue.scenarios import load

SCENARIO = "zigzag"
DURATION = "120 s"
QUICK_DURATION = "60 s"
VARIANTS = ("on-link-down", "deactivate")
SPEEDS_MPS = (1.0, 2.0, 4.0, 6.0, 8.0)
"""From a walk to a speed at which a new address is hardly ready in the overlap of 10 m: attaching, router discovery and
a second of duplicate address detection."""

VARIANT = "delete"
MPS = "speed_mps"
PACKETS = "signalling_packets_per_handover"
BYTES = "signalling_bytes_per_handover"
READY = "ready_s"
LATENCY = "latency_mean_s"

SIGNALLING = (
    "RS", "RA", "NS", "NA", "UDP", "ASCONF", "ASCONF-ADD", "ASCONF-SET-PRIMARY", "ASCONF-DELETE", "ASCONF-DEACTIVATE",
    "ASCONF-ACTIVATE", "ASCONF-ACK", "AUTH", "HEARTBEAT", "HEARTBEAT-ACK",
)  # fmt: skip
"""Kinds of packets that are neither data nor acknowledge it nor set the association up: address configuration (DHCPv6
is UDP), ASCONF, path verification. An authenticated ASCONF is a row of AUTH and one of ASCONF, and one packet."""
NOT_HIGHER_S = 0.001
"""Handover latency that counts as the same: an eighth of the 8 ms between two packets of the stream."""


def run(
    seeds: Sequence[int], *, quick: bool, threads: int | None = None, progress: Progress | None = None
) -> pl.DataFrame:
    """A row per run: variant, `speed_mps`, `seed`, `handovers`, and what `measure` gives."""
    scenario = load(SCENARIO)
    points = [(variant, speed, seed) for variant in VARIANTS for speed in SPEEDS_MPS for seed in seeds]
    rows = []
    for done, (variant, speed, seed) in enumerate(points):
        overrides = {
            "handover.delete": variant,
            "mobile.speed": f"{speed:g} m/s",
            "duration": QUICK_DURATION if quick else DURATION,
        }
        # One at a time: a trace is large, and what is needed of it is not.
        (result,) = run_jobs([job(scenario, overrides, seed=seed, trace=True)], threads=threads)
        rows.append({VARIANT: variant, MPS: speed, "seed": seed, **measure(result)})
        if progress is not None:
            progress(done + 1, len(points))
    return pl.DataFrame(rows)


def measure(result: Run) -> dict[str, float | int | None]:
    """Numbers of one traced run.

    `handovers`; `signalling_packets_per_handover` and `signalling_bytes_per_handover`, of IPv6 packets that the mobile
    host sent or received; `ready_s`, median time from the link's being up to an address that the peer can send to,
    returns to a cell only; `latency_mean_s`, handover latency as 000 VI-A defines it, mean over handovers.
    """
    signalling = result.signalling.sort("time_ns")
    node = signalling.filter(pl.col("event") == "link-up")["node"]
    handovers = result.metrics.handovers
    count = len(handovers)
    if node.is_empty() or count == 0:
        return {"handovers": count, PACKETS: None, BYTES: None, READY: None, LATENCY: None}
    mobile = node[0]
    packets = result.packets.filter(
        (pl.col("node") == mobile)
        & pl.col("action").is_in(["sent", "received"])
        & pl.col("kind").is_in(list(SIGNALLING))
    ).unique("packet_id")
    waits = _waits(signalling.filter(pl.col("node") == mobile))
    return {
        "handovers": count,
        PACKETS: packets.height / count,
        BYTES: int(packets["length_bytes"].sum()) / count,
        READY: float(pl.Series(waits).median()) if waits else None,  # type: ignore[arg-type]
        LATENCY: mean(handover.latency_s for handover in handovers),
    }


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
    tables = {column: _medians(frame, column) for column in (PACKETS, BYTES, READY, LATENCY)}
    less = {
        column: bool(table) and all(deactivated < deleted for deleted, deactivated in table.values())
        for column, table in tables.items()
    }
    latency = tables[LATENCY]
    not_higher = bool(latency) and all(b <= a + NOT_HIGHER_S for a, b in latency.values())
    lower_at = [speed for speed, (a, b) in latency.items() if b < a - NOT_HIGHER_S]
    higher_at = [speed for speed, (a, b) in latency.items() if b > a + NOT_HIGHER_S]
    holds = less[PACKETS] and less[BYTES] and less[READY] and not_higher

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
        f"deleted and deactivated, medians over seeds: packets per handover {each(PACKETS, 1, 1)}; bytes "
        f"{each(BYTES, 1, 0)}; from link up to a ready address, ms, {each(READY, 1e3, 0)}; handover latency, ms, "
        f"{each(LATENCY, 1e3, 1)}",
        holds,
        f"Criterion, at every speed: fewer packets ({_met(less[PACKETS])}), fewer bytes ({_met(less[BYTES])}), a "
        f"shorter time until an address is ready ({_met(less[READY])}), and a handover latency that is not higher by "
        f"more than {NOT_HIGHER_S * 1e3:g} ms ({_met(not_higher)}). Handover latency is lower at {_speeds(lower_at)}, "
        f"higher at {_speeds(higher_at)}: what the data sees is one packet spacing wherever the new address comes in "
        "time. Signalling is address configuration, ASCONF and path verification. Addresses come from "
        "SLAAC with duplicate address detection of one second; a reused one needs neither that nor Add IP Address nor "
        "path verification. a_rwnd belongs to the association, so the zero window for one address that the paper "
        "speaks of is a private ASCONF parameter here.",
    )


def figure(frame: pl.DataFrame) -> tuple[Figure, pl.DataFrame]:
    """Signalling and time to a ready address against speed, with its table."""
    columns = [PACKETS, READY, LATENCY]
    parts = {column: summarise(frame.drop_nulls(column), [MPS, VARIANT], column) for column in columns}
    summary = pl.concat([part.with_columns(quantity=pl.lit(column)) for column, part in parts.items()])
    drawn = curves(
        parts[PACKETS],
        x=MPS,
        series=VARIANT,
        x_label="moving speed (m/s)",
        series_label="{}",
        panels=[Panel("signalling packets per handover")],
        title="Zigzag: the old address deleted, or deactivated and used again",
        subtitle="SLAAC with duplicate address detection of 1 s. Medians over seeds, 95 % intervals.",
    )
    return drawn, summary


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

"""What is run: handovers between LAN, WLAN and GPRS, the equations' parts apart, and the remedies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import polars as pl

from segue.metrics import Metrics
from segue.recorded import Recorded
from segue.runner import Runner
from segue.running import NS_PER_S, Progress, Run, job
from segue.scenarios import load

if TYPE_CHECKING:
    from segue.scenarios import Scenario

SCENARIO = "papers/vertical"
SENDER = "cn"
MOBILE = "mn"

RA_INTERVAL_S = (1.0, 3.0)
"""Of the scenario: between two router advertisements."""
SEGMENT_BYTES = 1500
BEGINS_S = 15.0
"""Handoffs before that set the stage."""

CASE_NAMES = {
    "wlan-gprs": "WLAN to GPRS",
    "lan-gprs": "LAN to GPRS",
    "gprs-wlan": "GPRS to WLAN",
    "gprs-lan": "GPRS to LAN",
}
UPWARD = ("wlan-gprs", "lan-gprs")
DOWNWARD = ("gprs-wlan", "gprs-lan")
PAPER_HANDOVERS = {"wlan-gprs": 20, "lan-gprs": 10}
"""Table 1."""

REMEDIES: dict[str, tuple[str, dict[str, str]]] = {
    "none": ("none", {}),
    "injection": ("RTT injected", {"remedy.rtt_injection": "true", "remedy.rtt_margin": "0.1"}),
    "clamp": ("window clamped", {"remedy.window_clamp.router": "core"}),
    "both": (
        "both",
        {
            "remedy.rtt_injection": "true",
            "remedy.rtt_margin": "0.1",
            "remedy.window_clamp.router": "core",
        },
    ),
    "careful": ("careful resume", {"remedy.careful_resume": "true"}),
    "careful-clamp": (
        "careful resume, clamped",
        {"remedy.careful_resume": "true", "remedy.window_clamp.router": "core"},
    ),
}
"""Name and keys. The handover that counts is the second one to GPRS: senders know it then."""
REMEDY_CASES = {
    "gprs-wlan-gprs": "WLAN to GPRS",
    "gprs-lan-gprs": "LAN to GPRS",
    "gprs-wlan-gprs-soft": "WLAN to GPRS, soft",
}

FAST_ADVERTISEMENTS = {
    # only the wait is of interest: nothing of layer 2, nothing of the way
    "address.router_solicitations": "0",
    "l2.beacon_period": "5 ms",
    "duration": "24 s",
    "application.0.start": "23.9 s",
}
ALWAYS_THERE = {
    "cell.gprs.bearer.down.set_up": "0 s",
    "cell.gprs.bearer.up.set_up": "0 s",
}
"""GPRS whose bearers need not be set up."""
STEADY = {
    **ALWAYS_THERE,
    "cell.gprs.bearer.down.delay": "500 ms",
    "cell.gprs.bearer.down.jitter": "0 s",
    "cell.gprs.bearer.up.delay": "500 ms",
    "cell.gprs.bearer.up.jitter": "0 s",
}
"""GPRS with a round trip that is always the same."""
WIDE = {
    "cell.gprs.bearer.down.delay": "110 ms",
    "cell.gprs.bearer.down.jitter": "400 ms",
    "cell.gprs.bearer.up.delay": "110 ms",
    "cell.gprs.bearer.up.jitter": "400 ms",
}
"""GPRS with the same mean round trip, and twice the jitter."""
EMPTY = {
    **WIDE,
    **ALWAYS_THERE,
    "cell.gprs.bearer.down.delay": "300 ms",
    "cell.gprs.bearer.up.delay": "300 ms",
}
"""GPRS whose mean round trip of a second is that of packets that take no time to send."""
LOADED = {
    **WIDE,
    **ALWAYS_THERE,
    # a segment of 1500 bytes takes 224 ms down, and its acknowledgement some 65 ms up
    "cell.gprs.bearer.down.delay": "155 ms",
    "cell.gprs.bearer.up.delay": "155 ms",
}
"""GPRS whose mean round trip of a second is that of a full segment and its acknowledgement."""
READINGS = {"wide": WIDE, "empty": EMPTY, "loaded": LOADED, "steady": STEADY}
"""What t_a would be were GPRS read otherwise: to be told beside it, not to judge it."""

TWO_LOST = {"mip6.mobile_node.handoff": "on-lost-advertisements"}
UNASKED = {"address.router_solicitations": "0"}
"""Router advertisements come when they come: equation 2 knows of no solicitations."""
SPREAD: dict[str, tuple[str, dict[str, str]]] = {
    "unasked": ("nobody solicits advertisements, as in equation 2", UNASKED),
    "unasked-there": ("nobody solicits them, and bearers of GPRS are set up already", {**UNASKED, **ALWAYS_THERE}),
    "there": ("bearers of GPRS are set up already", ALWAYS_THERE),
    "slow-timer": ("TCP waits a second at least (RFC 2988 section 2.4)", {"tcp.rto_min": "1 s"}),
    "two-lost": ("two advertisements have to be lost first (section 4)", TWO_LOST),
    "dad-too": ("duplicate address detection takes a second", {"address.dad_transmits": "1"}),
}
"""What might spread T_n from WLAN to GPRS as the paper's is: tried one after the other, to be told, not to judge."""

REPAIR = "repair"
REPAIRED_BY_S = 32.0
"""Of downward handovers, which come at 20 s, data is back by then: their tables of packets end there."""
DUPLICATES = 3
"""Duplicate acknowledgements before a fast retransmit (RFC 5681 section 3.2)."""
AT_ONCE_S = 0.01
"""A sender that an acknowledgement has send does so within this time; a real kernel, too."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A set of runs with the same keys.

    Attributes:
        name: What it is called in tables.
        overrides: As `--set` has them.
        seeds: How many.
        since_s: The handover that counts is the first that begins from then on.
    """

    name: str
    overrides: Mapping[str, str]
    seeds: int
    since_s: float = BEGINS_S

    @property
    def traced(self) -> bool:
        """Whether its packets are looked at: see `Looked`."""
        return self.name in UPWARD or self.name in SPREAD or self.name.endswith(f"/{REPAIR}")


@dataclass(frozen=True, slots=True)
class Results:
    """What the runs gave.

    Attributes:
        runs: A row per run and handover that counts, see `rows`.
        throughput: Bins of figures 7 and 8: `case`, `time_s` after the first packet, `throughput_bps`.
        sequence: Packets of figure 9, of the flow: `time_s`, `action`, `kind`, `tsn`, `interface`, `retransmission`.
        windows: cwnd and ssthresh of the sender after an upward handover: `case`, `time_s`, `cwnd_bytes`,
            `ssthresh_bytes`.
        checked: t_a of the record and from the table of packets, by case: `case`, `recorded_s`, `recomputed_s`.
    """

    runs: pl.DataFrame
    throughput: pl.DataFrame
    sequence: pl.DataFrame
    windows: pl.DataFrame
    checked: pl.DataFrame


def variants(seeds: int) -> list[Variant]:
    """All of them, with `seeds` for each of table 1's."""
    half, third = max(seeds // 2, 1), max(seeds // 3, 1)
    hard = [Variant(case, {"case": case}, seeds if case in UPWARD else half) for case in CASE_NAMES]
    readings = [
        Variant(f"{case}-{name}", {"case": case, **keys}, half) for case in UPWARD for name, keys in READINGS.items()
    ]
    parts = [
        Variant("equation-2", {"case": "gprs-lan", **FAST_ADVERTISEMENTS}, 2 * seeds),
        Variant("no-dad", {"case": "wlan-gprs", **STEADY, "duration": "30 s"}, third),
        Variant("dad", {"case": "wlan-gprs", **STEADY, "address.dad_transmits": "1", "duration": "30 s"}, third),
        Variant(
            "after-home",
            {"case": "wlan-gprs", **STEADY, "mip6.mobile_node.registration": "after-home", "duration": "30 s"},
            third,
        ),
    ]
    spread = [Variant(name, {"case": "wlan-gprs", **keys}, half) for name, (_, keys) in SPREAD.items()]
    repairs = [
        Variant(f"{case}/{REPAIR}", {"case": case, "duration": f"{REPAIRED_BY_S:g} s"}, half) for case in DOWNWARD
    ]
    soft = [Variant("wlan-gprs-wlan", {"case": "wlan-gprs-wlan"}, third)]
    remedies = [
        Variant(f"{case}/{remedy}", {"case": case, **keys}, third, since_s=59.0)
        for case in REMEDY_CASES
        for remedy, (_, keys) in REMEDIES.items()
    ]
    return [*hard, *readings, *parts, *spread, *repairs, *soft, *remedies]


def run(seeds: int, *, runner: Runner, progress: Progress | None = None) -> Results:
    """Run everything."""
    scenario = load(SCENARIO)
    labels = [(variant, seed) for variant in variants(seeds) for seed in range(1, variant.seeds + 1)]
    jobs = [
        job(scenario, settings(variant.overrides, seed), seed=seed, trace=variant.traced) for variant, seed in labels
    ]
    seen = runner.keep(jobs, lambda one: see(one, traced=bool(one.table_names)), progress=progress)
    entries = [row for (variant, seed), one in zip(labels, seen, strict=True) for row in rows(variant, seed, one)]
    table = pl.DataFrame(entries, infer_schema_length=None)
    return Results(table, *_traced(scenario, table, runner))


def settings(overrides: Mapping[str, str], seed: int) -> dict[str, str]:
    """Keys of a run: the flow begins up to a second later, by its seed.

    On Ethernet nothing is random, and the handover would come in the middle of the same segment with every seed.
    """
    begin = 1.0 if overrides["case"].startswith("gprs") else 15.0
    later = seed * GOLDEN % 1.0
    return {"application.0.start": f"{begin + later:.6f} s", **overrides}


GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, without their whole parts, are spread evenly however many there are."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What the packets of a handover show: see the functions of these names. `None` if nobody looked at them."""

    first_packet_s: float | None = None
    early_timeouts: int | None = None
    repaired_by: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What is kept of a run, whichever variant it is of.

    Attributes:
        metrics: Of the run.
        packets: Of each handover from `BEGINS_S` on, by its `since_s`. Empty if packets were not looked at.
    """

    metrics: Metrics
    packets: Mapping[float, Looked]


def see(result: Recorded, *, traced: bool) -> Seen:
    """What is kept of a run; of its packets too, if it has them."""
    metrics = result.metrics
    begun = [p.since_s for h in metrics.handoffs if (p := h.parts) is not None and p.since_s >= BEGINS_S]
    return Seen(metrics, {since_s: _look(result, since_s) for since_s in begun if traced})


def _look(result: Recorded, since_s: float) -> Looked:
    return Looked(first_packet(result, since_s), early_timeouts(result, since_s), repaired_by(result, since_s))


def rows(variant: Variant, seed: int, seen: Seen) -> list[dict[str, object]]:
    """What is kept of a run: a row for each handover that counts.

    `variant`, `seed`, `number` of the handover; its parts as `segue.metrics.HandoffParts` has them; `share` of t_a in
    T_n and t_a together; of the whole run `timeouts`, and of the flow `lost_packets`, `retransmissions`,
    `spurious_retransmissions`; `duplicates`; `received_20_s_bytes`, new data in the 20 s from `since_s` on. Of
    handovers whose packets were looked at `first_packet_s`, `early_timeouts` and `repaired_by`, see `Looked`.
    """
    metrics = seen.metrics
    unseen = Looked()
    flow = next((flow for flow in metrics.flows if flow.sender == SENDER), None)
    counted = [
        parts
        for handoff in metrics.handoffs
        if (parts := handoff.parts) is not None and parts.since_s >= variant.since_s
    ]
    return [
        {
            "variant": variant.name,
            "seed": seed,
            "number": number,
            "soft": parts.soft,
            "since_s": parts.since_s,
            "t_d_s": parts.t_d_s,
            "t_c_s": parts.t_c_s,
            "t_r_s": parts.t_r_s,
            "t_n_s": parts.t_n_s,
            "first_data_s": parts.first_data_s,
            "t_a_s": parts.t_a_s,
            **asdict(seen.packets.get(parts.since_s, unseen)),
            "threshold_bps": parts.threshold_bps,
            "share": _share(parts.t_n_s, parts.t_a_s),
            "timeouts": metrics.timeouts,
            "lost_packets": 0 if flow is None else flow.lost_packets,
            "retransmissions": 0 if flow is None else flow.retransmissions,
            "spurious_retransmissions": 0 if flow is None else flow.spurious_retransmissions,
            "duplicates": metrics.duplicate_packets,
            "received_20_s_bytes": 0
            if flow is None
            else sum(flow.received_bytes_by_second[int(parts.since_s) : int(parts.since_s) + 20]),
            "event_log_hash": metrics.event_log_hash,
        }
        for number, parts in enumerate(counted)
    ]


def first_packet(result: Recorded, since_s: float) -> float | None:
    """From `since_s` until the mobile node receives the first packet to its new care-of address, seconds."""
    told, packets = result.signalling, result.packets
    ready = (told["node"] == MOBILE) & (told["event"] == "address-ready") & (told["time_ns"] >= _ns(since_s))
    if not ready.any():
        return None
    begun = int(ready.arg_max() or 0)
    arrived = packets["time_ns"].filter(
        (packets["node"] == MOBILE)
        & (packets["action"] == "received")
        & (packets["destination"] == told["detail"][begun])
        & (packets["time_ns"] >= told["time_ns"][begun])
    )
    return None if arrived.is_empty() else (int(arrived[0]) - _ns(since_s)) / NS_PER_S


def early_timeouts(result: Recorded, since_s: float) -> int:
    """Timeouts of the sender after `since_s` that came while acknowledgements of what it took for lost were in flight.

    Such an acknowledgement had left the mobile node before the timeout, arrives after it, and acknowledges more than
    any that had arrived until then (6.1).
    """
    windows, packets = result.windows, result.packets
    fallen = windows["time_ns"].filter(
        (windows["node"] == SENDER) & (windows["time_ns"] >= _ns(since_s)) & (windows["cwnd_bytes"] <= SEGMENT_BYTES)
    )
    from_sender = (packets["node"] == SENDER) & (packets["action"] == "sent") & packets["retransmission"]
    timeouts = sorted(set(fallen) & set(packets["time_ns"].filter(from_sender)))
    if not timeouts:
        return 0
    acks = packets.select("time_ns", "node", "action", "packet_id", "tsn").filter(packets["kind"] == "ACK")
    # positions in a stream of less than 2 GiB
    origin = int(acks["tsn"][0]) if acks.height else 0
    acks = acks.with_columns(number=(pl.col("tsn").cast(pl.Int64) - origin + 2**31) % 2**32)
    left = acks.filter((pl.col("node") == MOBILE) & (pl.col("action") == "sent"))
    came = acks.filter((pl.col("node") == SENDER) & (pl.col("action") == "received"))
    ways = left.join(came.select("packet_id", came_ns="time_ns"), on="packet_id", how="inner")
    count = 0
    for at in timeouts:
        known = came["number"].filter(came["time_ns"] <= at).max()
        under_way = (ways["time_ns"] < at) & (ways["came_ns"] > at)
        count += known is not None and bool((under_way & (ways["number"] > known)).any())
    return count


def repaired_by(result: Recorded, since_s: float) -> str | None:
    """What had the sender send the data again that first repaired a loss from `since_s` on.

    Of what it sent again from then on and the mobile node received, the first: "duplicates", if it left with the third
    or a later duplicate acknowledgement (RFC 5681 section 3.2), else "timer". `None` if nothing sent again arrived.
    """
    packets = result.packets
    again = packets.filter(
        (pl.col("node") == SENDER)
        & (pl.col("action") == "sent")
        & pl.col("retransmission")
        & (pl.col("time_ns") >= _ns(since_s))
    )
    came = packets.filter((pl.col("node") == MOBILE) & (pl.col("action") == "received"))["packet_id"]
    first = again.filter(pl.col("packet_id").is_in(came.implode())).head(1)
    if first.is_empty():
        return None
    at = int(first["time_ns"][0])
    acks = packets.filter(
        (pl.col("kind") == "ACK")
        & (pl.col("node") == SENDER)
        & (pl.col("action") == "received")
        & (pl.col("time_ns") <= at)
    )
    if acks.is_empty():
        return "timer"
    # the one that said it first, and its duplicates
    runs = acks["tsn"].rle_id()
    alike = int((runs == runs[-1]).sum())
    at_once = at - int(acks["time_ns"][-1]) <= _ns(AT_ONCE_S)
    return "duplicates" if at_once and alike > DUPLICATES else "timer"


def _ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)


def _share(t_n: float | None, t_a: float | None) -> float | None:
    return None if t_n is None or t_a is None or t_n + t_a <= 0 else t_a / (t_n + t_a)


def _traced(
    scenario: Scenario, table: pl.DataFrame, runner: Runner
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Runs with tables: one of each upward handover, whose t_a is nearest to the median, and a soft one."""
    chosen = {case: typical(table, case) for case in UPWARD}
    jobs = [job(scenario, settings({"case": case}, seed), seed=seed, trace=True) for case, seed in chosen.items()]
    jobs.append(job(scenario, settings({"case": "wlan-gprs-wlan"}, 1), seed=1, trace=True))
    *upward, soft = runner.runs(jobs)
    throughput, windows, checked = [], [], []
    for case, one in zip(chosen, upward, strict=True):
        parts = next(p for h in one.metrics.handoffs if (p := h.parts) is not None and p.since_s >= BEGINS_S)
        t_a, points = recompute(one, parts.since_s + (parts.first_data_s or 0.0))
        checked.append({"case": case, "recorded_s": parts.t_a_s, "recomputed_s": t_a})
        throughput += [{"case": case, "time_s": end, "throughput_bps": bps} for end, bps in points]
        window = one.windows.filter(pl.col("node") == SENDER).select(
            case=pl.lit(case),
            time_s=pl.col("time_ns") / NS_PER_S,
            cwnd_bytes="cwnd_bytes",
            ssthresh_bytes="ssthresh_bytes",
        )
        windows.append(window.filter(pl.col("time_s") >= parts.since_s))
    return pl.DataFrame(throughput), _sequence(soft), pl.concat(windows), pl.DataFrame(checked)


def typical(table: pl.DataFrame, case: str) -> int:
    """The seed of the run whose t_a is nearest to the median of its case."""
    own = table.filter((pl.col("variant") == case) & pl.col("t_a_s").is_not_null())
    distance = (own["t_a_s"] - own["t_a_s"].median()).abs()
    return int(own["seed"][int(distance.arg_min() or 0)])


def recompute(result: Recorded, first_s: float) -> tuple[float | None, list[tuple[float, float]]]:
    """t_a from the table of packets, apart from the record, and the bins.

    Of the data that the mobile node received over the interface of the packet that came at `first_s`.
    """
    from segue import _native

    data = result.packets.filter(
        (pl.col("node") == MOBILE) & (pl.col("action") == "received") & (pl.col("kind") == "DATA")
    )
    later = data.filter(pl.col("time_ns") >= round(first_s * NS_PER_S) - 1)
    own = later.filter(pl.col("interface") == later["interface"][0])
    # a bulk flow has full segments only; how long packets are depends on their way
    numbers = data["tsn"].cast(pl.Int64).unique().sort()
    segment = int(numbers.diff().drop_nulls().mode()[0])
    t_a, _, points = _native.adaptation_time(own["time_ns"].to_list(), [segment] * own.height)
    return t_a, points


def _sequence(soft: Run) -> pl.DataFrame:
    packets = soft.packets.filter(pl.col("kind").is_in(["DATA", "ACK"]) & pl.col("tsn").is_not_null())
    return packets.select(
        "node",
        "action",
        "kind",
        "interface",
        "retransmission",
        time_s=pl.col("time_ns") / NS_PER_S,
        tsn="tsn",
    )


def values(table: pl.DataFrame, variant: str, column: str) -> list[float]:
    """A column of a variant's first handovers that count, without what is missing."""
    own = table.filter((pl.col("variant") == variant) & (pl.col("number") == 0))
    return [float(value) for value in own[column].drop_nulls()]


def shares(table: pl.DataFrame, variant: str, column: str) -> list[float]:
    """Shares of t_a in the whole, with T_n up to where `column` says, of a variant's first handovers that count."""
    own = table.filter((pl.col("variant") == variant) & (pl.col("number") == 0)).drop_nulls([column, "t_a_s"])
    return [float(value) for value in (own["t_a_s"] / (own["t_a_s"] + own[column]))]


def mean_interval(sample: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the mean of a sample, by the normal distribution: means of skewed samples of 20 and more."""
    mean, sigma = mean_and_sigma(sample)
    half = 1.96 * sigma / len(sample) ** 0.5
    return mean - half, mean + half


def mean_and_sigma(sample: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation of a sample: what table 1 has."""
    from statistics import mean, stdev

    return (mean(sample), stdev(sample)) if len(sample) > 1 else (mean(sample), 0.0)

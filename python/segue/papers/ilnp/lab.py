"""The testbed of Phoomikiattisak and Bhatti 2019 with real hosts: this kernel's TCP over Mobile IPv6 and ILNPv6."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from statistics import median

import polars as pl

from segue.papers.claims import Claim
from segue.papers.ilnp import claims, extras
from segue.papers.ilnp import experiment as ex
from segue.papers.lab import Part, Plan, Point, Sample, Samples, missing_congestion_control
from segue.scenarios import load

PROFILE = "modern"
"""What the simulator has beside this kernel, which is no Linux 3.9."""
REPEAT = ex.SEEDS
QUICK_REPEAT = 1

IPERF3_S = 27
"""From the beginning of the flow until after the handover, and done before the run is."""
PROGRAM, PLAIN_PEER = "iperf3", "plain-peer"

NOT_RUN = {
    "I10": "is judged packet by packet against the same run without the attack, and no two runs with real hosts are "
    "the same; tests/interop/test_forgeries.py has the attack with real hosts",
    "I11": "no runs of it in the lab yet",
    "I12": "segue lab has no ilnp-multihomed",
    "I13": "a share of hundreds of handovers, each a run of 47 s",
    "I14": "no runs of it in the lab yet",
    "S12": "no runs of it in the lab yet",
}


def plan(*, quick: bool = False, repeat: int | None = None) -> Plan:
    """I1 to I9; of variants of TCP those that this kernel has.

    Args:
        quick: One run of each point, with CUBIC.
        repeat: Runs of each point; the paper's ten if left out.
    """
    not_run = dict(NOT_RUN)
    missing = missing_congestion_control([variant for variant in ex.VARIANTS if variant != "cubic"])
    if missing:
        not_run["I7"] = missing
    parts = [
        Part(("I1", "I2", "I3", "I4", "I5", "I6"), _points(("cubic",)), _judge),
        *([] if missing else [Part(("I7",), _points(ex.VARIANTS), _judge)]),
        Part(
            ("I8",),
            tuple(
                Point(f"both-move-{scheme}", load(extras.BOTH), {"scheme": scheme, "tcp.profile": PROFILE}, traced=True)
                for scheme in extras.BOTH_SCHEMES
            ),
            _judge_i8,
        ),
    ]
    if shutil.which("iperf3") is None:
        not_run["I9"] = "iperf3 is not there: expected it to be installed"
    else:
        parts.append(Part(("I9",), _points_of_i9(), _judge_i9))
    return Plan(parts, not_run, repeat or (QUICK_REPEAT if quick else REPEAT))


def _points(variants: tuple[str, ...]) -> tuple[Point, ...]:
    return tuple(
        Point(_name(point), load(ex.SCENARIO), point.overrides())
        for point in (
            ex.Point(case, scheme, v, PROFILE) for case in ex.CASES for scheme in ex.SCHEMES for v in variants
        )
    )


def _name(point: ex.Point) -> str:
    return f"{point.case}-{point.scheme}-{point.variant}"


def _judge(samples: Samples) -> list[Claim]:
    rows = [
        ex.row(point, one.seed, one.run)
        for case in ex.CASES
        for scheme in ex.SCHEMES
        for variant in ex.VARIANTS
        for point in [ex.Point(case, scheme, variant, PROFILE)]
        for one in samples.get(_name(point), ())
    ]
    return claims.evaluate(pl.DataFrame(rows, infer_schema_length=None), profile=PROFILE)


def _judge_i8(samples: Samples) -> list[Claim]:
    """By the median run of each scheme: that whose slowest handover is in the middle."""
    rows = {}
    for scheme in extras.BOTH_SCHEMES:
        own = sorted((extras.both(one.frames) for one in samples[f"both-move-{scheme}"]), key=_by_slowest)
        rows[scheme] = own[len(own) // 2]
    return [extras.judge_i8(rows)]


def _by_slowest(row: extras.Both) -> tuple[int, float]:
    return -row.completed, row.slowest_s


def _points_of_i9() -> tuple[Point, ...]:
    base = load(ex.SCENARIO)
    common = {"tcp.profile": PROFILE}
    segments = [
        Point(_segment_name(name), base, {**common, **keys}, traced=True) for name, keys in extras.SEGMENTS.items()
    ]
    client = ["iperf3", "-c", "{peer}", "-p", "{port}", "-t", str(IPERF3_S)]
    program = {
        **common,
        "scheme": "ilnp-soft",
        "application.0.command": json.dumps(client),
        "application.0.server": json.dumps(["iperf3", "-s", "-p", "{port}", "-1"]),
    }
    plain = extras.edited(
        base, "plain peer", lambda text: text.replace('name = "cn"\n', 'name = "cn"\nplain = true\n', 1)
    )
    # an identity is reached by who has ILNPv6: the mobile node calls
    towards = {
        **common,
        "scheme": "ilnp-soft",
        "duration": "25 s",
        "application.0.from": "mn",
        "application.0.to": "cn",
    }
    return (
        *segments,
        Point(PROGRAM, base, program, only_in_lab=True),
        Point(PLAIN_PEER, plain, towards, traced=True, only_in_lab=True),
    )


def _segment_name(name: str) -> str:
    return f"segments-{name.replace(' ', '-')}"


def _judge_i9(samples: Samples) -> list[Claim]:
    sizes = {
        name: round(median(extras.segment_bytes(one.frames) for one in samples[_segment_name(name)]))
        for name in extras.SEGMENTS
    }
    program, plain = samples[PROGRAM], samples[PLAIN_PEER]
    return [extras.judge_i9(sizes, _unmodified(program, plain) if program and plain else None)]


def _unmodified(program: Sequence[Sample], plain: Sequence[Sample]) -> extras.Unmodified:
    went_on = [one.lab is not None and not one.lab.failed and _hands_over_whole(one) for one in program]
    problems = [_parameter_problems(one) for one in plain]
    arrived = [max((flow.transferred_bytes for flow in one.run.metrics.flows), default=0) for one in plain]
    spoken_to = [bool(count) and bool(size) for count, size in zip(problems, arrived, strict=True)]
    rates = [flow.throughput_bps for one in program for flow in one.run.metrics.flows if flow.sender == ex.SENDER]
    return extras.Unmodified(
        all(went_on),
        all(spoken_to),
        f"iperf3 over ILNPv6 soft ended well in {sum(went_on)} of {len(program)} runs, at "
        f"{max(rates, default=0.0) / 1e6:.1f} Mbit/s at most; a peer without a shim got {min(arrived) / 1e6:.1f} MB at "
        f"least, after {min(problems)} parameter problems of its kernel at least",
    )


def _hands_over_whole(one: Sample) -> bool:
    """It was handed over while the program ran, and went on to its end."""
    metrics = one.run.metrics
    done = [h for h in metrics.handoffs if h.begin_s >= ex.FLOW_BEGINS_S and h.handoff_delay_s is not None]
    flow = max(metrics.flows, key=lambda flow: flow.transferred_bytes, default=None)
    return bool(done) and flow is not None and flow.end_s > done[0].begin_s + 1.0


def _parameter_problems(one: Sample) -> int:
    """Messages of the peer's kernel that the option is none of its own."""
    packets = one.frames.packets
    told = packets.filter((pl.col("kind") == "PARAMETER-PROBLEM") & (pl.col("action") == "received"))
    return int(told["packet_id"].n_unique())

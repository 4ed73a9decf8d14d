"""Figures 4 to 15 of the paper, with its axes and legends, and one of our own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from segue.figures.flow import Switch, main_trace
from segue.figures.sequence import BEFORE_S, segment_sequence, span_around
from segue.figures.sweep import Curves, Panel, curves
from segue.figures.window import congestion_windows
from segue.papers.common import Drawn
from segue.papers.grid import summarise
from segue.papers.sigma import experiment as ex
from segue.papers.sigma import zigzag
from segue.running import Run


@dataclass(frozen=True, slots=True)
class _TraceFigures:
    run: str
    sequence_number: int
    setting: str
    sequence_subtitle: str
    window_subtitle: str


_TRACES = (
    _TraceFigures(
        "none", 4, "no L2 handover latency",
        "Paper: data moves to the new address without a gap, nothing is lost, the new path slow-starts.",
        "Paper: the new path's window picks up before the old one drops.",
    ),
    _TraceFigures(
        "low", 6, "L2 handover latency 200 ms",
        "Paper: as without L2 latency, but some 20 ms later.",
        "Paper: the two windows pick up and drop alternately in a smooth manner.",
    ),
    _TraceFigures(
        "high", 8, "L2 handover latency 500 ms",
        "Paper: a window is lost and repaired by retransmissions 1, 4 and 6 s later (open symbols).",
        "Paper: the windows cannot alternate smoothly; while both are low, hardly anything is sent.",
    ),
)  # fmt: skip


def trace_figures(runs: Mapping[str, Run]) -> Iterator[Drawn]:
    """Figures 4 to 9: segment sequence around a handover, and congestion windows over 100 s."""
    for spec in _TRACES:
        run = runs[spec.run]
        trace = main_trace(run)
        if trace is None:
            continue
        switches = trace.switches
        if switches:
            switch = typical(run, switches)
            names = path_names(switch)
            start, end = span_around(trace, switch)
            yield Drawn(
                f"figure-{spec.sequence_number:02}",
                f"Fig. {spec.sequence_number}. Segment sequence of SIGMA during one handover, {spec.setting}",
                segment_sequence(
                    trace,
                    switch,
                    start_s=start,
                    end_s=end,
                    title=f"Figure {spec.sequence_number}: segments at the CN during one handover, {spec.setting}",
                    subtitle=f"{spec.sequence_subtitle}\n{_addresses(switch)}",
                    names=names,
                ),
            )
        number = spec.sequence_number + 1
        yield Drawn(
            f"figure-{number:02}",
            f"Fig. {number}. CN's congestion window, {spec.setting}",
            congestion_windows(
                run.windows.filter(pl.col("node") == trace.sender),
                switches,
                start_s=0.0,
                end_s=run.metrics.duration_s,
                title=f"Figure {number}: congestion windows at the CN, {spec.setting}",
                subtitle=spec.window_subtitle + (f"\n{_addresses(switches[0])}" if switches else ""),
                names=path_names(switches[0]) if switches else {},
                deletions=deletions(run),
            ),
        )


def grid_figures(frames: Mapping[str, pl.DataFrame]) -> Iterator[Drawn]:
    """Figures 10 to 15, and two of our own over the policies."""
    yield from _latency_figures(frames[ex.LATENCY])
    yield from _speed_figures(frames[ex.SPEED])
    yield from _policy_figures(frames[ex.POLICY], frames[ex.POLICY_SPEED])


def zigzag_figure(frame: pl.DataFrame) -> Drawn:
    """Signalling of a host that zigzags, by what becomes of its old address (claim S11)."""
    figure, table = zigzag.figure(frame)
    return Drawn(
        "figure-zigzag", "Not in the paper: signalling on a zigzag, old address deleted or deactivated", figure, table
    )


def typical(run: Run, switches: list[Switch]) -> Switch:
    """The handover to show: the first from the first cell to the second, with losses if any of them has."""
    outward = [switch for switch in switches if switch.old == switches[0].old]
    return next((switch for switch in outward if _losses(run, switch)), outward[0])


def path_names(switch: Switch) -> dict[str, str]:
    """What the paper calls the two addresses."""
    return {switch.old: "2.0.1", switch.new: "3.0.1"}


def _losses(run: Run, switch: Switch) -> bool:
    """Whether data was lost while `switch` went on."""
    time_s = pl.col("time_ns") / 1e9
    lost = run.packets.filter((pl.col("action") == "dropped") & (pl.col("kind") == "DATA"))
    return not lost.filter(time_s.is_between(switch.last_old_s - BEFORE_S, switch.first_new_s + BEFORE_S)).is_empty()


def _addresses(switch: Switch) -> str:
    return f"2.0.1 is the paper's name for {switch.old}, 3.0.1 for {switch.new}."


def deletions(run: Run) -> pl.DataFrame:
    """When the sender was told to delete a destination: `time_s`, `address`."""
    return (
        run.signalling.filter(pl.col("event") == "sctp-peer-address-deleted")
        .select(time_s=pl.col("time_ns") / 1e9, address=pl.col("detail"))
        .sort("time_s")
    )


def _latency_figures(frame: pl.DataFrame) -> Iterator[Drawn]:
    shared = Curves(
        x=ex.L2,
        series=ex.RESOLUTION,
        x_label="L2 handover latency (ms)",
        series_label="address resolution {} ms",
    )
    by = [ex.L2, ex.RESOLUTION]
    summary = summarise(frame, by, "latency_mean_s")
    yield Drawn(
        "figure-10",
        "Fig. 10. Impact of L2 handover latency and address resolution latency on handover latency",
        curves(
            summary,
            replace(shared, scale=1000),
            panels=[
                Panel("handover latency (ms)", None, "whole range"),
                Panel("handover latency (ms)", (-5, 40), "the same near zero"),
            ],
            title="Figure 10: handover latency against L2 latency at 5 m/s",
            subtitle="Paper: 5-10 ms while both together stay under 900 ms, seconds above.",
        ),
        summary,
    )
    summary = summarise(frame, by, "loss_rate")
    yield Drawn(
        "figure-12",
        "Fig. 12. Impact of L2 handover latency and address resolution latency on packet loss rate",
        curves(
            summary,
            shared,
            panels=[Panel("packet loss rate")],
            title="Figure 12: packets lost to handover / packets sent, at 5 m/s",
            subtitle="Paper: zero while both together stay under 900 ms.",
        ),
        summary,
    )
    summary = summarise(frame, by, "useful_bps")
    yield Drawn(
        "figure-13",
        "Fig. 13. Impact of L2 handover latency and address resolution latency on throughput",
        curves(
            summary,
            replace(shared, scale=1e-6),
            panels=[Panel("throughput (Mbit/s)")],
            title="Figure 13: throughput at 5 m/s",
            subtitle="Paper: flat while both together stay under 900 ms, lower above.",
        ),
        summary,
    )


def _speed_figures(frame: pl.DataFrame) -> Iterator[Drawn]:
    shared = Curves(
        x=ex.MPS,
        series=ex.BEACON,
        x_label="moving speed (m/s)",
        series_label="L2 beacon period {} ms",
    )
    by = [ex.MPS, ex.BEACON]
    summary = summarise(frame, by, "latency_mean_s")
    yield Drawn(
        "figure-11",
        "Fig. 11. Impact of moving speed and layer 2 beacons on handover latency",
        curves(
            summary,
            replace(shared, scale=1000),
            panels=[
                Panel("handover latency (ms)", None, "whole range"),
                Panel("handover latency (ms)", (-5, 40), "the same near zero"),
            ],
            title="Figure 11: handover latency against speed; L2 latency and resolution 100 ms",
            subtitle="Paper: speed hardly matters below 15 m/s; above, the latency climbs.",
        ),
        summary,
    )
    summary = summarise(frame, by, "loss_rate")
    yield Drawn(
        "figure-14",
        "Fig. 14. Impact of moving speed and beacon period on packet loss rate",
        curves(
            summary,
            shared,
            panels=[Panel("packet loss rate")],
            title="Figure 14: packets lost to handover / packets sent",
            subtitle="Paper: losses begin above 15 m/s, fewer with short beacon periods.",
        ),
        summary,
    )
    summary = summarise(frame, by, "useful_bps")
    yield Drawn(
        "figure-15",
        "Fig. 15. Impact of moving speed and beacon period on throughput",
        curves(
            summary,
            replace(shared, scale=1e-6),
            panels=[Panel("throughput (Mbit/s)")],
            title="Figure 15: throughput against speed",
            subtitle="Paper: falls above 15 m/s, less with short beacon periods.",
        ),
        summary,
    )


def _policy_figures(by_latency: pl.DataFrame, by_speed: pl.DataFrame) -> Iterator[Drawn]:
    summary = summarise(by_latency, [ex.L2, ex.WHEN_MISSED], "latency_mean_s")
    yield Drawn(
        "figure-policy",
        "Not in the paper: handover latency by what is done when the point of decision is missed",
        curves(
            summary,
            Curves(x=ex.L2, series=ex.WHEN_MISSED, x_label="L2 handover latency (ms)", series_label="{}", scale=1000),
            panels=[Panel("handover latency (ms)")],
            title="The policy's share: what is done when the point of decision is missed",
            subtitle="Address resolution 500 ms, 5 m/s. when-ready switches as soon as it can.",
        ),
        summary,
    )
    summary = summarise(by_speed, [ex.MPS, ex.WHEN_MISSED], "useful_bps")
    yield Drawn(
        "figure-policy-speed",
        "Not in the paper: throughput against speed by what is done when the point of decision is missed",
        curves(
            summary,
            Curves(x=ex.MPS, series=ex.WHEN_MISSED, x_label="moving speed (m/s)", series_label="{}", scale=1e-6),
            panels=[Panel("throughput (Mbit/s)")],
            title="The policy's share of the loss of throughput at speed",
            subtitle="L2 latency and address resolution 100 ms each.",
        ),
        summary,
    )

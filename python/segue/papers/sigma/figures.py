"""Figures 4 to 15 of the paper, with its axes and legends, and one of our own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl
from matplotlib.figure import Figure

from segue.grid import summarise
from segue.papers.sigma import experiment as ex
from segue.plot.sequence import Switch, find_switches, segment_sequence, sender_of
from segue.plot.sweep import Panel, curves
from segue.plot.window import congestion_windows
from segue.run import Run

INTERVALS = "Medians over seeds with their interval"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure of the report.

    Attributes:
        name: File name without ending: "figure-04".
        heading: The paper's caption.
        figure: The drawing.
        table: The data behind it, for a CSV file beside it; `None` for traces.
    """

    name: str
    heading: str
    figure: Figure
    table: pl.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class _TraceFigures:
    run: str
    sequence_number: int
    setting: str
    sequence_subtitle: str
    window_subtitle: str
    window_s: tuple[float, float]


_TRACES = (
    _TraceFigures(
        "none", 4, "no L2 handover latency",
        "Data moves from the old to the new address without a gap; nothing is lost, and the new path slow-starts.",
        "The new path's window grows from its initial value before the old one is given up.", (-0.25, 0.75),
    ),
    _TraceFigures(
        "low", 6, "L2 handover latency 200 ms",
        "As without L2 latency: the new path is prepared while data flows over the old one.",
        "Both windows alternate smoothly, as without L2 latency.", (-0.25, 0.75),
    ),
    _TraceFigures(
        "high", 8, "L2 handover latency 500 ms",
        "The new path is not ready at the point of decision. Crosses are lost segments, open symbols retransmissions.",
        "Windows collapse at each handover; stretches with both low are outages.", (-0.6, 7.0),
    ),
)  # fmt: skip


def trace_figures(runs: Mapping[str, Run]) -> Iterator[Drawn]:
    """Figures 4 to 9: segment sequence around a handover, and congestion windows over 100 s."""
    for spec in _TRACES:
        run = runs[spec.run]
        if run.packets.filter(pl.col("kind") == "DATA").is_empty():
            continue
        switches = find_switches(run.packets, sender_of(run.packets))
        if switches:
            switch = typical(switches)
            names = path_names(switch)
            before, after = spec.window_s
            yield Drawn(
                f"figure-{spec.sequence_number:02}",
                f"Fig. {spec.sequence_number}. Segment sequence of SIGMA during one handover, {spec.setting}",
                segment_sequence(
                    run.packets,
                    switch,
                    start_s=switch.last_old_s + before,
                    end_s=switch.last_old_s + after,
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
                run.windows.filter(pl.col("node") == sender_of(run.packets)),
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
    """Figures 10 to 15, and our own over the policies."""
    yield from _latency_figures(frames[ex.LATENCY])
    yield from _speed_figures(frames[ex.SPEED])
    yield _policy_figure(frames[ex.POLICY])


def typical(switches: list[Switch]) -> Switch:
    """The handover that the paper's figures 4, 6 and 8 show one of: the first from the first cell to the second."""
    first_address = switches[0].old
    return next((switch for switch in switches if switch.old == first_address), switches[0])


def path_names(switch: Switch) -> dict[str, str]:
    """What the paper calls the two addresses."""
    return {switch.old: "2.0.1", switch.new: "3.0.1"}


def _addresses(switch: Switch) -> str:
    return f"2.0.1 is the paper's name for {switch.old}, 3.0.1 for {switch.new}."


def deletions(run: Run) -> pl.DataFrame:
    """When the sender was told to delete a destination: `time_s`, `destination`."""
    return (
        run.signalling.filter(pl.col("event") == "sctp-peer-address-deleted")
        .select(time_s=pl.col("time_ns") / 1e9, destination=pl.col("detail"))
        .sort("time_s")
    )


def _latency_figures(frame: pl.DataFrame) -> Iterator[Drawn]:
    shared = {
        "x": ex.L2,
        "series": ex.RESOLUTION,
        "x_label": "L2 handover latency (ms)",
        "series_label": "address resolution {} ms",
    }
    by = [ex.L2, ex.RESOLUTION]
    summary = summarise(frame, by, "latency_mean_s")
    yield Drawn(
        "figure-10",
        "Fig. 10. Impact of L2 handover latency and address resolution latency on handover latency",
        curves(
            summary,
            **shared,  # type: ignore[arg-type]
            scale=1000,
            panels=[
                Panel("handover latency (ms)", None, "whole range"),
                Panel("handover latency (ms)", (-5, 40), "the same near zero"),
            ],
            title="Figure 10: handover latency against L2 latency at 5 m/s",
            subtitle=f"Milliseconds while L2 latency and address resolution together stay under 900 ms.\n{INTERVALS}.",
        ),
        summary,
    )
    summary = summarise(frame, by, "loss_rate")
    yield Drawn(
        "figure-12",
        "Fig. 12. Impact of L2 handover latency and address resolution latency on packet loss rate",
        curves(
            summary,
            **shared,  # type: ignore[arg-type]
            panels=[Panel("packet loss rate")],
            title="Figure 12: packets lost to handover / packets sent, at 5 m/s",
            subtitle=f"Zero while the two latencies together stay under 900 ms. {INTERVALS}.",
        ),
        summary,
    )
    summary = summarise(frame, by, "throughput_bps")
    yield Drawn(
        "figure-13",
        "Fig. 13. Impact of L2 handover latency and address resolution latency on throughput",
        curves(
            summary,
            **shared,  # type: ignore[arg-type]
            scale=1e-6,
            panels=[Panel("throughput (Mbit/s)")],
            title="Figure 13: throughput at 5 m/s",
            subtitle=f"Flat while the two latencies together stay under 900 ms, lower above. {INTERVALS}.",
        ),
        summary,
    )


def _speed_figures(frame: pl.DataFrame) -> Iterator[Drawn]:
    shared = {
        "x": ex.MPS,
        "series": ex.BEACON,
        "x_label": "moving speed (m/s)",
        "series_label": "L2 beacon period {} ms",
    }
    by = [ex.MPS, ex.BEACON]
    summary = summarise(frame, by, "latency_mean_s")
    yield Drawn(
        "figure-11",
        "Fig. 11. Impact of moving speed and layer 2 beacons on handover latency",
        curves(
            summary,
            **shared,  # type: ignore[arg-type]
            scale=1000,
            panels=[
                Panel("handover latency (ms)", None, "whole range"),
                Panel("handover latency (ms)", (-5, 40), "the same near zero"),
            ],
            title="Figure 11: handover latency against speed; L2 latency and resolution 100 ms",
            subtitle=f"Speed matters little below 15 m/s. {INTERVALS}.",
        ),
        summary,
    )
    summary = summarise(frame, by, "loss_rate")
    yield Drawn(
        "figure-14",
        "Fig. 14. Impact of moving speed and beacon period on packet loss rate",
        curves(
            summary,
            **shared,  # type: ignore[arg-type]
            panels=[Panel("packet loss rate")],
            title="Figure 14: packets lost to handover / packets sent",
            subtitle=f"Losses begin where there is no time left to prepare the new path. {INTERVALS}.",
        ),
        summary,
    )
    summary = summarise(frame, by, "throughput_bps")
    yield Drawn(
        "figure-15",
        "Fig. 15. Impact of moving speed and beacon period on throughput",
        curves(
            summary,
            **shared,  # type: ignore[arg-type]
            scale=1e-6,
            panels=[Panel("throughput (Mbit/s)")],
            title="Figure 15: throughput against speed",
            subtitle=f"Beacons take their share of the radio channel; losses take more. {INTERVALS}.",
        ),
        summary,
    )


def _policy_figure(frame: pl.DataFrame) -> Drawn:
    summary = summarise(frame, [ex.L2, ex.WHEN_MISSED], "latency_mean_s")
    return Drawn(
        "figure-policy",
        "Not in the paper: handover latency by what is done when the point of decision is missed",
        curves(
            summary,
            x=ex.L2,
            series=ex.WHEN_MISSED,
            x_label="L2 handover latency (ms)",
            series_label="{}",
            scale=1000,
            panels=[Panel("handover latency (ms)")],
            title="The policy's share: what is done when the point of decision is missed",
            subtitle=f"Address resolution 500 ms, 5 m/s. when-ready switches as soon as it can. {INTERVALS}.",
        ),
        summary,
    )

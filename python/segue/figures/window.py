"""Congestion windows of a sender's paths against time."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from segue.figures import style
from segue.figures.flow import FlowTrace, Switch
from segue.recorded import Recorded

MOST_STEPS = 4000
"""A curve of more is drawn as an image in SVG too."""


def congestion_windows(
    windows: pl.DataFrame,
    switches: Sequence[Switch],
    *,
    start_s: float,
    end_s: float,
    title: str,
    subtitle: str,
    names: dict[str, str] | None = None,
    deletions: pl.DataFrame | None = None,
    towards: str = "destination",
) -> Figure:
    """Cwnd of every path in kB against time, with the handovers marked.

    Args:
        windows: Rows of `Run.windows` of one sender and one connection.
        switches: Handovers of its flow.
        start_s: Left end, seconds.
        end_s: Right end, seconds.
        title: Title.
        subtitle: What to see.
        names: What to call addresses.
        deletions: When an address of a path was deleted: `time_s`, `address`. The curves of its paths end there.
        towards: The column that names a path: "source" if the sender is the one that moves.
    """
    figure, [axes] = style.new_figure(title, subtitle, height=4.0)
    draw_windows(
        axes, windows, switches, start_s=start_s, end_s=end_s, names=names, deletions=deletions, towards=towards
    )
    style.legend_below(figure, axes)
    return figure


def windows_of(run: Recorded, trace: FlowTrace) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The windows of a flow's sender, and the deletions of addresses that end their curves."""
    windows = run.windows.filter((pl.col("node") == trace.sender) & (pl.col("connection") == trace.connection))
    # The sender is told of its peer's addresses; its own are gone when the peer has said so.
    deleted = run.signalling.filter(
        pl.col("event").is_in(["sctp-peer-address-deleted", "delete-acknowledged"]) & (pl.col("node") == trace.sender)
    ).select(time_s=pl.col("time_ns") / 1e9, address=pl.col("detail"))
    return windows, deleted


def draw_windows(
    axes: Axes,
    windows: pl.DataFrame,
    switches: Sequence[Switch],
    *,
    start_s: float,
    end_s: float,
    names: dict[str, str] | None = None,
    deletions: pl.DataFrame | None = None,
    towards: str = "destination",
) -> None:
    """What `congestion_windows` shows."""
    names = names or {}
    frame = windows.with_columns(time_s=pl.col("time_ns") / 1e9)
    ends = {} if deletions is None else {k[0]: g["time_s"].to_list() for k, g in deletions.group_by("address")}
    pairs = frame.select("source", "destination").unique()
    alone = pairs[towards].n_unique() == pairs.height
    for index, (key, path) in enumerate(frame.group_by("source", "destination", maintain_order=True)):
        source, destination = (names.get(str(address), str(address)) for address in key)
        name = {"source": f"from {source}", "destination": f"to {destination}"}[towards]
        gone = [end for address in key for end in ends.get(address, [])]
        times, values = _steps(path["time_s"].to_list(), path["cwnd_bytes"].to_list(), gone, end_s)
        axes.plot(
            times,
            values,
            drawstyle="steps-post",
            color=style.PATHS[index % len(style.PATHS)],
            linestyle="-" if index % 2 == 0 else (0, (5, 1.2)),
            rasterized=len(times) > MOST_STEPS,
            label=f"path {name}" if alone else f"path from {source} to {destination}",
        )
    shown = [switch.first_new_s for switch in switches if start_s <= switch.first_new_s <= end_s]
    style.mark_switches(axes, shown, width=0.8)
    # So many that their names would touch: lines alone.
    for number, time_s in enumerate(shown if len(shown) <= 16 else [], start=1):
        axes.annotate(
            f"$t_{{{number}}}$",
            (time_s, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            fontsize=8.5,
            color=style.MUTED,
        )
    axes.set(xlabel="time (s)", ylabel="cwnd (kB)", xlim=(start_s, end_s))
    axes.set_ylim(bottom=0)


def _steps(
    times: list[float], cwnd_bytes: list[int], ends: list[float], end_s: float
) -> tuple[list[float], list[float]]:
    """The curve in kB, interrupted from each deletion to the next row of the path."""
    nan = float("nan")
    points = [(time, value / 1000) for time, value in zip(times, cwnd_bytes, strict=True)]
    cuts = [(end, nan) for end in ends if times and end > times[0]]
    merged = sorted(points + cuts, key=lambda point: point[0])
    if merged:
        merged.append((end_s, merged[-1][1]))
    return [time for time, _ in merged], [value for _, value in merged]

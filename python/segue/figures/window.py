"""Congestion windows of a sender's paths against time."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from segue.figures import style
from segue.figures.sequence import Switch


def congestion_windows(
    windows: pl.DataFrame,
    switches: list[Switch],
    *,
    start_s: float,
    end_s: float,
    title: str,
    subtitle: str,
    names: dict[str, str] | None = None,
    deletions: pl.DataFrame | None = None,
) -> Figure:
    """Cwnd of every path in kB against time, with the handovers marked.

    Args:
        windows: `Run.windows`.
        switches: Handovers, from `find_switches`.
        start_s: Left end, seconds.
        end_s: Right end, seconds.
        title: Title.
        subtitle: What to see.
        names: What to call addresses.
        deletions: When the sender was told to delete a destination: `time_s`, `destination`. The curve ends there.
    """
    names = names or {}
    figure, [axes] = style.new_figure(title, subtitle, height=4.0)
    frame = windows.with_columns(time_s=pl.col("time_ns") / 1e9)
    ends = {} if deletions is None else {k[0]: g["time_s"].to_list() for k, g in deletions.group_by("destination")}
    for index, (key, path) in enumerate(frame.group_by("destination", maintain_order=True)):
        address = str(key[0])
        times, values = _steps(path["time_s"].to_list(), path["cwnd_bytes"].to_list(), ends.get(address, []), end_s)
        axes.plot(
            times,
            values,
            drawstyle="steps-post",
            color=style.PATHS[index % len(style.PATHS)],
            linestyle="-" if index % 2 == 0 else (0, (5, 1.2)),
            label=f"path to {names.get(address, address)}",
        )
    shown = [switch for switch in switches if start_s <= switch.first_new_s <= end_s]
    for number, switch in enumerate(shown, start=1):
        axes.axvline(switch.first_new_s, color=style.MUTED, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
        # So many that their names would touch: lines alone.
        if len(shown) <= 16:
            axes.annotate(
                f"$t_{{{number}}}$",
                (switch.first_new_s, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=8.5,
                color=style.MUTED,
            )
    axes.set(xlabel="time (s)", ylabel="cwnd (kB)", xlim=(start_s, end_s))
    axes.set_ylim(bottom=0)
    style.legend_below(figure, axes)
    return figure


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

"""The signalling of a handover in time: events at the hosts, messages between them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from matplotlib.figure import Figure

from segue.figures import style

STEP_COLOURS = (style.MUTED, style.SKY, style.GREEN, style.ORANGE, style.PURPLE, style.BLUE)
STEP_NAMES = (
    "link and others",
    "1 obtain address",
    "2 add address",
    "3 set primary",
    "4 update location",
    "5 delete address",
)
NOT_SIGNALLING = ("DATA", "SACK", "NR-SACK", "ACK", "HEARTBEAT", "HEARTBEAT-ACK", "UDP", "OTHER")
ROW_INCHES = 0.19
MOST_ROWS = 60


@dataclass(frozen=True, slots=True)
class _Row:
    time_s: float
    node: str
    """Receiver of a message that arrived."""
    to: str | None
    lost: bool
    step: int
    text: str


def signalling_ladder(
    signalling: pl.DataFrame,
    packets: pl.DataFrame,
    *,
    start_s: float,
    end_s: float,
    title: str,
    subtitle: str,
) -> Figure:
    """Events and messages between `start_s` and `end_s`, a row each, so that no two texts touch.

    The time runs down and is written at each row; messages are arrows from the sender's to the receiver's line, with
    the time they took; lost ones end half-way.

    Args:
        signalling: `Run.signalling`.
        packets: `Run.packets`.
        start_s: First instant shown, seconds.
        end_s: Last instant shown, seconds.
        title: Title.
        subtitle: What to see.
    """
    rows = _rows(signalling, packets, start_s, end_s)
    hidden = max(0, len(rows) - MOST_ROWS)
    rows = rows[:MOST_ROWS]
    hosts = list(dict.fromkeys([row.node for row in rows] + [row.to for row in rows if row.to]))
    places = {host: index for index, host in enumerate(hosts)}
    figure, [axes] = style.new_figure(title, subtitle, width=8.6, height=1.5 + ROW_INCHES * max(len(rows), 4))
    axes.grid(visible=False)
    axes.set_axis_off()
    for host, place in places.items():
        axes.plot([place, place], [-0.6, len(rows) - 0.4], color="#b5b5b5", linewidth=1.2, zorder=1)
        axes.annotate(host, (place, -0.9), ha="center", fontweight="bold", fontsize=9.5)
    right = max(len(hosts) - 1, 1)
    for y, row in enumerate(rows):
        step = row.step
        colour = STEP_COLOURS[step]
        axes.annotate(f"{row.time_s:.4f} s", (-0.62, y), ha="right", va="center", fontsize=8, color=style.MUTED)
        origin = places[row.node]
        if row.to is None and not row.lost:
            axes.plot(origin, y, "o", color=colour, markersize=5, zorder=3)
        else:
            goal = places[row.to] if row.to else origin + 0.5 * (1 if origin == 0 else -1)
            axes.annotate(
                "",
                (goal, y),
                (origin, y),
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": style.LOST if row.lost else colour,
                    "linewidth": 1.5,
                    "linestyle": "--" if row.lost else "-",
                    "shrinkA": 0,
                    "shrinkB": 0,
                },
            )
        axes.annotate(row.text, (right + 0.08, y), va="center", fontsize=8.3, color=style.INK)
        axes.plot(-0.55, y, "s", color=colour, markersize=5)
    shown = sorted({row.step for row in rows})
    for step in shown:
        axes.plot([], [], "s", color=STEP_COLOURS[step], label=STEP_NAMES[step])
    axes.set(xlim=(-1.15, right + 2.1), ylim=(len(rows) + 0.2, -1.6))
    if shown:
        axes.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, 0.0),
            ncols=3,
            handletextpad=0.2,
            frameon=False,
            fontsize=style.LEGEND_SIZE,
        )
    if hidden:
        axes.annotate(f"{hidden} more not shown", (0, len(rows)), fontsize=8, color=style.MUTED, va="center")
    return figure


def _rows(signalling: pl.DataFrame, packets: pl.DataFrame, start_s: float, end_s: float) -> list[_Row]:
    seconds = pl.col("time_ns") / 1e9
    events = signalling.with_columns(time_s=seconds).filter(pl.col("time_s").is_between(start_s, end_s))
    rows = [
        _Row(event["time_s"], event["node"], None, False, event["step"], f"{event['event']} {event['detail']}".strip())
        for event in events.iter_rows(named=True)
        if event["event"] not in ("beacon", "beacon-heard")
    ]
    messages = packets.with_columns(time_s=seconds).filter(~pl.col("kind").is_in(list(NOT_SIGNALLING)))
    sent = messages.filter((pl.col("action") == "sent") & pl.col("time_s").is_between(start_s, end_s))
    steps = _steps(messages.filter(pl.col("action") == "sent"))
    ends = (
        messages.filter(pl.col("action") != "sent")
        .group_by("packet_id", "kind", maintain_order=True)
        .agg(
            pl.col("action").first(),
            pl.col("node").first().alias("end"),
            pl.col("time_s").first().alias("end_s"),
        )
    )
    for row in sent.join(ends, on=["packet_id", "kind"], how="left").iter_rows(named=True):
        arrived = row["action_right"] == "received"
        how = f"{(row['end_s'] - row['time_s']) * 1e3:.1f} ms" if arrived else "lost"
        # Multicast and messages to routers have no receiving host in the table.
        if row["action_right"] is None:
            how = ""
        rows.append(
            _Row(
                time_s=row["time_s"],
                node=row["node"],
                to=row["end"] if arrived else None,
                lost=row["action_right"] == "dropped",
                step=steps[row["packet_id"], row["kind"]],
                text=f"{row['kind']} from {row['source']} {f'({how})' if how else ''}".strip(),
            )
        )
    return sorted(rows, key=lambda row: row.time_s)


def _steps(sent: pl.DataFrame) -> dict[tuple[int, str], int]:
    """The step of each message, by packet and kind.

    An AUTH is of the step of the ASCONF or ASCONF-ACK that it authenticates, and an ASCONF-ACK of that of the ASCONF
    before it: there is one at a time.
    """
    steps: dict[tuple[int, str], int] = {}
    asked = 0
    for packet, kind in sent.sort("time_ns", maintain_order=True).select("packet_id", "kind").iter_rows():
        step = asked if kind == "ASCONF-ACK" else _step_of(kind)
        if kind.startswith("ASCONF"):
            asked = step
            steps[packet, "AUTH"] = step
        steps.setdefault((packet, kind), step)
    return steps


def _step_of(kind: str) -> int:
    """The step that a message is about; of a bundle, the first."""
    configuration = {"RS": 1, "RA": 1, "NS": 1, "NA": 1}
    asconf = {"ADD": 2, "SET-PRIMARY": 3, "ACTIVATE": 3, "DELETE": 5, "DEACTIVATE": 5}
    location = {"DNS-UPDATE": 4, "DNS-UPDATE-ANSWER": 4}
    steps = configuration | location | {f"ASCONF-{name}": step for name, step in asconf.items()}
    return steps.get(kind.partition("+")[0], 0)

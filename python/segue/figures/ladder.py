"""The signalling of a handover in time: events at the hosts, messages between them."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from segue.figures import style
from segue.figures.flow import FlowTrace, Switch
from segue.metrics import Handover, Metrics
from segue.recorded import Recorded

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
BEFORE_S = 1.5
"""Signalling shown before data moves; earlier if the new address was sought earlier."""
AFTER_S = 1.5
MARGIN_S = 0.1
"""Beside the last data before, and the first and last message of which is known that they belong to it."""
MOST_ALIKE = 3
"""Events or messages that are shown of those that are the same, where there is no room for all."""
ROW_INCHES = 0.19
MOST_ROWS = 60


@dataclass(frozen=True, slots=True)
class Step:
    """A line of the ladder: an event at a node, or a message from it."""

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
    steps = steps_between(signalling, packets, start_s, end_s)
    figure, [axes] = style.new_figure(title, subtitle, width=8.6, height=1.5 + height_of(steps))
    draw_ladder(axes, steps)
    return figure


def height_of(steps: Sequence[Step]) -> float:
    """Of the lines that are drawn, inches."""
    return ROW_INCHES * max(min(len(shown(steps)), MOST_ROWS), 4)


def draw_ladder(axes: Axes, steps: Sequence[Step]) -> None:
    """What `signalling_ladder` shows."""
    steps = shown(steps)
    hidden = max(0, len(steps) - MOST_ROWS)
    rows = steps[:MOST_ROWS]
    hosts = list(dict.fromkeys([row.node for row in rows] + [row.to for row in rows if row.to]))
    places = {host: index for index, host in enumerate(hosts)}
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
        # clear of the marker on the last line
        axes.annotate(
            row.text, (right, y), xytext=(9, 0), textcoords="offset points", va="center", fontsize=8.3, color=style.INK
        )
        axes.plot(-0.55, y, "s", color=colour, markersize=5)
    kinds = sorted({row.step for row in rows})
    for step in kinds:
        axes.plot([], [], "s", color=STEP_COLOURS[step], label=STEP_NAMES[step])
    axes.set(xlim=(-1.15, right + 2.1), ylim=(len(rows) + 0.2, -1.6))
    if kinds:
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


def shown(steps: Sequence[Step]) -> Sequence[Step]:
    """All, or where there is no room, of those that are the same the first, told how many follow, and the last."""
    if len(steps) <= MOST_ROWS:
        return steps
    alike: dict[tuple[object, ...], list[int]] = {}
    for number, step in enumerate(steps):
        what = step.text.partition(" (")[0]
        alike.setdefault((step.node, step.to, step.lost, step.step, what), []).append(number)
    kept: dict[int, Step] = {}
    for numbers in alike.values():
        if len(numbers) <= MOST_ALIKE:
            kept |= {number: steps[number] for number in numbers}
            continue
        first, last = steps[numbers[0]], steps[numbers[-1]]
        more = f"{first.text}, and {len(numbers) - 2} more until {last.time_s:.4f} s"
        kept |= {numbers[0]: replace(first, text=more), numbers[-1]: last}
    return [kept[number] for number in sorted(kept)]


def of_hosts(run: Recorded, trace: FlowTrace) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Signalling and packets that concern the host that moves, among those of others."""
    own = run.packets.filter(pl.col("node") == trace.mover)
    sources = own.filter(pl.col("action") == "sent")["source"].unique().to_list()
    addresses = [address for address in sources if not ipaddress.ip_address(address).is_link_local and address != "::"]
    # What others got of a multicast is none of its signalling; what peers of its other associations were sent is.
    is_multicast = pl.col("destination").str.starts_with("ff")
    ends = pl.col("node").is_in([trace.sender, trace.receiver]) | (pl.col("action") != "received") | ~is_multicast
    packets = run.packets.filter(ends).join(own.select("packet_id").unique(), on="packet_id", how="semi")
    told = pl.any_horizontal([pl.col("detail").str.contains(address, literal=True) for address in addresses])
    signalling = run.signalling.filter((pl.col("node") == trace.mover) | (told if addresses else pl.lit(value=False)))
    return signalling, packets


def span_of_signalling(signalling: pl.DataFrame, switch: Switch, next_s: float | None = None) -> tuple[float, float]:
    """From before its signalling and its last data on the old path until after its last step.

    What comes from `next_s` on, when the host moves again, is another handover's.
    """
    events = signalling.with_columns(time_s=pl.col("time_ns") / 1e9).filter(pl.col("step") > 0)
    started = events.filter((pl.col("event") == "obtain-started") & (pl.col("time_s") < switch.first_new_s))["time_s"]
    start = float(started[-1]) - 0.01 if len(started) else switch.first_new_s - BEFORE_S
    # an interruption may be longer than what is shown before others
    start = max(0.0, min([start, *(time - MARGIN_S for time in (switch.last_old_s, *switch.signalling_s))]))
    ended = events.filter(
        (pl.col("step") == 5)
        & (pl.col("time_s") > switch.first_new_s)
        & (pl.lit(value=True) if next_s is None else pl.col("time_s") < next_s)
    )["time_s"]
    end = max([switch.first_new_s + AFTER_S, *(time + MARGIN_S for time in switch.signalling_s)])
    if len(ended):
        last = [time for time in ended.to_list() if time < float(ended[0]) + 1.0][-1]
        end = max(end, float(last) + 0.05)
    return start, end


def next_move_s(metrics: Metrics, handover: Handover) -> float | None:
    """When the host of this handover moves next, with the same flow, or without one."""
    own = (row for row in metrics.handovers if row.host == handover.host and row.flow in {handover.flow, None})
    return min((row.time_s for row in own if row.time_s > handover.time_s), default=None)


def steps_between(signalling: pl.DataFrame, packets: pl.DataFrame, start_s: float, end_s: float) -> list[Step]:
    """Events and messages from `start_s` to `end_s`, in order."""
    seconds = pl.col("time_ns") / 1e9
    events = signalling.with_columns(time_s=seconds).filter(pl.col("time_s").is_between(start_s, end_s))
    rows = [
        Step(event["time_s"], event["node"], None, False, event["step"], f"{event['event']} {event['detail']}".strip())
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
            Step(
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

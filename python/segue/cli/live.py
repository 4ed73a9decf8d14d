"""What a live analysis has found so far: a table in the terminal that goes on changing, or a line each time."""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO

from segue import explain
from segue.findings import Glance, GlancedFlow, TrafficFlow, TrafficHandover

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

LINE_EVERY_S = 1.0
"""Lines come no more often, and where no packets come, every so many of these."""
QUIET_LINES = 10
SILENT_FROM_S = 0.2
"""Silences from this length on are said, as pauses are."""
MOST_SILENT = 3
"""Silences said in a line: those that began last."""
ROW_LINES = 2
AROUND_ROWS = 9
"""Lines of the terminal that are not rows."""

Show = Callable[[Glance], None]


@contextlib.contextmanager
def live_view(*, beside_document: bool) -> Iterator[Show]:
    """Where to show what was found so far: on standard output, or on standard error if that is for a document."""
    stream = sys.stderr if beside_document else sys.stdout
    if not stream.isatty():
        yield Lines(stream).show
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(file=stream, highlight=False)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield lambda glance: live.update(_table(glance, console), refresh=True)


class Lines:
    """A line each time, no more often than every second."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._packets: int | None = None
        self._said_s = 0.0

    def show(self, glance: Glance) -> None:
        """Say what was found so far, if it is time."""
        now = self._clock()
        wait = LINE_EVERY_S if glance.packets != self._packets else LINE_EVERY_S * QUIET_LINES
        if self._packets is None or now - self._said_s >= wait:
            self._packets, self._said_s = glance.packets, now
            self._stream.write(line(glance) + "\n")
            self._stream.flush()


def line(glance: Glance) -> str:
    """What was found so far."""
    parts = [_counts(glance)]
    if (last := glance.last_handover) is not None:
        old, new = explain.moved(last, _flow_of(glance, last))
        silent = explain.silence(last.interruption_s, censored=last.censored)
        parts.append(f"the last at {last.time:.3f} s: flow {last.flow} from {old} to {new}, {silent} without new data")
    silences = sorted(_silence(glance, row) for row in glance.flows if _is_silent(glance, row))
    told = [f"flow {flow} for {explain.seconds(silence)}" for silence, flow in silences[:MOST_SILENT]]
    if told:
        parts.append(f"silent: {', '.join(told)}")
    if dead := [str(row.flow.id) for row in glance.flows if row.flow.state == "dead"]:
        parts.append(f"dead: flow{'s' if len(dead) > 1 else ''} {', '.join(dead)}")
    return "; ".join(parts)


def _counts(glance: Glance) -> str:
    def counted(count: int, what: str) -> str:
        return f"{count} {what}{'' if count == 1 else 's'}"

    quiet = f", nothing for {explain.seconds(glance.quiet_s)}" if glance.quiet_s >= LINE_EVERY_S else ""
    return (
        f"{glance.time_s:.1f} s{quiet}: {counted(glance.packets, 'packet')}, {counted(glance.flows_total, 'flow')}, "
        f"{counted(glance.handovers, 'handover')}"
    )


def _flow_of(glance: Glance, handover: TrafficHandover) -> TrafficFlow | None:
    return next((row.flow for row in glance.flows if row.flow.id == handover.flow), None)


def _silence(glance: Glance, row: GlancedFlow) -> tuple[float, int]:
    """For how long a flow has been silent, while the clock goes on; and which."""
    return row.silent_s + glance.quiet_s, row.flow.id


def _is_silent(glance: Glance, row: GlancedFlow) -> bool:
    """Whether it is silent although it was not seen to have nothing to say."""
    return _silence(glance, row)[0] >= SILENT_FROM_S and row.flow.state not in ("idle", "closed")


def _table(glance: Glance, console: Console) -> Text:
    """The flows that matter most, as far as there is room for them."""
    from rich.console import Console
    from rich.text import Text

    from segue.cli.layout import Column, print_table

    columns = [
        Column("flow", right=True), Column("what", rank=4), Column("from\nto"), Column("data", right=True, rank=3),
        Column("silent", right=True), Column("longest\npause", right=True, rank=2), Column("handovers", right=True),
        Column("last", right=True, rank=1), Column("without\nnew data", right=True), Column("moved from\nto", rank=5),
        Column("end", rank=0),
    ]  # fmt: skip
    room = max((console.height - AROUND_ROWS) // ROW_LINES, 1)
    rows = [_row(glance, row) for row in _most_telling(glance, room)]
    drawn = Console(
        file=io.StringIO(), width=console.width, height=console.height, highlight=False,
        force_terminal=True, color_system="standard",
    )  # fmt: skip
    drawn.print(f"[bold]{_counts(glance)}[/]   [dim]Ctrl-C ends the capture[/]")
    if rows:
        print_table(drawn, columns, rows)
    assert isinstance(drawn.file, io.StringIO)
    return Text.from_ansi(drawn.file.getvalue().rstrip("\n"))


def _most_telling(glance: Glance, room: int) -> list[GlancedFlow]:
    """Those that died, those that handed over and those with most data, in the order of their flows."""

    def weight(row: GlancedFlow) -> tuple[bool, bool, int]:
        data = row.flow.forward.useful_bytes + row.flow.reverse.useful_bytes
        return row.flow.state == "dead", row.handovers > 0, data

    most = sorted(glance.flows, key=weight, reverse=True)[:room]
    return sorted(most, key=lambda row: row.flow.id)


def _row(glance: Glance, row: GlancedFlow) -> list[str | Text]:
    from rich.text import Text

    flow, last = row.flow, row.last_handover
    direction = "forward" if flow.forward.useful_bytes >= flow.reverse.useful_bytes else "reverse"
    way = flow.direction(direction)
    silent = _silence(glance, row)[0]
    style = "bold red" if flow.state == "dead" else "yellow" if _is_silent(glance, row) else ""
    return [
        str(flow.id),
        explain.protocol(flow),
        "\n".join(explain.ends(flow, direction)),
        explain.size(way.useful_bytes),
        Text(explain.seconds(silent) if silent >= SILENT_FROM_S and flow.state != "closed" else "", style=style),
        explain.silence(way.longest_gap_s, censored=way.longest_gap_is_bound) if way.longest_gap_s else "",
        str(row.handovers or ""),
        f"{last.time:.3f} s" if last else "",
        explain.silence(last.interruption_s, censored=last.censored) if last else "",
        "\n".join(explain.moved(last, flow)) if last else "",
        Text(flow.state, style="bold red" if flow.state == "dead" else ""),
    ]

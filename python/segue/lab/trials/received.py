"""What a receiving program read: the figures of schemes whose packets do not show whose data they carry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

from segue.lab.trials.plan import Application

AROUND_S = 1.0
"""A gap that begins so long after a change of networks, or after an event without an end began, belongs to it."""
TAIL_S = 0.1
"""A sender that is heard of so shortly before the end is heard to the end."""


@dataclass(frozen=True, slots=True)
class Received:
    """What the receiver of an application read. Times are seconds of the run.

    Attributes:
        received_bytes: In all.
        begin_s: When the first was read; `None` if nothing was.
        end_s: When the last was.
        bytes_by_second: In each second from the run's beginning to the last that has any.
        gaps: Times without data, as beginning and end: those longer than the time between two messages.
    """

    received_bytes: int
    begin_s: float | None
    end_s: float | None
    bytes_by_second: tuple[int, ...]
    gaps: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Window:
    """When it is that a gap belongs to what happens: it begins by `until_s`, and ends after `from_s`."""

    from_s: float
    until_s: float

    def has(self, gap: tuple[float, float]) -> bool:
        """Whether a gap does."""
        return gap[0] <= self.until_s and gap[1] >= self.from_s


def received(entries: Iterable[dict[str, Any]]) -> dict[int, Received]:
    """By application, from `lab.received` of a run."""
    return {
        entry["application"]: Received(
            entry["bytes"],
            entry["begin_s"],
            entry["end_s"],
            tuple(entry["bytes_by_second"]),
            tuple((begin, end) for begin, end in entry["gaps_s"]),
        )
        for entry in entries
    }


def datagrams_lost(own: Received, application: Application, *, duration_s: float) -> int:
    """How many datagrams were not read, of a sender that sends at its pace to the end, from the first that was.

    What is under way when the run ends, or up to `TAIL_S` before, is not lost. One that has a size sends no more than
    that.

    Args:
        own: What was read.
        application: Whose.
        duration_s: Length of the run, seconds.
    """
    if own.begin_s is None or own.end_s is None:
        return 0
    until = duration_s if duration_s - own.end_s > TAIL_S else own.end_s
    sent = 1 + round((until - own.begin_s) / application.pacing_s)
    if application.size_bytes is not None:
        sent = min(sent, ceil(application.size_bytes / application.message_bytes))
    return max(0, sent - round(own.received_bytes / application.message_bytes))


def end_of_data_s(own: Received, application: Application, *, duration_s: float) -> float:
    """Until when there is something to be read: to the end of the run, or of the pace of datagrams that have a size.

    Args:
        own: What was read.
        application: Whose.
        duration_s: Length of the run, seconds.
    """
    is_paced = application.transport == "udp" and application.pacing_s > 0
    if not is_paced or application.size_bytes is None or own.begin_s is None:
        return duration_s
    datagrams = ceil(application.size_bytes / application.message_bytes)
    return min(duration_s, own.begin_s + (datagrams - 1) * application.pacing_s)


def is_complete(own: Received, application: Application, *, duration_s: float) -> bool:
    """Whether nothing is missing after what was read: it was all, or the last of datagrams some of which were lost."""
    if application.size_bytes is None:
        return False
    if own.received_bytes >= application.size_bytes:
        return True
    end_s = end_of_data_s(own, application, duration_s=duration_s)
    return own.end_s is not None and end_s < duration_s and end_s - own.end_s <= TAIL_S


def longest_gap(
    own: Received, windows: Iterable[Window], *, duration_s: float, is_complete: bool
) -> tuple[float, bool]:
    """The longest time without data in any of the windows, and whether it lasted to the end.

    Args:
        own: What was read.
        windows: When what happens happens.
        duration_s: When that is, as `end_of_data_s`.
        is_complete: Nothing is missing after what was read.
    """
    found = [(gap, False) for gap in own.gaps]
    if own.end_s is not None and not is_complete:
        found.append(((own.end_s, duration_s), True))
    inside = [(gap, is_last) for gap, is_last in found if any(window.has(gap) for window in windows)]
    longest = max(inside, key=lambda one: one[0][1] - one[0][0], default=((0.0, 0.0), False))
    return longest[0][1] - longest[0][0], longest[1]


def throughput_bps(
    own: Received, moment_s: float, *, after: bool, duration_s: float, is_complete: bool
) -> float | None:
    """In whole seconds before what happens, or after it, bit/s; `None` if there are none."""
    if own.begin_s is None:
        return None
    # the last second may be begun only
    last = len(own.bytes_by_second) - 1 if is_complete else floor(duration_s)
    begin, end = (ceil(moment_s), last) if after else (ceil(own.begin_s), floor(moment_s))
    return sum(own.bytes_by_second[begin:end]) * 8 / (end - begin) if end > begin else None

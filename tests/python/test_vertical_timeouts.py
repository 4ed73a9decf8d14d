"""What packets tell of a loss: whether a timeout came too early (V6), and what repaired it (V5)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from segue.papers.vertical import experiment as ex
from segue.running import Run

ORIGIN = 2**32 - 1000
"""Numbers go round in the middle."""


def run(*, timeout_s: float, acks: list[tuple[float, float | None, int]]) -> Run:
    """A sender that times out once; acknowledgements leave, arrive (or never), and acknowledge so many bytes."""

    def row(time_s: float, node: str, action: str, kind: str, packet: int, tsn: int, *, again: bool) -> dict[str, Any]:
        return {
            "time_ns": round(time_s * 1e9),
            "node": node,
            "action": action,
            "packet_id": packet,
            "kind": kind,
            "tsn": (ORIGIN + tsn) % 2**32,
            "retransmission": again,
        }

    packets = [row(timeout_s, ex.SENDER, "sent", "DATA", 1, 0, again=True)]
    for packet, (left, came, number) in enumerate(acks, 2):
        packets.append(row(left, ex.MOBILE, "sent", "ACK", packet, number, again=False))
        if came is not None:
            packets.append(row(came, ex.SENDER, "received", "ACK", packet, number, again=False))
    windows = [{"time_ns": round(timeout_s * 1e9), "node": ex.SENDER, "cwnd_bytes": 1364}]
    frames = SimpleNamespace(
        packets=pl.DataFrame(packets).sort("time_ns"), windows=pl.DataFrame(windows), signalling=pl.DataFrame()
    )
    return cast("Run", frames)


KNOWN = (20.1, 20.2, 1000)


@pytest.mark.parametrize(
    ("acks", "early"),
    [
        ([KNOWN, (21.5, 22.5, 2000)], 1),
        # lost on its way
        ([KNOWN, (21.5, None, 2000)], 0),
        # left after the timeout
        ([KNOWN, (22.1, 23.0, 2000)], 0),
        # arrived before it
        ([KNOWN, (21.0, 21.9, 2000)], 0),
        # acknowledges nothing new
        ([KNOWN, (21.5, 22.5, 1000)], 0),
    ],
)
def test_a_timeout_is_early_if_an_acknowledgement_of_news_is_under_way(
    acks: list[tuple[float, float | None, int]], early: int
) -> None:
    assert ex.early_timeouts(run(timeout_s=22.0, acks=acks), 20.0) == early


def test_timeouts_before_the_handover_do_not_count() -> None:
    assert ex.early_timeouts(run(timeout_s=22.0, acks=[KNOWN, (21.5, 22.5, 2000)]), 22.5) == 0


def repaired(acks: list[tuple[float, int]], *, at_s: float = 22.0, arrives: bool = True) -> str | None:
    """By what a segment that is sent again at `at_s` was repaired; acknowledgements arrive, and have these numbers."""
    rows = [(at_s, ex.SENDER, "sent", "DATA", 1, 500, True)]
    rows += [(at_s + 0.1, ex.MOBILE, "received", "DATA", 1, 500, True)] * arrives
    rows += [(came, ex.SENDER, "received", "ACK", at, number, False) for at, (came, number) in enumerate(acks, 2)]
    columns = ("time_ns", "node", "action", "kind", "packet_id", "tsn", "retransmission")
    packets = pl.DataFrame([(round(row[0] * 1e9), *row[1:]) for row in rows], columns, orient="row").sort("time_ns")
    return ex.repaired_by(cast("Run", SimpleNamespace(packets=packets)), 20.0)


def test_the_third_duplicate_acknowledgement_repairs() -> None:
    three = [(21.0, 500), (21.8, 500), (21.9, 500), (22.0, 500)]
    assert repaired(three) == "duplicates"
    assert repaired([(21.7, 500), *three]) == "duplicates", "a fourth does too, where the third did nothing"
    assert repaired(three[1:]) == "timer", "the first is no duplicate"
    assert repaired([*three[:3], (22.0, 600)]) == "timer", "the last acknowledges more"


def test_what_is_sent_again_without_an_acknowledgement_the_timer_has_sent() -> None:
    three = [(21.0, 500), (21.1, 500), (21.2, 500), (21.3, 500)]
    assert repaired(three) == "timer"
    assert repaired([]) == "timer"


def test_nothing_is_repaired_by_what_is_lost_or_was_sent_before() -> None:
    assert repaired([], arrives=False) is None
    assert repaired([], at_s=19.9) is None

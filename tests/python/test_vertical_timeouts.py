"""What tells whether a timeout came too early (V6): acknowledgements in flight."""

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

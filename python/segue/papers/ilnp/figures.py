"""Figures 9 to 19 of the paper, with its axes and legends, and some of our own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from segue.figures import style
from segue.figures.groups import Layout, bars, boxes
from segue.papers.common import Drawn
from segue.papers.grid import summarise
from segue.papers.ilnp import experiment as ex

BOXES = "Boxes from the lower to the upper quartile over seeds, whiskers to the extremes."
MEGABYTE = 1e-6
PACKETS_AXIS = 600.0
"""Where the paper's axis of figures 14 and 15 ends."""

_RATE_NOTES = {
    "lan-lan": "Paper: an interruption with MIPv6, a small drop with ILNPv6.",
    "lan-wan": "Paper: an interruption with MIPv6 and ILNPv6 hard, none with soft; slower after it, for the round "
    "trip.",
    "wan-lan": "Paper: faster after the handoff, but not MIPv6 without RO, whose traffic goes on over the slow link.",
    "wan-wan": "Paper: an interruption with MIPv6 and ILNPv6 hard, none with soft; MIPv6 without RO suffers most.",
}


def draw(results: ex.Results) -> Iterator[Drawn]:
    """Figures 9 to 19, and what a modern TCP changes."""
    for number, case in enumerate(ex.CASES, start=9):
        yield rate(results.rates, number, case)
    era = results.runs.filter(pl.col("profile") == ex.PROFILES[0])
    cubic = era.filter(pl.col("variant") == "cubic")
    yield from _by_scheme(cubic)
    yield from _by_variant(era)
    yield modern(results.runs.filter(pl.col("variant") == "cubic"))


def rate(rates: pl.DataFrame, number: int, case: str) -> Drawn:
    """Data rate at the mobile node over time, one of figures 9 to 12."""
    mine = rates.filter(pl.col("case") == case)
    figure, (axes,) = style.new_figure(
        f"Figure {number}: TCP flow data rate, {ex.CASE_NAMES[case]} handoff",
        f"{_RATE_NOTES[case]}\nNew bytes at the mobile node by second, CUBIC, seed 1.",
    )
    for index, (scheme, name) in enumerate(ex.SCHEME_NAMES.items()):
        curve = mine.filter(pl.col("scheme") == scheme).sort("time_s")
        axes.plot(
            curve["time_s"],
            curve["rate_bytes_per_s"] * MEGABYTE,
            color=style.PATHS[index],
            marker=style.PATH_MARKERS[index],
            markersize=3.5,
            label=name,
        )
    axes.set(xlabel="time (s)", ylabel="data rate (MB/s)", xlim=(0, ex.FLOW_LASTS_S))
    axes.set_ylim(bottom=0)
    style.legend_below(figure, axes)
    return Drawn(
        f"figure-{number:02}",
        f"Fig. {number}. Typical profile for a TCP flow, with {ex.CASE_NAMES[case]} handoff",
        figure,
        mine,
    )


def _by_scheme(cubic: pl.DataFrame) -> Iterator[Drawn]:
    """Figures 13 to 16."""
    together = Layout("transferred_bytes", "case", ex.CASE_NAMES, "scheme", ex.SCHEME_NAMES)
    one = {ex.PROFILES[0]: ""}
    apart = Layout("retransmissions", "scheme", ex.SCHEME_NAMES, "profile", one, "case", ex.CASE_NAMES)
    yield Drawn(
        "figure-13",
        "Fig. 13. Total data transfer volumes during 30-second TCP flows",
        bars(
            cubic,
            replace(together, value="transferred_bytes"),
            title="Figure 13: data transferred in 30 s",
            subtitle="Paper: more with ILNPv6 everywhere but from LAN to WAN, where MIPv6 stays longer on the LAN.\n"
            "CUBIC.",
            y_label="data (MB)",
            scale=MEGABYTE,
        ),
        summarise(cubic, ["case", "scheme"], "transferred_bytes"),
    )
    yield Drawn(
        "figure-14",
        "Fig. 14. Number of retransmissions attempted at the CN",
        boxes(
            cubic,
            replace(apart, value="retransmissions"),
            title="Figure 14: retransmissions",
            subtitle=f"Paper: fewest with ILNPv6 soft; those are for reordering, not for loss. CUBIC.\n{BOXES}",
            y_label="retransmissions (packets)",
            least=PACKETS_AXIS,
        ),
        summarise(cubic, ["case", "scheme"], "retransmissions"),
    )
    yield Drawn(
        "figure-15",
        "Fig. 15. Number of lost packets in each flow",
        boxes(
            cubic,
            replace(apart, value="lost_packets"),
            title="Figure 15: packet loss",
            subtitle="Paper: about a window (234 packets) at the median, close to zero with ILNPv6 soft. CUBIC.\n"
            + BOXES,
            y_label="packet loss (packets)",
            least=PACKETS_AXIS,
        ),
        summarise(cubic, ["case", "scheme"], "lost_packets"),
    )
    yield Drawn(
        "figure-16",
        "Fig. 16. Handoff delay for TCP traffic flows",
        bars(
            cubic,
            replace(together, value="handoff_delay_s"),
            title="Figure 16: handoff delay",
            subtitle="Paper: about one round trip with ILNPv6; a second more with MIPv6, and yet more with RO.\n"
            "From the first message of a new address to the last answer. CUBIC.",
            y_label="handoff delay (s)",
        ),
        summarise(cubic, ["case", "scheme"], "handoff_delay_s"),
    )


def _by_variant(era: pl.DataFrame) -> Iterator[Drawn]:
    """Figures 17 to 19."""
    layout = Layout("transferred_bytes", "scheme", ex.SCHEME_NAMES, "variant", ex.VARIANT_NAMES, "case", ex.CASE_NAMES)
    by = ["case", "scheme", "variant"]
    yield Drawn(
        "figure-17",
        "Fig. 17. Total data transfer volumes using different TCP variants",
        bars(
            era,
            replace(layout, value="transferred_bytes"),
            title="Figure 17: data transferred in 30 s, by TCP variant",
            subtitle="Paper: little difference; Hybla a little ahead on the WAN, Veno least.",
            y_label="data (MB)",
            scale=MEGABYTE,
        ),
        summarise(era, by, "transferred_bytes"),
    )
    yield Drawn(
        "figure-18",
        "Fig. 18. Number of retransmissions attempted at the CN, using different TCP variants",
        boxes(
            era,
            replace(layout, value="retransmissions"),
            title="Figure 18: retransmissions, by TCP variant",
            subtitle=f"Paper: fewest with Veno in most cases; fewest of all with ILNPv6 soft.\n{BOXES}",
            y_label="retransmissions (packets)",
            least=PACKETS_AXIS,
        ),
        summarise(era, by, "retransmissions"),
    )
    yield Drawn(
        "figure-19",
        "Fig. 19. Number of lost packets in each flow, using different TCP variants",
        boxes(
            era,
            replace(layout, value="lost_packets"),
            title="Figure 19: packet loss, by TCP variant",
            subtitle=f"Paper: Hybla as CUBIC, Veno a little less; close to zero with ILNPv6 soft.\n{BOXES}",
            y_label="packet loss (packets)",
            least=PACKETS_AXIS,
        ),
        summarise(era, by, "lost_packets"),
    )


def modern(cubic: pl.DataFrame) -> Drawn:
    """What the TCP of today makes of it: not in the paper."""
    layout = Layout(
        "retransmissions",
        category="scheme",
        categories=ex.SCHEME_NAMES,
        series="profile",
        all_series={"linux-3.9": "Linux 3.9 (the paper's)", "modern": "modern (RACK-TLP)"},
        panel="case",
        panels=ex.CASE_NAMES,
    )
    return Drawn(
        "figure-modern",
        "Not in the paper: retransmissions with the TCP of the paper's time and with a modern one",
        boxes(
            cubic,
            layout,
            title="Retransmissions with the TCP of Linux 3.9 and with a modern one",
            subtitle="RACK waits for what has been overtaken by no more than a part of a round trip (RFC 8985), Linux "
            "3.9 does "
            f"not. CUBIC.\n{BOXES}",
            y_label="retransmissions (packets)",
            least=PACKETS_AXIS,
        ),
        pl.concat(
            summarise(cubic, ["case", "scheme", "profile"], measure).with_columns(measure=pl.lit(measure))
            for measure in ("retransmissions", "spurious_retransmissions", "lost_packets", "transferred_bytes")
        ),
    )

"""Puts what the scenarios of `scenarios/leo` come to into `docs/leo.md`; `make docs` calls this.

A stream of 100 messages a second through all handovers of five minutes, and as much as a transport gets in one.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import segue

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "leo.md"

BULK = 'application=[{{ kind = "bulk", transport = "{}", from = "ground", to = "terminal", start = "5 s" }}]'
"""As much as a transport gets, in the place of the stream."""
MINUTE = "65 s"

CASES = (
    "sigma",
    "sigma-eager",
    "sigma-planned",
    "cmt",
    "mip6",
    "mip6-planned",
    "mip6-ro",
    "mip6-ro-planned",
    "ilnp-hard",
    "ilnp-hard-planned",
    "ilnp-soft",
    "ilnp-soft-planned",
)
"""Of `satellites`, in the order of the tables."""
OVERLAPS = ("0 s", "1 s", "3 s")
"""For how long the next satellite is there beside the one before."""
TRANSFERS = (
    ("sigma", "sctp"),
    ("sigma-eager", "sctp"),
    ("sigma-planned", "sctp"),
    ("cmt", "sctp"),
    ("mip6", "tcp"),
    ("mip6-planned", "tcp"),
    ("mip6-ro", "tcp"),
    ("mip6-ro-planned", "tcp"),
    ("ilnp-hard", "tcp"),
    ("ilnp-hard-planned", "tcp"),
    ("ilnp-soft", "tcp"),
    ("ilnp-soft-planned", "tcp"),
)
"""Cases of `satellites`, and over what."""
RECONFIGURATIONS = ("0 s", "100 ms", "500 ms")
"""For how long `starlink` loses everything when another satellite serves."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the page: between its marks stand these lines.

    Attributes:
        name: Of its marks.
        lines: Markdown.
    """

    name: str
    lines: Sequence[str]

    @property
    def marks(self) -> tuple[str, str]:
        """What stands before and behind it."""
        return f"<!-- made by scripts/leo_table.py: {self.name} -->\n", "<!-- end -->\n"

    def put_into(self, text: str) -> str:
        """The page with this table.

        Raises:
            ValueError: It has not the marks.
        """
        begin, end = self.marks
        before, mark, rest = text.partition(begin)
        _, close, after = rest.partition(end)
        if not mark or not close:
            raise ValueError(f"docs/leo.md: expected {begin.strip()} and {end.strip()}")
        return "".join([before, begin, "\n", *(f"{line}\n" for line in self.lines), "\n", end, after])


def stream(case: str, overlap: str) -> str:
    """What a stream goes through: the median and the longest of its interruptions, and how many packets it loses."""
    overrides = {"case": case, "constellation.overlap": overlap}
    metrics = segue.run("satellites", overrides, trace=False).metrics
    [flow] = metrics.flows
    times = [h.interruption_s for h in metrics.handovers if h.interruption_s is not None]
    return f"{milliseconds(statistics.median(times))} / {milliseconds(max(times))} ms, {flow.lost_packets}"


def transfer(scenario: str, case: str, overrides: dict[str, str]) -> str:
    """What a transport gets in a minute, and its longest time without new data."""
    overrides = {"case": case, "duration": MINUTE, **overrides}
    metrics = segue.run(scenario, overrides, trace=False).metrics
    [flow] = metrics.flows
    return f"{flow.throughput_bps / 1e6:.0f} Mbit/s, {milliseconds(flow.longest_gap_s)} ms"


def milliseconds(seconds: float) -> str:
    """To a tenth below ten."""
    value = 1000 * seconds
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"


def interruptions(cases: Sequence[str] = CASES, overlaps: Sequence[str] = OVERLAPS) -> Table:
    """What handovers between satellites do to a stream."""
    head = row("`case`", [f"`overlap` {overlap}" for overlap in overlaps])
    rows = [row(f"`{case}`", [stream(case, overlap) for overlap in overlaps]) for case in cases]
    return Table("interruptions", [head, row("---", ["---"] * len(overlaps)), *rows])


def transfers(of: Sequence[tuple[str, str]] = TRANSFERS) -> Table:
    """What is left of the rate of a satellite."""
    head = row("`case`", ["over", "gets, and is silent at most"])
    rows = []
    for case, transport in of:
        key, _, value = BULK.format(transport).partition("=")
        rows.append(row(f"`{case}`", [transport.upper(), transfer("satellites", case, {key: value})]))
    return Table("transfers", [head, row("---", ["---"] * 2), *rows])


def reconfigurations(lengths: Sequence[str] = RECONFIGURATIONS) -> Table:
    """What transports make of a network that hides its satellites."""
    head = row("`case`", [f"`reconfiguration` {length}" for length in lengths])
    rows = []
    for case in ("tcp", "sctp"):
        cells = [transfer("starlink", case, {"constellation.reconfiguration": length}) for length in lengths]
        rows.append(row(f"`{case}`", cells))
    return Table("reconfigurations", [head, row("---", ["---"] * len(lengths)), *rows])


def row(first: str, rest: Sequence[str]) -> str:
    """A row of Markdown."""
    return "| " + " | ".join([first, *rest]) + " |"


def main() -> None:
    """Rewrite the page."""
    text = PAGE.read_text()
    for table in (interruptions(), transfers(), reconfigurations()):
        text = table.put_into(text)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()

"""What of Mobile IPv6's interruption is the protocol's, and what the settings': beside I1 to I5, not in the paper.

The paper's Mobile IPv6 waits until the old network is gone; its link is lost by missed beacons, and its home agent
looks for duplicates of a node that it has just bound. RFC 6275 asks for none of the first two, and for the third only
when a node leaves home. They are taken away here one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from segue.figures.groups import Layout, bars
from segue.papers.common import Drawn
from segue.papers.grid import summarise
from segue.papers.ilnp import experiment as ex
from segue.runner import Runner
from segue.running import Progress, job
from segue.scenarios import Scenario, load
from segue.stats import intervals_text

MEASURES = {
    "handoff_delay_s": ("I1: handoff delay (ms)", 1e3),
    "lost_packets": ("I2: lost packets", 1.0),
    "retransmissions": ("I3: retransmissions", 1.0),
    "transferred_bytes": ("I4: data in 30 s (MB)", 1e-6),
    "interruption_s": ("I5: longest time without new data (ms)", 1e3),
}
"""Columns of the runs, by the claim that they belong to: name and scale."""

NO_DETECTION = {"mip6.home_agent.duplicate_address_detection": "0 s"}
AT_ONCE = {"l2.loss_detection": "immediate"}
BOUND_AT_ONCE = {**AT_ONCE, **NO_DETECTION}
EAGER = {**BOUND_AT_ONCE, "mip6.mobile_node.handoff": "on-new-router"}

_HOME_ELSEWHERE = """
[[router]]
name = "r4"

[[link]]
name = "r1-r4"
between = ["r1", "r4"]
rate = "1 Gbit/s"
delay = "1.5 ms"
queue = "1000 packets"

[[cell]]
name = "L4"
router = "r4"
position = ["0 m", "100 km"]
radius = "70 m"
channel = 1
"""
"""A home network that the node is never in. It is as far from the others as L2's, which was its home, so that it takes
as long to register there, and only what the home agent does first is missing."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A scheme with settings.

    Attributes:
        name: In words.
        scheme: The scheme.
        overrides: As `--set` has them.
        abroad: The handover is between two foreign networks.
    """

    name: str
    scheme: str
    overrides: dict[str, str]
    abroad: bool = False


SETTINGS = {
    setting.name: setting
    for setting in (
        *(
            one
            for scheme, name in (("mip6", "MIPv6"), ("mip6-ro", "MIPv6 with RO"))
            for one in (
                Setting(f"{name}, as in the paper", scheme, {}),
                Setting(f"{name}, without detection by the home agent", scheme, NO_DETECTION),
                Setting(f"{name}, between foreign networks", scheme, {}, abroad=True),
                Setting(f"{name}, link loss known at once", scheme, AT_ONCE),
                Setting(f"{name}, and no detection by the home agent", scheme, BOUND_AT_ONCE),
                Setting(f"{name}, and eager", scheme, EAGER),
            )
        ),
        Setting("ILNPv6 hard", "ilnp-hard", {}),
        Setting("ILNPv6 soft", "ilnp-soft", {}),
    )
}
"""From the paper's on; "and" adds to the line above, the others differ from the first by what they say alone."""


def run(
    seeds: Sequence[int],
    *,
    settings: Iterable[Setting] = SETTINGS.values(),
    cases: Sequence[str] = ex.CASES,
    runner: Runner,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """A row per run: `setting`, and what `experiment.row` has."""
    here = load(ex.SCENARIO)
    abroad = Scenario(here.name, f"{here.file} (home elsewhere)", _from_abroad(here.text))
    labels = [(setting, case, seed) for setting in settings for case in cases for seed in seeds]
    jobs = [
        job(
            abroad if setting.abroad else here,
            {**ex.Point(case, setting.scheme).overrides(), **setting.overrides},
            seed=seed,
        )
        for setting, case, seed in labels
    ]
    runs = runner.runs(jobs, progress=progress)
    return pl.DataFrame(
        [
            {"setting": setting.name} | ex.row(ex.Point(case, setting.scheme), seed, one)
            for (setting, case, seed), one in zip(labels, runs, strict=True)
        ],
        infer_schema_length=None,
    )


def _from_abroad(text: str) -> str:
    far = 'link.r1-r2.delay = "101.5 ms"\n'
    edited = (
        text.replace('home = "L2"', 'home = "L4"', 1)
        .replace("[[application]]", _HOME_ELSEWHERE + "\n[[application]]", 1)
        .replace(far, far + far.replace("r2", "r4"))
    )
    if edited.count('"L4"') != 2 or edited.count("r1-r4.delay") != 2:
        raise ValueError("the scenario has no home L2, no application, or other delays")
    return edited


def table(frame: pl.DataFrame) -> pl.DataFrame:
    """Medians with intervals: `measure`, `setting`, and a column of text per case."""
    rows = []
    for column, (title, scale) in MEASURES.items():
        values = summarise(frame.drop_nulls(column), ["setting", "case"], column)
        found = {(row["setting"], row["case"]): row for row in values.iter_rows(named=True)}
        for setting in SETTINGS:
            cells = {case: _cell(found.get((setting, case)), scale) for case in ex.CASES}
            rows.append(
                {"measure": title, "setting": setting} | {ex.CASE_NAMES[case]: cells[case] for case in ex.CASES}
            )
    return pl.DataFrame(rows)


def intervals(frame: pl.DataFrame) -> str:
    """What the medians of `table` are of, and how well their intervals hold them."""
    parts = [summarise(frame.drop_nulls(column), ["setting", "case"], column) for column in MEASURES]
    return intervals_text(row for part in parts for row in part.select("n", "coverage").rows())


def _cell(row: dict[str, float] | None, scale: float) -> str:
    if row is None:
        return "none"
    middle, low, high = (row[name] * scale for name in ("median", "low", "high"))
    digits = 1 if scale == MEASURES["transferred_bytes"][1] else 0
    return f"{middle:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def markdown(made: pl.DataFrame) -> str:
    """What `table` gives, for a document: a table for each measure."""
    parts = []
    for (title,), rows in made.group_by("measure", maintain_order=True):
        cases = [name for name in rows.columns if name not in ("measure", "setting")]
        lines = [f"| {title} | " + " | ".join(cases) + " |", "|---" * (len(cases) + 1) + "|"]
        lines += ["| " + " | ".join([row["setting"], *(row[c] for c in cases)]) + " |" for row in rows.to_dicts()]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def figure(frame: pl.DataFrame) -> Drawn:
    """Interruption of Mobile IPv6 step by step, and ILNPv6's."""
    return Drawn(
        "figure-settings",
        "Not in the paper: what of the interruption is the protocol's, and what the settings'",
        bars(
            frame.drop_nulls("interruption_s").filter(pl.col("setting").is_in(list(SHOWN))),
            Layout("interruption_s", "case", ex.CASE_NAMES, "setting", SHOWN),
            title="Mobile IPv6's silence, setting by setting",
            subtitle="Longest time without new data around the handover. CUBIC.",
            y_label="interruption (s)",
        ),
        table(frame),
    )


SHOWN = {
    "MIPv6, as in the paper": "MIPv6, as in the paper",
    "MIPv6, and no detection by the home agent": "link loss and binding at once",
    "MIPv6, and eager": "and eager",
    "ILNPv6 hard": "ILNPv6 hard",
    "ILNPv6 soft": "ILNPv6 soft",
}
"""Of the figure, with its legend: the rest is in the table."""

"""Figures 5 to 9 of the paper, and some of our own."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from segue.figures import style
from segue.figures.groups import Layout, boxes
from segue.papers.common import Drawn
from segue.papers.vertical import claims, model
from segue.papers.vertical import experiment as ex

KILOBIT = 1e-3
BOXES = "Boxes from the lower to the upper quartile over seeds, whiskers to the extremes."


def draw(results: ex.Results) -> Iterator[Drawn]:
    """Figures 5 to 9, t_d against equation 2, and the remedies."""
    for number, case in ((5, "wlan-gprs"), (6, "lan-gprs")):
        yield latencies(results.runs, number, case)
    for number, case in ((7, "wlan-gprs"), (8, "lan-gprs")):
        yield throughput(results, number, case)
    yield sequence(results.sequence)
    yield detection(results.runs)
    yield remedies(results.runs)


def latencies(runs: pl.DataFrame, number: int, case: str) -> Drawn:
    """T_n and t_a of handovers, one of figures 5 and 6."""
    count = ex.PAPER_HANDOVERS[case]
    own = runs.filter((pl.col("variant") == case) & (pl.col("number") == 0)).sort("seed").head(count)
    paper = claims.PAPER_MS[case]
    figure, (axes,) = style.new_figure(
        f"Figure {number}: total handover time, {ex.CASE_NAMES[case]}",
        f"{own.height} handovers, a seed each. T_n up to the first data packet, where t_a begins; marked where it ends "
        "by the other\ntwo readings. Dashed: the paper's means (table 1), T_n and T_n + t_a.",
    )
    seeds = own["seed"].to_list()
    # t_a begins where T_n ends: without an end there is neither
    begun = own.drop_nulls("first_data_s")
    whole = begun.drop_nulls("t_a_s")
    axes.bar(begun["seed"], begun["first_data_s"], 0.72, color=style.BLUE, label="T_n, to the first data packet")
    axes.bar(
        whole["seed"], whole["t_a_s"], 0.72, bottom=whole["first_data_s"], color=style.ORANGE, label="t_a (section 5)"
    )
    missing = own.filter(pl.any_horizontal(pl.col("first_data_s", "t_a_s").is_null()))
    if missing.height:
        axes.plot(
            missing["seed"], missing["first_data_s"].fill_null(0.0), "x", color=style.LOST, markersize=7, clip_on=False,
            label="not measured from here on",
        )  # fmt: skip
    for column, marker, label in (
        ("t_n_s", "D", "correspondent has the binding (equations 1 to 4)"),
        ("first_packet_s", "o", "first packet to the new care-of address"),
    ):
        axes.plot(
            seeds, own[column].to_list(), marker, color="white", markeredgecolor="black", markersize=5, label=label
        )
    levels = (paper["t_n_s"][0], paper["t_n_s"][0] + paper["t_a_s"][0])
    for level, colour in zip(levels, (style.BLUE, style.VERMILION), strict=True):
        axes.axhline(level / 1e3, color=colour, linewidth=1.1, linestyle=(0, (4, 3)))
    axes.set(xlabel="handover", ylabel="time (s)", xticks=seeds)
    axes.grid(visible=False, axis="x")
    style.legend_below(figure, axes)
    return Drawn(
        f"figure-{number:02}",
        f"Fig. {number}. Total handover time for {ex.CASE_NAMES[case]}, split into T_n and t_a",
        figure,
        own.select("seed", "t_d_s", "t_c_s", "t_r_s", "t_n_s", "first_packet_s", "first_data_s", "t_a_s", "share"),
    )


def throughput(results: ex.Results, number: int, case: str) -> Drawn:
    """Throughput over GPRS after the handover, one of figures 7 and 8."""
    bins = results.throughput.filter(pl.col("case") == case)
    threshold = bins["throughput_bps"].mean()
    row = results.checked.filter(pl.col("case") == case)
    t_a = row["recorded_s"][0]
    figure, (axes,) = style.new_figure(
        f"Figure {number}: throughput over GPRS after the handover from {case.split('-', maxsplit=1)[0].upper()}",
        "Bins of 0.1 s counted packet by packet (section 5), of the run whose t_a is nearest to the median.\nThe "
        "threshold "
        "is their unweighted mean.",
    )
    axes.plot(
        bins["time_s"],
        bins["throughput_bps"] * KILOBIT,
        color=style.BLUE,
        marker="o",
        markersize=2.6,
        linewidth=1.0,
        label="throughput of a bin, at its end",
    )
    if isinstance(threshold, float):
        axes.axhline(threshold * KILOBIT, color=style.ORANGE, label="mean of the bins")
    if t_a is not None:
        style.mark_time(axes, t_a, f"t_a = {t_a:.2f} s", side="right")
    axes.set(xlabel="time after the first packet over GPRS (s)", ylabel="throughput (kbit/s)")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    style.legend_below(figure, axes)
    old = case.split("-", maxsplit=1)[0].upper()
    return Drawn(
        f"figure-{number:02}",
        f"Fig. {number}. Connection throughput on GPRS link after handover from {old} interface",
        figure,
        bins,
    )


def sequence(packets: pl.DataFrame) -> Drawn:
    """Sequence numbers around two soft handovers, figure 9."""
    figure, panels = style.new_figure(
        "Figure 9: soft handovers, WLAN to GPRS and back",
        "Left: acknowledgements take the slow new way; the sender times out and sends again what has "
        "arrived.\nRight: new "
        "data overtakes what is under way over GPRS.",
        width=9.4,
        height=5.0,
        columns=2,
    )
    origin = packets.filter(pl.col("kind") == "DATA")["tsn"].min()
    first = int(origin) if isinstance(origin, int) else 0
    relative = packets.with_columns(kilobytes=(pl.col("tsn").cast(pl.Int64) - first) / 1000)
    arrivals = relative.filter(
        (pl.col("node") == ex.MOBILE) & (pl.col("action") == "received") & (pl.col("kind") == "DATA")
    )
    sent = relative.filter((pl.col("node") == ex.SENDER) & (pl.col("action") == "sent") & (pl.col("kind") == "DATA"))
    # the interfaces of the mobile node are LAN, WLAN, GPRS
    over = {1: ("received over WLAN", style.BLUE, "o"), 2: ("received over GPRS", style.ORANGE, "^")}
    begin = _least(arrivals.filter(pl.col("interface") == 2)["time_s"], 25.0)
    back = _least(
        arrivals.filter((pl.col("interface") == 1) & (pl.col("time_s") > begin + 10.0))["time_s"], begin + 25.0
    )
    for axes, (low, high), name in zip(
        panels, ((begin - 4.5, begin + 4.0), (back - 2.0, back + 10.5)), ("WLAN to GPRS", "GPRS to WLAN"), strict=True
    ):
        span = pl.col("time_s").is_between(low, high)
        slow = arrivals.filter(span & (pl.col("interface") == 2))["kilobytes"]
        again = sent.filter(span & pl.col("retransmission"))
        lowest = min(_least(slow, 0.0), _least(again["kilobytes"], 1e9)) - 15
        highest = -_least(-slow, 0.0) + 40
        shown = span & pl.col("kilobytes").is_between(lowest, highest)
        for interface, (label, colour, marker) in over.items():
            part = arrivals.filter(shown & (pl.col("interface") == interface))
            axes.plot(
                part["time_s"], part["kilobytes"], marker, color=colour, markersize=3.2, linestyle="none", label=label
            )
        again = again.filter(shown)
        axes.plot(
            again["time_s"],
            again["kilobytes"],
            "x",
            color=style.VERMILION,
            markersize=4.6,
            linestyle="none",
            label="sent again",
        )
        axes.set(xlabel="time (s)", ylabel="sequence number (kB)", xlim=(low, high), ylim=(lowest, highest))
        axes.set_title(name, fontsize=9.5, loc="left", color=style.MUTED)
    style.legend_below(figure, panels[0])
    return Drawn("figure-09", "Fig. 9. Impact of t_a during heterogeneous soft handovers", figure, None)


def _least(values: pl.Series, otherwise: float) -> float:
    least = values.min()
    return float(least) if isinstance(least, (int, float)) else otherwise


def detection(runs: pl.DataFrame) -> Drawn:
    """t_d against equation 2."""
    waits = ex.values(runs, "equation-2", "t_d_s")
    low, high = ex.RA_INTERVAL_S
    figure, (axes,) = style.new_figure(
        "t_d against equation 2",
        f"{len(waits)} handovers; advertisements every {low:.0f} to {high:.0f} s, no solicitations, no rule of lost "
        "advertisements.",
    )
    axes.hist(waits, bins=[high * i / 12 for i in range(13)], density=True, color=style.SKY, label="simulated")
    times = [high * i / 300 for i in range(301)]
    axes.plot(times, [model.detection_density(t, low, high) for t in times], color=style.VERMILION, label="equation 2")
    axes.set(xlabel="t_d (s)", ylabel="density (1/s)", xlim=(0, high))
    style.legend_below(figure, axes)
    return Drawn(
        "figure-detection",
        "Not in the paper: waits for an advertisement, and equation 2",
        figure,
        pl.DataFrame({"t_d_s": sorted(waits)}),
    )


def remedies(runs: pl.DataFrame) -> Drawn:
    """t_a with and without the remedies of section 7."""
    split = runs.filter(pl.col("variant").str.contains("/") & (pl.col("number") == 0)).with_columns(
        pl.col("variant").str.split_exact("/", 1).struct.rename_fields(["case", "remedy"]).alias("parts")
    )
    own = split.unnest("parts").filter(pl.col("t_a_s").is_not_null())
    layout = Layout(
        "t_a_s",
        "case",
        ex.REMEDY_CASES,
        "remedy",
        {name: label for name, (label, _) in ex.REMEDIES.items() if name != "careful-clamp"},
    )
    return Drawn(
        "figure-remedies",
        "Not in the paper: adaptation time with the remedies of section 7, and their modern form",
        boxes(
            own,
            layout,
            title="Adaptation time with and without remedies",
            subtitle="Second handover to GPRS: the sender knows the network. Careful resume remembers RTT and window "
            f"of networks.\n{BOXES}",
            y_label="t_a (s)",
        ),
        own.select("case", "remedy", "seed", "t_a_s", "threshold_bps", "timeouts", "spurious_retransmissions"),
    )

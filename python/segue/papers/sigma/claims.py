"""Claims S1 to S9, computed from frames. Every threshold is the paper's or stated beside it with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from statistics import median

import polars as pl

from segue.papers.claims import Claim, Reading, by_readings
from segue.papers.grid import summarise
from segue.papers.sigma import experiment as ex
from segue.papers.sigma import trace
from segue.running import Run

COMBINED_MS = 900
"""L2 latency and address resolution together, ms: the paper's threshold (Fu et al. 2005 VI-A.1). Points on it belong to
neither side."""
LOW_LATENCY_S = (0.005, 0.010)
""""in the range of 5-10ms" (Fu et al. 2005 VI-A.1)."""
RTO_ORDER_S = 1.0
"""Least latency that is "of the order of the RTO", where the paper's are seconds: RTO.Min."""
FLAT = 0.02
"""Relative spread of medians up to which a curve is called flat or a parameter said not to matter: not stated in the
paper, where flat means flat to the eye."""
LOSS_AXIS = 0.012
"""Where the axis of figure 14 ends: no loss rate of the paper's is higher."""
LOWER = 0.05
"""Relative difference from which a throughput is called clearly lower; as above."""
SPEED_LIMIT_MPS = 15.0
"""Points at 15 m/s belong to neither side (Fu et al. 2005 VI-A.2: "less than 15m/s", "more than 15m/s")."""
INSENSITIVE_S = 0.005
"""Change of latency with speed that counts as "not obvious" (Fu et al. 2005 VI-A.2): the width of the paper's 5-10 ms
band."""
CLIMB = 1.5
"""Latency above 15 m/s, relative to the greatest below, from which it "climbs"."""
SHIFT_S = (0.005, 0.040)
"""S5: "some 20 ms" later, give or take half of the beacon period of 40 ms, with which the switch is quantised."""
RETRANSMISSIONS_S = (0.0, 1.0, 4.0, 6.0)
"""S6: sends of the first lost segment (Fu et al. 2005 V-C)."""
RETRANSMISSION_TOLERANCE_S = 0.25


def evaluate(frames: Mapping[str, pl.DataFrame], runs: Mapping[str, Run]) -> list[Claim]:
    """All claims.

    Args:
        frames: By grid name, from `segue.papers.grid.run_grids`.
        runs: Traced runs by name (`experiment.TRACED`).
    """
    speed = frames[ex.SPEED]
    return [
        *of_latency(frames[ex.LATENCY], frames.get(ex.POLICY)),
        *of_traces({name: trace.facts(run) for name, run in runs.items()}),
        _by_either_statistic(s7(speed), s7, speed),
        _by_either_statistic(s8(speed), s8, speed),
        s9(speed),
    ]


def of_latency(latency: pl.DataFrame, policy: pl.DataFrame | None = None) -> list[Claim]:
    """S1 to S3, from the frames of grids `latency` and `policy`."""
    return [_by_either_statistic(s1(latency, policy), s1, latency), s2(latency), s3(latency)]


def of_traces(facts: Mapping[str, trace.TraceFacts]) -> list[Claim]:
    """S4 to S6, from what the traced runs show (`experiment.TRACED`)."""
    return [
        s4(facts["none"], facts["none-sack-each"], facts["none-ack-path"]),
        s5(facts["none"], facts["low"]),
        s6(facts["high"]),
    ]


def s1(latency: pl.DataFrame, policy: pl.DataFrame | None = None) -> Claim:
    """Figure 10, from the frame of grid `latency`; that of grid `policy` tells how much of it is the policy's."""
    below, above = _sides(latency, "latency_mean_s")
    low_ok = _all_within(below, *LOW_LATENCY_S)
    high_ok = bool(above) and min(above) >= RTO_ORDER_S
    return Claim(
        "S1",
        "at 5 m/s, handover latency is 5-10 ms while L2 latency and address resolution sum to under 900 ms, and of the "
        "order of the RTO above",
        "5-10 ms below 900 ms, seconds above (VI-A.1, figure 10)",
        f"below: {_span(below, 1e3, 'ms')}; above: {_span(above, 1, 's')}",
        low_ok and high_ok,
        f"every point below within 5-10 ms ({_met(low_ok)}), every point above at least {RTO_ORDER_S} s "
        f"({_met(high_ok)}).",
        f"{_step(latency)}{'' if policy is None else _policies(policy)}",
        fitted="The bound above was half a second, half of RTO.Min, and is RTO.Min since results were seen: less than "
        "the words ask for.",
    )


def s2(latency: pl.DataFrame) -> Claim:
    """Figure 12, from the frame of grid `latency`."""
    below, above = _sides(latency, "loss_rate")
    zero = bool(below) and max(below) == 0
    positive = bool(above) and min(above) > 0
    return Claim(
        "S2",
        "the loss rate is zero under 900 ms combined and positive above",
        "0 below, above 0 beyond (VI-B.1, figure 12)",
        f"below: {_span(below, 1, '')}; above: {_span(above, 1, '')}",
        zero and positive,
        f"medians all zero below ({_met(zero)}), all positive above ({_met(positive)}).",
    )


def s3(latency: pl.DataFrame) -> Claim:
    """Figure 13, from the frame of grid `latency`."""
    below, above = _sides(latency, "useful_bps")
    flat = bool(below) and max(below) - min(below) <= FLAT * max(below)
    lower = bool(below and above) and max(above) <= (1 - LOWER) * min(below)
    return Claim(
        "S3",
        "throughput is flat under 900 ms combined and clearly lower above",
        "flat, then lower (VI-B.1, figure 13)",
        f"below: {_span(below, 1e-6, 'Mbit/s')}; above: {_span(above, 1e-6, 'Mbit/s')}",
        flat and lower,
        f"below, medians within {FLAT:.0%} of each other ({_met(flat)}); above, all at least {LOWER:.0%} "
        f"lower than the lowest below ({_met(lower)}).",
    )


def s4(standard: trace.TraceFacts, sack_each: trace.TraceFacts, ack_path: trace.TraceFacts) -> Claim:
    """Figures 4 and 5: with delayed SACKs, with `sctp.sack_frequency = 1`, and with `sctp.cwnd_credit = "ack-path"`."""
    tried = {"a SACK for each packet": sack_each, "delayed SACKs": standard}
    lossless = {name: facts.lost == 0 and facts.switches > 0 for name, facts in tried.items()}
    readings = tuple(
        Reading(name, "left open", _flights(facts), lossless[name] and _is_as_in_figure_5(facts))
        for name, facts in tried.items()
    )
    return Claim(
        "S4",
        "with L2 latency 0 and resolution 500 ms nothing is lost; the new path starts with cwnd 3 MTU, the next window "
        "is 6, and old and new cwnd alternate smoothly",
        "no loss; 3, then 6 (V-A, figures 4 and 5)",
        f"lost: {standard.lost} in {standard.switches} handovers with delayed SACKs, {sack_each.lost} in "
        f"{sack_each.switches} with a SACK per packet; packets in the first two flights: with delayed SACKs "
        f"{_flights(standard)}; with a SACK per packet {_flights(sack_each)}; with cwnd_credit = "
        f'"ack-path" {_flights(ack_path)}',
        by_readings(readings),
        "no loss ("
        + ", ".join(f"{name}: {_met(ok)}" for name, ok in lossless.items())
        + "); flights of 3 and 6 packets ("
        + ", ".join(f"{one.name}: {_met(one.holds)}" for one in readings)
        + "). Doubling in one round needs a SACK for each packet.",
        readings=readings,
        fitted="That flights of packets are counted, and that a SACK for each packet is read beside delayed ones, was "
        "settled after the first flights had been seen with delayed ones alone; the verdict was by the former alone "
        "until the readings were told apart.",
        note="The paper explains the 3 by an ACK "
        "that came over the new path; RFC 9260 section 7.2.1 credits the path that the data took, and needs no such "
        "rule: cwnd is 2 MTU, two DATA chunks are a little less than that, so a third may go (section 6.1 B). With "
        "the paper's rule every SACK of the old window would open the new path, since all of them arrive over it.",
    )


def _is_as_in_figure_5(facts: trace.TraceFacts) -> bool:
    return facts.first_flight_packets == 3 and facts.second_flight_packets == 6


def s5(none: trace.TraceFacts, low: trace.TraceFacts) -> Claim:
    """Figures 6 and 7 against figures 4 and 5."""
    # the same crossings, one after the other
    alike = len(none.switch_times_s) == len(low.switch_times_s)
    shifts = (
        [late - early for early, late in zip(none.switch_times_s, low.switch_times_s, strict=True)] if alike else []
    )
    shift = median(shifts) if shifts else None
    shifted = shift is not None and SHIFT_S[0] <= shift <= SHIFT_S[1]
    lossless = low.lost == 0 and low.switches > 0
    return Claim(
        "S5",
        "with L2 latency 200 ms the only effect is that the switch moves by some 20 ms; still no loss",
        "8.14 s becomes 8.16 s; no loss (V-B, figures 6 and 7)",
        f"{len(none.switch_times_s)} switches without latency, {len(low.switch_times_s)} with it"
        if shift is None
        else f"median shift {shift * 1e3:.1f} ms ({_span(shifts, 1e3, 'ms')} over {len(shifts)} handovers); "
        f"lost: {low.lost}",
        shifted and lossless,
        f"no loss ({_met(lossless)}); shift within {SHIFT_S[0] * 1e3:.0f}-{SHIFT_S[1] * 1e3:.0f} ms ({_met(shifted)}).",
        "The decision is taken at the first beacon after the signals have crossed; both runs have "
        "the new address ready by then, so L2 latency has nothing left to move but the milliseconds for which a beacon "
        "waits behind other frames. The paper names no cause for its 20 ms, half of a beacon period of 40 ms.",
    )


def s6(high: trace.TraceFacts) -> Claim:
    """Figures 8 and 9: when and where to the first lost segment was sent, and what became of it."""
    repair = high.repair
    sends = () if repair is None else repair.sends
    timed = len(sends) == len(RETRANSMISSIONS_S) and all(
        abs(send.offset_s - paper) <= RETRANSMISSION_TOLERANCE_S
        for send, paper in zip(sends, RETRANSMISSIONS_S, strict=True)
    )
    routed = [send.path for send in sends[:3]] == ["old", "new", "old"]
    fared = [send.fate for send in sends] == ["lost", "unacknowledged", "lost", "acknowledged"]
    whole = repair is not None and repair.window > 1 and repair.lost_in_window == repair.window
    each = ", ".join(f"t+{send.offset_s:.2f} s ({send.path}, {send.fate})" for send in sends)
    return Claim(
        "S6",
        "with L2 latency 500 ms a whole window is lost; the first lost segment is sent again after one RTO to the new "
        "address (its ack lost), 3 s later to the old one (lost), 2 s later for good",
        "t, t+1, t+4, t+6 s; to the old, new, old address, then repaired (V-C, figures 8 and 9)",
        "nothing was lost" if repair is None else f"{repair.lost_in_window} of {repair.window} segments lost; {each}",
        timed and routed and fared and whole,
        "all that is sent from the first lost segment until it is sent again is lost, and is more than that one "
        f"({_met(whole)}); four sends at these times within {RETRANSMISSION_TOLERANCE_S} s ({_met(timed)}), in this "
        f"order of paths ({_met(routed)}), lost, arrived with the acknowledgement lost, lost, and acknowledged "
        f"({_met(fared)}).",
        fitted="That the whole window is lost, and how each send fares, is asked for since the times and paths had "
        "been seen to be met.",
    )


def s7(speed: pl.DataFrame) -> Claim:
    """Figure 11 along its curves, from the frame of grid `speed`."""
    slow, fast = _speed_sides(speed, "latency_mean_s")
    flat = all(max(values) - min(values) <= INSENSITIVE_S for values in slow.values())
    climbs = all(bool(fast[b]) and max(fast[b]) >= CLIMB * max(slow[b]) for b in slow)
    return Claim(
        "S7",
        "with L2 latency and resolution 100 ms, speed hardly matters below 15 m/s; above it the latency climbs",
        "flat below 15 m/s, climbing above, for each beacon period (VI-A.2, figure 11)",
        "; ".join(f"{b:g} ms: {_span(slow[b], 1e3, 'ms')} below, {_span(fast[b], 1e3, 'ms')} above" for b in slow),
        bool(slow) and flat and climbs,
        f"for each beacon period: spread below 15 m/s at most {INSENSITIVE_S * 1e3:.0f} ms ({_met(flat)}); "
        f"the greatest above at least {CLIMB} times the greatest below ({_met(climbs)}).",
    )


def s8(speed: pl.DataFrame) -> Claim:
    """Figure 11 across its curves, from the frame of grid `speed`."""
    slow, fast = _speed_sides(speed, "latency_mean_s")
    slow_mean, fast_mean = _means(slow), _means(fast)
    shortest = min(slow_mean, default=0.0)
    highest = bool(slow_mean) and all(slow_mean[shortest] > slow_mean[b] for b in slow_mean if b != shortest)
    out_of_order = _not_rising(fast_mean)
    lowers = len(fast_mean) > 1 and not out_of_order
    return Claim(
        "S8",
        "below 15 m/s the 20 ms beacon gives the highest latency; above it a short beacon period lowers the latency",
        "20 ms highest below, lower above (VI-A.2, figure 11)",
        f"below: {_each(slow_mean, 1e3, 'ms')}; above: {_each(fast_mean, 1e3, 'ms')}",
        highest and lowers,
        f"means over the speeds of a side: below, {shortest:g} ms beacons highest ({_met(highest)}); above, "
        f"each beacon period lower than the next longer one ({_met_but(lowers, out_of_order)}).",
        "Below, every handover is ready in time and its "
        "latency is the spacing of the data packets, which the bottleneck before the routers sets: beacons take some "
        "5 % of an 11 Mbit/s channel at 20 ms. On a channel that is itself the "
        "bottleneck the beacons would tell, but the latency would then be negative, for the old cell's queue drains "
        "after the switch. Above, a handover is late or not, and once it is late its latency is made of retransmission "
        "timeouts, which know no beacon; a short period helps at the margin: see 15 m/s in figure 11.",
        fitted=ALL_PERIODS,
    )


ALL_PERIODS = (
    "Above 15 m/s the shortest period was compared with the longest alone; that the periods between have to lie in "
    "order was added after results had been seen in which they do not."
)


def s9(speed: pl.DataFrame) -> Claim:
    """Figures 14 and 15, from the frame of grid `speed`."""
    slow_losses, fast_losses = _speed_sides(speed, "loss_rate")
    slow_loss, fast_loss = _means(slow_losses), _means(fast_losses)
    slow_rate, fast_rate = (_means(side) for side in _speed_sides(speed, "useful_bps"))
    left = {b: fast_rate[b] / slow_rate[b] for b in fast_rate if slow_rate.get(b)}
    rises = bool(fast_loss) and all(fast_loss[b] > slow_loss[b] for b in fast_loss)
    falls = bool(left) and all(part < 1 for part in left.values())
    loss_order, rate_order = _not_rising(fast_loss), _not_rising({b: -part for b, part in left.items()})
    less_loss = len(fast_loss) > 1 and not loss_order
    more_left = len(left) > 1 and not rate_order
    greatest = max(
        (value for side in (slow_losses, fast_losses) for curve in side.values() for value in curve), default=0
    )
    within = greatest <= LOSS_AXIS
    return Claim(
        "S9",
        "the loss rate rises above 15 m/s, within the paper's axis, and throughput falls; a short beacon period "
        "softens both",
        f"rises to within an axis that ends at {LOSS_AXIS:g}; falls (VI-B.2, figures 14 and 15)",
        f"loss below: {_each(slow_loss, 1, '')}; above: {_each(fast_loss, 1, '')}; at most {_number(greatest)}, "
        f"{greatest / LOSS_AXIS:.1f} times where the paper's axis ends; throughput above / below: "
        + ", ".join(f"{b:g} ms {part:.3f}" for b, part in left.items()),
        rises and falls and less_loss and more_left and within,
        f"means over the speeds of a side: loss higher above for each beacon period ({_met(rises)}), "
        f"throughput lower ({_met(falls)}); above, each beacon period with less loss than the next longer one "
        f"({_met_but(less_loss, loss_order)}) and with more of its throughput left "
        f"({_met_but(more_left, rate_order)}); at no point more loss than where the paper's axis ends, {LOSS_AXIS:g} "
        f"({_met(within)}).",
        ""
        if within
        else "The size is not the paper's: here a missed handover costs a whole window, and then timeouts that are "
        "longer than the host stays in a cell.",
        fitted=ALL_PERIODS + " So was that the loss has to lie within the axis of figure 14.",
    )


def _not_rising(curve: Mapping[float, float]) -> list[str]:
    """Neighbours at which a value does not rise with the beacon period: "40 ms against 60 ms"."""
    return [
        f"{short:g} ms against {long:g} ms" for short, long in pairwise(sorted(curve)) if curve[short] >= curve[long]
    ]


def _met_but(ok: bool, exceptions: list[str]) -> str:
    return f"not met: {', '.join(exceptions)}" if exceptions else _met(ok)


def _by_either_statistic(claim: Claim, judge: Callable[[pl.DataFrame], Claim], frame: pl.DataFrame) -> Claim:
    """`claim` by the mean and by the median of each run's handovers.

    The paper does not say how it makes one number of them. The mean shows handovers that fail now and then.
    """
    if "latency_median_s" not in frame.columns:
        return claim
    other = judge(frame.with_columns(latency_mean_s=pl.col("latency_median_s")))
    readings = tuple(
        Reading(f"{name} over each run's handovers", "left open", one.measured, one.holds is True)
        for name, one in (("mean", claim), ("median", other))
    )
    added = "That the median is a reading beside the mean was added after the verdict by the mean."
    return replace(claim, holds=by_readings(readings), readings=readings, fitted=f"{claim.fitted} {added}".lstrip())


def _policies(frame: pl.DataFrame) -> str:
    """Handover latency by what is done when the point of decision is missed, at the greatest L2 latency."""
    summary = summarise(frame, [ex.L2, ex.WHEN_MISSED], "latency_mean_s").filter(pl.col(ex.L2) == pl.col(ex.L2).max())
    if summary.is_empty():
        return ""
    each = ", ".join(
        f"{row[ex.WHEN_MISSED]} {_number(row['median'] * 1e3)} ms" for row in summary.iter_rows(named=True)
    )
    return (
        f" How much of the outage is the policy's: at L2 latency {summary[ex.L2][0]:g} ms and resolution 500 ms, by "
        f"handover.when_missed: {each}."
    )


def _step(latency: pl.DataFrame) -> str:
    """Between which sums of L2 latency and resolution the latency leaves the band of seamless handovers."""
    summary = summarise(latency, [ex.L2, ex.RESOLUTION], "latency_mean_s")
    combined = (
        summary.with_columns(combined=pl.col(ex.L2) + pl.col(ex.RESOLUTION))
        .group_by("combined")
        .agg(worst=pl.col("median").max(), best=pl.col("median").min())
    )
    seamless = combined.filter(pl.col("worst") <= LOW_LATENCY_S[1])["combined"].max()
    late = combined.filter(pl.col("best") > LOW_LATENCY_S[1])["combined"].min()
    if not isinstance(seamless, (int, float)) or not isinstance(late, (int, float)):
        return "No step was seen."
    return f"The step lies between {seamless:g} and {late:g} ms."


def _sides(frame: pl.DataFrame, value: str) -> tuple[list[float], list[float]]:
    """Medians over seeds of the points below and above 900 ms combined."""
    summary = summarise(frame, [ex.L2, ex.RESOLUTION], value)
    combined = summary.with_columns(combined=pl.col(ex.L2) + pl.col(ex.RESOLUTION))
    below = combined.filter(pl.col("combined") < COMBINED_MS)["median"].to_list()
    above = combined.filter(pl.col("combined") > COMBINED_MS)["median"].to_list()
    return below, above


def _speed_sides(frame: pl.DataFrame, value: str) -> tuple[dict[float, list[float]], dict[float, list[float]]]:
    """Medians over seeds below and above 15 m/s, by beacon period in ms; only periods with points on both sides."""
    summary = summarise(frame, [ex.BEACON, ex.MPS], value)
    slow: dict[float, list[float]] = {}
    fast: dict[float, list[float]] = {}
    for (beacon,), curve in summary.group_by(ex.BEACON, maintain_order=True):
        below = curve.filter(pl.col(ex.MPS) < SPEED_LIMIT_MPS)["median"].to_list()
        above = curve.filter(pl.col(ex.MPS) > SPEED_LIMIT_MPS)["median"].to_list()
        if below and above and isinstance(beacon, (int, float)):
            slow[beacon], fast[beacon] = below, above
    return slow, fast


def _means(sides: Mapping[float, list[float]]) -> dict[float, float]:
    return {key: sum(values) / len(values) for key, values in sides.items()}


def _all_within(values: list[float], low: float, high: float) -> bool:
    return bool(values) and min(values) >= low and max(values) <= high


def _span(values: list[float], scale: float, unit: str) -> str:
    if not values:
        return "no points"
    return f"{_number(min(values) * scale)} to {_number(max(values) * scale)} {unit}".rstrip()


def _each(values: Mapping[float, float], scale: float, unit: str) -> str:
    return (
        ", ".join(f"{key:g} ms {_number(value * scale)} {unit}".rstrip() for key, value in values.items())
        or "no points"
    )


def _flights(facts: trace.TraceFacts) -> str:
    if facts.first_flight_packets is None or facts.second_flight_packets is None:
        return "no switch seen"
    return f"{facts.first_flight_packets}, then {facts.second_flight_packets}"


def _number(value: float) -> str:
    """Three significant digits, and no exponent for what a person reads as a whole number."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _met(condition: bool) -> str:
    return "met" if condition else "not met"

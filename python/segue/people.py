"""What applications were to people, in words: how calls sounded, how long pages took, how films were seen."""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from segue.metrics import Metrics

Row = tuple[str, str]


def people_rows(metrics: Metrics) -> list[Row]:
    """A row for each application of people, as (name, text)."""
    texts = {"voice": _voice, "web": _web, "video": _video}
    return [
        (f"{one['kind']} {one['from']} to {one['to']}", texts[one["kind"]](one))
        for one in metrics.applications
        if one["kind"] in texts
    ]


def _voice(call: dict[str, Any]) -> str:
    missed = call["lost_frames"] + call["late_frames"]
    text = f"{_mos(call)}; {missed} of {call['frames']} frames not heard"
    rated = [around for around in call["handovers"] if around["mos"] is not None]
    if not rated:
        return text
    worst = min(rated, key=lambda around: around["mos"])
    return f"{text}; worst around a handover: {_mos(worst)}, at {worst['time']:.3f} s"


def _mos(quality: dict[str, Any]) -> str:
    """A rating; one of losses that the E-model is not for is said to be."""
    if quality["mos"] is None:
        return "not rated"
    rating = f"MOS {quality['mos']:.2f} (R {quality['r']:.1f})"
    # documents of earlier versions do not say it
    if not quality.get("is_extrapolated", False):
        return rating
    return f"{rating}, beyond the E-model: {100 * quality['loss']:.1f} % lost, BurstR {quality['burst_ratio']:.1f}"


def _web(reader: dict[str, Any]) -> str:
    text = f"{reader['loaded_pages']} of {reader['pages']} pages"
    for name, key in (("", "load_time_s"), ("; met by a handover: ", "load_time_during_handovers_s")):
        if spread := reader[key]:
            text += f"{name or ': '}median {_bound(spread, 'median')}, 95th percentile {_bound(spread, 'p95')}"
    return text


def _bound(spread: dict[str, Any], which: str) -> str:
    seconds = spread[which]
    # a bound is never rounded up
    return f"≥ {floor(100 * seconds + 1e-6) / 100:.2f} s" if spread[f"{which}_censored"] else f"{seconds:.2f} s"


def _video(film: dict[str, Any]) -> str:
    delay, rate = film["startup_delay_s"], film["mean_rate_bps"]
    if delay is None or rate is None:
        return "never began"
    still = f"{film['stalls']} stalls" if film["stalls"] != 1 else "1 stall"
    at_least = "≥ " if film["stalled_at_end"] else ""
    return (
        f"began after {delay:.2f} s; {still}, {at_least}{film['stalled_s']:.1f} s; "
        f"{rate / 1e6:.2f} Mbit/s, {film['rate_switches']} switches"
    )

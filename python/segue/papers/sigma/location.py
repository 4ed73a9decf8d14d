"""Claim S10: what the location manager has to do with associations that exist, and with those that come after a move.

Callers that know only the mobile host's name ring it every few milliseconds around a handover, each from a host of its
own over a link of its own, and each after a look-up. When a look-up still gives the old address is measured against the
delay of the location manager, and for callers with a cache against the record's time to live.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from segue.papers.claims import Claim
from segue.papers.sigma import experiment as ex
from segue.runner import Runner
from segue.running import Run, job
from segue.scenarios import Scenario, load

DURATION = "16 s"
"""One handover, at 8.1 s (Fu et al. 2005 section V-A), and time for what follows."""
OVERRIDES = {
    "duration": DURATION,
    "mobile.speed": "5 m/s",
    "l2.latency": "200 ms",
    "address.resolution": "500 ms",
    "handover.when_missed": "when-ready",
}
CALLER_DELAY_MS = 0.5
"""One way from a caller to the router: less than from the mobile host, or no look-up that begins after step 4 could be
ahead of the update."""
DELAYS_MS = (5.0, 20.0, 50.0, 100.0)
"""One way from the location manager to the router; the look-up goes there as the update does."""
TTLS_S = (1, 2, 4)
"""Times to live with which callers that have looked up before keep the old address."""
SEEDS = (1, 2, 3)

FINE_S = tuple(n / 1000 for n in range(-6, 7))
"""When callers ring, seconds after step 4, to see where the old address ends."""
COARSE_S = tuple(n / 50 for n in range(5))
"""When further callers ring, seconds after the acknowledgement of the update is due. No denser: on the radio channel
each call is a few packets beside the data, and a burst of calls would measure its own congestion."""
CACHED_STEP_S = 0.25
CACHED_LOOKUP_LEAD_S = 0.5
"""How long before the move callers with a cache have looked up already."""
SETUP_S = 1.0
"""Longest set-up that is called right: RTO.Min, so nothing had to be sent twice."""
SAME = 0.001
"""Relative difference up to which the delivered bytes of the association that exists count as untouched: updates share
queues and the radio channel with its data."""


@dataclass(frozen=True, slots=True)
class Call:
    """One caller.

    Attributes:
        rings_s: When it looks up, seconds after the mobile host told the location manager (step 4).
        new: Whether it was given the new address.
        setup_s: From then to the established association; None if it was not established before the run's end.
    """

    rings_s: float
    new: bool
    setup_s: float | None


@dataclass(frozen=True, slots=True)
class Window:
    """A set of callers.

    Attributes:
        delay_ms: One way from the location manager to the router.
        ttl_s: Time to live if the callers keep answers, else None.
        update_s: From telling to the location manager's acknowledgement.
        calls: In the order of ringing.
    """

    delay_ms: float
    ttl_s: int | None
    update_s: float
    calls: tuple[Call, ...]

    @property
    def last_old_s(self) -> float | None:
        """The latest ringing, after step 4, that was given the old address."""
        return max((call.rings_s for call in self.calls if not call.new), default=None)


@dataclass(frozen=True, slots=True)
class Effect:
    """What the association that exists looks like, with a location manager in one of its states."""

    handovers: int
    lost: int
    timeouts: int
    delivered_bytes: int
    signalling: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """All that S10 is judged by.

    Attributes:
        without: No location manager, for each seed.
        present: With one.
        gone: With one that no packet reaches.
        windows: Callers without a cache, by delay and seed.
        cached: Callers with one, by time to live.
    """

    without: tuple[Effect, ...]
    present: tuple[Effect, ...]
    gone: tuple[Effect, ...]
    windows: tuple[Window, ...]
    cached: tuple[Window, ...]


def measure(*, quick: bool = False, runner: Runner) -> Facts:
    """Run everything that S10 needs: 39 short runs.

    Args:
        quick: One seed instead of three: 17 runs.
        runner: Makes the runs.
    """
    seeds = SEEDS[:1] if quick else SEEDS
    plain = load(ex.SCENARIO)
    lost = 'loss = { model = "bernoulli", probability = 1.0 }\n'
    states = (plain, _with_manager(plain, 20.0, 5), _with_manager(plain, 20.0, 5, link=lost))
    jobs = [job(s, OVERRIDES, seed=seed, trace=True) for s in states for seed in seeds]
    effects = runner.keep(jobs, _effect)
    count = len(seeds)
    asking = [_Asked(delay, None, seed) for delay in DELAYS_MS for seed in seeds]
    answered = _windows(plain, [*asking, *(_Asked(DELAYS_MS[1], ttl, seeds[0]) for ttl in TTLS_S)], runner)
    windows, cached = answered[: len(asking)], answered[len(asking) :]
    return Facts(
        tuple(effects[:count]),
        tuple(effects[count : 2 * count]),
        tuple(effects[2 * count :]),
        tuple(windows),
        tuple(cached),
    )


def s10(facts: Facts) -> Claim:
    """Section II-A, step 4."""
    pairs = [(f, w) for state in (facts.present, facts.gone) for f, w in zip(state, facts.without, strict=True)]
    untouched = bool(pairs) and all(_same(one, without) for one, without in pairs)
    differences = [abs(one.delivered_bytes / without.delivered_bytes - 1) for one, without in pairs]
    after = [call for w in facts.windows for call in w.calls if call.rings_s >= w.update_s]
    reached = bool(after) and all(call.new and call.setup_s is not None and call.setup_s <= SETUP_S for call in after)
    setups = sorted(call.setup_s for call in after if call.setup_s is not None)
    old = sum(not call.new for w in facts.windows for call in w.calls if call.rings_s >= 0)
    return Claim(
        "S10",
        "the location manager is decoupled: its update touches no active association, and a new association set up "
        "through it right after the move reaches the new address",
        "no number (II-A, step 4)",
        f"association that exists, with a location manager or with one that is unreachable, against none: the same "
        f"steps, losses and timeouts in {sum(_same(*pair) for pair in pairs)} of {len(pairs)} runs, delivered bytes "
        f"within {max(differences, default=0.0):.2g}; calls from the acknowledgement of the update on: "
        f"{sum(call.new for call in after)} of {len(after)} given the new address, set up in "
        + (f"{setups[0] * 1e3:.0f} to {setups[-1] * 1e3:.0f} ms" if setups else "no time known")
        + f"; calls between step 4 and that: {old} given the old one",
        untouched and reached,
        "the association that exists hands over in the same steps, with the same losses and timeouts, and "
        f"delivers the same within {SAME:.1%}, whether there is a location manager, none, or one that no packet "
        f"reaches ({_met(untouched)}); every call from the moment the update is acknowledged is given the new address "
        f"and set up within {SETUP_S:g} s ({_met(reached)}).",
        "Right after the move is not at once: a look-up gives the "
        "old address until the update has reached the location manager. Last call so given, after step 4: "
        f"{_edges(facts.windows)}. "
        "That is the difference between the ways of update and look-up, so a far location manager costs a caller that "
        f"asks it directly nothing more. A cache costs more: {_cached(facts.cached)}. Such a caller is at the old "
        "address while the mobile host keeps it, and after that has to look up again: SIGMA has no forwarding.",
    )


def _same(one: Effect, other: Effect) -> bool:
    return replace(one, delivered_bytes=0) == replace(other, delivered_bytes=0) and (
        abs(one.delivered_bytes - other.delivered_bytes) <= SAME * other.delivered_bytes
    )


def _edges(windows: Sequence[Window]) -> str:
    parts = []
    for delay in sorted({w.delay_ms for w in windows}):
        last = [w.last_old_s for w in windows if w.delay_ms == delay]
        update = [w.update_s for w in windows if w.delay_ms == delay]
        text = ", ".join("before it" if at is None or at < 0 else f"{at * 1e3:.0f} ms" for at in last)
        parts.append(f"{text} (update {min(update) * 1e3:.0f} ms, location manager {delay:g} ms away)")
    return "; ".join(parts) or "no calls"


def _cached(windows: Sequence[Window]) -> str:
    parts = []
    for w in windows:
        last = w.last_old_s
        text = "none was" if last is None else f"{last:.2f} s after step 4"
        parts.append(f"time to live {w.ttl_s} s, looked up {CACHED_LOOKUP_LEAD_S:g} s before: {text}")
    return "the last call sent to the old address, " + "; ".join(parts)


def _effect(run: Run) -> Effect:
    steps = run.signalling.filter(pl.col("step").is_in([1, 2, 3, 5]))
    metrics = run.metrics
    return Effect(
        len(metrics.handovers),
        metrics.packets_lost_to_handover,
        metrics.timeouts,
        metrics.delivered_bytes,
        tuple(steps["event"].to_list()),
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a window is of: see `Window`, and the seed."""

    delay_ms: float
    ttl_s: int | None
    seed: int


def _windows(plain: Scenario, asked: Sequence[_Asked], runner: Runner) -> list[Window]:
    """Of each two runs: one without callers, to learn when the move is, and one with."""
    bases = [_with_manager(plain, one.delay_ms, one.ttl_s or 5) for one in asked]
    quiet = [job(base, OVERRIDES, seed=one.seed, trace=True) for base, one in zip(bases, asked, strict=True)]
    moves = runner.keep(quiet, lambda run: _update(run.signalling))
    called, measures = [], []
    for base, one, move in zip(bases, asked, moves, strict=True):
        starts, before = _calls_begin(one.ttl_s, move)
        overrides = {**OVERRIDES, "location.cache": "true"} if one.ttl_s else OVERRIDES
        called.append(job(_with_callers(base, starts, before), overrides, seed=one.seed, trace=True))
        measures.append((one, starts, before))
    found = runner.keep(called, lambda run: run.signalling)
    return [_window(one, *measure) for one, measure in zip(found, measures, strict=True)]


def _calls_begin(ttl_s: int | None, move: tuple[float, str, float]) -> tuple[list[float], float | None]:
    """When callers call, and when they have looked up before, if they keep what they are told."""
    told_s, _, acknowledged_s = move
    if ttl_s is None:
        return [told_s + at for at in FINE_S] + [acknowledged_s + 0.002 + at for at in COARSE_S], None
    starts = [told_s + (n + 0.5) * CACHED_STEP_S for n in range(int(ttl_s / CACHED_STEP_S) + 2)]
    return starts, told_s - CACHED_LOOKUP_LEAD_S


def _window(signalling: pl.DataFrame, asked: _Asked, starts: Sequence[float], before: float | None) -> Window:
    told_s, new, acknowledged_s = _update(signalling)
    after = before is not None
    calls = tuple(_call(signalling, n, start, told_s, new, after=after) for n, start in enumerate(starts))
    return Window(asked.delay_ms, asked.ttl_s, acknowledged_s - told_s, calls)


def _update(signalling: pl.DataFrame) -> tuple[float, str, float]:
    """When step 4 was, the address told, and when that was acknowledged, seconds."""
    told = signalling.filter(pl.col("event") == "location-updated").row(0, named=True)
    acknowledged = signalling.filter(
        (pl.col("event") == "location-acknowledged") & pl.col("detail").str.starts_with(f"{told['detail']} ")
    ).row(0, named=True)
    return told["time_ns"] / 1e9, told["detail"], acknowledged["time_ns"] / 1e9


def _call(signalling: pl.DataFrame, number: int, start_s: float, told_s: float, new: str, *, after: bool) -> Call:
    """What became of the call at `start_s`; with `after`, of the second one of this caller."""
    begin = start_s - 1e-6 if after else 0.0
    mine = signalling.filter((pl.col("node") == f"caller {number}") & (pl.col("time_ns") >= begin * 1e9))
    resolved = mine.filter(pl.col("event") == "name-resolved")
    connected = mine.filter(pl.col("event") == "sctp-connected")
    given = resolved["detail"][0] if resolved.height else ""
    setup = None if connected.is_empty() else connected["time_ns"][0] / 1e9 - start_s
    return Call(start_s - told_s, given.startswith(f"{new} "), setup)


def _with_manager(plain: Scenario, delay_ms: float, ttl_s: int, link: str = "") -> Scenario:
    section = f'[location]\nserver = "lm"\nttl = "{ttl_s} s"\n\n'
    text = re.sub(r"^\[sctp\]", f"{section}[sctp]", plain.text, count=1, flags=re.MULTILINE)
    text += f'\n[[host]]\nname = "lm"\n\n{_link("lm", delay_ms)}{link}'
    return replace(plain, text=text)


def _with_callers(base: Scenario, starts: Sequence[float], before_s: float | None) -> Scenario:
    parts = [base.text]
    for number, start in enumerate(starts):
        name = f"caller {number}"
        parts.append(f'\n[[host]]\nname = "{name}"\n\n{_link(name, CALLER_DELAY_MS)}')
        for at in (start,) if before_s is None else (before_s, start):
            parts.append(
                f'\n[[application]]\nkind = "bulk"\nfrom = "{name}"\nto = "mh"\nby_name = true\nsize = "200 B"\n'
                f'start = "{at * 1e6:.0f} us"\n'
            )
    return replace(base, text="".join(parts))


def _link(host: str, delay_ms: float) -> str:
    return f'[[link]]\nbetween = ["{host}", "r"]\nrate = "10 Mbit/s"\ndelay = "{delay_ms:g} ms"\n'


def _met(condition: bool) -> str:
    return "met" if condition else "not met"

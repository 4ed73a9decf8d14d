"""What is compared: combinations of a scheme and an event, each a scenario of its own."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from segue import ScenarioError, _native
from segue.running import check, override_list, run
from segue.scenarios import Scenario, load
from segue.units import UNITS, split

PLANNED = "planned"
EVENTS = (PLANNED, "carrier-down", "blackhole", "one-way-loss", "flap", "router-down", "renumber", "address-change")
"""`planned` is the file as it stands; the others are kinds of `[[event]]`."""
MODELS = ("sigma", "none", "single", "failover", "msctp-best", "msctp-worst", "cmt", "mip6", "mip6-ro", "ilnp-hard",
          "ilnp-soft", "ilnp-multihomed")  # fmt: skip
"""Schemes of which the simulator has a model."""
OTHERS = ("mptcp", "mptcp-delete", "wireguard", "quic")
"""Schemes that are the kernel's or a program's: the simulator has no model of them."""
CARRIERS = ("sigma", "cmt")
"""Schemes whose TCP of hosts that move is carried by an association in the lab, and plain in the simulator."""
DEFAULT_MESSAGE = "1000 B"
"""As the simulator has it."""
FLAP_FOR = "3 s"
REPLACED_FOR = "0 s"
"""How long a prefix is routed, or an address valid, that has been replaced: nobody is prepared."""
FLAP_PERIOD = "1 s"
LEAD_S = 2.0
"""What a run takes beside its duration: namespaces, programs that end, captures that are analysed."""


@dataclass(frozen=True, slots=True)
class Application:
    """What the scenario says of an application.

    Attributes:
        sender: Host that sends.
        receiver: Host that receives.
        transport: "tcp", "udp" or "sctp".
        label: What tells it from others: its rate, or its kind.
        pacing_s: Time between two of its messages, seconds; zero of one that sends what it can.
        size_bytes: What it sends in all; `None` without an end.
        message_bytes: Size of one of its messages.
        is_observed: Who reads its data says when: a program of ours, or the proxy of what is carried.
    """

    sender: str
    receiver: str
    transport: str
    label: str
    pacing_s: float
    size_bytes: float | None = None
    message_bytes: float = 0.0
    is_observed: bool = True


@dataclass(frozen=True, slots=True)
class Combination:
    """A scheme and an event: what is run.

    Attributes:
        scheme: Name of the scheme.
        event: One of `EVENTS`.
        scenario: What is run, the event in it.
        settings: Overrides.
        duration_s: Length of a run, seconds.
        seed: Seed of the first run; each one after it has the next.
        applications: In the scenario's order.
        is_of_others: The scheme is the kernel's or a program's: there is no model of it.
        is_carried: TCP of its programs is carried by an association: there is no model of that either.
        network: Cell or link that the event happens to; empty where it is planned.
        at_s: When that begins, seconds; `None` where it is planned.
        lasts_s: How long, seconds; `None` to the end.
        is_recorded: Frames of each run are kept beside its document.
    """

    scheme: str
    event: str
    scenario: Scenario
    settings: Mapping[str, object]
    duration_s: float
    seed: int
    applications: tuple[Application, ...]
    is_of_others: bool = False
    is_carried: bool = False
    network: str = ""
    at_s: float | None = None
    lasts_s: float | None = None
    is_recorded: bool = False

    @property
    def name(self) -> str:
        """For files and test cases."""
        return f"{self.scheme}-{self.event}"

    @property
    def is_by_reads(self) -> bool:
        """Whether its figures are what programs read, since packets do not show whose data they have."""
        return self.is_of_others or self.is_carried


@dataclass(frozen=True, slots=True)
class Timing:
    """When events begin and what they happen to, as the scenario would have it; what is empty is worked out.

    Attributes:
        at: Beginning: the middle of the run if empty.
        lasts: Length: to the end if empty, `FLAP_FOR` of a flap; how long what is replaced can still be used,
            `REPLACED_FOR` if empty.
        places: Cell or link by scheme; that of the empty name for all others. The network in use if there is none.
    """

    at: str = ""
    lasts: str = ""
    places: Mapping[str, str] | None = None


def sources(files: Sequence[str], schemes: Sequence[str]) -> dict[str, tuple[Scenario, dict[str, object]]]:
    """The scenario of each scheme with the overrides that make it one.

    Args:
        files: `FILE`, which is for the scheme that it names, or `NAME=FILE`: with `scheme` set if NAME is one, and
            else as it is, under that name.
        schemes: Which; those of the files if empty. One without a file has the first file, with `scheme` set.

    Raises:
        ScenarioError: A file cannot be read, or two are for one scheme.
    """
    known: dict[str, tuple[Scenario, dict[str, object]]] = {}
    for file in files:
        scheme, scenario = _source(file)
        if scheme in known:
            raise ScenarioError(f"{file}: {known[scheme][0].file} is for scheme `{scheme}` too, expected one")
        is_another = scheme in (*MODELS, *OTHERS) and _parsed(scenario).get("scheme") != scheme
        known[scheme] = scenario, {"scheme": scheme} if is_another else {}
    first, _ = next(iter(known.values()))
    wanted = list(dict.fromkeys(schemes)) or list(known)
    return {scheme: known.get(scheme, (first, {"scheme": scheme})) for scheme in wanted}


def combinations(
    files: Sequence[str],
    schemes: Sequence[str],
    events: Sequence[str],
    *,
    settings: Mapping[str, object] | None = None,
    seed: int | None = None,
    timing: Timing | None = None,
    repeat: int = 1,
) -> list[Combination]:
    """Every combination, schemes first, each checked.

    Raises:
        ScenarioError: One cannot be run.
    """
    for event in events:
        if event not in EVENTS:
            raise ScenarioError(f"--events {event}: expected one of {', '.join(EVENTS)}")
    found = []
    for scheme, (scenario, own) in sources(files, schemes).items():
        base = planned(scheme, scenario, {**(settings or {}), **own}, seed)
        wanted = list(dict.fromkeys(events))
        steady = _steady(base, timing or Timing(), repeat) if wanted != [PLANNED] else base
        found += [
            base if event == PLANNED else _with_event(steady, event, (timing or Timing()).lasts) for event in wanted
        ]
    return found


def expected_s(plan: Sequence[Combination], repeat: int) -> float:
    """How long all runs take, seconds."""
    return sum(one.duration_s + LEAD_S for one in plan) * repeat


def network_in_use(base: Combination, at: str) -> str:
    """The cell that carries what there is at that time: the one without which the simulator has more handovers or loss.

    Raises:
        ScenarioError: There is none.
    """
    cells = _always_there(base.scenario)
    before = _troubles(base, {}) if cells else 0
    taken = {cell: f"{place} s..{at}" for place, cell in enumerate(cells)}
    changes = {cell: _troubles(base, {f"cell.{cell}.present": present}) - before for cell, present in taken.items()}
    found = max(changes, key=lambda cell: changes[cell], default=None)
    if found is None or changes[found] <= 0:
        raise ScenarioError(
            f"{base.scenario.file}: {base.scheme}: no cell without which anything changes at {at}: "
            "expected --on NAME, a cell or a link"
        )
    return found


def quantity(text: str) -> float:
    """A time, rate or size as scenarios have it, in seconds, bit/s or bytes.

    >>> quantity("500 ms"), quantity("20 Mbit/s"), quantity("2500 B")
    (0.5, 20000000.0, 2500.0)

    Raises:
        ScenarioError: It is none.
    """
    found = split(text)
    if found is None or not found[1] or found[0] < 0:
        raise ScenarioError(f"`{text}`: expected a number with its unit, such as 500 ms")
    return float(found[0] * UNITS[found[1]].factor)


def _source(file: str) -> tuple[str, Scenario]:
    name, equals, rest = file.partition("=")
    if equals and not Path(file).exists() and "/" not in name:
        return name, load(rest)
    scenario = load(file)
    scheme = _parsed(scenario).get("scheme")
    if not isinstance(scheme, str):
        raise ScenarioError(f"{scenario.file}: scheme: expected a name, or SCHEME=FILE on the command line")
    return scheme, scenario


def _parsed(scenario: Scenario) -> dict[str, Any]:
    try:
        return tomllib.loads(scenario.text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{scenario.file}: {error}") from None


def planned(scheme: str, scenario: Scenario, settings: Mapping[str, object], seed: int | None) -> Combination:
    """The file as it stands, under the name of its scheme or any other.

    Raises:
        ScenarioError: It cannot be run.
    """
    resolved = tomllib.loads(_native.check(scenario.text, scenario.file, override_list(settings)).toml)
    carried = _carried(resolved)
    applications = tuple(
        _application(entry, is_carried=is_carried)
        for entry, is_carried in zip(resolved["application"], carried, strict=True)
    )
    is_of_others = resolved.get("scheme") in OTHERS
    if is_of_others and (conditions := resolved.get("assert")):
        raise ScenarioError(
            f"{scenario.file}: assert: `{conditions[0]}`: the figures of scheme `{scheme}` are what programs read: "
            "expected no conditions"
        )
    duration = quantity(resolved["duration"])
    seed = resolved["seed"] if seed is None else seed
    return Combination(
        scheme,
        PLANNED,
        scenario,
        settings,
        duration,
        seed,
        applications,
        is_of_others=is_of_others,
        is_carried=any(carried),
    )


def _carried(resolved: Mapping[str, Any]) -> list[bool]:
    """Of each application, whether its TCP is carried by an association."""
    is_carrier = resolved.get("scheme", "sigma") in CARRIERS
    moving = {host["name"] for host in resolved["host"] if host.get("radios", 0) > 0}
    return [
        is_carrier and entry.get("transport") == "tcp" and not moving.isdisjoint((entry["from"], entry["to"]))
        for entry in resolved["application"]
    ]


def _application(entry: Mapping[str, Any], *, is_carried: bool) -> Application:
    """What has its default is not in the text."""
    paced = entry["kind"] == "constant-rate"
    message = quantity(entry.get("message", DEFAULT_MESSAGE))
    pacing_s = message * 8 / quantity(entry["rate"]) if paced else 0.0
    label = entry["rate"] if paced else entry["kind"]
    size_bytes = quantity(entry["size"]) if "size" in entry else None
    return Application(
        entry["from"],
        entry["to"],
        entry.get("transport", "sctp"),
        label,
        pacing_s,
        size_bytes,
        message,
        is_observed=is_carried or "command" not in entry,
    )


def _steady(base: Combination, timing: Timing, repeat: int) -> Combination:
    """Where an event is all that happens: cells that come and go by the clock are there all the time.

    They come one by one, a second after each other, so that which one is in use does not depend on the seed.
    """
    settings = {**base.settings, **_one_by_one(base.scenario)}
    at = timing.at or f"{base.duration_s / 2:g} s"
    steady = replace(base, settings=settings, at_s=quantity(at))
    places = timing.places or {}
    network = places.get(base.scheme) or places.get("") or _network_of_all(steady, at, repeat)
    return replace(steady, network=network)


def _network_of_all(steady: Combination, at: str, repeat: int) -> str:
    """The network in use with each of the seeds."""
    found = {network_in_use(replace(steady, seed=steady.seed + number), at) for number in range(repeat)}
    if len(found) > 1:
        raise ScenarioError(
            f"{steady.scenario.file}: {steady.scheme}: which cell is in use at {at} depends on the seed: "
            f"{', '.join(sorted(found))}: expected a file in which it does not"
        )
    return found.pop()


def _one_by_one(scenario: Scenario) -> dict[str, object]:
    return {f"cell.{cell}.present": f"{place} s.." for place, cell in enumerate(_always_there(scenario))}


def _with_event(steady: Combination, event: str, lasts: str) -> Combination:
    is_flap = event == "flap"
    replaces = event in ("renumber", "address-change")
    standard = FLAP_FOR if is_flap else REPLACED_FOR if replaces else ""
    lasts_s = quantity(lasts or standard) if lasts or standard else None
    on, *more = _place(steady, event)
    lines = ["", "[[event]]", f'kind = "{event}"', on, f'at = "{steady.at_s:g} s"']
    if lasts_s is not None:
        lines.append(f'for = "{lasts_s:g} s"')
    if is_flap:
        lines.append(f'period = "{FLAP_PERIOD}"')
    lines += more
    scenario = replace(steady.scenario, text=steady.scenario.text + "\n".join(lines) + "\n")
    check(scenario, steady.settings)
    # what is replaced at once does not come back, as with events to the end
    return replace(steady, event=event, scenario=scenario, lasts_s=lasts_s or None)


def _place(steady: Combination, event: str) -> list[str]:
    """What an event happens to, and what of that, as the scenario has it."""
    network, far_end = json.dumps(steady.network), json.dumps(_far_end(steady.scenario, steady.network))
    if event == "one-way-loss":
        return [f"on = {network}", f"towards = {far_end}"]
    if event == "router-down":
        return [f"on = {far_end}"]
    if event == "address-change":
        hosts = [host["name"] for host in _parsed(steady.scenario)["host"] if host.get("radios", 0) > 0]
        return [f"on = {json.dumps(hosts)}", f"network = {network}"]
    return [f"on = {network}"]


def _always_there(scenario: Scenario) -> list[str]:
    """Names of the cells that are there by the clock."""
    return [cell["name"] for cell in _parsed(scenario).get("cell", []) if "present" in cell]


def _far_end(scenario: Scenario, network: str) -> str:
    """Who no longer hears: the router of a cell, or the second end of a link."""
    document = _parsed(scenario)
    for cell in document.get("cell", []):
        if cell.get("name") == network:
            return str(cell["router"])
    for link in document.get("link", []):
        if link.get("name") == network:
            return str(link["between"][1])
    raise ScenarioError(f"{scenario.file}: --on {network}: expected the name of a [[cell]] or a [[link]]")


def _troubles(base: Combination, more: Mapping[str, object]) -> int:
    # hosts of others' schemes have the addresses and routes of hosts without one
    own: dict[str, object] = {"scheme": "none"} if base.is_of_others else {}
    if base.is_carried:
        own = _alone(base)
    metrics = run(base.scenario, {**base.settings, **more, **own}, seed=base.seed, trace=False).metrics
    return len(metrics.handovers) + sum(flow.lost_packets for flow in metrics.flows)


def _alone(base: Combination) -> dict[str, object]:
    """The first application over TCP has an association, from the beginning as that of all has, and the others wait."""
    first = next(place for place, one in enumerate(base.applications) if one.transport == "tcp")
    end = f"{base.duration_s - 0.001:g} s"
    waiting: dict[str, object] = {
        f"application.{place}.start": end for place in range(len(base.applications)) if place != first
    }
    return {**waiting, f"application.{first}.transport": "sctp", f"application.{first}.start": "0 s"}

#!/usr/bin/env python3
"""How long a stream pauses when a mobile host changes links: Segue and usrsctp, in every combination.

Two hosts with two links between them, 20 ms round trip. The correspondent sends 1000 bytes every 5 ms to the mobile
host. What is measured is the longest interval between two messages that the mobile's application receives, less the
5 ms that they are apart anyway.

- planned: while link 0 still works, the mobile adds its address on link 1, makes it primary, and deletes the old one.
- link down: both addresses are known from the start; link 0 dies without a word. RTO 100..1000 ms, RTO.Initial 200 ms,
  Path.Max.Retrans 1, SACK delay 20 ms on both sides. "quick" sets Path.Max.Retrans to 0.
- break before make: link 0 dies and takes the old address with it; 300 ms later there is an address on link 1, which
  the peer has never heard of. Measured from that moment. Failed: nothing arrived within 5 s. Once with a correspondent
  that has an address on each link, and once ("one address") with one that has a single address, reached over both.

Root only. `make gaps` runs five of each and prints medians.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import network
import peers
from network import Network, address, mac
from peers import End, Settings
from process import Process

MOBILE, CORRESPONDENT = 0, 1
SPACING_MS = 5.0
STREAM = ("--rate=1.6 Mbit/s", "--size=1000 B")
IMPLEMENTATIONS = ("segue", "usrsctp")
OUTAGE_S = 0.3
PATIENCE_S = 5.0


@dataclass(frozen=True)
class Scenario:
    """One kind of handover."""

    name: str
    path_retrans: int
    measure: Callable[[Trial], float | None]


class Trial:
    """One association, with the correspondent's stream to the mobile host."""

    def __init__(self, directory: Path, mobile: str, correspondent: str, settings: Settings) -> None:
        self.directory = directory
        self.implementation = (mobile, correspondent)
        self.settings = settings
        self.log = directory / "received.csv"

    @contextlib.contextmanager
    def running(
        self,
        *,
        mobile_links: Sequence[int],
        correspondent_links: Sequence[int] = (0, 1),
        unaddressed: frozenset[tuple[int, int]] = frozenset(),
        script: str = "",
    ) -> Iterator[tuple[Network, Process]]:
        """The network and the mobile's end, once data flows; `script` is what a mobile segue-sctp does."""
        with contextlib.ExitStack() as stack:
            hosts = stack.enter_context(Network(self.directory, unaddressed=unaddressed))
            a, b = hosts.hosts
            mobile, correspondent = peers.ends(a, b, a_connects=True, a_links=mobile_links, b_links=correspondent_links)
            sender = stack.enter_context(self._correspondent(correspondent))
            ready = "listening" if self.implementation[1] == "segue" else "ready"
            sender.wait_for(ready, timeout=peers.SOON)
            receiver = stack.enter_context(self._mobile(mobile, script))
            receiver.wait_for("connected" if self.implementation[0] == "segue" else "up", timeout=peers.SOON)
            if self.implementation[1] == "usrsctp":
                sender.wait_for("up", timeout=peers.SOON)
                sender.tell(f"send 100000 1000 {int(SPACING_MS * 1000)}")
            yield hosts, receiver

    def _correspondent(self, end: End) -> Process:
        if self.implementation[1] == "segue":
            return peers.segue(end, self.settings, *STREAM)
        return peers.usrsctp(end, self.settings)

    def _mobile(self, end: End, script: str) -> Process:
        if self.implementation[0] == "segue":
            extra = [f"--log={self.log}"] + ([f"--script={script}"] if script else [])
            return peers.segue(end, self.settings, *extra)
        return peers.usrsctp(end, self.settings)

    def end(self, receiver: Process) -> list[int]:
        """When the mobile received its messages, ns; ends it."""
        if self.implementation[0] == "usrsctp":
            receiver.ask("status", "status")
            return [event.at for event in receiver.find("recv")]
        receiver.child.terminate()
        receiver.wait_for("summary", timeout=peers.SOON)
        receiver.child.wait(peers.SOON)
        with self.log.open() as log:
            return [int(row["time_ns"]) for row in csv.DictReader(log)]


def longest_gap_ms(times: Sequence[int], start_ns: int) -> float:
    """The longest interval between messages that ends after `start_ns`, less their spacing."""
    gaps = [(after - before) / 1e6 for before, after in itertools.pairwise(times) if after > start_ns]
    return max(gaps) - SPACING_MS


def planned(trial: Trial) -> float | None:
    """Add, set primary, delete, while both links work."""
    new, old = address(1, MOBILE), address(0, MOBILE)
    script = f"1 s add {new}; 1300 ms primary {new}; 1300 ms peer {address(1, CORRESPONDENT)}; 1800 ms delete {old}"
    with trial.running(mobile_links=(0,), script=script) as (_, receiver):
        start = time.monotonic_ns() + 900_000_000
        if trial.implementation[0] == "usrsctp":
            for pause, command in (
                (1.0, f"add {new}"),
                (0.3, f"peer-primary {new}"),
                (0.0, f"primary {address(1, CORRESPONDENT)}"),
                (0.5, f"delete {old}"),
            ):
                time.sleep(pause)
                receiver.tell(command)
        else:
            time.sleep(1.8)
        time.sleep(0.7)
        return longest_gap_ms(trial.end(receiver), start)


def link_down(trial: Trial) -> float | None:
    """Link 0 dies without a word."""
    with trial.running(mobile_links=(0, 1)) as (hosts, receiver):
        time.sleep(1)
        start = hosts.command("down 0")
        time.sleep(2)
        times = trial.end(receiver)
        return longest_gap_ms(times, start) if times[-1] > start + 1_500_000_000 else None


def break_before_make(trial: Trial) -> float | None:
    """The old link and address go, and only then the new ones come."""
    return break_first(trial, correspondent_links=(0, 1))


def break_before_make_one_address(trial: Trial) -> float | None:
    """The same to a correspondent with one address."""
    return break_first(trial, correspondent_links=(0,))


def break_first(trial: Trial, *, correspondent_links: Sequence[int]) -> float | None:
    """Break before make, to a correspondent with these addresses."""
    new = address(1, MOBILE)
    target = address(correspondent_links[-1], CORRESPONDENT)
    by_segue = trial.implementation[0] == "segue"
    missing = {(MOBILE, 1)} | ({(CORRESPONDENT, 1)} if len(correspondent_links) == 1 else set())
    # the association changes addresses by itself; the step waits for the address
    script = f"1 s add {new}; 1 s peer {target}"
    with trial.running(
        mobile_links=(0,), correspondent_links=correspondent_links, unaddressed=frozenset(missing), script=script
    ) as (hosts, receiver):
        hosts.command("down 1")
        hosts.b.ip("route", "replace", f"{new}/128", "dev", hosts.b.devices[1])
        time.sleep(1.2)
        hosts.command("down 0")
        hosts.a.delete_address(0)
        time.sleep(OUTAGE_S)
        start = hosts.command("up 1")
        if len(correspondent_links) == 1:
            hosts.a.add_neighbour(target, link=1, lladdr=mac(1, CORRESPONDENT))
        hosts.a.add_address(1)
        if not by_segue:
            for command in (f"add {new}", f"primary {target}", f"peer-primary {new}"):
                receiver.tell(command)
        time.sleep(PATIENCE_S)
        after = [at for at in trial.end(receiver) if at > start]
        return (after[0] - start) / 1e6 if after else None


SCENARIOS = [
    Scenario("planned", 1, planned),
    Scenario("link down", 1, link_down),
    Scenario("link down, quick", 0, link_down),
    Scenario("break before make", 1, break_before_make),
    Scenario("..., one address", 1, break_before_make_one_address),
]


def measure(scenario: Scenario, mobile: str, correspondent: str) -> float | None:
    """One run; ms, or None if the stream did not recover."""
    settings = Settings(path_retrans=scenario.path_retrans, log=True)
    with tempfile.TemporaryDirectory(prefix="sg-gaps") as directory:
        return scenario.measure(Trial(Path(directory), mobile, correspondent, settings))


def row(scenario: Scenario, mobile: str, correspondent: str, runs: int) -> str:
    """The line of the table for one pair."""
    results = [measure(scenario, mobile, correspondent) for _ in range(runs)]
    found = sorted(result for result in results if result is not None)
    name = f"{scenario.name:18} {mobile:8} {correspondent:13}"
    if not found:
        return f"{name} {'failed':>9} {'':21} {runs} of {runs} did not recover"
    failures = f"{runs - len(found)} of {runs} did not recover" if len(found) < runs else ""
    return f"{name} {statistics.median(found):6.1f} ms {found[0]:7.1f} .. {found[-1]:7.1f} ms {failures}".rstrip()


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="runs of each, medians are quoted")
    parser.add_argument("--scenario", choices=[scenario.name for scenario in SCENARIOS], help="only this one")
    arguments = parser.parse_args()
    reason = network.missing()
    if reason is not None:
        print(f"SKIPPED: {reason}")
        return 0
    print(f"{'scenario':18} {'mobile':8} {'correspondent':13} {'median':>9} {'smallest .. largest':>21}")
    for scenario in SCENARIOS:
        if arguments.scenario not in (None, scenario.name):
            continue
        for mobile in IMPLEMENTATIONS:
            for correspondent in IMPLEMENTATIONS:
                print(row(scenario, mobile, correspondent, arguments.runs), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

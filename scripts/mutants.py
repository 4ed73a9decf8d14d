#!/usr/bin/env python3
"""How many wrong programs do the tests notice? `make mutants SEED=7`.

`cargo mutants --list` says which small changes can be made to the protocol machines and the analysis of captures: an
operator for another, a function's value for a constant, an arm of a match gone. A seed draws 60 of each of four groups,
and each is judged by the unit and conformance tests: caught, if one of them fails. cargo-mutants' own runner builds for
every mutant and knows no seed; here one build has all of them (see mutant_tree.py), and a mutant meets the tests that
come by it.

Not drawn from: test code (files of tests, and `check_invariants`, which only tests ask for), implementations of Display
and Debug, and functions that return a `&'static str`, which name things. A mutant that does not compile is replaced by
the next of the draw. One that runs into the limit on processor time, or dies of its memory, counts as caught and is
said apart. Those that no test could catch are in mutants_equivalent.toml, with the reason, and leave the denominator.

The work is done under target/mutants, and what was judged is not judged again until the sources change.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mutant_tree
from mutant_tree import Mutant, Tree

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "mutants"
EQUIVALENT = ROOT / "scripts" / "mutants_equivalent.toml"
PROTO = "crates/segue-proto/src/"
GROUPS: dict[str, Sequence[str]] = {
    "sctp": [f"{PROTO}sctp/"],
    "tcp": [f"{PROTO}tcp/", f"{PROTO}congestion/"],
    "mobility": [f"{PROTO}{folder}/" for folder in ("mip6", "ilnp", "nd", "address")],
    "analyze": ["crates/segue-capture/src/analyze/"],
}
LIBRARIES = {"segue-proto": f"{PROTO}lib.rs", "segue-capture": "crates/segue-capture/src/lib.rs"}
# Whose tests judge a group, and which of them where not all do.
MACHINES: dict[str, Sequence[str]] = {"segue-proto": (), "segue-conformance": ()}
JUDGES: dict[str, dict[str, Sequence[str]]] = {
    "sctp": MACHINES,
    "tcp": MACHINES,
    "mobility": MACHINES,
    "analyze": {"segue-capture": (), "segue-conformance": (), "segue-sim": ("analyze::", "two_ends::")},
}
# An optimised build with assertions, and only what changed again.
ENVIRONMENT = {"CARGO_INCREMENTAL": "1", "CARGO_TARGET_DIR": str(TARGET / "build"), "RUST_BACKTRACE": "0"}
MEMORY_BYTES = 8 << 30
# What waits, waits for the processor, which others may have; the example with sockets, for what a mutant never sends.
WALL_SECONDS = 300.0
# Outcomes; a mutant that no test comes by is among the survivors, and said apart.
CAUGHT, HANG, SURVIVED, UNREACHED, EQUIVALENT_TO = "caught", "hang", "survived", "unreached", "equivalent"


@dataclass
class Program:
    """A test program, and which of its tests come by each mutant."""

    package: str
    path: str
    directory: str
    filters: Sequence[str] = ()
    cpu_seconds: float = 0.0
    reached: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def record(self, log: Path) -> None:
        """Run all tests, and note what they come by. They have to pass."""
        log.unlink(missing_ok=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        outcome, said = self.run(mutant_tree.RECORD, self.filters, 3600, {"SEGUE_MUTANT_LOG": str(log)})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if outcome != SURVIVED:
            raise SystemExit(f"tests of {self.package} fail without any mutant:\n{said}")
        self.cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.reached.clear()
        for line in log.read_text().splitlines() if log.is_file() else []:
            number, _, test = line.partition(" ")
            self.reached[int(number)].add(test)

    def judge(self, number: int) -> str:
        """Run the tests that come by the mutant until one fails."""
        tests = self.reached.get(number)
        if not tests:
            return UNREACHED
        # What a test leaves to a thread of its own, no name tells.
        arguments = self.filters if tests & {"?", "main"} else ["--exact", *sorted(tests)]
        return self.run(number, arguments, self.limit())[0]

    def limit(self) -> float:
        """Seconds of processor time, of which all its tests together need less than half."""
        return 10 + 2 * self.cpu_seconds

    def run(
        self, number: int, arguments: Sequence[str], limit: float, more: dict[str, str] | None = None
    ) -> tuple[str, str]:
        """The outcome, and the last that was printed."""
        environment = {
            **os.environ,
            **ENVIRONMENT,
            "SEGUE_MUTANT": str(number),
            "CARGO_MANIFEST_DIR": self.directory,
            **(more or {}),
        }
        child = subprocess.Popen(
            [self.path, "--test-threads=2", *arguments],
            cwd=self.directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        resource.prlimit(child.pid, resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + 5))
        resource.prlimit(child.pid, resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        late = threading.Timer(WALL_SECONDS, child.send_signal, [signal.SIGXCPU])
        late.start()
        assert child.stdout is not None
        said: list[str] = []
        failed = False
        try:
            for line in child.stdout:
                said.append(line)
                if line.startswith("test ") and line.rstrip().endswith("FAILED") and number != mutant_tree.RECORD:
                    failed = True
                    break
        finally:
            late.cancel()
            if failed or sys.exc_info()[0] is not None:
                child.kill()
            status = child.wait()
            child.stdout.close()
        if failed or status == 101:
            return CAUGHT, "".join(said[-30:])
        if status < 0:
            return HANG, "".join(said[-30:])
        return (SURVIVED if status == 0 else CAUGHT), "".join(said[-30:])


def programs(tree: Tree) -> list[Program]:
    """Build the tests; in the order in which they are asked, the unit tests first."""
    command = [
        "cargo",
        "test",
        "--profile",
        "checked",
        "--locked",
        "--no-run",
        "--lib",
        "--tests",
        "--message-format=json",
    ]
    packages = sorted({package for judges in JUDGES.values() for package in judges})
    command += [f"--package={package}" for package in packages]
    done = subprocess.run(
        command, cwd=tree.directory, env=os.environ | ENVIRONMENT, check=False, stdout=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        errors = [json.loads(line) for line in done.stdout.splitlines() if '"level":"error"' in line]
        raise SystemExit("".join(error["message"]["rendered"] for error in errors) or "the tests do not build")
    filters = {package: few for judges in JUDGES.values() for package, few in judges.items()}
    found = []
    for line in done.stdout.splitlines():
        entry = json.loads(line)
        if entry["reason"] == "compiler-artifact" and entry["executable"] and entry["profile"]["test"]:
            directory = Path(entry["manifest_path"]).parent
            package = next(name for name in packages if name in entry["package_id"])
            found.append(
                (
                    ("test" in entry["target"]["kind"], package),
                    Program(package, entry["executable"], str(directory), filters[package]),
                )
            )
    return [program for _, program in sorted(found, key=lambda pair: pair[0])]


def may_be_drawn(mutant: Mutant) -> bool:
    """The rule of the module's docstring."""
    test_code = re.search(r"/tests(/|\.rs$)|/invariants\.rs$", mutant.file)
    shows = re.search(r"<impl (?:fmt::)?(?:Display|Debug) for ", mutant.function)
    asks = re.search(r"(^|::)check_invariants$", mutant.function)
    names = mutant.returns.replace(" ", "") == "->&'staticstr"
    return not (test_code or shows or asks or names)


def draw(mutants: Iterable[Mutant], seed: str) -> list[Mutant]:
    """The order in which the seed takes them, which other mutants' coming and going does not change."""
    return sorted(mutants, key=lambda mutant: hashlib.sha256(f"{seed}\0{mutant.key}".encode()).digest())


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson, JASA 22 (1927) 209)."""
    if of == 0:
        return 0.0, 1.0
    z, share = 1.959964, hits / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return middle - half, middle + half


def digest(files: dict[str, bytes]) -> str:
    """Of everything that an outcome depends on."""
    found = hashlib.sha256()
    for name in sorted(files):
        if name.startswith(("crates/", "tests/conformance/", "fuzz/", "Cargo.")):
            found.update(f"{name}\0".encode() + files[name] + b"\0")
    return found.hexdigest()


class Results:
    """What has been judged so far, in a file of the seed."""

    def __init__(self, path: Path, digest: str, *, keep_caught: bool, keep_all: bool) -> None:
        self.path = path
        self.digest = digest
        self.outcomes: dict[str, str] = {}
        self.unviable: set[str] = set()
        if path.is_file():
            stored = json.loads(path.read_text())
            if keep_all or stored["sources"] == self.digest:
                self.outcomes, self.unviable = stored["outcomes"], set(stored["unviable"])
            elif keep_caught:
                self.outcomes = {
                    key: outcome for key, outcome in stored["outcomes"].items() if outcome in (CAUGHT, HANG)
                }

    def note(self, mutant: Mutant, outcome: str) -> None:
        """One more."""
        self.outcomes[mutant.key] = outcome
        self.save()

    def save(self) -> None:
        """In one piece, whenever it is interrupted."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        stored = {"sources": self.digest, "outcomes": self.outcomes, "unviable": sorted(self.unviable)}
        fresh.write_text(json.dumps(stored, indent=1))
        fresh.replace(self.path)


def equivalent(mutants: Iterable[Mutant]) -> set[str]:
    """Keys of those that are listed; an entry that fits none is out of date, and said to be."""
    listed = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    found = set()
    all_of_them = list(mutants)
    for entry in listed:
        fits = [
            mutant.key
            for mutant in all_of_them
            if (mutant.file, mutant.function, mutant.replacement)
            == (entry["file"], entry["function"], entry["replacement"])
            and mutant.text == entry["line"]
            and mutant.original == entry.get("original", mutant.original)
        ]
        if not fits:
            print(f"{EQUIVALENT.name}: no mutant is like {entry['function']}: {entry['line']}", file=sys.stderr)
        found.update(fits)
    return found


def take(order: dict[str, list[Mutant]], count: int, without: set[str]) -> list[Mutant]:
    """The first of each group, the groups in turn."""
    first = [[mutant for mutant in mutants if mutant.key not in without][:count] for mutants in order.values()]
    return [mutants[index] for index in range(count) for mutants in first if index < len(mutants)]


def judge(
    order: dict[str, list[Mutant]],
    count: int,
    results: Results,
    known: set[str],
    files: dict[str, bytes],
    *,
    one_build: bool,
) -> None:
    """Judge what has not been."""
    tree = Tree(TARGET / "tree", files, unviable=set(results.unviable))
    while True:
        taken = take(order, count, tree.unviable)
        wanted = [mutant for mutant in taken if mutant.key not in known and mutant.key not in results.outcomes]
        together = [mutant for mutant in wanted if mutant.key not in tree.alone]
        if not wanted:
            return
        contents = tree.switched(together, list(LIBRARIES.values()))
        tree.write(contents)
        errors = tree.errors(list(LIBRARIES), ENVIRONMENT)
        if not errors:
            break
        tree.drop(errors, together, contents)
        print(f"{len(tree.unviable)} do not compile, {len(tree.alone)} need a build of their own", flush=True)
    results.unviable = tree.unviable
    results.save()
    those = programs(tree)
    groups = {mutant.group for mutant in wanted}
    for program in those:
        if any(program.package in JUDGES[group] for group in groups):
            program.record(TARGET / "record.log")
            print(f"{Path(program.path).name}: {program.cpu_seconds:.0f} s", flush=True)
    for mutant in wanted:
        if mutant.key in tree.alone:
            continue
        outcomes = asked(those, mutant, tree.numbers[mutant.key])
        say(mutant, outcomes, results)
    for mutant in () if one_build else wanted:
        if mutant.key in tree.alone:
            tree.write({mutant.file: mutant_tree.mutated(files[mutant.file].decode(), mutant)})
            if tree.errors(list(LIBRARIES), ENVIRONMENT):
                results.unviable.add(mutant.key)
                results.save()
                continue
            built = programs(tree)
            for program, before in zip(built, those, strict=True):
                program.cpu_seconds = before.cpu_seconds
                program.reached[0].add("?")
            say(mutant, asked(built, mutant, 0), results)


def asked(those: Sequence[Program], mutant: Mutant, number: int) -> str:
    """Ask one program after the other until one catches it."""
    outcome = UNREACHED
    for program in those:
        if program.package in JUDGES[mutant.group]:
            said = program.judge(number)
            if said in (CAUGHT, HANG):
                return said
            outcome = said if said == SURVIVED else outcome
    return outcome


def say(mutant: Mutant, outcome: str, results: Results) -> None:
    """Note it, and show it at once if nobody noticed."""
    results.note(mutant, outcome)
    if outcome in (SURVIVED, UNREACHED):
        print(f"{outcome}: {mutant.group} {mutant}", flush=True)


def show(taken: Sequence[Mutant], results: Results, known: set[str]) -> None:
    """Scores and survivors."""
    outcomes = {
        mutant: EQUIVALENT_TO if mutant.key in known else results.outcomes.get(mutant.key, "not judged")
        for mutant in taken
    }
    groups = sorted({mutant.group for mutant in taken}, key=list(GROUPS).index)
    lost = [(mutant, outcome) for mutant, outcome in outcomes.items() if outcome in (SURVIVED, UNREACHED)]
    if lost:
        print("\nSurvivors ('unreached': no test comes by)")
    for mutant, outcome in sorted(lost, key=lambda pair: (pair[0].group, pair[0].file, pair[0].line)):
        print(f"{mutant.group} {mutant}{' (unreached)' if outcome == UNREACHED else ''}")
    print(f"\n{'group':10} {'judged':>6} {'caught':>6} {'by limits':>9} {'equivalent':>10} {'score':>7}  95 % interval")
    total: Counter[str] = Counter()
    for group in [*groups, "all"]:
        counts = Counter(outcome for mutant, outcome in outcomes.items() if mutant.group == group)
        total += counts
        counts = total if group == "all" else counts
        caught = counts[CAUGHT] + counts[HANG]
        of = caught + counts[SURVIVED] + counts[UNREACHED]
        low, high = wilson(caught, of)
        score = f"{caught / of:7.1%}" if of else "      -"
        rest = f"{counts[HANG]:9} {counts[EQUIVALENT_TO]:10} {score}  {low:.1%} to {high:.1%}"
        print(f"{group:10} {of:6} {caught:6} {rest}")
    left = total["not judged"]
    print(
        f"{len(results.unviable)} did not compile and were replaced" + (f"; {left} are not judged yet" if left else "")
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Draw mutants by a seed and have the tests judge them.")
    parser.add_argument("--seed", required=True)
    parser.add_argument("--count", type=int, default=60, help="mutants of each group (60)")
    parser.add_argument("--group", action="append", choices=list(GROUPS), help="only this group (repeatable)")
    parser.add_argument("--keep-caught", action="store_true", help="judge only survivors again after a change")
    parser.add_argument("--one-build", action="store_true", help="leave the few that cannot share a build unjudged")
    parser.add_argument("--show", action="store_true", help="judge nothing, show what has been judged")
    arguments = parser.parse_args()
    files = mutant_tree.snapshot(ROOT)
    listed = mutant_tree.list_mutants(ROOT, files, {name: GROUPS[name] for name in arguments.group or GROUPS})
    known = equivalent(listed)
    order = {
        name: draw([mutant for mutant in listed if mutant.group == name and may_be_drawn(mutant)], arguments.seed)
        for name in arguments.group or GROUPS
    }
    print(", ".join(f"{name}: {len(mutants)} mutants" for name, mutants in order.items()), flush=True)
    results = Results(
        TARGET / f"seed-{arguments.seed}.json",
        digest(files),
        keep_caught=arguments.keep_caught,
        keep_all=arguments.show,
    )
    try:
        if not arguments.show:
            # A mutant that did not compile on its own is replaced as well.
            while True:
                before = len(results.unviable)
                judge(order, arguments.count, results, known, files, one_build=arguments.one_build)
                if len(results.unviable) == before:
                    break
    finally:
        show(take(order, arguments.count, results.unviable), results, known)


if __name__ == "__main__":
    main()

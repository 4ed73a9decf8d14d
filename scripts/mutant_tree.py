"""A scratch copy of the sources in which many mutants wait for a switch.

A build for each mutant costs more than its tests. So every function that is to be mutated gets, beside its own body,
a copy of it for each of its mutants, and an environment variable says when a test program starts which of them counts.
One build serves all; the same switch notes which tests come by which mutant, so that no other test need be run for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# The number that a mutant has not, with which a program notes who comes by instead.
RECORD = 0xFFFF_FFFF

SWITCH = """
#[allow(missing_docs, clippy::all, clippy::disallowed_methods, clippy::disallowed_types)]
pub mod mutant_switch {
    use std::{cell::RefCell, collections::BTreeSet, env, fs::File, io::Write, sync::OnceLock, thread};

    static CHOSEN: OnceLock<u32> = OnceLock::new();
    static LOG: OnceLock<File> = OnceLock::new();
    thread_local!(static SEEN: RefCell<BTreeSet<u32>> = const { RefCell::new(BTreeSet::new()) });

    pub fn on(id: u32) -> bool {
        let chosen = *CHOSEN.get_or_init(|| env::var("SEGUE_MUTANT").map_or(0, |id| id.parse().unwrap()));
        if chosen == u32::MAX {
            record(id);
        }
        chosen == id
    }

    #[cold]
    fn record(id: u32) {
        if SEEN.try_with(|seen| seen.borrow_mut().insert(id)).unwrap_or(false) {
            let path = env::var_os("SEGUE_MUTANT_LOG").unwrap();
            let mut log = LOG.get_or_init(|| File::options().append(true).create(true).open(path).unwrap());
            let name = thread::current().name().unwrap_or("?").to_owned();
            log.write_all(format!("{id} {name}\\n").as_bytes()).unwrap();
        }
    }
}
"""


@dataclass(frozen=True)
class Mutant:
    """One change of one function, as cargo-mutants lists it. Offsets count characters of the file."""

    group: str
    file: str
    line: int
    column: int
    function: str
    returns: str
    original: str
    replacement: str
    genre: str
    text: str
    start: int
    end: int
    function_start: int
    function_end: int
    key: str

    def __str__(self) -> str:
        """As survivors are listed."""
        original = " ".join(self.original.split())
        shown = original if len(original) <= 60 else f"{original[:57]}..."
        to = f"`{self.replacement}`" if self.replacement else "nothing"
        return f"{self.file}:{self.line}:{self.column}: {self.genre}: `{shown}` becomes {to} in {self.function}"


def snapshot(root: Path) -> dict[str, bytes]:
    """All files of the project as they are now: people go on working while mutants are judged."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    return {name: (root / name).read_bytes() for name in names if name and (root / name).is_file()}


def list_mutants(root: Path, files: dict[str, bytes], groups: dict[str, Sequence[str]]) -> list[Mutant]:
    """All mutants of all groups, in the order of the sources, which are at `root`."""
    command = ["cargo", "mutants", "--list", "--json", "--no-config"]
    for folders in groups.values():
        for folder in folders:
            command += ["--file", f"{folder}**/*.rs"]
    listed = json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)
    texts: dict[str, str] = {}
    seen: dict[str, int] = defaultdict(int)
    found = []
    for entry in listed:
        file, function = entry["file"], entry["function"]
        group = next((name for name, folders in groups.items() if file.startswith(tuple(folders))), None)
        if group is None or function is None:
            continue
        text = texts.setdefault(file, files[file].decode())
        lines = offsets(text)
        start, end = place(lines, entry["span"]["start"]), place(lines, entry["span"]["end"])
        line = entry["span"]["start"]["line"]
        source = text[lines[line - 1] : lines[line]].strip()
        words = [file, function["function_name"], entry["genre"], text[start:end], entry["replacement"], source]
        identity = "\0".join(words)
        seen[identity] += 1
        found.append(
            Mutant(
                group=group,
                file=file,
                line=line,
                column=entry["span"]["start"]["column"],
                function=function["function_name"],
                returns=function["return_type"],
                original=text[start:end],
                replacement=entry["replacement"],
                genre=entry["genre"],
                text=source,
                start=start,
                end=end,
                function_start=place(lines, function["span"]["start"]),
                function_end=place(lines, function["span"]["end"]),
                key=hashlib.sha256(f"{identity}\0{seen[identity]}".encode()).hexdigest()[:20],
            )
        )
    return found


def offsets(text: str) -> list[int]:
    """Where each line begins, and where the text ends."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def place(lines: Sequence[int], position: dict[str, int]) -> int:
    """The offset of a line and column, both of which count from 1."""
    return lines[position["line"] - 1] + position["column"] - 1


def mutated(text: str, mutant: Mutant) -> str:
    """The file with this one change."""
    return text[: mutant.start] + mutant.replacement + text[mutant.end :]


def body_start(text: str, mutant: Mutant) -> int:
    """Where the body of the mutant's function begins: the first brace after its head."""
    name = mutant.function.rpartition("::")[2].partition("<")[0]
    head = re.compile(rf"\bfn\s+(?:r#)?{re.escape(name)}\b").search(text, mutant.function_start)
    assert head is not None
    return text.index("{", head.end())


@dataclass
class Tree:
    """The copy. `alone` are the mutants that cannot share a build with the rest, `unviable` those that fail to."""

    directory: Path
    files: dict[str, bytes]
    numbers: dict[str, int] = field(default_factory=dict)
    alone: set[str] = field(default_factory=set)
    unviable: set[str] = field(default_factory=set)

    def write(self, contents: dict[str, str]) -> None:
        """Bring the copy up to date, with these files in place of the originals. What is the same stays untouched."""
        for name, original in self.files.items():
            copy = self.directory / name
            data = contents[name].encode() if name in contents else original
            if not copy.is_file() or copy.read_bytes() != data:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(data)
        for copy in self.directory.rglob("*"):
            if copy.is_file() and str(copy.relative_to(self.directory)) not in self.files:
                copy.unlink()

    def switched(self, mutants: Iterable[Mutant], libraries: Sequence[str]) -> dict[str, str]:
        """The files with all of these mutants in them, each behind the switch."""
        functions: dict[str, dict[tuple[int, int], list[Mutant]]] = defaultdict(lambda: defaultdict(list))
        for mutant in mutants:
            functions[mutant.file][mutant.function_start, mutant.function_end].append(mutant)
        contents = {}
        for file, there in functions.items():
            text = self.files[file].decode()
            before = len(text)
            for (start, end), those in sorted(there.items(), reverse=True):
                if end > before:
                    # A function within one that is changed as well.
                    self.alone.update(mutant.key for mutant in those)
                    continue
                before = start
                text = text[:start] + self._function(text, those) + text[end:]
            contents[file] = text
        for library in libraries:
            contents[library] = contents.get(library, self.files[library].decode()) + SWITCH
        return contents

    def _function(self, text: str, those: Sequence[Mutant]) -> str:
        first = those[0]
        start, end = first.function_start, first.function_end
        body = body_start(text, first)
        # The switch cannot be read in a constant; who needs it there is found by the compiler.
        head = re.sub(r"\bconst\s+(?=(?:unsafe\s+)?fn\b)", "", text[start:body])
        branches = ""
        for mutant in those:
            number = self.numbers.setdefault(mutant.key, len(self.numbers) + 1)
            changed = text[body : mutant.start] + mutant.replacement + text[mutant.end : end]
            branches += f"if crate::mutant_switch::on({number})\n//begin {number}\n{changed}\n//end {number}\nelse "
        return f"{head}{{ {branches}{text[body:end]} }}"

    def errors(self, packages: Sequence[str], environment: dict[str, str]) -> list[dict[str, object]]:
        """What the compiler objects to."""
        command = ["cargo", "check", "--profile", "checked", "--locked", "--lib", "--message-format=json"]
        command += [f"--package={package}" for package in packages]
        done = subprocess.run(
            command, cwd=self.directory, env=os.environ | environment, check=False, capture_output=True, text=True
        )
        found = []
        for line in done.stdout.splitlines():
            entry = json.loads(line)
            if entry["reason"] == "compiler-message" and entry["message"]["level"] == "error":
                found.append(entry["message"])
        if done.returncode != 0 and not found:
            raise SystemExit(done.stderr)
        return found

    def drop(self, errors: Iterable[dict[str, object]], mutants: Sequence[Mutant], contents: dict[str, str]) -> None:
        """Take out whom the errors are about.

        An error within a mutant's copy is the mutant's, and then it does not compile; unless the function returns an
        opaque type, of which two copies are two types. Other errors come from what was done to the function around it.
        """
        ranges = {file: marked(text) for file, text in contents.items()}
        by_number = {self.numbers[mutant.key]: mutant for mutant in mutants if mutant.key in self.numbers}
        before = len(self.alone) + len(self.unviable)
        for error in errors:
            spans = list(all_spans(error))
            inside = {
                number
                for file, line, primary in spans
                for number, (first, last) in ranges.get(file, {}).items()
                if primary and first <= line <= last
            }
            for number in inside:
                mutant = by_number[number]
                (self.alone if "impl " in mutant.returns else self.unviable).add(mutant.key)
            if not inside:
                named = set(re.findall(r"`(?:[^`]*::)?(\w+)`", str(error["message"])))
                near = {
                    number
                    for file, line, _ in spans
                    for number, (first, last) in ranges.get(file, {}).items()
                    if first <= line <= last
                }
                self.alone.update(by_number[number].key for number in near)
                self.alone.update(
                    mutant.key for mutant in mutants if mutant.function.rpartition("::")[2] in named and not near
                )
        if len(self.alone) + len(self.unviable) == before:
            shown = "\n".join(str(error["rendered"]) for error in errors)
            raise SystemExit(f"the tree with all mutants does not compile, and it is nobody's:\n{shown}")


def marked(text: str) -> dict[int, tuple[int, int]]:
    """The lines between which each mutant's copy stands."""
    begins: dict[int, int] = {}
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("//begin "):
            begins[int(line.split()[1])] = number
        elif line.startswith("//end "):
            found[int(line.split()[1])] = (begins[int(line.split()[1])], number)
    return found


def all_spans(error: dict[str, object]) -> Iterable[tuple[str, int, bool]]:
    """File, line and whether it is the place itself, of all that an error points at."""
    spans = error["spans"]
    assert isinstance(spans, list)
    for span in spans:
        yield span["file_name"], span["line_start"], span["is_primary"]

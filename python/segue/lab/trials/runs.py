"""Running `segue-lab run`, one after the other: they are in real time."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from segue import RunError, ScenarioError
from segue.lab.record import is_whole
from segue.lab.trials.kept import Documents
from segue.lab.trials.plan import PLANNED, Combination
from segue.lab.trials.results import EXIT_TOO_LATE, LabRun, Result, parse
from segue.sweeps.files import pack
from segue.sweeps.plan import Plan
from segue.sweeps.worker import unpack

EXIT_FAILED = 1
EXIT_INPUT = 2
EXIT_INTERRUPTED = 130

TRIES = 3
"""A run that was too late is made again, so often in all."""

Told = Callable[[Combination, int, int, str], object]
"""Called before each run with the combination, the number of its run, how many of all runs are done, and what is to be
said of it besides: that its document is there already, or that it was too late."""


def run_all(
    program: str,
    plan: Sequence[Combination],
    *,
    repeat: int,
    predict: bool = False,
    conditions: Sequence[str] = (),
    tell: Told = lambda *_: None,
    directory: Path | None = None,
) -> list[Result]:
    """Run each combination so often: all of them once, then all again, so that what the machine does besides is shared.

    Args:
        program: Path of `segue-lab`.
        plan: What is run.
        repeat: How often.
        predict: Have the simulator's figures too.
        conditions: What has to be so of each run.
        tell: Told of each run before it begins.
        directory: Where the documents of runs are kept, and taken from if they are of the very same run.

    Raises:
        ScenarioError: What is wrong with the input, by the program's own line.
        RunError: A run left no figures.
        OSError: A document cannot be kept.
        KeyboardInterrupt: Ctrl-C; namespaces are gone then.
    """
    kept = Documents(directory, program, predict=predict, conditions=conditions)
    runs: list[list[LabRun]] = [[] for _ in plan]
    for number in range(1, repeat + 1):
        for place, combination in enumerate(plan):
            done = (number - 1) * len(plan) + place
            if (run := _done_before(kept, combination, number)) is not None:
                tell(combination, number, done, "done before")
                runs[place].append(run)
                continue
            seed = combination.seed + number - 1
            for attempt in itertools.count(1):
                tell(combination, number, done, "" if attempt == 1 else "too late, once more")
                record = kept.folder(combination, number)
                kept.begin(combination, number)
                run, document = run_once(
                    program, combination, seed, predict=predict, conditions=conditions, record=record
                )
                kept.put(combination, number, document)
                if not run.too_late or attempt == TRIES:
                    runs[place].append(run)
                    break
    return [Result(combination, tuple(own)) for combination, own in zip(plan, runs, strict=True)]


def _done_before(kept: Documents, combination: Combination, number: int) -> LabRun | None:
    """The very same run, if it was made before, was in time, and is whole."""
    document = kept.find(combination, number)
    if document is None:
        return None
    try:
        run = parse(document)
    except ValueError:
        return None
    if run.too_late:
        return None
    record = kept.folder(combination, number)
    return replace(run, record=record) if record is None or is_whole(record) else None


def run_once(
    program: str,
    combination: Combination,
    seed: int,
    *,
    predict: bool,
    conditions: Sequence[str],
    record: Path | None = None,
) -> tuple[LabRun, str]:
    """One run and its document, and its frames in the folder `record`; raises as `run_all`."""
    with tempfile.TemporaryDirectory(prefix="segue-compare-") as folder:
        file, settings = _file_of(combination, Path(folder) / "scenario")
        words = [program, "run", str(file), "--json", "--out", str(Path(folder) / "out"), "--seed", str(seed)]
        words += [f"--set={key}={value}" for key, value in settings.items()]
        # what packets of others' schemes show says nothing of an application; those of an association are its own
        conditions = () if combination.is_of_others else conditions
        words += [f"--assert={condition}" for condition in conditions]
        if predict:
            words.append("--predict")
        if record is not None:
            words += ["--record", str(record)]
        status, document, said = _wait(words)
    lines = [line.replace(str(file), combination.scenario.file) for line in said.splitlines() if line.strip()]
    # what ends it has the program's name, what it says on the way that of the command
    last = re.sub("^segue[ -]lab: ", "", lines[-1]) if lines else "nothing said"
    if status == EXIT_INPUT:
        raise ScenarioError(last)
    if status == EXIT_INTERRUPTED:
        raise KeyboardInterrupt
    if status not in (0, EXIT_FAILED, EXIT_TOO_LATE) or not document.strip():
        raise RunError(f"{combination.name}: segue-lab ended with {status}: {last}")
    try:
        return replace(parse(document, status=status), record=record), document
    except ValueError as error:
        raise RunError(f"{combination.name}: {error}") from None


def _file_of(combination: Combination, folder: Path) -> tuple[Path, Mapping[str, object]]:
    """The file as given where it is what is run; else a copy in that folder, with the files that it names beside it.

    Also the overrides, in which files have the names that they have there.
    """
    given = Path(combination.scenario.file)
    if combination.event == PLANNED and given.is_file():
        return given, combination.settings
    settings = {key: str(value) for key, value in combination.settings.items()}
    packed = pack(Plan(combination.scenario, (), settings, (), ()))
    folder.mkdir()
    unpack(folder, packed.files, packed.contents.__getitem__)
    copy = folder / f"{combination.name}.toml"
    copy.write_text(packed.plan.scenario.text, encoding="utf-8")
    return copy, packed.plan.fixed


def _wait(words: Sequence[str]) -> tuple[int, str, str]:
    """Status, output and errors; of Ctrl-C the program is told as well, and has the time to clean up."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            document, said = process.communicate()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.communicate()
            raise
        return process.returncode, document, said

"""The runs of a sweep on this machine, in threads, with results of earlier ones from the store."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from segue.runner import Runner
from segue.running import Run
from segue.sweeps.columns import Row
from segue.sweeps.plan import Plan, Task, row_of_run

PER_THREAD = 64
"""So many scenarios for each thread are in memory, read, at a time."""

MOST_TOLD = 5
"""So many different warnings are told; of more only how many there are."""

Take = Callable[[Task, Row], object]
Done = Callable[[int], object]
"""Told how many of the runs asked for are done; what it raises ends the others."""


class Execution(Protocol):
    """Where runs are made."""

    def make(self, plan: Plan, tasks: Sequence[Task], take: Take, done: Done) -> None:
        """Make them: `take` is called with the row of each, in any order."""


class OverBudget(Exception):  # noqa: N818 - it is none
    """Time is up."""


class Deadline:
    """When a sweep is to stop."""

    def __init__(self, budget_s: float | None) -> None:
        self._at = None if budget_s is None else time.monotonic() + budget_s

    def check(self) -> None:
        """Raises `OverBudget` once time is up."""
        if self._at is not None and time.monotonic() >= self._at:
            raise OverBudget


class Caveats:
    """What runs say of themselves that their rows do not, each told once, however many runs say it."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell
        self._known: set[str] = set()
        self._untold = 0

    def note(self, run: Run) -> None:
        """Tell what is new."""
        self.note_all(warnings_of(run))

    def note_all(self, texts: Iterable[str]) -> None:
        """The same of what runs have said elsewhere."""
        for text in texts:
            if text in self._known:
                continue
            if len(self._known) < MOST_TOLD:
                self._tell(text)
            else:
                self._untold += 1
            self._known.add(text)

    def close(self) -> None:
        """Tell how many more there were since this was told last."""
        if self._untold:
            self._tell(f"and {self._untold} more of the kind")
        self._untold = 0


def warnings_of(run: Run) -> list[str]:
    """What a run says of itself that its row does not."""
    # most runs have none, and need not be read for it
    return [] if '"warnings":[]' in run.metrics_json else [warning.text for warning in run.metrics.warnings]


class Local:
    """This machine. Warnings of runs are told."""

    def __init__(self, runner: Runner, tell: Callable[[str], object]) -> None:
        self._runner = runner
        self._caveats = Caveats(tell)

    def make(self, plan: Plan, tasks: Sequence[Task], take: Take, done: Done) -> None:
        """See `Execution`."""
        size = PER_THREAD * self._runner.threads
        for begin in range(0, len(tasks), size):
            self._batch(plan, tasks[begin : begin + size], take, partial(_further, done, begin))
        self._caveats.close()

    def _batch(self, plan: Plan, tasks: Sequence[Task], take: Take, done: Done) -> None:
        rows: dict[int, Row] = {}

        def keep(number: int, run: Run) -> None:
            rows[number] = row_of_run(run.metrics_json, plan.extra)
            self._caveats.note(run)
            take(tasks[number], rows[number])

        first = self._runner.take([plan.job(task) for task in tasks], keep, progress=lambda count, _total: done(count))
        for number, one in enumerate(first):
            if number != one:
                take(tasks[number], dict(rows[one]))
        done(len(tasks))


def _further(done: Done, begin: int, count: int) -> None:
    done(begin + count)

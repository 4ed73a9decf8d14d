"""Progress bars on standard error, if that is a terminal; else nothing."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LONG_READ_BYTES = 50_000_000
"""Captures from this size on get a bar."""


class Bars:
    """A bar per stage of long work.

    >>> with Bars() as bars:
    ...     bars.show("simulating", 1, 2)
    """

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[count]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[left]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def spin(self, what: str) -> None:
        """Work of unknown length."""
        self._update(what)

    def show(self, what: str, done: int, total: int) -> None:
        """`done` of `total`."""
        self._update(what, done, total)

    def reading(self, done: int, total: int) -> None:
        """`done` of `total` bytes of captures, shown in MB; the bar comes once there is something to wait for."""
        if total >= LONG_READ_BYTES:
            self._update("reading (MB)", done // 1_000_000, total // 1_000_000)

    def _update(self, what: str, done: int = 0, total: int | None = None) -> None:
        if self._progress is None:
            return
        # Work of unknown length has nothing to count.
        count = "" if total is None else f"{done}/{total}"
        left = "" if total is None else "left"
        if what not in self._tasks:
            for task in self._tasks.values():
                self._progress.stop_task(task)
            self._tasks[what] = self._progress.add_task(what, total=total, count=count, left=left)
        self._progress.update(self._tasks[what], completed=done, total=total, count=count, left=left)

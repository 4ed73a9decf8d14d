"""How many runs are made: by how many threads, and with what store beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from segue import _native
from segue.running import Kept, Progress, Run, available_threads, keep_of_jobs, take_of_jobs
from segue.store import Counts, Store


class Runner:
    """Makes runs, and has those that were made before from a store, if there is one.

    Attributes:
        counts: How the results so far came about.
        threads: How many make runs.
    """

    def __init__(self, *, threads: int | None = None, store: Store | None = None, fresh: bool = False) -> None:
        """A runner.

        Args:
            threads: As many as this process may use, if left out.
            store: Where results are kept, and found.
            fresh: Make each run anew, once.
        """
        self.counts = Counts()
        self.threads = threads or available_threads()
        self._store = store
        self._fresh = fresh

    def runs(self, jobs: Iterable[_native.Job], *, progress: Progress | None = None) -> list[Run]:
        """Their runs, in the order of the jobs: all of them in hand at once."""
        return self.keep(jobs, lambda run: run, progress=progress)

    def keep(
        self, jobs: Iterable[_native.Job], keep: Callable[[Run], Kept], *, progress: Progress | None = None
    ) -> list[Kept]:
        """What is kept of each run, in the order of the jobs: see `segue.running.keep_of_jobs`."""
        asked = list(jobs)
        if self._store is None:
            kept, counts = keep_of_jobs(asked, keep, threads=self.threads, progress=progress), Counts(made=len(asked))
        else:
            kept, counts = self._store.keep_of_jobs(
                asked, keep, threads=self.threads, progress=progress, fresh=self._fresh
            )
        self.counts += counts
        return kept

    def take(
        self, jobs: Iterable[_native.Job], take: Callable[[int, Run], object], *, progress: Progress | None = None
    ) -> list[int]:
        """Have each run taken as it ends, with the number of its job: what was taken is had, whatever happens later.

        Returns:
            Of each job the number of the one whose run was taken for it: its own, or the first that is the same.
        """
        asked = list(jobs)
        if self._store is None:
            take_of_jobs(asked, take, threads=self.threads, progress=progress)
            first, counts = list(range(len(asked))), Counts(made=len(asked))
        else:
            first, counts = self._store.take_of_jobs(
                asked, take, threads=self.threads, progress=progress, fresh=self._fresh
            )
        self.counts += counts
        return first

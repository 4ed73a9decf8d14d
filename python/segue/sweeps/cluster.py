"""The runs of a sweep on a Ray cluster.

Runs go out in batches of some seconds each. What comes back are rows, which are written as parts at once. A batch whose
worker or machine is lost is made again. A worker says first that it is the same program: one that is not is told of by
name, and the rest of the cluster goes on without it. Rows do not depend on who made them.
"""

from __future__ import annotations

import socket
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

from segue._native import RunError, ScenarioError, __version__
from segue.running import available_threads
from segue.scenarios import bundled
from segue.sweeps.execution import Caveats, Done, Take
from segue.sweeps.files import pack
from segue.sweeps.parts import Parts
from segue.sweeps.plan import Plan, Task
from segue.sweeps.worker import SELF_TEST, Made, Outcome, Refused, Shared, run_batch, self_test

if TYPE_CHECKING:
    from ray import ObjectRef

    Send = Callable[[Sequence[Task]], ObjectRef]

BATCH_S = 3.0
"""How long a batch is to take, once it is known how long a run takes."""
FIRST_BATCH = 4
MOST_IN_BATCH = 2000
AHEAD = 2
"""Batches under way for each processor: the next is there when one ends."""
MOST_LOSSES = 5
"""So often a batch is made again."""
LOOK_S = 0.5
OBJECT_STORE_BYTES = 100 << 20
"""Of a cluster that is started for one sweep: rows are small."""

Told = Callable[[str], object]


class Cluster:
    """A cluster, as an `Execution`; it is let go at the end of a `with`."""

    def __init__(self, on: str, plan: Plan, parts: Path | None, tell: Told = warnings.warn) -> None:
        """A cluster.

        Args:
            on: "ray": the one that `RAY_ADDRESS` names, or that runs on this machine, or one that is started on it;
                "ray://HOST:PORT" for one elsewhere.
            plan: What is run on it.
            parts: Where rows are written as they come; nowhere if left out.
            tell: Told what runs warn of, each once, and of workers that are lost or refused, and damaged parts.

        Raises:
            ScenarioError: `on` is something else, or there is no such cluster, or no Ray.
        """
        if on != "ray" and not on.startswith("ray://"):
            raise ScenarioError(f"--on {on}: expected ray, or ray://ADDRESS:PORT")
        self._ray = _ray()
        self._on = on
        self._tell = tell
        self._caveats = Caveats(tell)
        self._packed = pack(plan)
        text = bundled(SELF_TEST).text
        test = self_test(text)
        self._shared = Shared(
            plan.scenario.name, self._packed.plan.scenario.text, self._packed.files, plan.extra, __version__, test, text
        )
        self._parts = None if parts is None else Parts(parts, plan, self._packed.files, test)
        self._workers = _Workers(self._ray)
        self._is_ours = False

    def __enter__(self) -> Self:
        if not self._ray.is_initialized():
            self._connect()
            self._is_ours = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_ours:
            self._ray.shutdown()

    def make(self, plan: Plan, tasks: Sequence[Task], take: Take, done: Done) -> None:
        """See `Execution`; `plan` is the one that the cluster is for."""
        del plan
        there = {} if self._parts is None else self._parts.read(self._tell)
        missing = [task for task in tasks if task not in there]
        for task in tasks:
            if task in there:
                take(task, there[task])
        found = len(tasks) - len(missing)

        def keep(batch: Sequence[Task], made: Made) -> None:
            if self._parts is not None:
                self._parts.add(batch, made.rows)
            self._caveats.note_all(made.warnings)
            for task, row in zip(batch, made.rows, strict=True):
                take(task, row)

        if missing:
            making = _Making(self._ray, self._workers, self._packed.plan, missing, self._tell)
            sent = making.sender(self._shared, self._packed.contents)
            making.run(sent, keep, lambda made: done(found + made))
            self._caveats.close()
        done(len(tasks))

    def _connect(self) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if self._on != "ray":
            try:
                with warnings.catch_warnings(action="ignore"):
                    self._ray.init(address=self._on, **quiet)
            except Exception as error:
                raise ScenarioError(f"--on {self._on}: no such cluster: {_line(error)}") from error
            return
        try:
            self._ray.init(address="auto", **quiet)
        except ConnectionError:
            size = {"num_cpus": available_threads(), "object_store_memory": OBJECT_STORE_BYTES}
            try:
                # left to itself Ray takes an address that a cluster which is gone has left behind
                self._ray.init(address="local", include_dashboard=False, **size, **quiet)
            except Exception as error:
                raise RunError(f"--on ray: Ray cannot be started here: {_line(error)}") from error


class _Workers:
    """What is known of a cluster's machines: which are refused, and how long they take for a run."""

    def __init__(self, ray: ModuleType) -> None:
        self._ray = ray
        self._refused: dict[str, str] = {}
        self._run_s: float | None = None
        self._turn = 0

    def most_under_way(self) -> int:
        """Batches, so that none waits for work."""
        return AHEAD * max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def batch_size(self, left: int) -> int:
        """Runs of some seconds; fewer at the end, so that all have something to do."""
        size = FIRST_BATCH if self._run_s is None else round(BATCH_S / max(self._run_s, 1e-6))
        return max(1, min(size, MOST_IN_BATCH, -(-left // self.most_under_way())))

    def measured(self, run_s: float) -> None:
        """How long a run took, seconds."""
        self._run_s = run_s if self._run_s is None else 0.7 * self._run_s + 0.3 * run_s

    def refuse(self, node: str, why: str) -> bool:
        """Send no more there; whether that is new."""
        is_new = node not in self._refused
        self._refused[node] = why
        return is_new

    def options(self) -> dict[str, Any]:
        """Where a batch may go: anywhere, or, once a machine is refused, to each of the others in turn.

        Raises:
            RunError: There is no other.
        """
        if not self._refused:
            return {}
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        others = [
            node["NodeID"] for node in self._ray.nodes()
            if node["Alive"] and node["NodeID"] not in self._refused and node["Resources"].get("CPU")
        ]  # fmt: skip
        if not others:
            raise RunError(f"no worker is left: {'; '.join(self._refused.values())}")
        self._turn += 1
        return {"scheduling_strategy": NodeAffinitySchedulingStrategy(others[self._turn % len(others)], soft=False)}


class _Making:
    """Runs that are to be made, and batches that are under way."""

    def __init__(self, ray: ModuleType, workers: _Workers, plan: Plan, tasks: Sequence[Task], tell: Told) -> None:
        self._ray = ray
        self._workers = workers
        self._plan = plan
        self._tell = tell
        self._tasks = deque(tasks)
        # what was lost or refused, as it was
        self._again: deque[list[Task]] = deque()
        self._losses: dict[Task, int] = {}
        self._under_way: dict[ObjectRef, list[Task]] = {}

    def sender(self, shared: Shared, contents: Mapping[str, bytes]) -> Send:
        """Sends a batch with what all of them share, which is put there once."""
        of_all = self._ray.put(shared)
        files = {digest: self._ray.put(content) for digest, content in contents.items()}
        remote = self._ray.remote(num_cpus=1, max_retries=0)(run_on_worker)

        def send(batch: Sequence[Task]) -> ObjectRef:
            asked = [(self._plan.overrides(point), seed) for point, seed in batch]
            return remote.options(**self._workers.options()).remote(of_all, files, asked)

        return send

    def run(self, send: Send, keep: Callable[[Sequence[Task], Made], object], done: Done) -> None:
        """Until all are made, or `done` raises something."""
        made = 0
        try:
            while self._tasks or self._again or self._under_way:
                while (self._tasks or self._again) and len(self._under_way) < self._workers.most_under_way():
                    batch = self._next()
                    self._under_way[send(batch)] = batch
                ready, _ = self._ray.wait(list(self._under_way), num_returns=1, timeout=LOOK_S)
                for one in ready:
                    batch = self._under_way.pop(one)
                    outcome = self._received(one, batch)
                    if outcome is None:
                        self._again.append(batch)
                        continue
                    keep(batch, outcome)
                    made += len(batch)
                done(made)
        finally:
            for one in self._under_way:
                self._ray.cancel(one, force=True)

    def _next(self) -> list[Task]:
        if self._again:
            return self._again.popleft()
        return [self._tasks.popleft() for _ in range(self._workers.batch_size(len(self._tasks)))]

    def _received(self, one: ObjectRef, batch: Sequence[Task]) -> Made | None:
        """What came of a batch; nothing if it is to be made again."""
        errors = self._ray.exceptions
        try:
            node, name, outcome = self._ray.get(one)
        except (errors.RayTaskError, errors.RuntimeEnvSetupError) as error:
            text = f"a worker cannot run a batch: {_line(error)}: is the same Segue installed there?"
            raise RunError(text) from error
        except errors.RayError as error:
            self._count_loss(batch, _line(error))
            return None
        if isinstance(outcome, Made):
            self._workers.measured(outcome.took_s / len(batch))
            return outcome
        if isinstance(outcome, Refused):
            if self._workers.refuse(node, f"{name}: {outcome.reason}"):
                self._tell(f"worker {name} is refused: {outcome.reason}")
            return None
        raise (ScenarioError if outcome.is_input else RunError)(outcome.text)

    def _count_loss(self, batch: Sequence[Task], why: str) -> None:
        self._losses[batch[0]] = losses = self._losses.get(batch[0], 0) + 1
        if losses > MOST_LOSSES:
            raise RunError(f"a batch of {len(batch)} runs was lost {losses} times: {why}")
        self._tell(f"a worker was lost, its {len(batch)} runs are made again: {why}")


def run_on_worker(
    shared: Shared, contents: Mapping[str, ObjectRef], batch: Sequence[tuple[Mapping[str, str], int]]
) -> tuple[str, str, Outcome]:
    """What a task does: who it was, by Ray's number and by name, and what came of it."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    name = f"{socket.gethostname()} ({ray.util.get_node_ip_address()})"

    def fetch(digest: str) -> bytes:
        content: bytes = ray.get(contents[digest])
        return content

    return node, name, run_batch(shared, batch, fetch)


def _ray() -> ModuleType:
    try:
        return import_module("ray")
    except ImportError:
        raise ScenarioError("--on ray: needs Ray: pip install 'segue[ray]'") from None


def _line(error: BaseException) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__

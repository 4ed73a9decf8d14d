"""Programs that log what happens, a line each, and take commands on their standard input."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Event:
    """One line of a log; `at` is ns of CLOCK_MONOTONIC."""

    at: int
    name: str
    fields: dict[str, str]

    @classmethod
    def parse(cls, line: str) -> Event:
        """A line of a peer, where a word without "=" belongs to the value before it; or an object of segue-sctp."""
        if line.startswith("{"):
            values = json.loads(line)
            return cls(values.pop("time_ns"), values.pop("event"), {key: str(value) for key, value in values.items()})
        at, name, *words = line.split()
        fields: dict[str, str] = {}
        key = ""
        for word in words:
            if "=" in word:
                key, _, fields[word.partition("=")[0]] = word.partition("=")
            elif key:
                fields[key] += f" {word}"
        return cls(int(at), name, fields)


class Process:
    """A running program whose events can be waited for. Leaving the with block ends it."""

    def __init__(self, command: Sequence[str | Path | int], name: str) -> None:
        self.name = name
        self.events: list[Event] = []
        self.complaints: list[str] = []
        self.changed = threading.Condition()
        self.child = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.readers = [
            threading.Thread(target=self._read_events, daemon=True),
            threading.Thread(target=self._read_complaints, daemon=True),
        ]
        for reader in self.readers:
            reader.start()

    def _read_events(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            try:
                event = Event.parse(line)
            except ValueError:
                self.complaints.append(line.rstrip())
                continue
            with self.changed:
                self.events.append(event)
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def _read_complaints(self) -> None:
        assert self.child.stderr is not None
        for line in self.child.stderr:
            self.complaints.append(line.rstrip())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        for reader in self.readers:
            reader.join(timeout=5)
        for stream in (self.child.stdin, self.child.stdout, self.child.stderr):
            assert stream is not None
            stream.close()

    def finish(self, timeout: float = 60) -> None:
        """End its input and wait until it has ended by itself. A busy disk may hold up what it still has to write."""
        assert self.child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()
        self.child.wait(timeout)
        for reader in self.readers:
            reader.join(timeout)

    def tell(self, line: str) -> None:
        """Give a command."""
        assert self.child.stdin is not None
        self.child.stdin.write(f"{line}\n")
        self.child.stdin.flush()

    def ask(self, line: str, answer: str, timeout: float = 10) -> int:
        """Give a command and wait for the event that answers it; returns the event's time."""
        start = len(self.events)
        self.tell(line)
        return self.wait_for(answer, timeout=timeout, start=start).at

    def find(self, name: str, start: int = 0, **fields: str) -> list[Event]:
        """Events of that name, from position `start` on, with these values."""
        wanted = fields.items()
        return [event for event in self.events[start:] if event.name == name and wanted <= event.fields.items()]

    def crashed(self) -> bool:
        """Whether it ended by a signal."""
        return (self.child.poll() or 0) < 0

    def wait_for(self, name: str, *, timeout: float, start: int = 0, count: int = 1, **fields: str) -> Event:
        """The `count`th such event from position `start` on, once it has come."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while len(found := self.find(name, start, **fields)) < count:
                left = deadline - time.monotonic()
                ended = self.child.poll() is not None and not self.readers[0].is_alive()
                if left <= 0 or ended:
                    reason = f"ended with status {self.child.returncode}" if ended else f"not within {timeout:g} s"
                    raise AssertionError(f"{self.name}: no {name} {fields or ''}: {reason}\n{self.tail()}")
                self.changed.wait(min(left, 0.5))
        return found[count - 1]

    def tail(self, lines: int = 25) -> str:
        """The end of its log, for messages."""
        shown = [f"{event.at / 1e9:.6f} {event.name} {event.fields}" for event in self.events[-lines:]]
        return "\n".join([*shown, *self.complaints[-lines:]])

"""Progress bars on a terminal that is none."""

from __future__ import annotations

import io

import pytest

from segue.cli.progress import Bars


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal_instead(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    return screen


def test_work_of_unknown_length_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_instead(monkeypatch)
    with Bars() as bars:
        bars.spin("simulating")
    assert "simulating" in terminal.getvalue()
    assert "?" not in terminal.getvalue().replace("\x1b[?", "")
    assert "0/" not in terminal.getvalue()


def test_work_of_known_length_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_instead(monkeypatch)
    with Bars() as bars:
        bars.show("drawing", 2, 5)
    assert "2/5" in terminal.getvalue()

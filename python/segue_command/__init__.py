"""The command `segue`, before anything of `segue` is imported: that takes long enough for a Ctrl-C to fall into it."""

from __future__ import annotations

import os
import signal

EXIT_INTERRUPTED = 130


def main() -> None:
    """Entry point: runs the command line and exits."""
    # in the background of a shell script it is ignored, and stays so
    handled = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handled:
        signal.signal(signal.SIGINT, _end)
    from segue.cli.app import main as run

    if handled:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _end(_signal: int, _frame: object) -> None:
    """End at once: nothing has begun, and an import that is broken off by an exception says so in many lines."""
    try:
        os.write(2, b"segue: interrupted\n")
    finally:
        os._exit(EXIT_INTERRUPTED)

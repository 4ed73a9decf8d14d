"""The command `segue`.

`main` maps every error to one line and an exit status: 0 done, 1 a run failed, 2 wrong input, 130 Ctrl-C. Commands
import what they need when they run: `segue --help` imports click and little else.
"""

from segue.cli.app import main

__all__ = ["main"]

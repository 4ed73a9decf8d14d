"""The type of what runs the command line."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

Segue = Callable[..., "subprocess.CompletedProcess[str]"]

"""What an interruption is, in a line for the tables that have one; docs/interruption.md says it of every command."""

from __future__ import annotations

_WHAT = "Interruption: the longest time between two arrivals of new data"
_SPACING = "the sender's own spacing is part of it"

OF_HANDOVERS = f"{_WHAT} around a handover, or in an outage; {_SPACING}."
"""As metrics of a run and analyses of captures have it."""
OF_RUNS = f"{_WHAT} around a handover or an event, or in an outage; {_SPACING}."
"""As conditions and sweeps have it: the longest of a run."""
BEYOND_SPACING = f"{_WHAT} around a handover or an event, or in an outage, less the sender's own spacing."
"""As comparisons of real hosts have it."""

"""What a scenario has happen, in figures against time."""

from __future__ import annotations

from matplotlib.axes import Axes

from segue.figures import style
from segue.metrics import Metrics


def mark_scenario(axes: Axes, metrics: Metrics) -> None:
    """Mark the events of the scenario of a run; the limits of the axes stay as they are."""
    style.mark_events(
        axes,
        [
            (one.at_s, None if one.for_s is None else one.at_s + one.for_s, f"{one.kind} on {', '.join(one.on)}")
            for one in metrics.scenario_events
        ],
    )

"""Segue: what happens to a connection while its host moves between networks.

How data flows::

    scenario file or text --+-- overrides, seed
                            v
    segue.run ------> segue._native (Rust simulator, its own threads)
                            v
                           Run --> .metrics          dataclasses
                            |----> .packets ...      polars frames over Arrow, made when first asked for
                            |----> .captures()       pcapng bytes, read from their files
                            |----> .save(...)        one file with all of it, for segue.load
                            v
    segue.figures ----> segue.report (one HTML file), segue.plot (on axes of one's own)
    segue.analyze ----> segue._native (Rust analysis of captures) --> Analysis, as frames or dataclasses
    segue.sweep (grids of runs, their results kept by segue.store) --> Sweep, as a frame, a Parquet file, figures
    segue.papers.* (grids of runs -> figures, tables, claims)  <-- segue.cli

Importing `segue` imports neither polars nor matplotlib, and what is of runs when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from segue._native import CaptureError, RunError, ScenarioError, __version__
from segue.analyze import Analysis, analyze
from segue.scenarios import Scenario, scenarios
from segue.sweeps.running import sweep

if TYPE_CHECKING:
    from segue import plot
    from segue.distributions import Distribution, Spread
    from segue.metrics import Flow, Handover, Host, Metrics
    from segue.populations import Population
    from segue.running import Run, run
    from segue.saved import load

__all__ = [
    "Analysis",
    "CaptureError",
    "Distribution",
    "Flow",
    "Handover",
    "Host",
    "Metrics",
    "Population",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Spread",
    "__version__",
    "analyze",
    "load",
    "plot",
    "run",
    "scenarios",
    "sweep",
]

# What is of runs, by the module that has it: who analyses a capture does not wait for it.
_OF_RUNS = dict.fromkeys(("Flow", "Handover", "Host", "Metrics"), "segue.metrics")
_OF_RUNS |= dict.fromkeys(("Distribution", "Spread"), "segue.distributions")
_OF_RUNS |= {"Population": "segue.populations"}
_OF_RUNS |= dict.fromkeys(("Run", "run"), "segue.running")
_OF_RUNS |= {"load": "segue.saved"}


def __getattr__(name: str) -> object:
    if name == "plot":
        return import_module("segue.plot")
    if name not in _OF_RUNS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_OF_RUNS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_OF_RUNS, "plot"})

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
    segue.figures ----> segue.report (one HTML file)
    segue.analyze ----> segue._native (Rust analysis of captures) --> Analysis, as frames or dataclasses
    segue.papers.* (grids of runs -> figures, tables, claims)  <-- segue.cli

Importing `segue` imports neither polars nor matplotlib.
"""

from segue._native import CaptureError, RunError, ScenarioError, __version__
from segue.analyze import Analysis, analyze
from segue.metrics import Flow, Handover, Host, Metrics, Spread
from segue.populations import Distribution, Population
from segue.running import Run, run
from segue.saved import load
from segue.scenarios import Scenario, scenarios

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
    "run",
    "scenarios",
]

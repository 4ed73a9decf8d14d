"""What there is of a run that was recorded, whoever ran it: the simulator, or real hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from segue.metrics import Metrics

if TYPE_CHECKING:
    import polars as pl


class Measured(Protocol):
    """Metrics of a run."""

    @property
    def metrics(self) -> Metrics:
        """Metrics of the run."""


class Recorded(Measured, Protocol):
    """Metrics and frames of a run: `segue.Run` is one of the simulator, `segue.lab.record.Record` one of the lab."""

    @property
    def scenario_toml(self) -> str:
        """The scenario as run, overrides applied."""

    @property
    def packets(self) -> pl.DataFrame:
        """See `segue.Run.packets`."""

    @property
    def windows(self) -> pl.DataFrame:
        """See `segue.Run.windows`; of a kernel's transport there is none."""

    @property
    def signalling(self) -> pl.DataFrame:
        """See `segue.Run.signalling`."""

    @property
    def positions(self) -> pl.DataFrame:
        """See `segue.Run.positions`."""

    @property
    def cells(self) -> pl.DataFrame:
        """See `segue.Run.cells`."""

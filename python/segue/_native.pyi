"""Native part of Segue: the simulator behind `segue.run`. Use the package, not this module."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import final

__version__: str

class ScenarioError(ValueError):
    """A scenario or an override is wrong; one line naming file, key and expectation."""

class RunError(RuntimeError):
    """A run could not be carried to its end."""

class CaptureError(ValueError):
    """A capture cannot be analysed; one line naming the file and what was expected."""

class ArrowTable:
    """A table over the Arrow PyCapsule interface; any Arrow library takes it without a copy."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def adaptation_time(
    times_ns: Sequence[int], lengths: Sequence[int]
) -> tuple[float | None, float | None, list[tuple[float, float]]]:
    """t_a (s), threshold (bit/s) and bins (end in s, bit/s) of packets on a new path.

    Cottingham and Vidales 2005 section 5.
    """

@final
class Run:
    """Result of a run."""

    @property
    def metrics_json(self) -> str:
        """Metrics as one JSON document."""
    @property
    def scenario_toml(self) -> str:
        """The scenario as run, overrides applied."""
    @property
    def verdicts(self) -> list[tuple[str, bool, str]]:
        """Of each condition, those of the scenario first: the condition, whether it holds, and both in words."""
    @property
    def junit(self) -> str:
        """The conditions as test cases of a JUnit file; one that passes if there are none."""
    @property
    def table_names(self) -> list[str]:
        """Names of the tables that were recorded."""
    @property
    def capture_names(self) -> list[str]:
        """Names of the captures that were written."""
    def table(self, name: str) -> ArrowTable | None:
        """A table; `None` if it is not in memory."""

def scenario_schema() -> str:
    """JSON Schema of scenario files, as a JSON document."""

def scenario_keys() -> str:
    """Every key of a scenario, as a JSON document: a list of tables with what `segue.keys.Key` has."""

def scenario_problems(text: str, file: str) -> tuple[list[tuple[tuple[int, int] | None, str]], bool]:
    """All that is wrong with a scenario file: line and column, and what; and whether there may be more."""

def check_form(text: str, file: str) -> None:
    """Reads a scenario for its form alone, which is what `scenario_schema` is about.

    Raises:
        ScenarioError: It has another form.
    """

@final
class ScenarioInfo:
    """What a scenario says of itself."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def toml(self) -> str: ...
    @property
    def warnings(self) -> list[str]:
        """What was accepted and has no effect."""
    @property
    def refusal(self) -> str | None:
        """Why a run would be refused: there is no model of what real hosts can do."""

@final
class Job:
    """One run of `run_many`."""

    def __new__(
        cls,
        text: str,
        file: str,
        overrides: Sequence[tuple[str, str]],
        seed: int | None = None,
        trace: bool = False,
        trace_folder: str | PathLike[str] | None = None,
        pcap_folder: str | PathLike[str] | None = None,
        conditions: Sequence[str] | None = None,
    ) -> Job:
        """`trace` records tables in memory, unless there is a folder for them as Parquet files."""
    @property
    def traces(self) -> bool:
        """Whether tables are recorded."""
    @property
    def writes_files(self) -> bool:
        """Whether there is a folder for tables or captures."""
    def identity(self) -> bytes:
        """Digest of what the result follows from: scenario, overrides, named files, seed, conditions, `traces`."""
    def tracing_into(self, folder: str | PathLike[str]) -> Job:
        """The same with tables in this folder, as Parquet files."""

def check(
    text: str, file: str, overrides: Sequence[tuple[str, str]], conditions: Sequence[str] | None = None
) -> ScenarioInfo:
    """Parse and validate a scenario, and conditions on its run, without running it."""

def analyze(
    captures: Sequence[tuple[str | PathLike[str], bytes | None]],
    series: bool = False,
    max_flows: int | None = None,
    progress: Callable[[int], object] | None = None,
    live: Callable[[str], object] | None = None,
) -> str:
    """Analyse one capture or two, files, "-" or bytes under a name; one JSON document, and of what goes on many."""

def run(job: Job) -> Run:
    """Run one scenario."""

def identities(jobs: Sequence[Job], threads: int) -> list[bytes]:
    """Their identities, in the order of the jobs; scenarios are read in threads, without the interpreter lock."""

def run_many(
    jobs: Sequence[Job],
    threads: int,
    progress: Callable[[int, int], object] | None = None,
    keep: Callable[[int, Run], object] | None = None,
) -> list[object]:
    """Run jobs in threads, without the interpreter lock; results are in the order of the jobs.

    They are runs, or what `keep` gives for each job's number and run, called in the calling thread as runs end.
    """

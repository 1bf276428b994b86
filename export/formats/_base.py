"""Definition of an export format: name, description, columns, and conversion of a trajectory to rows."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator, PositiveInt

from trajsmith.export.columns import Columns
from trajsmith.records import EnvironmentSpec, FrozenModel, JsonObject, Registry, Task, TaskHeader, Trajectory, Verdict


class FormatSettings(FrozenModel):
    """Settings of the export formats."""

    window: PositiveInt | None = None
    """Most recent assistant turns that a row keeps of its history; None is the format's own default."""


@dataclass(frozen=True)
class ExportItem:
    """One accepted trajectory with all that a row may need."""

    head: Task | TaskHeader
    trajectory: Trajectory
    verdict: Verdict
    spec: EnvironmentSpec
    row: JsonObject
    """The row of the main dataset; formats reshape it, so that what it refuses is refused everywhere."""
    split: str
    state: Callable[[str], JsonObject]
    """Gives the initial state of a hash."""
    rejected: tuple[Trajectory, Verdict] | None = None
    """For formats that compare: a rejected play of the same task, with its verdict."""

    @property
    def task(self) -> Task:
        """The whole task."""
        return self.head.whole()


Rows = Callable[[ExportItem, FormatSettings], Iterable[JsonObject]]
Files = Callable[[Collection[str]], dict[str, str]]


def _no_files(splits: Collection[str]) -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Format:
    """One format."""

    about: str
    """One line: who reads it."""
    rows: Rows
    """Gives the rows of one item, or raises `RecordDropped`."""
    columns: Columns | None = field(default_factory=dict)
    """Columns of Parquet files; None writes JSON Lines."""
    per_task: bool = False
    """True if all accepted trajectories of a task give the same row, so that one is enough."""
    compares: bool = False
    """True if a row compares an accepted play with a rejected one of the same task: items have `rejected`."""
    files: Files = _no_files
    """Files beside the data, by name, given the splits."""


FORMATS: Registry[Format] = Registry("formats", "trajsmith.export.formats")
FormatName = Annotated[str, AfterValidator(FORMATS.check_name)]

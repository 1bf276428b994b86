"""What a format is: a name, one line about it, its columns, and how one accepted trajectory becomes rows."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from pydantic import PositiveInt

from export.columns import Columns
from trajectory import EnvironmentSpec, Frozen, JsonObject, Task, TaskHead, Trajectory, Verdict


class FormatSettings(Frozen):
    """What formats can be told."""

    window: PositiveInt | None = None
    """Most recent assistant turns that a row keeps of its history; None is the format's own default."""


@dataclass(frozen=True)
class Item:
    """One accepted trajectory with all that a row may need."""

    head: Task | TaskHead
    trajectory: Trajectory
    verdict: Verdict
    spec: EnvironmentSpec
    row: JsonObject
    """The row of the main dataset; formats reshape it, so that what it refuses is refused everywhere."""
    split: str
    state: Callable[[str], JsonObject]
    """Gives the initial state of a hash."""

    @property
    def task(self) -> Task:
        """The whole task."""
        return self.head.whole()


Rows = Callable[[Item, FormatSettings], Iterable[JsonObject]]
Files = Callable[[Collection[str]], dict[str, str]]


def _no_files(splits: Collection[str]) -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Format:
    """One format; a module of this package that holds one as `FORMAT` is a format."""

    name: str
    about: str
    """One line: who reads it."""
    rows: Rows
    """Gives the rows of one item, or raises `Dropped`."""
    columns: Columns | None = field(default_factory=dict)
    """Columns of Parquet files; None writes JSON Lines."""
    per_task: bool = False
    """True if all accepted trajectories of a task give the same row, so that one is enough."""
    files: Files = _no_files
    """Files beside the data, by name, given the splits."""

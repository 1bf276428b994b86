"""What holds in all initial states and must hold after every call as well."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from trajsmith.envcheck.facts.state_columns import StateColumns
from trajsmith.envcheck.findings import Severity
from trajsmith.envcheck.state_shape import Key
from trajsmith.envcheck.state_view import StateRowChange, View
from trajsmith.records import FrozenModel


@dataclass(frozen=True, slots=True)
class BrokenFact:
    """A fact that a row breaks."""

    where: str
    """The row, for people."""
    seen: str
    expected: str


class Fact(FrozenModel):
    """One relation between values of the state. Subclasses mine themselves and say what breaks them."""

    CHECK: ClassVar[str]
    """The check that reports it."""
    SEVERITY: ClassVar[Severity] = "warning"
    FIRM: ClassVar[bool] = True
    """False if a few initial states may keep a fact of this kind by chance; then it counts only if many do."""

    @classmethod
    @abstractmethod
    def mine(cls, data: StateColumns) -> Iterable[Self]:
        """All facts of this kind that hold in every initial state."""

    @abstractmethod
    def touched(self, changes: Sequence[StateRowChange]) -> bool:
        """Return True if one of these changes could break the fact."""

    @abstractmethod
    def broken(self, before: View, after: View, changes: Sequence[StateRowChange]) -> BrokenFact | None:
        """The first row that keeps it before a call and breaks it afterwards."""

    @abstractmethod
    def text(self) -> str:
        """The fact in plain words."""


def format_row_name(relation: str, key: Key) -> str:
    """Return the name of a row in findings, such as orders[W10012]."""
    return f"{relation or 'state'}[{'/'.join(key)}]"


def shorten_value(value: Any) -> str:
    """A value for people."""
    import orjson

    text = orjson.dumps(value).decode() if not isinstance(value, str) else f'"{value}"'
    return text if len(text) <= 80 else text[:77] + "..."


def find_changed_rows(
    changes: Sequence[StateRowChange], relation: str, columns: Iterable[str] = ()
) -> list[StateRowChange]:
    """Rows of a relation that are there after the call and are new or differ in one of the columns."""
    wanted = set(columns)
    return [
        change
        for change in changes
        if change.relation == relation
        and change.after is not None
        and (change.before is None or not wanted or not wanted.isdisjoint(change.fields))
    ]

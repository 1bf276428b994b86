"""What holds in all initial states and must hold after every call as well."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from envgen.doctor.case import Severity
from envgen.doctor.facts.data import Data
from envgen.doctor.shape import Key
from envgen.doctor.view import Change, View
from trajectory import Frozen


@dataclass(frozen=True, slots=True)
class Broken:
    """A fact that a row breaks."""

    where: str
    """The row, for people."""
    seen: str
    expected: str


class Fact(Frozen):
    """One relation between values of the state. Subclasses mine themselves and say what breaks them."""

    CHECK: ClassVar[str]
    """The check that reports it."""
    SEVERITY: ClassVar[Severity] = "warning"
    FIRM: ClassVar[bool] = True
    """False if a few initial states may keep a fact of this kind by chance; then it counts only if many do."""

    @classmethod
    @abstractmethod
    def mine(cls, data: Data) -> Iterable[Self]:
        """All facts of this kind that hold in every initial state."""

    @abstractmethod
    def touched(self, changes: Sequence[Change]) -> bool:
        """True if one of these changes could break it."""

    @abstractmethod
    def broken(self, before: View, after: View, changes: Sequence[Change]) -> Broken | None:
        """The first row that keeps it before a call and breaks it afterwards."""

    @abstractmethod
    def text(self) -> str:
        """The fact in plain words."""


def row_name(relation: str, key: Key) -> str:
    """How a row is called in findings: orders[W10012]."""
    return f"{relation or 'state'}[{'/'.join(key)}]"


def short(value: Any) -> str:
    """A value for people."""
    import orjson

    text = orjson.dumps(value).decode() if not isinstance(value, str) else f'"{value}"'
    return text if len(text) <= 80 else text[:77] + "..."


def changed_rows(changes: Sequence[Change], relation: str, columns: Iterable[str] = ()) -> list[Change]:
    """Rows of a relation that are there after the call and are new or differ in one of the columns."""
    wanted = set(columns)
    return [
        change
        for change in changes
        if change.relation == relation
        and change.after is not None
        and (change.before is None or not wanted or not wanted.isdisjoint(change.fields))
    ]

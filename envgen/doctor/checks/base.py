"""What a check is: it looks for suspicious cases, and judges a case by playing it."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from envgen.doctor.case import Case, Evidence, Severity
from trajectory import ToolSpec

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam


@dataclass(frozen=True)
class Suspicion:
    """A case that may show a fault; it becomes a finding if the check's judgement confirms it."""

    tool: str | None
    topic: str
    """Tells the faults of one check on one tool apart."""
    message: str
    case: Case | None
    evidence: Evidence | None = None
    """What was seen, where no case can be played again."""
    severity: Severity | None = None
    """In place of the check's own."""


class Check(ABC):
    """One statement about good environments, and how to find where it does not hold."""

    name: ClassVar[str]
    about: ClassVar[str]
    """The statement, in plain words."""
    severity: ClassVar[Severity] = "error"
    per_tool: ClassVar[bool] = True
    """False if it says something about the environment as a whole."""
    tries: ClassVar[int] = 3
    """Cases of one topic that are judged until one shows the fault."""

    def skip(self, exam: "Exam") -> str:
        """Why it cannot be checked on this environment; empty if it can."""
        return ""

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        """True if the check had something to look at on a tool; only then it counts in the score."""
        return bool(exam.explored.by_tool.get(tool.name))

    @abstractmethod
    def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        """Find suspicious cases."""

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        """Play a case; what it shows, or None if it shows nothing wrong."""
        return None

    def shrinkable(self, case: Case) -> bool:
        """True if steps may be left out of a case and arguments made simpler."""
        return True

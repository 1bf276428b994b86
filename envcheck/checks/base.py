"""Base class of checks: find suspicious cases, and judge a case by running it."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from trajsmith.envcheck.findings import CaseEvidence, CheckCase, Severity
from trajsmith.records import ToolSpec

if TYPE_CHECKING:
    from trajsmith.envcheck.check_session import CheckSession


@dataclass(frozen=True)
class Suspicion:
    """A case that may show a fault; it becomes a finding if the check's judgement confirms it."""

    tool: str | None
    topic: str
    """Tells the faults of one check on one tool apart."""
    message: str
    case: CheckCase | None
    evidence: CaseEvidence | None = None
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

    def skip_reason(self, check_session: "CheckSession") -> str:
        """Why it cannot be checked on this environment; empty if it can."""
        return ""

    def is_applicable(self, check_session: "CheckSession", tool: ToolSpec) -> bool:
        """Return True if the check had data about a tool; only then it counts in the score."""
        return bool(check_session.explored.by_tool.get(tool.name))

    @abstractmethod
    def look(self, check_session: "CheckSession") -> AsyncIterator[Suspicion]:
        """Find suspicious cases."""

    async def judge(self, check_session: "CheckSession", case: CheckCase) -> CaseEvidence | None:
        """Play a case; what it shows, or None if it shows nothing wrong."""
        return None

    def is_shrinkable(self, case: CheckCase) -> bool:
        """Return True if steps may be dropped from a case and arguments simplified."""
        return True

"""Base classes of checks: find suspicious cases, and judge a case by running it."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import ClassVar

from trajsmith.envcheck.case_runner import ObservedCall
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.findings import CaseEvidence, CheckCase, Severity
from trajsmith.records import JsonObject, ToolSpec


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

    def skip_reason(self, check_session: CheckSession) -> str:
        """Why it cannot be checked on this environment; empty if it can."""
        return ""

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        """Return True if the check had data about a tool; only then it counts in the score."""
        return bool(check_session.explored.by_tool.get(tool.name))

    @abstractmethod
    def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        """Find suspicious cases."""

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        """Play a case; what it shows, or None if it shows nothing wrong."""
        return None

    def is_shrinkable(self, case: CheckCase) -> bool:
        """Return True if steps may be dropped from a case and arguments simplified."""
        return True


class CallCheck(Check):
    """A check that can judge one call by itself."""

    @abstractmethod
    def inspect_call(self, check_session: CheckSession, seen: ObservedCall, about: JsonObject) -> CaseEvidence | None:
        """Return the fault of one call, or None."""

    def list_topics(self, check_session: CheckSession, seen: ObservedCall) -> Iterator[tuple[str, str, JsonObject]]:
        """Yield (topic, message, data for `see`) for each suspicion in a call."""
        yield "", "", {}

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for seen in check_session.explored.observations:
            for topic, message, about in self.list_topics(check_session, seen):
                if self.inspect_call(check_session, seen, about) is not None:
                    yield Suspicion(seen.tool, topic, message, seen.case(about))

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or not case.steps or step_results[-1].outcome.step != case.steps[-1]:
            return None
        return self.inspect_call(check_session, step_results[-1], case.about)

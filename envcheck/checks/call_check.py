"""Base of checks that judge single calls."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Protocol

from trajsmith.envcheck.case_runner import CallOutcome
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.findings import CaseEvidence, CheckCase
from trajsmith.envcheck.state_view import StateRowChange, View
from trajsmith.records import JsonObject

if TYPE_CHECKING:
    from trajsmith.envcheck.check_session import CheckSession


class ObservedCall(Protocol):
    """A call with the states around it: one of the exploration, or one that was played again."""

    @property
    def outcome(self) -> CallOutcome: ...

    @property
    def before(self) -> View: ...

    @property
    def after(self) -> View: ...

    @property
    def changes(self) -> list[StateRowChange]: ...

    @property
    def changed(self) -> bool: ...


class CallCheck(Check):
    """A check that can judge one call by itself."""

    @abstractmethod
    def inspect_call(self, check_session: "CheckSession", seen: ObservedCall, about: JsonObject) -> CaseEvidence | None:
        """Return the fault of one call, or None."""

    def list_topics(self, check_session: "CheckSession", seen: ObservedCall) -> Iterator[tuple[str, str, JsonObject]]:
        """Yield (topic, message, data for `see`) for each suspicion in a call."""
        yield "", "", {}

    async def look(self, check_session: "CheckSession") -> AsyncIterator[Suspicion]:
        for seen in check_session.explored.observations:
            for topic, message, about in self.list_topics(check_session, seen):
                if self.inspect_call(check_session, seen, about) is not None:
                    yield Suspicion(seen.tool, topic, message, seen.case(about))

    async def judge(self, check_session: "CheckSession", case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or not case.steps or step_results[-1].outcome.step != case.steps[-1]:
            return None
        return self.inspect_call(check_session, step_results[-1], case.about)

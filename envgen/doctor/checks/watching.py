"""Checks that look at single calls: each call that was made is one chance to see a fault."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Protocol

from envgen.doctor.case import Case, Evidence
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.lab import Outcome
from envgen.doctor.view import Change, View
from trajectory import JsonObject

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam


class Seen(Protocol):
    """A call with the states around it: one of the exploration, or one that was played again."""

    @property
    def outcome(self) -> Outcome: ...

    @property
    def before(self) -> View: ...

    @property
    def after(self) -> View: ...

    @property
    def changes(self) -> list[Change]: ...

    @property
    def changed(self) -> bool: ...


class CallCheck(Check):
    """A check that can judge one call by itself."""

    @abstractmethod
    def see(self, exam: "Exam", seen: Seen, about: JsonObject) -> Evidence | None:
        """What is wrong with a call, or None."""

    def topics(self, exam: "Exam", seen: Seen) -> Iterator[tuple[str, str, JsonObject]]:
        """What to look at in a call: topic, message, and what `see` must know; nothing if it is not its business."""
        yield "", "", {}

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for seen in exam.explored.observations:
            for topic, message, about in self.topics(exam, seen):
                if self.see(exam, seen, about) is not None:
                    yield Suspicion(seen.tool, topic, message, seen.case(about))

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or not case.steps or shots[-1].outcome.step != case.steps[-1]:
            return None
        return self.see(exam, shots[-1], case.about)

"""What is new does not take the place of something else."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, ClassVar

from envgen.doctor.case import Case, Evidence
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.checks.watching import Seen
from envgen.doctor.facts.fact import row_name, short
from envgen.doctor.view import Change
from trajectory import ToolSpec

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam

ENOUGH = 2
"""Calls of a tool that have made a row before it counts as one that makes rows."""


class Overwrites(Check):
    """A tool that makes something makes it beside what is there."""

    name: ClassVar[str] = "overwrites"
    about: ClassVar[str] = "what a tool makes does not take the place of something else"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return bool(self._makes(exam, tool.name))

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            for relation in self._makes(exam, tool.name):
                for seen in exam.explored.succeeded(tool.name):
                    if seen.changed and _replaced(exam, seen, relation):
                        message = f"{tool.name} puts something new in the place of another row of {relation}"
                        yield Suspicion(tool.name, relation, message, seen.case({"relation": relation}))

    def _makes(self, exam: "Exam", tool: str) -> list[str]:
        """Relations that a tool makes rows of."""
        made: dict[str, int] = {}
        for seen in exam.explored.succeeded(tool):
            for relation in (
                {change.relation for change in seen.changes if change.before is None} if seen.changed else ()
            ):
                made[relation] = made.get(relation, 0) + 1
        return [
            relation
            for relation, count in made.items()
            if count >= ENOUGH and relation.rpartition(".")[0] not in made.keys() - {""}
        ]

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        shots = await exam.lab.run(case)
        if not shots or not shots[-1].outcome.ok or shots[-1].outcome.step != case.steps[-1]:
            return None
        change = _replaced(exam, shots[-1], case.about["relation"])
        if change is None:
            return None
        where = row_name(change.relation, change.key)
        told = [f"{name} from {short(old)} to {short(new)}" for name, (old, new) in change.fields.items()]
        return Evidence(seen=f"{where} went {', '.join(told[:3])}", expected=f"a new row, and {where} as it was")


def _replaced(exam: "Exam", seen: Seen, relation: str) -> Change | None:
    """A row that was there and points elsewhere now, although the call has made none."""
    rows = [change for change in seen.changes if change.relation == relation]
    if any(change.before is None for change in rows):
        return None
    for change in rows:
        pointing = [name for name in change.fields if exam.data.reference(relation, name) is not None]
        named = [name for name, value in (change.before or {}).items() if name in pointing and value is not None]
        if change.after is not None and named and len(change.fields) > 1:
            return change
    return None

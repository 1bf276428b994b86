"""New rows do not replace existing ones."""

from collections.abc import AsyncIterator
from typing import ClassVar

from trajsmith.envcheck.case_runner import ObservedCall
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.facts.base import format_row_name, shorten_value
from trajsmith.envcheck.findings import CaseEvidence, CheckCase
from trajsmith.envcheck.state_view import StateRowChange
from trajsmith.records import ToolSpec

ENOUGH = 2
"""Calls of a tool that have made a row before it counts as one that makes rows."""


class Overwrites(Check):
    """A tool that makes something makes it beside what is there."""

    name: ClassVar[str] = "overwrites"
    about: ClassVar[str] = "what a tool makes does not take the place of something else"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return bool(self._makes(check_session, tool.name))

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            for relation in self._makes(check_session, tool.name):
                for seen in check_session.explored.succeeded(tool.name):
                    if seen.changed and _replaced(check_session, seen, relation):
                        message = f"{tool.name} puts something new in the place of another row of {relation}"
                        yield Suspicion(tool.name, relation, message, seen.case({"relation": relation}))

    def _makes(self, check_session: CheckSession, tool: str) -> list[str]:
        """Relations that a tool makes rows of."""
        counts: dict[str, int] = {}
        for seen in check_session.explored.succeeded(tool):
            for relation in (
                {change.relation for change in seen.changes if change.before is None} if seen.changed else ()
            ):
                counts[relation] = counts.get(relation, 0) + 1
        return [
            relation
            for relation, count in counts.items()
            if count >= ENOUGH and relation.rpartition(".")[0] not in counts.keys() - {""}
        ]

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        step_results = await check_session.runner.run(case)
        if not step_results or not step_results[-1].outcome.ok or step_results[-1].outcome.step != case.steps[-1]:
            return None
        change = _replaced(check_session, step_results[-1], case.about["relation"])
        if change is None:
            return None
        where = format_row_name(change.relation, change.key)
        differences = [
            f"{name} from {shorten_value(old)} to {shorten_value(new)}" for name, (old, new) in change.fields.items()
        ]
        return CaseEvidence(
            seen=f"{where} went {', '.join(differences[:3])}", expected=f"a new row, and {where} as it was"
        )


def _replaced(check_session: CheckSession, seen: ObservedCall, relation: str) -> StateRowChange | None:
    """A row that was there and points elsewhere now, although the call has made none."""
    rows = [change for change in seen.changes if change.relation == relation]
    if any(change.before is None for change in rows):
        return None
    for change in rows:
        pointing = [name for name in change.fields if check_session.data.reference(relation, name) is not None]
        named = [name for name, value in (change.before or {}).items() if name in pointing and value is not None]
        if change.after is not None and named and len(change.fields) > 1:
            return change
    return None

"""Deadlines: an action is possible until its last day and not after it; future dates are not past."""

import re
from collections.abc import AsyncIterator, Iterator
from typing import ClassVar

from trajsmith.envcheck.case_runner import ObservedCall, execute_step
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import CallCheck, Check, Suspicion
from trajsmith.envcheck.checks.boundaries import PER_KIND, normalize_refusal
from trajsmith.envcheck.checks.call_contract import MANY_STATES
from trajsmith.envcheck.facts.base import shorten_value
from trajsmith.envcheck.facts.state_columns import is_day, is_moment
from trajsmith.envcheck.findings import CaseEvidence, CheckCase, Severity
from trajsmith.envcheck.state_clock import find_clock, read_current_time, set_clock_day
from trajsmith.grounding import split_name
from trajsmith.phrasing import parse_datetime, shift_within_calendar
from trajsmith.records import EnvironmentFault, JsonObject, ToolSpec

_LAST = re.compile(r"\b(?:until|ended on|ends on|expired on|last day was|closed on) (?P<day>\d{4}-\d\d-\d\d)")
NO_CLOCK = "the state has no clock of its own"
NO_RESTORE = "this kind of environment cannot go back to a saved state"
_COMING = frozenset({"until", "expire", "expiry", "due", "deadline", "end", "collect", "first", "visit", "arrival"})


def explain_missing_clock(check_session: CheckSession) -> bool:
    return not any(find_clock(view)[0] for view in check_session.data.views)


class LastDay(Check):
    """Actions with a stated last day are possible on that day and not on the next."""

    name: ClassVar[str] = "last_day"
    about: ClassVar[str] = "where a refusal says until when something was possible, it was so on that very day"
    severity: ClassVar[Severity] = "warning"

    def skip_reason(self, check_session: CheckSession) -> str:
        return (
            NO_CLOCK if explain_missing_clock(check_session) else "" if check_session.spec.can_restore else NO_RESTORE
        )

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return any(_LAST.search(seen.outcome.refusal or "") for seen in check_session.explored.by_tool[tool.name])

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            kinds: dict[str, int] = {}
            for seen in check_session.explored.by_tool[tool.name]:
                reason = seen.outcome.refusal or ""
                kind = normalize_refusal(reason)
                if not _LAST.search(reason) or kinds.get(kind, 0) >= PER_KIND:
                    continue
                kinds[kind] = kinds.get(kind, 0) + 1
                for inside in (True, False):
                    case = seen.case({"inside": inside})
                    if await self.judge(check_session, case) is not None:
                        fault = "refuses on the last day" if inside else "succeeds after the last day"
                        message = f"{tool.name} {fault} that it states ({shorten_value(reason)})"
                        yield Suspicion(tool.name, f"{kind}:{inside}", message, case)

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        """Play a refused call, and then the same call with the state's clock at the day that the refusal states."""
        step_results = await check_session.runner.run(case)
        reason = (
            step_results[-1].outcome.refusal
            if step_results and step_results[-1].outcome.step == case.steps[-1]
            else None
        )
        stated = _LAST.search(reason or "")
        last = parse_datetime(stated["day"]) if stated is not None else None
        if reason is None or stated is None or last is None:
            return None
        view = step_results[-1].before
        clock, today = find_clock(view)[0], read_current_time(view).date()
        if not clock or today <= last or stated["day"] in str(case.steps[-1].arguments):
            return None
        inside = bool(case.about["inside"])
        day = last if inside else shift_within_calendar(last, 1)
        session = await check_session.source.open()
        try:
            await session.reset(set_clock_day(view.state, clock, day))
            outcome = await execute_step(session, case.steps[-1])
        except EnvironmentFault:
            return None
        finally:
            await session.close()
        refused = outcome.refusal is not None and normalize_refusal(outcome.refusal) == normalize_refusal(reason)
        if inside and refused:
            return CaseEvidence(
                seen=f"refused on {day}: {shorten_value(outcome.refusal)}", expected=f"possible on {last}"
            )
        if not inside and outcome.ok:
            return CaseEvidence(seen=f"success on {day}", expected=f"a refusal: {shorten_value(reason)}")
        return None


class PastDays(CallCheck):
    """Dates of future events do not lie in the past; what is over in initial states may be corrected."""

    name: ClassVar[str] = "past_days"
    about: ClassVar[str] = "a day on which something is to happen or end does not lie in the past"
    severity: ClassVar[Severity] = "warning"

    def skip_reason(self, check_session: CheckSession) -> str:
        return NO_CLOCK if explain_missing_clock(check_session) else ""

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        coming = any(_COMING & set(split_name(name)) for name in tool.parameters)
        return coming and any(seen.changed for seen in check_session.explored.succeeded(tool.name))

    def list_topics(self, check_session: CheckSession, seen: ObservedCall) -> Iterator[tuple[str, str, JsonObject]]:
        if not seen.outcome.ok or not seen.changed:
            return
        step = seen.outcome.step
        for name, value in step.arguments.items():
            if (is_day(value) or is_moment(value)) and _COMING & set(split_name(name)):
                yield name, f"{step.tool} takes a {name} that lies in the past", {"argument": name}

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        async for suspicion in super().look(check_session):
            if len(check_session.data.views) >= MANY_STATES:
                yield suspicion

    def inspect_call(self, check_session: CheckSession, seen: ObservedCall, about: JsonObject) -> CaseEvidence | None:
        value = seen.outcome.step.arguments.get(about["argument"])
        if not seen.outcome.ok or not seen.changed or not isinstance(value, str) or not find_clock(seen.before)[0]:
            return None
        today = read_current_time(seen.before).date()
        if value[:10] >= today.isoformat() or self._corrects(check_session, seen, about["argument"]):
            return None
        return CaseEvidence(
            seen=f"success with {shorten_value(value)}", expected=f"a refusal, as it is {today} in the state"
        )

    def _corrects(self, check_session: CheckSession, seen: ObservedCall, name: str) -> bool:
        """Return True if a row is changed that was there, and rows of its kind are over in initial states, too."""
        tables = {one.relation for one in seen.changes if one.before and one.after and name in one.fields}
        for view in check_session.data.views:
            today = read_current_time(view).date().isoformat()
            days = [row.get(name) for table in tables for row in view.rows(table).values()]
            if any(isinstance(day, str) and (is_day(day) or is_moment(day)) and day[:10] < today for day in days):
                return True
        return False

"""Days: what is over can no longer be done, and until then it can; what is to come does not lie in the past."""

import re
from collections.abc import AsyncIterator, Iterator
from datetime import date, timedelta
from typing import TYPE_CHECKING, ClassVar

from envgen.doctor.case import Case, Evidence, Severity
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.checks.boundaries import PER_KIND, form
from envgen.doctor.checks.calls import MANY_STATES
from envgen.doctor.checks.watching import CallCheck, Seen
from envgen.doctor.clock import at_day, clock_of, now_of
from envgen.doctor.facts.data import is_day, is_moment
from envgen.doctor.facts.fact import short
from envgen.doctor.lab import call
from grounding.names import words
from trajectory import EnvironmentFault, JsonObject, ToolSpec

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam

_LAST = re.compile(r"\b(?:until|ended on|ends on|expired on|last day was|closed on) (?P<day>\d{4}-\d\d-\d\d)")
NO_CLOCK = "the state has no clock of its own"
NO_RESTORE = "this kind of environment cannot go back to a saved state"
_COMING = frozenset({"until", "expire", "expiry", "due", "deadline", "end", "collect", "first", "visit", "arrival"})


def clock_missing(exam: "Exam") -> bool:
    return not any(clock_of(view)[0] for view in exam.data.views)


class LastDay(Check):
    """Where a refusal says until when it was possible, it was possible on that day and is not on the next."""

    name: ClassVar[str] = "last_day"
    about: ClassVar[str] = "where a refusal says until when something was possible, it was so on that very day"
    severity: ClassVar[Severity] = "warning"

    def skip(self, exam: "Exam") -> str:
        return NO_CLOCK if clock_missing(exam) else "" if exam.spec.can_restore else NO_RESTORE

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return any(_LAST.search(seen.outcome.refusal or "") for seen in exam.explored.by_tool[tool.name])

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            kinds: dict[str, int] = {}
            for seen in exam.explored.by_tool[tool.name]:
                reason = seen.outcome.refusal or ""
                kind = form(reason)
                if not _LAST.search(reason) or kinds.get(kind, 0) >= PER_KIND:
                    continue
                kinds[kind] = kinds.get(kind, 0) + 1
                for inside in (True, False):
                    case = seen.case({"inside": inside})
                    if await self.judge(exam, case) is not None:
                        what = "refuses on the last day" if inside else "succeeds after the last day"
                        message = f"{tool.name} {what} that it states ({short(reason)})"
                        yield Suspicion(tool.name, f"{kind}:{inside}", message, case)

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        """Play a refused call, and then the same call with the state's clock at the day that the refusal states."""
        shots = await exam.lab.run(case)
        reason = shots[-1].outcome.refusal if shots and shots[-1].outcome.step == case.steps[-1] else None
        stated = _LAST.search(reason or "")
        if reason is None or stated is None:
            return None
        view, last = shots[-1].before, date.fromisoformat(stated["day"])
        clock, today = clock_of(view)[0], now_of(view).date()
        if not clock or today <= last or stated["day"] in str(case.steps[-1].arguments):
            return None
        inside = bool(case.about["inside"])
        day = last if inside else last + timedelta(days=1)
        session = await exam.source.open()
        try:
            await session.reset(at_day(view.state, clock, day))
            outcome = await call(session, case.steps[-1])
        except EnvironmentFault:
            return None
        finally:
            await session.close()
        refused = outcome.refusal is not None and form(outcome.refusal) == form(reason)
        if inside and refused:
            return Evidence(seen=f"refused on {day}: {short(outcome.refusal)}", expected=f"possible on {last}")
        if not inside and outcome.ok:
            return Evidence(seen=f"success on {day}", expected=f"a refusal: {short(reason)}")
        return None


class PastDays(CallCheck):
    """What is to come does not lie in the past."""

    name: ClassVar[str] = "past_days"
    about: ClassVar[str] = "a day on which something is to happen or end does not lie in the past"
    severity: ClassVar[Severity] = "warning"

    def skip(self, exam: "Exam") -> str:
        return NO_CLOCK if clock_missing(exam) else ""

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        coming = any(_COMING & set(words(name)) for name in tool.parameters)
        return coming and any(seen.changed for seen in exam.explored.succeeded(tool.name))

    def topics(self, exam: "Exam", seen: Seen) -> Iterator[tuple[str, str, JsonObject]]:
        if not seen.outcome.ok or not seen.changed:
            return
        step = seen.outcome.step
        for name, value in step.arguments.items():
            if (is_day(value) or is_moment(value)) and _COMING & set(words(name)):
                yield name, f"{step.tool} takes a {name} that lies in the past", {"argument": name}

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        async for suspicion in super().look(exam):
            if len(exam.data.views) >= MANY_STATES:
                yield suspicion

    def see(self, exam: "Exam", seen: Seen, about: JsonObject) -> Evidence | None:
        value = seen.outcome.step.arguments.get(about["argument"])
        if not seen.outcome.ok or not seen.changed or not isinstance(value, str) or not clock_of(seen.before)[0]:
            return None
        today = now_of(seen.before).date()
        if value[:10] >= today.isoformat():
            return None
        return Evidence(seen=f"success with {short(value)}", expected=f"a refusal, as it is {today} in the state")

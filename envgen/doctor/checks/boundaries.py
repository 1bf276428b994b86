"""Limits that refusals state are kept exactly: what lies at the limit passes, what lies beyond it does not."""

import re
from collections.abc import AsyncIterator, Iterator
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from envgen.doctor.case import Case, Evidence, Severity, Step
from envgen.doctor.checks.base import Check, Suspicion
from envgen.doctor.clock import now_of
from envgen.doctor.explore import Observation
from envgen.doctor.facts.data import is_day, is_number
from envgen.doctor.facts.fact import short
from envgen.doctor.lab import Outcome
from envgen.doctor.numbers import limits
from envgen.doctor.texts import within
from trajectory import JsonObject, ToolSpec

if TYPE_CHECKING:
    from envgen.doctor.exam import Exam

PER_KIND = 3
"""Refusals of one kind that are followed up, per tool."""
_TOMORROW = re.compile(r"\b(from tomorrow|tomorrow at the earliest|not before tomorrow)\b", re.IGNORECASE)
_PAST = re.compile(r"\b(must not lie in the past|cannot be in the past|is in the past|has passed)\b", re.IGNORECASE)
_WEEK = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun|work|week)days?|weekend", re.IGNORECASE)
"""Says that it depends on the day of the week as well."""
_TIME = re.compile(r"([01]?\d|2[0-3]):[0-5]\d")
_DIGITS = re.compile(r"[A-Z]*\d[\d.,:-]*\w*")


class Boundaries(Check):
    """A limit that a refusal states is where the refusals begin."""

    name: ClassVar[str] = "boundaries"
    about: ClassVar[str] = "a limit that a refusal states is exactly where the refusals begin"
    severity: ClassVar[Severity] = "warning"

    def applies(self, exam: "Exam", tool: ToolSpec) -> bool:
        return any(seen.outcome.refusal for seen in exam.explored.by_tool[tool.name])

    async def look(self, exam: "Exam") -> AsyncIterator[Suspicion]:
        for tool in exam.spec.tools:
            kinds: dict[str, int] = {}
            for seen in list(exam.explored.by_tool[tool.name]):
                reason = seen.outcome.refusal
                if not reason or seen.outcome.schema_refusal:
                    continue
                kind = form(reason)
                if kinds.get(kind, 0) >= PER_KIND:
                    continue
                edges = list(_edges(exam, seen))
                kinds[kind] = kinds.get(kind, 0) + bool(edges)
                for about in edges:
                    case = seen.case(about)
                    if await self.judge(exam, case) is not None:
                        what = (
                            "refuses what lies at its limit"
                            if about["inside"]
                            else "accepts what lies beyond its limit"
                        )
                        message = f"{tool.name} {what} ({short(reason)})"
                        yield Suspicion(tool.name, f"{about['name']}:{kind}", message, case)

    async def judge(self, exam: "Exam", case: Case) -> Evidence | None:
        """Play a refused call, and then the same call at the edge that the refusal states."""
        shots = await exam.lab.run(case)
        if not shots or shots[-1].outcome.refusal is None or shots[-1].outcome.step != case.steps[-1]:
            return None
        reason = shots[-1].outcome.refusal
        about, step = case.about, case.steps[-1]
        if form(reason) != about["form"] or short(about["value"]) == short(step.arguments.get(about["name"])):
            return None
        edge = step.model_copy(update={"arguments": {**step.arguments, about["name"]: about["value"]}})
        if not any(found == about for found in _edges_of(exam, step, shots[-1].outcome, case)):
            return None
        mark = await exam.lab.mark()
        evidence = _verdict(about, reason, await exam.lab.call(edge))
        if evidence is None or not about["inside"]:
            return evidence
        if about["deeper"] is None:
            return None
        await exam.lab.back(mark)
        deeper = step.model_copy(update={"arguments": {**step.arguments, about["name"]: about["deeper"]}})
        outcome = await exam.lab.call(deeper)
        matters = outcome.refusal is None or form(outcome.refusal) != form(reason)
        return evidence if matters and not outcome.schema_refusal else None

    def shrinkable(self, case: Case) -> bool:
        return len(case.steps) > 1


def form(reason: str) -> str:
    """A refusal without its names and numbers."""
    return _DIGITS.sub("#", reason)


def _verdict(about: JsonObject, reason: str, outcome: Outcome) -> Evidence | None:
    name, value = about["name"], short(about["value"])
    if about["inside"]:
        if outcome.refusal is None or form(outcome.refusal) != form(reason) or outcome.schema_refusal:
            return None
        if about["number"] and about["number"] not in outcome.refusal:
            return None  # the limit has moved with the value
        return Evidence(seen=f"{name} {value} is refused: {short(outcome.refusal)}", expected="the limit itself passes")
    if not outcome.ok:
        return None
    return Evidence(seen=f"{name} {value} succeeds", expected=f"a refusal: {short(reason)}")


def _edges(exam: "Exam", seen: Observation) -> Iterator[JsonObject]:
    yield from _edges_of(exam, seen.step, seen.outcome, seen.case())


def _edges_of(exam: "Exam", step: Step, outcome: Outcome, case: Case) -> Iterator[JsonObject]:
    """Values at and beyond the limits that a refusal states, for the arguments that lie beyond them."""
    reason = outcome.refusal or ""
    tool = exam.tools[step.tool]
    for name, value in step.arguments.items():
        schema = tool.parameters.get(name, {})
        if is_number(value):
            for inside, edge, number in _number_edges(reason, value):
                if within(edge, schema):
                    step_in = (edge - (1 if isinstance(value, int) else 0.01)) if value > edge else edge + 1
                    deeper = round(step_in, 2) if within(step_in, schema) and step_in > 0 else None
                    yield _about(name, edge, inside, reason, number, deeper)
        elif is_day(value) and not _beside_a_time(step) and not _WEEK.search(reason):
            today = now_of(exam.view_at(case.start)).date()
            for inside, day, number in _day_edges(reason, value, today):
                back = timedelta(days=1 if value > day else -1)
                deeper = (date.fromisoformat(day) - back).isoformat()
                yield _about(name, day, inside, reason, number, deeper)


def _beside_a_time(step: Step) -> bool:
    """True if a call has another day or a time of the day: then its moment, and not its day, may be what counts."""
    values = list(step.arguments.values())
    timed = any(isinstance(value, str) and _TIME.match(value) for value in values)
    return timed or sum(is_day(value) for value in values) != 1


def _about(name: str, value: Any, inside: bool, reason: str, number: str, deeper: Any) -> JsonObject:
    """What to try; `deeper` lies well inside the limit, to see whether the argument is what the refusal is about."""
    told = {"name": name, "value": value, "inside": inside, "form": form(reason)}
    return {**told, "number": number, "deeper": deeper}


def _number_edges(reason: str, value: float) -> Iterator[tuple[bool, Any, str]]:
    for limit in limits(reason):
        whole = isinstance(value, int) and float(limit.number).is_integer()
        edge: Any = int(limit.number) if whole or (isinstance(value, int)) else limit.number
        step = 1 if isinstance(value, int) else 0.01
        text = f"{limit.number:,.2f}" if f"{limit.number:,.2f}" in reason else f"{limit.number:g}"
        if limit.side == "upper" and value > limit.number:
            yield True, edge, text
            if value > limit.number + step:
                yield False, round(edge + step, 2), text
        elif limit.side == "lower" and value < limit.number:
            yield True, edge, text
            if value < limit.number - step:
                yield False, round(edge - step, 2), text


def _day_edges(reason: str, value: str, today: date) -> Iterator[tuple[bool, str, str]]:
    try:
        day = date.fromisoformat(value)
    except ValueError:
        return
    for limit in limits(reason):
        if not limit.days or limit.number > 400:
            continue
        last = today + timedelta(days=int(limit.number))
        if day > last:
            yield True, last.isoformat(), ""
            if day > last + timedelta(days=1):
                yield False, (last + timedelta(days=1)).isoformat(), ""
    if _TOMORROW.search(reason) and day <= today:
        yield True, (today + timedelta(days=1)).isoformat(), ""
        if day < today:
            yield False, today.isoformat(), ""
    elif _PAST.search(reason) and day < today:
        yield True, today.isoformat(), ""
        if day < today - timedelta(days=1):
            yield False, (today - timedelta(days=1)).isoformat(), ""

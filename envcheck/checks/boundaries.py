"""Limits that refusals state are kept exactly: what lies at the limit passes, what lies beyond it does not."""

import re
from collections.abc import AsyncIterator, Iterator
from datetime import date
from typing import Any, ClassVar

from trajsmith.envcheck.case_runner import CallOutcome
from trajsmith.envcheck.check_session import CheckSession
from trajsmith.envcheck.checks.base import Check, Suspicion
from trajsmith.envcheck.exploration import Observation
from trajsmith.envcheck.facts.base import shorten_value
from trajsmith.envcheck.facts.state_columns import is_day, is_number
from trajsmith.envcheck.findings import CaseEvidence, CaseStep, CheckCase, Severity
from trajsmith.envcheck.state_clock import read_current_time
from trajsmith.envcheck.stated_numbers import find_upper_limits
from trajsmith.grounding import is_within_bounds
from trajsmith.phrasing import shift_within_calendar
from trajsmith.records import JsonObject, ToolSpec

PER_KIND = 3
"""Refusals of one kind that are followed up, per tool."""
_TOMORROW = re.compile(r"\b(from tomorrow|tomorrow at the earliest|not before tomorrow)\b", re.IGNORECASE)
_PAST = re.compile(r"\b(must not lie in the past|cannot be in the past|is in the past|has passed)\b", re.IGNORECASE)
_WEEK = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun|work|week)days?|weekend", re.IGNORECASE)
"""Says that it depends on the day of the week as well."""
_TIME = re.compile(r"([01]?\d|2[0-3]):[0-5]\d")
_DIGITS = re.compile(r"[A-Z]{0,30}\d[\d.,:-]*\w*")


class Boundaries(Check):
    """A limit that a refusal states is where the refusals begin."""

    name: ClassVar[str] = "boundaries"
    about: ClassVar[str] = "a limit that a refusal states is exactly where the refusals begin"
    severity: ClassVar[Severity] = "warning"

    def is_applicable(self, check_session: CheckSession, tool: ToolSpec) -> bool:
        return any(seen.outcome.refusal for seen in check_session.explored.by_tool[tool.name])

    async def look(self, check_session: CheckSession) -> AsyncIterator[Suspicion]:
        for tool in check_session.spec.tools:
            kinds: dict[str, int] = {}
            for seen in list(check_session.explored.by_tool[tool.name]):
                reason = seen.outcome.refusal
                if not reason or seen.outcome.schema_refusal:
                    continue
                kind = normalize_refusal(reason)
                if kinds.get(kind, 0) >= PER_KIND:
                    continue
                edges = list(_edges(check_session, seen))
                kinds[kind] = kinds.get(kind, 0) + bool(edges)
                for about in edges:
                    case = seen.case(about)
                    if await self.judge(check_session, case) is not None:
                        fault = (
                            "refuses what lies at its limit"
                            if about["inside"]
                            else "accepts what lies beyond its limit"
                        )
                        message = f"{tool.name} {fault} ({shorten_value(reason)})"
                        yield Suspicion(tool.name, f"{about['name']}:{kind}", message, case)

    async def judge(self, check_session: CheckSession, case: CheckCase) -> CaseEvidence | None:
        """Play a refused call, and then the same call at the edge that the refusal states."""
        step_results = await check_session.runner.run(case)
        if (
            not step_results
            or step_results[-1].outcome.refusal is None
            or step_results[-1].outcome.step != case.steps[-1]
        ):
            return None
        reason = step_results[-1].outcome.refusal
        about, step = case.about, case.steps[-1]
        if normalize_refusal(reason) != about["form"] or shorten_value(about["value"]) == shorten_value(
            step.arguments.get(about["name"])
        ):
            return None
        edge = step.model_copy(update={"arguments": {**step.arguments, about["name"]: about["value"]}})
        if not any(candidate == about for candidate in _edges_of(check_session, step, step_results[-1].outcome, case)):
            return None
        mark = await check_session.runner.mark()
        evidence = _verdict(about, reason, await check_session.runner.call(edge))
        if evidence is None or not about["inside"]:
            return evidence
        if about["deeper"] is None:
            return None
        await check_session.runner.restore(mark)
        deeper = step.model_copy(update={"arguments": {**step.arguments, about["name"]: about["deeper"]}})
        outcome = await check_session.runner.call(deeper)
        matters = outcome.refusal is None or normalize_refusal(outcome.refusal) != normalize_refusal(reason)
        return evidence if matters and not outcome.schema_refusal else None

    def is_shrinkable(self, case: CheckCase) -> bool:
        return len(case.steps) > 1


def normalize_refusal(reason: str) -> str:
    """A refusal without its names and numbers."""
    return _DIGITS.sub("#", reason)


def _verdict(about: JsonObject, reason: str, outcome: CallOutcome) -> CaseEvidence | None:
    name, value = about["name"], shorten_value(about["value"])
    if about["inside"]:
        if (
            outcome.refusal is None
            or normalize_refusal(outcome.refusal) != normalize_refusal(reason)
            or outcome.schema_refusal
        ):
            return None
        if about["number"] and about["number"] not in outcome.refusal:
            return None  # the limit has moved with the value
        return CaseEvidence(
            seen=f"{name} {value} is refused: {shorten_value(outcome.refusal)}", expected="the limit itself passes"
        )
    if not outcome.ok:
        return None
    return CaseEvidence(seen=f"{name} {value} succeeds", expected=f"a refusal: {shorten_value(reason)}")


def _edges(check_session: CheckSession, seen: Observation) -> Iterator[JsonObject]:
    yield from _edges_of(check_session, seen.step, seen.outcome, seen.case())


def _edges_of(
    check_session: CheckSession, step: CaseStep, outcome: CallOutcome, case: CheckCase
) -> Iterator[JsonObject]:
    """Values at and beyond the limits that a refusal states, for the arguments that lie beyond them."""
    reason = outcome.refusal or ""
    tool = check_session.tools[step.tool]
    for name, value in step.arguments.items():
        schema = tool.parameters.get(name, {})
        if is_number(value):
            for inside, edge, number in _number_edges(reason, value):
                if is_within_bounds(edge, schema):
                    step_in = (edge - (1 if isinstance(value, int) else 0.01)) if value > edge else edge + 1
                    deeper = round(step_in, 2) if is_within_bounds(step_in, schema) and step_in > 0 else None
                    yield _boundary_trial(name, edge, inside, reason, number, deeper)
        elif is_day(value) and not _beside_a_time(step) and not _WEEK.search(reason):
            today = read_current_time(check_session.view_at(case.start)).date()
            for inside, day, number in _day_edges(reason, value, today):
                back = -1 if value > day else 1
                deeper = shift_within_calendar(date.fromisoformat(day), back).isoformat()
                yield _boundary_trial(name, day, inside, reason, number, deeper)


def _beside_a_time(step: CaseStep) -> bool:
    """Return True if a call has another date or time argument, so that the date-time may be what counts."""
    values = list(step.arguments.values())
    timed = any(isinstance(value, str) and _TIME.match(value) for value in values)
    return timed or sum(is_day(value) for value in values) != 1


def _boundary_trial(name: str, value: Any, inside: bool, reason: str, number: str, deeper: Any) -> JsonObject:
    """Return the boundary value to try; `deeper` lies well inside, to test if the argument causes the refusal."""
    trial = {"name": name, "value": value, "inside": inside, "form": normalize_refusal(reason)}
    return {**trial, "number": number, "deeper": deeper}


def _number_edges(reason: str, value: float) -> Iterator[tuple[bool, Any, str]]:
    for limit in find_upper_limits(reason):
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
    for limit in find_upper_limits(reason):
        if not limit.days or limit.number > 400:
            continue
        last = shift_within_calendar(today, int(limit.number))
        if day > last:
            yield True, last.isoformat(), ""
            if day > shift_within_calendar(last, 1):
                yield False, (shift_within_calendar(last, 1)).isoformat(), ""
    if _TOMORROW.search(reason) and day <= today:
        yield True, (shift_within_calendar(today, 1)).isoformat(), ""
        if day < today:
            yield False, today.isoformat(), ""
    elif _PAST.search(reason) and day < today:
        yield True, today.isoformat(), ""
        if day < shift_within_calendar(today, -1):
            yield False, (shift_within_calendar(today, -1)).isoformat(), ""

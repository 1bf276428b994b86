"""What can be done instead of a refused call: another value of an argument that may be another one, tried out."""

import re
from dataclasses import dataclass
from datetime import date, datetime

from trajsmith.grounding import find_values, list_input_fields
from trajsmith.phrasing import find_clock_date, shift_within_calendar
from trajsmith.querygen.vary._case import VariantCase, replace_arguments
from trajsmith.querygen.vary._omission import list_value_wordings
from trajsmith.querygen.vary._refusals import RefusedRequest, iterate_other_rows, read_day, restate
from trajsmith.records import FromOutput, FromUser, GoldCall, JsonObject, JsonValue, UserFact

_NUMBER = re.compile(r"(?<![\w.:-])\d[\d,]*(?:\.\d+)?(?![\w:-])")
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_TIME = re.compile(r"\b\d\d:\d\d\b")
NEAR_DAYS = (1, -1, 2, -2, 3)
FAR = 45
"""Days from the wanted day within which another last day may be offered."""
NEAR = 7
"""The same of the day on which something is to be: who wants to travel on 7 December does not go on 30 November."""
LAST_DAY = re.compile(r"until|expir|end|last|due", re.IGNORECASE)
"""Arguments that end something."""
_WEEKDAYS = re.compile(r"\b(mon|tues|wednes|thurs|fri|satur|sun|work|week)days?\b|\bMon\b|\bruns on\b", re.IGNORECASE)
"""Refusals that are about the day of the week: a day nearby will do."""


@dataclass(frozen=True)
class Alternative:
    """A call that succeeds where another one is refused.

    Attributes:
        call: The call.
        facts: What picks out its other value.
        values: Values by which an answer names it.
    """

    call: GoldCall
    facts: tuple[UserFact, ...]
    values: tuple[JsonValue, ...]


@dataclass(frozen=True)
class AlternativeResult:
    """The alternative, if there is one, and how many calls were tried."""

    alternative: Alternative | None
    tried: int


async def find_alternative(case: VariantCase, request: RefusedRequest) -> AlternativeResult:
    """Find a call like the refused one that succeeds, with the nearest other value that the refusal or a list shows."""
    start = case.spans[request.turn][0]
    refused, tried = request.calls[-1], 0
    session = await case.at(start)
    for call in request.calls[:-1]:
        await session.call(call.tool, call.arguments, call.actor)
    mark, before = await session.checkpoint(), await session.state_hash()
    for candidate in _list_candidates(case, request):
        if candidate.call.arguments == refused.arguments:
            continue
        tried += 1
        result = await session.call(candidate.call.tool, candidate.call.arguments)
        changed = await session.state_hash() != before
        await session.rollback(mark)
        if result.ok and changed:
            return AlternativeResult(candidate, tried)
    return AlternativeResult(None, tried)


def _list_candidates(case: VariantCase, request: RefusedRequest) -> list[Alternative]:
    call = request.calls[-1]
    declared = case.wording.tool(call.tool).alternatives
    names = sorted(declared, key=lambda name: name != request.argument)
    step = case.find_step(case.spans[request.turn][1] - 1)
    settled = step.settled if step is not None else ()
    names = [name for name in names if name not in settled]
    names += [
        name for name in call.arguments if name not in (*names, *settled) and not declared and name == request.argument
    ]
    fields = {field.path: field for field in list_input_fields(case.tools[call.tool])}
    candidates: list[Alternative] = []
    for name in names:
        source = call.provenance.get(name)
        if isinstance(source, FromOutput) and name in declared:
            for value, origin, fact in iterate_other_rows(case, call, name):
                other = replace_arguments(call, {name: (value, origin)})
                candidates.append(Alternative(other, (fact,), _list_row_values(case, origin, value, name)))
        elif isinstance(source, FromUser) and name in fields:
            choices = fields[name].choices if name in declared else []
            for value in choices or _read_values(
                call.arguments[name], request.refusal, read_today(case.state), FAR if LAST_DAY.search(name) else NEAR
            ):
                known = case.known[source.known]
                fact = restate(case, call.tool, known, value).model_copy(update={"key": f"{known.key}.instead"})
                other = replace_arguments(call, {name: (value, FromUser(known=fact.key))})
                wordings = list_value_wordings(case, other, fact)
                candidates.append(Alternative(other, (fact,), wordings))
    return candidates


def read_today(state: JsonObject) -> date:
    """Return the day that the clock of a state shows."""
    now = find_clock_date(state)
    return now.date() if isinstance(now, datetime) else now


def _read_values(wanted: JsonValue, refusal: str, today: date, days_away: int = FAR) -> list[JsonValue]:
    """Values of the wanted kind that a refusal speaks of, nearest to the wanted one first; no day is more than
    `days_away` from it."""
    numbers = [float(text.replace(",", "")) for text in _NUMBER.findall(_DAY.sub(" ", refusal))]
    day = read_day(wanted)
    if day is not None:
        days = [each for each in map(read_day, _DAY.findall(refusal)) if each is not None]
        near = [shift_within_calendar(each, by) for each in days for by in (0, 1, -1)]
        near += [shift_within_calendar(day, by) for by in NEAR_DAYS if _WEEKDAYS.search(refusal)]
        ahead = [
            shift_within_calendar(today, int(number) - by) for number in numbers if number < 800 for by in (0, 1, 2, 3)
        ]
        future = [each for each in dict.fromkeys((*ahead, *near)) if each > today and abs(each - day).days <= days_away]
        return [each.isoformat() for each in sorted(future, key=lambda each: abs(each - day))]
    if isinstance(wanted, str):
        times = [text + wanted[5:] for text in _TIME.findall(refusal)] if _TIME.match(wanted) else []
        return list(dict.fromkeys(times))
    if isinstance(wanted, bool) or not isinstance(wanted, int | float):
        return []
    fitting = [number for number in dict.fromkeys(numbers) if number > 0]
    nearest = sorted(fitting, key=lambda number: abs(number - float(wanted)))
    return [int(number) if isinstance(wanted, int) else number for number in nearest]


def _list_row_values(case: VariantCase, source: FromOutput, value: JsonValue, name: str) -> tuple[JsonValue, ...]:
    """Values that tell a row from the others of its list, fields by which people call it first."""
    rows = [
        match.levels[-1].row
        for match in find_values(case.calls[source.call].result, source.path)
        if match.levels and isinstance(match.levels[-1].row, dict)
    ]
    row = next((row for row in rows if value in row.values()), {})
    own = [
        field
        for field, each in row.items()
        if isinstance(each, str | int | float)
        and not isinstance(each, bool)
        and [other.get(field) for other in rows].count(each) == 1
    ]
    named = case.wording.entity(name).by
    return tuple(row[field] for field in sorted(own, key=lambda field: field not in named))[:4] or (value,)

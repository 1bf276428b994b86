"""What an environment refuses: a request of a task with another row or value, tried out on the state."""

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import islice

from trajsmith.grounding import Rewindable, SchemaField, build_selector_key, iterate_leaves, leads_to, list_input_fields
from trajsmith.grounding.references import RowWords, pick_values
from trajsmith.grounding.row_condition import RowCondition
from trajsmith.grounding.row_fields import DeclaredFields
from trajsmith.grounding.user_facts import get_label
from trajsmith.phrasing import format_value, shift_within_calendar
from trajsmith.phrasing.scenarios import ScenarioStep
from trajsmith.querygen.vary._case import VariantCase, replace_arguments
from trajsmith.records import FromOutput, FromUser, GoldCall, JsonValue, Selector, UserFact

LOST = re.compile(
    r"not found|no such|unknown|does not exist|invalid|must be|required|already|would change nothing", re.IGNORECASE
)
"""Refusals of what is not there, has no meaning, or is so anyway."""
TRIES = 60
ROUND_NUMBERS = (3, 4, 5, 6, 8, 10, 12, 14, 15, 18, 20, 21, 24, 25, 28, 30, 40, 45, 50, 60, 90, 120)
"""Whole numbers that people ask for: not always one over the limit."""
MOST_NUMBERS = 3
"""Larger numbers that are tried, so that the nearest one beyond a limit differs."""
FACTORS = (1.1, 1.25, 1.5, 2, 3, 5)
DAYS = (3, 7, 10, 14, 21, 28, 35, 60, 100)
TIMES = ("07:00", "09:30", "11:00", "14:00", "16:30", "18:30", "19:00")
"""Times that people choose: of a full or an ended day, none in the night."""
AROUND = 1
"""Hours around those of a story at which it can take place."""
CLOSE = 1.5
"""Ratio of the largest to the smallest number of a story below which another number would be another story."""
SATURDAY = 5
_CLOCK = re.compile(r"\d\d:\d\d(?::\d\d)?$")
_NUMBER = re.compile(r"\d[\d,.-]*")


@dataclass(frozen=True)
class RefusedRequest:
    """A request of one turn whose last call the environment refuses.

    Attributes:
        turn: The turn of the base task.
        calls: Calls of the turn; the last one is refused.
        argument: The argument of it that is not as in the base task.
        known: What the user says of it.
        refusal: The environment's words.
    """

    turn: int
    calls: tuple[GoldCall, ...]
    argument: str
    known: UserFact
    refusal: str


async def find_refused_requests(case: VariantCase, turn: int) -> list[RefusedRequest]:
    """Find requests like that of a turn which the environment refuses, and refuses only at the last call."""
    start = case.spans[turn][0]
    candidates = [*_list_other_rows(case, turn), *_list_other_values(case, turn)]
    refused = []
    session = await case.at(start)
    mark = await session.checkpoint()
    for argument, calls, known in case.rng.sample(candidates, len(candidates))[:TRIES]:
        refusal, shown = await _find_refusal(session, start, calls)
        await session.rollback(mark)
        unlikely = case.wording.tool(calls[-1].tool).implausible
        if refusal and not any(re.search(pattern, refusal) for pattern in unlikely):
            refused.append(RefusedRequest(turn, shown, argument, known, refusal))
    return _take_nearest(case, refused)


def _take_nearest(case: VariantCase, requests: Sequence[RefusedRequest]) -> list[RefusedRequest]:
    """Of amounts and days that one rule refuses, return only the nearest to what the base task asks for."""
    nearest: dict[tuple[str, str], RefusedRequest] = {}
    others = []
    for request in requests:
        base = case.calls[case.spans[request.turn][1] - 1].arguments[request.argument]
        if _measure_distance(base, request) is None:
            others.append(request)
            continue
        key = (request.argument, _NUMBER.sub("0", request.refusal))
        best = nearest.get(key)
        if best is None or (_measure_distance(base, request) or 0) < (_measure_distance(base, best) or 0):
            nearest[key] = request
    return [*others, *nearest.values()]


def _measure_distance(base: JsonValue, request: RefusedRequest) -> float | None:
    """Return how far an amount or a day is from that of the base task; None for other values."""
    value = request.calls[-1].arguments[request.argument]
    if isinstance(value, bool) or isinstance(base, bool):
        return None
    if isinstance(value, int | float) and isinstance(base, int | float):
        return abs(value - base)
    day, before = read_day(value), read_day(base)
    return abs((day - before).days) if day and before else None


def iterate_other_rows(
    case: VariantCase, call: GoldCall, name: str, step: ScenarioStep | None = None
) -> Iterator[tuple[JsonValue, FromOutput, UserFact]]:
    """Yield (value, provenance, fact) of other rows of the list from which an argument was chosen.

    Args:
        step: Of the story that the call is part of: only rows that fit it are taken.
    """
    source, value = call.provenance.get(name), call.arguments.get(name)
    if not isinstance(source, FromOutput) or source.pattern is not None:
        return
    words = RowWords(declared=DeclaredFields(case.wording.phrasebook, name).list_for)
    result = case.calls[source.call].result
    keep = partial(RowCondition(step.where).keeps, result) if step is not None and step.where else None
    rows = pick_values(result, source.path, case.rng, 1.0, keep, words)
    for other, selectors in rows:
        picks = [selector for selector in selectors if selector.how != "only"]
        if other != value and len(picks) == 1:
            fact = _build_fact(case, name, call.tool, source.call, picks[0])
            yield other, FromOutput(call=source.call, path=source.path, selectors=selectors), fact


def _list_other_rows(case: VariantCase, turn: int) -> list[tuple[str, tuple[GoldCall, ...], UserFact]]:
    start, stop = case.spans[turn]
    write = case.calls[stop - 1]
    step = case.find_step(stop - 1)
    rows = []
    for name, value in write.arguments.items():
        if step is not None and (name in step.same_as or step.where_same):
            continue  # the story is about this one
        for other, source, fact in iterate_other_rows(case, write, name, step):
            calls = tuple(
                replace_arguments(call, {name: (other, source)}) if call.arguments.get(name) == value else call
                for call in case.calls[start:stop]
            )
            rows.append((name, calls, fact))
    return rows


def _list_other_values(case: VariantCase, turn: int) -> list[tuple[str, tuple[GoldCall, ...], UserFact]]:
    """The calls of a turn with another value of the user in the last one."""
    start, stop = case.spans[turn]
    write = case.calls[stop - 1]
    fields = {field.path: field for field in list_input_fields(case.tools[write.tool])}
    step = case.find_step(stop - 1)
    values = []
    for name, source in write.provenance.items():
        if not isinstance(source, FromUser) or name not in fields or not _is_used_once(case, source.known):
            continue
        if case.first_needed(source.known) != turn or (step is not None and name in (*step.same_as, *step.days_within)):
            continue  # what is urgent is not wanted in a month
        of_story = step.arguments.get(name) if step is not None else None
        fitting = of_story if _is_word(write.arguments[name]) else None
        for other in _propose_values(write.arguments[name], fields[name], case.rng):
            if fitting is not None and other not in fitting:
                continue  # another reason would be another story
            if not _is_near_time(other, of_story or ()) or not _is_near_number(other, of_story or ()):
                continue  # nobody plays games in the morning, or heats a room that is to be cooler
            fact = restate(case, write.tool, case.known[source.known], other)
            calls = (*case.calls[start : stop - 1], replace_arguments(write, {name: (other, source)}))
            values.append((name, calls, fact))
    return values


def restate(case: VariantCase, tool: str, known: UserFact, value: JsonValue) -> UserFact:
    """Return a fact with another value, in the words in which it is said."""
    spoken_value = format_value(case.wording.value(tool, known.slot, value, case.rng))
    return known.model_copy(update={"value": value, "said": spoken_value, "stated": True})


def _is_used_once(case: VariantCase, key: str) -> bool:
    leaves = [source for call in case.calls for _, source, _ in iterate_leaves(call)]
    return sum(isinstance(source, FromUser) and source.known == key for source in leaves) == 1


def _propose_values(value: JsonValue, field: SchemaField, rng: random.Random) -> list[JsonValue]:
    """Values of the same kind that a user might say by mistake: choices, larger amounts, weekends, later days."""
    if field.choices:
        return [choice for choice in field.choices if choice != value and not isinstance(choice, bool)]
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return []
    if isinstance(value, str):
        day = read_day(value)
        if day is not None:
            weekend = shift_within_calendar(day, (SATURDAY - day.weekday()) % 7)
            days = (weekend, shift_within_calendar(weekend, 1), *(shift_within_calendar(day, ahead) for ahead in DAYS))
            return [each.isoformat() for each in days if each != day]
        is_time = re.fullmatch(r"\d\d:\d\d(:00)?", value)
        return [time + value[5:] for time in TIMES if time != value[:5]] if is_time else []
    if isinstance(value, int):
        high = field.schema.get("maximum", value + 30)
        larger = [number for number in ROUND_NUMBERS if value < number <= high]
        return list(rng.sample(larger, min(len(larger), MOST_NUMBERS)))
    return [float(round(value * by, -1) or round(value * by, 2)) for by in FACTORS]


def _is_near_number(value: JsonValue, of_story: Sequence[JsonValue]) -> bool:
    """Return False for a number outside of a story's, if these lie so close together that they are what it is about."""
    numbers = [one for one in of_story if isinstance(one, int | float) and not isinstance(one, bool)]
    if not numbers or not isinstance(value, int | float) or max(numbers) >= CLOSE * min(numbers):
        return True
    return min(numbers) <= value <= max(numbers)


def _is_near_time(value: JsonValue, usual: Sequence[JsonValue]) -> bool:
    """Return False for a time of day that is far from all times of the story."""
    clock = value if isinstance(value, str) and _CLOCK.match(value) else None
    hours = [int(other[:2]) for other in usual if isinstance(other, str) and _CLOCK.match(other)]
    return clock is None or not hours or min(hours) - AROUND <= int(clock[:2]) <= max(hours) + AROUND


def _is_word(value: JsonValue) -> bool:
    """Return True for a text that is no day or time."""
    return isinstance(value, str) and not value[:1].isdigit()


def read_day(text: JsonValue) -> date | None:
    """Return the day that an ISO text is, or None."""
    if isinstance(text, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        with suppress(ValueError):  # an identifier that looks like a day
            return date.fromisoformat(text)
    return None


def _build_fact(case: VariantCase, name: str, tool: str, call: int, selector: Selector) -> UserFact:
    field = selector.field.split(".")[-1]
    entry = UserFact(
        key=build_selector_key(call, selector),
        label=get_label(field, tool, case.wording.phrasebook),
        value=selector.value,
        said="",
        slot=f"{name}|{field}",
        how="value" if selector.how == "only" else selector.how,
    )
    return entry.model_copy(update={"said": case.wording.describe(name, entry, case.rng)})


async def _find_refusal(
    session: Rewindable, start: int, calls: tuple[GoldCall, ...]
) -> tuple[str, tuple[GoldCall, ...]]:
    """Return the environment's refusal of the last call, if it refuses only that one, and not as missing.

    With it the calls as they went: what earlier calls of the turn show of another row is not what they showed of that
    of the base task.
    """
    results: dict[int, JsonValue] = {}
    for number, call in enumerate(calls[:-1], start):
        if not _is_provenance_valid(call, results):
            return "", calls
        done = await session.call(call.tool, call.arguments, call.actor)
        if not done.ok:
            return "", calls
        results[number] = done.content
    if not _is_provenance_valid(calls[-1], results):
        return "", calls
    before = await session.state_hash()
    result = await session.call(calls[-1].tool, calls[-1].arguments)
    if result.error != "refused" or await session.state_hash() != before:
        return "", calls
    content: JsonValue = result.content
    text = str(content.get("error", "")) if isinstance(content, dict) else str(content)
    shown = [call.model_copy(update={"result": results[number]}) for number, call in enumerate(calls[:-1], start)]
    return "" if LOST.search(text) else text, (*shown, calls[-1])


def _is_provenance_valid(call: GoldCall, results: dict[int, JsonValue]) -> bool:
    """Return True if the call's references into this turn's results still resolve to its arguments."""
    return all(
        leads_to(source, results[source.call], value)
        for _, source, value in iterate_leaves(call)
        if isinstance(source, FromOutput) and source.call in results
    )


def take_distinct(requests: list[RefusedRequest], limit: int) -> list[RefusedRequest]:
    """Return the first requests with different refusals."""
    distinct = {request.refusal: request for request in reversed(requests)}
    return list(islice(reversed(distinct.values()), limit))

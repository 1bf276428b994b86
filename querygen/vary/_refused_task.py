"""The task around a refused request: what is refused, what can be done instead, and whether the user takes it."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date

from trajsmith.phrasing import (
    format_value,
    is_reason_shown,
    is_value_mentioned,
    parse_datetime,
    shift_within_calendar,
)
from trajsmith.phrasing.refusals import measure_reason
from trajsmith.querygen.vary._alternatives import (
    LAST_DAY,
    Alternative,
    AlternativeResult,
    find_alternative,
    read_today,
)
from trajsmith.querygen.vary._case import VariantCase, VariantResult
from trajsmith.querygen.vary._refusals import RefusedRequest, read_day
from trajsmith.querygen.vary._rewording import TurnDraft
from trajsmith.records import GoldCall, JsonValue, Perturbation, RecordDropped, RequestedInfo, canonical_json

ACCEPTED = 0.85
"""Share of offers that the user takes."""
NEARLY_ALL = 0.8
"""Share of a number asked for that nobody turns down: who wants 15 days and can have 14 takes them."""
WITHOUT = 0.1
"""Share of tasks in which a refusal without an alternative is as good as one with."""
KNOWN = 0.75
"""Share of the words of a reason that must stand in policy, requests and results."""
SEARCHES = 4
_EVERYDAY = frozenset({"new"})
"""Words of refusals that mean no value of a state, though a status may be called so: "new devices are collected"."""
_WORD = re.compile(r"[a-z]+")
_NAME = re.compile(r"\b[A-Z][\w'-]+ [A-Z][\w'-]+")
"""Names of people and things."""
_CLAUSE = re.compile(r"[;:] |, (?=(?:which|and)\b)")
_SECONDS = re.compile(r"T(\d\d:\d\d):\d\d")
"""Times as results show them; people and refusals leave out the seconds."""
_CLOCK = re.compile(r"\b\d\d:\d\d\b")
_BOUND = re.compile(r"[£$€]?\d[\d.,]*(?: (?:minute|hour|day|week|month|year)s?\b)?")
"""A bound of a rule: "24 hours", "£200.00"."""
_RULE = re.compile(r"\bonly\b")
"""A clause that says what holds of all: "only pending orders can be changed"."""
_AMOUNT = re.compile(r"\d[\d,]{0,30}\.\d{1,30}")
_DAYS = re.compile(r"\b(\d{1,3}) days\b")
_NUMBER = re.compile(r"\d[\d.,:-]*\d|\d")


def is_visible(case: VariantCase, request: RefusedRequest, query: str) -> bool:
    """Return True if policy, requests and results before the refused call tell the reason."""
    start, _ = case.spans[request.turn]
    shown = [canonical_json(call.result).decode() for call in (*case.calls[:start], *request.calls[:-1])]
    shown += [canonical_json(request.calls[-1].arguments).decode(), query]
    today = read_today(case.state)
    return can_be_known(request.refusal, case.base.policy, shown, collect_state_words(case.state), today)


def is_used_up(reason: str, shown: Sequence[JsonValue], argument: JsonValue) -> bool:
    """Return True if a row about the thing has 0 of what the reason is about: `free_seats`, and all seats are taken.

    Args:
        reason: The environment's refusal.
        shown: Results before the refused call.
        argument: Which thing the call is about.
    """
    words = set(_WORD.findall(reason.lower()))
    return any(
        argument in row.values()
        and any(
            value == 0 and not isinstance(value, bool) and words & {part for part in name.split("_") if len(part) > 3}
            for name, value in row.items()
        )
        for result in shown
        for row in _iterate_objects(result)
    )


def _iterate_objects(value: JsonValue) -> Iterator[dict[str, JsonValue]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _iterate_objects(inner)


def can_be_known(
    reason: str, policy: str, shown: Sequence[str], state_words: set[str], today: date | None = None
) -> bool:
    """Return True if an agent who has read policy and results can tell the reason before it tries.

    What the state holds of a thing ("internal", "shipped") must stand in a result, and so must what a clause of the
    reason says of a thing by name, but for the bounds of a rule ("less than 24 hours"): the policy speaks of no single
    one. Where the row of the thing has the exact amount that the reason tells, the policy has the rest: "only £738.53
    can be taken from Travel Account". Numbers must be shown, but for a day that follows from `today` and a number of
    days; of the words of the rule most must, since a refusal puts it in words of its own.
    """
    shown = [_SECONDS.sub(r" \1", text) for text in shown]
    everything = " ".join([policy, *shown])
    reason = _drop_computed_days(reason, today)
    clauses = _CLAUSE.split(reason)
    own = " ".join(clause for clause in clauses if not _RULE.search(clause))
    facts = sorted(set(_WORD.findall(own.lower())) & state_words - _EVERYDAY)
    named = [_BOUND.sub(" ", clause) for clause in clauses if _NAME.search(clause) and not _is_in_a_row(clause, shown)]
    return (
        all(is_reason_shown(clause, shown) for clause in (*named, " ".join(facts)))
        and all(is_reason_shown(number, [everything]) for number in _NUMBER.findall(reason))
        and measure_reason(reason, everything) >= KNOWN
    )


def _drop_computed_days(reason: str, today: date | None) -> str:
    """Leave out a day that is as many days from today as the reason says: "90 days at most, until 2027-01-18"."""
    if today is None:
        return reason
    for number in _DAYS.findall(reason):
        reason = re.sub(rf"(?:, until )?{shift_within_calendar(today, int(number))}", "", reason)
    return reason


def _is_in_a_row(clause: str, shown: Sequence[str]) -> bool:
    """Return True if one object of a result has a name and an exact amount of the clause."""
    names, amounts = _NAME.findall(clause), [number.replace(",", "") for number in _AMOUNT.findall(clause)]
    return any(
        any(name in row for name in names) and any(re.search(rf"(?<![\d.]){amount}(?!\d)", row) for amount in amounts)
        for text in shown
        for row in re.split(r"[{}]", text)
    )


def collect_state_words(state: JsonValue) -> set[str]:
    """Collect the single lower-case words that are values in a state ("shipped", "internal", "savings"), and those by
    which its fields say yes or no ("refundable")."""
    if isinstance(state, dict | list):
        inner = state.values() if isinstance(state, dict) else state
        flags = {name for name, value in state.items() if isinstance(value, bool)} if isinstance(state, dict) else set()
        return {name for name in flags if _WORD.fullmatch(name)}.union(*map(collect_state_words, inner))
    return {state} if isinstance(state, str) and _WORD.fullmatch(state) else set()


async def build_refused_variant(
    case: VariantCase,
    requests: Sequence[RefusedRequest],
    explain: Callable[[RefusedRequest], str],
    hidden: bool = False,
) -> VariantResult:
    """Build a variant of one of these requests: one with an alternative if the draw wants that and there is one.

    Args:
        explain: The first part of the proof.
        hidden: Only requests of which nothing tells before that they are refused.

    Raises:
        RecordDropped: None of them gives a task with sound words and checks.
    """
    offering = case.rng.random() >= WITHOUT
    if offering:
        requests = sorted(requests, key=lambda request: not case.wording.tool(request.calls[-1].tool).alternatives)
    ranked: list[tuple[RefusedRequest, AlternativeResult]] = [
        (request, await find_alternative(case, request)) for request in requests[:SEARCHES]
    ]
    if offering:
        ranked.sort(key=lambda pair: pair[1].alternative is None)
    last: RecordDropped | None = None
    for request, result in ranked:
        try:
            return await _build_variant(case, request, result, explain(request), hidden)
        except RecordDropped as drop:
            last = drop
    raise last or RecordDropped("nothing_refused")


async def _build_variant(
    case: VariantCase, request: RefusedRequest, result: AlternativeResult, why: str, hidden: bool
) -> VariantResult:
    start, stop = case.spans[request.turn]
    refused = request.calls[-1]
    if any((call.tool, call.arguments) == (refused.tool, refused.arguments) for call in case.calls[:stop]):
        raise RecordDropped("done_before", refused.tool)
    alternative = result.alternative
    drawn = case.rng.random() < ACCEPTED if alternative is not None else False
    accepted = alternative is not None and (
        drawn or _is_nearly_all(request.calls[-1], alternative, read_today(case.state))
    )
    calls = [*case.calls[:start], *request.calls, *case.calls[stop:]]
    words = case.words(calls=calls, known={request.known.key: request.known})
    query = words.queries[request.turn]
    foreseen = _was_told(request.refusal, [info for asked in words.asked[: request.turn] for info in asked])
    if foreseen or is_foreseen(refused, request.refusal, [call.result for call in case.calls[:start]]):
        raise RecordDropped("said_before", request.refusal)
    if alternative is not None and _names(query, alternative):
        raise RecordDropped("said_anyway", str(alternative.values[0]))
    entries = words.entries(request.turn)
    facts = tuple(fact.model_copy(update={"stated": False}) for fact in (alternative.facts if alternative else ()))
    gold = (*request.calls[:-1], *((alternative.call,) if alternative is not None and accepted else ()))
    pieces = case.unchanged(words, range(request.turn))
    pieces.append(
        TurnDraft(query, words.intents[request.turn], (*entries, *facts), gold, asked=words.asked[request.turn])
    )
    visible = is_visible(case, request, query)
    if visible and hidden:
        raise RecordDropped("can_be_read", request.refusal)
    perturbation = Perturbation(
        base=case.base.id,
        turn=request.turn,
        act="offer",
        tool=refused.tool,
        because=request.refusal,
        visible=visible,
        offer=alternative.call.model_copy(update={"result": None}) if alternative else None,
        accepted=accepted,
        told=alternative.values if alternative else (),
        tempting=(refused,),
        proof=f"{why}; {_explain_alternative(refused.tool, result)}; "
        + ("policy and results tell it before" if visible else "nothing that is shown before tells it"),
    )
    return VariantResult(await case.finish(pieces, perturbation))


def _was_told(refusal: str, asked: Sequence[RequestedInfo]) -> bool:
    """Return True if earlier answers told the user a number of the refusal: nobody asks for £30.00 who has just read
    that £25.00 are left."""
    numbers = {float(fact.value) for info in asked for fact in info.facts if isinstance(fact.value, int | float)}
    return any(float(number.replace(",", "")) in numbers for number in _AMOUNT.findall(refusal))


def is_foreseen(call: GoldCall, refusal: str, shown: Sequence[JsonValue]) -> bool:
    """Return True if a call is refused for its time on a day of which bare times were shown: whoever has read which
    hours are free knows which are not."""
    days = {day for day in map(read_day, call.arguments.values()) if day is not None}
    return _CLOCK.search(refusal) is not None and any(
        row and all(parse_datetime(value) for value in row.values()) and days & set(map(_read_date, row.values()))
        for result in shown
        for row in _iterate_objects(result)
    )


def _read_date(value: JsonValue) -> date | None:
    return read_day(value[:10]) if isinstance(value, str) else None


def _is_nearly_all(refused: GoldCall, alternative: Alternative, today: date) -> bool:
    """Return True if the offer differs in one number only, which is nearly as much as what was asked for, or in the day
    that something ends on, nearly as many days from `today`."""
    offered = alternative.call.arguments
    changed = [name for name, value in refused.arguments.items() if offered.get(name) != value]
    if len(changed) != 1:
        return False
    asked, granted = refused.arguments[changed[0]], offered.get(changed[0])
    days = read_day(asked), read_day(granted)
    if days[0] and days[1] and LAST_DAY.search(changed[0]):
        asked, granted = (days[0] - today).days, (days[1] - today).days
    numbers = isinstance(asked, int | float) and isinstance(granted, int | float)
    return numbers and NEARLY_ALL * asked <= granted < asked


def _names(query: str, alternative: Alternative) -> bool:
    """Return True if the request names what would be offered."""
    return is_value_mentioned(query, alternative.values[0])


def _explain_alternative(tool: str, result: AlternativeResult) -> str:
    if result.alternative is not None:
        return f"{tool} succeeds with {format_value(result.alternative.values[0])}"
    if result.tried:
        return f"{tool} is refused with all {result.tried} other values that the refusal or a list shows"
    return f"no argument of {tool} may be another one"

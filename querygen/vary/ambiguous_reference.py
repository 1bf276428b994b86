"""The user calls a thing by something that two or three rows have in common: the agent must ask which one is meant.

Proof: the rows were counted in the executed result, and the other reading is possible and gives something else.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from chatmodel.surface import mentions
from chatmodel.templates import render
from grounding import leaves, selector_key
from grounding.paths import Level, find, get
from grounding.references import sayable_fields
from querygen.vary._case import Case, Varied, replaced
from trajectory import Dropped, FromOutput, Known, Selector, Twist, canonical_json

MOST_ROWS = 4


@dataclass(frozen=True)
class _Reading:
    """A way to leave a reference open."""

    turn: int
    call: int
    parameter: str
    key: str
    field: str
    rows: int
    value: Any
    other: Any
    """What the parameter would be in another reading."""


async def vary(case: Case) -> Varied:
    """The task with one reference left open until the agent asks.

    Raises:
        Dropped: No two rows fit, or it does not matter which one is taken.
    """
    readings = list(_readings(case))
    for reading in case.rng.sample(readings, min(len(readings), 6)):
        if await _matters(case, reading):
            return await _open(case, reading)
    raise Dropped("it_does_not_matter" if readings else "no_two_rows_fit")


def _readings(case: Case) -> Iterator[_Reading]:
    for turn, span in enumerate(case.spans):
        for index in range(*span):
            call = case.calls[index]
            for path, source, value in leaves(call):
                picks = (
                    [pick for pick in source.selectors if pick.how != "only"] if isinstance(source, FromOutput) else []
                )
                if not isinstance(source, FromOutput) or len(picks) != 1 or path not in call.arguments:
                    continue
                key = selector_key(source.call, picks[0])
                if picks[0].how == "equals" and case.first_needed(key) == turn and key in case.known:
                    yield from _shared(case, turn, index, path, key, source, picks[0], value)


def _shared(
    case: Case, turn: int, index: int, path: str, key: str, source: FromOutput, pick: Selector, value: Any
) -> Iterator[_Reading]:
    matches = list(find(case.calls[source.call].result, source.path))
    for match in matches:
        level = next((level for level in match.levels if level.path == pick.rows), None)
        if match.value != value or level is None or not isinstance(level.row, dict):
            continue
        for field in sayable_fields(level.row):
            alike = [row for row in level.rows if get(row, field) == get(level.row, field)]
            if field != pick.field and 2 <= len(alike) <= MOST_ROWS and _nameable(case, path, field):
                other = _value_in(matches, level, alike, value)
                if other is not None:
                    yield _Reading(turn, index, path, key, field, len(alike), get(level.row, field), other)


def _nameable(case: Case, parameter: str, field: str) -> bool:
    """True if the phrasebook has words for a thing picked out by this field; or has no words for the thing at all."""
    entity = case.wording.phrasebook.entities.get(parameter.split(".")[-1])
    return entity is None or field in entity.by or field in ("status", "kind", "type", "category", "priority")


def _value_in(matches: list[Any], level: Level, alike: list[Any], value: Any) -> Any:
    """The same leaf in another of the rows that fit."""
    for match in matches:
        row = next((found.row for found in match.levels if found.path == level.path), None)
        if any(row is other for other in alike) and match.value != value:
            return match.value
    return None


async def _matters(case: Case, reading: _Reading) -> bool:
    """True if the call with the other row succeeds and gives something else."""
    call = case.calls[reading.call]
    session = await case.at(reading.call)
    arguments = {**call.arguments, reading.parameter: reading.other}
    result = await session.call(call.tool, arguments, call.actor)
    return result.ok and canonical_json(result.content) != canonical_json(call.result)


async def _open(case: Case, reading: _Reading) -> Varied:
    entry, call = case.known[reading.key], case.calls[reading.call]
    name = reading.parameter.split(".")[-1]
    shared = Known(
        key=f"{reading.key}#open",
        label=case.wording.parameter("", reading.field.split(".")[-1]).label,
        value=reading.value,
        said="",
        slot=f"{name}|{reading.field.split('.')[-1]}",
        how="equals",
    )
    vague = case.wording.describe(name, shared, case.rng)
    words = case.words(hold=reading.key, vague=vague)
    if vague not in words.queries[reading.turn]:
        raise Dropped("not_said_openly", vague)
    phrases = case.wording.parameter("", entry.slot.split("|")[-1]).values.get(str(entry.value), ())
    templates = case.wording.entity(name).by.get(entry.slot.split("|")[-1], ())
    shown = [render(text, {"value": entry.value, "noun": case.wording.entity(name).noun}) for text in templates]
    spoken = [" ".join(text.split()[1:]) for text in shown if text]  # without its "my" or "the"
    told = tuple(dict.fromkeys((entry.value, entry.said, *phrases, *spoken)))
    said = next((str(each) for each in told if mentions("\n".join(words.queries[: reading.turn + 1]), each)), None)
    if said is not None:
        raise Dropped("said_anyway", said)
    source = call.provenance[reading.parameter]
    if not isinstance(source, FromOutput):
        raise Dropped("no_two_rows_fit")
    wrong = replaced(call, {reading.parameter: (reading.other, source)})
    twist = Twist(
        base=case.base.id,
        turn=reading.turn,
        act="ask",
        tool=call.tool,
        keys=(reading.key,),
        told=told,
        tempting=(wrong,),
        proof=f"{reading.rows} rows fit {vague!r}, and {call.tool} on another one succeeds with another result",
    )
    return Varied(await case.finish(case.unchanged(words, range(len(case.spans))), twist))

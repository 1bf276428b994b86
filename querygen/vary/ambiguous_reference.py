"""The user calls a thing by something that two or three rows have in common: the agent must ask which one is meant.

Proof: the rows were counted in the executed result, and the other reading is possible and gives something else.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trajsmith.grounding import ListLevel, build_selector_key, find_values, get_state, get_value, iterate_leaves
from trajsmith.grounding.row_fields import list_sayable_fields
from trajsmith.phrasing import is_value_mentioned, render_phrase
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult, replace_arguments
from trajsmith.records import FromOutput, Perturbation, RecordDropped, Selector, UserFact, canonical_json

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


@VARIANTS.register("ambiguous_reference")
async def vary(case: VariantCase) -> VariantResult:
    """The task with one reference left open until the agent asks.

    Raises:
        RecordDropped: No two rows fit, or it does not matter which one is taken.
    """
    readings = list(_iter_readings(case))
    for reading in case.rng.sample(readings, min(len(readings), 6)):
        if await _changes_outcome(case, reading):
            return await _build_variant(case, reading)
    raise RecordDropped("it_does_not_matter" if readings else "no_two_rows_fit")


def _iter_readings(case: VariantCase) -> Iterator[_Reading]:
    for turn, span in enumerate(case.spans):
        for index in range(*span):
            call = case.calls[index]
            for path, source, value in iterate_leaves(call):
                picks = (
                    [pick for pick in source.selectors if pick.how != "only"] if isinstance(source, FromOutput) else []
                )
                if not isinstance(source, FromOutput) or len(picks) != 1 or path not in call.arguments:
                    continue
                key = build_selector_key(source.call, picks[0])
                if picks[0].how == "equals" and case.first_needed(key) == turn and key in case.known:
                    yield from _find_shared_fields(case, turn, index, path, key, source, picks[0], value)


def _find_shared_fields(
    case: VariantCase, turn: int, index: int, path: str, key: str, source: FromOutput, pick: Selector, value: Any
) -> Iterator[_Reading]:
    matches = list(find_values(case.calls[source.call].result, source.path))
    for match in matches:
        level = next((level for level in match.levels if level.path == pick.rows), None)
        if match.value != value or level is None or not isinstance(level.row, dict):
            continue
        for field in list_sayable_fields(level.row):
            alike = [row for row in level.rows if _is_alike(row, level.row, field)]
            some = 2 <= len(alike) <= MOST_ROWS and len(alike) < len(level.rows)
            if field != pick.field and some and _can_be_named(case, path, field):
                other = _get_value_in_row(matches, level, alike, value)
                if other is not None:
                    yield _Reading(turn, index, path, key, field, len(alike), get_value(level.row, field), other)


def _is_alike(row: Any, chosen: Any, field: str) -> bool:
    """Return True if a row fits the same words: of a trip that is over nobody asks when it leaves."""
    return bool(get_value(row, field) == get_value(chosen, field)) and bool(get_state(row) == get_state(chosen))


def _can_be_named(case: VariantCase, parameter: str, field: str) -> bool:
    """Return True if the phrasebook can identify an entity by this field, or has no phrases for the entity at all."""
    entity = case.wording.phrasebook.entities.get(parameter.split(".")[-1])
    return entity is None or field in entity.by


def _get_value_in_row(matches: list[Any], level: ListLevel, alike: list[Any], value: Any) -> Any:
    """The same leaf in another of the rows that fit."""
    for match in matches:
        row = next((level_match.row for level_match in match.levels if level_match.path == level.path), None)
        if any(row is other for other in alike) and match.value != value:
            return match.value
    return None


async def _changes_outcome(case: VariantCase, reading: _Reading) -> bool:
    """Return True if the call with the other row succeeds and has another result."""
    call = case.calls[reading.call]
    session = await case.at(reading.call)
    arguments = {**call.arguments, reading.parameter: reading.other}
    result = await session.call(call.tool, arguments, call.actor)
    return result.ok and canonical_json(result.content) != canonical_json(call.result)


async def _build_variant(case: VariantCase, reading: _Reading) -> VariantResult:
    entry, call = case.known[reading.key], case.calls[reading.call]
    name = reading.parameter.split(".")[-1]
    shared = UserFact(
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
        raise RecordDropped("not_said_openly", vague)
    phrases = case.wording.parameter("", entry.slot.split("|")[-1]).values.get(str(entry.value), ())
    templates = case.wording.entity(name).by.get(entry.slot.split("|")[-1], ())
    shown = [render_phrase(text, {"value": entry.value, "noun": case.wording.entity(name).noun}) for text in templates]
    spoken = [" ".join(text.split()[1:]) for text in shown if text]  # without its "my" or "the"
    answers = tuple(dict.fromkeys((entry.value, entry.said, *phrases, *spoken)))
    mention = next(
        (str(each) for each in answers if is_value_mentioned("\n".join(words.queries[: reading.turn + 1]), each)), None
    )
    if mention is not None:
        raise RecordDropped("said_anyway", mention)
    source = call.provenance[reading.parameter]
    if not isinstance(source, FromOutput):
        raise RecordDropped("no_two_rows_fit")
    wrong = replace_arguments(call, {reading.parameter: (reading.other, source)})
    perturbation = Perturbation(
        base=case.base.id,
        turn=reading.turn,
        act="ask",
        tool=call.tool,
        keys=(reading.key,),
        told=answers,
        tempting=(wrong,),
        proof=f"{reading.rows} rows fit {vague!r}, and {call.tool} on another one succeeds with another result",
    )
    return VariantResult(await case.finish(case.unchanged(words, range(len(case.spans))), perturbation))

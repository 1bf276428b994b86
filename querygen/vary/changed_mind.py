"""The user names one value, asks to be told before anything is changed, and then wants another value.

Asking to be told makes it fair: an agent that writes at once has overlooked a plain wish. Proof: the write
succeeds with the first value too, and leads to another state.
"""

import re

from trajsmith.grounding import SchemaField, ValueSource, iterate_leaves, list_input_fields
from trajsmith.phrasing import format_value, is_value_mentioned, parse_datetime
from trajsmith.querygen.persona import add_sentence
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult, replace_arguments
from trajsmith.querygen.vary._omission import list_value_wordings
from trajsmith.querygen.vary._rewording import TurnDraft
from trajsmith.records import FromUser, JsonValue, Perturbation, RecordDropped

CHECK = (
    "Please check with me before you do that.",
    "But let me know before you do it.",
    "Ask me once more before you do that, please.",
)
TRIES = 8
_CLOCK = re.compile(r"\d{1,2}:\d\d(?::\d\d)?")


@VARIANTS.register("changed_mind")
async def vary(case: VariantCase) -> VariantResult:
    """The task with one value that changes at the last moment.

    Raises:
        RecordDropped: No write has a value that could have been another one, or the story is one of a change of mind.
    """
    story = case.wording.scenarios.find(case.base.scenario_id) if case.base.scenario_id else None
    if story is not None and story.change_of_mind:
        raise RecordDropped("changes_their_mind_already")
    for turn in case.single_writes():
        index = case.spans[turn][1] - 1
        if any(call.tool == case.calls[index].tool for call in case.calls[slice(*case.spans[turn])][:-1]):
            continue
        for name, source, value in iterate_leaves(case.calls[index]):
            if not isinstance(source, FromUser) or name not in case.calls[index].arguments or isinstance(value, list):
                continue
            if case.first_needed(source.known) == turn and _used_once(case, source.known):
                first = await _find_other_value(case, index, name, value)
                if first is not None:
                    return await _build_variant(case, turn, name, source.known, first)
    raise RecordDropped("no_value_to_change")


def _used_once(case: VariantCase, key: str) -> bool:
    return (
        sum(
            isinstance(source, FromUser) and source.known == key
            for call in case.calls
            for _, source, _ in iterate_leaves(call)
        )
        == 1
    )


async def _find_other_value(case: VariantCase, index: int, name: str, value: JsonValue) -> JsonValue:
    """Another value with which the write succeeds and does something else; None if none is found."""
    call = case.calls[index]
    field = next((each for each in list_input_fields(case.tools[call.tool]) if each.path == name), None)
    if field is None or not _may_change(field, value):
        return None
    session = await case.at(index)
    mark = await session.checkpoint()
    await session.call(call.tool, call.arguments)
    gold = await session.state_hash()
    for other in _list_other_values(case, index, field)[:TRIES]:
        if other == value or type(other) is not type(value):
            continue
        await session.rollback(mark)
        before = await session.state_hash()
        result = await session.call(call.tool, {**call.arguments, name: other})
        if result.ok and await session.state_hash() not in (before, gold):
            return other
    return None


def _may_change(field: SchemaField, value: JsonValue) -> bool:
    """Return True for choices, amounts, days and times: who corrects a name has other values to correct as well, such
    as the account number of another payee."""
    if field.choices or not isinstance(value, str):
        return True
    return parse_datetime(value) is not None or _CLOCK.fullmatch(value) is not None


def _list_other_values(case: VariantCase, index: int, field: SchemaField) -> list[JsonValue]:
    """Return values that the user could have named first: of the story where it has some, else any of their kind."""
    step = case.find_step(index)
    if step is not None and field.path in step.arguments:
        fitting = step.arguments[field.path]
        return case.rng.sample(list(fitting), len(fitting))
    return ValueSource(case.state).propose(field, case.rng)


async def _build_variant(case: VariantCase, turn: int, name: str, key: str, first: JsonValue) -> VariantResult:
    index = case.spans[turn][1] - 1
    call, final = case.calls[index], case.known[key]
    spoken_value = format_value(case.wording.value("", final.slot, first, case.rng))
    before = final.model_copy(update={"value": first, "said": spoken_value, "stated": True})
    wrong = replace_arguments(call, {name: (first, FromUser(known=key))})
    calls = [*case.calls[:index], wrong, *case.calls[index + 1 :]]
    words = case.words(calls=calls, known={key: before})
    query = add_sentence(words.queries[turn], case.rng.choice(CHECK), case.retold.persona, case.rng)
    if any(is_value_mentioned(query, value) for value in list_value_wordings(case, call, final)):
        raise RecordDropped("said_anyway", str(final.value))
    pieces = [*case.unchanged(words, range(turn))]
    entries = tuple(
        case.known[e.key].model_copy(update={"stated": True}) if e.key == key else e for e in words.entries(turn)
    )
    turn_calls = tuple(case.calls[slice(*case.spans[turn])])
    pieces.append(TurnDraft(query, words.intents[turn], entries, turn_calls, asked=words.asked[turn]))
    pieces += case.unchanged(words, range(turn + 1, len(case.spans)))
    perturbation = Perturbation(
        base=case.base.id,
        turn=turn,
        act="check",
        tool=call.tool,
        keys=(key,),
        first=before,
        tempting=(wrong,),
        proof=(
            f"{call.tool} succeeds with {format_value(first)} too and leads to another state than "
            f"with {format_value(final.value)}"
        ),
    )
    return VariantResult(await case.finish(pieces, perturbation))

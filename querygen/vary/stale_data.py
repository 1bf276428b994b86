"""What was looked up before has changed through a later write, and the user asks for it again: read again, then tell.

Proof: the same look-up gives other values after the write, by execution, and no result since then shows them.
"""

from trajsmith.phrasing import is_value_mentioned
from trajsmith.querygen.persona import add_sentence
from trajsmith.querygen.requested_info import build_general_info, fill_facts
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._rewording import TurnDraft
from trajsmith.records import FromUser, GoldCall, JsonValue, Perturbation, RecordDropped, canonical_json

AGAIN = (
    "I just want to be sure.",
    "I'd just like to be sure.",
    "I'd like to make sure.",
    "Just to double-check.",
    "Just checking.",
)
REWORDINGS = 4
"""Attempts at words that name what is looked up."""


@VARIANTS.register("stale_data")
async def vary(case: VariantCase) -> VariantResult:
    """The task up to a write, and one more turn in which an earlier look-up is asked for again.

    Raises:
        RecordDropped: No look-up of the task tells other values later.
    """
    for read in case.rng.sample(range(len(case.calls)), len(case.calls)):
        call = case.calls[read]
        if call.effect != "read" or call.actor != "assistant" or not _is_list(call.result):
            continue
        for turn, (_, stop) in enumerate(case.spans):
            if not any(each.effect == "write" for each in case.calls[read + 1 : stop]):
                continue
            changed = await _find_changes(case, read, stop)
            if changed:
                return await _build_variant(case, read, turn, changed)
    raise RecordDropped("nothing_changes")


def _is_list(result: JsonValue) -> bool:
    """Return True for a list of things: nobody asks again for a profile whose points a write has changed."""
    rows = result.get("result") if isinstance(result, dict) else result
    return isinstance(rows, list)


async def _find_changes(case: VariantCase, read: int, stop: int) -> tuple[JsonValue, ...]:
    """Return values that the look-up tells only after `stop` calls; none if another result shows them."""
    session = await case.at(stop)
    call = case.calls[read]
    result = await session.call(call.tool, call.arguments, call.actor)
    if not result.ok:
        return ()
    before = list_told_values(case, call)
    now = list_told_values(case, call.model_copy(update={"result": result.content}))
    since = [canonical_json(each.result).decode() for each in case.calls[read + 1 : stop]]
    changed = [value for value in now if value not in before]
    return tuple(value for value in changed if not any(is_value_mentioned(text, value) for text in since))


def list_told_values(case: VariantCase, call: GoldCall) -> list[JsonValue]:
    """Return the values that a report of a result tells."""
    info = fill_facts(build_general_info(0, call, "", "", case.wording), call, case.wording)
    return [fact.value for fact in info.facts]


async def _build_variant(case: VariantCase, read: int, turn: int, changed: tuple[JsonValue, ...]) -> VariantResult:
    call, stop = case.calls[read], case.spans[turn][1]
    again = call.model_copy(update={"result": None})
    longer = case.append_turn(turn, again)
    last = turn + 1
    words = next(
        (
            words
            for words in (longer.words() for _ in range(REWORDINGS))
            if not read or _names(longer, words.queries[last])
        ),
        None,
    )
    if words is None:
        raise RecordDropped("not_said_openly", call.tool)
    pieces = longer.unchanged(words, range(turn + 1))
    query = add_sentence(words.queries[last], case.rng.choice(AGAIN), longer.retold.persona, case.rng)
    pieces.append(TurnDraft(query, words.intents[last], words.entries(last), (again,), asked=words.asked[last]))
    cause = next(each.tool for each in reversed(case.calls[read + 1 : stop]) if each.effect == "write")
    perturbation = Perturbation(
        base=case.base.id,
        turn=last,
        act="reread",
        tool=call.tool,
        tempting=(call,),
        proof=f"after {cause} {call.tool} gives other values, which no result since then shows: {changed[0]}",
    )
    task = await longer.finish(pieces, perturbation)
    if not {str(value) for value in changed} & {str(value) for value in task.turns[last].answer_facts}:
        raise RecordDropped("another_field_asked", words.queries[last])
    return VariantResult(task)


def _names(case: VariantCase, query: str) -> bool:
    """Return True if a request says the values that the user gives for its call."""
    call = case.calls[-1]
    user_values = [call.arguments[name] for name, source in call.provenance.items() if isinstance(source, FromUser)]
    return all(is_value_mentioned(query, value) for value in user_values)

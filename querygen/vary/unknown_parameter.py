"""The user has not said what names the thing that a write is about, and does not know it: the agent must ask, then say
so. What is a matter of choice, such as a day or a text, everybody knows: only values that stand in the state are taken.

Proof: the call is refused without the value, no earlier result has it, and a search over the tools with everything
else that is known does not reach what was asked for.
"""

from collections.abc import Iterator

from trajsmith.phrasing import is_value_mentioned, parse_datetime
from trajsmith.querygen.vary._alternative_search import AlternativeSearch, build_tempting_calls
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult, is_leaf_of
from trajsmith.querygen.vary._omission import find_omittable_arguments, is_refused_without, list_value_wordings
from trajsmith.querygen.vary._rewording import TurnDraft
from trajsmith.records import JsonValue, Perturbation, RecordDropped


@VARIANTS.register("unknown_parameter")
async def vary(case: VariantCase) -> VariantResult:
    """The task up to the turn in which the value would be needed; nothing may be written in that turn.

    Raises:
        RecordDropped: No write hangs on a value that only the user could tell, or there is another way.
    """
    for turn, index, argument, key in _iter_candidates(case):
        if not await is_refused_without(case, index, argument):
            continue
        queries = case.words(hold=key).queries[: turn + 1]
        answers = list_value_wordings(case, case.calls[index], case.known[key])
        if not any(is_value_mentioned(query, value) for query in queries for value in answers):
            return await _build_variant(case, turn, index, key)
    raise RecordDropped("no_value_to_hold_back")


def _iter_candidates(case: VariantCase) -> Iterator[tuple[int, int, str, str]]:
    """(turn, call, argument, known key) of what names a thing that is there, for the write with which a turn ends."""
    for turn in case.single_writes():
        for index in range(*case.spans[turn]):
            for argument, key in find_omittable_arguments(case, turn, index):
                schema = case.tools[case.calls[index].tool].parameters[argument]
                if "enum" not in schema and "default" not in schema and _is_name_in_state(case, case.known[key].value):
                    yield turn, index, argument, key


def _is_name_in_state(case: VariantCase, value: JsonValue) -> bool:
    """True for a text in the state that is no date."""
    return isinstance(value, str) and parse_datetime(value) is None and is_leaf_of(value, case.state)


async def _build_variant(case: VariantCase, turn: int, index: int, key: str) -> VariantResult:
    start, stop = case.spans[turn]
    call, words, known = case.calls[index], case.words(hold=key), case.known[key]
    search = AlternativeSearch(case, turn, without_value=known.value)
    way = await search.find_path()
    if way:
        raise RecordDropped("another_way", " > ".join(way))
    pieces = case.unchanged(words, range(turn))
    pieces.append(TurnDraft(words.queries[turn], words.intents[turn], words.entries(turn), ()))
    perturbation = Perturbation(
        base=case.base.id,
        turn=turn,
        act="decline",
        ignorant=True,
        tool=call.tool,
        keys=(key,),
        told=list_value_wordings(case, call, known),
        because=f"it takes the {known.label}, which I can't look up here",
        tempting=build_tempting_calls(case.calls[start:stop]),
        proof=f"{call.tool} is refused without it, no result tells it, {search.read} calls with what is known do not "
        f"show what is needed, and {search.made} more found no other way",
    )
    return VariantResult(await case.finish(pieces, perturbation))

"""The user has not said what names the thing that a write is about, and does not know it: the agent must ask, then say
so. What is a matter of choice, such as a day or a text, everybody knows: only values that stand in the state are taken.

Proof: the call is refused without the value, no earlier result has it, and a search over the tools with everything
else that is known does not reach what was asked for.
"""

from collections.abc import Iterator

from chatmodel.surface import as_moment, mentions
from querygen.vary._case import Case, Varied, stands_in
from querygen.vary._missing import missable, refused_without, ways_to_tell
from querygen.vary._reach import Search, tempting
from querygen.vary._words import Piece
from trajectory import Dropped, JsonValue, Twist


async def vary(case: Case) -> Varied:
    """The task up to the turn in which the value would be needed; nothing may be written in that turn.

    Raises:
        Dropped: No write hangs on a value that only the user could tell, or there is another way.
    """
    for turn, index, argument, key in _candidates(case):
        if not await refused_without(case, index, argument):
            continue
        queries = case.words(hold=key).queries[: turn + 1]
        told = ways_to_tell(case, case.calls[index], case.known[key])
        if not any(mentions(query, value) for query in queries for value in told):
            return await _unknown(case, turn, index, key)
    raise Dropped("no_value_to_hold_back")


def _candidates(case: Case) -> Iterator[tuple[int, int, str, str]]:
    """(turn, call, argument, known key) of what names a thing that is there, for the write with which a turn ends."""
    for turn in case.single_writes():
        for index in range(*case.spans[turn]):
            for argument, key in missable(case, turn, index):
                schema = case.tools[case.calls[index].tool].parameters[argument]
                if "enum" not in schema and "default" not in schema and _names_something(case, case.known[key].value):
                    yield turn, index, argument, key


def _names_something(case: Case, value: JsonValue) -> bool:
    """True for a text in the state that is no date."""
    return isinstance(value, str) and as_moment(value) is None and stands_in(value, case.state)


async def _unknown(case: Case, turn: int, index: int, key: str) -> Varied:
    start, stop = case.spans[turn]
    call, words, known = case.calls[index], case.words(hold=key), case.known[key]
    search = Search(case, turn, without_value=known.value)
    way = await search.way()
    if way:
        raise Dropped("another_way", " > ".join(way))
    pieces = case.unchanged(words, range(turn))
    pieces.append(Piece(words.queries[turn], words.intents[turn], words.entries(turn), ()))
    twist = Twist(
        base=case.base.id,
        turn=turn,
        act="decline",
        ignorant=True,
        tool=call.tool,
        keys=(key,),
        told=ways_to_tell(case, call, known),
        because=f"I need the {known.label} for it, and I cannot look that up here",
        tempting=tempting(case.calls[start:stop]),
        proof=f"{call.tool} is refused without it, no result tells it, {search.read} calls with what is known do not "
        f"show what is needed, and {search.made} more found no other way",
    )
    return Varied(await case.finish(pieces, twist))

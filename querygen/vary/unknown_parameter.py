"""The user has not said a value that a write requires, and does not know it: the agent must ask, then say so.

Proof: the call is refused without the value, no earlier result has it, and a search over the tools with everything
else that is known does not reach what was asked for.
"""

from chatmodel.surface import mentions
from querygen.vary._case import Case, Varied
from querygen.vary._missing import missable, refused_without, ways_to_tell
from querygen.vary._reach import Search, tempting
from querygen.vary._words import Piece
from trajectory import Dropped, Twist


async def vary(case: Case) -> Varied:
    """The task up to the turn in which the value would be needed; nothing may be written in that turn.

    Raises:
        Dropped: No write hangs on a value that only the user could tell, or there is another way.
    """
    for turn in case.single_writes():
        index = case.spans[turn][1] - 1
        for argument, key in missable(case, turn, index):
            schema = case.tools[case.calls[index].tool].parameters[argument]
            if "enum" in schema or "default" in schema or not await refused_without(case, index, argument):
                continue
            words = case.words(hold=key)
            told = ways_to_tell(case, case.calls[index], case.known[key])
            if any(mentions(query, value) for query in words.queries[: turn + 1] for value in told):
                continue
            return await _unknown(case, turn, key)
    raise Dropped("no_value_to_hold_back")


async def _unknown(case: Case, turn: int, key: str) -> Varied:
    start, stop = case.spans[turn]
    call, words, known = case.calls[stop - 1], case.words(hold=key), case.known[key]
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
        because=f"the {known.label} is needed for it, and nothing that I have here tells it",
        tempting=tempting(case.calls[start:stop]),
        proof=f"{call.tool} is refused without it, no result tells it, and {search.made} calls found no other way",
    )
    return Varied(await case.finish(pieces, twist))

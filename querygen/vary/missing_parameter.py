"""The user has not said a value that a call requires, and knows it: the agent must ask, not guess.

Proof: the call is refused without the value, and neither what was said before nor any earlier result has it.
"""

from chatmodel.surface import mentions
from querygen.vary._case import Case, Varied
from querygen.vary._missing import missable, refused_without, ways_to_tell
from trajectory import Dropped, Twist

TRIES = 6


async def vary(case: Case) -> Varied:
    """The task with one value held back until the agent asks.

    Raises:
        Dropped: No value can be held back so that only asking helps.
    """
    tried = 0
    for turn in case.rng.sample(range(len(case.spans)), len(case.spans)):
        for index in range(*case.spans[turn]):
            for argument, key in missable(case, turn, index):
                if (
                    case.calls[index].effect == "read"
                    and "enum" in case.tools[case.calls[index].tool].parameters[argument]
                ):
                    continue  # a look-up can be made with every choice
                tried += 1
                if tried > TRIES:
                    raise Dropped("no_value_to_hold_back", f"{TRIES} tried")
                if await refused_without(case, index, argument):
                    found = await _held(case, turn, index, key)
                    if found:
                        return found
    raise Dropped("no_value_to_hold_back")


async def _held(case: Case, turn: int, index: int, key: str) -> Varied | None:
    call, words = case.calls[index], case.words(hold=key)
    told = ways_to_tell(case, call, case.known[key])
    if any(mentions(query, value) for query in words.queries[: turn + 1] for value in told):
        return None
    twist = Twist(
        base=case.base.id,
        turn=turn,
        act="ask",
        tool=call.tool,
        keys=(key,),
        told=told,
        tempting=(call.model_copy(update={"result": None}),),
        proof=f"{call.tool} is refused without it, and nothing that was said or returned before tells it",
    )
    return Varied(await case.finish(case.unchanged(words, range(len(case.spans))), twist))

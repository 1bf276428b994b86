"""The tool that a write needs is not there: the agent must say that it cannot be done, and write nothing.

Proof: a bounded search over the tools that are left, with the gold values, does not reach what was asked for.
"""

from chatmodel import pick_text
from querygen.vary._case import Case, Varied
from querygen.vary._reach import Search, tempting
from querygen.vary._words import Piece
from trajectory import Dropped, Twist


async def hide(case: Case) -> tuple[int, str, str]:
    """A turn whose one write needs a tool that nothing else before needs: (turn, tool, proof).

    Raises:
        Dropped: There is none, or the other tools reach the same.
    """
    ways = []
    for turn in case.single_writes()[:3]:
        _, stop = case.spans[turn]
        tool = case.calls[stop - 1].tool
        if any(call.tool == tool for call in case.calls[: stop - 1]):
            continue
        search = Search(case, turn, without_tool=tool)
        way = await search.way()
        if not way:
            return turn, tool, f"{search.made} calls of the other tools with the gold values do not reach it"
        ways.append(" > ".join(way))
    raise Dropped("another_way", "; ".join(ways)) if ways else Dropped("no_fitting_turn")


def no_tool(case: Case, tool: str) -> str:
    """Why it cannot be done, in the words of the thing that was asked for."""
    phrase = pick_text(case.wording.tool(tool).narrate, {}, case.rng)
    return f"I have no tool to {phrase}" if phrase else "I have no tool for that"


async def vary(case: Case) -> Varied:
    """The task up to the turn whose tool is missing."""
    turn, tool, proof = await hide(case)
    words = case.words()
    pieces = case.unchanged(words, range(turn))
    pieces.append(Piece(words.queries[turn], words.intents[turn], words.entries(turn), ()))
    twist = Twist(
        base=case.base.id,
        turn=turn,
        act="decline",
        tool=tool,
        hidden=True,
        because=no_tool(case, tool),
        tempting=tempting(case.calls[slice(*case.spans[turn])]),
        proof=proof,
    )
    return Varied(await case.finish(pieces, twist, hidden=tool))

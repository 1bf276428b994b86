"""The tool that a write needs is not there: the agent must say that it cannot be done, and write nothing.

Proof: a bounded search over the tools that are left, with the gold values, does not reach what was asked for.
"""

from trajsmith.phrasing import pick_text
from trajsmith.querygen.vary._alternative_search import AlternativeSearch, build_tempting_calls
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._rewording import TurnDraft
from trajsmith.records import Perturbation, RecordDropped


async def hide_tool(case: VariantCase) -> tuple[int, str, str]:
    """Find a turn whose one write needs a tool that nothing else before needs: (turn, tool, proof).

    Raises:
        RecordDropped: There is none, or the other tools reach the same.
    """
    ways = []
    for turn in sorted(case.single_writes(), reverse=True)[:3]:  # late, so that a dialogue goes before it
        _, stop = case.spans[turn]
        tool = case.calls[stop - 1].tool
        if any(call.tool == tool for call in case.calls[: stop - 1]):
            continue
        search = AlternativeSearch(case, turn, without_tool=tool)
        way = await search.find_path()
        if not way:
            return turn, tool, f"{search.made} calls of the other tools with the gold values do not reach it"
        ways.append(" > ".join(way))
    raise RecordDropped("another_way", "; ".join(ways)) if ways else RecordDropped("no_fitting_turn")


def render_missing_tool_reason(case: VariantCase, tool: str) -> str:
    """Return the reason why the request cannot be fulfilled, in the words of the request."""
    narrate = case.wording.tool(tool).narrate  # the first ones name the thing; the others lean on what was said
    phrase = next(filter(None, (pick_text([text], {}, case.rng) for text in narrate)), "")
    return f"I can't {phrase} from here" if phrase else "I can't do that from here"


@VARIANTS.register("missing_function")
async def vary(case: VariantCase) -> VariantResult:
    """The task up to the turn whose tool is missing."""
    turn, tool, proof = await hide_tool(case)
    words = case.words()
    pieces = case.unchanged(words, range(turn))
    pieces.append(TurnDraft(words.queries[turn], words.intents[turn], words.entries(turn), ()))
    perturbation = Perturbation(
        base=case.base.id,
        turn=turn,
        act="decline",
        tool=tool,
        hidden=True,
        because=render_missing_tool_reason(case, tool),
        tempting=build_tempting_calls(case.calls[slice(*case.spans[turn])]),
        proof=proof,
    )
    return VariantResult(await case.finish(pieces, perturbation, hidden=tool))

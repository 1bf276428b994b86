"""The tool that a write needs is not there: the agent must say that it cannot be done, and write nothing.

Proof: a bounded search over the tools that are left, with the gold values, does not reach what was asked for.
"""

from trajsmith.phrasing import pick_text
from trajsmith.querygen.vary._alternative_search import AlternativeSearch, build_tempting_calls
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._rewording import TurnDraft
from trajsmith.records import FromOutput, Perturbation, RecordDropped, canonical_json


async def hide_tool(case: VariantCase) -> tuple[int, str, str]:
    """Find a turn whose one write needs a tool that nothing else before needs: (turn, tool, proof).

    Raises:
        RecordDropped: There is none, or the other tools reach the same.
    """
    ways = []
    for turn in case.single_writes()[:3]:
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
    phrase = pick_text(case.wording.tool(tool).narrate, {}, case.rng)
    return f"I can't {phrase} from here" if phrase else "I can't do that from here"


async def find_related_read(case: VariantCase, turn: int, hidden: str) -> str:
    """Return what the agent can do with the same thing, as a verb phrase; empty if no look-up of it succeeds."""
    start, stop = case.spans[turn]
    write = case.calls[stop - 1]
    chosen_names = {
        name
        for name, source in write.provenance.items()
        if isinstance(source, FromOutput) and any(selector.how != "only" for selector in source.selectors)
    }
    earlier_calls = {(call.tool, canonical_json(call.arguments)) for call in case.calls[:stop]}
    session = await case.at(start)
    for tool in case.rng.sample(case.spec.tools, len(case.spec.tools)):
        arguments = {name: write.arguments[name] for name in tool.required if name in write.arguments}
        if (
            tool.declares_write
            or tool.actor != "assistant"
            or tool.name == hidden
            or not chosen_names & arguments.keys()
        ):
            continue
        if len(arguments) < len(tool.required) or (tool.name, canonical_json(arguments)) in earlier_calls:
            continue
        phrase = pick_text(case.wording.tool(tool.name).narrate, {}, case.rng)
        if phrase and (await session.call(tool.name, arguments)).ok:
            return phrase
    return ""


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
        instead=await find_related_read(case, turn, tool),
        tempting=build_tempting_calls(case.calls[slice(*case.spans[turn])]),
        proof=proof,
    )
    return VariantResult(await case.finish(pieces, perturbation, hidden=tool))

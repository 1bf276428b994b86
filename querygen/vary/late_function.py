"""The tool that a write needs is not there at first: the agent says so, and does it once the tool has arrived.

The user's next message brings the tool with its schema: a system message in the middle of a conversation is more than
many chat templates can take. Proof as for `missing_function`.
"""

from trajsmith.querygen.vary._alternative_search import build_tempting_calls
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.querygen.vary._rewording import TurnDraft
from trajsmith.querygen.vary.missing_function import hide_tool, render_missing_tool_reason
from trajsmith.records import Perturbation, canonical_json

ARRIVED = (
    "There is a new tool for you now: {} Could you do it now?",
    "I was told that you have just been given another tool: {} Please try again.",
    "Your tools were extended, you can use this one from now on: {} So please go ahead with what I asked for.",
)


@VARIANTS.register("late_function")
async def vary(case: VariantCase) -> VariantResult:
    """The whole task, with one more turn: the request is made again when the tool is there."""
    turn, tool, proof = await hide_tool(case)
    words = case.words()
    pieces = case.unchanged(words, range(turn))
    entries = words.entries(turn)
    pieces.append(TurnDraft(words.queries[turn], words.intents[turn], entries, ()))
    schema = canonical_json(case.tools[tool].as_function()["function"]).decode()
    query = case.rng.choice(ARRIVED).format(schema)
    calls = tuple(case.calls[slice(*case.spans[turn])])
    pieces.append(TurnDraft(query, words.intents[turn], entries, calls, True, words.asked[turn]))
    pieces += case.unchanged(words, range(turn + 1, len(case.spans)))
    perturbation = Perturbation(
        base=case.base.id,
        turn=turn,
        act="decline",
        tool=tool,
        hidden=True,
        arrives=turn + 1,
        because=render_missing_tool_reason(case, tool),
        tempting=build_tempting_calls(case.calls[slice(*case.spans[turn])]),
        proof=proof,
    )
    return VariantResult(await case.finish(pieces, perturbation, hidden=tool))

"""The first call of one tool fails for a moment, and says so: the agent must try again and get on with it.

The failure is injected by the session; the environment never sees that call. Proof: with the call left out the task
cannot be done, since it writes, later calls need what it returns, or the answer does.
"""

from trajsmith.grounding import iterate_leaves
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.records import FromOutput, Perturbation, RecordDropped

FAILURES = (
    "the service is busy at the moment, please try again",
    "temporary failure: the request timed out, nothing was changed, please retry",
    "503 service unavailable, try again in a moment",
    "the connection was lost before the request was handled, please send it again",
)


@VARIANTS.register("tool_failure")
async def vary(case: VariantCase) -> VariantResult:
    """The same task in other words, with one failing call.

    Raises:
        RecordDropped: No call of the agent is needed.
    """
    used = {
        source.call for call in case.calls for _, source, _ in iterate_leaves(call) if isinstance(source, FromOutput)
    }
    needed = [
        index
        for index, call in enumerate(case.calls)
        if call.actor == "assistant" and (call.effect == "write" or index in used)
    ]
    if not needed:
        raise RecordDropped("no_call_is_needed")
    index = case.rng.choice(needed)
    tool = case.calls[index].tool
    first = next(place for place, call in enumerate(case.calls) if call.tool == tool)
    turn = next(number for number, (start, stop) in enumerate(case.spans) if start <= first < stop)
    why = "it writes" if case.calls[first].effect == "write" else "later calls need its result"
    if first != index and first not in needed:
        raise RecordDropped("no_call_is_needed", tool)
    perturbation = Perturbation(
        base=case.base.id,
        turn=turn,
        act="recover",
        tool=tool,
        refusal=case.rng.choice(FAILURES),
        proof=f"the session refuses the first call of {tool} and hands the next one on; {why}",
    )
    return VariantResult(await case.finish(case.unchanged(case.words(), range(len(case.spans))), perturbation))

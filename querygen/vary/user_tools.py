"""Something only the user can do, on their own device: the agent must ask them to, and not try or claim it itself.

Only where an environment has tools of the user. Proof: the environment refuses the call from the agent, takes it from
the user, and later calls or the state need it.
"""

from trajsmith.grounding import iterate_leaves
from trajsmith.querygen.vary._alternative_search import build_tempting_calls
from trajsmith.querygen.vary._case import VARIANTS, VariantCase, VariantResult
from trajsmith.records import FromOutput, Perturbation, RecordDropped


@VARIANTS.register("user_tools")
async def vary(case: VariantCase) -> VariantResult:
    """The task in other words, with what only the user can do marked.

    Raises:
        RecordDropped: The environment has no such tools, or the task makes no call of one.
    """
    if not case.base.user_tools:
        raise RecordDropped("no_user_tools")
    used = {
        source.call for call in case.calls for _, source, _ in iterate_leaves(call) if isinstance(source, FromOutput)
    }
    mine = [
        index
        for index, call in enumerate(case.calls)
        if call.actor == "user" and (call.effect == "write" or index in used)
    ]
    if not mine:
        raise RecordDropped("no_call_by_the_user")
    index = case.rng.choice(mine)
    call = case.calls[index]
    session = await case.at(index)
    result = await session.call(call.tool, call.arguments, "assistant")
    if result.ok:
        raise RecordDropped("the_agent_can_do_it", call.tool)
    turn = next(number for number, (start, stop) in enumerate(case.spans) if start <= index < stop)
    why = "it changes the state" if call.effect == "write" else "later calls need what it shows"
    perturbation = Perturbation(
        base=case.base.id,
        turn=turn,
        act="delegate",
        tool=call.tool,
        tempting=build_tempting_calls([call]),
        proof=f"{call.tool} is refused to the agent and done by the user; {why}",
    )
    return VariantResult(await case.finish(case.unchanged(case.words(), range(len(case.spans))), perturbation))

"""Something only the user can do, on their own device: the agent must ask them to, and not try or claim it itself.

Only where an environment has tools of the user. Proof: the environment refuses the call from the agent, takes it from
the user, and later calls or the state need it.
"""

from grounding import leaves
from querygen.vary._case import Case, Varied
from querygen.vary._reach import tempting
from trajectory import Dropped, FromOutput, Twist


async def vary(case: Case) -> Varied:
    """The task in other words, with what only the user can do marked.

    Raises:
        Dropped: The environment has no such tools, or the task makes no call of one.
    """
    if not case.base.user_tools:
        raise Dropped("no_user_tools")
    used = {source.call for call in case.calls for _, source, _ in leaves(call) if isinstance(source, FromOutput)}
    mine = [
        index
        for index, call in enumerate(case.calls)
        if call.actor == "user" and (call.effect == "write" or index in used)
    ]
    if not mine:
        raise Dropped("no_call_by_the_user")
    index = case.rng.choice(mine)
    call = case.calls[index]
    session = await case.at(index)
    result = await session.call(call.tool, call.arguments, "assistant")
    if result.ok:
        raise Dropped("the_agent_can_do_it", call.tool)
    turn = next(number for number, (start, stop) in enumerate(case.spans) if start <= index < stop)
    why = "it changes the state" if call.effect == "write" else "later calls need what it shows"
    twist = Twist(
        base=case.base.id,
        turn=turn,
        act="delegate",
        tool=call.tool,
        tempting=tempting([call]),
        proof=f"{call.tool} is refused to the agent and done by the user; {why}",
    )
    return Varied(await case.finish(case.unchanged(case.words(), range(len(case.spans))), twist))

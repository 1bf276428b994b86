"""Taking out calls that were not needed: by making the run again without them. EnvFactory, section 3.4, "Evaluation".

A call is redundant if the run without it, with all later arguments as they are, gives the same results and the same
state after every turn, and if what later arguments and messages say is known without its result, too. Calls that gold
makes are never taken out: they are what the user asked for.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from chatmodel.surface import mentions
from environments import Session
from environments.staged import open_turn
from trajectory import CallEvent, EnvironmentFault, JsonObject, Message, PrunedCall, Trajectory
from verify.form import leaves_of
from verify.messages import arranged, call_id, result_of, without_calls

WHY = "the run without it gives the same results and states, and nothing said later rests on it alone"


async def redundant_calls(
    trajectory: Trajectory, needed: AbstractSet[int], state: JsonObject, session: Session
) -> tuple[PrunedCall, ...]:
    """Calls that can go, all of them together.

    Args:
        trajectory: A trajectory that replays.
        needed: Events that stay whatever comes out: those that make gold calls.
        state: Its initial state.
        session: A session of its environment; it is reset.
    """
    gone: set[int] = set()
    candidates = [
        index
        for index, event in enumerate(trajectory.events)
        if index not in needed and event.actor == "assistant" and call_id(trajectory, index) is not None
    ]
    if len(candidates) > 1 and await _can_go(trajectory, set(candidates), state, session):
        gone = set(candidates)
    else:
        more = True
        while more:  # what one call rests on may be gone with another
            more = False
            for index in candidates:
                if index not in gone and await _can_go(trajectory, gone | {index}, state, session):
                    gone.add(index)
                    more = True
    events = trajectory.events
    return tuple(
        PrunedCall(event=index, tool=events[index].tool, arguments=events[index].arguments, why=WHY)
        for index in sorted(gone)
    )


def pruned(trajectory: Trajectory, calls: Iterable[PrunedCall]) -> Trajectory:
    """The trajectory without these calls; the same one if there are none."""
    gone = {call.event for call in calls}
    return without_calls(trajectory, gone) if gone else trajectory


async def _can_go(trajectory: Trajectory, gone: AbstractSet[int], state: JsonObject, session: Session) -> bool:
    return (
        not _answers_a_question(trajectory, gone)
        and _is_known_otherwise(trajectory, gone)
        and await _comes_to_the_same(trajectory, gone, state, session)
    )


async def _comes_to_the_same(
    trajectory: Trajectory, gone: AbstractSet[int], state: JsonObject, session: Session
) -> bool:
    """Replay without some calls: the same results of all others, the same state after every turn."""
    try:
        await session.reset(state)
        made = 0
        for number, span in enumerate(trajectory.turns):
            open_turn(session, number)
            while made < len(trajectory.events) and trajectory.events[made].message < span.stop:
                event = trajectory.events[made]
                if made not in gone and not await _same_result(event, session):
                    return False
                made += 1
            if await session.state_hash() != span.state_hash:
                return False
    except EnvironmentFault:
        return False
    return True


async def _same_result(event: CallEvent, session: Session) -> bool:
    if not event.reached:
        return True
    result = await session.call(event.tool, event.arguments, event.actor)
    return result.ok == event.ok and result.hash == event.result_hash


def _answers_a_question(trajectory: Trajectory, gone: AbstractSet[int]) -> bool:
    """True if a call was made on the word of a user who was asked: without it the question would lead nowhere."""
    openings = {span.start for span in trajectory.turns}
    for index in gone:
        message = trajectory.events[index].message
        asked = trajectory.messages[message - 1].role == "user" and message - 1 not in openings
        others = [n for n, event in enumerate(trajectory.events) if event.message == message and n not in gone]
        if asked and not others:
            return True
    return False


def _is_known_otherwise(trajectory: Trajectory, gone: AbstractSet[int]) -> bool:
    """True if all that later arguments and messages say of the results that go stands elsewhere before it."""
    shown, place = arranged(trajectory, gone)
    for index in gone:
        values = {repr(value): value for value in _values(result_of(trajectory, index))}
        start = place[trajectory.events[index].message]
        if not all(_is_known(value, shown.messages, start) for value in values.values()):
            return False
    return True


def _is_known(value: Any, messages: Sequence[Message], start: int) -> bool:
    """True if the value was heard of before each message from `start` on that uses it."""
    for number in range(start, len(messages)):
        message = messages[number]
        if message.role == "tool":
            if mentions(message.content, value):
                return True  # from here on it is known
            continue
        used = mentions(message.content, value) or any(
            _same(value, leaf)
            for call in message.tool_calls or ()
            for _, leaf in leaves_of(call.function.arguments, ())
        )
        if used:
            return any(_tells(earlier, value) for earlier in messages[:number]) or message.role == "user"
    return True


def _tells(message: Message, value: Any) -> bool:
    return mentions(message.content, value) or any(
        _same(value, leaf) for call in message.tool_calls or () for _, leaf in leaves_of(call.function.arguments, ())
    )


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _values(result: Any) -> list[Any]:
    """What a result tells that somebody could take up: texts and numbers."""
    if isinstance(result, str):
        return [line.strip() for line in result.splitlines() if len(line.strip()) > 1]
    found = [value for _, value in leaves_of(result, ())]
    return [
        value
        for value in found
        if (isinstance(value, str) and len(value) > 1)
        or (isinstance(value, int | float) and not isinstance(value, bool))
    ]

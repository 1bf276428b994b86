"""Taking out calls that were not needed: by making the run again without them. EnvFactory, section 3.4, "Evaluation".

A call is redundant if the run without it, with all later arguments as they are, gives the same results and the same
state after every turn, and if what later arguments and messages say is known without its result, too. Calls that gold
makes are never taken out: they are what the user asked for.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations
from typing import Any

from trajsmith.environments import Session
from trajsmith.environments.injected_faults import open_turn
from trajsmith.phrasing import is_value_mentioned
from trajsmith.records import SEARCH_TOOLS, CallEvent, EnvironmentFault, JsonObject, Message, PrunedCall, Trajectory
from trajsmith.verify.call_removal import find_call_id, read_result, remove_calls, remove_calls_with_positions
from trajsmith.verify.normalized_state import iter_leaves

PRUNE_REASON = "the run without it gives the same results and states, and nothing said later rests on it alone"


async def find_redundant_calls(
    trajectory: Trajectory, needed: AbstractSet[int], state: JsonObject, session: Session
) -> tuple[PrunedCall, ...]:
    """Return calls that can be removed, all of them together.

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
        if index not in needed
        and event.actor == "assistant"
        and find_call_id(trajectory, index) is not None
        and not _is_near_miss(trajectory.events, index)
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
        writes = [index for index in candidates if index not in gone and trajectory.events[index].effect is not None]
        for pair in combinations(writes, 2):  # a write and the one that undoes it can go only together
            if gone.isdisjoint(pair) and await _can_go(trajectory, gone | set(pair), state, session):
                gone.update(pair)
    events = trajectory.events
    return tuple(
        PrunedCall(event=index, tool=events[index].tool, arguments=events[index].arguments, why=PRUNE_REASON)
        for index in sorted(gone)
    )


def _is_near_miss(events: Sequence[CallEvent], index: int) -> bool:
    """Return True for a search for tools that another search follows at once: its result says why."""
    later = (event for event in events[index + 1 :] if event.message > events[index].message)
    follower = next(later, None)
    return events[index].tool == SEARCH_TOOLS and follower is not None and follower.tool == SEARCH_TOOLS


def prune_trajectory(trajectory: Trajectory, calls: Iterable[PrunedCall]) -> Trajectory:
    """The trajectory without these calls; the same one if there are none."""
    gone = {call.event for call in calls}
    return remove_calls(trajectory, gone) if gone else trajectory


async def _can_go(trajectory: Trajectory, gone: AbstractSet[int], state: JsonObject, session: Session) -> bool:
    if explain_talk_need(trajectory, gone) is not None:
        return False
    try:
        return await is_outcome_equal(trajectory, gone, state, session)
    except EnvironmentFault:
        return False


def explain_talk_need(trajectory: Trajectory, gone: AbstractSet[int]) -> str | None:
    """Return why the words of the dialogue need these calls; None if they read on without them."""
    if _follows_question(trajectory, gone):
        return "it follows what the user answered to a question"
    if not _is_known_without(trajectory, gone):
        return "what is said or called later rests on its result alone"
    return None


async def is_outcome_equal(trajectory: Trajectory, gone: AbstractSet[int], state: JsonObject, session: Session) -> bool:
    """Replay without some calls: the same results of all others, the same state after every turn.

    Raises:
        EnvironmentFault: The environment broke.
    """
    await session.reset(state)
    call_count = 0
    for number, span in enumerate(trajectory.turns):
        open_turn(session, number)
        while call_count < len(trajectory.events) and trajectory.events[call_count].message < span.stop:
            event = trajectory.events[call_count]
            if call_count not in gone and not await _is_result_equal(event, session):
                return False
            call_count += 1
        if await session.state_hash() != span.state_hash:
            return False
    return True


async def _is_result_equal(event: CallEvent, session: Session) -> bool:
    if not event.reached:
        return True
    result = await session.call(event.tool, event.arguments, event.actor)
    return result.ok == event.ok and result.hash == event.result_hash


def _follows_question(trajectory: Trajectory, gone: AbstractSet[int]) -> bool:
    """Return True if a call follows the user's answer to a question, which would be pointless without it.

    After a call that was refused the next one may be what was asked about.
    """
    openings = {span.start for span in trajectory.turns}
    remaining = {event.message for index, event in enumerate(trajectory.events) if index not in gone}
    for index in gone:
        event = trajectory.events[index]
        asked = trajectory.messages[event.message - 1].role == "user" and event.message - 1 not in openings
        working = [event.message] if event.ok else _list_working_messages(trajectory, event.message)
        if asked and remaining.isdisjoint(working):
            return True
    return False


def _list_working_messages(trajectory: Trajectory, start: int) -> list[int]:
    """Return the messages with calls from one on, up to the next one without."""
    numbers: list[int] = []
    for number in range(start, len(trajectory.messages)):
        message = trajectory.messages[number]
        if message.role == "user" or (message.role == "assistant" and not message.tool_calls):
            break
        if message.role == "assistant":
            numbers.append(number)
    return numbers


def _is_known_without(trajectory: Trajectory, gone: AbstractSet[int]) -> bool:
    """Return True if all values of the removed results that are used later occur elsewhere before."""
    shown, place = remove_calls_with_positions(trajectory, gone)
    for index in gone:
        values = {repr(value): value for value in _list_usable_values(read_result(trajectory, index))}
        start = place[trajectory.events[index].message]
        if not all(_is_known(value, shown.messages, start) for value in values.values()):
            return False
    return True


def _is_known(value: Any, messages: Sequence[Message], start: int) -> bool:
    """Return True if the value occurs before each message from `start` on that uses it."""
    for number in range(start, len(messages)):
        message = messages[number]
        if message.role == "tool":
            if is_value_mentioned(message.content, value):
                return True  # from here on it is known
            continue
        used = is_value_mentioned(message.content, value) or any(
            _is_equal(value, leaf)
            for call in message.tool_calls or ()
            for _, leaf in iter_leaves(call.function.arguments, ())
        )
        if used:
            return any(_is_value_in_message(earlier, value) for earlier in messages[:number]) or message.role == "user"
    return True


def _is_value_in_message(message: Message, value: Any) -> bool:
    return is_value_mentioned(message.content, value) or any(
        _is_equal(value, leaf)
        for call in message.tool_calls or ()
        for _, leaf in iter_leaves(call.function.arguments, ())
    )


def _is_equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _list_usable_values(result: Any) -> list[Any]:
    """Return the texts and numbers of a result that could be used later."""
    if isinstance(result, str):
        return [line.strip() for line in result.splitlines() if len(line.strip()) > 1]
    leaves = [value for _, value in iter_leaves(result, ())]
    return [
        value
        for value in leaves
        if (isinstance(value, str) and len(value) > 1)
        or (isinstance(value, int | float) and not isinstance(value, bool))
    ]

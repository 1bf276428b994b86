"""Putting calls into a trajectory that it does not need, so that pruning has something to find."""

import random
from collections.abc import Iterator

from trajsmith.environments import Session
from trajsmith.records import CallEvent, FunctionCall, JsonObject, Message, ToolCall, Trajectory, TurnSpan

Call = tuple[str, JsonObject]
WORDS = ("Let me check that again.", "I'll have another look.", "")


async def injected(
    trajectory: Trajectory, state: JsonObject, session: Session, count: int, rng: random.Random
) -> tuple[Trajectory, list[Call]]:
    """The trajectory with up to `count` calls more that change neither what the others give nor any state, and those.

    They are calls that the agent makes anyway, made again before or after: reads that give the same or something
    else, writes that are refused or change nothing.
    """
    done: list[Call] = []
    for tries in range(3 * count):
        if len(done) == count:
            break
        places = [index for index, message in enumerate(trajectory.messages) if message.role == "assistant"]
        if not trajectory.events:
            break
        event = rng.choice([event for event in trajectory.events if event.actor == "assistant"] or [None])
        if event is None:
            break
        longer = await _with(trajectory, rng.choice(places), (event.tool, event.arguments), state, session, tries, rng)
        if longer is not None:
            trajectory = longer
            done.append((event.tool, event.arguments))
    return trajectory, done


async def _with(
    trajectory: Trajectory, place: int, call: Call, state: JsonObject, session: Session, number: int, rng: random.Random
) -> Trajectory | None:
    """The trajectory with a call in a message of its own before message `place`; None if that makes a difference."""
    if trajectory.messages[place - 1].role == "user" and place - 1 not in {span.start for span in trajectory.turns}:
        return None  # an answer of the user is not torn from the call that it leads to
    await session.reset(state)
    events: list[CallEvent] = []
    added: list[Message] = []
    for event in [*trajectory.events, None]:
        if not added and (event is None or event.message >= place):
            result = await session.call(*call)
            name = f"again_{number}"
            function = FunctionCall(name=call[0], arguments=call[1])
            added = [
                Message(
                    role="assistant", content=rng.choice(WORDS), tool_calls=(ToolCall(id=name, function=function),)
                ),
                Message(role="tool", content=result.text, tool_call_id=name, name=call[0]),
            ]
            events.append(
                CallEvent(
                    actor="assistant", tool=call[0], arguments=call[1], ok=result.ok, error=result.error,
                    result_hash=result.hash, message=place,
                )
            )  # fmt: skip
        if event is not None:
            again = await session.call(event.tool, event.arguments, event.actor)
            if (again.ok, again.hash) != (event.ok, event.result_hash):
                return None
            moved = event.message + 2 * (event.message >= place)
            events.append(event.model_copy(update={"message": moved}))
    turns = list(_moved(trajectory.turns, place))
    injected = trajectory.model_copy(
        update={
            "messages": (*trajectory.messages[:place], *added, *trajectory.messages[place:]),
            "events": tuple(events),
            "turns": tuple(turns),
        }
    )
    return injected if await _ends_alike(injected, state, session) else None


def _moved(turns: tuple[TurnSpan, ...], place: int) -> Iterator[TurnSpan]:
    for span in turns:
        start, stop = span.start + 2 * (span.start >= place), span.stop + 2 * (span.stop > place)
        yield TurnSpan(start=start, stop=stop, state_hash=span.state_hash)


async def _ends_alike(trajectory: Trajectory, state: JsonObject, session: Session) -> bool:
    """Return True if the state after every turn is as the record has it."""
    await session.reset(state)
    rest = list(trajectory.events)
    for span in trajectory.turns:
        while rest and rest[0].message < span.stop:
            event = rest.pop(0)
            await session.call(event.tool, event.arguments, event.actor)
        if await session.state_hash() != span.state_hash:
            return False
    return True

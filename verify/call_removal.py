"""Removal of calls from the messages of a trajectory, so that they stay consistent."""

from collections.abc import Set as AbstractSet
from typing import Any

import orjson

from trajsmith.records import Message, Trajectory, TurnSpan

CONTINUATIONS = ("Next,", "Next I", "Now ", "Then ", "After that", "I'll also", "Also")
"""How an announcement begins that follows another one."""


def find_call_id(trajectory: Trajectory, index: int) -> str | None:
    """Id of the tool call that an event of the agent is; None if the message has no such call."""
    event = trajectory.events[index]
    before = sum(other.message == event.message and other.actor == "assistant" for other in trajectory.events[:index])
    calls = trajectory.messages[event.message].tool_calls or ()
    return calls[before].id if before < len(calls) else None


def read_result(trajectory: Trajectory, index: int) -> Any:
    """Return the result that the agent saw after a call: parsed where it is JSON, else the text."""
    wanted = find_call_id(trajectory, index)
    text = next((m.content for m in trajectory.messages if m.role == "tool" and m.tool_call_id == wanted), "")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def remove_calls(trajectory: Trajectory, gone: AbstractSet[int]) -> Trajectory:
    """The trajectory without some events of the agent; see `arranged`."""
    return remove_calls_with_positions(trajectory, gone)[0]


def remove_calls_with_positions(trajectory: Trajectory, gone: AbstractSet[int]) -> tuple[Trajectory, list[int]]:
    """The trajectory without some events of the agent, and for each of its messages how many stay before it.

    A message all of whose calls go is taken out with their results, and with the words that announce them; one that
    keeps some calls loses its words. A message that goes on from one that is gone loses its first words, too.
    """
    ids = {find_call_id(trajectory, index) for index in gone}
    openings = {span.start for span in trajectory.turns}
    remaining: list[Message] = []
    moved: list[int] = []
    begins = False
    for number, message in enumerate(trajectory.messages):
        moved.append(len(remaining))
        if message.role == "user":
            begins = number in openings
        if message.role == "tool" and message.tool_call_id in ids:
            continue
        if not message.tool_calls:
            remaining.append(message)
            continue
        shorter = _remove_from_message(message, ids)
        if shorter is not None:
            opens = begins and remaining[-1].role == "user" and trajectory.messages[number - 1].role != "user"
            remaining.append(
                shorter.model_copy(update={"content": ""}) if opens and _is_continuation(shorter) else shorter
            )
    moved.append(len(remaining))
    events = [
        event.model_copy(update={"message": moved[event.message]})
        for index, event in enumerate(trajectory.events)
        if index not in gone
    ]
    turns = [
        TurnSpan(start=moved[span.start], stop=moved[span.stop], state_hash=span.state_hash)
        for span in trajectory.turns
    ]
    shortened = trajectory.model_copy(
        update={"messages": tuple(remaining), "events": tuple(events), "turns": tuple(turns)}
    )
    return shortened.model_copy(update={"id": shortened.content_id()}), moved


def _remove_from_message(message: Message, ids: AbstractSet[str | None]) -> Message | None:
    """A message without some of its calls; None if nothing is left."""
    calls = tuple(call for call in message.tool_calls or () if call.id not in ids)
    if not calls:
        return None
    if len(calls) == len(message.tool_calls or ()):
        return message
    return message.model_copy(update={"tool_calls": calls, "content": "", "reasoning_content": None})


def _is_continuation(message: Message) -> bool:
    return message.content.startswith(CONTINUATIONS)

"""Messages of a trajectory without some of its calls, so that they read on."""

from collections.abc import Set as AbstractSet
from typing import Any

import orjson

from trajectory import Message, Trajectory, TurnSpan

GOES_ON = ("Next,", "Next I", "Now ", "Then ", "After that", "I'll also", "Also")
"""How an announcement begins that follows another one."""


def call_id(trajectory: Trajectory, index: int) -> str | None:
    """Id of the tool call that an event of the agent is; None if the message has no such call."""
    event = trajectory.events[index]
    before = sum(other.message == event.message and other.actor == "assistant" for other in trajectory.events[:index])
    calls = trajectory.messages[event.message].tool_calls or ()
    return calls[before].id if before < len(calls) else None


def result_of(trajectory: Trajectory, index: int) -> Any:
    """What the agent was shown after a call: parsed where it is JSON, else the text."""
    wanted = call_id(trajectory, index)
    text = next((m.content for m in trajectory.messages if m.role == "tool" and m.tool_call_id == wanted), "")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def without_calls(trajectory: Trajectory, gone: AbstractSet[int]) -> Trajectory:
    """The trajectory without some events of the agent; see `arranged`."""
    return arranged(trajectory, gone)[0]


def arranged(trajectory: Trajectory, gone: AbstractSet[int]) -> tuple[Trajectory, list[int]]:
    """The trajectory without some events of the agent, and for each of its messages how many stay before it.

    A message all of whose calls go is taken out with their results, and with the words that announce them; one that
    keeps some calls loses its words. A message that goes on from one that is gone loses its first words, too.
    """
    ids = {call_id(trajectory, index) for index in gone}
    openings = {span.start for span in trajectory.turns}
    kept: list[Message] = []
    moved: list[int] = []
    begins = False
    for number, message in enumerate(trajectory.messages):
        moved.append(len(kept))
        if message.role == "user":
            begins = number in openings
        if message.role == "tool" and message.tool_call_id in ids:
            continue
        if not message.tool_calls:
            kept.append(message)
            continue
        shorter = _shorter(message, ids)
        if shorter is not None:
            opens = begins and kept[-1].role == "user" and trajectory.messages[number - 1].role != "user"
            kept.append(shorter.model_copy(update={"content": ""}) if opens and _goes_on(shorter) else shorter)
    moved.append(len(kept))
    events = [
        event.model_copy(update={"message": moved[event.message]})
        for index, event in enumerate(trajectory.events)
        if index not in gone
    ]
    turns = [
        TurnSpan(start=moved[span.start], stop=moved[span.stop], state_hash=span.state_hash)
        for span in trajectory.turns
    ]
    made = trajectory.model_copy(update={"messages": tuple(kept), "events": tuple(events), "turns": tuple(turns)})
    return made.model_copy(update={"id": made.content_id()}), moved


def _shorter(message: Message, ids: AbstractSet[str | None]) -> Message | None:
    """A message without some of its calls; None if nothing is left."""
    calls = tuple(call for call in message.tool_calls or () if call.id not in ids)
    if not calls:
        return None
    if len(calls) == len(message.tool_calls or ()):
        return message
    return message.model_copy(update={"tool_calls": calls, "content": "", "reasoning_content": None})


def _goes_on(message: Message) -> bool:
    return message.content.startswith(GOES_ON)

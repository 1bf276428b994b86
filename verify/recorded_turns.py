"""Recorded dialogues without gold: their turns from the messages, and ids in calls that nothing had shown or said."""

import json
from collections.abc import Iterator
from typing import Any, Literal

from trajsmith.phrasing import Wording
from trajsmith.records import CallEvent, Trajectory
from trajsmith.verify.discourse import get_lexicon
from trajsmith.verify.reference_check import ReferenceFault
from trajsmith.verify.spoken_turns import EntityNeed, SpokenCall, SpokenTurn

SHORTEST_ID = 3
"""Letters of an id that is looked for in texts; shorter ones stand in any text."""


def read_recorded_turns(trajectory: Trajectory, wording: Wording) -> Iterator[SpokenTurn]:
    """Yield the turns of a recorded dialogue: each message of the user with the calls that follow it.

    An entity of a write is compared with the words if the turn's calls take no other of its kind.
    """
    _, kinds = get_lexicon(wording)
    turn = SpokenTurn("", [])
    for number, call, text in _iterate_messages(trajectory, wording):
        if call is not None:
            call.index = number
            turn.calls.append(call)
            continue
        if turn.text:
            yield _with_needs(turn, kinds)
        turn = SpokenTurn(text, [])
    if turn.text:
        yield _with_needs(turn, kinds)


def _with_needs(turn: SpokenTurn, kinds: frozenset[str]) -> SpokenTurn:
    taken: dict[str, set[str]] = {}
    for call in turn.calls:
        for name, value in call.arguments.items():
            if name in kinds and isinstance(value, str | int) and not isinstance(value, bool):
                taken.setdefault(name, set()).add(str(value))
    writes = [call for call in turn.calls if call.effect == "write" and call.ok]
    turn.needs = [
        EntityNeed(call.index, name, name, str(call.arguments[name]))
        for call in writes
        for name in call.arguments
        if len(taken.get(name, ())) == 1
    ]
    used = {value for values in taken.values() for value in values}
    turn.requested = frozenset(call.index for call in turn.calls if call in writes or not _shows(call, used))
    return turn


def _shows(call: SpokenCall, used: set[str]) -> bool:
    """Return whether the result of a call shows an id that the turn's calls take."""
    text = json.dumps(call.result, ensure_ascii=False)
    return any(f'"{value}"' in text for value in used if value not in map(str, call.arguments.values()))


def _iterate_messages(trajectory: Trajectory, wording: Wording) -> Iterator[tuple[int, SpokenCall | None, str]]:
    """Yield (index, call, "") for calls with their results and (index of the next call, None, text) for the user."""
    results = {message.tool_call_id: message.content for message in trajectory.messages if message.role == "tool"}
    events = [event for event in trajectory.events if event.actor == "assistant"]
    index = 0
    for message in trajectory.messages:
        if message.role == "user" and message.content:
            yield index, None, message.content
        for tool_call in message.tool_calls or ():
            event = events[index] if index < len(events) else None
            name, arguments = tool_call.function.name, tool_call.function.arguments
            result = _parse(results.get(tool_call.id, ""))
            effect = _get_effect(event, name, wording)
            yield index, SpokenCall(index, name, arguments, result, effect, event is None or event.ok), ""
            index += 1


def _get_effect(event: CallEvent | None, name: str, wording: Wording) -> Literal["read", "write"]:
    if event is not None and event.tool == name:
        return "read" if event.effect is None else "write"
    tool = wording.tools.get(name)
    return "write" if tool is not None and tool.declares_write else "read"


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def find_unseen_ids(trajectory: Trajectory, wording: Wording) -> list[ReferenceFault]:
    """Return the ids in calls that changed something and that no message before them holds."""
    _, kinds = get_lexicon(wording)
    seen: list[str] = []
    faults: list[ReferenceFault] = []
    events = [event for event in trajectory.events if event.actor == "assistant"]
    turn, index = -1, 0
    for message in trajectory.messages:
        turn += message.role == "user"
        for call in message.tool_calls or ():
            event = events[index] if index < len(events) else None
            index += 1
            if _get_effect(event, call.function.name, wording) == "write" and (event is None or event.ok):
                for name, value in call.function.arguments.items():
                    shown = len(str(value)) < SHORTEST_ID or any(str(value) in text for text in seen)
                    if name in kinds and isinstance(value, str | int) and not shown:
                        words = name.removesuffix("_id").replace("_", " ")
                        faults.append(
                            ReferenceFault(kind="unnamed_value", turn=max(turn, 0), words=words, expected=str(value))
                        )
        seen.append(message.content or "")
    return faults

"""Did the simulated user keep to the task? EnvFactory F lets the user know only what people know.

A play in which the user invents a value, leaks an internal one, ends early, repeats a finished request or does the
agent's work teaches the agent something false, however it ended. Requests that open a turn stand in the task and were
examined when they were written; what the user says in between is examined here.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from chatmodel import Wording
from chatmodel.asking import announces, questions
from chatmodel.recognise import Sayable, shingles
from grounding.names import is_identifier
from trajectory import CallEvent, CheckOutcome, JsonValue, Message, Task, Trajectory, canonical_json

USER = "user"
"""Kind of these outcomes."""
INVENTS = "user_invented_a_value"
LEAKS = "user_leaked_an_internal_value"
EARLY = "user_ended_early"
REPEATS = "user_repeated_a_finished_request"
WORKS = "user_did_the_agents_work"
PATIENCE = 2
"""Answers in a row, without a call in between, after which a user may give up."""
SAME = 0.6
"""Share of a message's runs of three words that stand in an earlier request, from which it is that request again."""
_CODE = re.compile(r"<tool_call|```|\{\s*\"(name|arguments|tool|tool_name|parameters)\"\s*:|\w+\(\s*\w+\s*=[^=]")


def user_faults(
    task: Task, trajectory: Trajectory, wording: Wording, device: Sequence[JsonValue] = (), now: date = date.min
) -> list[CheckOutcome]:
    """Everything that the user did wrong; empty if they kept to the task.

    Args:
        wording: Of the environment: how people say the values that the user knows.
        device: What the user saw on their own device.
        now: The environment's clock.
    """
    found = list(_words(task, trajectory, wording, device, now))
    found += _endings(task, trajectory)
    return found


def _words(
    task: Task, trajectory: Trajectory, wording: Wording, device: Sequence[JsonValue], now: date
) -> Iterator[CheckOutcome]:
    openings = {span.start for span in trajectory.turns}
    said = [n for n, message in enumerate(trajectory.messages) if message.role == "user" and n not in openings]
    if not said:
        return
    allowed, heard = _sayable(task, wording, device, now), 0
    internal = {str(value) for call in task.gold_calls for value in _identifiers(call.result)}
    tools = [re.compile(rf"\b{re.escape(tool)}\b") for tool in wording.tools if "_" in tool]
    for index in said:
        text = trajectory.messages[index].content
        code = _CODE.search(text) or next((hit for tool in tools if (hit := tool.search(text))), None)
        if code:
            yield _fault(WORKS, code.group(0))
        strange = allowed.strange(text)
        if strange:  # it may have been the agent who said it first
            allowed.add(*(other.content for other in trajectory.messages[heard:index] if other.role == "assistant"))
            heard = index
            strange = allowed.strange(text)
        yield from (_fault(LEAKS if value in internal else INVENTS, value) for value in strange)
        unasked = not questions(trajectory.messages[index - 1].content)
        if unasked and _repeats(task, trajectory, index, text):
            yield _fault(REPEATS, text[:80])


def _sayable(task: Task, wording: Wording, device: Sequence[JsonValue], now: date) -> Sayable:
    allowed = Sayable()
    allowed.add(task.persona.name, task.persona.role, task.scenario, *device)
    if now != date.min:
        allowed.add(now.isoformat())
    for turn in task.turns:
        allowed.add(turn.intent, turn.query)
        for known in turn.known:
            allowed.add(known.label, known.value, known.said, *wording.phrases_for(known))
    return allowed


def _identifiers(result: JsonValue) -> Iterator[Any]:
    """Values that a result gives under the name of an identifier."""
    if isinstance(result, dict):
        for key, value in result.items():
            if is_identifier(key) and isinstance(value, str | int):
                yield value
            yield from _identifiers(value)
    elif isinstance(result, list):
        for item in result:
            yield from _identifiers(item)


def _repeats(task: Task, trajectory: Trajectory, index: int, text: str) -> bool:
    """True if a message asks again for a turn whose calls are all made, or that is over."""
    parts = shingles(text)
    if len(parts) < 4:
        return False
    before = [event for event in trajectory.events if event.message < index]
    for number, (turn, span) in enumerate(zip(task.turns, trajectory.turns, strict=False)):
        over = span.stop <= index or (span.start < index and _made(task, number, before))
        if over and len(parts & shingles(turn.query)) >= SAME * len(parts):
            return True
    return False


def _made(task: Task, turn: int, events: Sequence[CallEvent]) -> bool:
    """True if every gold call of a turn is among the calls that succeeded."""
    made = {canonical_json([event.tool, event.arguments]) for event in events if event.ok}
    return all(canonical_json([call.tool, call.arguments]) in made for call in task.turns[turn].gold_calls)


def _endings(task: Task, trajectory: Trajectory) -> Iterator[CheckOutcome]:
    """Turns that the user ended while the agent waited for them or was about to act."""
    if task.mode == "direct":
        return
    for number, (turn, span) in enumerate(zip(task.turns, trajectory.turns, strict=False)):
        ended_by_user = number < len(trajectory.turns) - 1 or trajectory.stop_reason == "user_stop"
        messages = trajectory.messages[span.start : span.stop]
        last = messages[-1]
        if not ended_by_user or last.role != "assistant" or last.tool_calls:
            continue
        waits = bool(questions(last.content)) or announces(last.content)
        before = [event for event in trajectory.events if event.message < span.stop]
        writes = any(call.effect == "write" for call in turn.gold_calls)
        reached = _made(task, number, before) or (writes and span.state_hash == turn.state_hash)
        if waits and not reached and _answered_in_vain(messages) < PATIENCE:
            yield _fault(EARLY, f"turn {number + 1}: {last.content[-80:]}")


def _answered_in_vain(messages: Sequence[Message]) -> int:
    """Answers that the user gave since the agent last did anything, the request itself not counted."""
    number = 0
    for message in reversed(messages[1:]):
        if message.role == "tool":
            break
        number += message.role == "user"
    return number


def _fault(reason: str, detail: str) -> CheckOutcome:
    return CheckOutcome(says=reason, kind=USER, passed=False, detail=detail)

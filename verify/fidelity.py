"""Fidelity of the simulated user to the task: EnvFactory F lets the user know only what people know.

A play in which the user invents a value, leaks an internal one, ends early or never, repeats a finished request or does
the agent's work teaches the agent something false, however it ended. Requests that open a turn stand in the task and
were examined when they were written; what the user says in between is examined here.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from trajsmith.grounding import is_identifier
from trajsmith.phrasing import Wording
from trajsmith.phrasing.fact_detection import AllowedContent, build_shingles
from trajsmith.phrasing.question_detection import find_questions, is_announcement
from trajsmith.records import CallEvent, CheckOutcome, JsonValue, Message, Task, Trajectory, canonical_json

USER = "user"
"""Kind of these outcomes."""
INVENTS = "user_invented_a_value"
LEAKS = "user_leaked_an_internal_value"
EARLY = "user_ended_early"
REPEATS = "user_repeated_a_finished_request"
WORKS = "user_did_the_agents_work"
ENDLESS = "user_did_not_end"
PATIENCE = 2
"""Answers in a row, without a call in between, after which a user may give up."""
SAME = 0.6
"""Share of a message's runs of three words that stand in an earlier request, from which it is that request again."""
_CODE = re.compile(r"<tool_call|```|\{\s*\"(name|arguments|tool|tool_name|parameters)\"\s*:|\b\w+\(\s*\w+\s*=[^=]")


def find_user_faults(
    task: Task, trajectory: Trajectory, wording: Wording, device: Sequence[JsonValue] = (), now: date = date.min
) -> list[CheckOutcome]:
    """Return all faults of the user; empty if they kept to the task.

    Args:
        wording: Of the environment: how people say the values that the user knows.
        device: What the user saw on their own device.
        now: The environment's clock.
    """
    faults = list(_check_wording(task, trajectory, wording, device, now))
    faults += _check_endings(task, trajectory)
    faults += _check_limit(task, trajectory)
    return faults


def _check_wording(
    task: Task, trajectory: Trajectory, wording: Wording, device: Sequence[JsonValue], now: date
) -> Iterator[CheckOutcome]:
    openings = {span.start for span in trajectory.turns}
    positions = [n for n, message in enumerate(trajectory.messages) if message.role == "user" and n not in openings]
    if not positions:
        return
    allowed, heard = _build_allowed_content(task, wording, device, now), 0
    internal = {str(value) for call in task.gold_calls for value in _iter_identifiers(call.result)}
    tools = [re.compile(rf"\b{re.escape(tool)}\b") for tool in wording.tools if "_" in tool]
    for index in positions:
        text = trajectory.messages[index].content
        code = _CODE.search(text) or next((hit for tool in tools if (hit := tool.search(text))), None)
        if code:
            yield _fault(WORKS, code.group(0))
        strange = allowed.find_unsupported(text)
        if strange:  # it may have been the agent who said it first
            allowed.add(*(other.content for other in trajectory.messages[heard:index] if other.role == "assistant"))
            heard = index
            strange = allowed.find_unsupported(text)
        yield from (_fault(LEAKS if value in internal else INVENTS, value) for value in strange)
        unasked = not find_questions(trajectory.messages[index - 1].content)
        if unasked and _is_repeated_request(task, trajectory, index, text):
            yield _fault(REPEATS, text[:80])


def _build_allowed_content(task: Task, wording: Wording, device: Sequence[JsonValue], now: date) -> AllowedContent:
    allowed = AllowedContent()
    allowed.add(task.persona.name, task.persona.role, task.scenario, *device)
    if now != date.min:
        allowed.add(now.isoformat())
    for turn in task.turns:
        allowed.add(turn.intent, turn.query)
        for known in turn.known:
            allowed.add(known.label, known.value, known.said, *wording.phrases_for(known))
    return allowed


def _iter_identifiers(result: JsonValue) -> Iterator[Any]:
    """Values that a result gives under the name of an identifier."""
    if isinstance(result, dict):
        for key, value in result.items():
            if is_identifier(key) and isinstance(value, str | int):
                yield value
            yield from _iter_identifiers(value)
    elif isinstance(result, list):
        for item in result:
            yield from _iter_identifiers(item)


def _is_repeated_request(task: Task, trajectory: Trajectory, index: int, text: str) -> bool:
    """Return True if a message repeats the request of a turn whose calls are all made, or that is over."""
    parts = build_shingles(text)
    if len(parts) < 4:
        return False
    before = [event for event in trajectory.events if event.message < index]
    for number, (turn, span) in enumerate(zip(task.turns, trajectory.turns, strict=False)):
        over = span.stop <= index or (span.start < index and _is_done(task, number, before))
        if over and len(parts & build_shingles(turn.query)) >= SAME * len(parts):
            return True
    return False


def _are_calls_made(task: Task, turn: int, events: Sequence[CallEvent]) -> bool:
    """Return True if every gold call of a turn is among the calls that succeeded."""
    succeeded = {canonical_json([event.tool, event.arguments]) for event in events if event.ok}
    return all(canonical_json([call.tool, call.arguments]) in succeeded for call in task.turns[turn].gold_calls)


def _is_done(task: Task, turn: int, events: Sequence[CallEvent]) -> bool:
    """Return True if the gold calls of a turn are made; of a turn that only asks, no call shows that it is done."""
    only_asks = bool(task.turns[turn].asked) and not task.turns[turn].gold_calls
    return not only_asks and _are_calls_made(task, turn, events)


def _check_endings(task: Task, trajectory: Trajectory) -> Iterator[CheckOutcome]:
    """Turns that the user ended while the agent waited for them or was about to act."""
    if task.mode == "direct":
        return
    for number, (turn, span) in enumerate(zip(task.turns, trajectory.turns, strict=False)):
        ended_by_user = number < len(trajectory.turns) - 1 or trajectory.stop_reason == "user_stop"
        messages = trajectory.messages[span.start : span.stop]
        last = messages[-1]
        if not ended_by_user or last.role != "assistant" or last.tool_calls:
            continue
        waits = bool(find_questions(last.content)) or is_announcement(last.content)
        before = [event for event in trajectory.events if event.message < span.stop]
        writes = any(call.effect == "write" for call in turn.gold_calls)
        reached = _are_calls_made(task, number, before) or (writes and span.state_hash == turn.state_hash)
        if waits and not reached and _count_unused_answers(messages) < PATIENCE:
            yield _fault(EARLY, f"turn {number + 1}: {last.content[-80:]}")


def _check_limit(task: Task, trajectory: Trajectory) -> Iterator[CheckOutcome]:
    """A play at its limit of steps in which the user went on although everything was done and nothing was asked."""
    if trajectory.stop_reason != "step_limit" or not trajectory.turns:
        return
    span = trajectory.turns[-1]
    last_call = max((event.message for event in trajectory.events), default=span.start)
    answers = [
        index
        for index in range(max(last_call, span.start) + 1, span.stop)
        if trajectory.messages[index].role == "user" and trajectory.messages[index - 1].role == "assistant"
    ]
    unasked = [index for index in answers if not find_questions(trajectory.messages[index - 1].content)]
    before = [event for event in trajectory.events if event.message < span.stop]
    if len(unasked) >= PATIENCE and _is_done(task, len(trajectory.turns) - 1, before):
        yield _fault(ENDLESS, trajectory.messages[unasked[-1]].content[:80])


def _count_unused_answers(messages: Sequence[Message]) -> int:
    """Answers that the user gave since the agent last did anything, the request itself not counted."""
    number = 0
    for message in reversed(messages[1:]):
        if message.role == "tool":
            break
        number += message.role == "user"
    return number


def _fault(reason: str, detail: str) -> CheckOutcome:
    return CheckOutcome(says=reason, kind=USER, passed=False, detail=detail)

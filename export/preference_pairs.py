"""Preference pairs by execution: an accepted and a rejected play of one task, from the first message that differs.

Two plays of a task begin in the same state. As long as they make the same calls they stay in the same state, so the
first message in which they differ is answered to the same situation, and what came of each was executed and judged.
"""

from dataclasses import dataclass
from typing import Literal

from trajsmith.export.formats import ExportItem
from trajsmith.export.rows import build_message_rows
from trajsmith.records import JsonObject, Message, RecordDropped, Trajectory, Verdict, canonical_json
from trajsmith.verify import prune_trajectory


@dataclass(frozen=True)
class PreferencePair:
    """Two messages in one situation, of which one was proved right and the other wrong."""

    prompt: list[JsonObject]
    """What was said before; both plays made the same calls so far."""
    chosen: JsonObject
    rejected: JsonObject
    kind: str
    """Mistake that was injected, or the first reason of the verdict."""
    difference: Literal["calls", "text"]
    turn: int
    """User turn, from 0."""
    consequence: JsonObject
    """What each message did (`calls`) and what its play came to (`final_state`, `diff`), and why one was rejected."""


def build_pair(item: ExportItem) -> PreferencePair:
    """Build the pair of an item with its rejected play.

    Raises:
        RecordDropped: The plays cannot be compared in one message; the reason says why.
    """
    if item.rejected is None:
        raise RecordDropped("no_rejected_play")
    wrong, verdict = item.rejected
    right = prune_trajectory(item.trajectory, item.verdict.pruned)
    place = find_mistake(right, wrong, verdict)
    before = build_message_rows(wrong.messages[: place + 1])
    chosen, rejected = build_message_rows(right.messages[: place + 1])[-1], before[-1]
    if ("reasoning_content" in chosen) != ("reasoning_content" in rejected):  # would tell them apart by itself
        chosen.pop("reasoning_content", None)
        rejected.pop("reasoning_content", None)
    if describe_message(right.messages[place]) == describe_message(wrong.messages[place]):
        raise RecordDropped("same_message")
    calls = bool(right.messages[place].tool_calls or wrong.messages[place].tool_calls)
    return PreferencePair(
        prompt=before[:-1],
        chosen=chosen,
        rejected=rejected,
        kind=wrong.injected[0].kind if wrong.injected else next(iter(verdict.reasons), verdict.outcome),
        difference="calls" if calls else "text",
        turn=next((number for number, span in enumerate(wrong.turns) if span.start <= place < span.stop), 0),
        consequence={
            "chosen": describe_consequence(right, place),
            "rejected": describe_consequence(wrong, place)
            | {"outcome": verdict.outcome, "reasons": list(verdict.reasons)},
        },
    )


def find_mistake(right: Trajectory, wrong: Trajectory, verdict: Verdict) -> int:
    """Return the index of the message in which a rejected play goes wrong.

    That is where a mistake was injected; else the first message with other calls; else, if all calls are the same, the
    last message of the first turn that is not right.

    Raises:
        RecordDropped: The plays were in different situations there, or one of them has no message there.
    """
    equal = count_equal_messages(right, wrong)
    if wrong.injected:
        place = wrong.injected[0].message
    elif equal < min(len(right.messages), len(wrong.messages)):
        place = equal
    else:
        failed = next((number for number, turn in enumerate(verdict.turns) if turn.outcome != "completed"), None)
        if failed is None or failed >= len(wrong.turns):
            raise RecordDropped("mistake_not_located")
        place = wrong.turns[failed].stop - 1
    if place > equal:
        raise RecordDropped("differs_before_mistake", f"message {equal}, the mistake is in message {place}")
    if place >= min(len(right.messages), len(wrong.messages)):
        raise RecordDropped("no_counterpart")
    if {right.messages[place].role, wrong.messages[place].role} != {"assistant"}:
        raise RecordDropped("not_the_agents_message")
    return place


def count_equal_messages(one: Trajectory, other: Trajectory) -> int:
    """Return the number of messages from the start in which both plays have the same roles and calls.

    Words may differ: users and agents say the same in other words, and only calls change the state.
    """
    pairs = enumerate(zip(one.messages, other.messages, strict=False))
    short = min(len(one.messages), len(other.messages))
    return next((index for index, (left, right) in pairs if _describe_calls(left) != _describe_calls(right)), short)


def _describe_calls(message: Message) -> bytes:
    calls = [[call.function.name, call.function.arguments] for call in message.tool_calls or ()]
    return canonical_json([message.role, calls])


def describe_message(message: Message) -> bytes:
    """Return what a message is compared by: its calls, or its text if it has none."""
    return _describe_calls(message) if message.tool_calls else canonical_json([message.role, message.content])


def describe_consequence(trajectory: Trajectory, place: int) -> JsonObject:
    """Describe what the calls of a message did, and what the play came to."""
    events = [event for event in trajectory.events if event.message == place and event.actor == "assistant"]
    return {
        "calls": [
            {"tool": event.tool, "ok": event.ok, "error": event.error, "effect": event.effect} for event in events
        ],
        "final_state": trajectory.final_state,
        "diff": list(trajectory.diff),
    }

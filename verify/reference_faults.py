"""Faults of reference of one dialogue: scripted, written by a model, or recorded elsewhere. Nothing is executed."""

import re
from collections.abc import Iterator
from datetime import date

from trajsmith.grounding import iterate_leaves
from trajsmith.phrasing import Wording
from trajsmith.phrasing.fact_detection import is_fact_stated
from trajsmith.records import FromUser, Task, Trajectory, Turn, UserFact
from trajsmith.verify.recorded_turns import find_unseen_ids, read_recorded_turns
from trajsmith.verify.reference_check import ReferenceCheck, ReferenceFault
from trajsmith.verify.spoken_turns import SpokenTurn, build_gold_turns

_NUMBER_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_ALONE = "alone|on my own|by myself|(?:only|just)(?: for)? me"
_WORD = re.compile(r"\w+")
MOST_WORDS = 0.7
"""Share of the words of a phrase that a text must have to say it."""


def find_reference_faults(
    trajectory: Trajectory, task: Task | None, wording: Wording, initial: str | None = None, now: date | None = None
) -> list[ReferenceFault]:
    """Return the faults of the words of one dialogue.

    With a task that has grounded gold calls, the user's messages are read against these. Without, they are read against
    the recorded calls, and only what the recorded results can tell is reported: ids that nothing had shown or said, and
    superlatives and descriptions that lead to something that no call takes.

    Args:
        trajectory: The dialogue.
        task: Its task, if there is one.
        wording: Words and tools of its environment.
        initial: Text of its initial state, if it is at hand: what stands in it was not created in the dialogue.
        now: The clock of that state: people leave out the year of near dates.
    """
    check = ReferenceCheck(wording, initial, now)
    if task is not None and any(turn.needs for turn in build_gold_turns(task)):
        for number, turn in enumerate(_iterate_spoken(trajectory, task)):
            check.faults += find_unsaid_values(task, number, f"{turn.text} {turn.replies}", wording)
            check.read(turn)
        return check.faults
    faults = find_unseen_ids(trajectory, wording)
    for turn in read_recorded_turns(trajectory, wording):
        check.read(turn)
    used = {
        str(value)
        for message in trajectory.messages
        for call in message.tool_calls or ()
        for value in call.function.arguments.values()
    }
    certain = [
        fault
        for fault in check.faults
        if fault.kind == "superlative_on_cut_list" or (fault.kind == "wrong_referent" and fault.reading not in used)
    ]
    return sorted([*faults, *certain], key=lambda fault: fault.turn)


def find_task_faults(
    task: Task, wording: Wording, initial: str | None = None, now: date | None = None
) -> list[ReferenceFault]:
    """Return the faults of the queries of a task with gold calls; see `find_reference_faults` for the arguments."""
    check = ReferenceCheck(wording, initial, now)
    for number, turn in enumerate(build_gold_turns(task)):
        check.faults += find_unsaid_values(task, number, None, wording)
        check.read(turn)
    return check.faults


def find_unsaid_values(task: Task, number: int, text: str | None, wording: Wording) -> list[ReferenceFault]:
    """Return the plain values of writes that count as said by the end of a turn and that no message has said.

    Args:
        task: The task.
        number: Turn.
        text: What the user says in the turn; None for the query.
        wording: Words of the environment.
    """
    turn = task.turns[number]
    user_text = " ".join([*(earlier.query for earlier in task.turns[:number]), turn.query if text is None else text])
    return [
        ReferenceFault(kind="unnamed_value", turn=number, words=known.label, expected=str(known.value))
        for known in turn.known
        if known.key in _list_written_keys(turn) and known.stated
        if not is_fact_stated(user_text, known, wording) and not _is_paraphrased(user_text, known, wording)
    ]


def _is_paraphrased(text: str, known: UserFact, wording: Wording) -> bool:
    """Return whether a text says a fact in other words: "just one guest", or a phrase with a typing error."""
    value = known.value
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= len(_NUMBER_WORDS):
        words = rf"{_NUMBER_WORDS[value - 1]}|{_ALONE}" if value == 1 else _NUMBER_WORDS[value - 1]
        return re.search(rf"\b(?:{words})\b", text, re.IGNORECASE) is not None
    spoken = set(_WORD.findall(text.lower()))
    phrases = [set(_WORD.findall(phrase.lower())) for phrase in wording.phrases_for(known)]
    return any(len(phrase) > 2 and len(phrase & spoken) >= MOST_WORDS * len(phrase) for phrase in phrases)


def _list_written_keys(turn: Turn) -> set[str]:
    """Keys of the plain values that the writes of a turn take from the user."""
    return {
        source.known
        for call in turn.gold_calls
        if call.effect == "write"
        for _, source, _ in iterate_leaves(call)
        if isinstance(source, FromUser)
    }


def _iterate_spoken(trajectory: Trajectory, task: Task) -> Iterator[SpokenTurn]:
    """The turns of a task with the messages that were really sent."""
    for turn, span in zip(build_gold_turns(task), trajectory.turns, strict=False):
        messages = trajectory.messages[span.start : span.stop]
        user_texts = [message.content for message in messages if message.role == "user" and message.content]
        if user_texts:
            turn.text, turn.replies = user_texts[0], " ".join(user_texts[1:])
        yield turn

"""Questions of the user that the agent's words leave open, found without a model.

What the task records as asked is looked up by its values. Of any other question, also in recorded dialogues, the fields
that it names are looked up in the results of its turn: where results hold them and the answer states none of their
values, the question counts as open. A question that names no field of a result is not judged.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trajsmith.grounding import is_identifier
from trajsmith.phrasing import (
    humanize,
    is_answer_stated,
    is_fact_answered,
    is_value_mentioned,
    render_fact,
    split_identifier,
    stem,
)
from trajsmith.records import Message, RequestedInfo, Task, Trajectory, Turn, TurnSpan
from trajsmith.verify.answer_text import select_answer_text
from trajsmith.verify.normalized_state import iter_leaves

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_OPENING = re.compile(
    r"^(?:(?:hi|hello|hey|thanks|thank you|great|ok|okay|and|also|so|then|now|good \w+)\b[\w ]*[,:!] )*", re.IGNORECASE
)
_DIRECT = re.compile(
    r"^(?:and |so |then |now |also,? )?(?:(?:what|which|when|where|who|whose|how|why|is|are|was|were|do|does|did)\b|"
    r"(?:has|have|had|will)\b|"
    r"(?:at|by|on|in|for|from|since|until|to) (?:what|which|when|how)\b|can i\b|am i\b)",
    re.IGNORECASE,
)
_INDIRECT = re.compile(
    r"\b(?:check|find out|see|know|tell me|look up|ask|say|make sure|wonder(?:ing)?|let me know|remind me)\b"
    r"[^.?!]{0,400}?"
    r"\b(whether|if|when|where|who|how|what|which|since when|until when)\b",
    re.IGNORECASE,
)
_GENERAL = frozenset({
    "is", "has", "was", "are", "can", "be", "the", "of", "to", "in", "on", "at", "by", "for", "a", "an", "my", "i",
    "name", "id", "result",
})  # fmt: skip


@dataclass(frozen=True)
class UnansweredQuestion:
    """Question that the answer of its turn leaves open.

    Attributes:
        turn: Number of the turn, from 0.
        question: The sentence that asks.
        missing: Values, or names of fields, that the answer does not state.
    """

    turn: int
    question: str
    missing: tuple[str, ...]


def find_unanswered_questions(task: Task, trajectory: Trajectory) -> list[UnansweredQuestion]:
    """Return all questions of a dialogue that the agent's words leave open, turn by turn.

    A turn in which the task can only be declined is left out.
    """
    unanswered: list[UnansweredQuestion] = []
    for number, span in enumerate(trajectory.turns):
        turn = task.turns[number] if number < len(task.turns) else None
        declined = task.twist is not None and task.twist.turn == number and task.twist.act == "decline"
        if not declined:
            unanswered += _check_turn(number, span, turn, trajectory.messages[span.start : span.stop])
    return unanswered


def _check_turn(
    number: int, span: TurnSpan, turn: Turn | None, messages: Sequence[Message]
) -> Iterator[UnansweredQuestion]:
    answer = select_answer_text(messages)
    asked = turn.asked if turn else ()
    values = [fact.value for fact in turn.facts] if turn else []
    for info in asked:
        missing = [fact for fact in info.facts if fact.value in values and not is_fact_answered(answer, fact)]
        if missing:
            yield UnansweredQuestion(number, info.question, tuple(map(render_fact, missing)))
    for message in messages:
        if message.role == "user":
            for question in find_user_questions(message.content):
                open_fields = [] if _is_recorded(question, asked) else _find_open_fields(question, messages, answer)
                if open_fields:
                    yield UnansweredQuestion(number, question, tuple(open_fields))


def find_user_questions(text: str) -> list[str]:
    """Return the sentences that want to know something, and not have something done."""
    sentences = [_OPENING.sub("", part.strip()) for part in _SENTENCE.split(text)]
    return [
        sentence
        for sentence in sentences
        if (sentence.endswith("?") and _DIRECT.match(sentence)) or _INDIRECT.search(sentence)
    ]


def _is_recorded(question: str, asked: Sequence[RequestedInfo]) -> bool:
    """Return True if a question is one of those that the task records."""
    words = _get_content(question)
    for info in asked:
        other = _get_content(info.question)
        if len(words & other) >= 0.7 * min(len(words), len(other)):
            return True
    return False


def _find_open_fields(question: str, messages: Sequence[Message], answer: str) -> list[str]:
    """Return the fields that a question names and results hold, where the answer states none of their values.

    A field by whose value the question calls something is not asked for: "the guide updated on 20 May".
    """
    words = _get_content(question)
    named: dict[str, list[Any]] = {}
    for message in messages:
        for place, value in iter_leaves(_parse_result(message), ()):
            field = next((part for part in reversed(place) if not part.isdigit()), "")
            content = _get_content(field)
            if content and content <= words and not is_identifier(field) and value not in (None, "", {}):
                named.setdefault(field, []).append(value)
    for field, values in list(named.items()):
        parts = split_identifier(field)
        several = isinstance(values[0], bool) and len(values) > 1
        refers = any(is_value_mentioned(question, value) for value in values)
        ranks = re.search(rf"\b(?:\w+est|most|least) (?:\w+ )?{parts[0]}", question.lower())
        counts = isinstance(values[0], int) and parts[-1].endswith("s") and "how many" not in question.lower()
        if parts[-1] in ("name", "title") or several or refers or ranks or counts:
            del named[field]
    stated = any(
        is_answer_stated(answer, value, humanize(field), question=question)
        for field, values in named.items()
        for value in values
    )
    return [] if stated else [humanize(field) for field in named]


def _parse_result(message: Message) -> Any:
    """Return the content of a tool message, an empty object where it is no JSON."""
    if not message.shows_data:
        return {}
    try:
        return json.loads(message.content)
    except ValueError:
        return {}


def _get_content(text: str) -> set[str]:
    return {stem(word) for word in split_identifier(text) if word not in _GENERAL}

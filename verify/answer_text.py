"""The words of an agent that can answer a request: said after the results came, and no announcement or question."""

from collections.abc import Sequence

from trajsmith.phrasing import get_language
from trajsmith.phrasing.question_detection import is_announcement, is_yes_or_no
from trajsmith.records import Message


def select_answer_text(messages: Sequence[Message]) -> str:
    """Return what an agent tells in a turn.

    A value that is only named before the call ("shall I set it to 21 degrees?"), announced ("I'll look at the order
    of 3 March") or offered in a question before the answer ("the active or the blocked card?") is not told. Where a
    turn has no result, all that the agent says counts.

    Args:
        messages: Messages of the turn.
    """
    first = next((number for number, message in enumerate(messages) if message.shows_data), -1)
    spoken = [message for message in messages[first + 1 :] if message.role == "assistant" and message.content]
    parts = []
    for number, message in enumerate(spoken):
        last = number == len(spoken) - 1
        sentences = [
            sentence
            for sentence in get_language().questions.sentence_end.split(message.content)
            if not (sentence.endswith("?") and (is_yes_or_no(sentence) or not last))
            and (last or not is_announcement(sentence))
        ]
        parts += sentences
    return "\n".join(parts)

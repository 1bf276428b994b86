"""Tracking of a model user's statements: a scripted agent uses only values that appear in the user's text."""

from collections import Counter
from collections.abc import Mapping, Sequence

from trajsmith.grounding import find_values, iterate_leaves
from trajsmith.phrasing import Wording, is_value_mentioned
from trajsmith.phrasing.agreement_detection import accepts_call, is_refusal
from trajsmith.phrasing.fact_detection import is_fact_stated
from trajsmith.records import FromOutput, GoldCall, JsonValue, Message, UserFact

MAX_REPEATS = 2
"""How often the same thing is asked for."""


class UtteranceTracker:
    """Facts that the user has stated in one dialogue."""

    def __init__(self, wording: Wording) -> None:
        self.wording = wording
        self.read = 0
        self.asked: Counter[str] = Counter()
        self.said: list[str] = []

    def find_stated_facts(self, messages: Sequence[Message], known: Mapping[str, UserFact]) -> set[str]:
        """Return the keys of the facts that new messages of the user state."""
        fresh = [message.content for message in messages[self.read :] if message.role == "user"]
        self.read = len(messages)
        self.said += fresh
        return {key for key, entry in known.items() if any(is_fact_stated(text, entry, self.wording) for text in fresh)}

    def is_repeated_too_often(self, keys: Sequence[str]) -> bool:
        """Count a question for these facts; return True if it stayed unanswered too often."""
        self.asked.update(keys)
        return any(self.asked[key] > MAX_REPEATS for key in keys)

    def refused(self, messages: Sequence[Message]) -> bool:
        """Return True if the user's last message was a no."""
        return messages[-1].role == "user" and is_refusal(messages[-1].content)

    def agreed(self, messages: Sequence[Message], call: GoldCall) -> bool:
        """Return True if the user's last message was a yes, or a wish that the call fulfils."""
        return messages[-1].role == "user" and accepts_call(messages[-1].content, call.arguments)

    def find_unreported_values(
        self, call: GoldCall, calls: Sequence[GoldCall], results: Sequence[JsonValue]
    ) -> list[str]:
        """Return the labels of device values that this call needs and that the user has not reported yet."""
        labels = []
        for path, source, _ in iterate_leaves(call):
            if isinstance(source, FromOutput) and calls[source.call].actor == "user":
                value = next((match.value for match in find_values(results[source.call], source.path)), None)
                if value is not None and not any(is_value_mentioned(text, value) for text in self.said):
                    labels.append(self.wording.parameter(call.tool, path).label)
        return labels

"""How a scripted agent listens to a user who is a model: it takes nothing for said that the words do not tell."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from chatmodel import Wording
from chatmodel.recognise import tells
from chatmodel.surface import mentions
from grounding import leaves
from grounding.paths import find
from trajectory import FromOutput, GoldCall, JsonValue, Known, Message

TIMES = 2
"""How often the same thing is asked for."""
_NO = re.compile(r"\s*(no\b|nope|don't|do not|please don't|stop|wait|not (yet|that|now)|cancel that)", re.IGNORECASE)


class Hearing:
    """What was heard in one dialogue."""

    def __init__(self, wording: Wording) -> None:
        self.wording = wording
        self.read = 0
        self.asked: Counter[str] = Counter()
        self.said: list[str] = []

    def told(self, messages: Sequence[Message], known: Mapping[str, Known]) -> set[str]:
        """Keys of the entries that new messages of the user tell."""
        fresh = [message.content for message in messages[self.read :] if message.role == "user"]
        self.read = len(messages)
        self.said += fresh
        return {key for key, entry in known.items() if any(tells(text, entry, self.wording) for text in fresh)}

    def tired(self, keys: Sequence[str]) -> bool:
        """Count that these are asked for; True if it was in vain too often."""
        self.asked.update(keys)
        return any(self.asked[key] > TIMES for key in keys)

    def refused(self, messages: Sequence[Message]) -> bool:
        """True if the last thing that the user said was no."""
        return messages[-1].role == "user" and _NO.match(messages[-1].content) is not None

    def untold(self, call: GoldCall, calls: Sequence[GoldCall], results: Sequence[JsonValue]) -> list[str]:
        """What this call needs from the user's own device and nobody has read out yet, as people call it."""
        found = []
        for path, source, _ in leaves(call):
            if isinstance(source, FromOutput) and calls[source.call].actor == "user":
                value = next((match.value for match in find(results[source.call], source.path)), None)
                if value is not None and not any(mentions(text, value) for text in self.said):
                    found.append(self.wording.parameter(call.tool, path).label)
        return found

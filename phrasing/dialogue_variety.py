"""Variety of the words of dialogues, by environment and speaker, with the values of each dialogue masked."""

from typing import Any

import orjson

from trajsmith.phrasing.variety import (
    collect_values,
    compute_distinct,
    compute_shared_skeletons,
    list_common_skeletons,
    mask_texts,
)
from trajsmith.records import Trajectory

SAMPLE = 50
"""Dialogues of one environment whose n-grams are compared."""
SPEAKERS = ("user", "assistant")
EVERYTHING = "all"
"""Name under which the figures over all environments stand."""

VarietyFigures = dict[str, dict[str, dict[str, float]]]
"""Environment to speaker to figure: `distinct_3` and `shared_skeletons`."""


class DialogueVariety:
    """Keeps the masked words of dialogues and compares them.

    Args:
        most: Dialogues of one environment that are kept; later ones are passed over. None keeps all.
    """

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self._texts: dict[str, dict[str, list[list[str]]]] = {}

    def add(self, trajectory: Trajectory) -> None:
        """Keep the words of one dialogue."""
        speakers = self._texts.setdefault(trajectory.environment, {speaker: [] for speaker in SPEAKERS})
        if self.most is not None and len(speakers["user"]) >= self.most:
            return
        spoken = [message for message in trajectory.messages if message.role in SPEAKERS and message.content]
        masked = mask_texts([message.content for message in spoken], collect_values(_list_contents(trajectory)))
        for speaker, texts in speakers.items():
            texts.append([text for message, text in zip(spoken, masked, strict=True) if message.role == speaker])

    def merge(self, other: "DialogueVariety") -> None:
        """Add the dialogues that another one kept, after those that are here."""
        for name, speakers in other._texts.items():
            dialogues = self._texts.setdefault(name, {speaker: [] for speaker in SPEAKERS})
            for speaker, texts in speakers.items():
                dialogues[speaker].extend(texts)

    def measure(self) -> VarietyFigures:
        """Return distinct-3 and the share of sentences with a shared skeleton, by environment and speaker."""
        measured = {
            name: {
                speaker: {
                    "distinct_3": compute_distinct(text for texts in dialogues[:SAMPLE] for text in texts),
                    "shared_skeletons": compute_shared_skeletons(text for texts in dialogues for text in texts),
                }
                for speaker, dialogues in speakers.items()
            }
            for name, speakers in sorted(self._texts.items())
        }
        everything = {
            speaker: {"shared_skeletons": compute_shared_skeletons(self._list_texts(speaker))} for speaker in SPEAKERS
        }
        return measured | {EVERYTHING: everything}

    def list_skeletons(self, number: int = 10) -> dict[str, list[tuple[str, int]]]:
        """Return the most frequent sentence skeletons of each speaker."""
        return {speaker: list_common_skeletons(self._list_texts(speaker), number) for speaker in SPEAKERS}

    @property
    def dialogues(self) -> int:
        """Dialogues that were kept."""
        return sum(len(speakers["user"]) for speakers in self._texts.values())

    def _list_texts(self, speaker: str) -> list[str]:
        return [text for speakers in self._texts.values() for texts in speakers[speaker] for text in texts]


def _list_contents(trajectory: Trajectory) -> list[Any]:
    contents: list[Any] = [event.arguments for event in trajectory.events]
    for message in trajectory.messages:
        if message.role == "tool":
            try:
                contents.append(orjson.loads(message.content))
            except orjson.JSONDecodeError:
                contents.append(message.content)
    return contents

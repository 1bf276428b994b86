"""Near-duplicates: trajectories that say the same, call the same and are about the same things.

Three kinds of features are put into one set: word triples of what the user says, pairs of calls in a row, and the
values that calls are about.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from pydantic import Field

from trajsmith.phrasing.near_duplicates import NearDuplicateIndex
from trajsmith.records import FrozenModel, JsonValue, Task, Trajectory

SHINGLE = 3
_WORD = re.compile(r"[^\W_]+(?:[-'’@.][^\W_]+)*")


class DuplicateSettings(FrozenModel):
    """When two trajectories are too much alike."""

    threshold: float = Field(0.8, gt=0.3, le=1)
    """Jaccard similarity of their features from which on the later one is dropped."""


def split_words(text: str) -> list[str]:
    """The words of a text in lower case, numbers and addresses whole."""
    return _WORD.findall(text.lower())


def join_user_text(trajectory: Trajectory) -> str:
    """Return the text of the user, all turns."""
    return "\n".join(message.content for message in trajectory.messages if message.role == "user")


def iter_entity_values(value: JsonValue) -> Iterator[str]:
    """Texts and numbers of arguments that name something: no flags, no single characters."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from iter_entity_values(inner)
    elif not isinstance(value, bool) and value is not None and len(str(value)) > 1:
        yield str(value)


def compute_features(trajectory: Trajectory) -> set[bytes]:
    """Compute hashed features of a trajectory: its words, calls and entities."""
    words = split_words(join_user_text(trajectory))
    tools = ["", *(event.tool for event in trajectory.events if event.ok), ""]
    shingles = {" ".join(words[at : at + SHINGLE]) for at in range(max(1, len(words) - SHINGLE + 1))}
    shingles |= {f"\x01{first}>{second}" for first, second in pairwise(tools)}
    shingles |= {f"\x02{value}" for event in trajectory.events for value in iter_entity_values(event.arguments)}
    return {text.encode("utf-8", "replace") for text in shingles}


class DuplicateFilter:
    """Accepted trajectories so far; the first of two near-duplicates stays."""

    def __init__(self, settings: DuplicateSettings) -> None:
        self.settings = settings
        self._indexes: dict[tuple[str, str], NearDuplicateIndex] = {}
        """One per environment and variant: a variant is never taken for its base."""

    def add(self, task: Task, trajectory: Trajectory) -> str | None:
        """Return the id of the accepted trajectory that this one repeats; None if there is none, and then add it."""
        group = trajectory.environment, task.variant
        if group not in self._indexes:
            self._indexes[group] = NearDuplicateIndex(self.settings.threshold)
        return self._indexes[group].add(trajectory.id, compute_features(trajectory))

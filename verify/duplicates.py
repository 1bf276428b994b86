"""Near-duplicates: trajectories that say the same, call the same and are about the same things.

Three kinds of features are put into one set: word triples of what the user says, pairs of calls in a row, and the
values that calls are about. MinHash with banding (Broder 1997; Leskovec et al., Mining of Massive Datasets, 3.4) finds
the candidates, and the exact Jaccard similarity decides, so that nothing is dropped on an estimate.
"""

import re
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pydantic import Field

from trajsmith.records import FrozenModel, JsonValue, Task, Trajectory

if TYPE_CHECKING:
    import numpy as np
    from datasketch import MinHashLSH

PERMUTATIONS = 64
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
        self._indexes: dict[tuple[str, str], MinHashLSH] = {}
        """One per environment and variant: a variant is never taken for its base."""
        self._kept: list[tuple[str, np.ndarray[Any, Any]]] = []
        """Id and hashed features."""

    def add(self, task: Task, trajectory: Trajectory) -> str | None:
        """Return the id of the accepted trajectory that this one repeats; None if there is none, and then add it."""
        import numpy as np
        from datasketch import MinHash, MinHashLSH

        trajectory_features = compute_features(trajectory)
        hashes = np.unique(
            np.fromiter(
                (zlib.crc32(feature) for feature in trajectory_features),
                dtype=np.uint32,
                count=len(trajectory_features),
            )
        )
        sketch = MinHash(num_perm=PERMUTATIONS, hashfunc=zlib.crc32)
        sketch.update_batch(sorted(trajectory_features))
        group = trajectory.environment, task.variant
        if group not in self._indexes:
            self._indexes[group] = MinHashLSH(threshold=self.settings.threshold, num_perm=PERMUTATIONS)
        index = self._indexes[group]
        for number in sorted(index.query(sketch)):
            name, other = self._kept[number]
            if _compute_similarity(hashes, other) >= self.settings.threshold:
                return str(name)
        index.insert(len(self._kept), sketch, check_duplication=False)
        self._kept.append((trajectory.id, hashes))
        return None


def _compute_similarity(first: "np.ndarray[Any, Any]", second: "np.ndarray[Any, Any]") -> float:
    """Jaccard similarity of two sorted arrays of hashes."""
    import numpy as np

    common = np.intersect1d(first, second, assume_unique=True).size
    return float(common / (first.size + second.size - common))

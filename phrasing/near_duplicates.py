"""Near-duplicates by Jaccard similarity of feature sets.

MinHash with banding (Broder 1997; Leskovec et al., Mining of Massive Datasets, 3.4) finds the candidates, and the exact
similarity decides, so that nothing is dropped on an estimate.
"""

import zlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from trajsmith.phrasing.fact_detection import build_shingles

if TYPE_CHECKING:
    import numpy as np

PERMUTATIONS = 64
SAME_TEXT_SIMILARITY = 0.7
"""Jaccard similarity of the shingles from which two texts count as the same."""


class NearDuplicateIndex:
    """Feature sets by key, searchable for the earliest one that is similar; the same result in every process.

    Args:
        threshold: Jaccard similarity of the features from which two entries count as the same.
    """

    def __init__(self, threshold: float) -> None:
        from datasketch import MinHashLSH

        self.threshold = threshold
        self._index = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
        self._entries: list[tuple[str, np.ndarray[Any, Any]]] = []
        """Key and sorted hashes of the features."""

    def add(self, key: str, features: Collection[bytes]) -> str | None:
        """Return the key of the earliest similar entry; None if there is none, and then add this one."""
        return self._search(key, features)

    def find(self, features: Collection[bytes]) -> str | None:
        """Return the key of the earliest similar entry, or None."""
        return self._search(None, features)

    def _search(self, new_key: str | None, features: Collection[bytes]) -> str | None:
        import numpy as np
        from datasketch import MinHash

        sketch = MinHash(num_perm=PERMUTATIONS, hashfunc=zlib.crc32)
        sketch.update_batch(sorted(features))
        hashes = np.unique(np.fromiter(map(zlib.crc32, features), dtype=np.uint32, count=len(features)))
        for number in sorted(map(int, self._index.query(sketch))):
            key, other = self._entries[number]
            common = np.intersect1d(hashes, other, assume_unique=True).size
            if common / (hashes.size + other.size - common) >= self.threshold:
                return key
        if new_key is not None:
            self._index.insert(len(self._entries), sketch, check_duplication=False)
            self._entries.append((new_key, hashes))
        return None


def hash_shingles(text: str) -> set[bytes]:
    """Return a text's three-word shingles as features of an index."""
    return {shingle.encode("utf-8", "replace") for shingle in build_shingles(text)}


def find_repeats(texts: Sequence[str], threshold: float = SAME_TEXT_SIMILARITY) -> dict[int, int]:
    """Map each near-duplicate's position to the position of the text that it repeats."""
    index = NearDuplicateIndex(threshold)
    repeats = {place: index.add(str(place), hash_shingles(text)) for place, text in enumerate(texts)}
    return {place: int(first) for place, first in repeats.items() if first is not None}

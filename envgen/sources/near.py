"""Near-duplicates of texts, by MinHash over runs of three words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chatmodel.near import PERMUTATIONS, minhash

if TYPE_CHECKING:
    from datasketch import MinHash

SAME = 0.7
"""Jaccard similarity of the shingles from which two texts count as the same."""


def repeats(texts: Sequence[str], threshold: float = SAME) -> dict[int, int]:
    """Places of texts that say the same as an earlier one, and which; the first of them is not among the keys."""
    from datasketch import MinHashLSH

    index = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
    kept: dict[int, MinHash] = {}
    found: dict[int, int] = {}
    for place, text in enumerate(texts):
        made = minhash(text)
        near = sorted(int(str(name)) for name in index.query(made))
        first = next((name for name in near if made.jaccard(kept[name]) >= threshold), None)
        if first is None:
            kept[place] = made
            index.insert(str(place), made)
        else:
            found[place] = first
    return found

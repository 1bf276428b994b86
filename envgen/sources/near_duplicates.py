"""Near-duplicates of texts, by MinHash over runs of three words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trajsmith.phrasing.near_duplicates import PERMUTATIONS, compute_minhash

if TYPE_CHECKING:
    from datasketch import MinHash

SAME_TEXT_LIKENESS = 0.7
"""Jaccard similarity of the shingles from which two texts count as the same."""


def find_repeats(texts: Sequence[str], threshold: float = SAME_TEXT_LIKENESS) -> dict[int, int]:
    """Map each near-duplicate's index to the index of the text that it repeats."""
    from datasketch import MinHashLSH

    index = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
    originals: dict[int, MinHash] = {}
    duplicates: dict[int, int] = {}
    for place, text in enumerate(texts):
        signature = compute_minhash(text)
        near = sorted(int(str(name)) for name in index.query(signature))
        first = next((name for name in near if signature.jaccard(originals[name]) >= threshold), None)
        if first is None:
            originals[place] = signature
            index.insert(str(place), signature)
        else:
            duplicates[place] = first
    return duplicates

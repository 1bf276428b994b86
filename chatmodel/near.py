"""Sketches of texts, by which near-duplicates are found (MinHash, Broder 1997)."""

from typing import TYPE_CHECKING

from chatmodel.recognise import shingles

if TYPE_CHECKING:
    from datasketch import MinHash

PERMUTATIONS = 128


def minhash(text: str) -> "MinHash":
    """The sketch of a text's runs of three words; the same in every process."""
    from datasketch import MinHash

    made = MinHash(num_perm=PERMUTATIONS, seed=1)
    made.update_batch(sorted(part.encode() for part in shingles(text)))
    return made

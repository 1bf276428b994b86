"""Sketches of texts, by which near-duplicates are found (MinHash, Broder 1997)."""

from typing import TYPE_CHECKING

from trajsmith.phrasing.fact_detection import build_shingles

if TYPE_CHECKING:
    from datasketch import MinHash

PERMUTATIONS = 128


def compute_minhash(text: str) -> "MinHash":
    """Compute the MinHash of a text's three-word shingles; the same in every process."""
    from datasketch import MinHash

    sketch = MinHash(num_perm=PERMUTATIONS, seed=1)
    sketch.update_batch(sorted(part.encode() for part in build_shingles(text)))
    return sketch

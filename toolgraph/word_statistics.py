"""What is known of words beforehand: how common each is among tools, and a vector by the company it keeps.

`data/words.npz` is made by `benchmarks/train_words.py` from public lists of tools: document counts, and 64 dimensions
of a truncated SVD of positive pointwise mutual information (words of one field or description keep company). It needs
no download. A word that is not there counts as rare and gets a vector of its own from its hash, so that it is like
itself.
"""

import functools
import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

DIMENSIONS = 64


@dataclass(frozen=True)
class WordStatistics:
    """Rows of the file by word."""

    index: dict[str, int]
    weights: Any
    """float32 [words]: inverse document frequency."""
    vectors: Any
    """float32 [words, 64], of length one."""
    rare: float
    """Weight of a word that is not there."""


@functools.lru_cache(maxsize=1)
def load_word_statistics() -> WordStatistics:
    """The shipped statistics, read once."""
    import io

    import numpy

    with numpy.load(io.BytesIO((files("trajsmith.toolgraph") / "data" / "words.npz").read_bytes())) as stored:
        words = str(stored["words"]).split("\n")
        documents, counts, vectors = int(stored["docs"]), stored["df"], stored["vectors"].astype(numpy.float32)
    vectors /= numpy.maximum(numpy.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    weights = numpy.log((documents + 1) / (counts + 1)).astype(numpy.float32)
    return WordStatistics(
        {word: row for row, word in enumerate(words)}, weights, vectors, math.log((documents + 1) / 4)
    )


class Vocabulary:
    """Numbers for words in the order in which they come, with weight and vector of each."""

    def __init__(self) -> None:
        self.known = load_word_statistics()
        self.ids: dict[str, int] = {}

    def number(self, words: Iterable[str]) -> list[int]:
        ids = self.ids
        return [ids.setdefault(word, len(ids)) for word in words]

    def tables(self) -> tuple[Any, Any]:
        """Weights float32 [n] and vectors float32 [n, 64] of all words numbered so far."""
        import numpy

        weights = numpy.full(len(self.ids), self.known.rare, numpy.float32)
        vectors = numpy.empty((len(self.ids), DIMENSIONS), numpy.float32)
        for word, number in self.ids.items():
            row = self.known.index.get(word)
            if row is None:
                vectors[number] = _own_vector(word)
            else:
                weights[number], vectors[number] = self.known.weights[row], self.known.vectors[row]
        return weights, vectors


def _own_vector(word: str) -> Any:
    """Signs from the word's hash: the same on every machine and in every process."""
    import numpy

    bits = numpy.frombuffer(hashlib.blake2b(word.encode(), digest_size=DIMENSIONS // 8).digest(), numpy.uint8)
    return (numpy.unpackbits(bits).astype(numpy.float32) - 0.5) * (2 / math.sqrt(DIMENSIONS))

"""Search over tools: the ones that fit a few words best, ranked by BM25 (Robertson and Zaragoza 2009)."""

from collections import Counter
from collections.abc import Sequence
from math import log

from trajsmith.phrasing.words import split_identifier, stem
from trajsmith.records import JsonObject, ToolSpec

SATURATION, LENGTH = 1.2, 0.75
"""BM25's k1 and b: how soon repeated words count no more, and how far long texts are marked down."""
NAME_WEIGHT = 2
"""Times that the words of a tool's name count."""


class ToolIndex:
    """Index of a fixed set of tools: a query gives the same tools in the same order, in whatever order they came.

    A tool's text is its name, its description and the names of its parameters; words are compared by their stems.
    """

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self.tools = tuple(sorted(tools, key=lambda tool: tool.name))
        self._counts = [_count_stems(tool) for tool in self.tools]
        mean = sum(counts.total() for counts in self._counts) / max(1, len(self._counts))
        self._norms = [1 - LENGTH + LENGTH * counts.total() / max(1.0, mean) for counts in self._counts]
        self._documents = Counter(word for counts in self._counts for word in counts)

    def search(self, query: str, count: int) -> list[ToolSpec]:
        """Return the tools that fit best, at most `count`; none of those without a word of the query."""
        words = dict.fromkeys(map(stem, split_identifier(query)))
        scored = [(self._score(place, words), place) for place in range(len(self.tools))]
        best = sorted((-score, place) for score, place in scored if score > 0)[:count]
        return [self.tools[place] for _, place in best]

    def list_matches(self, query: str, count: int) -> list[JsonObject]:
        """Return what a search shows: name, description and schema of the tools that fit best."""
        return [tool.as_listed() for tool in self.search(query, count)]

    def _score(self, place: int, words: dict[str, None]) -> float:
        counts, norm = self._counts[place], self._norms[place]
        return sum(
            self._weigh(word) * counts[word] * (SATURATION + 1) / (counts[word] + SATURATION * norm)
            for word in words
            if word in counts
        )

    def _weigh(self, word: str) -> float:
        """Return the inverse document frequency, above 0 also for a word that most tools have."""
        documents = self._documents[word]
        return log(1 + (len(self.tools) - documents + 0.5) / (documents + 0.5))


def _count_stems(tool: ToolSpec) -> Counter[str]:
    words = [*split_identifier(tool.name) * NAME_WEIGHT, *split_identifier(tool.description)]
    words += [word for name in tool.parameters for word in split_identifier(name)]
    return Counter(map(stem, words))

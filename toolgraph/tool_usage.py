"""Usage counts of tools: least used first, in constant time for any number of tools."""

import random
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from itertools import islice

PROBES = 4
"""Random looks into a large bucket before the next one is tried."""

SMALL = 12
"""Buckets up to this size are gone through whole."""


class ToolUsage:
    """Counts of use; tools stand in buckets by count, so that a little-used one is found without a search."""

    def __init__(self, tools: Sequence[int]) -> None:
        self.count: dict[int, int] = dict.fromkeys(tools, 0)
        self._buckets: dict[int, list[int]] = {0: list(tools)} if tools else {}
        self._levels = sorted(self._buckets)
        """Counts that some tool has."""
        self._place = {tool: place for place, tool in enumerate(tools)}

    def __len__(self) -> int:
        return len(self.count)

    def use(self, tool: int) -> None:
        """Count one use; tools that are not covered here are ignored."""
        count = self.count.get(tool)
        if count is None:
            return
        bucket = self._buckets[count]
        last = bucket.pop()
        if last != tool:
            place = self._place[tool]
            bucket[place] = last
            self._place[last] = place
        if not bucket:
            del self._buckets[count], self._levels[bisect_left(self._levels, count)]
        self._put(tool, count + 1)

    def _put(self, tool: int, count: int) -> None:
        self.count[tool] = count
        bucket = self._buckets.get(count)
        if bucket is None:
            bucket = self._buckets[count] = []
            insort(self._levels, count)
        self._place[tool] = len(bucket)
        bucket.append(tool)

    def pick(self, rng: random.Random, fits: Callable[[int], bool], skip: int = 0, most: int = 1 << 30) -> int | None:
        """A tool that fits, of those used least; None if none was met.

        Args:
            rng: Source of chance.
            fits: Tells whether a tool can be taken; asked a few times, never for all of many tools.
            skip: Buckets to pass over first: tools that can never be added lie in the lowest for ever.
            most: Tools to ask for at most.
        """
        for level in islice(self._levels, skip, None):
            bucket = self._buckets[level]
            size = len(bucket)
            first = int(rng.random() * size)
            if size <= SMALL:
                looks = bucket[first:] + bucket[:first]
            else:
                looks = [bucket[first], *(bucket[int(rng.random() * size)] for _ in range(PROBES - 1))]
            for tool in looks:
                if fits(tool):
                    return tool
            most -= len(looks)
            if most <= 0:
                break
        return None

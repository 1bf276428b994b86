"""Cutting a grounded chain into turns."""

import random
from collections.abc import Sequence

from grounding import leaves
from trajectory import FromOutput, GoldCall

LONGEST_TURN = 5


def producers_of(call: GoldCall) -> set[int]:
    """Indices of the calls whose results this one uses."""
    return {source.call for _, source, _ in leaves(call) if isinstance(source, FromOutput)}


def goals_of(calls: Sequence[GoldCall], start: int, stop: int) -> list[int]:
    """What the user actually asks for in a turn: every write, and the reads that nothing else in the turn uses."""
    used = {producer for index in range(start, stop) for producer in producers_of(calls[index])}
    return [index for index in range(start, stop) if calls[index].effect == "write" or index not in used]


def partition(calls: Sequence[GoldCall], rng: random.Random, mean_calls: float) -> list[tuple[int, int]]:
    """Cheapest cut by dynamic programming; a little noise makes equal chains cut differently.

    Returns:
        (start, stop) of every turn, stop exclusive; each 1 to 5 calls (design section 5).
    """
    best: list[tuple[float, list[tuple[int, int]]]] = [(0.0, [])]
    for stop in range(1, len(calls) + 1):
        options = []
        for start in range(max(0, stop - LONGEST_TURN), stop):
            cost, cuts = best[start]
            options.append((cost + _cost(calls, start, stop, mean_calls) + rng.random() * 0.8, [*cuts, (start, stop)]))
        best.append(min(options, key=lambda option: option[0]))
    return best[-1][1]


def _cost(calls: Sequence[GoldCall], start: int, stop: int, mean_calls: float) -> float:
    """Long requests and turns that only prepare a later one read unnaturally."""
    size = stop - start
    goals = goals_of(calls, start, stop)
    cost = 0.5 * (size - mean_calls) ** 2 + 2.0 * max(0, len(goals) - 2)
    later = {producer for index in range(stop, len(calls)) for producer in producers_of(calls[index])}
    if all(calls[goal].effect == "read" and goal in later for goal in goals):
        cost += 1.2
    return cost

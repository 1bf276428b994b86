"""Cutting a grounded chain into turns."""

import random
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from trajsmith.grounding import get_leaf_name, iterate_leaves
from trajsmith.records import FromOutput, GoldCall

LONGEST_TURN = 5
UNRELATED = 8.0
"""Cost of two wishes in one message that have nothing in common."""


def find_producers(call: GoldCall) -> set[int]:
    """Indices of the calls whose results this one uses."""
    return {source.call for _, source, _ in iterate_leaves(call) if isinstance(source, FromOutput)}


def find_goals(
    calls: Sequence[GoldCall],
    start: int,
    stop: int,
    uses: Sequence[set[int]] | None = None,
    steps: Sequence[str] = (),
) -> list[int]:
    """Return the calls that the user asks for in a turn: all writes, and reads that nothing else in the turn uses.

    Args:
        steps: In a scenario: the step that each call is, "" for look-ups; then the steps are the goals.
        uses: `producers_of` every call, from a caller that has them.
    """
    if steps:
        return [index for index in range(start, stop) if steps[index]]
    producers = [find_producers(call) for call in calls] if uses is None else uses
    used = set().union(*producers[start:stop])
    return [index for index in range(start, stop) if calls[index].effect == "write" or index not in used]


def partition_calls(calls: Sequence[GoldCall], rng: random.Random, mean_calls: float) -> list[tuple[int, int]]:
    """Cheapest cut by dynamic programming; a little noise makes equal chains cut differently.

    Returns:
        (start, stop) of every turn, stop exclusive; each 1 to 5 calls.
    """
    uses = [find_producers(call) for call in calls]
    best: list[tuple[float, list[tuple[int, int]]]] = [(0.0, [])]
    for stop in range(1, len(calls) + 1):
        later = set().union(*uses[stop:])
        options = []
        for start in range(max(0, stop - LONGEST_TURN), stop):
            cost, cuts = best[start]
            goals = find_goals(calls, start, stop, uses)
            cost += _cost(calls, stop - start, goals, later, mean_calls) + rng.random() * 0.8
            options.append((cost, [*cuts, (start, stop)]))
        best.append(min(options, key=lambda option: option[0]))
    return best[-1][1]


def partition_scenario(steps: Sequence[str], joins: Mapping[str, float], rng: random.Random) -> list[tuple[int, int]]:
    """Cut the calls of a scenario: each step is a turn with its look-ups, or joins the turn before it.

    Args:
        steps: The step that each call is, "" for look-ups that lead to the next one.
        joins: Step to the probability that the user asks for it together with the step before.
    """
    cuts: list[tuple[int, int]] = []
    start = 0
    for index, step in enumerate(steps):
        if not step:
            continue
        joined = rng.random() < joins.get(step, 0.0)
        if joined and cuts and index + 1 - cuts[-1][0] <= LONGEST_TURN:
            cuts[-1] = (cuts[-1][0], index + 1)
        else:
            cuts.append((start, index + 1))
        start = index + 1
    return cuts


def raise_joins(
    calls: Sequence[GoldCall],
    steps: Sequence[str],
    joins: Mapping[str, float],
    joint: float,
    kinds: Collection[str] | None = None,
    apart: Collection[str] = (),
) -> dict[str, float]:
    """Return the probabilities of `partition_scenario`, at least `joint` for steps that share a thing with the last.

    A step that uses what the last one returns waits for it. Two wishes for the same tool are never one message, since
    they are hard to tell apart; two that have nothing in common are two messages unless the scenario says otherwise.

    Args:
        kinds: Parameters that identify things which people talk about; None for all that come from results.
        apart: Steps that are never raised.
    """
    raised = dict(joins)
    before = -1
    start = 0
    for index, step in enumerate(steps):
        if step:
            waits = step in apart or any(before in find_producers(call) for call in calls[start : index + 1])
            alike = before >= 0 and calls[before].tool == calls[index].tool
            shared = before >= 0 and _list_things(calls[before], kinds) & _list_things(calls[index], kinds)
            if alike:
                raised[step] = 0.0
            elif shared and not waits:
                raised[step] = max(joint, raised.get(step, 0.0))
            before, start = index, index + 1
    return raised


def _list_things(call: GoldCall, kinds: Collection[str] | None) -> set[tuple[str, str]]:
    """Things that a call takes from results, by parameter and id."""
    return {
        (get_leaf_name(path), str(value))
        for path, source, value in iterate_leaves(call)
        if isinstance(source, FromOutput) and (kinds is None or get_leaf_name(path) in kinds)
    }


def _cost(calls: Sequence[GoldCall], size: int, goals: Sequence[int], later: set[int], mean_calls: float) -> float:
    """Long requests and turns that only prepare a later one read unnaturally."""
    cost = 0.5 * (size - mean_calls) ** 2 + 2.0 * max(0, len(goals) - 2)
    shared = [_list_things(calls[goal], None) for goal in goals]
    cost += UNRELATED * sum(not one & other for one, other in pairwise(shared))
    if all(calls[goal].effect == "read" and goal in later for goal in goals):
        cost += 1.2
    return cost

"""Calls of a turn that may go in one message: independent of each other, and shown by execution to commute."""

import random
from collections.abc import Iterator, Sequence
from itertools import permutations

from trajsmith.environments import Session
from trajsmith.grounding import Rewindable, make_rewindable, replays
from trajsmith.querygen.partition import find_producers
from trajsmith.records import GoldCall, JsonObject

Groups = tuple[int, ...]
"""Of each call of a turn: the message of calls in which it can be made. Empty: each call has a message of its own."""
ALL_ORDERS = 3
"""Calls of a group up to which every order of them is executed."""
SHUFFLES = 4
"""Orders of a larger group that are executed beside its own and the reverse."""


async def find_parallel_calls(
    turns: Sequence[Sequence[GoldCall]], state: JsonObject, session: Session, seed: int
) -> list[Groups]:
    """Return the groups of every turn; sessions that go back by replay are not asked.

    All groups of a turn are executed in order, each in several orders of its calls: results and final state must be
    those of the gold order. Where they are not, writes keep their places and only reads between them are grouped.

    Args:
        turns: The gold calls of each turn, with the arguments and results of the gold run.
        state: The initial state.
    """
    if replays(session) or not any(has_choice(groups) for groups in map(_group_by_dependency, _offset(turns))):
        return [()] * len(turns)
    rewindable = make_rewindable(session)
    await rewindable.reset(state)
    rng = random.Random(seed)
    proved: list[Groups] = []
    for start, calls in _offset(turns):
        proved.append(await _prove_turn(rewindable, start, calls, rng))
        for call in calls:
            await rewindable.call(call.tool, call.arguments, call.actor)
    return proved


async def do_calls_commute(
    calls: Sequence[GoldCall], groups: Groups, state: JsonObject, session: Session, seed: int
) -> bool:
    """Return True if execution gives the gold results and the gold state in other orders inside the groups, too.

    Args:
        calls: All gold calls of a task, from its initial state on.
        groups: Of each call, its group; all calls of one come before those of the next.
    """
    if replays(session):
        return False
    rewindable = make_rewindable(session)
    await rewindable.reset(state)
    return await _commutes(rewindable, calls, groups, random.Random(seed))


def has_choice(groups: Groups) -> bool:
    """Return True if two calls of a turn share a message."""
    return len(set(groups)) < len(groups)


def _offset(turns: Sequence[Sequence[GoldCall]]) -> Iterator[tuple[int, Sequence[GoldCall]]]:
    """Yield each turn with the index of its first call."""
    start = 0
    for calls in turns:
        yield start, calls
        start += len(calls)


async def _prove_turn(session: Rewindable, start: int, calls: Sequence[GoldCall], rng: random.Random) -> Groups:
    """Return the groups that execution confirms; the session is left where it was."""
    for groups in (_group_by_dependency((start, calls)), _group_between_writes(start, calls)):
        if has_choice(groups) and await _commutes(session, calls, groups, rng):
            return groups
    return ()


def _group_by_dependency(turn: tuple[int, Sequence[GoldCall]]) -> Groups:
    """Group each call with those that need as many results of the turn one after the other."""
    start, calls = turn
    groups: list[int] = []
    for offset, call in enumerate(calls):
        needed = [groups[producer - start] + 1 for producer in find_producers(call) if producer >= start]
        if call.actor == "user" or (offset and calls[offset - 1].actor == "user"):
            needed += [group + 1 for group in groups]
        elif "user" in {earlier.actor for earlier in calls[:offset]}:
            last = max(place for place in range(offset) if calls[place].actor == "user")
            needed.append(groups[last] + 1)
        groups.append(max(needed, default=0))
    return tuple(groups)


def _group_between_writes(start: int, calls: Sequence[GoldCall]) -> Groups:
    """Group neighbouring reads that need nothing from each other."""
    groups: list[int] = []
    for offset, call in enumerate(calls):
        before = calls[offset - 1] if offset else None
        first = groups.index(groups[-1]) if groups else 0
        joins = (
            before is not None
            and (before.effect, before.actor) == (call.effect, call.actor) == ("read", "assistant")
            and all(producer < start + first for producer in find_producers(call))
        )
        groups.append(groups[-1] + (not joins) if groups else 0)
    return tuple(groups)


async def _commutes(session: Rewindable, calls: Sequence[GoldCall], groups: Groups, rng: random.Random) -> bool:
    """Return True if every tried order of calls gives each of them its gold result, and the turn its gold state."""
    mark = await session.checkpoint()
    gold = [await session.call(call.tool, call.arguments, call.actor) for call in calls]
    final = await session.state_hash()
    for order in _list_orders(groups, rng):
        await session.rollback(mark)
        for place in order:
            call = calls[place]
            result = await session.call(call.tool, call.arguments, call.actor)
            if result.hash != gold[place].hash or result.ok != gold[place].ok:
                await session.rollback(mark)
                return False
        if await session.state_hash() != final:
            await session.rollback(mark)
            return False
    await session.rollback(mark)
    return True


def _list_orders(groups: Groups, rng: random.Random) -> list[list[int]]:
    """Return orders of all calls, group after group, that together try each group in several orders."""
    members = [[place for place, group in enumerate(groups) if group == each] for each in sorted(set(groups))]
    options = [_permute(group, rng) for group in members]
    return [
        [place for choices in options for place in choices[number % len(choices)]]
        for number in range(max(map(len, options)))
    ]


def _permute(group: list[int], rng: random.Random) -> list[list[int]]:
    if len(group) <= ALL_ORDERS:
        return [list(order) for order in permutations(group)]
    return [group, group[::-1], *(rng.sample(group, len(group)) for _ in range(SHUFFLES))]

"""Which gold calls a run made: the trajectory match of EnvFactory, section 3.5."""

from collections.abc import Mapping, Sequence
from typing import Any

from trajectory import Actor, CallEvent, GoldCall, canonical_json, content_hash

Names = Mapping[str, str]
"""Id that the environment gave out to its name, which is the same in equivalent runs."""


def matched_calls(
    gold: Sequence[GoldCall],
    events: Sequence[CallEvent],
    gold_names: Names | None = None,
    names: Names | None = None,
    same_state: bool = False,
) -> dict[int, int]:
    """Gold call to the event that makes it; each event makes one, and calls that were refused make none.

    Reads may be made in any order, since they change nothing. Writes count in the order of gold, unless the run ends
    in the gold state: then their order did not matter. Masked arguments may have any value. Of several events that make
    the same call, the first that gives what it gave in gold is taken.

    Args:
        gold: The gold calls.
        events: What was called.
        gold_names: Names of the ids that the environment gave out in the gold run.
        names: The same of this run.
        same_state: True if the run ends in the gold state.
    """
    masked = {(call.tool, call.actor): set(call.mask) for call in gold if call.mask}
    for call in gold:  # an argument is left out of the comparison only where all calls of the tool may
        masked[call.tool, call.actor] = masked.get((call.tool, call.actor), set()) & set(call.mask)
    wanted = [_key(call, gold_names or {}, masked) for call in gold]
    made = [_key(event, names or {}, masked) if event.ok else None for event in events]
    writes = [index for index, call in enumerate(gold) if call.effect == "write" and not same_state]
    found = {writes[a]: b for a, b in _longest([wanted[index] for index in writes], made)}
    free: dict[bytes | None, list[int]] = {}
    taken = set(found.values())
    for index, key in enumerate(made):
        if index not in taken:
            free.setdefault(key, []).append(index)
    for index, key in enumerate(wanted):
        if index not in writes and free.get(key):
            result = content_hash(gold[index].result, 16)
            same = [place for place in free[key] if events[place].result_hash == result]
            found[index] = (same or free[key])[0]
            free[key].remove(found[index])
    return found


def trajectory_match(
    gold: Sequence[GoldCall],
    events: Sequence[CallEvent],
    gold_names: Names | None = None,
    names: Names | None = None,
    same_state: bool = False,
) -> float:
    """Share of gold calls that a run made, as `matched_calls` finds them; 1 where there are none."""
    if not gold:
        return 1.0
    return round(len(matched_calls(gold, events, gold_names, names, same_state)) / len(gold), 4)


def _key(call: GoldCall | CallEvent, names: Names, masked: Mapping[tuple[str, Actor], set[str]]) -> bytes:
    free = masked.get((call.tool, call.actor), set())
    arguments = {name: _named(value, names) for name, value in call.arguments.items() if name not in free}
    return canonical_json([call.actor, call.tool, arguments])


def _named(value: Any, names: Names) -> Any:
    if not names:
        return value
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {key: _named(inner, names) for key, inner in value.items()}
    return [_named(inner, names) for inner in value] if isinstance(value, list) else value


def _longest(wanted: Sequence[bytes], made: Sequence[bytes | None]) -> list[tuple[int, int]]:
    """Pairs of a longest common subsequence."""
    rows = [[0] * (len(made) + 1) for _ in range(len(wanted) + 1)]
    for a in reversed(range(len(wanted))):
        for b in reversed(range(len(made))):
            equal = wanted[a] == made[b]
            rows[a][b] = rows[a + 1][b + 1] + 1 if equal else max(rows[a + 1][b], rows[a][b + 1])
    pairs, a, b = [], 0, 0
    while a < len(wanted) and b < len(made):
        if wanted[a] == made[b]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        elif rows[a + 1][b] >= rows[a][b + 1]:
            a += 1
        else:
            b += 1
    return pairs

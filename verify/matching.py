"""Matching of gold calls to the calls of a run: the trajectory match of EnvFactory, section 3.5."""

from collections.abc import Mapping, Sequence
from typing import Any

from trajsmith.records import (
    Actor,
    CallEvent,
    FromOutput,
    GoldCall,
    Task,
    Trajectory,
    canonical_json,
    content_hash,
)

GeneratedNames = Mapping[str, str]
"""Id that the environment gave out to its name, which is the same in equivalent runs."""


WRONG_READS = "the agent looks at the thing that was meant"


def match_calls(
    gold: Sequence[GoldCall],
    events: Sequence[CallEvent],
    gold_names: GeneratedNames | None = None,
    names: GeneratedNames | None = None,
    same_state: bool = False,
) -> dict[int, int]:
    """Match each gold call to the event that makes it; each event makes one, refused calls make none.

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
    event_keys = [_key(event, names or {}, masked) if event.ok else None for event in events]
    writes = [index for index, call in enumerate(gold) if call.effect == "write" and not same_state]
    pairs = {writes[a]: b for a, b in _find_longest_subsequence([wanted[index] for index in writes], event_keys)}
    free: dict[bytes | None, list[int]] = {}
    taken = set(pairs.values())
    for index, key in enumerate(event_keys):
        if index not in taken:
            free.setdefault(key, []).append(index)
    for index, key in enumerate(wanted):
        if index not in writes and free.get(key):
            result = content_hash(gold[index].result, 16)
            same = [place for place in free[key] if events[place].result_hash == result]
            pairs[index] = (same or free[key])[0]
            free[key].remove(pairs[index])
    return pairs


def compute_trajectory_match(
    gold: Sequence[GoldCall],
    events: Sequence[CallEvent],
    gold_names: GeneratedNames | None = None,
    names: GeneratedNames | None = None,
    same_state: bool = False,
) -> float:
    """Share of gold calls that a run made, as `matched_calls` finds them; 1 where there are none."""
    if not gold:
        return 1.0
    return round(len(match_calls(gold, events, gold_names, names, same_state)) / len(gold), 4)


def find_wrong_reads(task: Task, trajectory: Trajectory, pairs: Mapping[int, int]) -> list[str]:
    """Return reads of another thing than the one that was meant, as "tool: argument value".

    What another thing shows may happen to be the same, so neither state nor answer need tell.

    Args:
        pairs: Gold calls that were made, as `match_calls` gives them.
    """
    wrong, start = [], 0
    taken = set(pairs.values())
    for turn, span in zip(task.turns, trajectory.turns, strict=False):
        events = [
            event
            for index, event in enumerate(trajectory.events)
            if index not in taken and event.ok and span.start <= event.message < span.stop
        ]
        for index, call in enumerate(turn.gold_calls, start):
            references = [name for name, source in call.provenance.items() if isinstance(source, FromOutput)]
            if index in pairs or call.effect == "write" or not references:
                continue
            wrong += [
                f"{event.tool}: {name} {event.arguments[name]!r}"
                for event in events
                if (event.tool, event.actor) == (call.tool, call.actor)
                for name in references
                if event.arguments.get(name, call.arguments[name]) != call.arguments[name]
            ]
        start += len(turn.gold_calls)
    return list(dict.fromkeys(wrong))


def _key(call: GoldCall | CallEvent, names: GeneratedNames, masked: Mapping[tuple[str, Actor], set[str]]) -> bytes:
    free = masked.get((call.tool, call.actor), set())
    arguments = {name: _rename_ids(value, names) for name, value in call.arguments.items() if name not in free}
    return canonical_json([call.actor, call.tool, arguments])


def _rename_ids(value: Any, names: GeneratedNames) -> Any:
    if not names:
        return value
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {key: _rename_ids(inner, names) for key, inner in value.items()}
    return [_rename_ids(inner, names) for inner in value] if isinstance(value, list) else value


def _find_longest_subsequence(wanted: Sequence[bytes], event_keys: Sequence[bytes | None]) -> list[tuple[int, int]]:
    """Pairs of a longest common subsequence."""
    rows = [[0] * (len(event_keys) + 1) for _ in range(len(wanted) + 1)]
    for a in reversed(range(len(wanted))):
        for b in reversed(range(len(event_keys))):
            equal = wanted[a] == event_keys[b]
            rows[a][b] = rows[a + 1][b + 1] + 1 if equal else max(rows[a + 1][b], rows[a][b + 1])
    pairs, a, b = [], 0, 0
    while a < len(wanted) and b < len(event_keys):
        if wanted[a] == event_keys[b]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        elif rows[a + 1][b] >= rows[a][b + 1]:
            a += 1
        else:
            b += 1
    return pairs

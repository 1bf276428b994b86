"""Look-ups of a scenario: those that the step after them does not use are taken out again."""

from collections.abc import Mapping
from typing import Any, Protocol

from trajsmith.grounding.user_facts import iterate_leaves
from trajsmith.records import Composite, FromOutput, GoldCall, Provenance


class StepNames(Protocol):
    """Chain that says which of its steps are goals."""

    def get_step(self, number: int) -> Any: ...


def remove_unused_lookups(frames: list[Any], draft: StepNames) -> None:
    """Take out reads since the goal before the last one that do not lead to the last one, and number calls anew."""
    last = len(frames) - 1
    start = last
    while start > 0 and draft.get_step(frames[start - 1].step) is None:
        start -= 1
    used = {last}
    for number in range(last, start - 1, -1):
        if number in used:
            used |= find_producer_calls(frames[number].call)
    unused = [number for number in range(start, last) if number not in used and frames[number].call.effect == "read"]
    if not unused:
        return
    remaining = [number for number in range(len(frames)) if number not in unused]
    moved = {number: place for place, number in enumerate(remaining)}
    gone = {frames[number].step for number in unused}
    for number in remaining[start:]:
        frame = frames[number]
        frame.conflict -= gone
        provenance = {name: renumber(source, moved) for name, source in frame.call.provenance.items()}
        frame.call = frame.call.model_copy(update={"provenance": provenance})
    frames[:] = [frames[number] for number in remaining]


def remove_trailing_lookups(frames: list[Any], draft: StepNames) -> None:
    """Take out the reads after the last goal."""
    while frames and draft.get_step(frames[-1].step) is None and frames[-1].call.effect == "read":
        frames.pop()


def find_producer_calls(call: GoldCall) -> set[int]:
    """Return the numbers of the calls whose results a call uses."""
    return {source.call for _, source, _ in iterate_leaves(call) if isinstance(source, FromOutput)}


def renumber(source: Provenance, moved: Mapping[int, int]) -> Provenance:
    """Return a provenance with the new number of the call that it refers to."""
    if isinstance(source, FromOutput):
        return source.model_copy(update={"call": moved[source.call]})
    if isinstance(source, Composite):
        leaves: Any = {path: renumber(leaf, moved) for path, leaf in source.leaves.items()}
        return source.model_copy(update={"leaves": leaves})
    return source

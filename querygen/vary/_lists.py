"""Lists that a task reads, or could read: the turn at which one fits, the calls up to it, and its rows on a state."""

from collections.abc import Iterator, Mapping, Sequence

from trajsmith.grounding import iterate_leaves, leads_to, list_needed_keys
from trajsmith.querygen.partition import find_producers
from trajsmith.querygen.vary._case import VariantCase
from trajsmith.records import EnvironmentFault, FromOutput, GoldCall, JsonObject, JsonValue, ToolSpec, UserFact


def find_list(case: VariantCase, tool: ToolSpec) -> tuple[int, tuple[GoldCall, ...]] | None:
    """Return the turn that makes way for a request about a list, and the calls up to the list; None without a list."""
    for turn, (start, stop) in enumerate(case.spans):
        for index in range(start, stop):
            if case.calls[index].tool == tool.name and _leads_to(case.calls, start, index):
                call = _drop_optional(case.calls[index], tool.required)
                return turn, (*case.calls[start:index], call)
    if tool.required:
        return None
    call = GoldCall(tool=tool.name, arguments={}, provenance={}, effect="read")
    return len(case.spans), (call,)  # after the story, which is not broken off for a question that is no part of it


def find_opening_calls(
    case: VariantCase, tool: ToolSpec, owner: str = ""
) -> tuple[tuple[GoldCall, ...], dict[str, UserFact]] | None:
    """Return a list and the calls that lead to it, and nothing else of the task; None if nothing of it leads there.

    What the user knows of a row is filed under the place of the call that lists it; such facts are returned, too,
    under the places that the calls have now.

    Args:
        case: The task.
        tool: Tool of the list.
        owner: Parameter of the tool that says who the user is: a call of the task for another tool may have that, too.
    """
    if not tool.required:
        return (GoldCall(tool=tool.name, arguments={}, provenance={}, effect="read"),), {}
    same = [call for call in case.calls if call.tool == tool.name]
    others = [call for call in case.calls if owner in call.provenance] if [owner] == list(tool.required) else []
    for call in (*same, *others):
        listing = _drop_optional(call, tool.required).model_copy(update={"tool": tool.name, "effect": "read"})
        needed = _collect_producers(case.calls, listing)
        if all(case.calls[number].effect == "read" and case.calls[number].actor == "assistant" for number in needed):
            places = {number: place for place, number in enumerate(needed)}
            calls = (*(case.calls[number] for number in needed), listing)
            moved = tuple(_move_sources(each, places) for each in calls)
            keys = [(old, new) for pair in zip(calls, moved, strict=True) for old, new in _pair_keys(*pair)]
            return moved, {new: case.known[old].model_copy(update={"key": new}) for old, new in keys if old != new}
    return None


def _leads_to(calls: Sequence[GoldCall], start: int, index: int) -> bool:
    """Return True if every call of the turn before this one is there for its sake, and no one else acts."""
    needed = {index}
    for number in range(index, start - 1, -1):
        if number in needed:
            needed |= find_producers(calls[number])
    return all(
        number in needed and calls[number].effect == "read" and calls[number].actor == "assistant"
        for number in range(start, index + 1)
    )


def _collect_producers(calls: Sequence[GoldCall], call: GoldCall) -> list[int]:
    """Return the calls whose results lead to a call, in order."""
    needed, open_calls = set[int](), [call]
    while open_calls:
        for number in find_producers(open_calls.pop()) - needed:
            needed.add(number)
            open_calls.append(calls[number])
    return sorted(needed)


def _pair_keys(call: GoldCall, moved: GoldCall) -> Iterator[tuple[str, str]]:
    return zip(list_needed_keys(call), list_needed_keys(moved), strict=True)


def _move_sources(call: GoldCall, places: Mapping[int, int]) -> GoldCall:
    """Return a call whose values come from calls at other places."""
    provenance = {
        name: source.model_copy(update={"call": places[source.call]}) if isinstance(source, FromOutput) else source
        for name, source in call.provenance.items()
    }
    return call.model_copy(update={"provenance": provenance, "result": None})


def _drop_optional(call: GoldCall, required: Sequence[str]) -> GoldCall:
    """Return the call with its required arguments only, so that it lists everything."""
    arguments = {name: value for name, value in call.arguments.items() if name in required}
    provenance = {name: source for name, source in call.provenance.items() if name in required}
    return call.model_copy(update={"arguments": arguments, "provenance": provenance, "result": None})


async def read_rows(case: VariantCase, state: JsonObject, calls: Sequence[GoldCall]) -> list[JsonObject] | None:
    """Return the rows of the last call; None where the calls do not lead there on this state."""
    results = await run_calls(case, state, calls)
    return None if results is None else get_rows(results[-1])


async def run_calls(case: VariantCase, state: JsonObject, calls: Sequence[GoldCall]) -> list[JsonValue] | None:
    """Return the results of calls; None where they are refused or references lead elsewhere on this state."""
    results: list[JsonValue] = []
    try:
        await case.session.reset(state)
        for call in calls:
            for _, source, value in iterate_leaves(call):
                if isinstance(source, FromOutput) and not leads_to(source, results[source.call], value):
                    return None
            result = await case.session.call(call.tool, call.arguments, call.actor)
            if not result.ok:
                return None
            results.append(result.content)
    except EnvironmentFault:
        return None  # a state that the environment cannot work with is none
    return results


def get_rows(content: JsonValue) -> list[JsonObject] | None:
    rows = content.get("result") if isinstance(content, dict) else content
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else None

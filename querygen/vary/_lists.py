"""Lists that a task reads, or could read: the turn at which one fits, the calls up to it, and its rows on a state."""

from collections.abc import Sequence

from trajsmith.grounding import iterate_leaves, leads_to
from trajsmith.querygen.partition import find_producers
from trajsmith.querygen.vary._case import VariantCase
from trajsmith.records import EnvironmentFault, FromOutput, GoldCall, JsonObject, JsonValue, ToolSpec

LATEST = 3
"""Turns of the task that are kept at most before a list which the task does not read."""


def find_list(case: VariantCase, tool: ToolSpec, owner: str = "") -> tuple[int, tuple[GoldCall, ...]] | None:
    """Return the turn that makes way for a request about a list, and the calls up to the list; None without a list.

    Args:
        case: The task.
        tool: Tool of the list.
        owner: Parameter of the tool that says who the user is: an earlier call of the task may have that, too.
    """
    for turn, (start, stop) in enumerate(case.spans):
        for index in range(start, stop):
            if case.calls[index].tool == tool.name and _leads_to(case.calls, start, index):
                call = _drop_optional(case.calls[index], tool.required)
                return turn, (*case.calls[start:index], call)
    if tool.required:
        return _find_owner(case, tool) if [owner] == list(tool.required) else None
    call = GoldCall(tool=tool.name, arguments={}, provenance={}, effect="read")
    return min(len(case.spans), case.rng.randint(1, 2)), (call,)


def _find_owner(case: VariantCase, tool: ToolSpec) -> tuple[int, tuple[GoldCall, ...]] | None:
    """Return a turn before which it is known who the user is and the list was not shown, and the call for the list."""
    (owner,) = tool.required
    places = []
    for turn in range(1, min(len(case.spans), LATEST) + 1):
        before = case.calls[: case.spans[turn - 1][1]]
        known = next((call for call in before if owner in call.arguments and owner in call.provenance), None)
        if known is not None and all(call.tool != tool.name for call in before):
            arguments, provenance = {owner: known.arguments[owner]}, {owner: known.provenance[owner]}
            places.append((turn, GoldCall(tool=tool.name, arguments=arguments, provenance=provenance, effect="read")))
    if not places:
        return None
    turn, call = case.rng.choice(places)
    return turn, (call,)


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

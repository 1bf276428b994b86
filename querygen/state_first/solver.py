"""Solver without a model: tries the tools of an environment until a call meets a goal."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from trajsmith.grounding import Rewindable, is_identifier
from trajsmith.phrasing import parse_datetime, shift_within_calendar
from trajsmith.querygen.state_first.goals import StateGoal
from trajsmith.records import FrozenModel, JsonObject, JsonValue, ToolSpec

MOST_VALUES = 4
"""Values that are tried for one parameter."""
MOST_CALLS = 24
"""Calls of one tool that are tried."""


_PLAIN: dict[str, JsonValue] = {"string": "a short note", "integer": 1, "number": 1.0, "boolean": True}


class FoundCall(FrozenModel):
    """A call that meets a goal."""

    tool: str
    arguments: JsonObject
    fixed: tuple[str, ...]
    """Arguments that the goal decides; for the others any value may do."""


async def solve_goal(
    goal: StateGoal, tools: Sequence[ToolSpec], state: JsonObject, session: Rewindable
) -> FoundCall | None:
    """Return a call that meets a goal from the initial state; None if no tool does.

    Arguments come from the goal, the row that is meant, what that row refers to, and the choices of the schema.

    Raises:
        EnvironmentFault: The environment broke.
    """
    await session.reset(state)
    initial = await session.snapshot()
    mark = await session.checkpoint()
    for tool in sorted(tools, key=lambda tool: (-_count_shared(goal, tool), tool.name)):
        if tool.actor != "assistant":
            continue
        for arguments in itertools.islice(_list_arguments(goal, tool, initial), MOST_CALLS):
            await session.rollback(mark)
            result = await session.call(tool.name, arguments)
            if result.ok and goal.holds(initial, await session.snapshot()):
                fixed = tuple(name for name in arguments if name in goal.fields or is_identifier(name))
                return FoundCall(tool=tool.name, arguments=arguments, fixed=fixed)
    return None


def _count_shared(goal: StateGoal, tool: ToolSpec) -> int:
    """Return how many fields of the goal a tool has as parameters; such tools are tried first."""
    return len(goal.fields.keys() & tool.input_schema.get("properties", {}).keys())


def _list_arguments(goal: StateGoal, tool: ToolSpec, state: JsonObject) -> Iterator[JsonObject]:
    properties = tool.input_schema.get("properties", {})
    names = [name for name in properties if name in tool.required or name in goal.fields]
    choices = [_list_values(goal, name, properties[name], state)[:MOST_VALUES] for name in names]
    yield from (dict(zip(names, values, strict=True)) for values in itertools.product(*choices))


def _list_values(goal: StateGoal, name: str, schema: JsonObject, state: JsonObject) -> list[JsonValue]:
    """List values for a parameter, likely ones first."""
    rows: Any = state.get(goal.table, {})
    row = rows.get(goal.key, {}) if goal.key else {}
    values: list[JsonValue] = [goal.fields[name]] if name in goal.fields else []
    if goal.key:
        values += [goal.key, *([row[name]] if name in row else [])]
    values += [value for field, value in goal.fields.items() if field != name]
    values += schema.get("enum", [])
    fitting = [value for value in values if _has_type(value, schema)]
    distinct = [value for number, value in enumerate(fitting) if value not in fitting[:number]]
    fallback = [] if is_identifier(name) else list_plain_values(schema, state)
    return distinct if name in goal.fields or schema.get("enum") else [*fallback, *distinct]


def list_plain_values(schema: JsonObject, state: JsonObject) -> list[JsonValue]:
    """List values that a schema allows for a parameter of which the goal says nothing."""
    parts = [schema, *(part for part in schema.get("anyOf", []) if isinstance(part, dict))]
    named: list[JsonValue] = [value for part in parts for value in part.get("examples", [])[:1] if value is not None]
    now = parse_datetime(state.get("now"))
    for part in parts:
        kind, text_format = part.get("type", ""), part.get("format", "")
        if kind == "string" and "date" in text_format and now is not None:
            day = shift_within_calendar(now, 7).isoformat()
            named.append(day if text_format == "date-time" else day[:10])
        elif kind in _PLAIN and not named:
            named.append(_PLAIN[kind])
    return named[-1:]


def _has_type(value: JsonValue, schema: JsonObject) -> bool:
    if schema.get("enum"):
        return value in schema["enum"]
    options = [schema, *schema.get("anyOf", [])]
    kinds = {str(option.get("type")) for option in options if isinstance(option, dict)}
    wanted = {bool: "boolean", int: "integer", float: "number", str: "string"}
    kind = wanted.get(type(value), "")
    return kind in kinds or (kind == "integer" and "number" in kinds)

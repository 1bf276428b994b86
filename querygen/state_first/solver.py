"""Solver without a model: tries the tools of an environment until a call meets a goal."""

import itertools
import random
from collections.abc import Iterator
from typing import Any

from trajsmith.grounding import Grounder, Rewindable, is_identifier
from trajsmith.phrasing import parse_datetime, shift_within_calendar
from trajsmith.querygen.state_first.goals import StateGoal
from trajsmith.querygen.state_first.row_links import RowLinks
from trajsmith.records import FrozenModel, JsonObject, JsonValue, ToolSpec

MOST_VALUES = 4
"""Values that are tried for one parameter."""
MOST_CALLS = 24
"""Calls of one tool that are tried."""
MOST_SAID = 2
"""Values of the state that are tried for a parameter of which the goal says nothing."""


_PLAIN: dict[str, JsonValue] = {"string": "a short note", "integer": 1, "number": 1.0, "boolean": True}


class FoundCall(FrozenModel):
    """A call that meets a goal."""

    tool: str
    arguments: JsonObject
    fixed: tuple[str, ...]
    """Arguments that the goal decides; for the others any value may do."""


async def solve_goal(
    goal: StateGoal, grounder: Grounder, links: RowLinks, session: Rewindable, rng: random.Random
) -> FoundCall | None:
    """Return a call that meets a goal from the initial state; None if no tool does.

    Arguments come from the goal, the row that is meant, the choices of the schema, and what a user might say.

    Raises:
        EnvironmentFault: The environment broke.
    """
    await session.reset(links.state)
    initial = await session.snapshot()
    mark = await session.checkpoint()
    likely = LikelyValues(grounder, links, goal, rng)

    async def meets(arguments: JsonObject, tool: ToolSpec) -> bool:
        await session.rollback(mark)
        result = await session.call(tool.name, arguments)
        return result.ok and goal.holds(initial, await session.snapshot())

    for tool in sorted(grounder.tools.values(), key=lambda tool: (-_count_shared(goal, tool), tool.name)):
        if tool.actor != "assistant" or tool.annotations.read_only_hint is True:
            continue
        for arguments in itertools.islice(_list_arguments(goal, tool, initial, likely), MOST_CALLS):
            if await meets(arguments, tool):
                fixed = [name for name, value in arguments.items() if is_decided(goal, name, value)]
                for name in arguments.keys() - set(fixed):
                    others = [value for value in tool.parameters[name].get("enum", []) if value != arguments[name]]
                    met = [await meets({**arguments, name: value}, tool) for value in others[:MOST_VALUES]]
                    fixed += [] if all(met) else [name]
                return FoundCall(tool=tool.name, arguments=arguments, fixed=tuple(sorted(fixed)))
    return None


def is_decided(goal: StateGoal, name: str, value: JsonValue) -> bool:
    """Return whether a goal decides an argument: by its name, by a value of the goal, or because it names a row."""
    return name in goal.fields or is_identifier(name) or (value in goal.fields.values() and isinstance(value, str))


def _count_shared(goal: StateGoal, tool: ToolSpec) -> int:
    """Return how many fields of the goal a tool has as parameters; such tools are tried first."""
    return len(goal.fields.keys() & tool.input_schema.get("properties", {}).keys())


class LikelyValues:
    """Values that a user might say for parameters of which a goal says nothing."""

    def __init__(self, grounder: Grounder, links: RowLinks, goal: StateGoal, rng: random.Random) -> None:
        meant = [goal.key, *(value for name, value in goal.fields.items() if is_identifier(name))]
        rows = links.list_linked([text for text in meant if isinstance(text, str) and text])
        self._assigner = grounder.derive(rows=rows).assigner
        self._rng = rng

    def list_values(self, tool: str, name: str) -> list[JsonValue]:
        """List values for a parameter, those of the rows first that the goal means."""
        field = next((field for field in self._assigner.fields[tool] if field.path == name), None)
        return [] if field is None else self._assigner.values.propose(field, self._rng, MOST_SAID)


def _list_arguments(goal: StateGoal, tool: ToolSpec, state: JsonObject, likely: LikelyValues) -> Iterator[JsonObject]:
    properties = tool.input_schema.get("properties", {})
    names = [name for name in properties if name in tool.required or name in goal.fields]
    choices = []
    for name in names:
        values = _list_values(goal, name, properties[name], state)[:MOST_VALUES]
        if name not in goal.fields and not is_identifier(name) and not properties[name].get("enum"):
            others = [value for value in likely.list_values(tool.name, name) if value not in values]
            values = [*values[:1], *others, *values[1:]]
        choices.append(values)
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

"""From a call in a message to what is really called: malformed calls and the two-level mode (AWM A.4)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from chatmodel.model import MalformedCall
from environments import ToolResult
from trajectory import EnvironmentSpec, JsonObject, ToolCall, ToolSpec
from trajectory.canonical import canonical_json
from trajectory.rollout import CALL_TOOL, LIST_TOOLS, MALFORMED

SHOWN = 400
"""Characters of a malformed call that the model sees again."""

TWO_LEVEL = (
    ToolSpec(
        server="",
        name=LIST_TOOLS,
        description="List the tools of this environment, each with its description and the schema of its arguments.",
        input_schema={"type": "object", "properties": {}},
    ),
    ToolSpec(
        server="",
        name=CALL_TOOL,
        description="Call one of the listed tools.",
        input_schema={
            "type": "object",
            "properties": {
                "tool_name": {"type": "string", "description": "Name of the tool, as listed."},
                "arguments": {"type": "string", "description": 'Arguments as a JSON string, for example {"id": "7"}.'},
            },
            "required": ["tool_name", "arguments"],
        },
    ),
)


@dataclass(frozen=True)
class Target:
    """What a call comes to.

    Attributes:
        result: The answer, where the environment is not asked.
        error: Kind of error of such an answer, or None.
    """

    tool: str
    arguments: JsonObject
    result: ToolResult | None = None
    error: str | None = None


def target(
    call: ToolCall, malformed: Mapping[str, MalformedCall], spec: EnvironmentSpec, exposed: tuple[str, ...], two: bool
) -> Target:
    """What one call of a message comes to.

    Args:
        malformed: Malformed calls of the message, by their ids.
        exposed: Names of the tools that the agent may use.
        two: True in the two-level mode.
    """
    name, arguments = call.function.name, call.function.arguments
    if call.id in malformed:
        found = malformed[call.id]
        return _refused(name, f"{found.error}. You wrote: {found.text[:SHOWN]}")
    if not two:
        return Target(name, arguments)
    if name == LIST_TOOLS:
        return Target(name, arguments, ToolResult(_listing(spec, exposed)))
    if name != CALL_TOOL:
        return _refused(name, f"unknown tool: {name}; call it through {CALL_TOOL}")
    return _inner(arguments)


def _inner(arguments: JsonObject) -> Target:
    tool, given = arguments.get("tool_name"), arguments.get("arguments")
    if not isinstance(tool, str) or not tool:
        return _refused(CALL_TOOL, "tool_name is missing")
    try:
        inner = json.loads(given) if isinstance(given, str) else given
    except ValueError as error:
        return _refused(tool, f"arguments are not JSON: {error}. You wrote: {str(given)[:SHOWN]}")
    if not isinstance(inner, dict):
        return _refused(tool, "arguments must be a JSON object")
    return Target(tool, inner)


def _refused(tool: str, message: str) -> Target:
    return Target(tool, {}, ToolResult({"error": message}, "invalid_arguments"), MALFORMED)


def _listing(spec: EnvironmentSpec, exposed: tuple[str, ...]) -> str:
    tools = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
        for tool in spec.tools
        if tool.name in exposed
    ]
    return canonical_json(tools).decode()

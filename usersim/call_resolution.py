"""Resolution of calls in messages: malformed calls and the two-level mode (AWM A.4)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trajsmith.environments import ToolResult
from trajsmith.models import MalformedCall
from trajsmith.records import JsonObject, ToolCall, ToolSpec, canonical_json
from trajsmith.records.trajectory import CALL_TOOL, LIST_TOOLS, MALFORMED

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
class ResolvedCall:
    """Tool call after resolution.

    Attributes:
        result: The answer, where the environment is not asked.
        error: Kind of error of such an answer, or None.
    """

    tool: str
    arguments: JsonObject
    result: ToolResult | None = None
    error: str | None = None


def resolve_call(
    call: ToolCall, malformed: Mapping[str, MalformedCall], shown: Sequence[ToolSpec], two: bool
) -> ResolvedCall:
    """Resolve one call of a message.

    Args:
        malformed: Malformed calls of the message, by their ids.
        shown: Tools that the agent is shown.
        two: True in the two-level mode.
    """
    name, arguments = call.function.name, call.function.arguments
    if call.id in malformed:
        malformed_call = malformed[call.id]
        return _build_refusal(name, f"{malformed_call.error}. You wrote: {malformed_call.text[:SHOWN]}")
    if not two:
        return ResolvedCall(name, arguments)
    if name == LIST_TOOLS:
        return ResolvedCall(name, arguments, ToolResult(_render_tool_list(shown)))
    if name != CALL_TOOL:
        return _build_refusal(name, f"unknown tool: {name}; call it through {CALL_TOOL}")
    return _resolve_inner_call(arguments)


def _resolve_inner_call(arguments: JsonObject) -> ResolvedCall:
    tool, inner_arguments = arguments.get("tool_name"), arguments.get("arguments")
    if not isinstance(tool, str) or not tool:
        return _build_refusal(CALL_TOOL, "tool_name is missing")
    try:
        inner = json.loads(inner_arguments) if isinstance(inner_arguments, str) else inner_arguments
    except ValueError as error:
        return _build_refusal(tool, f"arguments are not JSON: {error}. You wrote: {str(inner_arguments)[:SHOWN]}")
    if not isinstance(inner, dict):
        return _build_refusal(tool, "arguments must be a JSON object")
    return ResolvedCall(tool, inner)


def _build_refusal(tool: str, message: str) -> ResolvedCall:
    return ResolvedCall(tool, {}, ToolResult({"error": message}, "invalid_arguments"), MALFORMED)


def _render_tool_list(shown: Sequence[ToolSpec]) -> str:
    tools = [{"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema} for tool in shown]
    return canonical_json(tools).decode()

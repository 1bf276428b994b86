"""Resolution of calls in messages: malformed ones, the two-level mode (AWM A.4), tools that a search has to find."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from trajsmith.environments import ToolResult
from trajsmith.models import MalformedCall
from trajsmith.phrasing import ToolIndex
from trajsmith.records import (
    CALL_TOOL,
    DEEPEST_JSON,
    LIST_TOOLS,
    SEARCH_TOOLS,
    TWO_LEVEL,
    EnvironmentSpec,
    JsonObject,
    Task,
    ToolCall,
    canonical_json,
    is_too_deep,
)
from trajsmith.records.trajectory import MALFORMED, NOT_SHOWN

SHOWN = 400
"""Characters of a malformed call that the model sees again."""


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


class ToolAccess:
    """Access of the agent of one dialogue to the tools of its task: direct, through a list, or by searching.

    Attributes:
        shown: Tools that the agent is shown as functions.
        found: Names of the tools that searches of earlier messages have shown.
    """

    def __init__(self, task: Task, spec: EnvironmentSpec, two_level: bool = False) -> None:
        """`two_level` shows list_tools and call_tool; a task whose tools are searched for stays one."""
        self.search = task.search
        self.two_level = two_level and task.search is None
        self.listed = task.find_shown_specs(spec.tools) if task.search is None else task.find_searched_specs(spec.tools)
        self.shown = TWO_LEVEL if self.two_level else task.find_shown_specs(spec.tools)
        self.found: set[str] = set()

    @cached_property
    def index(self) -> ToolIndex:
        """Index of the tools that searches find."""
        return ToolIndex(self.listed)

    def resolve_message(self, calls: Sequence[ToolCall], malformed: Sequence[MalformedCall] = ()) -> list[ResolvedCall]:
        """Resolve the calls of one message, in order. What a search shows can be called from the next message on."""
        broken = {call.id: call for call in malformed}
        resolved = [self._resolve(call, broken.get(call.id)) for call in calls]
        for call in resolved:
            if call.tool == SEARCH_TOOLS and call.result is not None and call.error is None:
                self.found |= read_found_tools(call.result.content)
        return resolved

    def _resolve(self, call: ToolCall, malformed: MalformedCall | None) -> ResolvedCall:
        name, arguments = call.function.name, call.function.arguments
        if malformed is not None:
            return _build_refusal(name, f"{malformed.error}. You wrote: {malformed.text[:SHOWN]}")
        if self.search is not None:
            return self._resolve_searched(name, arguments, self.search.results)
        if not self.two_level:
            return ResolvedCall(name, arguments)
        if name == LIST_TOOLS:
            text = canonical_json([tool.as_listed() for tool in self.listed]).decode()
            return ResolvedCall(name, arguments, ToolResult(text))
        if name != CALL_TOOL:
            return _build_refusal(name, f"unknown tool: {name}; call it through {CALL_TOOL}")
        return resolve_inner_call(arguments)

    def _resolve_searched(self, name: str, arguments: JsonObject, count: int) -> ResolvedCall:
        if name == SEARCH_TOOLS:
            query = arguments.get("query")
            if not isinstance(query, str) or not query.strip():
                return _build_refusal(name, "query is missing: say in a few words what the tool should do")
            return ResolvedCall(name, arguments, ToolResult({"tools": self.index.list_matches(query, count)}))
        if name != CALL_TOOL:
            return _build_refusal(name, f"unknown tool: {name}; find it with {SEARCH_TOOLS}, call it by {CALL_TOOL}")
        call = resolve_inner_call(arguments)
        if call.error is None and call.tool not in self.found:
            message = f"no search has shown a tool named {call.tool}: find it with {SEARCH_TOOLS}"
            return ResolvedCall(call.tool, call.arguments, ToolResult.refusal("unknown_tool", message), NOT_SHOWN)
        return call


def read_found_tools(content: Any) -> set[str]:
    """Return the names of the tools that the result of a search shows; none if it is no such result."""
    tools = content.get("tools") if isinstance(content, dict) else None
    return {str(tool["name"]) for tool in tools if isinstance(tool, dict) and "name" in tool} if tools else set()


def resolve_inner_call(arguments: JsonObject) -> ResolvedCall:
    """Resolve the arguments of call_tool to the call that is meant."""
    tool, inner_arguments = arguments.get("tool_name"), arguments.get("arguments")
    if not isinstance(tool, str) or not tool:
        return _build_refusal(CALL_TOOL, "tool_name is missing")
    try:
        inner = orjson.loads(inner_arguments) if isinstance(inner_arguments, str) else inner_arguments
    except ValueError as error:
        return _build_refusal(tool, f"arguments are not JSON: {error}. You wrote: {str(inner_arguments)[:SHOWN]}")
    if not isinstance(inner, dict):
        return _build_refusal(tool, "arguments must be a JSON object")
    if is_too_deep(inner):
        return _build_refusal(tool, f"arguments nest deeper than {DEEPEST_JSON} levels")
    return ResolvedCall(tool, inner)


def _build_refusal(tool: str, message: str) -> ResolvedCall:
    return ResolvedCall(tool, {}, ToolResult({"error": message}, "invalid_arguments"), MALFORMED)

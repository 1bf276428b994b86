"""What programs of foreign code do around a call: check the arguments, and make the output a result or a fault."""

from collections.abc import Callable, Coroutine
from typing import Any

import jsonschema_rs
from jsonschema import ValidationError as ValidationFault
from jsonschema.exceptions import best_match

from trajsmith.environments.json_data import NotJsonError, to_plain_json
from trajsmith.environments.schema_patterns import compile_schema
from trajsmith.environments.session import ToolResult
from trajsmith.records import Actor, EnvironmentFault, EnvironmentSpec, JsonObject, JsonValue


class _Check:
    """A schema, compiled twice: fast, and so that it says well what is wrong."""

    def __init__(self, schema: JsonValue) -> None:
        self._words = compile_schema(schema)
        try:
            self._fits: Callable[[JsonValue], bool] = jsonschema_rs.validator_for(schema).is_valid
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
            self._fits = self._words.is_valid  # its dialect or a pattern is beyond the fast one

    def fault(self, value: JsonValue) -> ValidationFault | None:
        """The fault that says most, or None."""
        return None if self._fits(value) else best_match(self._words.iter_errors(value))


class Toolbox:
    """The compiled checks of an environment's tools.

    Args:
        spec: The environment.
        nulls: True if a null may stand for any value in an output: output schemas of this form never say which
            values may be absent.
    """

    def __init__(self, spec: EnvironmentSpec, nulls: bool = False) -> None:
        self._name = spec.name
        self._actors = {tool.name: tool.actor for tool in spec.tools}
        self._inputs = {tool.name: _Check(tool.input_schema) for tool in spec.tools}
        self._outputs = {
            tool.name: _Check(_with_nulls(tool.output_schema) if nulls else tool.output_schema)
            for tool in spec.tools
            if tool.output_schema is not None
        }

    def refusal(self, tool: str, arguments: JsonObject, actor: Actor) -> ToolResult | None:
        """Why foreign code does not get to see this call, or None."""
        if self._actors.get(tool) != actor:
            return ToolResult.refusal("unknown_tool", f"unknown tool: {tool}")
        error = self._inputs[tool].fault(arguments)
        if error is None:
            return None
        where = ".".join(str(part) for part in error.absolute_path)
        message = " ".join(error.message.split())
        return ToolResult.refusal("invalid_arguments", f"{where}: {message}" if where else message)

    def content(self, tool: str, value: object) -> JsonValue:
        """Convert a tool's result to plain JSON.

        Raises:
            EnvironmentFault: It is no JSON.
        """
        try:
            return to_plain_json(value)
        except NotJsonError as error:
            raise EnvironmentFault("output_schema", self._name, str(error), tool) from error

    def result(self, tool: str, content: JsonValue) -> ToolResult:
        """A successful call's content as a result.

        Raises:
            EnvironmentFault: It violates the tool's output schema.
        """
        check = self._outputs.get(tool)
        error = None if check is None else check.fault(content)
        if error is None:
            return ToolResult(content)
        message = f"{error.json_path}: {' '.join(error.message.split())[:300]}"
        raise EnvironmentFault("output_schema", self._name, message, tool)

    def answer(self, tool: str, content: JsonValue, text: bool = False) -> ToolResult:
        """As `result`; what is no object is wrapped in one, and an object whose own words refuse is a refusal.

        Args:
            tool: The tool.
            content: What it returned.
            text: True if text stays as it is.

        Raises:
            EnvironmentFault: It violates the tool's output schema.
        """
        whole = isinstance(content, dict) or (text and isinstance(content, str))
        wrapped = content if whole else {"result": content}
        return ToolResult(wrapped, "refused") if is_refusal_content(wrapped) else self.result(tool, wrapped)


def _with_nulls(schema: JsonValue) -> JsonValue:
    """The schema with null allowed wherever a value stands inside another."""
    if not isinstance(schema, dict):
        return schema
    nullable = dict(schema)
    for word in ("properties", "patternProperties"):
        if isinstance(nullable.get(word), dict):
            nullable[word] = {name: _or_null(child) for name, child in nullable[word].items()}
    for word in ("items", "additionalProperties"):
        if isinstance(nullable.get(word), dict):
            nullable[word] = _or_null(nullable[word])
    return nullable


def _or_null(schema: JsonValue) -> JsonValue:
    return {"anyOf": [{"type": "null"}, _with_nulls(schema)]}


def resolve_result(value: Any) -> Any:
    """Return the result of a call; a coroutine is run, as long as it waits for nothing outside.

    Raises:
        RuntimeError: It waits for something that only an event loop gives.
    """
    if not isinstance(value, Coroutine):
        return value
    try:
        while value.send(None) is None:
            pass
    except StopIteration as end:
        return end.value
    value.close()
    raise RuntimeError("the tool waits for something outside; there is no event loop here")


def is_refusal_content(content: object) -> bool:
    """Return whether an object refuses the call: `"success": false`, or a text under `"error"`."""
    if not isinstance(content, dict):
        return False
    error = content.get("error")
    return content.get("success") is False or (isinstance(error, str) and bool(error))

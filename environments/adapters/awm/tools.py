"""From an application's own description to tools, as the reference's MCP wrapper makes them of its operations."""

import re
from dataclasses import dataclass

from trajsmith.environments.adapters.openapi.document_references import OpenApiDocument
from trajsmith.environments.adapters.openapi.operations import Operation, OperationReader
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.adapters.openapi.schema_presentation import build_result_schema, present_schema
from trajsmith.environments.adapters.openapi.tool_inputs import BODY, ToolInputs, build_tool_inputs
from trajsmith.records import InputError, JsonObject, JsonValue, ToolAnnotations, ToolSpec

_USABLE = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class ToolRoute:
    """One operation as a tool."""

    spec: ToolSpec
    operation: Operation
    inputs: ToolInputs
    wrapped: bool
    """True if its answer is no object, and is put into {"result": ...}."""

    def find_path_fault(self, arguments: JsonObject) -> str | None:
        """Return why the arguments make no path, or None."""
        for parameter in self.inputs.parameters:
            value = arguments.get(parameter.name)
            if parameter.place == "path" and isinstance(value, str) and (not value or "/" in value):
                return f"{parameter.name}: {value!r} cannot stand in a path"
        return None

    def request(self, arguments: JsonObject) -> tuple[str, list[tuple[str, JsonValue]], JsonValue]:
        """Path (not escaped), query and body of a call."""
        path = self.operation.path
        query: list[tuple[str, JsonValue]] = []
        for parameter in self.inputs.parameters:
            value = arguments.get(parameter.name)
            if parameter.place == "path":
                path = path.replace(f"{{{parameter.name}}}", _format_parameter(value))
            elif value is not None:
                query += [(parameter.name, one) for one in (value if isinstance(value, list) else [value])]
        if self.operation.body is None:
            return path, query, None
        return path, query, arguments.get(BODY) if self.inputs.whole else self.inputs.body(arguments)


class AwmTools:
    """All tools of an application."""

    def __init__(self, document: JsonObject, name: str, file: str) -> None:
        """Read the application's description.

        Raises:
            InputError: It has no operation that can be a tool.
        """
        parsed = OpenApiDocument(document, file)
        self.requests, self.responses = Dialect(parsed, "request"), Dialect(parsed, "response")
        reader = OperationReader(parsed, self.requests, self.responses)
        self.routes: dict[str, ToolRoute] = {}
        self.notes: list[str] = []
        for operation in reader.operations():
            route = self._route(operation, name)
            self.routes[route.spec.name] = route
        self.notes += [f"{label}: left out: {reason}" for label, reason in reader.left_out.items()]
        if not self.routes:
            raise InputError(f"{file}: the application has no operations: {'; '.join(self.notes[:3]) or 'no routes'}")

    def _route(self, operation: Operation, server: str) -> ToolRoute:
        name = operation.identifier if _USABLE.fullmatch(operation.identifier) else operation.tool
        if name in self.routes:
            name = operation.tool
            self.notes.append(f"{operation.label}: operation id {operation.identifier!r} is taken; it is called {name}")
        inputs = build_tool_inputs(operation, list(operation.parameters), self.requests, "", "")
        output, wrapped = None, False
        if operation.answer.schema is not None:
            output, wrapped = build_result_schema(operation.answer.schema, self.responses)
        spec = ToolSpec(
            server=server,
            name=name,
            description=operation.description,
            input_schema=present_schema(inputs.schema, self.requests),
            output_schema=output,
            actor=operation.find_actor(),
            annotations=ToolAnnotations(
                read_only_hint=operation.method == "get",
                destructive_hint=None if operation.method == "get" else operation.method == "delete",
            ),
        )
        return ToolRoute(spec, operation, inputs, wrapped)


def _format_parameter(value: JsonValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)

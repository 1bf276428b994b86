"""The arguments of a tool: path, query and body in one object, and the way back to the body."""

from dataclasses import dataclass, field

from trajsmith.environments.adapters.openapi.operations import Operation, OperationParameter
from trajsmith.environments.adapters.openapi.payloads import find_record
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.records import JsonObject

BODY = "body"
"""Name of the argument that is the whole body, where the body is no plain object."""


@dataclass
class ToolInputs:
    """Layout of a tool's arguments: path, query and body parameters."""

    parameters: list[OperationParameter]
    schema: JsonObject
    """Schema of the arguments; its references lead to the definitions of requests."""
    fields: dict[str, str] = field(default_factory=dict)
    """Properties of the body by the arguments' names."""
    whole: bool = False
    """True if one argument is the whole body."""
    record_path: tuple[str, ...] = ()
    """Where in the body the record is."""
    record_schema: JsonObject | None = None
    """Schema of the record in the body; None if the body has none."""
    open_ended: bool = False
    """True if the body takes properties that it does not name."""

    def body(self, arguments: JsonObject) -> JsonObject | None:
        """Return the body that the arguments stand for; None if they give none."""
        if self.whole:
            whole_body = arguments.get(BODY)
            return whole_body if isinstance(whole_body, dict) else None
        named = {parameter.name for parameter in self.parameters}
        content = {self.fields[name]: value for name, value in arguments.items() if name in self.fields}
        if self.open_ended:
            content.update({name: v for name, v in arguments.items() if name not in self.fields and name not in named})
        return content

    def record(self, arguments: JsonObject) -> JsonObject:
        """Return the record in the body."""
        value = self.body(arguments) or {}
        for name in self.record_path:
            inner = value.get(name)
            value = inner if isinstance(inner, dict) else {}
        return value


def build_tool_inputs(
    operation: Operation, parameters: list[OperationParameter], dialect: Dialect, noun: str, identity: str
) -> ToolInputs:
    """Merge parameters and body into one schema.

    Args:
        parameters: Those that the tool keeps.
        identity: The property that the last path parameter means, in a body, too.
    """
    properties: JsonObject = {}
    required: list[str] = []
    for parameter in parameters:
        schema = parameter.schema
        if parameter.description and "description" not in schema:
            schema = {**schema, "description": parameter.description}
        properties[parameter.name] = schema
        if parameter.required:
            required.append(parameter.name)
    inputs = ToolInputs(parameters, {"type": "object", "properties": properties, "required": required})
    if operation.body is not None:
        _add_body(inputs, operation, dialect, noun, identity)
    inputs.schema["additionalProperties"] = inputs.open_ended
    if not inputs.schema["required"]:
        del inputs.schema["required"]
    return inputs


def _add_body(inputs: ToolInputs, operation: Operation, dialect: Dialect, noun: str, identity: str) -> None:
    body = dialect.look(operation.body or {})
    payload = find_record(dialect, operation.body, noun)
    if payload is not None:
        inputs.record_path, inputs.record_schema = payload.path, payload.schema
    properties: JsonObject = inputs.schema["properties"]
    fields = dialect.properties(body)
    more = body.get("additionalProperties")
    if not fields or "oneOf" in body or "anyOf" in body or isinstance(more, dict):
        inputs.whole = True
        properties[BODY] = operation.body
        if operation.body_required:
            inputs.schema["required"].append(BODY)
        return
    inputs.open_ended = more is True
    needed = dialect.required(body)
    in_path = {parameter.name for parameter in inputs.parameters if parameter.place == "path"}
    last = operation.path.rstrip("/").rpartition("/")[2].strip("{}")
    for name, schema in fields.items():
        if name == identity and last in in_path and operation.method != "post":
            continue  # said by the path
        argument = name
        while argument in properties:
            argument = f"{BODY}_{argument}"
        properties[argument] = schema
        inputs.fields[argument] = name
        if name in needed:
            inputs.schema["required"].append(argument)

"""The arguments of a tool: path, query and body in one object, and the way back to the body."""

from dataclasses import dataclass, field

from environments.openapi.dialect import Dialect
from environments.openapi.operations import Operation, Parameter
from environments.openapi.payloads import find_record
from trajectory import JsonObject

BODY = "body"
"""Name of the argument that is the whole body, where the body is no plain object."""


@dataclass
class Inputs:
    """How the arguments of one tool are put together."""

    parameters: list[Parameter]
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
        """The body that the arguments stand for; None if they give none."""
        if self.whole:
            given = arguments.get(BODY)
            return given if isinstance(given, dict) else None
        named = {parameter.name for parameter in self.parameters}
        made = {self.fields[name]: value for name, value in arguments.items() if name in self.fields}
        if self.open_ended:
            made.update({name: v for name, v in arguments.items() if name not in self.fields and name not in named})
        return made

    def record(self, arguments: JsonObject) -> JsonObject:
        """The record in the body."""
        value = self.body(arguments) or {}
        for name in self.record_path:
            inner = value.get(name)
            value = inner if isinstance(inner, dict) else {}
        return value


def inputs_of(operation: Operation, parameters: list[Parameter], dialect: Dialect, noun: str, identity: str) -> Inputs:
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
    made = Inputs(parameters, {"type": "object", "properties": properties, "required": required})
    if operation.body is not None:
        _add_body(made, operation, dialect, noun, identity)
    made.schema["additionalProperties"] = made.open_ended
    if not made.schema["required"]:
        del made.schema["required"]
    return made


def _add_body(made: Inputs, operation: Operation, dialect: Dialect, noun: str, identity: str) -> None:
    body = dialect.look(operation.body or {})
    payload = find_record(dialect, operation.body, noun)
    if payload is not None:
        made.record_path, made.record_schema = payload.path, payload.schema
    properties: JsonObject = made.schema["properties"]
    fields = dialect.properties(body)
    more = body.get("additionalProperties")
    if not fields or "oneOf" in body or "anyOf" in body or isinstance(more, dict):
        made.whole = True
        properties[BODY] = operation.body
        if operation.body_required:
            made.schema["required"].append(BODY)
        return
    made.open_ended = more is True
    needed = dialect.required(body)
    in_path = {parameter.name for parameter in made.parameters if parameter.place == "path"}
    last = operation.path.rstrip("/").rpartition("/")[2].strip("{}")
    for name, schema in fields.items():
        if name == identity and last in in_path and operation.method != "post":
            continue  # said by the path
        argument = name
        while argument in properties:
            argument = f"{BODY}_{argument}"
        properties[argument] = schema
        made.fields[argument] = name
        if name in needed:
            made.schema["required"].append(argument)

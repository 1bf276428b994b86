"""JSON Schemas of tools: checked once when they arrive, and compiled to check arguments at every call."""

from collections.abc import Iterator

from jsonschema import Draft202012Validator, SchemaError
from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from trajsmith.environments.schema_patterns import compile_schema
from trajsmith.environments.schemas import tidy_schema
from trajsmith.records import EnvironmentSpec, InputError, JsonObject, JsonValue


def validate_schema(schema: JsonObject, where: str) -> JsonObject:
    """The schema as models should see it: valid, self-contained, without titles.

    Args:
        where: What has the schema, for the error's text.

    Raises:
        InputError: It is no valid JSON Schema, or a `$ref` leads nowhere.
    """
    where = f"{where} is no valid JSON Schema"
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        raise InputError(f"{where}: {error.json_path}: {' '.join(error.message.split())[:200]}") from error
    for reference in _references(schema):
        if not _resolves(reference, schema):
            raise InputError(f"{where}: $ref {reference!r} leads nowhere")
    return tidy_schema(schema)


def _references(value: JsonValue) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for child in value.values():
            yield from _references(child)
    elif isinstance(value, list):
        for child in value:
            yield from _references(child)


def _resolves(reference: str, schema: JsonObject) -> bool:
    resource: Resource[JsonValue] = Resource.from_contents(schema, default_specification=DRAFT202012)
    registry: Registry[JsonValue] = Registry().with_resource("", resource)
    try:
        registry.resolver().lookup(reference)
    except Unresolvable:
        return False
    return True


class ArgumentValidator:
    """Compiled validators of all input schemas."""

    def __init__(self, spec: EnvironmentSpec) -> None:
        self._validators = {tool.name: compile_schema(tool.input_schema) for tool in spec.tools}

    def has_tool(self, tool: str) -> bool:
        return tool in self._validators

    def fault(self, tool: str, arguments: JsonObject) -> str | None:
        """Return the fault of the arguments as `path: message`, or None."""
        error = best_match(self._validators[tool].iter_errors(arguments))
        if error is None:
            return None
        where = ".".join(str(part) for part in error.absolute_path)
        message = " ".join(error.message.split())
        return f"{where}: {message}" if where else message

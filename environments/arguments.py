"""JSON Schemas of tools: checked once when they arrive, and compiled to check arguments at every call."""

from collections.abc import Iterator

from trajsmith.environments.schema_patterns import SchemaValidator, compile_schema, find_schema_fault
from trajsmith.environments.schemas import tidy_schema
from trajsmith.records import (
    DEEPEST_JSON,
    EnvironmentSpec,
    InputError,
    JsonObject,
    JsonValue,
    is_too_deep,
    to_one_line,
)

LONGEST_FAULT = 500
"""Characters of what is wrong with a value, which is repeated in it."""
_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
"""Keywords whose schemas look at the same value as the schema that they stand in."""


def validate_schema(schema: JsonObject, where: str) -> JsonObject:
    """The schema as models should see it: valid, self-contained, without titles.

    Args:
        where: What has the schema, for the error's text.

    Raises:
        InputError: It is no valid JSON Schema, or a `$ref` leads nowhere.
    """
    where = f"{where} is no valid JSON Schema"
    if is_too_deep(schema):
        raise InputError(f"{where}: nested deeper than {DEEPEST_JSON} levels")
    fault = find_schema_fault(schema)
    if fault is not None:
        raise InputError(f"{where}: {fault.json_path}: {' '.join(fault.message.split())[:200]}")
    for reference in _references(schema):
        if not _resolves(reference, schema):
            raise InputError(f"{where}: $ref {reference!r} leads nowhere")
    circle = _find_circle(schema)
    if circle:
        raise InputError(f"{where}: $ref {circle!r} leads back to itself, so that nothing can be checked by it")
    return tidy_schema(schema)


def _find_circle(schema: JsonObject) -> str | None:
    """Return a `$ref` that comes back to itself without going into the value: validation would never end."""
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012

    resource: Resource[JsonValue] = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = Registry().with_resource("", resource).resolver()
    done: set[str] = set()

    def follow(reference: str, above: tuple[str, ...]) -> str | None:
        if reference in above:
            return reference
        if reference in done:
            return None
        for inner in _references_in_place(resolver.lookup(reference).contents):
            circle = follow(inner, (*above, reference))
            if circle:
                return circle
        done.add(reference)
        return None

    return next((circle for one in set(_references(schema)) if (circle := follow(one, ()))), None)


def _references_in_place(schema: JsonValue) -> Iterator[str]:
    """Yield the references that are applied to the same value as a schema."""
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("$ref"), str):
        yield schema["$ref"]
    for key in _IN_PLACE:
        inner = schema.get(key)
        parts = inner if isinstance(inner, list) else inner.values() if key == "dependentSchemas" and inner else [inner]
        for part in parts:
            yield from _references_in_place(part)


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
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    resource: Resource[JsonValue] = Resource.from_contents(schema, default_specification=DRAFT202012)
    registry: Registry[JsonValue] = Registry().with_resource("", resource)
    try:
        registry.resolver().lookup(reference)
    except (Unresolvable, ValueError, TypeError):  # the latter for a way into a list by a name, or into a number
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
        return find_fault(self._validators[tool], arguments)


def find_fault(validator: SchemaValidator, value: JsonValue) -> str | None:
    """Return the fault of a value as `path: message`, or None.

    Args:
        validator: Of `compile_schema`, so that no pattern runs without end.
    """
    from jsonschema.exceptions import best_match

    error = best_match(validator.iter_errors(value))
    if error is None:
        return None
    where = ".".join(str(part) for part in error.absolute_path)
    message = to_one_line(error.message, LONGEST_FAULT)
    return f"{where}: {message}" if where else message

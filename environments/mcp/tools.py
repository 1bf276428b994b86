"""From a server's own description of its tools to the environment's spec."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from jsonschema import Draft202012Validator, SchemaError
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from environments.mcp.settings import McpSettings
from environments.schemas import tidy
from trajectory import (
    EnvironmentSpec,
    InputError,
    JsonObject,
    JsonValue,
    ToolAnnotations,
    ToolSpec,
    content_hash,
)

if TYPE_CHECKING:
    from mcp_types import Tool

    from environments.mcp.connection import Hello


def describe(settings: McpSettings, hello: "Hello") -> EnvironmentSpec:
    """The environment as the other stages see it.

    Raises:
        InputError: A schema is unusable, or the settings name a tool or parameter that the server does not have.
    """
    offered = {tool.name for tool in hello.tools}
    _must_exist(settings, "read_only", settings.read_only, offered)
    _must_exist(settings, "tools.include", settings.tools.include or [], offered)
    _must_exist(settings, "tools.exclude", settings.tools.exclude, offered)
    _must_exist(settings, "observe", [call.tool for call in settings.observe], offered)
    for name, state in settings.states.items():
        _must_exist(settings, f"states.{name}.calls", [call.tool for call in state.calls], offered)
    wanted = offered if settings.tools.include is None else set(settings.tools.include)
    names = wanted - set(settings.tools.exclude)
    tools = tuple(_tool_spec(settings, tool) for tool in hello.tools if tool.name in names)
    _examples_must_fit(settings, tools)
    kind = f"stdio:{settings.command[0].rsplit('/', 1)[-1]}" if settings.command else "http"
    return EnvironmentSpec(
        name=settings.name,
        version=_version(settings, hello, tools),
        description=settings.description,
        domain=settings.domain,
        policy=settings.policy,
        tools=tools,
        state_schema=_state_schema(settings),
        source=f"mcp:{kind} ({hello.name} {hello.version})",
        can_restore=False,
    )


def _must_exist(settings: McpSettings, key: str, names: Iterable[str], offered: set[str]) -> None:
    unknown = sorted(set(names) - offered)
    if unknown:
        raise InputError(
            f"MCP server {settings.name}: {key} names {unknown[0]!r}, which the server does not have; "
            f"it has {', '.join(sorted(offered)) or 'no tools'}"
        )


def _tool_spec(settings: McpSettings, tool: "Tool") -> ToolSpec:
    schema = _checked(settings, tool.name, "inputSchema", tool.input_schema)
    schema = _with_examples(schema, tool.name, settings.parameter_examples)
    annotations = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
    if tool.name in settings.read_only:
        annotations = {"title": annotations.get("title"), "readOnlyHint": True}
    return ToolSpec(
        server=settings.name,
        name=tool.name,
        description=tool.description or "",
        input_schema=schema,
        output_schema=tool.output_schema and _checked(settings, tool.name, "outputSchema", tool.output_schema),
        annotations=ToolAnnotations.model_validate(annotations),
    )


def _with_examples(schema: JsonValue, tool: str, examples: Mapping[str, list[JsonValue]]) -> JsonValue:
    """Examples put at every property that they are meant for, however deep; those of an array's items at the items."""
    if isinstance(schema, list):
        return [_with_examples(child, tool, examples) for child in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: _with_examples(child, tool, examples) for key, child in schema.items()}
    properties = changed.get("properties")
    found: JsonObject = properties if isinstance(properties, dict) else {}
    for name, own in found.items():
        values = examples.get(f"{tool}.{name}", examples.get(name))
        if not values or not isinstance(own, dict):
            continue
        items = own.get("items")
        if isinstance(items, dict) and not isinstance(values[0], list):
            found[name] = {**own, "items": {**items, "examples": values}}
        else:
            found[name] = {**own, "examples": values}
    return changed


def _property_names(schema: JsonValue) -> Iterator[str]:
    if isinstance(schema, dict):
        properties = schema.get("properties")
        yield from properties if isinstance(properties, dict) else ()
        for child in schema.values():
            yield from _property_names(child)
    elif isinstance(schema, list):
        for child in schema:
            yield from _property_names(child)


def _checked(settings: McpSettings, tool: str, key: str, schema: JsonObject) -> JsonObject:
    """The schema as models should see it: valid, self-contained, without titles."""
    where = f"MCP server {settings.name}: tool {tool}: {key} is no valid JSON Schema"
    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        raise InputError(f"{where}: {error.json_path}: {' '.join(error.message.split())[:200]}") from error
    for reference in _references(schema):
        if not _resolves(reference, schema):
            raise InputError(f"{where}: $ref {reference!r} leads nowhere")
    return tidy(schema)


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


def _examples_must_fit(settings: McpSettings, tools: Iterable[ToolSpec]) -> None:
    known = {
        key for tool in tools for name in _property_names(tool.input_schema) for key in (name, f"{tool.name}.{name}")
    }
    unknown = sorted(settings.parameter_examples.keys() - known)
    if unknown:
        raise InputError(f"MCP server {settings.name}: parameter_examples names {unknown[0]!r}, which no tool has")


def _version(settings: McpSettings, hello: "Hello", tools: tuple[ToolSpec, ...]) -> str:
    """Hash of all that makes a call come out differently; no resolved path and no secret is in it."""
    mattering = settings.model_dump(mode="json", include={"description", "domain", "policy", "workspace", "observe"})
    arguments = (settings.command or [])[1:]
    shapes = [tool.model_dump(mode="json") for tool in tools]
    return content_hash([hello.name, hello.version, arguments, mattering, shapes], 16)


def _state_schema(settings: McpSettings) -> JsonObject:
    """JSON Schema of what can be observed."""
    observed: JsonObject = {call.label: {} for call in settings.observe}
    return {
        "type": "object",
        "properties": {
            "files": {"type": "object", "additionalProperties": {"type": "string"}},
            "observed": {"type": "object", "properties": observed},
        },
        "required": ["files", "observed"],
    }


class ArgumentChecks:
    """Compiled validators of all input schemas."""

    def __init__(self, spec: EnvironmentSpec) -> None:
        self._validators: dict[str, Validator] = {
            tool.name: validator_for(tool.input_schema, default=Draft202012Validator)(
                tool.input_schema, registry=Registry()
            )
            for tool in spec.tools
        }

    def knows(self, tool: str) -> bool:
        return tool in self._validators

    def fault(self, tool: str, arguments: JsonObject) -> str | None:
        """What is wrong with the arguments, as `path: message`, or None."""
        error = best_match(self._validators[tool].iter_errors(arguments))
        if error is None:
            return None
        where = ".".join(str(part) for part in error.absolute_path)
        message = " ".join(error.message.split())
        return f"{where}: {message}" if where else message

"""From a server's own description of its tools to the environment's spec."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pydantic import ValidationError

from trajsmith.environments.adapters.mcp.settings import McpSettings
from trajsmith.environments.arguments import validate_schema
from trajsmith.environments.check_time import count_check_time, limit_check_time
from trajsmith.environments.tool_actors import check_user_tools, find_tool_actor
from trajsmith.records import (
    EnvironmentSpec,
    InputError,
    JsonObject,
    JsonValue,
    ToolAnnotations,
    ToolSpec,
    content_hash,
    format_first_error,
)

if TYPE_CHECKING:
    from mcp_types import Tool

    from trajsmith.environments.adapters.mcp.connection import ServerInfo


def describe(settings: McpSettings, hello: "ServerInfo") -> EnvironmentSpec:
    """The environment as the other stages see it.

    Raises:
        InputError: A schema is unusable, or the settings name a tool or parameter that the server does not have.
    """
    offered = {tool.name for tool in hello.tools}
    _must_exist(settings, "read_only", settings.read_only, offered)
    _must_exist(settings, "tools.include", settings.tools.include or [], offered)
    _must_exist(settings, "tools.exclude", settings.tools.exclude, offered)
    _must_exist(settings, "observe", [call.tool for call in settings.observe], offered)
    _must_exist(settings, "outputs", settings.outputs, offered)
    for name, state in settings.states.items():
        _must_exist(settings, f"states.{name}.calls", [call.tool for call in state.calls], offered)
    _can_save(settings, hello.tools)
    wanted = offered if settings.tools.include is None else set(settings.tools.include)
    own = {settings.snapshot.save, settings.snapshot.load} if settings.snapshot else set()
    names = wanted - set(settings.tools.exclude) - own
    with limit_check_time(f"MCP server {settings.name}"), count_check_time():
        tools = tuple(_tool_spec(settings, tool) for tool in hello.tools if tool.name in names)
        state_schema = _state_schema(settings, hello.tools)
    actors = {tool.name: tool.actor for tool in tools}
    check_user_tools(f"MCP server {settings.name}", settings.tools.user, actors)
    _examples_must_fit(settings, tools)
    kind = f"stdio:{settings.command[0].rsplit('/', 1)[-1]}" if settings.command else "http"
    try:
        return EnvironmentSpec(
            name=settings.name,
            version=_version(settings, hello, tools),
            description=settings.description,
            domain=settings.domain,
            policy=settings.policy,
            tools=tools,
            state_schema=state_schema,
            source=f"mcp:{kind} ({hello.name} {hello.version})",
            can_restore=settings.snapshot is not None,
        )
    except ValidationError as error:
        raise InputError(f"MCP server {settings.name}: {format_first_error(error)}") from error


def _must_exist(settings: McpSettings, key: str, names: Iterable[str], offered: set[str]) -> None:
    unknown = sorted(set(names) - offered)
    if unknown:
        raise InputError(
            f"MCP server {settings.name}: {key} names {unknown[0]!r}, which the server does not have; "
            f"it has {', '.join(sorted(offered)) or 'no tools'}"
        )


def _can_save(settings: McpSettings, tools: Iterable["Tool"]) -> None:
    """The tools that save and load the state must be there, and callable with nothing more than we have."""
    if settings.snapshot is None:
        return
    schemas = {tool.name: tool.input_schema for tool in tools}
    for key, name, passed in [
        ("snapshot.save", settings.snapshot.save, set[str]()),
        ("snapshot.load", settings.snapshot.load, {settings.snapshot.argument}),
    ]:
        _must_exist(settings, key, [name], set(schemas))
        missing = sorted(set(schemas[name].get("required") or ()) - passed)
        unknown = sorted(passed - set(schemas[name].get("properties") or ()))
        if missing or unknown:
            problem = f"requires {missing[0]!r}" if missing else f"has no parameter {unknown[0]!r}"
            raise InputError(f"MCP server {settings.name}: {key}: the tool {name} {problem}")


def _tool_spec(settings: McpSettings, tool: "Tool") -> ToolSpec:
    schema = validate_schema(tool.input_schema, _where(settings, tool.name, "inputSchema"))
    schema = _with_examples(schema, tool.name, settings.parameter_examples)
    annotations = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
    if tool.name in settings.read_only:
        annotations = {"title": annotations.get("title"), "readOnlyHint": True}
    return ToolSpec(
        server=settings.name,
        name=tool.name,
        description=tool.description or "",
        input_schema=schema,
        output_schema=_output_schema(settings, tool),
        annotations=ToolAnnotations.model_validate(annotations),
        actor=find_tool_actor(tool.name, tool.description or "", {"_meta": tool.meta}, settings.tools.user),
    )


def _output_schema(settings: McpSettings, tool: "Tool") -> JsonObject | None:
    """Return what the settings say of the results, else what the server declares."""
    if tool.name in settings.outputs:
        where = f"MCP server {settings.name}: outputs.{tool.name}"
        return validate_schema(settings.outputs[tool.name], where)
    return tool.output_schema and validate_schema(tool.output_schema, _where(settings, tool.name, "outputSchema"))


def _where(settings: McpSettings, tool: str, key: str) -> str:
    return f"MCP server {settings.name}: tool {tool}: {key}"


def _with_examples(schema: JsonValue, tool: str, examples: Mapping[str, list[JsonValue]]) -> JsonValue:
    """Examples put at every property that they are meant for, however deep; those of an array's items at the items."""
    if isinstance(schema, list):
        return [_with_examples(child, tool, examples) for child in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: _with_examples(child, tool, examples) for key, child in schema.items()}
    properties = changed.get("properties")
    described: JsonObject = properties if isinstance(properties, dict) else {}
    for name, own in described.items():
        values = examples.get(f"{tool}.{name}", examples.get(name))
        if not values or not isinstance(own, dict):
            continue
        items = own.get("items")
        if isinstance(items, dict) and not isinstance(values[0], list):
            described[name] = {**own, "items": {**items, "examples": values}}
        else:
            described[name] = {**own, "examples": values}
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


def _examples_must_fit(settings: McpSettings, tools: Iterable[ToolSpec]) -> None:
    known = {
        key for tool in tools for name in _property_names(tool.input_schema) for key in (name, f"{tool.name}.{name}")
    }
    unknown = sorted(settings.parameter_examples.keys() - known)
    if unknown:
        raise InputError(f"MCP server {settings.name}: parameter_examples names {unknown[0]!r}, which no tool has")


def _version(settings: McpSettings, hello: "ServerInfo", tools: tuple[ToolSpec, ...]) -> str:
    """Hash of all that makes a call come out differently; no resolved path and no secret is in it."""
    mattering = settings.model_dump(mode="json", include={"description", "domain", "policy", "workspace", "observe"})
    if settings.refusals:
        mattering["refusals"] = settings.refusals
    if settings.literals:
        mattering["literals"] = True
    if settings.seeded:
        mattering["seeded"] = True
    arguments = (settings.command or [])[1:]
    if settings.snapshot is not None:
        mattering["snapshot"] = settings.snapshot.model_dump(mode="json", exclude={"reuse"})
    shapes = [tool.model_dump(mode="json") for tool in tools]
    return content_hash([hello.name, hello.version, arguments, mattering, shapes], 16)


def _state_schema(settings: McpSettings, tools: Iterable["Tool"]) -> JsonObject:
    """JSON Schema of what the server saves, as far as it says, or of what can be observed."""
    if settings.snapshot is not None:
        saved = next(tool.output_schema for tool in tools if tool.name == settings.snapshot.save)
        where = _where(settings, settings.snapshot.save, "outputSchema")
        return validate_schema(saved, where) if saved else {"type": "object"}
    observed: JsonObject = {call.label: {} for call in settings.observe}
    file: JsonObject = {"type": ["string", "object"] if settings.workspace.databases else "string"}
    return {
        "type": "object",
        "properties": {
            "files": {"type": "object", "additionalProperties": file},
            "observed": {"type": "object", "properties": observed},
        },
        "required": ["files", "observed"],
    }

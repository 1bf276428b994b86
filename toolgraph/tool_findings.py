"""Findings about malformed tools, reported once per tool; the build continues."""

from collections.abc import Iterable, Iterator
from typing import Any

import jsonschema_rs
import orjson

from trajsmith.grounding import resolve_pointer
from trajsmith.records import JsonObject, JsonValue, ToolSpec

_USUAL = "https://json-schema.org/draft/2020-12/schema"
_DIALECTS = {_USUAL, "https://json-schema.org/draft/2019-09/schema"} | {
    f"http://json-schema.org/draft-{number}/schema" for number in ("04", "06", "07")
}


def deduplicate_tools(tools: Iterable[ToolSpec]) -> tuple[list[ToolSpec], list[str]]:
    """Each full name once, and what is odd about the tools, a sentence each."""
    tools_by_name: dict[str, ToolSpec] = {}
    lowered: dict[str, str] = {}
    findings: dict[str, None] = {}
    for tool in tools:
        name = tool.full_name
        if name in tools_by_name:
            findings[f"tool {name} is there twice; the first one counts"] = None
            continue
        tools_by_name[name] = tool
        other = lowered.setdefault(name.lower(), name)
        if other != name:
            findings[f"tool {name} differs from {other} in upper and lower case only"] = None
        faults = dict.fromkeys(_faults(tool))
        if faults:
            findings[f"tool {name}: {'; '.join(faults)}"] = None
    return list(tools_by_name.values()), list(findings)


def _faults(tool: ToolSpec) -> Iterator[str]:
    """Yield the faults of a tool's schemas."""
    for side, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        if schema is None:
            continue
        if not _is_schema(schema):
            yield f"its {side} schema is no JSON Schema; it is read as far as it goes"
        if isinstance(schema, dict) and b'"$ref"' in orjson.dumps(schema, default=str):
            yield from (f"its {side} schema {fault}" for fault in _reference_faults(schema))
    if tool.input_schema.get("type", "object") != "object":
        yield "its input schema is not of type object"


def _is_schema(schema: JsonValue) -> bool:
    """Return whether a schema is valid by its dialect; one that names an unknown dialect is read as the usual one.

    The library would ask the network for what it does not know.
    """
    if isinstance(schema, dict) and str(schema.get("$schema", _USUAL)).rstrip("#") not in _DIALECTS:
        schema = {**schema, "$schema": _USUAL}
    return jsonschema_rs.meta.is_valid(schema)


def _reference_faults(root: JsonObject) -> Iterator[str]:
    """References that lead nowhere, and those that lead back to themselves."""
    leads = {place: resolve_pointer(root, place) if place.startswith("#") else None for place in _references(root)}
    lost = [place for place, target in leads.items() if target is None]
    if lost:
        more = f" and to {len(lost) - 1} other places" if len(lost) > 1 else ""
        yield f"refers to {lost[0]}{more}, which is not in it; that part is left open"
    if any(_returns(place, place, leads) for place in leads):
        yield "refers to itself; each turn is read once"


def _references(schema: Any) -> dict[str, None]:
    """All values of `$ref` below a schema, each once, in order."""
    references: dict[str, None] = {}
    stack = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str):
                references[reference] = None
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return dict.fromkeys(sorted(references))


def _returns(start: str, place: str, leads: dict[str, Any]) -> bool:
    """Return True if following references from a place leads back to the start."""
    seen: set[str] = set()
    waiting = [place]
    while waiting:
        for following in _references(leads.get(waiting.pop())):
            if following == start:
                return True
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return False

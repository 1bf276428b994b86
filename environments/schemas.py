"""JSON Schemas as models should see them: no titles, no references that a chat template would drop."""

from collections.abc import Mapping

from trajsmith.records import JsonObject, JsonValue

_NAMED = ("properties", "$defs")
MOST_VALUES = 5_000
"""Values to which references may make a schema grow when they are written out."""
_DATA = ("default", "examples", "const", "enum")


def tidy_schema(schema: JsonObject) -> JsonObject:
    """Resolve local `$ref`s in place of `$defs` and remove generated titles.

    Schemas that are recursive, would grow beyond `MOST_VALUES`, or refer into a definition, keep their `$defs`.
    """
    definitions = schema.get("$defs", {})
    if not _references(schema) <= {None, *definitions}:
        return _tidied(schema)
    if any(_reaches(name, name, definitions, set()) for name in definitions):
        return _tidied(schema)
    if _count_inlined(schema, definitions, {}) > max(MOST_VALUES, _count_inlined(schema, {}, {})):
        return _tidied(schema)
    tidied: JsonObject = _inline({key: value for key, value in schema.items() if key != "$defs"}, definitions)
    return _tidied(tidied)


def wrap_schema(schema: JsonObject) -> JsonObject:
    """Return the schema of {"result": ...}, which MCP makes of a result that is no object; references still lead on."""
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    return {"type": "object", "properties": {"result": inner}, "required": ["result"], **definitions}


def _count_inlined(value: JsonValue, definitions: Mapping[str, JsonValue], known: dict[str, int]) -> int:
    """Count the values of a schema with its references written out; `known` has the counts of definitions."""
    if isinstance(value, list):
        return 1 + sum(_count_inlined(child, definitions, known) for child in value)
    if not isinstance(value, dict):
        return 1
    name = _get_definition(value)
    count = 1
    if name is not None and name in definitions:
        if name not in known:
            known[name] = _count_inlined(definitions[name], definitions, known)
        count += known[name]
    return count + sum(_count_inlined(child, definitions, known) for key, child in value.items() if key != "$defs")


def _tidied(schema: JsonObject) -> JsonObject:
    cleaned: JsonObject = _without_titles(schema)
    return cleaned


def _get_definition(value: JsonObject) -> str | None:
    """Return what follows `#/$defs/` in the reference of a schema: a definition's name, or a place in one."""
    reference = value.get("$ref")
    prefix = "#/$defs/"
    return reference.removeprefix(prefix) if isinstance(reference, str) and reference.startswith(prefix) else None


def _references(value: JsonValue) -> set[str | None]:
    if isinstance(value, dict):
        own = {_get_definition(value)}
        return own.union(*(_references(child) for child in value.values())) if value else own
    if isinstance(value, list):
        return set().union(*(_references(child) for child in value)) if value else set()
    return set()


def _reaches(start: str, goal: str, definitions: Mapping[str, JsonValue], seen: set[str]) -> bool:
    for name in _references(definitions.get(start)) - {None}:
        assert name is not None
        if name == goal:
            return True
        if name not in seen:
            seen.add(name)
            if _reaches(name, goal, definitions, seen):
                return True
    return False


def _inline(value: JsonValue, definitions: Mapping[str, JsonValue]) -> JsonValue:
    if isinstance(value, list):
        return [_inline(child, definitions) for child in value]
    if not isinstance(value, dict):
        return value
    name = _get_definition(value)
    if name is not None and name in definitions:
        target = _inline(definitions[name], definitions)
        if isinstance(target, bool):
            target = {} if target else {"not": {}}
        return {**target, **{key: child for key, child in value.items() if key != "$ref"}}
    return {key: _inline(child, definitions) for key, child in value.items()}


def _without_titles(value: JsonValue, properties: bool = False) -> JsonValue:
    """Drop `title` keywords, but never a property that is called "title", nor anything in data."""
    if isinstance(value, list):
        return [_without_titles(child) for child in value]
    if not isinstance(value, dict):
        return value
    return {
        key: child if key in _DATA and not properties else _without_titles(child, key in _NAMED and not properties)
        for key, child in value.items()
        if properties or key != "title" or not isinstance(child, str)
    }

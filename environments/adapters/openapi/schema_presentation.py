"""Inline definitions into tool schemas where that stays small; cut where a document has no end."""

from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.schemas import tidy_schema
from trajsmith.records import JsonObject, JsonValue

_INLINE = 2_000
"""Values of a schema up to which its definitions are put in place of references."""
_WHOLE = 5_000
"""Values up to which it is shown with all its definitions."""
_DEEP = 2
"""References inside references that are shown of anything larger."""


def build_result_schema(schema: JsonObject, dialect: Dialect) -> tuple[JsonObject, bool]:
    """Return an answer's schema in MCP's form, and True if a non-object is wrapped as {"result": ...}."""
    shown = present_schema(schema, dialect)
    definitions = shown.get("$defs", {})
    name = dialect.component(shown)
    if name is not None:
        shown = {**definitions[name], **{key: value for key, value in shown.items() if key != "$ref"}}
    if is_object(schema, dialect):
        return {**shown, "type": "object"}, False
    inner = {key: value for key, value in shown.items() if key != "$defs"}
    wrapped: JsonObject = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return ({**wrapped, "$defs": definitions} if definitions else wrapped), True


def is_object(schema: JsonObject, dialect: Dialect, depth: int = 0) -> bool:
    """Return True if only objects fit the schema, as far as its types say."""
    looked = dialect.look(schema)
    if "type" in looked or depth > _DEEP:
        return looked.get("type") == "object"
    for key in ("oneOf", "anyOf"):
        if looked.get(key):
            return all(is_object(branch, dialect, depth + 1) for branch in looked[key])
    if looked.get("allOf"):
        return any(is_object(branch, dialect, depth + 1) for branch in looked["allOf"])
    return "properties" in looked


def present_schema(schema: JsonObject, dialect: Dialect) -> JsonObject:
    """Return the schema for a tool. Large ones are cut: a cut schema allows more than the real one, never less."""
    sizes: dict[str, int] = {}
    if _measure_unfolded(schema, dialect, sizes, frozenset()) <= _INLINE:
        return tidy_schema(dialect.self_contained(schema))
    whole = dialect.self_contained(schema)
    if _measure_size(whole) <= _WHOLE:
        return whole
    cut: JsonObject = _cut_schema(schema, dialect, _DEEP)
    return cut


def _measure_size(value: JsonValue) -> int:
    if isinstance(value, dict):
        return 1 + sum(_measure_size(child) for child in value.values())
    return 1 + sum(_measure_size(child) for child in value) if isinstance(value, list) else 1


def _measure_unfolded(value: JsonValue, dialect: Dialect, sizes: dict[str, int], above: frozenset[str]) -> int:
    """Size with all definitions put in; a circle counts as more than any limit."""
    if isinstance(value, list):
        return 1 + sum(_measure_unfolded(child, dialect, sizes, above) for child in value)
    if not isinstance(value, dict):
        return 1
    name = dialect.component(value)
    own = 1 + sum(_measure_unfolded(child, dialect, sizes, above) for key, child in value.items() if key != "$ref")
    if name is None:
        return own
    if name in above:
        return _INLINE + 1
    if name not in sizes:
        sizes[name] = min(_INLINE + 1, _measure_unfolded(dialect.definitions[name], dialect, sizes, above | {name}))
    return own + sizes[name]


def _cut_schema(value: JsonValue, dialect: Dialect, depth: int) -> JsonValue:
    if isinstance(value, list):
        return [_cut_schema(child, dialect, depth) for child in value]
    if not isinstance(value, dict):
        return value
    name = dialect.component(value)
    rest = {key: _cut_schema(child, dialect, depth) for key, child in value.items() if key != "$ref"}
    if name is None:
        return rest
    target = dialect.look(value)
    if depth > 0:
        return {**_cut_schema(target, dialect, depth - 1), **rest}
    return {**{key: target[key] for key in ("type", "description", "enum") if key in target}, **rest}

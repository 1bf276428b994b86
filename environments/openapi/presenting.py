"""Schemas as tools show them: definitions put in where that stays small, cut off where a document has no end."""

from environments.openapi.dialect import Dialect
from environments.schemas import tidy
from trajectory import JsonObject, JsonValue

_INLINE = 2_000
"""Values of a schema up to which its definitions are put in place of references."""
_WHOLE = 5_000
"""Values up to which it is shown with all its definitions."""
_DEEP = 2
"""References inside references that are shown of anything larger."""


def result_schema(schema: JsonObject, dialect: Dialect) -> tuple[JsonObject, bool]:
    """An answer's schema as MCP wants it; and True if the answer goes into {"result": ...}, because it is no object."""
    shown = presented(schema, dialect)
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
    """True if only objects fit the schema, as far as its types say."""
    looked = dialect.look(schema)
    if "type" in looked or depth > _DEEP:
        return looked.get("type") == "object"
    for key in ("oneOf", "anyOf"):
        if looked.get(key):
            return all(is_object(branch, dialect, depth + 1) for branch in looked[key])
    if looked.get("allOf"):
        return any(is_object(branch, dialect, depth + 1) for branch in looked["allOf"])
    return "properties" in looked


def presented(schema: JsonObject, dialect: Dialect) -> JsonObject:
    """The schema for a tool. What is too large is cut: a cut schema allows more than the real one, never less."""
    sizes: dict[str, int] = {}
    if _unfolded(schema, dialect, sizes, frozenset()) <= _INLINE:
        return tidy(dialect.self_contained(schema))
    whole = dialect.self_contained(schema)
    if _size(whole) <= _WHOLE:
        return whole
    cut: JsonObject = _cut(schema, dialect, _DEEP)
    return cut


def _size(value: JsonValue) -> int:
    if isinstance(value, dict):
        return 1 + sum(_size(child) for child in value.values())
    return 1 + sum(_size(child) for child in value) if isinstance(value, list) else 1


def _unfolded(value: JsonValue, dialect: Dialect, sizes: dict[str, int], above: frozenset[str]) -> int:
    """Size with all definitions put in; a circle counts as more than any limit."""
    if isinstance(value, list):
        return 1 + sum(_unfolded(child, dialect, sizes, above) for child in value)
    if not isinstance(value, dict):
        return 1
    name = dialect.component(value)
    own = 1 + sum(_unfolded(child, dialect, sizes, above) for key, child in value.items() if key != "$ref")
    if name is None:
        return own
    if name in above:
        return _INLINE + 1
    if name not in sizes:
        sizes[name] = min(_INLINE + 1, _unfolded(dialect.definitions[name], dialect, sizes, above | {name}))
    return own + sizes[name]


def _cut(value: JsonValue, dialect: Dialect, depth: int) -> JsonValue:
    if isinstance(value, list):
        return [_cut(child, dialect, depth) for child in value]
    if not isinstance(value, dict):
        return value
    name = dialect.component(value)
    rest = {key: _cut(child, dialect, depth) for key, child in value.items() if key != "$ref"}
    if name is None:
        return rest
    target = dialect.look(value)
    if depth > 0:
        return {**_cut(target, dialect, depth - 1), **rest}
    return {**{key: target[key] for key in ("type", "description", "enum") if key in target}, **rest}

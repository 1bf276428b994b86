"""The leaves of schemas: what a tool gives, what it takes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trajsmith.grounding.names import get_tool_noun, split_name
from trajsmith.phrasing import singularize
from trajsmith.records import JsonObject, ToolSpec

MAX_DEPTH = 6


@dataclass(frozen=True, slots=True)
class SchemaField:
    """One leaf of a schema.

    Attributes:
        path: `$.orders[*].order_id` in results; `items[*].sku` in arguments.
        name: Last name on the path.
        context: Words of the entity that it belongs to: of the object or list around it, or of the tool.
        types: JSON types that it may have, without null; empty if the schema does not say.
        required: True if the call cannot be made without it.
        schema: The leaf's own schema.
    """

    path: str
    name: str
    context: tuple[str, ...]
    types: frozenset[str]
    required: bool
    schema: JsonObject

    @property
    def description(self) -> str:
        return str(self.schema.get("description") or "")

    @property
    def choices(self) -> list[Any]:
        """Values that the schema lists."""
        return list_choices(self.schema, self.types)

    @property
    def is_choice(self) -> bool:
        """True for enumerations, constants and booleans: everybody can see what may stand there."""
        return "enum" in self.schema or "const" in self.schema or self.types == frozenset({"boolean"})


def list_choices(schema: JsonObject, types: frozenset[str]) -> list[Any]:
    """Return the values that a schema lists, without null; of a boolean both; empty if it lists none."""
    if "const" in schema:
        return [schema["const"]]
    if isinstance(schema.get("enum"), list):
        return [choice for choice in schema["enum"] if choice is not None]
    return [True, False] if types == frozenset({"boolean"}) else []


def list_output_fields(tool: ToolSpec) -> list[SchemaField]:
    """Leaves of the structured result."""
    if not isinstance(tool.output_schema, dict):
        return []
    walk = _walk(tool.output_schema, "$", "", get_tool_noun(tool.name), True, tool.output_schema, 0)
    return [field for field in walk if field.name]


def list_input_fields(tool: ToolSpec) -> list[SchemaField]:
    """Leaves of the arguments; `required` only if all objects around the leaf are required too."""
    walk = _walk(tool.input_schema, "", "", get_tool_noun(tool.name), True, tool.input_schema, 0)
    return [field for field in walk if field.name]


def unwrap(schema: Any, root: JsonObject) -> JsonObject:
    """Follow local references, and take the one branch of `anyOf`/`oneOf`/`allOf` that is not null."""
    for _ in range(8):
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            target = resolve_pointer(root, reference)
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            schema = {**(target if isinstance(target, dict) else {}), **beside}
            continue
        branches = next((schema[key] for key in ("anyOf", "oneOf", "allOf") if schema.get(key)), None)
        if not isinstance(branches, list):
            return schema
        real = [branch for branch in branches if isinstance(branch, dict) and branch.get("type") != "null"]
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "allOf")}
        schema = {**real[0], **rest} if real else rest
    return schema if isinstance(schema, dict) else {}


def resolve_pointer(root: JsonObject, reference: str) -> Any:
    """Return the target of a local reference ("#/$defs/Order", "#/anyOf/0") in a schema, or None."""
    node: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        if isinstance(node, list):
            node = node[int(part)] if part.isdigit() and int(part) < len(node) else None
        else:
            node = node.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node


def get_types(schema: JsonObject) -> frozenset[str]:
    kind = schema.get("type")
    names = kind if isinstance(kind, list) else [kind]
    return frozenset(str(name) for name in names if name and name != "null")


def get_array_item(field: SchemaField, root: JsonObject) -> SchemaField | None:
    """The field of one item of a flat array parameter, or None if the parameter is no array."""
    if "array" not in field.types or not isinstance(field.schema.get("items"), dict):
        return None
    items = unwrap(field.schema["items"], root)
    merged = {**items, **({"examples": field.schema["examples"]} if "examples" in field.schema else {})}
    return SchemaField(field.path, singularize(field.name), field.context, get_types(items), field.required, merged)


def _walk(
    schema: Any,
    path: str,
    name: str,
    context: tuple[str, ...],
    required: bool,
    root: JsonObject,
    depth: int,
    inside: frozenset[int] = frozenset(),
) -> Iterator[SchemaField]:
    """Leaves below a schema. `inside` are the objects around it, so that a recursive schema is walked once."""
    schema = unwrap(schema, root)
    properties = schema.get("properties")
    if depth > MAX_DEPTH or id(properties) in inside:
        return
    if isinstance(properties, dict) and properties:
        inner = split_name(name) if name and name not in ("result", "results", "data") else context
        needed = schema["required"] if isinstance(schema.get("required"), list) else ()
        inside |= {id(properties)}
        for key, child in properties.items():
            below = f"{path}.{key}" if path else key
            yield from _walk(child, below, key, inner, required and key in needed, root, depth + 1, inside)
    elif (isinstance(schema.get("items"), dict) and _is_structured(schema["items"], root)) or (
        "array" in get_types(schema) and isinstance(schema.get("items"), dict) and path.startswith("$")
    ):
        yield from _walk(schema["items"], f"{path}[*]", name, context, required, root, depth + 1, inside)
    else:
        yield SchemaField(path, name, context, get_types(schema), required, schema)


def _is_structured(schema: Any, root: JsonObject) -> bool:
    return bool(unwrap(schema, root).get("properties"))

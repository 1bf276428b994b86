"""The structure of a state: tables, lists, objects and scalars, learned from schema and states."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trajsmith.grounding import is_identifier, list_choices, unwrap
from trajsmith.records import JsonObject

Kind = Literal["plain", "object", "table", "list", "map"]
Key = tuple[str, ...]
Row = dict[str, Any]
"""Fields of a row: dotted paths of plain values, and lists of plain values."""
Rows = dict[str, dict[Key, Row]]
"""Relation to key to row."""
ROOT = ""
"""The relation of what stands in the state itself: its clock, its single objects."""
MAX_DEPTH = 6
ALIKE = 0.6
"""Share of names that the entries of a dict have in common if it is a table rather than an object."""


@dataclass
class ShapeNode:
    """One place of a state.

    `table` is an object from keys to rows, `list` a list of rows, `map` an object from keys to plain values.
    """

    kind: Kind
    fields: dict[str, "ShapeNode"] = field(default_factory=dict)
    """Of an object."""
    item: "ShapeNode | None" = None
    """Of a table or list."""
    identity: str = ""
    """Field that names the rows of a list; empty if only their place does."""


def learn_shape(states: Sequence[JsonObject], schema: JsonObject) -> ShapeNode:
    """The shape that these states have in common."""
    return _object(list(states), schema, schema, 0)


def _learn(values: list[Any], schema: JsonObject, root: JsonObject, depth: int) -> ShapeNode:
    schema = unwrap(schema, root)
    objects = [value for value in values if isinstance(value, dict)]
    lists = [value for value in values if isinstance(value, list)]
    if depth > MAX_DEPTH:
        return ShapeNode("plain")
    if objects or (not lists and "properties" in schema):
        return _of_objects(objects, schema, root, depth)
    if lists:
        rows = [row for value in lists for row in value if isinstance(row, dict)]
        if rows:
            item = _object(rows, unwrap(schema.get("items") or {}, root), root, depth + 1)
            return ShapeNode("list", item=item, identity=_identity(lists, item))
    return ShapeNode("plain")


def _of_objects(objects: list[JsonObject], schema: JsonObject, root: JsonObject, depth: int) -> ShapeNode:
    if not _by_key(objects, schema):
        return _object(objects, schema, root, depth)
    below = schema.get("additionalProperties")
    inner = unwrap(below, root) if isinstance(below, dict) else {}
    entries = [entry for value in objects for entry in value.values()]
    if any(isinstance(entry, dict) for entry in entries) or "properties" in inner:
        return ShapeNode(
            "table", item=_object([entry for entry in entries if isinstance(entry, dict)], inner, root, depth)
        )
    if any(isinstance(entry, list) and any(isinstance(row, dict) for row in entry) for entry in entries):
        return ShapeNode("table", item=_learn(entries, inner, root, depth + 1))
    return ShapeNode("map")


def _object(values: list[JsonObject], schema: JsonObject, root: JsonObject, depth: int) -> ShapeNode:
    properties = schema.get("properties") or {}
    names = dict.fromkeys([*properties, *(name for value in values for name in value)])
    fields = {
        name: _learn([value[name] for value in values if name in value], properties.get(name, {}), root, depth + 1)
        for name in names
    }
    return ShapeNode("object", fields=fields)


def _by_key(objects: list[JsonObject], schema: JsonObject) -> bool:
    """Return True if the keys of these objects are data."""
    if schema.get("properties"):
        return False
    if isinstance(schema.get("additionalProperties"), dict):
        return True
    keys = [frozenset(value) for value in objects if value]
    if not keys:
        return True
    entries = [frozenset(entry) for value in objects for entry in value.values() if isinstance(entry, dict)]
    if len(entries) == sum(map(len, objects)):
        common = frozenset.intersection(*entries)
        alike = len(common) >= ALIKE * max(map(len, entries)) and bool(common)
        return alike and (len(entries) > 1 or any(character.isdigit() for character in next(iter(keys[0]))))
    names = frozenset.union(*keys)
    strange = sum(not name.isidentifier() or any(map(str.isdigit, name)) for name in names)
    return len(names) > 1.5 * max(map(len, keys)) or (len(names) >= 2 and strange >= ALIKE * len(names))


def _identity(lists: Sequence[Sequence[Any]], item: ShapeNode) -> str:
    for name, node in item.fields.items():
        if node.kind != "plain" or not is_identifier(name):
            continue
        columns = [[row.get(name) for row in rows if isinstance(row, dict)] for rows in lists]
        if all(
            len(set(map(repr, column))) == len(column) and all(isinstance(value, str | int) for value in column)
            for column in columns
        ):
            return name
    return ""


def extract_rows(name: str, value: Any, node: ShapeNode) -> Rows:
    """All rows of one top-level part of a state; what belongs to no table is left to the root row."""
    rows: Rows = {}
    if node.kind != "plain":
        own = _fields(value, node, name, (), rows, name)
        if own:
            rows.setdefault(ROOT, {})[(name,)] = own
    else:
        rows[ROOT] = {(name,): {name: value}}
    return rows


def _fields(value: Any, node: ShapeNode, relation: str, key: Key, rows: Rows, prefix: str) -> Row:
    """Fields of a value inside the row with this key; tables and lists in it become relations of their own."""
    if node.kind == "plain":
        return {prefix: value}
    if node.kind == "object":
        if not isinstance(value, dict):
            return {prefix: value}
        fields: Row = {}
        for name, content in value.items():
            child = node.fields.get(name, PLAIN)
            path = f"{prefix}.{name}" if prefix else name
            if child.kind == "plain":
                fields[path] = content
                continue
            fields.update(_fields(content, child, f"{relation}.{name}" if relation else name, key, rows, path))
        return fields
    table = rows.setdefault(relation, {})
    for name, entry in _entries(value, node):
        inner = (*key, name)
        item = node.item
        if item is None:
            table[inner] = {"value": entry}
        elif item.kind == "object":
            row: Row = {}
            table[inner] = row
            row.update(_fields(entry, item, relation, inner, rows, ""))
        else:
            table[inner] = {}
            _fields(entry, item, f"{relation}.entries", inner, rows, "")
    return {}


PLAIN = ShapeNode("plain")


def _entries(value: Any, node: ShapeNode) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        seen: dict[str, int] = {}
        for index, entry in enumerate(value):
            named = entry.get(node.identity) if node.identity and isinstance(entry, dict) else None
            key = str(index if named is None else named)
            seen[key] = seen.get(key, 0) + 1
            yield key if seen[key] == 1 else f"{key} (again)" * (seen[key] - 1), entry


def list_relations(node: ShapeNode, name: str = "") -> Iterator[tuple[str, ShapeNode]]:
    """All relations below a node, with the node that holds their rows."""
    if node.kind == "object":
        for field_name, child in node.fields.items():
            yield from list_relations(child, f"{name}.{field_name}" if name else field_name)
    elif node.kind in ("table", "list", "map"):
        yield name, node
        if node.item is not None and node.item.kind == "object":
            yield from list_relations(node.item, name)
        elif node.item is not None:
            yield from list_relations(node.item, f"{name}.entries")


def read_choices(schema: JsonObject) -> frozenset[str]:
    """Return the values that a schema lists, as text; empty if it lists none."""
    return frozenset(map(str, list_choices(schema, frozenset())))


def find_column_choices(schema: JsonObject, relation: str, column: str) -> frozenset[str]:
    """Return the choices that the state schema gives a column; empty if it takes anything."""
    node: JsonObject = schema
    for part in [*relation.split("."), "*", *column.split(".")]:
        node = unwrap(node, schema)
        if part == "*":
            inner = node.get("additionalProperties", node.get("items"))
        else:
            inner = (node.get("properties") or {}).get(part)
            if inner is None and isinstance(node.get("items", node.get("additionalProperties")), dict):
                node = unwrap(node.get("items", node.get("additionalProperties")), schema)
                inner = (node.get("properties") or {}).get(part)
        if not isinstance(inner, dict):
            return frozenset()
        node = inner
    return read_choices(unwrap(node, schema))

"""From the schemas of a document to plain JSON Schema (2020-12), one view for requests and one for responses.

A request does not show what is `readOnly`, a response not what is `writeOnly`. `allOf` of plain objects becomes one
object; a `discriminator` becomes a condition on the branches of its `oneOf`.
"""

import re
from collections.abc import Iterator
from typing import Any, Literal

from trajsmith.environments.adapters.openapi.document_references import OpenApiDocument, UnsupportedFeature
from trajsmith.environments.check_time import count_check_time
from trajsmith.records import JsonObject, JsonValue

View = Literal["request", "response"]

_HIDDEN = {"request": "readOnly", "response": "writeOnly"}
_PLAIN = (
    "enum", "const", "default", "description", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minProperties",
    "maxProperties", "contentEncoding", "contentMediaType", "minContains", "maxContains", "dependentRequired",
)  # fmt: skip
_LIMITS = tuple(key for key in _PLAIN if key.startswith(("min", "max", "exclusive", "multiple")))
_SCHEMAS = ("additionalProperties", "items", "not", "if", "then", "else", "contains", "propertyNames")
_MORE = ("unevaluatedProperties", "unevaluatedItems")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas")
_FLAT = {"type", "properties", "required", "description", "examples", "default", "minProperties", "maxProperties"}
_ANNOTATIONS = ("description", "default", "example", "examples")
_BOOLEANS = {"true": True, "false": False}
_PREFIX = "#/$defs/"
_BRANCHES = 4
"""Choices inside choices that are looked into."""
_CHAIN = 50
"""References to references that are followed."""


class Dialect:
    """Schemas of one document in one view."""

    def __init__(self, document: OpenApiDocument, view: View) -> None:
        self.definitions: dict[str, JsonObject] = {}
        """Schemas that references lead to, by their name in `$defs`."""
        self.dropped: list[str] = []
        """Keywords that could not be kept, in words."""
        self._document = document
        self._hidden = _HIDDEN[view]
        self._names: dict[str, str] = {}
        self._pointers: dict[str, str] = {}
        self._waiting: list[str] = []
        self._open: set[str] = set()
        self._broken: dict[str, str] = {}
        self._needs: dict[str, frozenset[str]] = {}

    # What others ask

    def convert(self, node: JsonValue) -> JsonObject:
        """Convert a schema of the document to JSON Schema; its references lead to `definitions`.

        Raises:
            LeftOut: It cannot be one, or something that it refers to cannot.
        """
        converted = self._convert(node)
        while self._waiting:
            self._define(self._waiting.pop())
        self.needed(converted)
        return converted

    def needed(self, schema: JsonObject) -> set[str]:
        """Return the names of all definitions that a schema leads to.

        Raises:
            LeftOut: One of them is broken.
        """
        names: set[str] = set()
        waiting = list(find_definition_names(schema))
        while waiting:
            name = waiting.pop()
            if name in self._broken:
                raise UnsupportedFeature(self._broken[name])
            if name not in names:
                names.add(name)
                waiting.extend(self._direct(name))
        return names

    def look(self, schema: JsonObject) -> JsonObject:
        """Return the schema that a chain of references leads to."""
        for _ in range(_CHAIN):
            name = self.component(schema)
            if name is None:
                return schema
            schema = self.definitions.get(name, {})
        return {}

    def component(self, schema: JsonObject) -> str | None:
        """Return the name of the definition that a schema is, if it is one."""
        reference = schema.get("$ref")
        return reference.removeprefix(_PREFIX) if isinstance(reference, str) else None

    def properties(self, schema: JsonObject) -> dict[str, JsonObject]:
        """Return properties of an object schema, those of its `allOf` included."""
        schema = self.look(schema)
        properties: dict[str, JsonObject] = {}
        for branch in schema.get("allOf", ()):
            properties.update(self.properties(branch))
        properties.update(schema.get("properties", {}))
        return properties

    def all_properties(self, schema: JsonObject, depth: int = 0) -> dict[str, JsonObject]:
        """Return properties of an object schema, those of all its branches included."""
        looked = self.look(schema)
        properties: dict[str, JsonObject] = {}
        for key in ("oneOf", "anyOf", "allOf") if depth < _BRANCHES else ():
            for branch in looked.get(key, ()):
                properties.update(self.all_properties(branch, depth + 1))
        properties.update(looked.get("properties", {}))
        return properties

    def required(self, schema: JsonObject) -> set[str]:
        """Return required properties of an object schema, those of its `allOf` included."""
        schema = self.look(schema)
        names = set(schema.get("required", ()))
        return names.union(*(self.required(branch) for branch in schema.get("allOf", ())))

    def self_contained(self, schema: JsonObject) -> JsonObject:
        """Return the schema with the definitions that it needs."""
        needed = sorted(self.needed(schema))
        return {**schema, "$defs": {name: self.definitions[name] for name in needed}} if needed else schema

    def _direct(self, name: str) -> frozenset[str]:
        if name not in self._needs:
            self._needs[name] = frozenset(find_definition_names(self.definitions[name]))
        return self._needs[name]

    # References

    def _reference(self, node: JsonObject) -> JsonObject:
        pointer: str = node["$ref"]
        name = self._name(pointer)
        self._waiting.append(pointer)
        siblings = {key: node[key] for key in (*_PLAIN, *_ANNOTATIONS) if key in node and key != "enum"}
        beside = self._object(
            siblings if self._document.modern else {key: siblings[key] for key in _ANNOTATIONS if key in siblings}
        )
        return {"$ref": _PREFIX + name, **beside}

    def _name(self, pointer: str) -> str:
        known = self._names.get(pointer)
        if known is not None:
            return known
        wished = name = re.sub(r"[^\w.-]+", "_", pointer.rsplit("/", 1)[-1]) or "schema"
        number = 1
        while name in self._pointers:
            number += 1
            name = f"{wished}_{number}"
        self._names[pointer] = name
        self._pointers[name] = pointer
        return name

    def _define(self, pointer: str) -> None:
        name = self._names[pointer]
        if name in self._broken or name in self.definitions or name in self._open:
            return
        self._open.add(name)
        try:
            self.definitions[name] = self._convert(self._document.target(pointer))
        except UnsupportedFeature as reason:
            self._broken[name] = f"{pointer.rsplit('/', 1)[-1]}: {reason}"
        finally:
            self._open.discard(name)

    def _resolve_now(self, schema: JsonObject) -> JsonObject | None:
        """The schema that references lead to, read now if it was not yet; None within a circle."""
        for _ in range(_CHAIN):
            name = self.component(schema)
            if name is None:
                return schema
            if name not in self.definitions:
                self._define(self._pointers[name])
            if name not in self.definitions:
                return None
            schema = self.definitions[name]
        return None

    # Schemas

    def _convert(self, node: JsonValue) -> JsonObject:
        if isinstance(node, bool):
            return {} if node else {"not": {}}
        if not isinstance(node, dict):
            raise UnsupportedFeature(f"a schema is an object, this is {type(node).__name__}")
        if "$dynamicRef" in node or "$recursiveRef" in node:
            raise UnsupportedFeature("$dynamicRef is not understood")
        if isinstance(node.get("$ref"), str):
            return self._reference(node)
        return self._nullable(node, self._object(node))

    def _object(self, node: JsonObject) -> JsonObject:
        converted: JsonObject = {}
        kind = node.get("type")
        if isinstance(kind, str | list):
            converted["type"] = kind
        for key in _PLAIN:
            if key in node:
                converted[key] = node[key]
        self._repair(node, converted)
        for key in (*_SCHEMAS, *_MORE):
            if key in node:
                value = _BOOLEANS.get(node[key], node[key]) if isinstance(node[key], str) else node[key]
                converted[key] = value if isinstance(value, bool) else self._convert(value)
        for key in _NAMED:
            if isinstance(node.get(key), dict):
                children = self._find_visible(node[key]) if key == "properties" else node[key].items()
                converted[key] = {name: self._convert(child) for name, child in children}
        for key in _LISTS:
            if isinstance(node.get(key), list):
                converted[key] = [self._convert(child) for child in node[key]]
        if isinstance(node.get("required"), list):
            hidden = self._hidden_names(node)
            names = [name for name in node["required"] if isinstance(name, str) and name not in hidden]
            if names:
                converted["required"] = list(dict.fromkeys(names))
        self._discriminate(node, converted)
        return self._merge_all_of(converted)

    def _repair(self, node: JsonObject, converted: JsonObject) -> None:
        for key in _LIMITS:
            value = converted.get(key, 0)
            if not isinstance(value, int | float) or (isinstance(value, bool) and not key.startswith("exclusive")):
                self.dropped.append(f"{key} {converted.pop(key)!r} is no number and not checked")
        if not isinstance(converted.get("enum", []), list):
            self.dropped.append(f"enum {converted.pop('enum')!r} is no list and not checked")
        for low, high in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if isinstance(converted.get(high), bool) and converted.pop(high) and low in converted:  # 3.0
                converted[high] = converted.pop(low)
        if "pattern" in converted:
            with count_check_time():
                try:
                    re.compile(converted["pattern"])
                except (re.error, TypeError, OverflowError, RecursionError) as error:
                    why = f"is not understood ({error}) and not checked"
                    self.dropped.append(f"pattern {converted.pop('pattern')!r} {why}")
        examples = [node["example"]] if "example" in node else node.get("examples")
        if isinstance(examples, list) and examples:
            converted["examples"] = examples

    def _nullable(self, node: JsonObject, converted: JsonObject) -> JsonObject:
        if node.get("nullable") is not True or self._document.modern:
            return converted
        if isinstance(converted.get("type"), str):
            converted["type"] = [converted["type"], "null"]
            if "enum" in converted and None not in converted["enum"]:
                converted["enum"] = [*converted["enum"], None]
            return converted
        if any(key in converted for key in ("allOf", "anyOf", "oneOf", "$ref", "enum")):
            annotations: JsonObject = {
                key: converted.pop(key) for key in ("description", "default", "examples") if key in converted
            }
            return {"anyOf": [converted, {"type": "null"}], **annotations}
        return converted

    def _find_visible(self, properties: JsonObject) -> Iterator[tuple[str, JsonValue]]:
        """Properties that this view shows."""
        for name, child in properties.items():
            if not self._is_hidden(child):
                yield name, child

    def _is_hidden(self, node: JsonValue) -> bool:
        for _ in range(20):
            if not isinstance(node, dict):
                return False
            if node.get(self._hidden) is True:
                return True
            if isinstance(node.get("$ref"), str):
                node = self._document.target(node["$ref"])
            elif isinstance(node.get("allOf"), list) and len(node["allOf"]) == 1:
                node = node["allOf"][0]
            else:
                return False
        return False

    def _hidden_names(self, node: JsonObject, depth: int = 0) -> set[str]:
        """Names of properties, here and in `allOf`, that this view does not show."""
        names: set[str] = set()
        if isinstance(node.get("$ref"), str) and depth < 20:
            target = self._document.target(node["$ref"])
            return self._hidden_names(target, depth + 1) if isinstance(target, dict) else names
        properties = node.get("properties")
        if isinstance(properties, dict):
            names = {name for name, child in properties.items() if self._is_hidden(child)}
        if depth < 20:
            for branch in node.get("allOf", ()):
                names |= self._hidden_names(branch, depth + 1) if isinstance(branch, dict) else set()
        return names

    def _discriminate(self, node: JsonObject, converted: JsonObject) -> None:
        """Say in the branches of `oneOf` and `anyOf` what the discriminator's property must hold."""
        discriminator = node.get("discriminator")
        if not isinstance(discriminator, dict) or not isinstance(discriminator.get("propertyName"), str):
            return
        name = discriminator["propertyName"]
        mapping = discriminator.get("mapping")
        for key in ("oneOf", "anyOf"):
            for number, branch in enumerate(converted.get(key, ())):
                component = self.component(branch)
                if component is None or self._resolve_now(branch) is None:
                    continue
                own = self.properties(branch).get(name)
                if own is None or {"enum", "const"} & (self._resolve_now(own) or {}).keys():
                    continue
                values = [value for value, target in (mapping or {}).items() if _leads_to(target, component)]
                converted[key][number] = {
                    "allOf": [branch, {"properties": {name: {"enum": values or [component]}}, "required": [name]}]
                }

    def _merge_all_of(self, converted: JsonObject) -> JsonObject:
        """`allOf` of plain objects as one object; anything else stays as it is."""
        branches: list[JsonObject] | None = converted.get("allOf")
        if not branches:
            return converted
        own = {key: value for key, value in converted.items() if key != "allOf"}
        if len(branches) == 1 and not own.keys() - {"description", "default", "examples"}:
            return {**branches[0], **own}
        known: list[JsonObject] = []
        for branch in [*branches, own]:
            settled = self._resolve_now(branch)
            if settled is None:
                return converted
            known.append(settled)
        if not all(_is_flat(branch) for branch in known):
            return converted
        merged: JsonObject = {"type": "object"}
        for branch in known:
            _join_schemas(merged, branch)
        for key in ("description", "default", "examples"):
            merged.pop(key, None)
            if key in own:
                merged[key] = own[key]
        return merged


def _is_flat(schema: JsonObject) -> bool:
    more = schema.keys() - _FLAT - {"additionalProperties"}
    return (
        not more and schema.get("type", "object") == "object" and schema.get("additionalProperties", True) in (True, {})
    )


def _join_schemas(merged: JsonObject, branch: JsonObject) -> None:
    for name, schema in branch.get("properties", {}).items():
        properties = merged.setdefault("properties", {})
        known = properties.get(name)
        properties[name] = schema if known in (None, schema, {}) else _intersect_schemas(known, schema)
    if branch.get("required"):
        merged["required"] = list(dict.fromkeys([*merged.get("required", ()), *branch["required"]]))
    for key in ("minProperties", "maxProperties"):
        if key in branch:
            merged[key] = branch[key]


def _intersect_schemas(known: JsonObject, schema: JsonObject) -> JsonObject:
    """Both schemas at once: one object where they do not speak of the same things."""
    shared = {key for key in known.keys() & schema.keys() if known[key] != schema[key]} - {"description", "examples"}
    if "$ref" in known or "$ref" in schema or shared:
        return {"allOf": [known, schema]}
    return {**known, **schema}


def _leads_to(target: Any, component: str) -> bool:
    return isinstance(target, str) and target.rsplit("/", 1)[-1] == component


def find_definition_names(value: JsonValue) -> Iterator[str]:
    """Return names of the definitions that a schema refers to."""
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(_PREFIX)
        for key, child in value.items():
            if key not in ("enum", "const", "default", "examples"):
                yield from find_definition_names(child)
    elif isinstance(value, list):
        for child in value:
            yield from find_definition_names(child)

"""From the schemas of a document to plain JSON Schema (2020-12), one view for requests and one for responses.

A request does not show what is `readOnly`, a response not what is `writeOnly`. `allOf` of plain objects becomes one
object; a `discriminator` becomes a condition on the branches of its `oneOf`.
"""

import re
from collections.abc import Iterator
from typing import Any, Literal

from environments.openapi.references import Document, LeftOut
from trajectory import JsonObject, JsonValue

View = Literal["request", "response"]

_HIDDEN = {"request": "readOnly", "response": "writeOnly"}
_PLAIN = (
    "enum",
    "const",
    "default",
    "description",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "contentEncoding",
    "contentMediaType",
    "minContains",
    "maxContains",
    "dependentRequired",
)
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
    """The schemas of one document in one view."""

    def __init__(self, document: Document, view: View) -> None:
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
        """A schema of the document as JSON Schema; its references lead to `definitions`.

        Raises:
            LeftOut: It cannot be one, or something that it refers to cannot.
        """
        made = self._convert(node)
        while self._waiting:
            self._define(self._waiting.pop())
        self.needed(made)
        return made

    def needed(self, schema: JsonObject) -> set[str]:
        """Names of all definitions that a schema leads to.

        Raises:
            LeftOut: One of them is broken.
        """
        found: set[str] = set()
        waiting = list(references(schema))
        while waiting:
            name = waiting.pop()
            if name in self._broken:
                raise LeftOut(self._broken[name])
            if name not in found:
                found.add(name)
                waiting.extend(self._direct(name))
        return found

    def look(self, schema: JsonObject) -> JsonObject:
        """The schema that a chain of references leads to."""
        for _ in range(_CHAIN):
            name = self.component(schema)
            if name is None:
                return schema
            schema = self.definitions.get(name, {})
        return {}

    def component(self, schema: JsonObject) -> str | None:
        """Name of the definition that a schema is, if it is one."""
        reference = schema.get("$ref")
        return reference.removeprefix(_PREFIX) if isinstance(reference, str) else None

    def properties(self, schema: JsonObject) -> dict[str, JsonObject]:
        """Properties of an object schema, those of its `allOf` included."""
        schema = self.look(schema)
        found: dict[str, JsonObject] = {}
        for branch in schema.get("allOf", ()):
            found.update(self.properties(branch))
        found.update(schema.get("properties", {}))
        return found

    def all_properties(self, schema: JsonObject, depth: int = 0) -> dict[str, JsonObject]:
        """Properties of an object schema, those of all its branches included."""
        looked = self.look(schema)
        found: dict[str, JsonObject] = {}
        for key in ("oneOf", "anyOf", "allOf") if depth < _BRANCHES else ():
            for branch in looked.get(key, ()):
                found.update(self.all_properties(branch, depth + 1))
        found.update(looked.get("properties", {}))
        return found

    def required(self, schema: JsonObject) -> set[str]:
        """Required properties of an object schema, those of its `allOf` included."""
        schema = self.look(schema)
        found = set(schema.get("required", ()))
        return found.union(*(self.required(branch) for branch in schema.get("allOf", ())))

    def self_contained(self, schema: JsonObject) -> JsonObject:
        """The schema with the definitions that it needs."""
        needed = sorted(self.needed(schema))
        return {**schema, "$defs": {name: self.definitions[name] for name in needed}} if needed else schema

    def _direct(self, name: str) -> frozenset[str]:
        if name not in self._needs:
            self._needs[name] = frozenset(references(self.definitions[name]))
        return self._needs[name]

    # References

    def _reference(self, node: JsonObject) -> JsonObject:
        pointer: str = node["$ref"]
        name = self._name(pointer)
        self._waiting.append(pointer)
        kept = {key: node[key] for key in (*_PLAIN, *_ANNOTATIONS) if key in node and key != "enum"}
        beside = self._object(
            kept if self._document.modern else {key: kept[key] for key in _ANNOTATIONS if key in kept}
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
        except LeftOut as reason:
            self._broken[name] = f"{pointer.rsplit('/', 1)[-1]}: {reason}"
        finally:
            self._open.discard(name)

    def _settled(self, schema: JsonObject) -> JsonObject | None:
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
            raise LeftOut(f"a schema is an object, this is {type(node).__name__}")
        if "$dynamicRef" in node or "$recursiveRef" in node:
            raise LeftOut("$dynamicRef is not understood")
        if isinstance(node.get("$ref"), str):
            return self._reference(node)
        return self._nullable(node, self._object(node))

    def _object(self, node: JsonObject) -> JsonObject:
        made: JsonObject = {}
        kind = node.get("type")
        if isinstance(kind, str | list):
            made["type"] = kind
        for key in _PLAIN:
            if key in node:
                made[key] = node[key]
        self._repair(node, made)
        for key in (*_SCHEMAS, *_MORE):
            if key in node:
                value = _BOOLEANS.get(node[key], node[key]) if isinstance(node[key], str) else node[key]
                made[key] = value if isinstance(value, bool) else self._convert(value)
        for key in _NAMED:
            if isinstance(node.get(key), dict):
                children = self._shown(node[key]) if key == "properties" else node[key].items()
                made[key] = {name: self._convert(child) for name, child in children}
        for key in _LISTS:
            if isinstance(node.get(key), list):
                made[key] = [self._convert(child) for child in node[key]]
        if isinstance(node.get("required"), list):
            hidden = self._hidden_names(node)
            names = [name for name in node["required"] if isinstance(name, str) and name not in hidden]
            if names:
                made["required"] = list(dict.fromkeys(names))
        self._discriminate(node, made)
        return self._merged(made)

    def _repair(self, node: JsonObject, made: JsonObject) -> None:
        for key in _LIMITS:
            value = made.get(key, 0)
            if not isinstance(value, int | float) or (isinstance(value, bool) and not key.startswith("exclusive")):
                self.dropped.append(f"{key} {made.pop(key)!r} is no number and not checked")
        if not isinstance(made.get("enum", []), list):
            self.dropped.append(f"enum {made.pop('enum')!r} is no list and not checked")
        for low, high in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if isinstance(made.get(high), bool) and made.pop(high) and low in made:  # 3.0
                made[high] = made.pop(low)
        if "pattern" in made:
            try:
                re.compile(made["pattern"])
            except (re.error, TypeError) as error:
                self.dropped.append(f"pattern {made.pop('pattern')!r} is not understood ({error}) and not checked")
        examples = [node["example"]] if "example" in node else node.get("examples")
        if isinstance(examples, list) and examples:
            made["examples"] = examples

    def _nullable(self, node: JsonObject, made: JsonObject) -> JsonObject:
        if node.get("nullable") is not True or self._document.modern:
            return made
        if isinstance(made.get("type"), str):
            made["type"] = [made["type"], "null"]
            if "enum" in made and None not in made["enum"]:
                made["enum"] = [*made["enum"], None]
            return made
        if any(key in made for key in ("allOf", "anyOf", "oneOf", "$ref", "enum")):
            kept: JsonObject = {key: made.pop(key) for key in ("description", "default", "examples") if key in made}
            return {"anyOf": [made, {"type": "null"}], **kept}
        return made

    def _shown(self, properties: JsonObject) -> Iterator[tuple[str, JsonValue]]:
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
        found: set[str] = set()
        if isinstance(node.get("$ref"), str) and depth < 20:
            target = self._document.target(node["$ref"])
            return self._hidden_names(target, depth + 1) if isinstance(target, dict) else found
        properties = node.get("properties")
        if isinstance(properties, dict):
            found = {name for name, child in properties.items() if self._is_hidden(child)}
        if depth < 20:
            for branch in node.get("allOf", ()):
                found |= self._hidden_names(branch, depth + 1) if isinstance(branch, dict) else set()
        return found

    def _discriminate(self, node: JsonObject, made: JsonObject) -> None:
        """Say in the branches of `oneOf` and `anyOf` what the discriminator's property must hold."""
        discriminator = node.get("discriminator")
        if not isinstance(discriminator, dict) or not isinstance(discriminator.get("propertyName"), str):
            return
        name = discriminator["propertyName"]
        mapping = discriminator.get("mapping")
        for key in ("oneOf", "anyOf"):
            for number, branch in enumerate(made.get(key, ())):
                component = self.component(branch)
                if component is None or self._settled(branch) is None:
                    continue
                own = self.properties(branch).get(name)
                if own is None or {"enum", "const"} & (self._settled(own) or {}).keys():
                    continue
                values = [value for value, target in (mapping or {}).items() if _leads_to(target, component)]
                made[key][number] = {
                    "allOf": [branch, {"properties": {name: {"enum": values or [component]}}, "required": [name]}]
                }

    def _merged(self, made: JsonObject) -> JsonObject:
        """`allOf` of plain objects as one object; anything else stays as it is."""
        branches: list[JsonObject] | None = made.get("allOf")
        if not branches:
            return made
        own = {key: value for key, value in made.items() if key != "allOf"}
        if len(branches) == 1 and not own.keys() - {"description", "default", "examples"}:
            return {**branches[0], **own}
        known: list[JsonObject] = []
        for branch in [*branches, own]:
            settled = self._settled(branch)
            if settled is None:
                return made
            known.append(settled)
        if not all(_is_flat(branch) for branch in known):
            return made
        merged: JsonObject = {"type": "object"}
        for branch in known:
            _join(merged, branch)
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


def _join(merged: JsonObject, branch: JsonObject) -> None:
    for name, schema in branch.get("properties", {}).items():
        properties = merged.setdefault("properties", {})
        known = properties.get(name)
        properties[name] = schema if known in (None, schema, {}) else _refined(known, schema)
    if branch.get("required"):
        merged["required"] = list(dict.fromkeys([*merged.get("required", ()), *branch["required"]]))
    for key in ("minProperties", "maxProperties"):
        if key in branch:
            merged[key] = branch[key]


def _refined(known: JsonObject, schema: JsonObject) -> JsonObject:
    """Both schemas at once: one object where they do not speak of the same things."""
    shared = {key for key in known.keys() & schema.keys() if known[key] != schema[key]} - {"description", "examples"}
    if "$ref" in known or "$ref" in schema or shared:
        return {"allOf": [known, schema]}
    return {**known, **schema}


def _leads_to(target: Any, component: str) -> bool:
    return isinstance(target, str) and target.rsplit("/", 1)[-1] == component


def references(value: JsonValue) -> Iterator[str]:
    """Names of the definitions that a schema refers to."""
    if isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(_PREFIX)
        for key, child in value.items():
            if key not in ("enum", "const", "default", "examples"):
                yield from references(child)
    elif isinstance(value, list):
        for child in value:
            yield from references(child)

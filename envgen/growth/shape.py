"""What an environment is like: its tools by words and parameters, the records of its state, and a text about it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from envgen.generate.tool_words import shared_words
from grounding.names import tool_noun, words
from trajectory import EnvironmentSpec, JsonObject, ToolSpec

Encoder = Callable[[Sequence[str]], Any]
"""n texts to float32 [n, d] of length one, so that a product is the likeness of meaning."""
DEPTH = 6
"""Levels of a state's schema that are looked at."""


@dataclass(frozen=True)
class ToolShape:
    """A tool without its descriptions."""

    name: str
    verb: frozenset[str]
    """Words that say what is done."""
    noun: frozenset[str]
    """Words that say to what."""
    takes: frozenset[tuple[str, str]]
    """Name and JSON type of each parameter."""


@dataclass(frozen=True)
class Shape:
    """An environment as others are compared with it."""

    spec: EnvironmentSpec

    @property
    def name(self) -> str:
        return self.spec.name

    @cached_property
    def tools(self) -> tuple[ToolShape, ...]:
        shared = len(shared_words([tool.name for tool in self.spec.tools]))
        return tuple(_tool_shape(tool, shared) for tool in self.spec.tools)

    @cached_property
    def fields(self) -> frozenset[str]:
        """What records hold: names of tables and of fields with their types."""
        found: set[str] = set()
        _collect(self.spec.state_schema, self.spec.state_schema, found, DEPTH)
        return frozenset(found)

    @cached_property
    def text(self) -> str:
        """What it is about: names, description, what its tools and tables are called after. Verbs and the wording of
        tools' descriptions are left out: they tell who wrote them rather than what they are about."""
        nouns = (word for tool in self.tools for word in sorted(tool.noun))
        called = (word for table in tables(self.spec) for word in words(table))
        return " ".join([self.about, self.spec.domain.replace("/", " "), *nouns, *called])

    @cached_property
    def about(self) -> str:
        """Its name and description."""
        return f"{' '.join(words(self.name))}. {' '.join(self.spec.description.split())}"


def _tool_shape(tool: ToolSpec, shared: int) -> ToolShape:
    """Without the words that all tools of the environment begin with."""
    said = words(tool.name)[shared:] or words(tool.name)
    noun = frozenset(tool_noun(" ".join(said)))
    takes = frozenset((" ".join(words(name)), _type(schema)) for name, schema in tool.parameters.items())
    return ToolShape(tool.name, frozenset(said) - noun, noun, takes)


def _type(schema: Any) -> str:
    """The JSON type of a parameter, without null; "choice" for enumerations."""
    if not isinstance(schema, dict):
        return "any"
    if "enum" in schema:
        return "choice"
    kinds = schema.get("type")
    branches = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    branches = branches or [_type(one) for one in schema.get("anyOf", ()) if isinstance(one, dict)]
    return next((kind for kind in branches if kind != "null"), "any")


def _collect(schema: Any, root: JsonObject, found: set[str], depth: int) -> None:
    """Names of tables, and of fields with their types, of a JSON Schema."""
    schema = resolved(schema, root)
    if depth == 0 or not schema:
        return
    for name, part in schema.get("properties", {}).items():
        looked = resolved(part, root)
        inner = (
            looked.get("items") or looked.get("additionalProperties") or (looked if "properties" in looked else None)
        )
        plain = " ".join(words(name))
        found.add(f"table {plain}" if isinstance(inner, dict) and inner else f"{plain}:{_type(looked)}")
        _collect(looked, root, found, depth - 1)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            _collect(schema[key], root, found, depth - 1)
    for branch in schema.get("anyOf", ()):
        _collect(branch, root, found, depth - 1)


def resolved(schema: Any, root: JsonObject) -> JsonObject:
    """A schema behind its `$ref`, as far as that leads into the same document; empty if it is none."""
    for _ in range(8):
        if not isinstance(schema, dict) or "$ref" not in schema:
            break
        target: Any = root
        for part in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target.get(part) if isinstance(target, dict) else None
        schema = target
    return schema if isinstance(schema, dict) else {}


def tables(spec: EnvironmentSpec) -> dict[str, JsonObject]:
    """The tables of a state's schema: name to the schema of one record."""
    root, found = spec.state_schema, dict[str, JsonObject]()
    for name, part in root.get("properties", {}).items():
        looked = resolved(part, root)
        for inner in (looked.get("additionalProperties"), looked.get("items")):
            record = resolved(inner, root)
            if record.get("type") == "array":
                record = resolved(record.get("items"), root)
            if record.get("properties"):
                found[name] = record
    return found

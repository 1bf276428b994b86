"""What an environment is like: its tools by words and parameters, the records of its state, and a text about it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trajsmith.envgen.generate.tool_names import find_shared_words
from trajsmith.grounding import get_tool_noun, resolve_pointer, split_name
from trajsmith.records import EnvironmentSpec, JsonObject, ToolSpec

Encoder = Callable[[Sequence[str]], Any]
"""n texts to float32 [n, d] of length one, so that a product is the likeness of meaning."""
MAX_SCHEMA_DEPTH = 6
"""Levels of a state's schema that are looked at."""


@dataclass(frozen=True)
class ToolShape:
    """Tool without its descriptions."""

    name: str
    verb: frozenset[str]
    """Words that say what is done."""
    noun: frozenset[str]
    """Words that say to what."""
    takes: frozenset[tuple[str, str]]
    """Name and JSON type of each parameter."""


@dataclass(frozen=True)
class EnvironmentShape:
    """Tools, record fields and text of an environment, for comparison with others."""

    spec: EnvironmentSpec

    @property
    def name(self) -> str:
        return self.spec.name

    @cached_property
    def tools(self) -> tuple[ToolShape, ...]:
        shared = len(find_shared_words([tool.name for tool in self.spec.tools]))
        return tuple(_build_tool_shape(tool, shared) for tool in self.spec.tools)

    @cached_property
    def fields(self) -> frozenset[str]:
        """Return the names of tables and of record fields with their types."""
        names: set[str] = set()
        _collect_names(self.spec.state_schema, self.spec.state_schema, names, MAX_SCHEMA_DEPTH)
        return frozenset(names)

    @cached_property
    def text(self) -> str:
        """Return a description: names, tool and table names, the environment's description. Verbs and the wording of
        tools' descriptions are left out: they tell who wrote them rather than what they are about."""
        nouns = (word for tool in self.tools for word in sorted(tool.noun))
        called = (word for table in find_table_schemas(self.spec) for word in split_name(table))
        return " ".join([self.about, self.spec.domain.replace("/", " "), *nouns, *called])

    @cached_property
    def about(self) -> str:
        """Its name and description."""
        return f"{' '.join(split_name(self.name))}. {' '.join(self.spec.description.split())}"


def _build_tool_shape(tool: ToolSpec, shared: int) -> ToolShape:
    """Without the words that all tools of the environment begin with."""
    name_words = split_name(tool.name)[shared:] or split_name(tool.name)
    noun = frozenset(get_tool_noun(" ".join(name_words)))
    takes = frozenset((" ".join(split_name(name)), _find_type(schema)) for name, schema in tool.parameters.items())
    return ToolShape(tool.name, frozenset(name_words) - noun, noun, takes)


def _find_type(schema: Any) -> str:
    """Return the JSON type of a parameter, without null; "choice" for enumerations."""
    if not isinstance(schema, dict):
        return "any"
    if "enum" in schema:
        return "choice"
    kinds = schema.get("type")
    branches = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    branches = branches or [_find_type(one) for one in schema.get("anyOf", ()) if isinstance(one, dict)]
    return next((kind for kind in branches if kind != "null"), "any")


def _collect_names(schema: Any, root: JsonObject, names: set[str], depth: int) -> None:
    """Names of tables, and of fields with their types, of a JSON Schema."""
    schema = resolve_schema(schema, root)
    if depth == 0 or not schema:
        return
    for name, part in schema.get("properties", {}).items():
        looked = resolve_schema(part, root)
        inner = (
            looked.get("items") or looked.get("additionalProperties") or (looked if "properties" in looked else None)
        )
        plain = " ".join(split_name(name))
        names.add(f"table {plain}" if isinstance(inner, dict) and inner else f"{plain}:{_find_type(looked)}")
        _collect_names(looked, root, names, depth - 1)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            _collect_names(schema[key], root, names, depth - 1)
    for branch in schema.get("anyOf", ()):
        _collect_names(branch, root, names, depth - 1)


def resolve_schema(schema: Any, root: JsonObject) -> JsonObject:
    """Return the schema behind a `$ref` within the document; empty if there is none."""
    for _ in range(8):
        if not isinstance(schema, dict) or "$ref" not in schema:
            break
        schema = resolve_pointer(root, str(schema["$ref"]))
    return schema if isinstance(schema, dict) else {}


def find_table_schemas(spec: EnvironmentSpec) -> dict[str, JsonObject]:
    """Return the tables of a state's schema: name to the schema of one record."""
    root, schemas = spec.state_schema, dict[str, JsonObject]()
    for name, part in root.get("properties", {}).items():
        looked = resolve_schema(part, root)
        for inner in (looked.get("additionalProperties"), looked.get("items")):
            record = resolve_schema(inner, root)
            if record.get("type") == "array":
                record = resolve_schema(record.get("items"), root)
            if record.get("properties"):
                schemas[name] = record
    return schemas

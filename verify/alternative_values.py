"""Alternative values of an argument, within its type: for mutants, and for tests of an argument's relevance."""

import random
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from trajsmith.grounding.fields import SchemaField, list_input_fields
from trajsmith.grounding.names import is_identifier
from trajsmith.grounding.paths import find_values
from trajsmith.grounding.values import ValuePool, list_candidate_values
from trajsmith.phrasing.value_formatting import parse_datetime
from trajsmith.records import EnvironmentSpec, FromOutput, GoldCall, JsonObject

OTHER_TEXTS = ("Something else entirely", "None of that", "See above")


class AlternativeValues:
    """Alternative values from the schemas of an environment and one initial state."""

    def __init__(self, spec: EnvironmentSpec, state: JsonObject, rng: random.Random) -> None:
        self.fields = {tool.name: {field.path: field for field in list_input_fields(tool)} for tool in spec.tools}
        self._required = {tool.name: frozenset(tool.required) for tool in spec.tools}
        self.pool = ValuePool(state)
        self.rng = rng

    def required(self, tool: str) -> frozenset[str]:
        """Top-level arguments that a call cannot do without."""
        return self._required[tool]

    def field(self, tool: str, path: str) -> SchemaField | None:
        """The schema of the leaf at a path such as "items[0].sku"."""
        return self.fields[tool].get(re.sub(r"\[\d+\]", "[*]", path))

    def others(self, call: GoldCall, path: str, value: Any) -> list[Any]:
        """Other values of the same type, likely ones first; none that equals `value`."""
        field = self.field(call.tool, path)
        if field is None:
            return []
        candidates = [*list_candidate_values(field, self.pool, self.rng, 6), *list_nearby_values(field, value)]
        valid = [other for other in candidates if _is_same_type(other, value, field) and other != value]
        return [other for number, other in enumerate(valid) if other not in valid[:number]]

    def other_entities(self, call: GoldCall, path: str, source: FromOutput, value: Any, results: Any) -> list[Any]:
        """Ids of other things of the same kind: rows of the list that the id came from, then of the state."""
        rows = [match.value for match in find_values(results, source.path)]
        name = path.split(".")[-1].split("[")[0]
        table = [entry[2] for entry in self.pool.by_name.get(name, [])]
        self.rng.shuffle(table)
        entities = dict.fromkeys(other for other in [*rows, *table[:4]] if isinstance(other, str | int))
        return [other for other in entities if other != value and type(other) is type(value)]


def list_nearby_values(field: SchemaField, value: Any) -> list[Any]:
    """Values beside the given one."""
    schema = field.schema
    if isinstance(value, bool) or value is None or field.is_choice:
        return []
    if isinstance(value, int | float):
        low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
        return [
            other
            for other in (value + 1, value - 1, value * 2)
            if (low is None or other > low or other == schema.get("minimum")) and (high is None or other <= high)
        ]
    moment = parse_datetime(value)
    if moment is not None:
        text = str(value)
        return [(moment + timedelta(days=days)).isoformat()[: len(text)] for days in (1, 2, 7)]
    if isinstance(value, str) and "pattern" not in schema:
        most = schema.get("maxLength", 200)
        return [text[:most] for text in OTHER_TEXTS]
    return []


def _is_same_type(other: Any, value: Any, field: SchemaField) -> bool:
    if value is None or other is None:
        return other is not None
    if isinstance(value, bool) or isinstance(other, bool):
        return type(other) is type(value)
    numbers = isinstance(value, int | float) and isinstance(other, int | float)
    if numbers and isinstance(other, float) and field.types == frozenset({"integer"}):
        return False
    return numbers or type(other) is type(value)


def is_entity_argument(path: str, value: Any) -> bool:
    """Return True for an argument that identifies an entity."""
    return is_identifier(path.split(".")[-1].split("[")[0]) and isinstance(value, str | int)


def replace_leaf(arguments: JsonObject, path: str, value: Any) -> dict[str, Any]:
    """Return the top-level argument around a leaf with another value, as keyword arguments for `with_arguments`."""
    top = path.split(".")[0].split("[")[0]
    parts: Sequence[str] = path.replace("[", ".[").split(".")[1:]
    return {top: _set_leaf(arguments.get(top), list(parts), value)}


def _set_leaf(node: Any, parts: list[str], value: Any) -> Any:
    if not parts:
        return value
    key: Any = int(parts[0][1:-1]) if parts[0].startswith("[") else parts[0]
    copy = list(node) if isinstance(node, list) else dict(node)
    copy[key] = _set_leaf(copy[key], parts[1:], value)
    return copy

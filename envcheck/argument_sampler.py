"""Samples arguments for calls: from the state, earlier results, the schema and refusal messages."""

import random
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from datetime import datetime, time, timedelta
from typing import Any

from trajsmith.envcheck.facts.state_columns import StateColumns, is_day, is_moment, is_number
from trajsmith.envcheck.parameter_columns import ParameterColumns, RelatedRows, flatten_lists, pick_focus
from trajsmith.envcheck.state_clock import sample_days
from trajsmith.envcheck.state_shape import Key
from trajsmith.envcheck.state_view import View
from trajsmith.grounding import (
    SchemaField,
    build_arguments,
    fits_schema,
    generate_text,
    get_argument_name,
    get_array_item,
    is_identifier,
    iterate_named_values,
    list_allowed_numbers,
    list_input_fields,
    split_name,
)
from trajsmith.records import EnvironmentSpec, JsonObject, ToolSpec

OPTIONAL = 0.35
HEARD = 48
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w.]*\d)")
DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DAYS = frozenset({"date", "day", "until", "deadline", "due"})
_MOMENTS = frozenset({"datetime", "timestamp", "moment"})


class ArgumentContext:
    """Values of one state around one focus row, from which arguments are drawn."""

    def __init__(self, view: View, data: StateColumns) -> None:
        self.view = view
        self.nearby = RelatedRows(view, data)
        self.focus: Mapping[str, list[Key]] = {}

    def turn(self, relations: list[str], rng: random.Random) -> None:
        """Look at another row."""
        self.focus = pick_focus(self.nearby, relations, rng)

    def values(self, relation: str, column: str, near: bool) -> list[Any]:
        rows = self.view.rows(relation)
        keys = [key for key in self.focus.get(relation, ()) if key in rows] if near else list(rows)
        if not column:
            return [key[-1] for key in keys]
        return [
            value
            for value in flatten_lists([rows[key].get(column) for key in keys])
            if value is not None and value != ""
        ]

    def numbers(self) -> list[Any]:
        """Numbers of the rows at hand."""
        rows = (self.view.rows(relation).get(key, {}) for relation, keys in self.focus.items() for key in keys[:3])
        return [value for row in rows for value in row.values() if is_number(value) and value > 0]

    def moments(self) -> list[Any]:
        rows = (self.view.rows(relation).get(key, {}) for relation, keys in self.focus.items() for key in keys[:3])
        return [value for row in rows for value in row.values() if is_day(value) or is_moment(value)]


class ArgumentSampler:
    """Samples arguments for the tools of one environment and learns from their results."""

    def __init__(self, spec: EnvironmentSpec, data: StateColumns) -> None:
        self.data = data
        self.places = ParameterColumns(data)
        self.tools = {tool.name: tool for tool in spec.tools}
        self.leaves = {tool.name: list_input_fields(tool) for tool in spec.tools}
        self._heard: dict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=HEARD))
        self._here: dict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=HEARD))
        self._worked: dict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=6))
        self._refusal_values: dict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=12))
        self._asks = {tool.name: self._relations(tool) for tool in spec.tools}

    def _relations(self, tool: ToolSpec) -> list[str]:
        """Relations that the arguments of a tool name rows of."""
        relations_by_name: dict[str, None] = {}
        for leaf in self.leaves[tool.name]:
            for relation, _ in self.places.columns(tool.name, leaf)[:3]:
                if relation:
                    relations_by_name[relation] = None
        return list(relations_by_name)

    def learn_from_result(self, tool: str, content: Any) -> None:
        """Remember the values of a result, by their names."""
        for name, value in _iter_named_values(content):
            for known in (self._heard[name], self._here[name]):
                if value not in known:
                    known.append(value)

    def record_success(self, tool: str, arguments: JsonObject) -> None:
        """Remember the arguments of a call that succeeded."""
        for name, value in _iter_named_values(arguments):
            if value not in self._worked[name]:
                self._worked[name].append(value)

    def forget_results(self) -> None:
        """Forget the values of the last session, which are not valid in another one."""
        self._here.clear()
        self._worked.clear()

    def learn_from_refusal(self, tool: str, reason: str) -> None:
        """Remember the numbers and days in a refusal; that is where limits lie."""
        for text in DAY.findall(reason):
            self._refusal_values[tool].append(text)
        for text in NUMBER.findall(DAY.sub(" ", reason)):
            number = float(text.replace(",", ""))
            self._refusal_values[tool].append(int(number) if number.is_integer() else number)

    def draw(self, tool: str, scene: ArgumentContext, rng: random.Random, share: float = OPTIONAL) -> JsonObject:
        """Arguments for one call, as valid as the schema can tell."""
        if rng.random() < 0.8 or not scene.focus:
            scene.turn(self._asks[tool], rng)
        chosen: dict[str, Any] = {}
        for leaf in self.leaves[tool]:
            if leaf.required or rng.random() < share:
                value = self.value(tool, leaf, scene, rng)
                if value is not None or "null" in _types(leaf):
                    chosen[leaf.path] = value
        tops = {get_argument_name(path) for path in chosen}
        for name in set(self.tools[tool].required) - tops:  # an object none of whose fields is required
            for leaf in self.leaves[tool]:
                if get_argument_name(leaf.path) == name:
                    chosen[leaf.path] = self.value(tool, leaf, scene, rng)
        return build_arguments({path: value for path, value in chosen.items() if value is not None or path in tops})

    def value(self, tool: str, leaf: SchemaField, scene: ArgumentContext, rng: random.Random) -> Any:
        """A value for one parameter."""
        item = get_array_item(leaf, self.tools[tool].input_schema)
        if item is not None:
            inner = SchemaField(leaf.path, leaf.name, item.context, item.types, leaf.required, item.schema)
            count = rng.choice((1, 1, 1, 2, 3))
            values = [self._single(tool, inner, scene, rng) for _ in range(count)]
            return list({repr(value): value for value in values if value is not None}.values())
        return self._single(tool, leaf, scene, rng)

    def _single(self, tool: str, leaf: SchemaField, scene: ArgumentContext, rng: random.Random) -> Any:
        choices = leaf.choices
        if choices:
            return rng.choice(choices)
        options = [(weight, values) for weight, values in self._options(tool, leaf, scene, rng) if values]
        if not options:
            return self._invent_value(tool, leaf, scene, rng)
        weights = [weight for weight, _ in options]
        return rng.choice(rng.choices([values for _, values in options], weights)[0])

    def _options(
        self, tool: str, leaf: SchemaField, scene: ArgumentContext, rng: random.Random
    ) -> Iterator[tuple[float, list[Any]]]:
        """Return the possible origins of a value with their weights."""
        schema, moment = leaf.schema, _moment_kind(leaf, self.data, self.places.columns(tool, leaf))
        columns = self.places.columns(tool, leaf)
        numeric = bool(leaf.types & {"integer", "number"})
        identity = bool(self.places.entity(leaf.name)) or is_identifier(leaf.name)
        weight = 1.0 if moment else 6.0 / max(len(columns[:3]), 1)
        for relation, column in columns[:3]:
            yield weight, self._fitting(leaf, scene.values(relation, column, True))
            yield weight / 4, self._fitting(leaf, scene.values(relation, column, False))
        exact = any(column.rsplit(".", 1)[-1] == leaf.name for _, column in columns)
        yield (1.0 if exact else 12.0), self._fitting(leaf, list(self._here.get(leaf.name, ())))
        yield (0.5 if exact else 3.0), self._fitting(leaf, list(self._heard.get(leaf.name, ())))
        yield (2.0 if identity or exact else 0.5), self._fitting(leaf, list(self._worked.get(leaf.name, ())))
        yield (4.0 if not moment else 1.0), list(schema.get("examples") or [])
        refused_values = self._fitting(leaf, list(self._refusal_values.get(tool, ())))
        if numeric:
            yield (
                2.0,
                [value + step for value in refused_values for step in (0, 1 if "integer" in leaf.types else 0.01)],
            )
            yield 1.0, self._fitting(leaf, scene.numbers())
        if not identity:
            yield (6.0 if moment else 2.0 if numeric else 1.0), [self._invent_value(tool, leaf, scene, rng)]

    def _fitting(self, leaf: SchemaField, values: list[Any]) -> list[Any]:
        return [value for value in values if fits_schema(value, leaf.schema, leaf.types)]

    def _invent_value(self, tool: str, leaf: SchemaField, scene: ArgumentContext, rng: random.Random) -> Any:
        """A value that nobody has said yet."""
        moment = _moment_kind(leaf, self.data, self.places.columns(tool, leaf))
        if moment:
            day = sample_days(scene.view, rng, scene.moments())
            if moment == "day":
                return day.isoformat()
            if moment == "time":
                return f"{rng.randrange(6, 23):02d}:{rng.choice((0, 15, 30, 45)):02d}" + (
                    ":00" if leaf.schema.get("format") else ""
                )
            at = datetime.combine(day, time(rng.randrange(8, 20), rng.choice((0, 30)))) + timedelta(0)
            return at.isoformat()
        if "boolean" in leaf.types:
            return rng.random() < 0.5
        if leaf.types & {"integer", "number"}:
            return rng.choice(list_allowed_numbers(leaf.schema, "integer" in leaf.types))
        if "object" in leaf.types:
            return {}
        if "array" in leaf.types:
            return []
        if not isinstance(leaf.schema.get("pattern"), str) and self.places.entity(leaf.name):
            return f"unknown-{rng.randrange(1000)}"
        return generate_text(leaf, rng)

    def is_reference(self, tool: str, leaf: SchemaField) -> bool:
        """Return True if a parameter identifies something that must exist."""
        if leaf.choices or "string" not in leaf.types:
            return False
        entity = self.places.entity(leaf.name)
        for relation, column in self.places.columns(tool, leaf)[:1]:
            if relation == entity or leaf.name in ("id", "key"):
                return True
            exact = column.rsplit(".", 1)[-1] == leaf.name
            named = self.data.identities.get(relation) == column or self.data.reference(relation, column) is not None
            return exact and named
        return False

    def is_lookup_parameter(self, tool: str, leaf: SchemaField) -> bool:
        """Return True if a parameter of a reading tool takes a value that is unique in a column."""
        if leaf.choices or "string" not in leaf.types or self.tools[tool].annotations.read_only_hint is not True:
            return False
        for relation, column in self.places.columns(tool, leaf)[:1]:
            column_data = self.data.columns.get((relation, column))
            exact = column.rsplit(".", 1)[-1] == leaf.name and column_data is not None and column_data.kinds == {"text"}
            return (
                exact
                and column_data is not None
                and all(len(set(map(str, one))) == len(one) for one in column_data.states)
            )
        return False


def _types(leaf: SchemaField) -> set[str]:
    kind = leaf.schema.get("type")
    return set(kind) if isinstance(kind, list) else {str(kind)}


def _moment_kind(leaf: SchemaField, data: StateColumns, columns: list[tuple[str, str]]) -> str:
    """Return whether a parameter is a day, a date-time or a time of the day."""
    form = leaf.schema.get("format")
    if form in ("date", "date-time", "time"):
        return {"date": "day", "date-time": "moment", "time": "time"}[form]
    if "pattern" in leaf.schema or not (not leaf.types or "string" in leaf.types) or form:
        return ""
    kinds = set().union(*(data.columns[place].kinds for place in columns if place in data.columns))
    if kinds and kinds <= {"day", "moment"}:
        return "moment" if "moment" in kinds else "day"
    if kinds:
        return ""
    parts = set(split_name(leaf.name))
    described = leaf.description
    if "YYYY-MM-DD" in described:
        return "moment" if "HH" in described else "day"
    if parts & _MOMENTS:
        return "moment"
    return "day" if parts & _DAYS else ""


def _iter_named_values(content: Any) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in iterate_named_values(content, rows=12) if name and value != "")

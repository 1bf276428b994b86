"""One source of candidate values for parameters: the state, schemas, descriptions, refusals, the clock."""

import copy
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from functools import cached_property
from typing import Any

from trajsmith.grounding.fields import SchemaField
from trajsmith.grounding.guesses import SPAN_ENDS, guess_values
from trajsmith.grounding.hints import Hints, list_quoted_examples
from trajsmith.grounding.names import is_identifier, split_name
from trajsmith.grounding.rows import RowIndex
from trajsmith.grounding.schema_values import has_type, list_nearby_values
from trajsmith.grounding.text_generation import find_generic_texts
from trajsmith.phrasing import find_clock_date, iterate_rows, shift_within_calendar, singularize
from trajsmith.records import JsonObject, canonical_json

DEFAULT_CLOCK = datetime(2026, 3, 2, 9, 0)


class ValueSource:
    """Candidate values for parameters, from schemas, descriptions, refusals and one initial state.

    `propose` gives what a user is likely to say; `propose_widely` everything that might be taken, for parameters of
    which the state has nothing under their own name or whose likely values failed; `change` other values than one.
    """

    def __init__(self, state: JsonObject) -> None:
        self.by_name: dict[str, list[tuple[str, Any, Any]]] = defaultdict(list)
        """Field name to (entity, row key, value); rows of no table have the key None and come first."""
        self.state = state
        self._near: frozenset[tuple[str, Any]] = frozenset()
        self._text = canonical_json(state).decode()
        moment = find_clock_date(state)
        self.now = moment if isinstance(moment, datetime) else DEFAULT_CLOCK
        for table, content in state.items():
            self._collect(singularize(table), content)

    def focus(self, rows: Iterable[tuple[str, Any]]) -> "ValueSource":
        """Return a source of the same state that takes values from some rows where these have any.

        Args:
            rows: Table and key of each.
        """
        focused = copy.copy(self)
        focused._near = frozenset((singularize(table), key) for table, key in rows)
        return focused

    @cached_property
    def index(self) -> RowIndex:
        """The rows of the state; built when somebody looks for the first time."""
        return RowIndex(self.state)

    def _collect(self, entity: str, content: Any) -> None:
        if isinstance(content, dict) and content and all(isinstance(row, dict) for row in content.values()):
            for key, row in content.items():
                self._row(entity, key, row)
        elif isinstance(content, dict):
            self._row(entity, None, content)
        elif isinstance(content, list):
            for key, row in enumerate(content):
                if isinstance(row, dict):
                    self._row(entity, key, row)

    def _row(self, entity: str, key: Any, row: JsonObject, depth: int = 0) -> None:
        for name, value in row.items():
            if isinstance(value, dict) and depth < 2:
                self._row(entity, key, value, depth + 1)
            elif isinstance(value, list) and depth < 2:
                for item in value:
                    if isinstance(item, dict):
                        self._row(entity, key, item, depth + 1)
            elif value not in (None, "") and not isinstance(value, dict | list):
                self.by_name[name].append((entity, key, value))

    def mentions(self, value: Any) -> bool:
        """Return whether the initial state mentions a text at all; a text that it does not mention was made later."""
        return not isinstance(value, str) or value in self._text

    def list_rows_with(self, name: str, value: Any) -> list[JsonObject]:
        """Return the objects of the initial state, wherever they stand, in which a field has a value."""
        return self._rows.get((name, repr(value)), [])

    @cached_property
    def _rows(self) -> dict[tuple[str, str], list[JsonObject]]:
        rows: dict[tuple[str, str], list[JsonObject]] = defaultdict(list)
        for row in iterate_rows(self.state):
            for name, value in row.items():
                if not isinstance(value, dict | list):
                    rows[name, repr(value)].append(row)
        return rows

    def mentions_field(self, name: str, value: Any) -> bool:
        """Return whether a field of this name has this value somewhere in the initial state."""
        return f'"{name}":{canonical_json(value).decode()}' in self._text

    def entries(self, field: SchemaField) -> list[tuple[str, Any, Any]]:
        """Rows that have a field of the parameter's name and type, those that belong to nobody's table first."""
        fitting = [entry for entry in self.by_name.get(field.name, []) if has_type(entry[2], field.types)]
        near = [entry for entry in fitting if (entry[0], entry[1]) in self._near] if self._near else []
        if is_identifier(field.name):
            near = [entry for entry in near if entry[1] == entry[2]]  # a row of the table, not another row's reference
        if near:
            return near
        single = [entry for entry in fitting if entry[1] is None]
        return single or fitting

    def propose(self, field: SchemaField, rng: random.Random, limit: int = 24) -> list[Any]:
        """Return values that a user might say for a parameter, likeliest first; empty if nothing is known.

        Order: choices of the schema, its examples, the state's own values of that name, the clock, bounds, and for
        free text a few plain sentences.
        """
        choices = field.choices
        if field.types == frozenset({"boolean"}) and isinstance(field.schema.get("default"), bool):
            choices = [choice for choice in choices if choice != field.schema["default"]]
        if choices or field.schema.get("examples"):
            return _shuffle(choices or list(field.schema["examples"]), rng)[:limit]
        entries = self.entries(field)
        if entries:
            values = list(dict.fromkeys(value for _, _, value in rng.sample(entries, min(len(entries), limit * 2))))
            return values[:limit]
        return _generate_values(field, self.now, rng)[:limit]

    def propose_widely(
        self,
        field: SchemaField,
        rng: random.Random,
        root: JsonObject,
        learnt: Hints | None = None,
        index: RowIndex | None = None,
    ) -> list[tuple[float, Any]]:
        """Return (weight, value) of everything that a parameter might take, each value once, heaviest first.

        Args:
            field: The parameter; a scalar, a list or an object.
            rng: Source of randomness.
            root: Schema that local references lead into.
            learnt: What refusals said about the parameter.
            index: Rows of the state together with those of earlier results, in place of the state's own.
        """
        return guess_values(field, self.index if index is None else index, self.now, learnt, rng, root)

    def change(self, field: SchemaField, value: Any, rng: random.Random, limit: int = 6) -> list[Any]:
        """Return other valid values of the same type, likely ones first, each once."""
        candidates = [*self.propose(field, rng, limit), *list_nearby_values(value, field)]
        others = [other for other in candidates if _has_same_type(other, value, field) and other != value]
        return [other for number, other in enumerate(others) if other not in others[:number]]


def _has_same_type(other: Any, value: Any, field: SchemaField) -> bool:
    if value is None or other is None:
        return other is not None
    if isinstance(value, bool) or isinstance(other, bool):
        return type(other) is type(value)
    numbers = isinstance(value, int | float) and isinstance(other, int | float)
    if numbers and isinstance(other, float) and field.types == frozenset({"integer"}):
        return False
    return numbers or type(other) is type(value)


def _generate_values(field: SchemaField, now: datetime, rng: random.Random) -> list[Any]:
    form = field.schema.get("format")
    if form == "date":
        return [day.isoformat() for day in _days(field, now.date(), rng)]
    if form == "date-time":
        return [
            f"{day.isoformat()}T{rng.randrange(8, 19):02d}:{rng.choice((0, 30)):02d}:00"
            for day in _days(field, now.date(), rng)
        ]
    if form == "time":
        return [f"{rng.randrange(7, 22):02d}:{rng.choice(('00', '15', '30', '45'))}:00" for _ in range(6)]
    if field.types & {"integer", "number"}:
        return _numbers(field, rng)
    quoted = list_quoted_examples(field.description)
    if quoted:
        return quoted
    return _shuffle(find_generic_texts(field.name), rng) if not field.types or "string" in field.types else []


def _days(field: SchemaField, today: date, rng: random.Random) -> list[date]:
    """Days ahead of the clock; parameters that end a span lie after those that start one."""
    low, high = (12, 25) if set(split_name(field.name)) & SPAN_ENDS else (1, 11)
    return [shift_within_calendar(today, days) for days in rng.sample(range(low, high), 6)]


def _numbers(field: SchemaField, rng: random.Random) -> list[Any]:
    schema = field.schema
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + (1 if "exclusiveMinimum" in schema else 0))
    low = max(low, 1) if "minimum" not in schema else low
    high = min(schema.get("maximum", schema.get("exclusiveMaximum", low + 5)), low + 20)
    if "integer" in field.types:
        return _shuffle(list(range(int(low), int(high) + 1)), rng)
    return [round(low + (high - low) * share, 2) for share in (0.5, 0.25, 0.75, 0.1, 1.0)]


def _shuffle(values: Sequence[Any], rng: random.Random) -> list[Any]:
    return rng.sample(values, len(values))

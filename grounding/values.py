"""Where values that a user says come from: the state, the schema's examples and choices, the clock."""

import random
import re
from collections import defaultdict
from datetime import date, datetime, timedelta
from typing import Any

from trajsmith.grounding.fields import SchemaField, get_types, unwrap
from trajsmith.grounding.names import split_name
from trajsmith.phrasing.value_formatting import parse_datetime
from trajsmith.phrasing.words import singularize
from trajsmith.records import JsonObject, canonical_json

_QUOTED = re.compile(r"(?:example|e\.g\.|such as|like)[^\"'`]{0,20}[\"'`]([^\"'`]{1,60})[\"'`]", re.IGNORECASE)
_SPAN_ENDS = frozenset({"end", "until", "to", "checkout", "out", "return", "due", "finish", "latest"})
DEFAULT_CLOCK = datetime(2026, 3, 2, 9, 0)
GENERIC_TEXTS: dict[str, tuple[str, ...]] = {
    "message": (
        "Running ten minutes late, please start without me.",
        "Could you send me the latest version?",
        "Thanks for your help last week.",
    ),
    "note": ("Check this again on Friday.", "Agreed on the phone.", "Waiting for an answer from the supplier."),
    "description": (
        "Collected from the weekly meeting.",
        "First draft, to be reviewed.",
        "Follow-up of last month's talk.",
    ),
    "title": ("Weekly review", "Ideas for the summer", "Shopping list"),
    "text": ("Remember to water the plants.", "The meeting moved to Thursday.", "Draft of the invitation."),
    "comment": ("Looks good to me.", "Please have a second look at this.", "This still happens every morning."),
    "content": (
        "Meeting notes: agreed on the new schedule.\n",
        "- buy paint\n- call the plumber\n",
        "Draft, version two.\n",
    ),
}


class ValuePool:
    """Values of one initial state, by field name, each with the row that it stands in."""

    def __init__(self, state: JsonObject) -> None:
        self.by_name: dict[str, list[tuple[str, Any, Any]]] = defaultdict(list)
        """Field name to (entity, row key, value); rows of no table have the key None and come first."""
        self._text = canonical_json(state).decode()
        moment = parse_datetime(state.get("now"))
        self.now = moment if isinstance(moment, datetime) else DEFAULT_CLOCK
        for table, content in state.items():
            self._collect(singularize(table), content)

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

    def entries(self, field: SchemaField) -> list[tuple[str, Any, Any]]:
        """Rows that have a field of the parameter's name and type, those that belong to nobody's table first."""
        fitting = [entry for entry in self.by_name.get(field.name, []) if _fits(entry[2], field)]
        single = [entry for entry in fitting if entry[1] is None]
        return single or fitting


def _fits(value: Any, field: SchemaField) -> bool:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    kind = kinds.get(type(value), "")
    return not field.types or kind in field.types or (kind == "integer" and "number" in field.types)


def list_candidate_values(field: SchemaField, pool: ValuePool, rng: random.Random, limit: int = 24) -> list[Any]:
    """Values that a user might say for a parameter, likeliest first; empty if nothing is known.

    Order: choices of the schema, its examples, the state's own values of that name, the clock, bounds, and for
    free text a few plain sentences.
    """
    schema = field.schema
    choices = _choices(field)
    if choices:
        return _shuffled(choices, rng)[:limit]
    if schema.get("examples"):
        return _shuffled(list(schema["examples"]), rng)[:limit]
    entries = pool.entries(field)
    if entries:
        values = list(dict.fromkeys(value for _, _, value in rng.sample(entries, min(len(entries), limit * 2))))
        return values[:limit]
    return _generate_values(field, pool, rng)[:limit]


def _choices(field: SchemaField) -> list[Any]:
    schema = field.schema
    if "const" in schema:
        return [schema["const"]]
    if isinstance(schema.get("enum"), list):
        return [choice for choice in schema["enum"] if choice is not None]
    if field.types == frozenset({"boolean"}):
        default = schema.get("default")
        return [not default] if isinstance(default, bool) else [True, False]
    return []


def _generate_values(field: SchemaField, pool: ValuePool, rng: random.Random) -> list[Any]:
    form = field.schema.get("format")
    if form == "date":
        return [day.isoformat() for day in _days(field, pool.now.date(), rng)]
    if form == "date-time":
        return [
            f"{day.isoformat()}T{rng.randrange(8, 19):02d}:{rng.choice((0, 30)):02d}:00"
            for day in _days(field, pool.now.date(), rng)
        ]
    if form == "time":
        return [f"{rng.randrange(7, 22):02d}:{rng.choice(('00', '15', '30', '45'))}:00" for _ in range(6)]
    if field.types & {"integer", "number"}:
        return _numbers(field, rng)
    quoted = _QUOTED.findall(field.description)
    if quoted:
        return quoted
    if not field.types or "string" in field.types:
        for word in reversed(split_name(field.name)):
            if word in GENERIC_TEXTS:
                return _shuffled(list(GENERIC_TEXTS[word]), rng)
    return []


def _days(field: SchemaField, today: date, rng: random.Random) -> list[date]:
    """Days ahead of the clock; parameters that end a span lie after those that start one."""
    low, high = (12, 25) if set(split_name(field.name)) & _SPAN_ENDS else (1, 11)
    return [today + timedelta(days=days) for days in rng.sample(range(low, high), 6)]


def _numbers(field: SchemaField, rng: random.Random) -> list[Any]:
    schema = field.schema
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + (1 if "exclusiveMinimum" in schema else 0))
    low = max(low, 1) if "minimum" not in schema else low
    high = min(schema.get("maximum", schema.get("exclusiveMaximum", low + 5)), low + 20)
    if "integer" in field.types:
        return _shuffled(list(range(int(low), int(high) + 1)), rng)
    return [round(low + (high - low) * share, 2) for share in (0.5, 0.25, 0.75, 0.1, 1.0)]


def _shuffled(values: list[Any], rng: random.Random) -> list[Any]:
    return rng.sample(values, len(values))


def get_array_item(field: SchemaField, root: JsonObject) -> SchemaField | None:
    """The field of one item of a flat array parameter, or None if the parameter is no array."""
    if "array" not in field.types or not isinstance(field.schema.get("items"), dict):
        return None
    items = unwrap(field.schema["items"], root)
    merged = {**items, **({"examples": field.schema["examples"]} if "examples" in field.schema else {})}
    return SchemaField(field.path, singularize(field.name), field.context, get_types(items), field.required, merged)

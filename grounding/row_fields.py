"""Fields by which people call a row of a list: names first, then dates and other texts, then money, and no levels."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trajsmith.grounding.names import is_identifier, split_name
from trajsmith.grounding.paths import ListLevel
from trajsmith.phrasing import Phrasebook, parse_datetime

LONGEST_SAYABLE = 60
FieldKind = Literal["name", "date", "text", "number", "level"]
WEIGHTS: Mapping[FieldKind, float] = {"name": 15.0, "date": 3.0, "text": 2.5, "number": 1.0, "level": 0.1}
"""How likely people call a row by a field of a kind."""
LONG_TEXT = 0.2
"""Factor on the weight of a text that is hardly said as a whole."""

_NAMES = frozenset(
    {"name", "title", "subject", "label", "item", "headline", "nickname", "summary", "task", "description"}
)
_LEVELS = frozenset({
    "battery", "level", "size", "left", "free", "seat", "stock", "count", "used", "remaining", "minute", "quantity",
    "rating", "progress", "usage",
})  # fmt: skip


@dataclass(frozen=True)
class DeclaredFields:
    """Fields by which a phrasebook calls things, for the rows from which one parameter is filled."""

    phrasebook: Phrasebook
    parameter: str

    def list_for(self, level: ListLevel) -> tuple[str, ...] | None:
        """Return the fields that have templates for the rows of a list; None where nothing is said of such rows."""
        entities = self.phrasebook.entities
        kinds = [name for name in level.row if name in entities] if isinstance(level.row, dict) else []
        if self.parameter in entities and (self.parameter in kinds or not kinds):
            return tuple(entities[self.parameter].by)
        return tuple(entities[kinds[0]].by) if kinds else None


def classify_field(field: str, value: Any) -> FieldKind:
    """Classify what a field says of a row, as people use it to call the row."""
    words = set(split_name(field.split(".")[-1]))
    if isinstance(value, int | float):
        return "level" if words & _LEVELS else "number"
    if parse_datetime(value) is not None:
        return "date"
    return "name" if words & _NAMES else "text"


def score_field(field: str, value: Any) -> float:
    """Score how likely a person calls a row by this field."""
    long = isinstance(value, str) and len(value) > 30
    kind = classify_field(field, value)
    return WEIGHTS[kind] * (LONG_TEXT if long and kind == "text" else 1.0)


def rank_fields(row: Mapping[str, Any], fields: Sequence[str], rng: random.Random) -> list[str]:
    """Rank fields of a row at random by how likely people use them; numbers come after all others."""
    drawn = {field: rng.random() ** (1 / score_field(field, row[field])) for field in fields}
    return sorted(fields, key=lambda field: (classify_field(field, row[field]) in ("number", "level"), -drawn[field]))


def list_sayable_fields(row: Mapping[str, Any], declared: Sequence[str] | None = None) -> list[str]:
    """List the fields of a row, and of the objects in it, by which a person may call the row.

    Args:
        declared: Fields that the phrasebook has templates for; then no others, and no levels, are listed.
    """
    fields: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            fields |= {f"{key}.{inner}": deep for inner, deep in value.items() if _is_sayable(inner, deep)}
        elif _is_sayable(key, value) or (declared is not None and key in declared and _is_text(value)):
            fields[key] = value
    if declared is None:
        return list(fields)
    return [
        field
        for field, value in fields.items()
        if (field in declared or field.split(".")[-1] in declared) and classify_field(field, value) != "level"
    ]


def _is_sayable(name: str, value: Any) -> bool:
    if isinstance(value, bool) or value is None or is_identifier(name):
        return False
    return isinstance(value, int | float) or _is_text(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_SAYABLE and "\n" not in value


def get_state(row: Any) -> Any:
    """Return the state of a thing, by which a request fits it or not: a trip that is over leaves no more."""
    return row.get("status") if isinstance(row, Mapping) else None

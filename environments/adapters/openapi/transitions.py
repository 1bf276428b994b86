"""Derive what a verb in a path does to a record, from an enumeration or a flag of the record."""

from trajsmith.environments.adapters.openapi.naming import find_outcomes, find_undone, normalize_name
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.adapters.openapi.tables import ResourceTable
from trajsmith.records import JsonObject, JsonValue

_STATES = ("status", "state", "phase", "stage", "condition")


def find_transition(dialect: Dialect, table: ResourceTable, verb: str) -> tuple[str, JsonValue, str] | None:
    """Return the property that a verb sets, its value and the participle; None where the record has none."""
    properties = dialect.all_properties(table.schema)
    ranked = sorted(
        properties, key=lambda name: (normalize_name(name) not in _STATES, not normalize_name(name).endswith(_STATES))
    )
    for outcome in find_outcomes(verb):
        for name in ranked:
            value = _find_enum_value(dialect.look(properties[name]), outcome)
            if value is not None:
                return name, value, outcome
        for name in ranked:
            if normalize_name(name) in (normalize_name(outcome), "is" + normalize_name(outcome)) and _is_flag(
                dialect.look(properties[name])
            ):
                return name, True, outcome
    ended = find_undone(verb)
    for name in ranked:
        if ended and normalize_name(name) in (ended, "is" + ended) and _is_flag(dialect.look(properties[name])):
            return name, False, f"no longer {ended}"
    return None


def _find_enum_value(schema: JsonObject, outcome: str) -> str | None:
    """The value of an enumeration that is the outcome, in the enumeration's spelling."""
    for value in schema.get("enum", ()):
        if isinstance(value, str) and normalize_name(value) == normalize_name(outcome):
            return value
    return None


def _is_flag(schema: JsonObject) -> bool:
    kind = schema.get("type")
    return kind == "boolean" or (isinstance(kind, list) and "boolean" in kind)

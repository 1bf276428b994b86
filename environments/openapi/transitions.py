"""What a verb in a path does to a record, where an enumeration or a flag of the record says so."""

from environments.openapi.dialect import Dialect
from environments.openapi.tables import Table
from environments.openapi.words import outcomes, plain, undone
from trajectory import JsonObject, JsonValue

_STATES = ("status", "state", "phase", "stage", "condition")


def transition(dialect: Dialect, table: Table, verb: str) -> tuple[str, JsonValue, str] | None:
    """The property that a verb sets, its value, and the word for what happened; None where the record has none."""
    properties = dialect.all_properties(table.schema)
    ranked = sorted(properties, key=lambda name: (plain(name) not in _STATES, not plain(name).endswith(_STATES)))
    for outcome in outcomes(verb):
        for name in ranked:
            value = _value(dialect.look(properties[name]), outcome)
            if value is not None:
                return name, value, outcome
        for name in ranked:
            if plain(name) in (plain(outcome), "is" + plain(outcome)) and _is_flag(dialect.look(properties[name])):
                return name, True, outcome
    ended = undone(verb)
    for name in ranked:
        if ended and plain(name) in (ended, "is" + ended) and _is_flag(dialect.look(properties[name])):
            return name, False, f"no longer {ended}"
    return None


def _value(schema: JsonObject, outcome: str) -> str | None:
    """The value of an enumeration that is the outcome, in the enumeration's spelling."""
    for value in schema.get("enum", ()):
        if isinstance(value, str) and plain(value) == plain(outcome):
            return value
    return None


def _is_flag(schema: JsonObject) -> bool:
    kind = schema.get("type")
    return kind == "boolean" or (isinstance(kind, list) and "boolean" in kind)

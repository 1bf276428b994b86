"""Arguments of look-ups: what the user says to find a thing, beside what they call it anyway."""

from collections.abc import Collection

from trajsmith.grounding import SchemaField, is_identifier, list_input_fields, split_name
from trajsmith.records import ToolSpec

_OWN = frozenset({"full", "first", "last", "display", "nick", "user"})


def count_said_parameters(spec: ToolSpec, known: Collection[str], shown: Collection[str]) -> int:
    """Count the required parameters of a look-up that have to be said beside the name of what is looked for.

    Args:
        known: Parameters that earlier results fill.
        shown: Names of the fields of the result.
    """
    fields = {field.path: field for field in list_input_fields(spec)}
    asked = [fields.get(name) for name in sorted(set(spec.required) - set(known))]
    return sum(field is None or not (field.name in shown and _is_name(field, shown)) for field in asked)


def _is_name(field: SchemaField, shown: Collection[str]) -> bool:
    """Return whether a parameter calls what a tool lists by a text of its own, not by its owner's: a group's name is
    none of a contact."""
    plain = field.types == frozenset({"string"}) and not field.is_choice and "format" not in field.schema
    words = split_name(field.name)
    kinds = {word for name in shown if is_identifier(name) for word in split_name(name)} | _OWN
    return plain and (words[-1:] != ("name",) or set(words[:-1]) <= kinds)

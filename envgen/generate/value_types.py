"""Infer the type of a table column's values and convert the values to it."""

import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from trajsmith.envgen.generate.blueprint import ColumnKind, Scalar

_CHOICES = 12
_FLAGS = {"true": True, "false": False, "yes": True, "no": False}
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})$")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?$")


@dataclass(frozen=True)
class TypedValues:
    """Values of a column, converted to the type that all of them have."""

    kind: ColumnKind
    values: list[Scalar | None]
    choices: tuple[str, ...] = ()


def infer_values(raw: list[Any], named: bool = False) -> TypedValues | None:
    """Return a column's values with their type; None if it is empty or holds something that is no value.

    Args:
        named: True for names and addresses, of which there are always more than those that stand here.
    """
    values = [_clean_value(value) for value in raw]
    filled = [value for value in values if value is not None]
    if not filled or any(isinstance(value, dict | list | bytes) for value in filled):
        return None
    for kind, read in (
        ("flag", _parse_flag),
        ("whole", _parse_whole),
        ("number", _parse_number),
        ("date", _parse_date),
        ("moment", _parse_datetime),
    ):
        parsed_values = [None if value is None else read(value) for value in values]
        if all(one is not None for one, value in zip(parsed_values, values, strict=True) if value is not None):
            return TypedValues(kind, parsed_values)  # type: ignore[arg-type] # the pairs above are of kinds
    texts = [None if value is None else str(value).replace("\x00", "") for value in values]
    different = dict.fromkeys(text for text in texts if text is not None)
    repeated = len(different) * 3 <= len(filled) and len(filled) >= 9
    if not named and 2 <= len(different) <= _CHOICES and repeated and all(len(text) <= 40 for text in different):
        return TypedValues("choice", list(texts), tuple(different))
    return TypedValues("text", list(texts))


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        value = value.strip()
        return None if value in ("", "NULL", "null", "None", "NaN", "N/A", r"\N") else value
    return None if isinstance(value, float) and value != value else value


def _parse_flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else _FLAGS.get(value.lower()) if isinstance(value, str) else None


def _parse_whole(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and _WHOLE.match(value) else None


def _parse_number(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return float(value) if isinstance(value, str) and _NUMBER.match(value) and not _is_padded(value) else None


def _is_padded(value: str) -> bool:
    """Return True for digits that are a code, such as a postcode with a leading zero."""
    return len(value) > 1 and value[0] == "0" and value[1] != "."


def _parse_date(value: Any) -> str | None:
    if not isinstance(value, str) or not re.match(r"\d{4}-\d\d-\d\d($|[ T]00:00(:00(\.0+)?)?$)", value):
        return None
    try:
        return date.fromisoformat(value[:10]).isoformat()
    except ValueError:
        return None


def _parse_datetime(value: Any) -> str | None:
    if not isinstance(value, str) or not re.match(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d", value):
        return None
    try:
        return datetime.fromisoformat(value).isoformat()
    except ValueError:
        return None

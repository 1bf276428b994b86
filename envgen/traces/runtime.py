"""The part of a clone's file that is the same in all of them, as text: it travels with the file."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from trajsmith.envgen.traces.operations import compute_arithmetic


def _copy_code(function: Callable[..., Any], names: Mapping[str, str]) -> str:
    """Return the code of a function, with other names."""
    return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), inspect.getsource(function))


HELPERS = '''
class Row(RootModel[dict[str, Any]]):
    """Row of a table, as recordings show it."""


class Missing(Exception):
    """A row or a field that a tool needs is not there."""


def _get(base: Any, key: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(key, str) or key not in base:
        raise Missing(str(key))
    return base[key]


def _have(row: Any) -> Any:
    if row is None:
        raise Missing("row")
    return row


def _present(name: str, value: Callable[[], Any]) -> dict[str, Any]:
    """A field of a result, if its value is known."""
    try:
        return {name: value()}
    except Missing:
        return {}


def _set(base: Any, key: Any, value: Callable[[], Any] | None) -> dict[str, Any]:
    """A mapping with another value under a key that it has, or without the key."""
    _get(base, key)
    return {**base, key: value()} if value is not None else {name: one for name, one in base.items() if name != key}


def _lacks(base: Callable[[], Any], value: Callable[[], Any]) -> bool:
    """True if a value is absent where it could be."""
    base()
    try:
        value()
    except Missing:
        return True
    return False


def _holds(test: Callable[[], Any]) -> bool:
    try:
        return bool(test())
    except (Missing, TypeError):
        return False


def _prefer(test: Callable[[], Any], first: Callable[[], Any], second: Callable[[], Any]) -> Any:
    """The first value where a test holds and it is there, else the second one."""
    if _holds(test):
        try:
            return first()
        except Missing:
            pass
    return second()


def _first(items: Any, test: Callable[[Any], Any]) -> Any:
    """First item for which a test holds; None if there is none."""
    return next((item for item in items or [] if _holds(lambda item=item: test(item))), None)


def _contains(whole: Any, part: Any) -> bool:
    return str(part).lower() in str(whole).lower()


def _tidy(value: float) -> float:
    """A number without the noise of binary fractions."""
    value = round(value, 6)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(*parts: Any) -> str:
    return "".join(str(_tidy(part)) if isinstance(part, float) else str(part) for part in parts)


def _plain(value: Any) -> Any:
    """An argument as JSON data."""
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(by_alias=True, exclude_unset=True))
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return _tidy(value) if isinstance(value, float) and math.isfinite(value) else value


def _key(parts: Any) -> str:
    return "|".join(_text(part) for part in parts)


def _order(value: Any) -> tuple[int, float, str]:
    if value is None:
        return (0, 0.0, "")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (1, float(value), "") if number else (2, 0.0, str(value))


def _day(value: Any, days: int) -> str:
    try:
        return (date_type.fromisoformat(str(value)) + timedelta(days=days)).isoformat()
    except (ValueError, OverflowError) as error:
        raise Missing("date") from error
'''
HELPERS += "\n\n" + _copy_code(compute_arithmetic, {"compute_arithmetic": "_compute", "Absent": "Missing"})


METHODS = '''
    def _table(self, table: str) -> dict[str, Row]:
        return getattr(self.state, table)

    def _find(self, table: str, keys: Callable[[], tuple[Any, ...]], needs: tuple[str, ...] = ()) -> Any:
        """A row by its key; None if it is not there, or known only in part."""
        try:
            row = self._table(table).get(_key(keys()))
        except Missing:
            return None
        return None if row is None or any(name not in row.root for name in needs) else row.root

    def _row(self, table: str, *keys: Any) -> Any:
        row = self._find(table, lambda: keys)
        if row is None:
            raise Missing(table)
        return row

    def _rows(self, table: str, needs: tuple[str, ...], order: tuple[str, bool] | None) -> list[Any]:
        """The rows that have all of some fields, in the order of a column."""
        rows = [row.root for row in self._table(table).values() if all(name in row.root for name in needs)]
        return rows if order is None else sorted(rows, key=lambda row: _order(row.get(order[0])), reverse=order[1])

    def _answer(self, value: Callable[[], Any], unknown: Callable[[], str]) -> Any:
        """A result; a refusal if it needs what is not there."""
        try:
            return copy.deepcopy(value())
        except (Missing, TypeError) as error:
            raise ToolError(unknown()) from error

    def _store(self, table: str, keys: tuple[str, ...], record: Any, arguments: dict[str, Any]) -> None:
        """Write a row that a result shows."""
        parts = [record[name] if record.get(name) is not None else arguments.get(name) for name in keys]
        key = _key(parts)
        old = self._table(table).get(key)
        named = {name: part for name, part in zip(keys, parts, strict=True) if record.get(name) is None}
        self._table(table)[key] = Row({**(old.root if old is not None else {}), **copy.deepcopy(record), **named})

    def _fresh(self, table: str, shown: tuple[str, ...]) -> str:
        """A new key: those that recordings show, in turn, then counted ones of the same form."""
        while True:
            number = int(self.new_id(table))
            last = shown[-1]
            digits = re.search(r"\\d+$", last)
            if number <= len(shown):
                key = shown[number - 1]
            elif digits is not None:
                key = last[: digits.start()] + str(int(digits[0]) + number - len(shown)).zfill(len(digits[0]))
            else:
                key = f"{last}{number}"
            if key not in self._table(table):
                return key

    def _recorded(self, tool: str, arguments: dict[str, Any]) -> Any:
        """What a recording answers for the same arguments."""
        given = {name: value for name, value in arguments.items() if value is not None}
        known = RECORDED[tool].get(json.dumps(given, sort_keys=True))
        if known is None:
            raise ToolError("there is no answer for these arguments")
        if not known[0]:
            raise ToolError(known[1])
        return known[1]
'''

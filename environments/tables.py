"""Tables as environment code sees them: dicts of records that come into being at the first touch."""

import copy
from collections.abc import ItemsView, Iterator, KeysView, Mapping, MutableMapping, ValuesView
from operator import is_not
from typing import Any, TypeVar

from pydantic import BaseModel

from trajsmith.environments.jsontypes import JsonType, StateError
from trajsmith.environments.table_records import CallMode, TableRecords

Model = TypeVar("Model", bound=BaseModel)
_NOTHING: Any = object()


class RecordTable(MutableMapping[str, Model]):
    """Dict from key to record over `TableRecords`; its order is that of a dict, whatever is inserted and deleted."""

    __slots__ = ("_base", "_kind", "_mode", "_name", "_records")

    def __init__(self, name: str, kind: JsonType, base: Mapping[str, bytes], mode: CallMode) -> None:
        """As for `Records`, which are made when the table is first used."""
        self._name = name
        self._kind = kind
        self._base = base
        self._mode = mode
        self._records: TableRecords | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """`isinstance(table, dict)` is true: the field is declared a dict, and code may ask."""
        return dict

    def __getitem__(self, key: str) -> Model:
        records = self._records or get_records(self)
        value = records.out.get(key, _NOTHING)
        return records.get(key) if value is _NOTHING else value  # type: ignore[no-any-return]

    def get(self, key: str, default: Any = None) -> Any:
        records = self._records or get_records(self)
        value = records.out.get(key, _NOTHING)
        if value is not _NOTHING:
            return value
        return records.get(key) if records.has(key) else default

    def __setitem__(self, key: str, value: Model) -> None:
        if not isinstance(key, str):
            raise TypeError(f"keys of {self._name} are texts, not {type(key).__name__}")
        get_records(self).assign(key if type(key) is str else str.__str__(key), value)

    def __delitem__(self, key: str) -> None:
        if not get_records(self).has(key):
            raise KeyError(key)
        get_records(self).delete(key)

    def __contains__(self, key: object) -> bool:
        return get_records(self).has(key)

    def __len__(self) -> int:
        return get_records(self).size()

    def __iter__(self) -> Iterator[str]:
        return get_records(self).keys()

    def __reversed__(self) -> Iterator[str]:
        return get_records(self).keys(backwards=True)

    def keys(self) -> KeysView[str]:
        return _Keys(self)

    def values(self) -> ValuesView[Model]:
        return _Values(self)

    def items(self) -> ItemsView[str, Model]:
        return _Items(self)

    def popitem(self) -> tuple[str, Model]:
        for key in reversed(self):
            return key, self.pop(key)
        raise KeyError("popitem(): dictionary is empty")

    def clear(self) -> None:
        for key in list(self):
            del self[key]

    def copy(self) -> dict[str, Model]:
        """A plain dict with the same records."""
        return dict(_pairs(get_records(self)))

    def __copy__(self) -> dict[str, Model]:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Model]:
        return copy.deepcopy(self.copy(), memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self.copy(),)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, dict):
            return NotImplemented
        return len(self) == len(other) and self.copy() == dict(other.items())

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return self.copy() | dict(other) if isinstance(other, dict) else NotImplemented

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return dict(other) | self.copy() if isinstance(other, dict) else NotImplemented

    def __ior__(self, other: Any) -> "RecordTable[Model]":  # type: ignore[misc]
        self.update(other)
        return self

    def __repr__(self) -> str:
        return repr(self.copy())


def get_records(table: RecordTable[Any]) -> TableRecords:
    """Return the records of a table."""
    if table._records is None:
        table._records = TableRecords(table._name, table._kind, table._base, table._mode)
    return table._records


def get_touched_records(table: RecordTable[Any]) -> TableRecords | None:
    """Return the records of a table, or None if the table was never used."""
    return table._records


class _Keys(KeysView[str]):
    _mapping: RecordTable[Any]

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._mapping)

    def __repr__(self) -> str:
        return f"dict_keys({list(self)!r})"


class _Values(ValuesView[Any]):
    _mapping: RecordTable[Any]

    def __iter__(self) -> Iterator[Any]:
        records = get_records(self._mapping)
        whole = records.whole()
        return (value for _, value in records.scan()) if whole is None else iter(whole.values())

    def __reversed__(self) -> Iterator[Any]:
        records = get_records(self._mapping)
        whole = records.whole()
        return (value for _, value in records.scan(backwards=True)) if whole is None else reversed(whole.values())

    def __repr__(self) -> str:
        return f"dict_values({list(self)!r})"


class _Items(ItemsView[str, Any]):
    _mapping: RecordTable[Any]

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return _pairs(get_records(self._mapping))

    def __reversed__(self) -> Iterator[tuple[str, Any]]:
        records = get_records(self._mapping)
        whole = records.whole()
        return records.scan(backwards=True) if whole is None else reversed(whole.items())

    def __repr__(self) -> str:
        return f"dict_items({list(self)!r})"


def _pairs(records: TableRecords) -> Iterator[tuple[str, Any]]:
    whole = records.whole()
    return records.scan() if whole is None else iter(whole.items())


def to_plain_containers(value: Any) -> Any:
    """Convert to plain containers with dicts in place of tables; the value itself where there are none."""
    if type(value) is RecordTable:
        return value.copy()
    if type(value) in (list, tuple):
        children = [to_plain_containers(child) for child in value]
        return type(value)(children) if any(map(is_not, children, value)) else value
    if type(value) is dict:
        converted = {key: to_plain_containers(child) for key, child in value.items()}
        return converted if any(map(is_not, converted.values(), value.values())) else value
    return value


def replace_content(table: RecordTable[Any], value: Any) -> None:
    """Give a table the content of a dict that was put in its place, with as few changes as its order allows.

    Raises:
        StateError: It is no dict from texts.
    """
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise StateError(f"{table._name} is no dict from texts now")
    wanted = dict(value.items())
    for key in [key for key in table if key not in wanted]:
        del table[key]
    left = list(table)
    if left != list(wanted)[: len(left)]:
        table.clear()
    table.update(wanted)

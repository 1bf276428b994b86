"""Columns of an export, as names of kinds, and how each kind is written so that it comes back equal."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Union

from trajsmith.export.lossless_json import LosslessEncoder
from trajsmith.records import InputError, JsonObject, RecordDropped

if TYPE_CHECKING:
    import pyarrow
    from datasets import Features

Kind = Union[str, "Columns"]
Columns = Mapping[str, Kind]
"""Name to kind: a type of Arrow, "json", "list of json", "list of chat" (role and content only), or columns within."""

CHAT: Columns = {"role": "string", "content": "string"}
LISTS: Mapping[str, Kind] = {"list of json": "json", "list of chat": CHAT}
"""Kind of a list to the kind of its items."""


def build_schema(columns: Columns) -> "pyarrow.Schema":
    """Return the Arrow schema of `build_features`, with the metadata from which `datasets` reads those features.

    It is built without `datasets`, whose import costs a run more time and memory than all its other imports.
    """
    import pyarrow

    features = {name: _describe_kind(kind) for name, kind in columns.items()}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return pyarrow.schema([(name, _arrow_type(kind)) for name, kind in columns.items()], metadata)


def _describe_kind(kind: Kind) -> JsonObject:
    """Return a feature as `datasets` writes it into metadata."""
    if isinstance(kind, Mapping):
        return {name: _describe_kind(inner) for name, inner in kind.items()}
    if kind == "json":
        return {"_type": "Json"}
    if kind in LISTS:
        return {"feature": _describe_kind(LISTS[kind]), "_type": "List"}
    return {"dtype": kind, "_type": "Value"}


def _arrow_type(kind: Kind) -> "pyarrow.DataType":
    import pyarrow

    if isinstance(kind, Mapping):
        return pyarrow.struct([(name, _arrow_type(inner)) for name, inner in kind.items()])
    if kind == "json":
        return pyarrow.json_()
    if kind in LISTS:
        return pyarrow.list_(_arrow_type(LISTS[kind]))
    return pyarrow.type_for_alias(kind)


def build_features(columns: Columns) -> "Features":
    """The explicit features. Left to infer them, `datasets` merges all schemas and all arguments into one struct
    and fills the holes with nulls; as `Json` every message and every tool stays what it is.
    """
    from datasets import Features

    return Features({name: _feature(kind) for name, kind in columns.items()})


def _feature(kind: Kind) -> Any:
    from datasets import Json, List, Value

    if isinstance(kind, Mapping):
        return {name: _feature(inner) for name, inner in kind.items()}
    if kind == "list of chat":
        return List(_feature(CHAT))
    special = {"json": Json(), "list of json": List(Json())}
    return special.get(kind) or Value(kind)


def decode_as_datasets(text: str) -> Any:
    """Decode JSON text as `datasets` does; pandas is imported by the first number that has to be tried."""
    from pandas.io.json import ujson_loads

    return ujson_loads(text)


class RowEncoder:
    """Turns rows into cells and cells into Arrow tables of one set of columns."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.schema = build_schema(columns)
        exact = LosslessEncoder(decode_as_datasets)
        self._writers: dict[str, Callable[[Any], Any]] = {"json": exact.value, "list of json": exact.items}

    def cells(self, row: JsonObject) -> JsonObject:
        """The row as it is stored.

        Raises:
            RecordDropped: A value would not come back equal.
            InputError: The row has other columns.
        """
        if row.keys() != self.columns.keys():
            odd = ", ".join(sorted(row.keys() ^ self.columns.keys()))
            raise InputError(f"row {row.get('id', '?')}: missing or unknown columns: {odd}")
        return {name: self._cell(name, kind, row[name]) for name, kind in self.columns.items()}

    def table(self, rows: list[JsonObject]) -> "pyarrow.Table":
        """Encoded rows as one table."""
        import pyarrow

        arrays = [self._array(field, [row[field.name] for row in rows]) for field in self.schema]
        return pyarrow.Table.from_arrays(arrays, schema=self.schema)

    def _cell(self, name: str, kind: Kind, value: Any) -> Any:
        if not isinstance(kind, str) or kind not in self._writers:
            return value
        try:
            return self._writers[kind](value)
        except RecordDropped as dropped:
            raise RecordDropped(dropped.reason, f"{name}: {dropped.detail}") from dropped

    def _array(self, field: "pyarrow.Field", values: list[Any]) -> "pyarrow.Array":
        """Values of one column as Arrow; JSON text takes its plain storage type on the way."""
        import pyarrow

        kind = self.columns[field.name]
        if kind == "json":
            return pyarrow.array(values, pyarrow.string()).cast(field.type)
        if kind == "list of json":
            return pyarrow.array(values, pyarrow.list_(pyarrow.string())).cast(field.type)
        return pyarrow.array(values, field.type)

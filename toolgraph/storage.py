"""The graph's file: rows as columns, every distinct text once.

300,000 edges as a list of objects are 80 MB of JSON in which every name stands hundreds of times. As columns of numbers
beside one list of texts they are a third of that, and share their strings in memory once they are read. It stays JSON,
so that any language reads it:

    {"tools": [...], "columns": 1, "texts": ["shop.list_orders", ...],
     "edges": {"rows": 2, "source": [0, 4], "weight": [3, 2], "evidence": [[7], [7]],
               "links": {"counts": [1, 2], "rows": 3, "output": [...], ...}}, ...}

A column of texts holds positions in `texts`; a column of lists of rows holds how many rows each row has, and these as
columns in turn.
"""

import gzip
import io
import typing
import zlib
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import msgspec
import orjson

from trajsmith.records import JsonObject, open_whole_file

VERSION = 1
GZIP = b"\x1f\x8b"
MOST_GROWTH = 100
"""Times that unpacking may make a file larger, beyond `FREE_BYTES`; graphs grow about twentyfold."""
FREE_BYTES = 64 << 20


def write(path: Path, data: bytes) -> None:
    """Write a whole file; a name that ends in .gz is packed. The same data, the same bytes."""
    with open_whole_file(path) as file:
        file.write(gzip.compress(data, 6, mtime=0) if path.suffix == ".gz" else data)


def read(path: Path) -> JsonObject:
    """The JSON object of a file, packed or not, whatever its name.

    Raises:
        OSError: The file cannot be read.
        ValueError: It holds no JSON object.
    """
    raw = path.read_bytes()
    try:
        data = orjson.loads(_unpack_file(raw) if raw.startswith(GZIP) else raw)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"the packed file is torn: {error}") from error
    except orjson.JSONDecodeError as error:
        raise ValueError(f"Invalid JSON: {error}") from error
    if not isinstance(data, dict):
        raise ValueError("Invalid JSON: no object")
    return data


def _unpack_file(raw: bytes) -> bytes:
    """Unpack a file in parts, so that one that was made to fill the memory stops at a size."""
    limit = max(FREE_BYTES, MOST_GROWTH * len(raw))
    parts, size = list[bytes](), 0
    with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
        while part := file.read(1 << 20):
            size += len(part)
            if size > limit:
                raise ValueError(f"it unpacks to more than {limit >> 20} MB")
            parts.append(part)
    return b"".join(parts)


def is_packed(data: JsonObject) -> bool:
    """True for columns; False for rows.

    Raises:
        ValueError: Columns of a later version.
    """
    version = data.get("columns")
    if version not in (None, VERSION):
        raise ValueError(f"written by a later version (columns {version}): update trajsmith")
    return version == VERSION


def pack(tables: dict[str, Sequence[msgspec.Struct]]) -> JsonObject:
    """Tables as columns, with the texts that they share."""
    texts: dict[str, int] = {}
    packed = {name: _columns(rows, texts) for name, rows in tables.items()}
    return {"columns": VERSION, "texts": list(texts), **packed}


def unpack(data: JsonObject, kinds: dict[str, type[msgspec.Struct]]) -> dict[str, tuple[Any, ...]]:
    """The tables again; takes what it read out of `data`, so that the columns can be freed.

    Raises:
        ValueError: A table or a column is missing, torn, or of another kind.
    """
    try:
        texts = msgspec.convert(data.pop("texts"), list[str])
        del data["columns"]
        return {name: tuple(_rows(data.pop(name), kind, texts)) for name, kind in kinds.items()}
    except (KeyError, IndexError, TypeError, AttributeError, msgspec.ValidationError) as error:
        raise ValueError(f"no graph: a column is missing or torn ({type(error).__name__}: {error})") from error


def _columns(rows: Sequence[msgspec.Struct], texts: dict[str, int]) -> JsonObject:
    columns: JsonObject = {"rows": len(rows)}
    if rows:
        for name, hint in typing.get_type_hints(type(rows[0])).items():
            columns[name] = _packers[_shape(hint)](list(map(attrgetter(name), rows)), texts)
    return columns


def _texts(values: Iterable[str], texts: dict[str, int]) -> list[int]:
    return [texts.setdefault(value, len(texts)) for value in values]


def _lists(values: Iterable[Sequence[str]], texts: dict[str, int]) -> list[list[int]]:
    return [_texts(value, texts) for value in values]


def _tables(values: Sequence[Sequence[msgspec.Struct]], texts: dict[str, int]) -> JsonObject:
    rows = [row for value in values for row in value]
    return {"counts": [len(value) for value in values], **_columns(rows, texts)}


def _plain(values: Iterable[Any], texts: dict[str, int]) -> list[Any]:
    return [msgspec.to_builtins(value) for value in values]


_packers: dict[str, Callable[[Any, dict[str, int]], Any]] = {
    "text": _texts,
    "texts": _lists,
    "table": _tables,
    "plain": _plain,
}


def _shape(hint: Any) -> str:
    """Return the storage form of a column of this type."""
    if hint is str or typing.get_origin(hint) is Literal:
        return "text"
    inner = typing.get_args(hint)[0] if typing.get_origin(hint) is tuple else None
    if inner is str:
        return "texts"
    return "table" if isinstance(inner, type) and issubclass(inner, msgspec.Struct) else "plain"


def _rows(columns: JsonObject, kind: type[msgspec.Struct], texts: list[str]) -> list[Any]:
    count = columns["rows"]
    if not count:
        return []
    hints = typing.get_type_hints(kind)
    unknown = columns.keys() - hints.keys() - {"rows", "counts"}
    if unknown:
        raise ValueError(f"written by a later version: unknown column {min(unknown)!r}")
    there = [name for name in hints if name in columns]
    values = [_values(columns[name], hints[name], texts) for name in there]
    for name, column in zip(there, values, strict=True):
        if len(column) != count:
            raise ValueError(f"no graph: column {name!r} has {len(column)} of {count} rows")
    return [kind(**dict(zip(there, row, strict=True))) for row in zip(*values, strict=True)]


def _values(column: Any, hint: Any, texts: list[str]) -> list[Any]:
    shape = _shape(hint)
    if shape == "text":
        values = [texts[place] for place in column]
        if hint is not str:
            msgspec.convert(sorted(set(values)), list[hint])
        return values
    if shape == "texts":
        seen: dict[tuple[int, ...], tuple[str, ...]] = {}
        return [
            seen.get(key := tuple(places)) or seen.setdefault(key, tuple(texts[place] for place in places))
            for places in column
        ]
    if shape == "table":
        rows = iter(_rows(column, typing.get_args(hint)[0], texts))
        return [tuple(islice(rows, count)) for count in column["counts"]]
    converted: list[Any] = msgspec.convert(column, list[hint])
    return converted

"""Values without children: what stands for them in the digest of foreign modules."""

import array
import datetime
import decimal
import io
import pathlib
import re
import types
from collections.abc import Callable
from typing import Any

_LONG = 200
"""Characters or bytes from which on a hash stands for a text."""


def _integer(value: int) -> Any:
    return value if value.bit_length() < 1024 else hex(value)


def _text(value: str | bytes) -> Any:
    return value if len(value) < _LONG else (len(value), hash(value))


def _constant(value: Any) -> Any:
    return id(value)


_LEAVES: dict[type, Callable[[Any], Any]] = {
    type(None): lambda value: value,
    bool: lambda value: value,
    int: _integer,
    float: lambda value: value,
    complex: lambda value: value,
    str: _text,
    bytes: _text,
    bytearray: lambda value: hash(bytes(value)),
    array.array: lambda value: hash(value.tobytes()),
    range: repr,
    datetime.date: datetime.date.isoformat,
    datetime.datetime: lambda value: value.replace(tzinfo=None).isoformat(),
    datetime.time: lambda value: value.replace(tzinfo=None).isoformat(),
    datetime.timedelta: lambda value: (value.days, value.seconds, value.microseconds),
    decimal.Decimal: str,
    io.StringIO: lambda value: None if value.closed else (value.tell(), _text(value.getvalue())),
    io.BytesIO: lambda value: None if value.closed else (value.tell(), _text(value.getvalue())),
    **dict.fromkeys((pathlib.PurePosixPath, pathlib.PureWindowsPath, pathlib.PosixPath), str),
    **dict.fromkeys(
        (
            datetime.timezone, re.Pattern, slice, type(...), type(NotImplemented), types.CodeType,
            types.GetSetDescriptorType, types.MemberDescriptorType, types.MethodDescriptorType,
            types.WrapperDescriptorType, types.ClassMethodDescriptorType, types.GenericAlias, types.UnionType,
        ),
        _constant,
    ),
}  # fmt: skip
LEAVES = {id(kind): reader for kind, reader in _LEAVES.items()}
"""Types without children, by identity, as looking for a class asks its metaclass for a hash. Their tokens compare by
value, or by identity where nothing in them can change."""

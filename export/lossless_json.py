"""JSON text that `datasets` reads back as exactly the same value.

`datasets` decodes its `Json` columns with pandas' ujson, which is off by one unit in the last place for some numbers:
`1.84` comes back as `1.8400000000000003`. An amount that a model is trained on, or that a replay compares, must not
drift. Nearly every such number has another spelling (`1.8400000000000001`) that ujson and every correct parser read
as the same float. Each value is therefore decoded once before it is written, and respelled where it drifted.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, TypeVar

import orjson

from trajsmith.records import JsonValue, RecordDropped

Decode = Callable[[str], Any]
SAME = 64
"""Lists that are known by identity at a time."""
Made = TypeVar("Made", str, list[str])


class LosslessEncoder:
    """Encodes values so that `decode` gives equal ones; what comes again (tools, initial states) is done once.

    Args:
        decode: The reader's decoding of one value.
        remembered: Bytes of JSON that are kept to be found again.
    """

    def __init__(self, decode: Decode, remembered: int = 4 << 20) -> None:
        self._decode = decode
        self._limit = remembered
        self._kept: dict[tuple[type, bytes], tuple[JsonValue, Any]] = {}
        """Type of the encoding and JSON to value and encoding: a list is one text, or a text for each item."""
        self._size = 0
        self._same: dict[int, tuple[Any, list[str]]] = {}
        """Lists that came again, by identity, with what was made of them: schemas of tools, in row after row."""

    def value(self, value: JsonValue) -> str:
        """As `encode`."""
        data = _dumps(value)
        text: str | None = self._get_cached(str, data, value)
        return self._keep(data, value, encode_lossless(value, self._decode)) if text is None else text

    def items(self, values: list[JsonValue]) -> list[str]:
        """Each value as JSON text; all are checked by one decoding, which is most of the cost.

        Raises:
            RecordDropped: As `encode`.
        """
        same = self._same.get(id(values))
        if same is not None and same[0] is values:
            return same[1]
        parts = [_dumps(value) for value in values]
        data = b"[" + b",".join(parts) + b"]"
        texts: list[str] | None = self._get_cached(list, data, values)
        if texts is not None:
            if len(self._same) >= SAME:
                self._same.clear()
            self._same[id(values)] = values, texts
            return texts
        exact = self._decode(data.decode()) == values
        encoded = [
            part.decode() if exact else encode_lossless(value, self._decode)
            for part, value in zip(parts, values, strict=True)
        ]
        return self._keep(data, values, encoded)

    def _get_cached(self, encoding: type, data: bytes, value: JsonValue) -> Any:
        """Return the cached encoding of an equal value; equal bytes are not enough, since NaN is written as null."""
        cached = self._kept.get((encoding, data))
        return cached[1] if cached is not None and cached[0] == value else None

    def _keep(self, data: bytes, value: JsonValue, encoded: Made) -> Made:
        self._size += 2 * len(data)
        if self._size > self._limit:
            self._kept.clear()
            self._same.clear()
            self._size = 2 * len(data)
        self._kept[type(encoded), data] = (value, encoded)
        return encoded


def encode_lossless(value: JsonValue, decode: Decode) -> str:
    """The value as JSON text that `decode` turns back into an equal value.

    Raises:
        RecordDropped: No spelling does (infinite or very rare numbers), or the value is no JSON.
    """
    text = _dumps(value).decode()
    if decode(text) == value:
        return text
    text = _dumps(_encode_respelled(value, decode)).decode()
    if decode(text) != value:
        raise RecordDropped("value_not_exact", "the value changes when datasets reads it back")
    return text


def _dumps(value: JsonValue) -> bytes:
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError) as error:
        raise RecordDropped("not_json", str(error)) from error


def _encode_respelled(value: JsonValue, decode: Decode) -> JsonValue:
    if isinstance(value, float):
        return orjson.Fragment(_find_spelling(value, decode))
    if isinstance(value, dict):
        return {key: _encode_respelled(inner, decode) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encode_respelled(inner, decode) for inner in value]
    return value


def _find_spelling(number: float, decode: Decode) -> str:
    for text in _iter_spellings(number):
        if float(text) == number and _decodes_to(decode, text, number):
            return text
    raise RecordDropped("number_not_exact", f"{number!r} changes when datasets reads it back")


def _decodes_to(decode: Decode, text: str, number: float) -> bool:
    try:
        read = decode(text)
    except ValueError:
        return False
    return isinstance(read, float) and read == number


def _iter_spellings(number: float) -> Iterator[str]:
    """Ways to write one float, the usual one first."""
    yield repr(number)
    if number != number or number in (float("inf"), float("-inf")):
        return
    for digits in (17, 18, 19, 20):
        yield f"{number:.{digits}g}"
    for digits in (16, 17, 18):
        yield f"{number:.{digits}e}"
    sign, figures, exponent = Decimal(repr(number)).as_tuple()
    mantissa = "".join(map(str, figures))
    minus = "-" * sign
    for zeros in range(8):
        yield f"{minus}{mantissa}{'0' * zeros}.0e{int(exponent) - zeros}"
    for point in range(1, len(mantissa)):
        yield f"{minus}{mantissa[:point]}.{mantissa[point:]}e{int(exponent) + len(mantissa) - point}"
    yield from _iter_nearby_decimals(number)


def _iter_nearby_decimals(number: float) -> Iterator[str]:
    """Decimals so near to the number that they round to it."""
    exact = Decimal(f"{number:.17e}")
    step = Decimal(1).scaleb(exact.adjusted() - 17)
    for offset in range(1, 12):
        yield f"{exact + offset * step}"
        yield f"{exact - offset * step}"

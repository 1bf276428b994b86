"""JSON text that `datasets` reads back as exactly the same value.

`datasets` decodes its `Json` columns with pandas' ujson, which is off by one unit in the last place for some numbers:
`1.84` comes back as `1.8400000000000003`. An amount that a model is trained on, or that a replay compares, must not
drift. Nearly every such number has another spelling (`1.8400000000000001`) that ujson and every correct parser read
as the same float. Each number is therefore decoded once before it is written, and respelled where it drifted.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import orjson

from trajsmith.records import JsonValue, RecordDropped

Decode = Callable[[str], Any]
EXACT_INTEGERS = 1 << 53
REMEMBERED_LISTS = 256
REMEMBERED_NUMBERS = 1 << 16


class LosslessEncoder:
    """Encodes values so that `decode` gives equal ones. Only numbers can drift: each is decoded once, texts never.

    Args:
        decode: The reader's decoding of one value.
    """

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._numbers: dict[float, bool] = {}
        """Number to whether its usual spelling comes back equal."""
        self._lists: dict[int, tuple[list[JsonValue], list[str]]] = {}
        """Lists by identity with what was made of them, the latest last: schemas of tools come in row after row."""

    def value(self, value: JsonValue) -> str:
        """Return the value as JSON text.

        Raises:
            RecordDropped: As `encode_lossless`.
        """
        data = _dumps(value)
        return data.decode() if self._is_exact(value) else encode_lossless(value, self._decode)

    def items(self, values: list[JsonValue]) -> list[str]:
        """Return each value as JSON text; nobody may change the list afterwards.

        Raises:
            RecordDropped: As `encode_lossless`.
        """
        known = self._lists.pop(id(values), None)
        if known is None or known[0] is not values:
            known = values, [self.value(value) for value in values]
            if len(self._lists) >= REMEMBERED_LISTS:
                del self._lists[next(iter(self._lists))]
        self._lists[id(values)] = known
        return known[1]

    def _is_exact(self, value: JsonValue) -> bool:
        """Return True if the usual JSON of a value comes back equal, which texts and small integers always do."""
        kind = type(value)
        if kind is str or value is None or kind is bool:
            return True
        if kind is dict or kind is list or kind is tuple:
            for inner in value.values() if kind is dict else value:
                if type(inner) is not str and not self._is_exact(inner):
                    return False
            return True
        if kind is int:
            return bool(-EXACT_INTEGERS < value < EXACT_INTEGERS)
        return kind is float and self._is_exact_number(value)

    def _is_exact_number(self, number: float) -> bool:
        exact = self._numbers.get(number)
        if exact is None:
            if len(self._numbers) >= REMEMBERED_NUMBERS:
                self._numbers.clear()
            text = orjson.dumps(number).decode()  # null for what is no number
            exact = self._numbers[number] = _decodes_to(self._decode, text, number)
        return exact


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

"""JSON text that `datasets` reads back as exactly the same value.

`datasets` decodes its `Json` columns with pandas' ujson, which is off by one unit in the last place for some numbers:
`1.84` comes back as `1.8400000000000003`. An amount that a model is trained on, or that a replay compares, must not
drift. Nearly every such number has another spelling (`1.8400000000000001`) that ujson and every correct parser read
as the same float. Each value is therefore decoded once before it is written, and respelled where it drifted.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import orjson

from trajectory import Dropped, JsonValue

Decode = Callable[[str], Any]


def encode(value: JsonValue, decode: Decode) -> str:
    """The value as JSON text that `decode` turns back into an equal value.

    Raises:
        Dropped: No spelling does (infinite or very rare numbers), or the value is no JSON.
    """
    try:
        text = orjson.dumps(value).decode()
        if decode(text) == value:
            return text
        text = orjson.dumps(_respelled(value, decode)).decode()
    except (TypeError, orjson.JSONEncodeError) as error:
        raise Dropped("not_json", str(error)) from error
    if decode(text) != value:
        raise Dropped("value_not_exact", "the value changes when datasets reads it back")
    return text


def _respelled(value: JsonValue, decode: Decode) -> JsonValue:
    if isinstance(value, float):
        return orjson.Fragment(_spelling(value, decode))
    if isinstance(value, dict):
        return {key: _respelled(inner, decode) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_respelled(inner, decode) for inner in value]
    return value


def _spelling(number: float, decode: Decode) -> str:
    for text in _spellings(number):
        if float(text) == number and _reads_as(decode, text, number):
            return text
    raise Dropped("number_not_exact", f"{number!r} changes when datasets reads it back")


def _reads_as(decode: Decode, text: str, number: float) -> bool:
    try:
        read = decode(text)
    except ValueError:
        return False
    return isinstance(read, float) and read == number


def _spellings(number: float) -> Iterator[str]:
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
    yield from _neighbours(number)


def _neighbours(number: float) -> Iterator[str]:
    """Decimals so near to the number that they round to it."""
    exact = Decimal(f"{number:.17e}")
    step = Decimal(1).scaleb(exact.adjusted() - 17)
    for offset in range(1, 12):
        yield f"{exact + offset * step}"
        yield f"{exact - offset * step}"

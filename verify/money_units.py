"""Amounts of money that are none: "you get back £63.80", where a result shows 63.8 gigabytes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from math import isclose
from typing import Any

import orjson

from trajsmith.phrasing import get_language
from trajsmith.records import Message
from trajsmith.verify.claim_support import MOST_QUANTITY, SupportTracker, read_content

_UNITS = frozenset({"gb", "mb", "tb", "minutes", "hours", "days", "degrees", "km", "kg", "kwh", "litres"})
"""Words in the names of fields that hold no money."""
_MONEY = frozenset({
    "price", "cost", "costs", "fee", "fees", "rate", "amount", "charge", "charges", "per", "fare", "value", "paid",
    "pay", "due", "bill", "refund", "deposit", "credit", "debit", "tariff", "tax", "wage", "salary", "rent", "total",
})  # fmt: skip
"""Words in the names of fields that hold money all the same: `price_per_gb`."""
_UNCLEAR = frozenset({"value", "due", "per", "total", "charge"})
"""Those of them that other fields have, too: `value`."""
_RATIOS = frozenset({"rate", "percent"})
"""Words in the names of fields that hold a share, if of money: `tax_rate`."""
_BALANCES = frozenset({"total", "balance", "available", "overdraft", "saved", "spent"})
"""Words in the names of fields that hold money where no unit is named: `balance`, but not `balance_gb`."""


def has_unit(name: str) -> bool:
    """Return True if the name of a field says that its numbers are no money."""
    words = _split(name)
    return not words.isdisjoint(_UNITS) and words.isdisjoint(_MONEY)


def has_money(name: str) -> bool:
    """Return True if the name of a field says that its numbers are money."""
    words = _split(name)
    if not words.isdisjoint(_RATIOS):
        return False
    unnamed = not words.isdisjoint(_BALANCES) and words.isdisjoint(_UNITS)
    return unnamed or not words.isdisjoint(_MONEY - _UNCLEAR)


def _split(name: str) -> set[str]:
    return set(name.lower().replace(" ", "_").split("_"))


def find_amounts_of_units(
    text: str, shown: Mapping[float, Collection[bool]], messages: Sequence[Message]
) -> Iterator[str]:
    """Yield the amounts of money in an answer that results show with another unit only.

    An amount that the user or a rule named, or that follows from amounts of money, is none of them.

    Args:
        text: The answer.
        shown: Numbers that results have shown, with whether their fields have units.
        messages: The dialogue before the answer.
    """
    for amount in get_language().grammar.find_amounts(text):
        if not amount.is_integer() and set(shown.get(amount, ())) == {True} and not _is_money(amount, shown, messages):
            yield f"{amount:.2f}"


def _is_money(amount: float, shown: Mapping[float, Collection[bool]], messages: Sequence[Message]) -> bool:
    """Return True if an amount follows from the dialogue without the numbers that have units, or by a price of them."""
    prices = [number for number, units in shown.items() if False in units]
    if any(isclose(price * number, amount, abs_tol=0.005) for price in prices for number in shown):
        return True
    tracker = SupportTracker()
    for message in messages:
        if message.shows_data:
            content = orjson.dumps(_drop_units(read_content(message.content))).decode()
            message = message.model_copy(update={"content": content})
        tracker.read(message)
    tracker.request = 0
    tracker.quantities |= set(range(2, MOST_QUANTITY + 1))
    return not tracker.find_unsupported(get_language().grammar.format_money(amount))


def _drop_units(value: Any) -> Any:
    """Return a result without the fields that hold no money."""
    if isinstance(value, dict):
        return {name: _drop_units(inner) for name, inner in value.items() if not has_unit(name)}
    return [_drop_units(inner) for inner in value] if isinstance(value, list) else value

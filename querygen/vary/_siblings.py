"""More rows for the lists that an agent reads: like those that are there, of the same owners, under other ids.

A state may hold thousands of rows that no call ever returns. What makes a context long is what the calls return.
"""

import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from string import digits
from typing import Any

from trajsmith.phrasing import parse_datetime
from trajsmith.records import JsonObject, JsonValue

NUMBER = 4
"""Digits from which on a text of digits is a number of its own, as of an account or a card."""
TRIES = 20
"""Draws of a row until its columns stand in the order that they have in all rows; then it keeps what it takes after."""
ROOM = 40
"""Numbers above the highest one that are left to the environment."""
SHORT = 3
"""Words of a text that is no more than a name."""
_DIGITS = re.compile(r"^((?:.*\D)?)(\d+)$", re.DOTALL)


def build_new_key(key: str, number: str) -> str:
    """Build a key in the same format: W1001 becomes W90000011001, W90000021001, ..."""
    match = _DIGITS.match(key)
    return f"{match[1]}{number}{match[2]}" if match else f"{key}-{number}"


def build_free_key(table: Mapping[str, JsonObject], key: str, number: int) -> str:
    """Build a key as the environment would, above those that are there and those that it gives next: W10082."""
    match = _DIGITS.match(key)
    if match is None:
        return f"{key}-{number + 1}"
    same = [other for other in map(_DIGITS.match, table) if other is not None and other[1] == match[1]]
    highest = max(int(other[2]) for other in same)
    return f"{match[1]}{highest + ROOM + number:0{len(match[2])}d}"


MOST_CHOICES = 8
"""Words from which on a column is free text."""


def build_adopted_rows(
    table: Mapping[str, JsonObject],
    listed: Sequence[str],
    like: str,
    fitting: Mapping[str, Collection[JsonValue]],
    count: int,
    rng: random.Random,
    apart: Sequence[str] = (),
) -> JsonObject:
    """Build new rows from rows of others, so that what belongs together in a row stays together.

    Args:
        table: The rows that are there.
        listed: Ids of rows that a list shows: what all of them share and others do not is the new rows', too.
        like: Id of the row that they take after.
        fitting: Column to the values that a row of others must have; what belongs to a status is never mixed.
        count: How many at most; each row of others is taken once.
        rng: Draws the rows of others.
        apart: Columns with the first day of a thing and the number of its days: no two of the list are on one day.
    """
    own = [table[key] for key in listed]
    shared = {
        name
        for name, value in table[like].items()
        if name not in fitting
        and all(row.get(name) == value for row in own)
        and any(row.get(name) != value for row in table.values())
    }
    others = [
        key
        for key in table
        if key not in listed and all(table[key].get(name) in values for name, values in fitting.items())
    ]
    taken = [_get_days(row, apart) for row in own]
    rows: JsonObject = {}
    for other in rng.sample(others, len(others)):
        days = _get_days(table[other], apart)
        if len(rows) == count or any(_overlap(days, one) for one in taken):
            continue
        taken.append(days)
        new = build_free_key(table, like, len(rows))
        row = {name: table[like][name] for name in table[like] if name in shared}
        rows[new] = _rename(table[other] | row, other, new)
    return rows


def _get_days(row: Mapping[str, Any], apart: Sequence[str]) -> range:
    """Return the days of a thing by their numbers; none where the row tells no day."""
    day = parse_datetime(row.get(apart[0])) if apart else None
    if day is None:
        return range(0)
    first = day.toordinal()
    return range(first, first + (int(row[apart[1]]) if len(apart) > 1 else 1))


def _overlap(one: range, other: range) -> bool:
    return bool(one) and bool(other) and one.start < other.stop and other.start < one.stop


def list_choice_columns(table: Mapping[str, JsonObject]) -> set[str]:
    """List the columns with one of a few words, such as a status: they often decide what an environment refuses."""
    columns = {name for row in table.values() for name in row}
    values = {name: {row.get(name) for row in table.values() if isinstance(row.get(name), str)} for name in columns}
    return {name for name, words in values.items() if 1 < len(words) <= MOST_CHOICES and 2 * len(words) < len(table)}


def _rename(value: Any, old: str, new: str) -> Any:
    """Put a key in the place of another one, and its number into ids that are made of it: L10001-1."""
    if isinstance(value, dict):
        return {name: _rename(inner, old, new) for name, inner in value.items()}
    if isinstance(value, list):
        return [_rename(inner, old, new) for inner in value]
    before, after = _DIGITS.match(old), _DIGITS.match(new)
    if not isinstance(value, str) or before is None or after is None:
        return value
    return new if value == old else re.sub(rf"(?<=^[A-Z]){before[2]}(?=-\d)", after[2], value)


def is_table(rows: JsonValue) -> bool:
    """True for objects by their ids, more than one."""
    return isinstance(rows, dict) and len(rows) > 1 and all(isinstance(row, dict) for row in rows.values())


def find_listed_rows(state: JsonObject, results: Sequence[JsonValue]) -> dict[str, list[str]]:
    """Return table to the ids of its rows that occur in a list of a result, for tables that lists are made of."""
    tables = {name: rows for name, rows in state.items() if is_table(rows)}
    rows_by_table: dict[str, list[str]] = {}
    for rows in (rows for result in results for rows in _iter_lists(result)):
        hits = Counter(
            (name, field)
            for row in rows
            for field, value in row.items()
            for name in tables
            if isinstance(value, str) and value in tables[name]
        )
        for (name, field), number in hits.most_common(1):
            ids = list(dict.fromkeys(str(row[field]) for row in rows))
            if number == len(rows) == len(ids):
                rows_by_table[name] = list(dict.fromkeys([*rows_by_table.get(name, ()), *ids]))
    return rows_by_table


def _iter_lists(result: JsonValue) -> Iterator[list[JsonObject]]:
    """Lists of at least two objects in a result."""
    if isinstance(result, dict):
        for value in result.values():
            yield from _iter_lists(value)
    elif isinstance(result, list):
        rows = [row for row in result if isinstance(row, dict)]
        if len(rows) == len(result) > 1:
            yield rows


def build_sibling_rows(
    table: Mapping[str, JsonObject], like: Sequence[str], count: int, rng: random.Random
) -> JsonObject:
    """Build new rows by their ids.

    Args:
        table: The rows that are there.
        like: Ids of the rows that they take after, in turn: what belongs to whom stays as it is there.
        count: How many.
        rng: Where values are drawn.
    """
    columns = {name: _column(table, name) for name in dict.fromkeys(name for row in table.values() for name in row)}
    order = _order(table, columns)
    rows: JsonObject = {}
    for number in range(count):
        key = like[number % len(like)]
        new = build_free_key(table, key, number)
        row = table[key]
        for _ in range(TRIES):
            drawn = {name: _draw_value(name, value, key, new, columns[name], rng) for name, value in row.items()}
            if all(_in_order(drawn, first, second) for first, second in order):
                break
        else:
            drawn |= {name: row[name] for pair in order for name in pair if name in row}
        rows[new] = drawn
    return rows


def _order(table: Mapping[str, JsonObject], columns: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of columns of which the first is never above the second: saved and target, start and end."""
    pairs = permutations(columns, 2)
    return [
        pair
        for pair in pairs
        if all(_in_order(row, *pair) for row in table.values())
        and any(_comparable(row.get(pair[0]), row.get(pair[1])) for row in table.values())
    ]


def _in_order(row: Mapping[str, Any], first: str, second: str) -> bool:
    one: Any = row.get(first)
    other: Any = row.get(second)
    return not _comparable(one, other) or one <= other


def _comparable(one: Any, other: Any) -> bool:
    """True for two numbers, and for two days or moments, whose texts of one form are in the order of time."""
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    if isinstance(one, int | float) and isinstance(other, int | float):
        return True
    return parse_datetime(one) is not None and parse_datetime(other) is not None and len(one) == len(other)


def _column(table: Mapping[str, JsonObject], name: str) -> list[Any]:
    """The different values of a column, in order where they have one."""
    values = list({repr(row[name]): row[name] for row in table.values() if name in row}.values())
    try:
        return sorted(values)
    except TypeError:
        return values


def _draw_value(name: str, value: Any, key: str, new: str, column: Sequence[Any], rng: random.Random) -> Any:
    """A value for a column: of the other rows, never the largest or smallest, and no text that another row has."""
    if value == key:
        return new
    if isinstance(value, bool) or value is None or isinstance(value, dict | list) or name.endswith("_id"):
        return value
    if isinstance(value, int | float) or parse_datetime(value) is not None:
        inner = column[1:-1]
        return rng.choice(inner) if inner and all(type(other) is type(value) for other in inner) else value
    if value.isdigit() and len(value) >= NUMBER:
        return value[0] + "".join(rng.choice(digits) for _ in value[1:])
    return _mix_texts(value, column, rng) if " " in value.strip() else value


def _mix_texts(value: str, column: Sequence[Any], rng: random.Random) -> str:
    """Words of two texts of the column, put together so that no row has it yet; the text itself if none comes out.

    A long text speaks of other things ("double room at the Harbour Inn"), so that it keeps all but its first word.
    """
    others, own = [other for other in column if isinstance(other, str) and " " in other], value.split()
    for _ in range(8):
        first, second = rng.choice(others).split(), rng.choice(others).split()
        mixed = [*first[: max(1, len(first) - 1)], *second[-1:]] if len(own) <= SHORT else [first[0], *own[1:]]
        text = " ".join(mixed)
        if text not in column:
            return text
    return value

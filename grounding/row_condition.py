"""Choice of things by fields of the rows that they stand in, as a scenario asks: only pending orders, for example."""

from collections.abc import Container, Mapping
from datetime import date, datetime
from typing import Any

from trajsmith.grounding.paths import PathMatch, find_values, get_value, iterate_nodes
from trajsmith.phrasing import parse_datetime, shift_within_calendar


class RowCondition:
    """Test of rows; remembers which fields were there to be tested.

    Args:
        where: Field to the values that it may have; of a moment its day may stand there.
    """

    def __init__(self, where: Mapping[str, Container[Any]]) -> None:
        self.where = where
        self.seen: set[str] = set()
        """Fields that stood in some row."""

    def applies(self, result: Any, path: str) -> bool:
        """Return whether a row around the values at a path has one of the fields."""
        fields = {
            field
            for match in find_values(result, path)
            for row in _rows_around(result, match)
            for field in self.where
            if get_value(row, field) is not None
        }
        self.seen |= fields
        return bool(fields)

    @property
    def unseen(self) -> list[str]:
        """Fields that stood in no row so far."""
        return [field for field in self.where if field not in self.seen]

    def matches_result(self, result: Any) -> bool:
        """Return whether a result has a row, or is one, with allowed values in the fields that no row had so far."""
        rows = (node for _, node in iterate_nodes(result, deepest=3) if isinstance(node, dict))
        return any(all(_fits(get_value(row, field), self.where[field]) for field in self.unseen) for row in rows)

    def keeps(self, result: Any, match: PathMatch) -> bool:
        """Return whether the rows around a value have allowed values in all fields that they have."""
        for field, allowed in self.where.items():
            values = [value for row in _rows_around(result, match) if (value := get_value(row, field)) is not None]
            if any(not _fits(value, allowed) for value in values):
                return False
        return True


class DaysBefore:
    """Container of the days that lie back so many days at least."""

    def __init__(self, today: date, days: int) -> None:
        self.latest = shift_within_calendar(today, -days)

    def __contains__(self, value: object) -> bool:
        moment = parse_datetime(value)
        day = moment.date() if isinstance(moment, datetime) else moment
        return day is not None and day <= self.latest


class DaysBetween:
    """Container of the days that lie `first` to `last` days after today; negative numbers are days before it."""

    def __init__(self, today: date, first: int, last: int) -> None:
        self.today, self.first, self.last = today, first, last

    def __contains__(self, value: object) -> bool:
        moment = parse_datetime(value)
        day = moment.date() if isinstance(moment, datetime) else moment
        return day is not None and self.first <= (day - self.today).days <= self.last


class AtMost:
    """Container of the numbers up to a limit."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and value <= self.limit


class AtLeast:
    """Container of the numbers from a limit on."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and value >= self.limit


def _fits(value: Any, allowed: Container[Any]) -> bool:
    return value in allowed or (isinstance(parse_datetime(value), datetime) and value[:10] in allowed)


def _rows_around(result: Any, match: PathMatch) -> list[Any]:
    """The rows of the lists on the way to a value; of a value that is in no list, the result itself."""
    return [level.row for level in match.levels] or [result]

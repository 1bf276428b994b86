"""Choice of things by fields of the rows that they stand in, as a scenario asks: only pending orders, for example."""

from collections.abc import Mapping, Sequence
from typing import Any

from trajsmith.grounding.paths import PathMatch, find_values, get_value, iterate_nodes
from trajsmith.records import JsonValue


class RowCondition:
    """Test of rows; remembers which fields were there to be tested.

    Args:
        where: Field to the values that it may have.
    """

    def __init__(self, where: Mapping[str, Sequence[JsonValue]]) -> None:
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
        return any(all(get_value(row, field) in self.where[field] for field in self.unseen) for row in rows)

    def keeps(self, result: Any, match: PathMatch) -> bool:
        """Return whether the rows around a value have allowed values in all fields that they have."""
        for field, allowed in self.where.items():
            values = [value for row in _rows_around(result, match) if (value := get_value(row, field)) is not None]
            if any(value not in allowed for value in values):
                return False
        return True


def _rows_around(result: Any, match: PathMatch) -> list[Any]:
    """The rows of the lists on the way to a value; of a value that is in no list, the result itself."""
    return [level.row for level in match.levels] or [result]

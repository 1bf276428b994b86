"""Records as lines that are passed on unread: the process that works on a record parses it, not the one that reads it.

A driver needs the id, the seed and the task of a record; validation and the comparison of its hash happen in `load`.
"""

from dataclasses import dataclass
from typing import Any

import orjson

from trajsmith.records import InputError, Record


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One line of a record file."""

    model: type[Record]
    line: bytes
    where: str
    """File and line, for errors."""
    id: str
    task_id: str = ""
    seed: int = 0

    def load(self) -> Record:
        """Parse the line.

        Raises:
            InputError: It is no record of its kind, or was changed by hand.
        """
        return self.model.from_line(self.line, self.where)


class RawReader:
    """Reads lines of one kind of record as `RawRecord`; stands where `read_records` wants a model."""

    def __init__(self, model: type[Record]) -> None:
        self.model = model

    def from_line(self, line: bytes | str, where: str = "record") -> RawRecord:
        """Read the heads of one line.

        Raises:
            InputError: It is no JSON object with an id.
        """
        data = line.encode() if isinstance(line, str) else line
        try:
            content = orjson.loads(data)
            name, task, seed = content["id"], content.get("task_id", ""), content.get("seed", 0)
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{where}: not a record: {error}") from error
        return RawRecord(self.model, data, where, name, task, seed)


@dataclass(frozen=True, slots=True)
class SerializedRecord:
    """A record that another process made, as the line that is written."""

    id: str
    line: bytes

    def to_line(self) -> bytes:
        """Return the line, newline included."""
        return self.line


def load_item(item: Any) -> Any:
    """Parse all raw records of an input, which may stand in tuples; everything else stays."""
    if isinstance(item, RawRecord):
        return item.load()
    if isinstance(item, tuple):
        return tuple(load_item(part) for part in item)
    return item


def name_item(item: Any) -> str:
    """Return the id of an input, of a tuple that of its first record."""
    return name_item(item[0]) if isinstance(item, tuple) else str(item.id)

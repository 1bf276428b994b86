"""Base of all records: frozen, closed, named by their content."""

from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from trajsmith.records.canonical import JsonObject, content_hash
from trajsmith.records.errors import InputError

Stored = TypeVar("Stored", bound=BaseModel)


class FrozenModel(BaseModel):
    """A value inside a record: immutable, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


class Record(FrozenModel):
    """A line of a JSON Lines file. `id` is a prefix plus a hash of the content without volatile fields.

    Leave `id` empty when you make a record; it is filled in. Read back, it is compared with the content of its line.
    """

    PREFIX: ClassVar[str]
    VOLATILE: ClassVar[frozenset[str]] = frozenset()

    id: str = ""

    @model_validator(mode="after")
    def _fill_id(self) -> Self:
        if not self.id:
            object.__setattr__(self, "id", self.content_id())
        return self

    def content_id(self) -> str:
        """The id that this content must have."""
        content = self.model_dump(mode="json", exclude={"id", *self.VOLATILE}, exclude_none=True)
        return f"{self.PREFIX}_{content_hash(content, 16)}"

    def to_line(self) -> bytes:
        """The record as one line of JSON, newline included; the same content gives the same bytes."""
        return orjson.dumps(self.model_dump(mode="json", exclude_none=True), option=orjson.OPT_APPEND_NEWLINE)

    @classmethod
    def from_line(cls, line: bytes | str, where: str = "record") -> Self:
        """Read one line.

        Raises:
            InputError: The line is no JSON or no record of this kind, or its content was changed after it got its id;
                the text names `where` and the first fault.
        """
        try:
            content = orjson.loads(line)
            record = cls.model_validate(content)
        except orjson.JSONDecodeError as error:
            raise InputError(f"{where}: (top): Invalid JSON: {error}") from error
        except ValidationError as error:
            raise InputError(f"{where}: {format_first_error(error)}") from error
        if cls.compute_id(content) != record.id:
            raise InputError(
                f"{where}: changed by hand: its content is not what {record.id} was made of; put back what stood "
                "there, or start anew with --fresh"
            )
        return record

    @classmethod
    def compute_id(cls, content: JsonObject) -> str:
        """Return the id that the content of a line must have, also of a record of another version with other fields."""
        named = {key: value for key, value in content.items() if key != "id" and key not in cls.VOLATILE}
        return f"{cls.PREFIX}_{content_hash(named, 16)}"


def read_stored(path: Path, model: type[Stored]) -> Stored:
    """Read a JSON file of this program as a model.

    Raises:
        InputError: It cannot be read, or is not what the program wrote.
    """
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise InputError(f"{path} was changed: {format_first_error(error)}") from error


def check_order(limits: tuple[int, int]) -> tuple[int, int]:
    """Return two limits of a setting as they are.

    Raises:
        ValueError: The first is larger than the second.
    """
    if limits[0] > limits[1]:
        raise ValueError(f"it goes from {limits[0]} to {limits[1]}: the smaller number comes first")
    return limits


def format_first_error(error: ValidationError) -> str:
    """The first fault of a validation as `path: message`, short enough for one line."""
    fault: Any = error.errors(include_url=False)[0]
    path = ".".join(str(part) for part in fault["loc"]) or "(top)"
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{path}: {fault['msg']}{more}"

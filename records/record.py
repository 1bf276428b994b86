"""Base of all records: frozen, closed, named by their content."""

from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from trajsmith.records.canonical import JsonObject, content_hash, hash_bytes
from trajsmith.records.errors import InputError

Stored = TypeVar("Stored", bound=BaseModel)
_CHECKSUM = b',"checksum":"'
"""Between the content of a line and its checksum, which ends the line."""
_DIGITS = 16


class FrozenModel(BaseModel):
    """A value inside a record: immutable, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


class Record(FrozenModel):
    """A line of a JSON Lines file. `id` is a prefix plus a hash of the content without volatile fields.

    Leave `id` empty when you make a record; it is filled in. A line ends with a checksum of its bytes. Where it is not
    there, or is that of other bytes, the id of the content is computed and compared when the line is read.
    """

    PREFIX: ClassVar[str]
    VOLATILE: ClassVar[frozenset[str]] = frozenset()

    id: str = ""

    @model_validator(mode="before")
    @classmethod
    def _leave_out_checksum(cls, content: Any) -> Any:
        """Take the JSON of a line as it is; only `from_line` compares its checksum."""
        if isinstance(content, dict) and "checksum" in content:
            return {key: value for key, value in content.items() if key != "checksum"}
        return content

    @model_validator(mode="after")
    def _fill_id(self) -> Self:
        if not self.id:
            object.__setattr__(self, "id", self.content_id())
        return self

    def content_id(self) -> str:
        """The id that this content must have."""
        content = self.model_dump(mode="json", exclude={"id", *self.VOLATILE}, exclude_none=True)
        return f"{self.PREFIX}_{content_hash(content, 16)}"

    def to_json(self) -> bytes:
        """The record as JSON; the same content gives the same bytes."""
        return orjson.dumps(self.model_dump(mode="json", exclude_none=True))

    def to_line(self) -> bytes:
        """The record as one line of a file, checksum and newline included."""
        return add_checksum(self.to_json())

    @classmethod
    def from_line(cls, line: bytes | str, where: str = "record") -> Self:
        """Read one line.

        Raises:
            InputError: The line is no JSON or no record of this kind, or its content was changed after it got its id;
                the text names `where` and the first fault.
        """
        written = strip_checksum(line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line)
        try:
            content = orjson.loads(line if written is None else written)
            record = cls.model_validate(content)
        except orjson.JSONDecodeError as error:
            raise InputError(f"{where}: (top): Invalid JSON: {error}") from error
        except ValidationError as error:
            raise InputError(f"{where}: {format_first_error(error)}") from error
        if written is None and cls.compute_id(content) != record.id:
            raise InputError(
                f"{where}: changed by hand: its content is not what {record.id} was made of; put back what stood "
                "there, or start anew with --fresh"
            )
        return record

    @classmethod
    def compute_id(cls, content: JsonObject) -> str:
        """Return the id that the content of a line must have, also of a record of another version with other fields."""
        unnamed = {"id", "checksum", *cls.VOLATILE}
        named = {key: value for key, value in content.items() if key not in unnamed}
        return f"{cls.PREFIX}_{content_hash(named, 16)}"


def add_checksum(content: bytes) -> bytes:
    """Return the line for a JSON object, with its checksum as the last key: it is compared before a line is parsed."""
    return b'%b%b%b"}\n' % (content[:-1], _CHECKSUM, hash_bytes(content, _DIGITS).encode())


def strip_checksum(line: bytes) -> bytes | None:
    """Return the JSON object that a line was made of; None if no checksum, or that of other bytes, ends the line."""
    start = line.rfind(_CHECKSUM)
    if start < 0:
        return None
    content = line[:start] + b"}"
    return content if line[start:].rstrip() == b'%b%b"}' % (_CHECKSUM, hash_bytes(content, _DIGITS).encode()) else None


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

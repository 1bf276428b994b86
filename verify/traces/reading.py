"""Reading files of recorded dialogues: the format is recognised, every dialogue is read or dropped with a reason."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson

from trajsmith.records import InputError, JsonObject, RecordDropped, TraceDialogue, to_one_line
from trajsmith.verify.traces import atif, bfcl, hub_traces, openai, otel, responses, sharegpt, tau2, taubench

FORMATS: dict[str, ModuleType] = {
    module.NAME: module for module in (tau2, taubench, atif, hub_traces, otel, responses, openai, sharegpt, bfcl)
}


def read_dialogues(
    path: Path, name: str = "auto", tasks: Path | None = None, needs_user: bool = True
) -> Iterator[tuple[str, TraceDialogue | RecordDropped]]:
    """All dialogues of a file, by a name for each that is the same every time.

    Args:
        path: JSON or JSON Lines.
        name: One of `FORMATS`, or "auto".
        tasks: File with what the results leave out, joined by id (BFCL: the questions).
        needs_user: Drop dialogues in which no user speaks.

    Raises:
        InputError: The file cannot be read, or is in none of the formats.
    """
    documents = load_documents(path)
    module = _find_format(path, documents, name)
    extra = _index_by_id(tasks) if tasks is not None else {}
    if module in (hub_traces, otel) and not isinstance(documents[0], list):
        documents = [documents]  # the lines of one session, or the spans of one conversation, belong together
    number = 0
    for document in documents:
        if isinstance(document, RecordDropped):
            yield f"{path.name}#{number}", document
            number += 1
            continue
        for value in _split(module, document):
            if isinstance(value, RecordDropped):
                yield f"{path.name}#{number}", value
            else:
                yield f"{path.name}#{number}", _read(module, value, path.name, number, extra, needs_user)
            number += 1


def _split(module: ModuleType, document: Any) -> Iterator[Any]:
    """Yield the dialogues of a document of a format; a drop for what is none of that format."""
    if not isinstance(document, list | dict):
        yield RecordDropped("unreadable", f"a dialogue is an object, not {to_one_line(document, 40)}")
        return
    try:
        yield from module.split(document)
    except (AttributeError, KeyError, TypeError) as error:
        yield RecordDropped("unreadable", f"{type(error).__name__}: {error}")


def _read(
    module: ModuleType, value: Any, file: str, number: int, extra: dict[str, JsonObject], needs_user: bool
) -> TraceDialogue | RecordDropped:
    if extra and isinstance(value, dict):
        value = {**extra.get(str(value.get("id")), {}), **value}
    try:
        dialogue: TraceDialogue = module.read(value, file, number)
    except RecordDropped as drop:
        return drop
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return RecordDropped("unreadable", f"{type(error).__name__}: {error}")
    if needs_user and not any(message.role == "user" for message in dialogue.messages):
        return RecordDropped("no_user_message", "")
    return dialogue


def load_documents(path: Path) -> list[Any]:
    """The JSON values of a file: one of a JSON file, one a line of JSON Lines; broken lines as drops."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        return [orjson.loads(data)]
    except orjson.JSONDecodeError as error:
        lines = [line for line in data.splitlines() if line.strip()]
        first = _line(lines[0], 1) if lines else RecordDropped("not_json", "")
        if isinstance(first, RecordDropped):
            raise InputError(f"{path}: neither JSON nor JSON Lines: line {error.lineno}: {error.msg}") from error
    return [_line(line, number) for number, line in enumerate(lines, 1)]


def _line(line: bytes, number: int) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return RecordDropped("not_json", f"line {number}: {error.msg}")


def _find_format(path: Path, documents: list[Any], name: str) -> ModuleType:
    if name != "auto":
        if name not in FORMATS:
            raise InputError(f"unknown format {name!r}: one of {', '.join(sorted(FORMATS))}")
        return FORMATS[name]
    first = next((document for document in documents if not isinstance(document, RecordDropped)), None)
    for module in FORMATS.values():
        if module.fits(first) or (isinstance(first, list) and first and module.fits(first[0])):
            return module
    raise InputError(f"{path}: none of the known formats ({', '.join(sorted(FORMATS))}): say which one with --format")


def _index_by_id(path: Path) -> dict[str, JsonObject]:
    rows = [
        row for document in load_documents(path) for row in (document if isinstance(document, list) else [document])
    ]
    rows_by_id = {str(row["id"]): row for row in rows if isinstance(row, dict) and "id" in row}
    if not rows_by_id:
        raise InputError(f"{path}: no rows with an id")
    return rows_by_id

"""Recorded conversations, as far as value flow needs them: what the user said and which calls were made, in order.

Read are OpenAI-messages conversations (a JSON Lines file, or a JSON list, of objects with `messages`; the records of a
run's trajectories.jsonl are such), executed calls with the user's text (`calls` beside `user_text` or `user_turns`),
and files of simulations (`simulations` with `messages`, `tasks` with their scenarios).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from trajsmith.records import InputError, JsonObject, JsonValue


@dataclass(frozen=True)
class RecordedCall:
    """One call that was made, with what it gave."""

    tool: str
    """Plain or full name."""
    server: str
    """"" where the record does not say."""
    arguments: JsonObject
    output: JsonValue
    ok: bool
    probed: bool = False
    """A look-up that nobody made: it was tried afterwards, at this point of the conversation."""


@dataclass(frozen=True)
class Recording:
    """One conversation, or one executed task."""

    task: str
    """What it is about: conversations of one task are no independent witnesses."""
    steps: tuple[str | RecordedCall, ...]
    """What the user said, and the calls, in order."""
    state: str = ""
    """The initial state as JSON text, where the record has it."""


def read_recordings(path: Path) -> list[Recording]:
    """All conversations of a file.

    Raises:
        InputError: The file is missing, no JSON, or a line is no conversation; the text names the line.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"recorded calls {path}: {error.strerror}") from error
    return [parse_recording(row, number, f"{path}:{number}") for number, row in enumerate(_rows(data, path), 1)]


def _rows(data: bytes, path: Path) -> Iterator[Any]:
    """Lines, or the items of one JSON document."""
    if data.lstrip()[:1] in (b"[", b"{"):
        try:
            whole = orjson.loads(data)
        except orjson.JSONDecodeError:
            yield from _lines(data, path)
            return
        yield from _items(whole)
    else:
        yield from _lines(data, path)


def _items(whole: Any) -> Iterable[Any]:
    if isinstance(whole, dict) and isinstance(whole.get("simulations"), list):
        scenarios = {str(task.get("id")): task.get("user_scenario") for task in whole.get("tasks", ())}
        return [{**one, "user_text": _text(scenarios.get(str(one.get("task_id"))))} for one in whole["simulations"]]
    return whole if isinstance(whole, list) else [whole]


def _lines(data: bytes, path: Path) -> Iterator[Any]:
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            try:
                yield orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise InputError(f"{path}:{number}: not JSON: {error}") from error


def parse_recording(row: Any, number: int, where: str) -> Recording:
    """One conversation of a file; `number` names its task if nothing else does.

    Raises:
        InputError: It is none; the text begins with `where`.
    """
    if isinstance(row, list):
        row = {"messages": row}
    if not isinstance(row, dict):
        raise InputError(f"{where}: no conversation: expected an object with `messages` or `calls`")
    task = str(row.get("task_id") or row.get("task") or row.get("id") or number)
    user_text = _text(row.get("user_text"))
    if isinstance(row.get("messages"), list):
        steps = tuple(_from_messages(row["messages"]))
    elif isinstance(row.get("calls"), list):
        steps = tuple(_from_calls(row["calls"], row.get("user_turns") or ()))
    else:
        raise InputError(f"{where}: no conversation: it has neither `messages` nor `calls`")
    state = row.get("initial_config") or row.get("initial_state")
    return Recording(task, ((user_text,) if user_text else ()) + steps, _text(state) if isinstance(state, dict) else "")


def read_initial_state(recording: Recording) -> JsonObject | None:
    """The initial state that a recording names, if it is an object."""
    try:
        state = orjson.loads(recording.state)
    except orjson.JSONDecodeError:
        return None
    return state if isinstance(state, dict) else None


def _text(value: Any) -> str:
    """All of a value as text; scenarios are nested objects."""
    if value is None or isinstance(value, str):
        return value or ""
    return orjson.dumps(value).decode()


def _from_calls(calls: list[JsonObject], turns: Any) -> Iterator[str | RecordedCall]:
    spoken_turns = 0
    for call in calls:
        while spoken_turns <= call.get("turn", -1) and spoken_turns < len(turns):
            yield _text(turns[spoken_turns])
            spoken_turns += 1
        yield RecordedCall(
            str(call.get("tool")),
            str(call.get("server") or ""),
            call.get("arguments") or {},
            call.get("output"),
            call.get("error") is None,
        )


def _from_messages(messages: list[JsonObject]) -> Iterator[str | RecordedCall]:
    open_calls: dict[str, tuple[str, JsonObject]] = {}
    for message in messages:
        role = message.get("role")
        if role == "user":
            yield _text(message.get("content"))
        for call in message.get("tool_calls") or ():
            function = call.get("function") or call
            open_calls[str(call.get("id"))] = (str(function.get("name")), _object(function.get("arguments")))
        if role == "tool":
            identity = str(message.get("tool_call_id") or message.get("id"))
            if identity in open_calls:
                name, arguments = open_calls.pop(identity)
                output, ok = _result(message.get("content"))
                yield RecordedCall(name, "", arguments, output, ok and message.get("error") is not True)


def _object(value: Any) -> JsonObject:
    """Arguments, which are JSON text on the wire and objects in our records."""
    parsed = _json(value) if isinstance(value, str) else value
    return parsed if isinstance(parsed, dict) else {}


def _result(content: Any) -> tuple[JsonValue, bool]:
    """Return the content of a tool message, and if it is a result rather than a refusal."""
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    value = _json(content) if isinstance(content, str) else content
    refused = (isinstance(value, dict) and value.keys() == {"error"}) or (
        isinstance(value, str) and value.lower().startswith("error")
    )
    return value, not refused


def _json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text

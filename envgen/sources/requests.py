"""Users' requests from a file of tasks: JSON Lines, or one JSON list, in the usual shapes."""

from pathlib import Path
from typing import Any

from envgen.generate.blueprint import LeftOut
from environments.reading import read_json
from trajectory import InputError

FIELDS = ("query", "request", "task", "instruction", "text", "user_request", "user_query", "user_text", "question")
"""Where a request may stand, the likeliest first."""
TALKS = ("messages", "conversations", "conversation", "dialogue", "turns", "question", "input")
"""Where a list of messages may stand; its first one by the user counts."""
_WORDS = ("content", "value", "text")
LONGEST = 2000
"""Letters of a request that are kept."""


def read_requests(path: Path) -> tuple[list[str], list[LeftOut]]:
    """The requests of a file, and the lines that hold none.

    Raises:
        InputError: It cannot be read, is no JSON, has another shape, or holds no request.
    """
    lines = read_json(path)
    if not isinstance(lines, list):
        raise InputError(f"{path}: a task set is JSON Lines, or a JSON list, with one request each")
    if not lines:
        raise InputError(f'{path}: it is empty; each line needs a request, for example {{"query": "..."}}')
    found, left_out = list[str](), list[LeftOut]()
    for number, line in enumerate(lines, 1):
        text = request_of(line)
        if text:
            found.append(text[:LONGEST])
        else:
            left_out.append(LeftOut(what=f"line {number}", reason="no request in it"))
    if not found:
        raise InputError(f"{path}: no request in any of {len(lines)} lines; each needs one of {', '.join(FIELDS)}")
    return found, left_out


def request_of(line: Any) -> str:
    """What a user asks for in one line of a task set; empty if nothing is said."""
    if isinstance(line, str):
        return _tidy(line)
    if not isinstance(line, dict):
        return ""
    for field in FIELDS:
        if isinstance(line.get(field), str) and line[field].strip():
            return _tidy(line[field])
    talks = (first_words(line[field]) for field in TALKS if isinstance(line.get(field), list))
    return next(filter(None, talks), "")


def first_words(messages: list[Any]) -> str:
    """What the user says first in a list of messages, or of turns that are such lists."""
    for message in messages:
        if isinstance(message, list):
            said = first_words(message)
            if said:
                return said
        if not isinstance(message, dict):
            continue
        who = str(message.get("role") or message.get("from") or "user").lower()
        said = next((message[key] for key in _WORDS if isinstance(message.get(key), str)), "")
        if who in ("user", "human") and said.strip():
            return _tidy(said)
    return ""


def _tidy(text: str) -> str:
    return " ".join(text.split())

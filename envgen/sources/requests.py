"""Users' requests from a file of tasks: JSON Lines, or one JSON list, in the usual shapes."""

from pathlib import Path
from typing import Any

from trajsmith.envgen.generate.blueprint import SkippedItem
from trajsmith.environments.file_reading import read_json
from trajsmith.records import InputError

REQUEST_FIELDS = (
    "query",
    "request",
    "task",
    "instruction",
    "text",
    "user_request",
    "user_query",
    "user_text",
    "question",
)
"""Where a request may stand, the likeliest first."""
CONVERSATION_FIELDS = ("messages", "conversations", "conversation", "dialogue", "turns", "question", "input")
"""Where a list of messages may stand; its first one by the user counts."""
_WORDS = ("content", "value", "text")
MAX_REQUEST_CHARACTERS = 2000
"""Letters of a request that are kept."""


def read_requests(path: Path) -> tuple[list[str], list[SkippedItem]]:
    """Return the requests of a file, and the lines that hold none.

    Raises:
        InputError: It cannot be read, is no JSON, has another shape, or holds no request.
    """
    lines = read_json(path)
    if not isinstance(lines, list):
        raise InputError(f"{path}: a task set is JSON Lines, or a JSON list, with one request each")
    if not lines:
        raise InputError(f'{path}: it is empty; each line needs a request, for example {{"query": "..."}}')
    requests, left_out = list[str](), list[SkippedItem]()
    for number, line in enumerate(lines, 1):
        text = extract_request(line)
        if text:
            requests.append(text[:MAX_REQUEST_CHARACTERS])
        else:
            left_out.append(SkippedItem(what=f"line {number}", reason="no request in it"))
    if not requests:
        raise InputError(
            f"{path}: no request in any of {len(lines)} lines; each needs one of {', '.join(REQUEST_FIELDS)}"
        )
    return requests, left_out


def extract_request(line: Any) -> str:
    """Return the user's request in one line of a task set; empty if there is none."""
    if isinstance(line, str):
        return _normalize_whitespace(line)
    if not isinstance(line, dict):
        return ""
    for field in REQUEST_FIELDS:
        if isinstance(line.get(field), str) and line[field].strip():
            return _normalize_whitespace(line[field])
    talks = (find_first_user_message(line[field]) for field in CONVERSATION_FIELDS if isinstance(line.get(field), list))
    return next(filter(None, talks), "")


def find_first_user_message(messages: list[Any]) -> str:
    """Return the first user message in a list of messages, or of turns that are such lists."""
    for message in messages:
        if isinstance(message, list):
            text = find_first_user_message(message)
            if text:
                return text
        if not isinstance(message, dict):
            continue
        who = str(message.get("role") or message.get("from") or "user").lower()
        text = next((message[key] for key in _WORDS if isinstance(message.get(key), str)), "")
        if who in ("user", "human") and text.strip():
            return _normalize_whitespace(text)
    return ""


def _normalize_whitespace(text: str) -> str:
    return " ".join(text.split())

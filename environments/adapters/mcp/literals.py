"""Results that are texts of Python lists and dicts, as servers give that return `str(rows)`."""

import ast

import orjson

from trajsmith.environments.json_data import NotJsonError, to_exact_json
from trajsmith.records import JsonValue

_LONGEST = 200_000
"""Characters of a text that is read as a Python literal."""


def parse_literal(text: str) -> JsonValue:
    """Return the list or dict of which a text is the Python literal, where it is one of JSON values; else the text."""
    if text[:1] not in ("[", "{") or len(text) > _LONGEST:
        return text
    try:
        parsed = ast.literal_eval(text)
        return to_exact_json(parsed) if isinstance(parsed, dict | list) else text
    except (ValueError, SyntaxError, MemoryError, RecursionError, NotJsonError):
        return text


def unwrap_data(content: JsonValue) -> JsonValue:
    """Return the data of which FastMCP wraps the JSON or Python text as `{"result": ...}`; else the content."""
    if not isinstance(content, dict) or content.keys() != {"result"} or not isinstance(content["result"], str):
        return content
    text = content["result"]
    try:
        parsed = orjson.loads(text)
    except orjson.JSONDecodeError:
        parsed = parse_literal(text)
    return parsed if isinstance(parsed, dict | list) else content

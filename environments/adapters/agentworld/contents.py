"""Data files as JSON, and back: what the state of a directory is made of.

A JSON file is its value, a CSV file a list of objects by its header, every other file its text. What these forms cannot
give back - a file that does not parse, a CSV file without rows or with uneven ones - is {"$text": the text}.
"""

import csv
import io
from typing import Any

import orjson

from trajsmith.environments.json_data import NotJsonError, to_exact_json
from trajsmith.records import JsonValue

TEXT = "$text"


def parse_content(name: str, text: str) -> JsonValue:
    """Parse a file's text into JSON content."""
    if name.endswith(".json"):
        return _json(text)
    return _table(text) if name.endswith(".csv") else text


def render_content(name: str, content: JsonValue) -> str:
    """The text of a file with this content.

    Raises:
        ValueError: No file of this name can have it.
    """
    if isinstance(content, dict) and content.keys() == {TEXT} and isinstance(content[TEXT], str):
        return str(content[TEXT])
    if name.endswith(".json"):
        return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()
    if isinstance(content, str):
        return content
    if not name.endswith(".csv"):
        raise ValueError(f"the content of {name} must be text")
    return _rows(name, content)


def _json(text: str) -> JsonValue:
    try:
        value = to_exact_json(orjson.loads(text))
    except (orjson.JSONDecodeError, NotJsonError):
        return {TEXT: text}
    return {TEXT: text} if isinstance(value, dict) and value.keys() == {TEXT} else value


def _table(text: str) -> JsonValue:
    try:
        header, *rows = csv.reader(io.StringIO(text, newline=""))
    except (csv.Error, ValueError):
        return {TEXT: text}
    if not rows or len(set(header)) < len(header) or any(len(row) != len(header) for row in rows):
        return {TEXT: text}
    return [dict(zip(header, row, strict=True)) for row in rows]


def _rows(name: str, content: Any) -> str:
    if not isinstance(content, list) or not content or not all(isinstance(row, dict) for row in content):
        raise ValueError(f"the content of {name} must be a list of objects")
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(content[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(content)
    return out.getvalue()

"""Reading the files of others' environments: as text, never running anything, with errors that name file and line."""

from pathlib import Path
from typing import Any

import orjson

from trajsmith.records import InputError, JsonObject


def read_text(path: Path) -> str:
    """A file's text.

    Raises:
        InputError: It cannot be read, or is no UTF-8 text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no UTF-8 text: {error}") from error


def read_json(path: Path) -> Any:
    """A file's JSON; of JSON Lines (.jsonl) a list.

    Raises:
        InputError: It cannot be read, or is no JSON.
    """
    text = read_text(path)
    number, values = 1, []
    try:
        if path.suffix != ".jsonl":
            return orjson.loads(text)
        for number, line in enumerate(text.splitlines(), 1):  # noqa: B007 - the error names it
            if line.strip():
                values.append(orjson.loads(line))
        return values
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path}:{number + error.lineno - 1}: no JSON: {error.msg}") from error


def require_objects(value: Any, problem: str) -> list[JsonObject]:
    """Return a value that is a list of objects.

    Raises:
        InputError: It is not; `problem` names the file and what it should have.
    """
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise InputError(problem)
    return value


def read_tool_entries(listed: Any, where: str) -> list[JsonObject]:
    """Name, description, input and output schema of tools, from any of the usual lists of them.

    Args:
        listed: Functions as OpenAI, MCP or EnvFactory write them, in a list or under "tools".
        where: What has the list, for error texts.

    Raises:
        InputError: It is no such list.
    """
    if isinstance(listed, dict):
        listed = listed.get("tools")
    if not isinstance(listed, list):
        raise InputError(f"{where}: tools must be a list of objects")
    entries = []
    for number, tool in enumerate(listed, 1):
        function = tool.get("function", tool) if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise InputError(f"{where}: tool {number} has no name")
        inputs = ("input_schema", "inputSchema", "parameters")
        outputs = ("output_schema", "outputSchema")
        entries.append({
            "name": function["name"],
            "description": function.get("description"),
            "input_schema": next((function[key] for key in inputs if key in function), None),
            "output_schema": next((function[key] for key in outputs if key in function), None),
        })  # fmt: skip
    return entries

"""Reads lists of tools as servers, clients and data sets give them: as much of each tool as can be read."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from trajsmith.records import InputError, ToolSpec, format_first_error

_NAMES = ("inputSchema", "input_schema", "parameters", "params")
"""Under what a tool's arguments are found, the first of them: MCP, Anthropic, OpenAI."""
MAX_DEPTH = 100
"""Levels of a schema at most; records cannot be written from about 250 on."""
HELP = "see `trajsmith graph build --help`"


def read_tool_list(path: Path) -> list[ToolSpec]:
    """Return the tools of a file.

    One tool a line, or one JSON document: a list, or an object with `tools`, as MCP's `tools/list` answers. A tool is
    written as MCP, Anthropic or OpenAI write it; one without `server` belongs to a server named like the file. Only the
    name must be there: schemas that cannot be read are empty, and the build reports what is odd about the others.

    Raises:
        InputError: The file is missing, or something in it is no tool; the text says where.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"tools {path}: {error.strerror}") from error
    server = path.name.split(".")[0] or "tools"
    return [_read_tool(row, server, where) for row, where in _rows(data, path)]


def _rows(data: bytes, path: Path) -> Iterator[tuple[Any, str]]:
    """Yield each tool with where it stands."""
    if not data.strip():
        return
    lines = [(number, line) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    try:
        rows = [(orjson.loads(line), number) for number, line in lines]
    except orjson.JSONDecodeError:
        rows = []
    if len(rows) != len(lines):
        try:
            rows = [(orjson.loads(data), 1)]
        except orjson.JSONDecodeError as error:
            number = next(number for number, line in lines if not _is_json(line))
            raise InputError(f"{path}:{number}: no tool: not valid JSON; {HELP}") from error
    del lines
    rows.reverse()
    while rows:  # a row that was read is let go of
        row, number = rows.pop()
        answer = isinstance(row, dict) and row.keys() <= {"tools", "nextCursor", "_meta"}
        inside = row.get("tools") if answer else row
        if isinstance(inside, list):
            yield from ((tool, f"{path}: tool {place}") for place, tool in enumerate(inside, 1))
        else:
            yield row, f"{path}:{number}"


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _read_tool(row: Any, server: str, where: str) -> ToolSpec:
    if isinstance(row, dict) and isinstance(row.get("function"), dict):
        row = {**row["function"], **({"server": row["server"]} if "server" in row else {})}
    if not isinstance(row, dict) or not isinstance(row.get("name"), str) or not row["name"].strip():
        raise InputError(f"{where}: no tool: it has no name; {HELP}")
    known = {key: row[key] for key in ("annotations", "actor", "confirm") if row.get(key) is not None}
    outputs = row.get("outputSchema", row.get("output_schema"))
    if any(_is_too_deep(value) for value in row.values()):
        raise InputError(f"{where}: no tool: its schemas are nested deeper than {MAX_DEPTH} levels")
    try:
        return ToolSpec.model_validate(
            {
                **known,
                "server": row.get("server") if isinstance(row.get("server"), str) and row["server"] else server,
                "name": row["name"],
                "description": row.get("description") if isinstance(row.get("description"), str) else "",
                "inputSchema": next((_read_schema(row[key]) for key in _NAMES if row.get(key)), _read_schema(None)),
                "outputSchema": outputs if isinstance(outputs, dict) and outputs else None,
            }
        )
    except ValidationError as error:
        raise InputError(f"{where}: no tool: {format_first_error(error)}; {HELP}") from error


def _is_too_deep(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return False
        values = chain.from_iterable(outer.values() if type(outer) is dict else outer for outer in level)
        level = [inner for inner in values if type(inner) is dict or type(inner) is list]
    return True


def _read_schema(schema: Any) -> dict[str, Any]:
    """Return an object schema: what is no mapping of properties, or no list of required names, is left out."""
    if not isinstance(schema, dict):
        return {"type": "object", "properties": {}}
    wrong = [key for key, kind in (("properties", dict), ("required", list)) if not isinstance(schema.get(key), kind)]
    return {key: value for key, value in schema.items() if key not in wrong}

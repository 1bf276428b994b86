"""Schemas in SQL (`CREATE TABLE`) without rows, as tool lists: the lexicon gives the records their values."""

import re
from pathlib import Path

from trajsmith.envgen.generate.identifiers import to_noun
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.phrasing import pluralize
from trajsmith.records import InputError, JsonObject

_TABLE = re.compile(r"create\s+table\s+(?:if\s+not\s+exists\s+)?(?P<name>[\w.\"`\[\]]+)\s*\(", re.IGNORECASE)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_NO_COLUMN = frozenset(
    ["primary", "foreign", "unique", "key", "check", "constraint", "index", "exclude", "fulltext", "period", "like"]
)
_MAX_BYTES = 2_000_000
_MAX_TABLES = 200
_MAX_COLUMNS = 100
_VERBS = ("create", "get", "update", "delete")


def read_sql_schema(path: Path) -> ToolList:
    """Return the tools that services over these tables have: make, show, list, change and delete a record.

    Raises:
        InputError: The file cannot be read, or has no `CREATE TABLE`.
    """
    try:
        text = path.read_bytes()[:_MAX_BYTES].decode("utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    tools = list[JsonObject]()
    plain = _COMMENT.sub(" ", text)
    for match in list(_TABLE.finditer(plain))[:_MAX_TABLES]:
        name = re.sub(r"[\"`\[\]]", "", match["name"]).rpartition(".")[2]
        noun = to_noun(name)
        properties = {column: {"type": "string"} for column in _list_columns(plain, match.end())}
        schema = {"type": "object", "properties": properties}
        tools += [{"name": f"{verb}_{noun}", "description": "", "input_schema": schema} for verb in _VERBS]
        tools.append({"name": f"list_{pluralize(noun)}", "description": "", "input_schema": {"type": "object"}})
    if not tools:
        raise InputError(f"{path}: no CREATE TABLE in it")
    return ToolList(path.stem, tools)


def _list_columns(text: str, start: int) -> list[str]:
    """Return the names of the columns of a table whose bracket opens before `start`."""
    depth, parts = 1, [""]
    for letter in text[start : start + 100_000]:
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            break
        if letter == "," and depth == 1:
            parts.append("")
        else:
            parts[-1] += letter
    names = [re.sub(r"[\"`\[\]]", "", part.split()[0]) for part in parts if part.split()]
    return [name for name in names if name.lower() not in _NO_COLUMN and re.fullmatch(r"\w{1,60}", name)][:_MAX_COLUMNS]

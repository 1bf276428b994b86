"""Files that list MCP servers for a client: `mcp.json` of Claude Desktop and Cursor, and that of VS Code."""

import re
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from trajsmith.environments.adapters.mcp.settings import McpSettings
from trajsmith.records import InputError, JsonObject, format_first_error
from trajsmith.records.secrets import SECRET_NAME, find_secret

LISTS = ("mcpServers", "servers")
"""Keys under which clients list their servers."""
_ENVIRONMENT = re.compile(r"\$\{env:(\w+)\}")
_INPUT = re.compile(r"\$\{input:([^}]*)\}")
_WORKSPACE = re.compile(r"\$\{(workspaceFolder|workspaceRoot|userHome)\}")


def is_client_file(document: Any) -> bool:
    """Return True for a document that lists MCP servers for a client."""
    return isinstance(document, dict) and any(_holds_servers(document.get(key)) for key in LISTS)


def _holds_servers(value: Any) -> bool:
    entries = value.values() if isinstance(value, dict) else ()
    return any(isinstance(entry, dict) and {"command", "url"} & entry.keys() for entry in entries)


def read_client_file(file: Path, only: str = "", explore: bool = True) -> list[McpSettings]:
    """Return the settings of the servers that a file lists, without those that are disabled.

    Args:
        file: JSON of Claude Desktop, Cursor or VS Code.
        only: Name of the only server that is wanted; empty for all.
        explore: Whether a run finds out by calls what the file does not say of its servers.

    Raises:
        InputError: The file lists none, or a server needs what cannot be given here; the error says what to do.
    """
    try:
        document = orjson.loads(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise InputError(f"{file}:{error.lineno}: not JSON: {error.msg}; comments have to be taken out") from error
    if not is_client_file(document):
        raise InputError(
            f"{file} lists no MCP servers: it has neither `mcpServers` nor `servers` with a command or url"
        )
    servers = {name: entry for key in LISTS for name, entry in (document.get(key) or {}).items()}
    if only and only not in servers:
        raise InputError(f"{file} has no server {only!r}; it has {', '.join(servers)}")
    return [
        _read_server(f"{file}: {name}", name, entry).model_copy(update={"explore": explore})
        for name, entry in servers.items()
        if name == only or (not only and not entry.get("disabled"))
    ]


def _read_server(where: str, name: str, entry: JsonObject) -> McpSettings:
    if entry.get("type") == "sse":
        raise InputError(f"{where}: a server of the old SSE transport cannot be used; ask it for streamable HTTP")
    if "url" in entry:
        headers = {key: _expand(where, key, str(text)) for key, text in (entry.get("headers") or {}).items()}
        return _build(where, {"name": name, "url": _expand(where, "url", str(entry["url"])), "headers": headers})
    words = [entry["command"], *(entry.get("args") or ())]
    env = {key: _expand(where, key, str(text)) for key, text in (entry.get("env") or {}).items()}
    return _build(where, {"name": name, "command": [_expand(where, "args", str(word)) for word in words], "env": env})


def _build(where: str, fields: JsonObject) -> McpSettings:
    try:
        return McpSettings.model_validate(fields)
    except ValidationError as error:
        raise InputError(f"{where}: {format_first_error(error)}") from error


def _expand(where: str, key: str, text: str) -> str:
    """Return a text with the placeholders of clients as those of the settings.

    Raises:
        InputError: The client would ask for it, or a secret stands in the file.
    """
    asked = _INPUT.search(text)
    if asked:
        raise InputError(f"{where}: the client asks for {asked[1]!r}: write ${{env:NAME}} there, and export NAME")
    secret = find_secret(text, {}) is not None or SECRET_NAME.search(key) is not None
    if secret and "${" not in text:
        raise InputError(
            f"{where}: {key} holds a secret, which no run may store: write ${{env:{key}}}, and export {key}"
        )
    return _WORKSPACE.sub("{workspace}", _ENVIRONMENT.sub(r"${\1}", text))

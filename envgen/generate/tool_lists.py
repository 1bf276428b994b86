"""Files with tool lists: the answer of an MCP server's `tools/list`, or one tool a line."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trajsmith.records import InputError, JsonObject, canonical_json, hash_bytes


@dataclass
class ToolList:
    """The tools of one server."""

    server: str
    tools: list[JsonObject] = field(default_factory=list)
    licence: str = ""

    @property
    def digest(self) -> str:
        return hash_bytes(canonical_json(self.tools))


def read_tool_list(reference: str) -> ToolList:
    """Return the tools that `FILE` or `FILE:SERVER` holds.

    Raises:
        InputError: There is no such file or server, or it holds no tools.
    """
    path, wanted = Path(reference), ""
    if not path.is_file() and ":" in reference:
        file, _, wanted = reference.rpartition(":")
        path = Path(file)
    if not path.is_file():
        raise InputError(f"tool list not found: {reference}")
    servers = _group_by_server(path)
    if not servers:
        raise InputError(f"{path}: no tools in it; each needs a name and an input schema")
    if not wanted and len(servers) > 1:
        raise InputError(f"{path} holds {len(servers)} servers: name one, for example {path}:{next(iter(servers))}")
    wanted = wanted or next(iter(servers))
    if wanted not in servers:
        raise InputError(f"{path} has no server {wanted!r}; it has {', '.join(list(servers)[:8])}")
    return ToolList(wanted, servers[wanted], _read_licences(path).get(wanted, ""))


def read_tool_lists(path: Path) -> list[ToolList]:
    """Return the tools of every server of a file, in the order of the file.

    Raises:
        InputError: There is no such file, or it holds no tools.
    """
    if not path.is_file():
        raise InputError(f"tool list not found: {path}")
    servers = _group_by_server(path)
    if not servers:
        raise InputError(f"{path}: no tools in it; each needs a name and an input schema")
    licences = _read_licences(path)
    return [ToolList(server, tools, licences.get(server, "")) for server, tools in servers.items()]


def _group_by_server(path: Path) -> dict[str, list[JsonObject]]:
    servers: dict[str, list[JsonObject]] = {}
    for tool in _read_tools(path):
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            servers.setdefault(str(tool.get("server") or path.stem), []).append(tool)
    return servers


def _read_tools(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        document = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: no JSON: {' '.join(str(error).split())[:200]}") from error
    if isinstance(document, dict):
        answer = document.get("result")
        document = document.get("tools") or (answer.get("tools") if isinstance(answer, dict) else None)
    return document if isinstance(document, list) else []


def _read_licences(path: Path) -> dict[str, str]:
    """Return the licences that a list of servers beside the tools states."""
    licences = dict[str, str]()
    for beside in sorted(path.parent.glob("*.servers.jsonl")):
        if path.name.startswith(beside.name.split(".")[0]):
            for line in beside.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                licences.setdefault(str(entry.get("server")), str(entry.get("license") or ""))
    return licences

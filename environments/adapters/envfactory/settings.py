"""What a user says about environments of EnvFactory's form, and what is read of their files."""

from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from pydantic import PositiveInt

from trajsmith.environments.file_reading import read_json, read_text, read_tool_entries, require_objects
from trajsmith.records import FrozenModel, InputError, JsonObject, SourcePath

PRELOAD: tuple[str, ...] = ("trajsmith.environments.adapters.envfactory.program",)
"""Modules that a worker must have imported before it is locked."""
_CONFIGURATION = Path("configs") / "mcp_server.json"


class EnvFactorySettings(FrozenModel):
    """One environment of EnvFactory: a tool file, and what is written beside it."""

    tools: SourcePath
    """The FastMCP file, for example "envs/tools/Canvas.py"."""
    metadata: SourcePath | None = None
    """Its metadata; left out, `../metadata/NAME_metadata.json` or `NAME_metadata.json` beside the file, if there."""
    scenarios: SourcePath | None = None
    """Its scenarios: a checkpoint, a list of scenarios, or one state; left out, `../intermediate/NAME_checkpoint.json`
    or `NAME_checkpoint.json` beside the file, if there."""
    name: str | None = None
    """Name of the environment; left out, that of the file."""
    max_states: PositiveInt = 8
    """Initial states that are taken of the scenarios, in their order."""
    moment: datetime = datetime(2024, 1, 1)
    """What time it is in scenarios that do not say so, or in a form that their model refuses."""
    hide: tuple[str, ...] = ()
    """Tools that agents must not have, beside load_scenario and save_scenario."""

    @property
    def environment(self) -> str:
        """The environment's name."""
        return self.name or self.tools.stem


def discover(directory: Path) -> list[EnvFactorySettings]:
    """All environments of a checkout: those that its configuration registers, else all its tool files.

    Raises:
        InputError: There is neither, or the configuration is broken.
    """
    configuration = directory / _CONFIGURATION
    if configuration.is_file():
        servers = read_json(configuration)
        servers = servers.get("mcpServers") if isinstance(servers, dict) else None
        if not isinstance(servers, dict) or not all(_is_server(entry) for entry in servers.values()):
            raise InputError(f"{configuration}: mcpServers must be an object of servers with a tool_path")
        return [EnvFactorySettings(tools=directory / entry["tool_path"], name=name) for name, entry in servers.items()]
    files = [file for place in ("envs/tools", "tools", ".") for file in sorted((directory / place).glob("*.py"))]
    modules = [file for file in files if file.name != "__init__.py"]
    if not modules:
        raise InputError(f"{directory}: no environments of EnvFactory: no {_CONFIGURATION} and no tools/*.py")
    return [EnvFactorySettings(tools=file) for file in modules if file.parent == modules[0].parent]


def build_payload(settings: EnvFactorySettings) -> JsonObject:
    """Everything that the loader needs, as plain JSON; files are only read, never run.

    Raises:
        InputError: A file is missing or broken.
    """
    stem = settings.tools.stem
    metadata = settings.metadata or _beside(settings.tools, "metadata", f"{stem}_metadata.json")
    scenarios = settings.scenarios or _beside(settings.tools, "intermediate", f"{stem}_checkpoint.json")
    return {
        "name": settings.environment,
        "file": settings.tools.name,
        "source": read_text(settings.tools),
        "metadata": _metadata(metadata) if metadata else None,
        "scenarios": _scenarios(scenarios)[: settings.max_states] if scenarios else [],
        "moment": settings.moment.isoformat(),
        "hide": list(settings.hide),
    }


def _is_server(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("tool_path"), str)


def _beside(tools: Path, folder: str, name: str) -> Path | None:
    """A file by the published naming, or None."""
    places = (tools.parent.parent / folder / name, tools.parent / name)
    return next((place for place in places if place.is_file()), None)


def _metadata(path: Path) -> JsonObject:
    document = read_json(path)
    if not isinstance(document, dict):
        raise InputError(f"{path}: metadata must be an object")
    return {"description": str(document.get("description") or ""), "tools": read_tool_entries(document, str(path))}


def _scenarios(path: Path) -> list[JsonObject]:
    """Name and state (as JSON text) of each scenario that is meant to be accepted."""
    document = read_json(path)
    entries = (
        document["scenarios"]
        if isinstance(document, dict) and isinstance(document.get("scenarios"), list)
        else document
    )
    if isinstance(entries, dict):
        entries = [entries]
    entries = require_objects(entries, f"{path}: scenarios must be a checkpoint, a list of objects, or one state")
    wanted = [entry for entry in entries if entry.get("expected_behavior", "pass") == "pass"]
    return [
        {
            "name": str(entry.get("scenario_id", number)),
            "state": orjson.dumps(entry.get("scenario_data", entry)).decode(),
        }
        for number, entry in enumerate(wanted)
    ]

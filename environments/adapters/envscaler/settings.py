"""What a user says about environments of EnvScaler's form, and what is read of their files."""

from pathlib import Path
from typing import Any

import orjson
from pydantic import PositiveInt

from trajsmith.environments.file_reading import read_json, read_text, read_tool_entries, require_objects
from trajsmith.records import FrozenModel, InputError, JsonObject, SourcePath

PRELOAD: tuple[str, ...] = ("trajsmith.environments.adapters.envscaler.program",)
"""Modules that a worker must have imported before it is locked."""


class EnvScalerSettings(FrozenModel):
    """One environment of EnvScaler: an entry of its metadata, or a Python file with the class."""

    file: SourcePath
    """Metadata (.json: one entry, a list, or an object by id; .jsonl), or the class itself (.py)."""
    id: str | None = None
    """Which entry (`env_id` or `env_class_name`); in a Python file, which class. Needed if there are several."""
    scenarios: SourcePath | None = None
    """Initial states: scenarios with `env_id` and `init_config`, entries with `init_config_list`, or plain
    configurations; .json or .jsonl. Left out, the entry's own, else what the class makes of nothing."""
    name: str | None = None
    """Name of the environment; left out, that of the class, or of the Python file."""
    max_states: PositiveInt = 8
    """Initial states that are taken of the scenarios, in their order."""

    @property
    def environment(self) -> str:
        """The environment's name; see `environment_name`."""
        return get_environment_name(self)


def discover(file: Path, scenarios: Path | None = None) -> list[EnvScalerSettings]:
    """All environments of a metadata file.

    Raises:
        InputError: It is none.
    """
    return [EnvScalerSettings(file=file, id=_id(entry), scenarios=scenarios) for entry in _entries(file)]


def get_environment_name(settings: EnvScalerSettings) -> str:
    """The environment's name, without running anything.

    Raises:
        InputError: The file is missing or broken, or has no such entry.
    """
    if settings.name:
        return settings.name
    if settings.file.suffix == ".py":
        return settings.id or settings.file.stem
    entry = _entry(settings)
    return str(entry.get("env_class_name") or _id(entry))


def build_payload(settings: EnvScalerSettings) -> JsonObject:
    """Everything that the loader needs, as plain JSON; files are only read, never run.

    Raises:
        InputError: A file is missing or broken, or has no such entry.
    """
    python = settings.file.suffix == ".py"
    entry = (
        {"env_class_code": read_text(settings.file), "env_class_name": settings.id or ""}
        if python
        else _entry(settings)
    )
    code = entry.get("env_class_code")
    if not isinstance(code, str):
        raise InputError(f"{settings.file}: entry {_id(entry)} has no env_class_code")
    return {
        "name": get_environment_name(settings),
        "file": settings.file.name if python else f"{settings.file.name}/{_id(entry)}",
        "source": code,
        "class_name": str(entry.get("env_class_name") or ""),
        "tools": read_tool_entries(entry["tools"], str(settings.file)) if entry.get("tools") else None,
        "reads": _collect_read_flags(entry),
        "description": str(entry.get("environment_introduction") or entry.get("environment_summary") or ""),
        "policy": "\n".join(f"- {rule}" for rule in _list(entry.get("constraints_rules"))),
        "states": _states(settings, entry)[: settings.max_states],
    }


def _entry(settings: EnvScalerSettings) -> JsonObject:
    entries = _entries(settings.file)
    matches = [entry for entry in entries if settings.id in (None, entry.get("env_id"), entry.get("env_class_name"))]
    if len(matches) != 1:
        names = ", ".join(_id(entry) for entry in entries[:8]) + (", ..." if len(entries) > 8 else "")
        problem = (
            f"{len(matches)} entries have the id {settings.id}" if settings.id else f"it has {len(entries)} entries"
        )
        raise InputError(f"{settings.file}: {problem}; set `id` to one of: {names}")
    return matches[0]


def _id(entry: JsonObject) -> str:
    return str(entry.get("env_id") or entry.get("env_class_name") or "entry")


def _entries(file: Path) -> list[JsonObject]:
    document = read_json(file)
    if isinstance(document, dict):
        document = (
            [document] if "env_class_code" in document else [_with_key(key, entry) for key, entry in document.items()]
        )
    problem = f"{file}: metadata must be an entry, a list of entries, or an object of entries by id"
    return require_objects(document or None, problem)


def _with_key(key: str, entry: Any) -> Any:
    return {"env_id": key, **entry} if isinstance(entry, dict) else entry


def _collect_read_flags(entry: JsonObject) -> dict[str, bool]:
    """Return, for each operation whose kind the entry states, whether it only reads."""
    reads = {}
    for operation in _list(entry.get("operation_list")):
        if isinstance(operation, dict):
            kind = str(operation.get("operation_type", "")).lower()
            if "query" in kind or "modif" in kind or "change" in kind:
                reads[str(operation.get("operation_name"))] = "query" in kind
    return reads


def _states(settings: EnvScalerSettings, entry: JsonObject) -> list[JsonObject]:
    """Name and configuration (as JSON text) of each initial state."""
    document = [entry] if settings.scenarios is None else read_json(settings.scenarios)
    if isinstance(document, dict):
        document = (
            [document]
            if any(key in document for key in ("init_config", "init_config_list"))
            else [{"init_config": document}]
        )
    document = require_objects(document, f"{settings.scenarios}: scenarios must be a list of objects")
    states = []
    for number, scenario in enumerate(document, 1):
        if scenario.get("env_id") not in (None, entry.get("env_id")):
            continue
        configurations = (
            [scenario["init_config"]] if "init_config" in scenario else _list(scenario.get("init_config_list"))
        )
        if not configurations and scenario is not entry:
            configurations = [scenario]
        name = str(scenario.get("task_id", number))
        states += [{"name": name, "state": orjson.dumps(configuration).decode()} for configuration in configurations]
    if not states and settings.scenarios is not None:
        raise InputError(f"{settings.scenarios}: no scenario for {_id(entry)}")
    return states


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

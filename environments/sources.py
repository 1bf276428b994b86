"""From settings to sources: which environments a run uses."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PositiveInt, field_validator, model_validator

from trajsmith.environments.adapters.agentworld.settings import AgentWorldSettings
from trajsmith.environments.adapters.awm.settings import AwmSettings
from trajsmith.environments.adapters.envfactory import settings as envfactory
from trajsmith.environments.adapters.envfactory.settings import EnvFactorySettings
from trajsmith.environments.adapters.envscaler import settings as envscaler
from trajsmith.environments.adapters.envscaler.settings import EnvScalerSettings
from trajsmith.environments.adapters.mcp import McpSettings, McpSource
from trajsmith.environments.adapters.openapi.settings import OpenApiSettings
from trajsmith.environments.adapters.tau2.settings import Tau2Settings
from trajsmith.environments.file_reading import read_json, read_text
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.native_source import build_library_source
from trajsmith.environments.sandbox.gate import can_share_worker, examine_source
from trajsmith.environments.sandbox.serialization import split_words
from trajsmith.environments.sandbox.settings import MODES, SandboxSettings
from trajsmith.environments.sandbox.source import SandboxSource
from trajsmith.environments.session import EnvironmentSource
from trajsmith.records import FrozenModel, InputError, JsonObject, SourcePath, SourceReference

Size = Literal["small", "medium", "large"]
_OWN_MODULES = ("envfactory", "envscaler")
"""Kinds whose plays have the modules' objects each for itself."""
_EVENTS = {
    "awm": split_words("""
        compile exec function.__new__ object.__getattr__ object.__setattr__ sqlite3.connect sqlite3.connect/handle
        sys._getframe
    """),
}
"""Audit events that libraries of a kind raise in calls: SQLAlchemy compiles functions, FastAPI reads them. Where they
are allowed, plays could look at each other, so each has a process."""
KINDS = ("library", "python", "mcp", "envfactory", "envscaler", "agentworld", "awm", "openapi", "tau2")
"""What an entry may be."""


class EnvironmentSettings(FrozenModel):
    """One environment: exactly one of the kinds. All but `library` and `mcp` run in the sandbox."""

    library: str | None = None
    """Name of a bundled environment; "*" stands for all of them."""
    python: SourceReference | None = None
    """A Python file of your own with an `Environment` class, for example "my_env.py" or "my_env.py:MyEnv"."""
    mcp: McpSettings | None = None
    """A live MCP server."""
    envfactory: EnvFactorySettings | None = None
    """EnvFactory: a tool file and what lies beside it; a path of a tool file or of a whole checkout will do."""
    envscaler: EnvScalerSettings | None = None
    """EnvScaler: a class with a config dict."""
    agentworld: AgentWorldSettings | None = None
    """Agent-World: a directory of data files, and functions."""
    awm: AwmSettings | None = None
    """AWM: a FastAPI server over SQLite; needs the extra `awm`."""
    openapi: OpenApiSettings | None = None
    """An OpenAPI document; a path will do."""
    tau2: Tau2Settings | None = None
    """A domain of tau2-bench, where that package is installed or a checkout is at hand."""
    sandbox: SandboxSettings = SandboxSettings()
    """How foreign code is run; the name of a mode will do."""
    states: dict[Size, PositiveInt] = Field(default={"small": 2, "medium": 1})
    """How many initial states of each size are made, for `library` and `python`."""
    state_files: tuple[SourcePath, ...] = ()
    """Initial states of a `python` environment, as JSON files, in place of those that its class makes."""
    phrases: SourcePath | None = None
    """Phrasebook (YAML) of a sandboxed environment; without it, `phrases.yaml` beside a `python` file."""

    @field_validator("sandbox", mode="before")
    @classmethod
    def _mode(cls, value: Any) -> Any:
        return {"mode": value} if isinstance(value, str) and value in MODES else value

    @field_validator("envfactory", mode="before")
    @classmethod
    def _tool_file(cls, value: Any) -> Any:
        return {"tools": value} if isinstance(value, str | Path) else value

    @field_validator("agentworld", mode="before")
    @classmethod
    def _directory(cls, value: Any) -> Any:
        return {"directory": value} if isinstance(value, str | Path) else value

    @field_validator("openapi", mode="before")
    @classmethod
    def _document(cls, value: Any) -> Any:
        return {"spec": value} if isinstance(value, str | Path) else value

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [kind for kind in KINDS if getattr(self, kind, None) is not None]
        if len(kinds) != 1:
            raise ValueError(f"give exactly one of {', '.join(KINDS)}; there is {' and '.join(kinds) or 'none'}")
        if self.state_files and self.python is None:
            raise ValueError("state_files go with python environments only")
        return self

    @property
    def kind(self) -> str:
        return next(kind for kind in KINDS if getattr(self, kind) is not None)


def expand_settings(settings: EnvironmentSettings) -> list[EnvironmentSettings]:
    """Expand an entry into those that it stands for: all of the library, of a checkout, of a metadata file, or
    itself.
    """
    if settings.library == "*":
        return [settings.model_copy(update={"library": name}) for name in ENVIRONMENTS.names()]
    if settings.envfactory is not None and settings.envfactory.tools.is_dir():
        discovered = envfactory.discover(settings.envfactory.tools)
        chosen = settings.envfactory.model_dump(include={"max_states", "moment", "hide"})
        return [settings.model_copy(update={"envfactory": one.model_copy(update=chosen)}) for one in discovered]
    scaled = settings.envscaler
    if scaled is not None and scaled.file.suffix != ".py" and scaled.id is None:
        ids = [one.id for one in envscaler.discover(scaled.file)]
        return [settings.model_copy(update={"envscaler": scaled.model_copy(update={"id": one})}) for one in ids]
    return [settings]


def open_source(settings: EnvironmentSettings) -> EnvironmentSource:
    """The source that one entry stands for; nothing runs yet.

    Raises:
        InputError: Something named there does not exist, or cannot be read.
    """
    if settings.mcp is not None:
        return McpSource(settings.mcp)
    if settings.library is not None:
        return build_library_source(settings.library, get_sizes(settings))
    if settings.python is not None:
        return _open_python(settings, settings.python)
    return _open_adapter(settings, settings.kind)


def get_sizes(settings: EnvironmentSettings) -> dict[str, int]:
    """Return the number of initial states of each size."""
    return {size: count for size, count in settings.states.items()}  # noqa: C416 - widens the keys


def _open_python(settings: EnvironmentSettings, reference: str) -> SandboxSource:
    name, _, wanted = reference.partition(":")
    file = Path(name)
    if not file.is_file():
        raise InputError(f"environment file not found: {file}")
    payload: JsonObject = {
        "source": read_text(file), "file": file.name, "cls": wanted, "sizes": get_sizes(settings),
        "given": {path.name: read_json(path) for path in settings.state_files},
    }  # fmt: skip
    phrases = settings.phrases or file.parent / "phrases.yaml"
    return _open_sandboxed("native", file.stem, payload, settings, (), phrases)


def _open_adapter(settings: EnvironmentSettings, kind: str) -> SandboxSource:
    module = importlib.import_module(f"trajsmith.environments.adapters.{kind}.settings")
    chosen = getattr(settings, kind)
    read: Callable[[Any], JsonObject] = module.build_payload
    payload = read(chosen)
    name = str(payload.get("name") or payload.get("file") or kind)
    return _open_sandboxed(kind, name, payload, settings, module.PRELOAD, settings.phrases)


def _open_sandboxed(
    kind: str,
    name: str,
    payload: JsonObject,
    settings: EnvironmentSettings,
    preload: tuple[str, ...],
    phrases: Path | None,
) -> SandboxSource:
    sandbox = settings.sandbox.model_copy(update={"imports": (*settings.sandbox.imports, *preload)})
    alone, events = _needs_own_process(sandbox, kind, payload), _EVENTS.get(kind, ())
    return SandboxSource(name, kind, payload, sandbox, phrases, own_process=alone, events=events)


def _needs_own_process(sandbox: SandboxSettings, kind: str, payload: JsonObject) -> bool:
    """Return whether every episode needs its own process: by the settings, or because its code may share state."""
    if sandbox.plays != "auto":
        return sandbox.plays == "process"
    if kind in _EVENTS:
        return True
    own = kind in _OWN_MODULES
    return not all(can_share_worker(examine_source(source, file, own)) for file, source in _sources(payload))


def _sources(payload: JsonObject) -> list[tuple[str, str]]:
    """(file, text) of all foreign code that goes to a loader."""
    sources = [(entry["file"], entry["source"]) for entry in payload.get("sources", ())]
    if isinstance(payload.get("source"), str):
        sources.append((str(payload.get("file")), payload["source"]))
    return sources

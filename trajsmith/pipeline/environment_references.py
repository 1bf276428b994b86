"""Resolves environment references of the command line: bundled names, configuration entries, files."""

import re
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from trajsmith.environments import BUNDLES
from trajsmith.environments.adapters.mcp import is_client_file
from trajsmith.environments.library import ENVIRONMENTS
from trajsmith.environments.linked import list_worlds
from trajsmith.environments.sandbox.settings import MODES
from trajsmith.environments.session import EnvironmentSource
from trajsmith.environments.sources import EnvironmentSettings, Size, expand_settings, open_source
from trajsmith.records import HUB, EnvironmentSpec, InputError, compose_yaml, format_first_error

_ENTRY = re.compile(r"(.*\.ya?ml)(?::(.+))?")
_CLASS = re.compile(r"(.*\.py):(\w+)")
_FASTMCP = re.compile(r"^[ \t]*from[ \t]+mcp\.server\.fastmcp[ \t]+import|^[ \t]*(from|import)[ \t]+fastmcp\b", re.M)
_NATIVE = re.compile(r"^[ \t]*(from|import)[ \t]+trajsmith\b", re.M)
_FASTAPI = re.compile(r"^[ \t]*(from|import)[ \t]+fastapi\b", re.M)


def open_named_source(reference: str, size: str | None = None, sandbox: str | None = None) -> EnvironmentSource:
    """The one environment that a reference stands for.

    Args:
        reference: As the help of `trajsmith env show` describes it.
        size: Size of the initial states, where the environment makes its own.
        sandbox: Mode of the sandbox, in place of what a configuration says.

    Raises:
        InputError: There is no such thing, or there are several.
    """
    entries = find_named_entries(reference)
    if len(entries) != 1:
        raise InputError(f"{reference} holds {len(entries)} environments: name one, for example {reference}:NAME")
    entry = set_sandbox_mode(entries[0], sandbox)
    if size is not None:
        entry = entry.model_copy(update={"states": {_size(size): 1}})
    return open_source(entry)


def set_sandbox_mode(entry: EnvironmentSettings, mode: str | None) -> EnvironmentSettings:
    """The same entry in another mode of the sandbox.

    Raises:
        InputError: There is no such mode.
    """
    if mode is None:
        return entry
    if mode not in MODES:
        raise InputError(f"--sandbox is one of {', '.join(MODES)}, not {mode!r}")
    return entry.model_copy(update={"sandbox": entry.sandbox.model_copy(update={"mode": mode})})


def find_named_entries(reference: str) -> list[EnvironmentSettings]:
    """The entries that a reference stands for.

    Raises:
        InputError: There is no such thing.
    """
    if reference in ENVIRONMENTS.names():
        return [EnvironmentSettings(library=reference)]
    if reference in list_worlds():
        return [EnvironmentSettings(linked=reference)]
    if reference.startswith(HUB):
        return expand_settings(_entry(reference, python=reference))
    if not Path(reference).exists() and reference.partition(".")[0] in BUNDLES.names():
        return expand_settings(_entry(reference, library=reference))
    match = _ENTRY.fullmatch(reference)
    if match and Path(match[1]).is_file():
        return _of_yaml(Path(match[1]), match[2])
    python = _CLASS.fullmatch(reference)
    path = Path(python[1] if python else reference)
    if path.is_dir():
        return _of_directory(path)
    if not path.is_file() and ":" in reference:
        directory, _, name = reference.rpartition(":")
        matches = [entry for entry in _of_file_or_directory(Path(directory)) if _name(entry) == name]
        if matches:
            return matches
    if not path.is_file():
        names = ", ".join([*ENVIRONMENTS.names(), *list_worlds()])
        raise InputError(f"no environment named {reference!r} in the library, and no such file; there are: {names}")
    if path.suffix == ".py":
        return [_entry(reference, **_of_python(path, python[2] if python else None))]
    if path.suffix in (".json", ".jsonl"):
        return expand_settings(_entry(reference, **_of_json(path)))
    raise InputError(f"{reference}: not an environment: neither Python, JSON nor YAML")


def _entry(reference: str, **kind: Any) -> EnvironmentSettings:
    try:
        return EnvironmentSettings.model_validate(kind)
    except ValidationError as error:
        raise InputError(f"{reference}: {format_first_error(error)}") from error


def _of_yaml(path: Path, wanted: str | None) -> list[EnvironmentSettings]:
    """A run's configuration, a linked world, or an OpenAPI document."""
    import yaml

    from trajsmith.pipeline.config import load_config

    try:
        document = compose_yaml(path.read_text(encoding="utf-8"), yaml.SafeLoader)[1]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: {' '.join(str(error).split())}") from error
    if isinstance(document, dict) and "openapi" in document:
        return [_entry(str(path), openapi=path)]
    if isinstance(document, dict) and {"environments", "scenarios"} <= document.keys():
        return [_entry(str(path), linked=str(path))]
    entries = list(load_config(path).environments)
    if wanted is None:
        return entries
    matches = [entry for entry in entries if _name(entry) == wanted]
    if not matches:
        raise InputError(f"{path} has no environment {wanted!r}; it has {', '.join(map(_name, entries))}")
    return matches


def _name(entry: EnvironmentSettings) -> str:
    return open_source(entry).name


def _of_directory(path: Path) -> list[EnvironmentSettings]:
    """A folder of generated environments, a checkout of EnvFactory, or an environment in Agent-World's form."""
    if not path.is_dir():
        return []
    if (path / "catalogue.json").is_file():
        return expand_settings(_entry(str(path), python=str(path)))
    if (path / "envs" / "tools").is_dir() or (path / "configs" / "mcp_server.json").is_file():
        return expand_settings(_entry(str(path), envfactory=path))
    return [_entry(str(path), agentworld={"directory": path})]


def _of_file_or_directory(path: Path) -> list[EnvironmentSettings]:
    """All environments that one of several may be named of."""
    if path.is_file() and path.suffix in (".json", ".jsonl"):
        return expand_settings(_entry(str(path), **_of_json(path)))
    return _of_directory(path)


def _of_python(path: Path, cls: str | None) -> dict[str, Any]:
    """Return the form of a Python environment file, from its imports, without running it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if _NATIVE.search(text):
        return {"python": f"{path}:{cls}" if cls else str(path)}
    if _FASTMCP.search(text):
        return {"envfactory": path}
    if _FASTAPI.search(text):
        return {"awm": {"server": path}}
    return {"envscaler": {"file": path, "id": cls}}


def _of_json(path: Path) -> dict[str, Any]:
    """An OpenAPI document, a client's list of MCP servers, or environments of EnvScaler."""
    if path.suffix == ".json":
        try:
            document = orjson.loads(path.read_bytes())
        except orjson.JSONDecodeError as error:
            raise InputError(f"{path}:{error.lineno}: no JSON: {error.msg}") from error
        if isinstance(document, dict) and "openapi" in document:
            return {"openapi": path}
        if is_client_file(document):
            return {"mcp": {"file": path}}
    return {"envscaler": {"file": path}}


def _size(text: str) -> Size:
    sizes: tuple[Size, ...] = ("small", "medium", "large")
    for size in sizes:
        if size == text:
            return size
    raise InputError(f"--size is one of {', '.join(sizes)}, not {text!r}")


def has_bundled_words(source: EnvironmentSource) -> bool:
    """Return True if nobody but trajsmith wrote the words: to read every template at each start takes seconds."""
    return getattr(source, "has_bundled_words", False)


def check_words(source: EnvironmentSource, spec: EnvironmentSpec) -> None:
    """Compare the phrasebook and the scenarios of an environment with its tools, if trajsmith does not bundle them.

    Raises:
        InputError: They cannot be used.
    """
    from trajsmith.grounding import check_phrasebook, check_scenarios

    if not has_bundled_words(source):
        check_phrasebook(source.phrasebook, spec)
        check_scenarios(source.scenarios, spec)

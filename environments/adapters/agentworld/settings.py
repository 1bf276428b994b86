"""What a user says about an environment of Agent-World's form, and what is read of its files."""

import posixpath
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from trajsmith.environments.file_reading import read_json, read_text, read_tool_entries
from trajsmith.records import FrozenModel, InputError, JsonObject, SourcePath

PRELOAD: tuple[str, ...] = ("trajsmith.environments.adapters.agentworld.program",)
"""Modules that a worker must have imported before it is locked."""


def _absolute(path: str) -> str:
    if not path.startswith("/") or path != posixpath.normpath(path) or path == "/":
        raise ValueError(f"{path!r} must be an absolute path below /, without a trailing slash")
    return path


class AgentWorldSettings(FrozenModel):
    """One environment of Agent-World: a directory of data files, and functions that work on them."""

    directory: SourcePath
    """The data files; hidden files and Python files are left out."""
    tools: SourcePath | None = None
    """A Python file with the tools, or a directory of such files; left out, `tools.py` or `tools/` in the directory."""
    metadata: SourcePath | None = None
    """List of the tools with descriptions and schemas (JSON); left out, `tools.json` in the directory, if there. With a
    list only its tools are offered, without one all public functions."""
    states: tuple[SourcePath, ...] = ()
    """Further directories with data files: more initial states."""
    fixed: tuple[str, ...] = ()
    """Globs of files that tools only read and that are no part of the state: large tables of reference."""
    ignore: tuple[str, ...] = ()
    """Globs of files that are left out."""
    root: Annotated[str, AfterValidator(_absolute)] = "/app/database"
    """The absolute path under which the functions expect the directory; it is their working directory too."""
    name: str | None = None
    """Name of the environment; left out, that of the directory."""
    description: str = ""
    policy: str = ""
    """Rules that the agent must obey, markdown."""

    @property
    def environment(self) -> str:
        """The environment's name."""
        return self.name or self.directory.resolve().name


def build_payload(settings: AgentWorldSettings) -> JsonObject:
    """Everything that the loader needs, as plain JSON; files are only read, never run.

    Raises:
        InputError: A file is missing or broken.
    """
    tools = settings.tools or _default_tools(settings.directory)
    metadata = settings.metadata or settings.directory / "tools.json"
    listed = settings.metadata is not None or metadata.is_file()
    skip = [*settings.ignore, *(["tools.json"] if metadata.parent == settings.directory else [])]
    states = [_data(directory, skip) for directory in (settings.directory, *settings.states)]
    fixed = {name: text for name, text in states[0].items() if _matches(name, settings.fixed)}
    return {
        "name": settings.environment,
        "file": settings.directory.name,
        "root": settings.root,
        "sources": [{"name": file.stem, "file": file.name, "source": read_text(file)} for file in _sources(tools)],
        "tools": read_tool_entries(read_json(metadata), str(metadata)) if listed else None,
        "states": [{name: text for name, text in state.items() if name not in fixed} for state in states],
        "fixed": fixed,
        "description": settings.description,
        "policy": settings.policy,
    }


def _default_tools(directory: Path) -> Path:
    tools = next((place for place in (directory / "tools.py", directory / "tools") if place.exists()), None)
    if tools is None:
        raise InputError(f"{directory}: there is no tools.py and no tools/; name the Python files under `tools`")
    return tools


def _sources(tools: Path) -> list[Path]:
    if tools.is_file():
        return [tools]
    files = sorted(file for file in tools.glob("*.py") if file.name != "__init__.py")
    if not files:
        raise InputError(f"{tools}: there are no Python files with tools")
    return files


def _data(directory: Path, skip: Iterable[str]) -> dict[str, str]:
    """Text of all data files by relative path.

    Raises:
        InputError: The directory is none, or a file is no text.
    """
    if not directory.is_dir():
        raise InputError(f"{directory} is no directory of data files")
    contents = {}
    for file in sorted(directory.rglob("*")):
        name = file.relative_to(directory).as_posix()
        hidden = any(part.startswith((".", "__")) for part in name.split("/"))
        if file.is_file() and not hidden and file.suffix != ".py" and not _matches(name, skip):
            contents[name] = _read_checked(file)
    return contents


def _read_checked(file: Path) -> str:
    try:
        text = read_text(file)
    except InputError as error:
        raise InputError(f"{error}; leave it out with `ignore`") from error
    if file.suffix == ".json":
        read_json(file)
    return text


def _matches(name: str, globs: Iterable[str]) -> bool:
    return any(fnmatch(name, glob) for glob in globs)

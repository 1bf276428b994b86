"""From settings to what is really started: the resolved command and a minimal environment."""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trajsmith.environments.adapters.mcp.settings import McpSettings
from trajsmith.records import InputError

_FROM_PARENT = re.compile(r"\$\{(\w+)\}")
_PRELOAD = Path(__file__).parent / "preload"
"""Folder of what interpreters load before a server that is seeded."""
_SHORTEST_SECRET = 6
"""Values shorter than this are not masked in texts: they would match by chance."""


@dataclass(frozen=True)
class ServerLaunch:
    """Resolved environment variables and paths for starting programs beside one workspace."""

    server: str
    base: Path
    """Directory that relative paths of the settings start from."""
    path: str
    env: dict[str, str]
    """All that a program sees of the environment."""
    secrets: tuple[str, ...]
    """Values taken from our own environment, to be masked in every text that comes back."""

    def resolve(self, command: list[str], workspace: Path) -> list[str]:
        """The command with its program found and its placeholders filled.

        Raises:
            InputError: There is no such program.
        """
        program, *arguments = [part.replace("{workspace}", str(workspace)) for part in command]
        candidate = str(self.base / program) if os.sep in program else program
        executable = shutil.which(candidate, path=self.path)
        if executable is None:
            raise InputError(
                f"MCP server {self.server}: command {program!r} was not found; "
                "install it, or name the directory that holds it under `path`"
            )
        return [executable, *(self._absolute(argument) for argument in arguments)]

    def _absolute(self, argument: str) -> str:
        if argument.startswith("-") or len(argument) > os.pathconf("/", "PC_NAME_MAX"):
            return argument
        file = self.base / argument
        return str(file) if file.is_file() else argument


def prepare_launch(settings: McpSettings, base: Path, workspace: Path) -> ServerLaunch:
    """Work out the environment of a server: PATH, HOME, LANG and what the settings list.

    Raises:
        InputError: A value is wanted from our own environment and is not there.
    """
    directories = [str((base / directory).absolute()) for directory in settings.path]
    path = os.pathsep.join([*directories, os.environ.get("PATH", os.defpath)])
    listed = {name: value.replace("{workspace}", str(workspace)) for name, value in settings.env.items()}
    extra, secrets = fill_from_parent(settings.name, listed)
    env = {"PATH": path, "HOME": str(workspace), "LANG": "C.UTF-8", **extra}
    if settings.seeded:
        env = _seed(env)
    return ServerLaunch(settings.name, base, env["PATH"], env, secrets)


def _seed(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which Python and Node load what makes their random numbers the same at every start."""
    python = os.pathsep.join(filter(None, (str(_PRELOAD), env.get("PYTHONPATH"))))
    node = f"{env.get('NODE_OPTIONS', '')} --require={_PRELOAD / 'seeded.cjs'}".strip()
    return {"PYTHONHASHSEED": "0", **env, "PYTHONPATH": python, "NODE_OPTIONS": node}


def fill_from_parent(server: str, values: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Fill `${NAME}` from our own environment; also returns the filled-in values, which are secrets.

    Raises:
        InputError: A name is not set.
    """
    secrets: list[str] = []

    def fill(match: re.Match[str]) -> str:
        value = os.environ.get(match[1])
        if value is None:
            raise InputError(f"MCP server {server}: the environment variable {match[1]} is not set")
        secrets.append(value)
        return value

    filled = {name: _FROM_PARENT.sub(fill, value) for name, value in values.items()}
    return filled, tuple(value for value in secrets if len(value) >= _SHORTEST_SECRET)

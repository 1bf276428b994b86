"""From settings to sources: which environments a run uses."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from environments.mcp import McpSettings, McpSource
from environments.native_source import file_source, library_source
from environments.session import EnvironmentSource
from trajectory import Frozen, InputError

Size = Literal["small", "medium", "large"]


class EnvironmentSettings(Frozen):
    """One environment: exactly one of `library`, `python` and `mcp`."""

    library: str | None = None
    """Name of a bundled environment; "*" stands for all of them."""
    python: str | None = None
    """A Python file of your own with an `Environment` class, for example "my_env.py" or "my_env.py:MyEnv"."""
    trusted: bool = False
    """Must be true for `python`: the code runs in this process, with your rights."""
    mcp: McpSettings | None = None
    """A live MCP server."""
    states: dict[Size, PositiveInt] = Field(default={"small": 2, "medium": 1})
    """How many initial states of each size are made, for `library` and `python`."""
    phrases: Path | None = None
    """Phrasebook for `python`; without it, `phrases.yaml` beside the file."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [kind for kind in ("library", "python", "mcp") if getattr(self, kind, None) is not None]
        if len(kinds) != 1:
            raise ValueError(f"give exactly one of library, python, mcp; there is {' and '.join(kinds) or 'none'}")
        return self


def open_source(settings: EnvironmentSettings) -> EnvironmentSource:
    """The source that one entry stands for.

    Raises:
        InputError: Something named there does not exist, or is not allowed.
    """
    sizes: dict[str, int] = {size: count for size, count in settings.states.items()}  # noqa: C416 - widens the keys
    if settings.mcp is not None:
        return McpSource(settings.mcp)
    if settings.python is not None:
        if not settings.trusted:
            raise InputError(
                f"environment {settings.python}: its code would run in this process with your rights; "
                "set `trusted: true` beside it if you trust it"
            )
        return file_source(settings.python, sizes, settings.phrases)
    return library_source(settings.library or "", sizes)

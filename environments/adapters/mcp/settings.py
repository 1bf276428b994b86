"""What a user says about a live MCP server: how to start it, its initial states, what counts as its state."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveFloat, model_validator

from trajsmith.phrasing import Phrasebook
from trajsmith.records import JsonObject, JsonValue, SourcePath


def _regex(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
    return pattern


def _inside(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise ValueError(f"{path!r} must be a path inside the workspace")
    return path


def _alias(path: str) -> str:
    if not re.fullmatch(r"(/[\w.-]+)+", path):
        raise ValueError(f"{path!r} must be an absolute path without a trailing slash")
    return path


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CallSettings(_Settings):
    """One call of a tool. Paths are written with the workspace's alias."""

    tool: str
    arguments: JsonObject = {}


class ObserveSettings(CallSettings):
    """A call whose result counts as state."""

    label: str
    """Key of the result in the snapshot."""
    drop: list[Annotated[str, AfterValidator(_regex)]] = []
    """Regular expressions; what they match is removed from every text of the result (times, process ids)."""


class StateSettings(_Settings):
    """An initial state: what to put into a fresh workspace, and what to call on the fresh server."""

    files: dict[Annotated[str, AfterValidator(_inside)], str] = {}
    """Relative path to text; a path that ends in "/" is an empty directory."""
    load: JsonObject | None = None
    """State for the server's own tool to load, before the calls; only with `snapshot`."""
    calls: list[CallSettings] = []


class SnapshotSettings(_Settings):
    """Tools by which a server saves and loads its whole state. Agents do not have them; the state is what they say."""

    save: str
    """Tool without required parameters that gives the state, an object."""
    load: str
    """Tool that goes on from a state, whatever happened before."""
    argument: str
    """Parameter of `load` that takes the state (as JSON text if it is declared as a string)."""
    reuse: bool = False
    """True if a running server may be loaded again, for speed; right only if `load` replaces all that it knows."""

    @model_validator(mode="after")
    def _differ(self) -> Self:
        if self.save == self.load:
            raise ValueError("`save` and `load` must be two tools")
        return self


class WorkspaceSettings(_Settings):
    """The directory that every session gets anew; it is the server's working directory and HOME."""

    alias: Annotated[str, AfterValidator(_alias)] = "/workspace"
    """The path that agents and records see in place of the real one."""
    setup: list[Annotated[list[str], Field(min_length=1)]] = []
    """Commands that run in it at every reset, after the files are written and before the server starts."""
    ignore: list[str] = []
    """Globs of files that are not state: `*` crosses "/", a glob without "/" matches names at any depth."""
    databases: list[str] = []
    """Globs of SQLite files whose rows are the state, in place of a hash of the file."""
    drop: list[Annotated[str, AfterValidator(_regex)]] = []
    """Regular expressions; what they match is removed from the texts of files and rows (times, process ids)."""


class ToolFilter(_Settings):
    """Selection of the server's tools that the environment offers."""

    include: list[str] | None = None
    """Only these; all if left out."""
    exclude: list[str] = []
    user: list[str] | None = None
    """Tools that only the user calls, on their own device; if left out, those of which `_meta` or the description says
    so."""


class McpSettings(_Settings):
    """A live MCP server as an environment. `{workspace}` in command, env and url is the real workspace directory."""

    file: SourcePath | None = None
    """`mcp.json` of Claude Desktop, Cursor or VS Code, in place of `command` and `url`: every server that it lists is
    an environment. With `name`, only that one."""
    name: str = ""
    command: Annotated[list[str], Field(min_length=1)] | None = None
    """Program and arguments of a stdio server; a relative path of an existing file is made absolute."""
    url: str | None = None
    """Address of a streamable HTTP server. It runs elsewhere, so only its sessions are fresh, not its process."""
    headers: dict[str, str] = {}
    """HTTP headers; `${NAME}` is taken from trajsmith's own environment, so that no secret stands in a file."""
    env: dict[str, str] = {}
    """Environment of the server beside PATH, HOME and LANG; nothing else is passed on. `${NAME}` as above."""
    seeded: bool = False
    """True if a Python or Node server gets the same random numbers and ids at every start, by a file that its
    interpreter loads first (`PYTHONPATH`, `NODE_OPTIONS`); other programs are not changed by it."""
    path: list[str] = []
    """Directories searched for commands before PATH, relative to the working directory."""
    description: str = ""
    domain: str = ""
    policy: str = ""
    tools: ToolFilter = ToolFilter()
    read_only: list[str] = []
    """Tools that are known to only read, whatever their annotations say."""
    refusals: list[Annotated[str, AfterValidator(_regex)]] = []
    """Regular expressions: a result whose text begins with a match is a refusal, though the server does not mark it by
    `isError`. There is no default, since a right result may begin with any words (a file, a log)."""
    literals: bool = False
    """True if results are texts of data that are to be read as that data: Python lists and dicts (`[{'name': 'Ada'}]`),
    and JSON that FastMCP wraps as `{"result": ...}`."""
    timeout: PositiveFloat = 30.0
    """Seconds that a call may take."""
    start_timeout: PositiveFloat = 30.0
    """Seconds that the server may take to start, and each setup command to end."""
    phrases: SourcePath | Phrasebook | None = None
    """Phrasebook: a YAML file, relative to the folder of the configuration, or its content."""
    scenarios: SourcePath | None = None
    """Scenarios (YAML), relative to the folder of the configuration; without it, `scenarios.yaml` beside a
    `phrases.yaml`."""
    workspace: WorkspaceSettings = WorkspaceSettings()
    states: dict[str, StateSettings] = {}
    """Initial states by name; one empty state if left out."""
    observe: list[ObserveSettings] = []
    snapshot: SnapshotSettings | None = None
    """The server's own tools to save and load its state; else going back is a fresh server and the same calls."""
    outputs: dict[str, JsonObject] = {}
    """By tool: JSON Schema of its results, where the server declares none or one without fields. It tells which values
    come from which tool; results are not checked against it."""
    explore: bool | None = None
    """Find out by calls what else this entry could say (states, values, `observe`, `refusals`) when a run starts. Left
    out, only servers of a client's file are explored."""
    explored: bool = False
    """The entry was written by an exploration, which saw that the tools under `read_only` change nothing: a server that
    was only read is not started anew."""
    parameter_examples: dict[str, list[JsonValue]] = {}
    """By "parameter" or "tool.parameter" (also of nested objects): sensible values, merged into the input schemas as
    `examples`. For an array, values that are no arrays are examples of its items."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.file is not None:
            if not self.model_fields_set <= {"file", "name", "explore"}:
                raise ValueError(
                    "beside `file` only `name` and `explore` can be given: servers are described in the file"
                )
            return self
        if not self.name:
            raise ValueError("give the server a `name`")
        if (self.command is None) == (self.url is None):
            raise ValueError("give either `command` (stdio) or `url` (streamable HTTP)")
        if self.url is None and self.headers:
            raise ValueError("`headers` are only for servers with a `url`")
        labels = [call.label for call in self.observe]
        if len(set(labels)) < len(labels):
            raise ValueError("labels under `observe` must differ")
        if self.snapshot is None:
            if any(state.load is not None for state in self.states.values()):
                raise ValueError("`load` in a state needs `snapshot`, which names the tool that loads it")
        elif self.observe:
            raise ValueError("give either `observe` or `snapshot`: the saved state of the server is the whole state")
        elif any(state.files != self.first_state.files for state in self.states.values()):
            raise ValueError(
                "with `snapshot`, all states must have the same files, because the saved state does not contain them"
            )
        return self

    @property
    def first_state(self) -> StateSettings:
        """The first initial state; the empty one where none is given."""
        return next(iter(self.states.values()), StateSettings())

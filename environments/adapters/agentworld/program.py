"""An Agent-World environment as a program: a directory of data files, and Python functions that read and write them.

The paper (section 8) shows six environments, and this is what they have in common:

* A directory of JSON, CSV, Markdown and text files, flat or with folders, is the database; it is the state. A JSON file
  is its value in the state, a CSV file a list of objects, every other file its text (see `contents`).
* A tool is a function; its name is the tool's name. Type hints and docstring are used where they are; a parameter
  without a hint has the type of its default; a list of tools with schemas may stand beside.
* Functions find their files by relative paths, by `os.getcwd()`, or under `/app/database`. All of these are the same
  directory here, in memory, and each play has its own: no other file can be found.
* A missing thing is `None` or an empty list, `{"error": "reason"}`, or an exception. Here an object with a text under
  "error" or a false "success" is a refusal, and so is an exception that a `raise` statement of the tools makes. An
  exception that comes out of what a tool does - a missing key, a file that does not parse - is a crash.

A tool file may read data at its top level; it then runs anew for every play, over the play's files.
"""

import traceback
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import orjson
from pydantic import ValidationError

from trajsmith.environments.adapters.agentworld.contents import parse_content, render_content
from trajsmith.environments.adapters.agentworld.memory import Files
from trajsmith.environments.adapters.agentworld.tool_modules import Spaces, ToolModules
from trajsmith.environments.foreign import format_error
from trajsmith.environments.programs import StateChange, apply_changes
from trajsmith.environments.session import ToolResult
from trajsmith.environments.signatures import FunctionSignature, read_signature
from trajsmith.environments.tool_metadata import merge_tool_metadata
from trajsmith.environments.toolbox import Toolbox, resolve_result
from trajsmith.records import (
    Actor,
    EnvironmentFault,
    EnvironmentSpec,
    InputError,
    JsonObject,
    JsonValue,
    ToolError,
    content_hash,
    environment_boundary,
    format_first_error,
)


class AgentWorldProgram:
    """Loaded tool files and data.

    Attributes:
        spec: What can be called.
        notes: What is odd about it.
    """

    def __init__(self, payload: JsonObject) -> None:
        self.name: str = payload["name"]
        self.notes: list[str] = []
        self._root: str = payload["root"]
        self._fixed: dict[str, str] = payload["fixed"]
        self._known: list[tuple[dict[str, str], JsonObject]] = [
            (texts, {name: parse_content(name, text) for name, text in texts.items()}) for texts in payload["states"]
        ]
        self.world = ToolModules(self.name, payload["sources"], self._root)
        files = self._mounted(self._known[0][1])
        functions = self._first_run(files, [source["file"] for source in payload["sources"]])
        self.notes += self.world.notes
        entries = {entry["name"]: entry for entry in payload["tools"] or ()}
        with self.world.activate(files, self.world.copy_initial_values(files)):
            self.signatures = self._signatures(functions, list(entries or functions), payload["sources"])
        self._modules = {name: functions[name][0] for name in self.signatures}
        self.spec = self._describe(payload, entries)
        self.toolbox = Toolbox(self.spec)

    def states(self, seed: int) -> list[JsonObject]:
        """The contents of the data directories."""
        return [contents for _, contents in self._known]

    def start(self, state: bytes, changes: Sequence[StateChange] = ()) -> "AgentWorldEpisode":
        contents = apply_changes(state, changes)
        files = self._mounted(contents)
        with environment_boundary(self.name):
            spaces = self.world.copy_initial_values(files)
        return AgentWorldEpisode(self, files, spaces, contents)

    def run(self, tool: str, arguments: dict[str, Any], files: Files, spaces: Spaces) -> Any:
        """Call a tool's function for an episode.

        Raises:
            ToolError: A `raise` statement of the tools refuses.
            EnvironmentFault: It breaks.
        """
        with self.world.activate(files, spaces) as function:
            try:
                with environment_boundary(self.name, tool):
                    return resolve_result(function(self._modules[tool], tool)(**arguments))
            except EnvironmentFault as fault:
                if fault.__cause__ is not None and self.world.is_refusal(fault.__cause__):
                    raise ToolError(format_error(fault.__cause__)) from fault
                raise

    def _first_run(self, files: Files, places: list[str]) -> dict[str, tuple[str, FunctionType]]:
        """The first run of all tool files.

        Raises:
            InputError: One does not run.
        """
        try:
            return self.world.load(files)
        except (Exception, SystemExit) as error:  # foreign code may raise anything
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in places]
            if isinstance(error, InputError) and not frames:
                raise
            where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else f"{places[0]}:1"
            raise InputError(f"{where}: {type(error).__name__}: {format_error(error)}") from error

    def _mounted(self, contents: JsonObject) -> Files:
        """Contents as files.

        Raises:
            EnvironmentFault: A name or a content is none of a file (kind `state`).
        """
        texts, directories = {}, set()
        for name, content in contents.items():
            if {"", ".", ".."} & set(name.removesuffix("/").split("/")):
                raise EnvironmentFault("state", self.name, f"{name!r} is no name of a file")
            if name.endswith("/"):
                directories.add(name[:-1])
            else:
                texts[name] = self._text(name, content)
        return Files(self._root, texts, self._fixed, directories)

    def _text(self, name: str, content: JsonValue) -> str:
        """The text that a file had when it was read, if it still has this content; else one that has it."""
        for texts, contents in self._known:
            if name in texts and contents[name] == content:
                return texts[name]
        try:
            return render_content(name, content)
        except (ValueError, TypeError) as error:
            raise EnvironmentFault("state", self.name, str(error)) from error

    def _signatures(
        self, functions: dict[str, tuple[str, FunctionType]], wanted: list[str], sources: list[JsonObject]
    ) -> dict[str, FunctionSignature]:
        places = {source["name"]: source["file"] for source in sources}
        signatures = {}
        for name in wanted:
            if name not in functions:
                self.notes.append(f"tool {name} is listed, but it is no public function: it is not offered")
                continue
            module, function = functions[name]
            where = f"{places[module]}:{function.__code__.co_firstlineno}: tool {name}"
            try:
                signatures[name] = read_signature(function, where, guess=True)
            except InputError as error:
                self.notes.append(f"{error}; it is not offered")
        if not signatures:
            raise InputError(f"{self.name}: no tools: public functions of {', '.join(places.values())} are tools")
        return signatures

    def _describe(self, payload: JsonObject, entries: JsonObject) -> EnvironmentSpec:
        tools = []
        for name, signature in self.signatures.items():
            shape = merge_tool_metadata(name, signature, None, entries.get(name))
            self.notes += shape.notes
            tools.append(shape.tool(self.name, name))
        described = [tool.model_dump(mode="json") for tool in tools]
        return EnvironmentSpec(
            name=self.name,
            version=content_hash([payload["sources"], self._fixed, described], 16),
            description=payload["description"],
            policy=payload["policy"],
            tools=tuple(tools),
            source=f"agentworld:{payload['file']}",
        )


class AgentWorldEpisode:
    """One episode: its own files, and its own run of the tool files."""

    def __init__(self, program: AgentWorldProgram, files: Files, spaces: Spaces, contents: JsonObject) -> None:
        self._program = program
        self._files = files
        self._spaces = spaces
        self._reported: dict[str, bytes | None] = {}
        self._contents = contents

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        program = self._program
        refused = program.toolbox.refusal(tool, arguments, actor)
        if refused is not None:
            return refused
        signature = program.signatures[tool]
        try:
            value = program.run(tool, signature.parse_arguments(arguments), self._files, self._spaces)
        except ValidationError as error:
            return ToolResult.refusal("invalid_arguments", format_first_error(error))
        except ToolError as refusal:
            return ToolResult.refusal("refused", str(refusal))
        return program.toolbox.answer(tool, program.toolbox.content(tool, value), text=signature.result is None)

    def changes(self) -> list[StateChange]:
        changes: list[StateChange] = []
        for name in sorted(self._files.touched):
            text = self._content(name)
            if text != self._last(name):
                self._reported[name] = text
                changes.append((name, None, text))
        self._files.touched.clear()
        return changes

    def _last(self, name: str) -> bytes | None:
        """The content that was told last, as JSON; None if there was no such file."""
        if name not in self._reported:
            self._reported[name] = orjson.dumps(self._contents[name]) if name in self._contents else None
        return self._reported[name]

    def _content(self, name: str) -> bytes | None:
        files = self._files
        if name.endswith("/"):
            return b'""' if name != "/" and files.is_empty_directory(name[:-1]) else None
        try:
            return orjson.dumps(parse_content(name, files.read(name)))
        except OSError:
            return None
        except TypeError as error:
            raise EnvironmentFault("state", self._program.name, f"{name} is no JSON: {error}") from error


def load(payload: JsonObject) -> AgentWorldProgram:
    """Load tool files and data; see `trajsmith.environments.adapters.agentworld.settings.payload` for what comes.

    Raises:
        InputError: They do not run, or have no tools; the text names file and line.
    """
    return AgentWorldProgram(payload)

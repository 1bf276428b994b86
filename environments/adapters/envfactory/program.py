"""An EnvFactory environment as a program: a FastMCP file with a singleton, its metadata, its scenarios.

The file is loaded as it is, with a stand-in for the server library that records its tools. What it does is kept:

* The state is what its `save_scenario` returns, and a play starts with its `load_scenario`. Both are administration:
  agents do not see them.
* The file's convention for a refusal is `raise ValueError("reason")` (pydantic's `ValidationError` is one). Some files
  return `{"error": "reason", ...}` or `{"success": false, ...}` instead: that is a refusal too, and the agent sees the
  whole object. `"status": "failed"` and sentences are data. Every other exception is a crash.
* A refused call may have changed the state; the file says what it does, and nothing is rolled back here.
* Metadata describes the tools. Where it disagrees with the code, the code is what can be called, and the disagreement
  stands in `EnvFactoryProgram.notes`. Output schemas of the metadata never say what may be absent, and published tools
  give null for it; so null is no violation, any other mismatch is.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from trajsmith.environments.adapters.envfactory.fastmcp_stub import (
    Function,
    StubContext,
    StubFastMCP,
    ToolRecorder,
    ToolRefusal,
    install_stub_library,
)
from trajsmith.environments.adapters.envfactory.scenarios import ScenarioLoader
from trajsmith.environments.adapters.envfactory.tools import (
    LOAD,
    SAVE,
    EnvFactoryTool,
    build_spec,
    find_admin_function,
    read_tools,
)
from trajsmith.environments.foreign import format_error, run_source
from trajsmith.environments.json_data import NotJsonError, to_plain_json
from trajsmith.environments.module_state import ModuleState, ModuleValues, is_changeable, module_name
from trajsmith.environments.programs import StateChange, StateDiffer, apply_changes
from trajsmith.environments.session import ToolResult
from trajsmith.environments.toolbox import Toolbox, is_refusal_content, resolve_result
from trajsmith.records import (
    Actor,
    EnvironmentFault,
    InputError,
    JsonObject,
    JsonValue,
    environment_boundary,
    format_first_error,
)


class EnvFactoryProgram:
    """A loaded tool file.

    Attributes:
        spec: What can be called.
        notes: What is odd about it: disagreements with the metadata, scenarios that do not load, things left out.
    """

    def __init__(self, payload: JsonObject) -> None:
        self.name: str = payload["name"]
        self.file: str = payload["file"]
        recorder = ToolRecorder()
        with install_stub_library(recorder):
            module = run_source(payload["source"], self.file, f"envfactory_{module_name(self.name)}")
        if not recorder.tools:
            raise InputError(f"{self.file}:1: no tools: functions under @mcp.tool() of a FastMCP server are tools")
        self._module = ModuleState(module, payload["source"], _can_change)
        self._load = find_admin_function(module, recorder, LOAD, self.file)
        self._save = find_admin_function(module, recorder, SAVE, self.file)
        if (self._load is None) != (self._save is None):
            have, lack = (LOAD, SAVE) if self._save is None else (SAVE, LOAD)
            raise InputError(f"{self.file}:1: it has {have}, but no {lack}: a play could not be saved and loaded")
        self.tools = read_tools(recorder, self._module, {LOAD, SAVE, *payload["hide"]}, self.file)
        self.spec, notes = build_spec(payload, self.tools, recorder, module)
        self.toolbox = Toolbox(self.spec, nulls=True)
        moment = datetime.fromisoformat(payload["moment"])
        scenarios = ScenarioLoader(self.begin, self._first(), self.spec.state_schema, moment)
        self._states, more = scenarios.load_acceptable(payload["scenarios"])
        self.notes: list[str] = [*recorder.notes, *self._module.notes, *notes, *more]

    def states(self, seed: int) -> list[JsonObject]:
        """The scenarios that load, in the order of their file; without any, what the file starts with.

        Raises:
            InputError: The file refuses all of them, and its own start.
        """
        if not self._states:
            raise InputError(f"{self.file}: no initial state: {self.notes[-1]}; give scenarios that it accepts")
        return self._states

    def start(self, state: bytes, changes: Sequence[StateChange] = ()) -> "EnvFactoryEpisode":
        text = StateDiffer(apply_changes(state, changes))
        return EnvFactoryEpisode(self, self.begin(apply_changes(state, changes)), text)

    def begin(self, scenario: JsonObject) -> ModuleValues:
        """The values of an episode at a scenario; the file may keep and change what it is given.

        Raises:
            EnvironmentFault: The file refuses the scenario (kind `state`), or breaks on it.
        """
        values = self._module.copy_initial_values()
        if self._load is None and scenario:
            raise EnvironmentFault("state", self.name, f"it has no {LOAD}, so its only state is {{}}")
        if self._load is None:
            return values
        try:
            answer = self._run(self._load, [scenario], {}, values, LOAD)
        except ToolRefusal as refusal:
            raise EnvironmentFault("state", self.name, f"{LOAD} refuses it: {refusal}") from refusal
        if is_refusal_content(answer):
            raise EnvironmentFault("state", self.name, f"{LOAD} refuses it: {str(answer)[:300]}")
        return values

    def dump_state(self, values: ModuleValues) -> JsonObject:
        """The state of an episode, as plain JSON.

        Raises:
            EnvironmentFault: It is no JSON object (kind `state`), or saving breaks.
        """
        if self._save is None:
            return {}
        try:
            state = self._run(self._save, [], {}, values, SAVE)
            content = to_plain_json(state)
        except (NotJsonError, ToolRefusal) as error:
            raise EnvironmentFault("state", self.name, f"{SAVE} gives no JSON: {error}") from error
        if not isinstance(content, dict):
            raise EnvironmentFault("state", self.name, f"{SAVE} gives a {type(state).__name__}, not an object")
        return content

    def run(self, tool: str, arguments: dict[str, Any], values: ModuleValues) -> Any:
        """Call a tool's function for an episode.

        Raises:
            ToolRefusal: It refuses, by an exception.
            EnvironmentFault: It breaks.
        """
        entry = self.tools[tool]
        named = {**arguments, entry.context: StubContext()} if entry.context else arguments
        return self._run(entry.registered.function, [], named, values, tool)

    def _run(
        self, function: Function, positional: list[Any], named: dict[str, Any], values: ModuleValues, tool: str
    ) -> Any:
        bound = self._module.bind_function(function, values)
        try:
            with self._module.swap_in(values), environment_boundary(self.name, tool):
                return resolve_result(bound(*positional, **named))
        except EnvironmentFault as fault:
            if isinstance(fault.__cause__, ValueError | ToolRefusal):
                raise ToolRefusal(format_error(fault.__cause__)) from fault
            raise

    def _first(self) -> JsonObject:
        """The state that the file starts with, before any scenario; nothing if it cannot be saved."""
        try:
            return self.dump_state(self._module.copy_initial_values())
        except EnvironmentFault:
            return {}


class EnvFactoryEpisode:
    """One episode: its own values of the file's module."""

    def __init__(self, program: EnvFactoryProgram, values: ModuleValues, text: StateDiffer) -> None:
        self._program = program
        self._values = values
        self._text = text

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        program = self._program
        refused = program.toolbox.refusal(tool, arguments, actor)
        if refused is not None:
            return refused
        entry = program.tools[tool]
        try:
            parsed = entry.signature.parse_arguments(arguments)
        except ValidationError as error:
            return ToolResult.refusal("invalid_arguments", format_first_error(error))
        try:
            value = program.run(tool, parsed, self._values)
        except ToolRefusal as refusal:
            return ToolResult.refusal("refused", str(refusal))
        text = entry.signature.result is None
        return program.toolbox.answer(tool, self._content(entry, value), text)

    def changes(self) -> list[StateChange]:
        return self._text.changes(self._program.dump_state(self._values), self._program.name)

    def _content(self, tool: EnvFactoryTool, value: Any) -> JsonValue:
        """Convert a result by its type hint, as the server library does."""
        name, adapter = tool.registered.name, tool.signature.result
        if adapter is not None and not is_refusal_content(value):
            try:
                value = adapter.dump_python(adapter.validate_python(value), mode="json", by_alias=True)
            except (ValidationError, PydanticSerializationError) as error:
                raise EnvironmentFault("output_schema", self._program.name, format_error(error), name) from error
        return self._program.toolbox.content(name, value)


def load(payload: JsonObject) -> EnvFactoryProgram:
    """Load a tool file; see `trajsmith.environments.adapters.envfactory.settings.payload` for what it comes with.

    Raises:
        InputError: It does not run, or is no tool file of this form; the text names file and line.
    """
    return EnvFactoryProgram(payload)


def _can_change(value: object) -> bool:
    """Return whether episodes get copies of a module's value; all have the one recorder of tools."""
    return not isinstance(value, StubFastMCP) and is_changeable(value)

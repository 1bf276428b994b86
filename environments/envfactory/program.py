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

from environments.envfactory.scenarios import Scenarios
from environments.envfactory.standin import Context, Function, Recorder, Server, ToolRefusal, server_library
from environments.envfactory.tools import LOAD, SAVE, Tool, administration, described, read_tools
from environments.foreign import run_source
from environments.hosting import Change, StateText, changed_state
from environments.module_state import ModuleState, Values, module_name
from environments.plain import NotJson, plain
from environments.session import ToolResult
from environments.toolbox import Toolbox, finished, says_no, words
from trajectory import (
    Actor,
    EnvironmentFault,
    InputError,
    JsonObject,
    JsonValue,
    environment_boundary,
    first_fault,
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
        recorder = Recorder()
        with server_library(recorder):
            module = run_source(payload["source"], self.file, f"envfactory_{module_name(self.name)}")
        if not recorder.tools:
            raise InputError(f"{self.file}:1: no tools: functions under @mcp.tool() of a FastMCP server are tools")
        self._module = ModuleState(module, payload["source"], (Server,))
        self._load = administration(module, recorder, LOAD, self.file)
        self._save = administration(module, recorder, SAVE, self.file)
        if (self._load is None) != (self._save is None):
            have, lack = (LOAD, SAVE) if self._save is None else (SAVE, LOAD)
            raise InputError(f"{self.file}:1: it has {have}, but no {lack}: a play could not be saved and loaded")
        self.tools = read_tools(recorder, self._module, {LOAD, SAVE, *payload["hide"]}, self.file)
        self.spec, notes = described(payload, self.tools, recorder, module)
        self.toolbox = Toolbox(self.spec, nulls=True)
        moment = datetime.fromisoformat(payload["moment"])
        scenarios = Scenarios(self.begin, self._first(), self.spec.state_schema, moment)
        self._states, more = scenarios.acceptable(payload["scenarios"])
        self.notes: list[str] = [*recorder.notes, *self._module.notes, *notes, *more]

    def states(self, seed: int) -> list[JsonObject]:
        """The scenarios that load, in the order of their file; without any, what the file starts with.

        Raises:
            InputError: The file refuses all of them, and its own start.
        """
        if not self._states:
            raise InputError(f"{self.file}: no initial state: {self.notes[-1]}; give scenarios that it accepts")
        return self._states

    def start(self, state: bytes, changes: Sequence[Change] = ()) -> "EnvFactoryPlay":
        text = StateText(changed_state(state, changes))
        return EnvFactoryPlay(self, self.begin(changed_state(state, changes)), text)

    def begin(self, scenario: JsonObject) -> Values:
        """The values of a play at a scenario; the file may keep and change what it is given.

        Raises:
            EnvironmentFault: The file refuses the scenario (kind `state`), or breaks on it.
        """
        values = self._module.fresh()
        if self._load is None and scenario:
            raise EnvironmentFault("state", self.name, f"it has no {LOAD}, so its only state is {{}}")
        if self._load is None:
            return values
        try:
            said = self._run(self._load, [scenario], {}, values, LOAD)
        except ToolRefusal as refusal:
            raise EnvironmentFault("state", self.name, f"{LOAD} refuses it: {refusal}") from refusal
        if says_no(said):
            raise EnvironmentFault("state", self.name, f"{LOAD} refuses it: {str(said)[:300]}")
        return values

    def saved(self, values: Values) -> JsonObject:
        """The state of a play, as plain JSON.

        Raises:
            EnvironmentFault: It is no JSON object (kind `state`), or saving breaks.
        """
        if self._save is None:
            return {}
        try:
            state = self._run(self._save, [], {}, values, SAVE)
            made = plain(state)
        except (NotJson, ToolRefusal) as error:
            raise EnvironmentFault("state", self.name, f"{SAVE} gives no JSON: {error}") from error
        if not isinstance(made, dict):
            raise EnvironmentFault("state", self.name, f"{SAVE} gives a {type(state).__name__}, not an object")
        return made

    def run(self, tool: str, arguments: dict[str, Any], values: Values) -> Any:
        """Call a tool's function for a play.

        Raises:
            ToolRefusal: It refuses, by an exception.
            EnvironmentFault: It breaks.
        """
        found = self.tools[tool]
        given = {**arguments, found.context: Context()} if found.context else arguments
        return self._run(found.registered.function, [], given, values, tool)

    def _run(self, function: Function, positional: list[Any], named: dict[str, Any], values: Values, tool: str) -> Any:
        bound = self._module.bound(function, values)
        try:
            with self._module.swapped(values), environment_boundary(self.name, tool):
                return finished(bound(*positional, **named))
        except EnvironmentFault as fault:
            if isinstance(fault.__cause__, ValueError | ToolRefusal):
                raise ToolRefusal(words(fault.__cause__)) from fault
            raise

    def _first(self) -> JsonObject:
        """The state that the file starts with, before any scenario; nothing if it cannot be saved."""
        try:
            return self.saved(self._module.fresh())
        except EnvironmentFault:
            return {}


class EnvFactoryPlay:
    """One play: its own values of the file's module."""

    def __init__(self, program: EnvFactoryProgram, values: Values, text: StateText) -> None:
        self._program = program
        self._values = values
        self._text = text

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        program = self._program
        refused = program.toolbox.refusal(tool, arguments, actor)
        if refused is not None:
            return refused
        found = program.tools[tool]
        try:
            parsed = found.signature.parsed(arguments)
        except ValidationError as error:
            return ToolResult.refusal("invalid_arguments", first_fault(error))
        try:
            value = program.run(tool, parsed, self._values)
        except ToolRefusal as refusal:
            return ToolResult.refusal("refused", str(refusal))
        text = found.signature.result is None
        return program.toolbox.answer(tool, self._content(found, value), text)

    def changes(self) -> list[Change]:
        return self._text.changes(self._program.saved(self._values), self._program.name)

    def _content(self, tool: Tool, value: Any) -> JsonValue:
        """What the server library makes of a result, by its type hint."""
        name, adapter = tool.registered.name, tool.signature.result
        if adapter is not None and not says_no(value):
            try:
                value = adapter.dump_python(adapter.validate_python(value), mode="json", by_alias=True)
            except (ValidationError, PydanticSerializationError) as error:
                raise EnvironmentFault("output_schema", self._program.name, words(error), name) from error
        return self._program.toolbox.content(name, value)


def load(payload: JsonObject) -> EnvFactoryProgram:
    """Load a tool file; see `environments.envfactory.settings.payload` for what it comes with.

    Raises:
        InputError: It does not run, or is no tool file of this form; the text names file and line.
    """
    return EnvFactoryProgram(payload)

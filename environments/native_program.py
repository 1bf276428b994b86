"""Native environments as programs: bundled classes as they are, users' files from their source text."""

import functools
from collections.abc import Sequence
from typing import Any, cast

import orjson
from pydantic import ValidationError

from trajsmith.environments.foreign import run_source
from trajsmith.environments.jsontypes import StateError
from trajsmith.environments.native import Environment, NativeTool, build_class_spec, native_tools, only_environment
from trajsmith.environments.native_layout import InitialState, StateLayout, get_state_layout
from trajsmith.environments.native_state import LiveState, WholeState
from trajsmith.environments.program_sessions import LocalEpisodeLink, RestorableSession, StartCache
from trajsmith.environments.programs import StateChange, apply_changes
from trajsmith.environments.recent_states import RecentStates
from trajsmith.environments.session import ToolResult
from trajsmith.records import (
    Actor,
    EnvironmentFault,
    EnvironmentSpec,
    InputError,
    JsonObject,
    ToolError,
    derive_seed,
    environment_boundary,
    format_first_error,
    hash_bytes,
)


class NativeEpisode:
    """One episode of a native environment."""

    __slots__ = ("_environment", "_name", "_state", "_tools")

    def __init__(
        self, cls: type[Environment[Any]], name: str, tools: dict[str, NativeTool], state: LiveState | WholeState
    ) -> None:
        self._name = name
        self._tools = tools
        self._state = state
        if cls.__init__ is Environment.__init__:
            self._environment = cls(state.state)
        else:
            state.begin(writing=True)
            with environment_boundary(name):
                self._environment = cls(state.state)
            self._finish(None)

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Validate the arguments, run the method, show its result. A refusal or a fault leaves the state as it was."""
        entry = self._tools.get(tool)
        if entry is None or entry.spec.actor != actor:
            return ToolResult.refusal("unknown_tool", f"unknown tool: {tool}")
        with environment_boundary(self._name, tool):
            parsed = entry.parse_arguments(arguments)
        if isinstance(parsed, str):
            return ToolResult.refusal("invalid_arguments", parsed)
        self._state.begin(entry.effect == "write")
        try:
            content = entry.content(entry.method(self._environment, **parsed))
            self._finish(tool)
        except ToolError as refusal:
            self._revert()
            return ToolResult.refusal("refused", str(refusal))
        except EnvironmentFault:
            self._revert()
            raise
        except Exception as error:
            self._revert()
            raise EnvironmentFault("crash", self._name, f"{type(error).__name__}: {error}", tool) from error
        except BaseException:  # a limit of the worker that runs this play
            self._revert()
            raise
        return ToolResult(content)

    def changes(self) -> list[StateChange]:
        """Return the changes of the state since the last call of this method.

        Raises:
            EnvironmentFault: A tool that only reads, as it says, has left what is no state.
        """
        try:
            return self._state.changes()
        except StateError as error:
            raise EnvironmentFault("state", self._name, str(error)) from error

    def _finish(self, tool: str | None) -> None:
        environment, state = self._environment, self._state
        try:
            state.finish(environment.state)
        except StateError as error:
            raise EnvironmentFault("state", self._name, str(error), tool) from error
        environment.state = state.state

    def _revert(self) -> None:
        self._state.revert()
        self._environment.state = self._state.state


class NativeProgram:
    """A class of this process as a program."""

    def __init__(
        self,
        cls: type[Environment[Any]],
        sizes: dict[str, int] | None = None,
        spec: EnvironmentSpec | None = None,
        file_states: dict[str, JsonObject] | None = None,
    ) -> None:
        """`sizes` says how many initial states of each size there are; the spec is the class's own if left out.

        States that are given as `file_states`, by the file that they come from, stand in place of made ones.
        """
        self.spec = spec or cls.describe()
        self.notes: list[str] = []
        self.cls = cast(Any, cls)  # mypy does not see that classes can be hashed
        self.sizes = sizes or {}
        self.file_states = file_states or {}
        self.shape: StateLayout = get_state_layout(self.cls.state_type())
        self._initial: RecentStates[InitialState] = RecentStates()

    def states(self, seed: int) -> list[JsonObject]:
        """The initial states that a run uses: those that are given, or as many as `sizes` says.

        Raises:
            InputError: A given one is no state of the class.
        """
        if self.file_states:
            return [self._read(file, state) for file, state in self.file_states.items()]
        name, states = self.cls.environment_name(), []
        if self.sizes and not self.cls.has_seeds():
            raise InputError(f"environment {name} has no seed_state(): give its states as files")
        for size, count in self.sizes.items():
            for number in range(count):
                with environment_boundary(name):
                    state = self.cls.seed_state(size, derive_seed(seed, name, size, number) % 2**31)
                    states.append(orjson.loads(state.model_dump_json()))
        return states

    def _read(self, file: str, state: JsonObject) -> JsonObject:
        """A given state with what it leaves to defaults."""
        with environment_boundary(self.spec.name):
            try:
                read = self.cls.state_type().model_validate_json(orjson.dumps(state))
            except ValidationError as error:
                fault = format_first_error(error)
            else:
                parsed: JsonObject = orjson.loads(read.model_dump_json())
                return parsed
        raise InputError(f"{file}: no state of {self.spec.name}: {fault}")
        return parsed

    def start(self, state: bytes, changes: Sequence[StateChange] = ()) -> NativeEpisode:
        """A new episode; costs microseconds where the initial state is known, whatever its size.

        Raises:
            EnvironmentFault: This is no state of the class.
        """
        try:
            return NativeEpisode(self.cls, self.spec.name, native_tools(self.cls), self._live(state, changes))
        except StateError as error:
            raise EnvironmentFault("state", self.spec.name, str(error)) from error

    def _live(self, state: bytes, changes: Sequence[StateChange]) -> LiveState | WholeState:
        shape = self.shape
        if not all(
            (name in shape.tables) if key is not None else (text is not None and name in shape.parts)
            for name, key, text in changes
        ):
            state, changes = orjson.dumps(apply_changes(state, changes)), ()
        initial = self._split_state(state)
        return WholeState(shape, initial) if shape.eager_reason else LiveState(shape, initial, changes)

    def _split_state(self, state: bytes) -> InitialState:
        """An initial state in pieces. The same bytes object is found without reading it: its hash stays with it."""
        initial = self._initial.get(state)
        if initial is None:
            initial = self.shape.split_state(state)
            self._initial.put(state, initial)
        return initial


def load(payload: JsonObject) -> NativeProgram:
    """A program from a user's file.

    Args:
        payload: {"source": text, "file": name for error texts, "cls": name of the class or "" if there is only one,
            "sizes": how many initial states of each size, "given": states by file name, in place of made ones}.

    Raises:
        InputError: The file does not run, or has no such class; the text names file and line.
    """
    file, source, wanted = payload["file"], payload["source"], payload["cls"]
    code = hash_bytes(source.encode())
    module = run_source(source, file, f"environment_{code[:16]}")
    if wanted:
        cls = vars(module).get(wanted)
        if not (isinstance(cls, type) and issubclass(cls, Environment)):
            raise InputError(f"{file}: there is no Environment class named {wanted!r}")
    else:
        cls = only_environment(module, file)
    return NativeProgram(cls, payload["sizes"], build_class_spec(cls, f"native:{file}", code), payload.get("given"))


@functools.cache
def get_native_program(cls: Any) -> NativeProgram:
    """The program of a class, shared by all its sessions."""
    return NativeProgram(cls)


class NativeSession(RestorableSession):
    """A session of a class, in this process."""

    def __init__(self, cls: type[Environment[Any]], spec: EnvironmentSpec, starts: StartCache | None = None) -> None:
        super().__init__(spec, LocalEpisodeLink(get_native_program(cast(Any, cls))), starts)

"""Interfaces of environment programs and their episodes, in the process that runs the code. All synchronous.

Adapters turn others' code into a `Program`; the same program runs in this process (bundled code) or in a sandbox
worker (all other code), behind one kind of session (`trajsmith.environments.program_sessions`).
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import orjson

from trajsmith.environments.session import InitialAction, ToolResult
from trajsmith.records import Actor, EnvironmentFault, EnvironmentSpec, JsonObject

StateChange = tuple[str, str | None, bytes | None]
"""What became of the state: (part, key, JSON). A part is a top-level field of the state. Without a key the whole part
is new; with a key one entry of a part that is an object. Without JSON the part or entry is gone."""


class EnvironmentEpisode(Protocol):
    """Isolated episode of a program, at some state."""

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Call a tool; arguments are validated before foreign code sees them.

        Raises:
            EnvironmentFault: The environment broke; a refusal is a result.
        """

    def changes(self) -> list[StateChange]:
        """Return the changes of the state since the last call of this method; at first, since the start."""


@runtime_checkable
class PreparablePlay(Protocol):
    """A play whose form lets tasks start with methods that are no tools."""

    def prepare(self, actions: Sequence[InitialAction]) -> str | None:
        """Run the initial actions of a task; returns why one was refused, or None."""


def prepare(play: EnvironmentEpisode, actions: Sequence[InitialAction]) -> str | None:
    """Run the initial actions of a task: tool calls, unless the play knows more; returns why one was refused, or None.

    Raises:
        EnvironmentFault: The environment broke.
    """
    if isinstance(play, PreparablePlay):
        return play.prepare(actions)
    for action in actions:
        result = play.call(action["tool"], action["arguments"], action["actor"])
        if not result.ok:
            return f"{action['tool']}: {result.text}"
    return None


class EnvironmentProgram(Protocol):
    """Loaded code of an environment."""

    spec: EnvironmentSpec
    notes: list[str]
    """What the loader has to say about the environment's files: left out, disagreeing, changed on the way in."""

    def states(self, seed: int) -> list[JsonObject]:
        """The initial states that a run uses; the same seed gives the same states."""

    def start(self, state: bytes, changes: Sequence[StateChange] = ()) -> EnvironmentEpisode:
        """Start an episode at a state, given as JSON, after changes; its next `changes()` counts from there on.

        Raises:
            EnvironmentFault: This is no state of the environment (kind `state`), or its code breaks on it.
        """


_LOADERS = {
    "native": "trajsmith.environments.native_program:load",
    "check": "trajsmith.environments.check_program:load",
    "solution": "trajsmith.environments.solution_program:load",
}


def find_loader(kind: str) -> str:
    """Return where the loader of a kind of program is, as "module:function".

    A loader is a function from a payload (plain JSON, sources as text) to a program. That of a built-in adapter is
    `program:load` in its folder; an installed adapter gives "module:function" itself as its kind.
    """
    return kind if ":" in kind else _LOADERS.get(kind, f"trajsmith.environments.adapters.{kind}.program:load")


def load_program(kind: str, payload: JsonObject) -> EnvironmentProgram:
    """Load a program into this process.

    Raises:
        InputError: Its source is wrong; the text names file and line.
    """
    module, _, function = find_loader(kind).partition(":")
    loader: Callable[[JsonObject], EnvironmentProgram] = getattr(importlib.import_module(module), function)
    return loader(payload)


def apply_changes(state: bytes, changes: Sequence[StateChange]) -> JsonObject:
    """Return a state after changes, as a fresh object.

    Raises:
        EnvironmentFault: An entry changed in a part that is no object.
    """
    parts: JsonObject = orjson.loads(state)
    for name, key, text in changes:
        if key is None:
            _put(parts, name, text)
        elif isinstance(parts.get(name), dict):
            _put(parts[name], key, text)
        else:
            raise EnvironmentFault("protocol", name, "an entry changed in a part that is no object")
    return parts


def _put(values: JsonObject, key: str, text: bytes | None) -> None:
    if text is None:
        values.pop(key, None)
    else:
        values[key] = orjson.loads(text)


class StateDiffer:
    """Finds the changed parts of a state that is dumped as a whole, by comparing texts."""

    def __init__(self, state: Mapping[str, object]) -> None:
        self._texts = {name: orjson.dumps(part) for name, part in state.items()}

    def changes(self, state: Mapping[str, object], environment: str) -> list[StateChange]:
        """Return the changes of `state` since the last call.

        Raises:
            EnvironmentFault: The state is no JSON (kind `state`).
        """
        changes: list[StateChange] = []
        for name, part in state.items():
            try:
                text = orjson.dumps(part)
            except (TypeError, orjson.JSONEncodeError) as error:
                raise EnvironmentFault("state", environment, f"{name} is no JSON: {error}") from error
            if self._texts.get(name) != text:
                self._texts[name] = text
                changes.append((name, None, text))
        for name in self._texts.keys() - state.keys():
            del self._texts[name]
            changes.append((name, None, None))
        return changes

"""What an environment is to the process that runs its code: a program, and its plays. All of it is synchronous.

Adapters turn others' code into a `Program`; the same program runs in this process (bundled code) or in a sandbox
worker (all other code), behind one kind of session (`environments.hosted`).
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import orjson

from environments.session import InitialAction, ToolResult
from trajectory import Actor, EnvironmentFault, EnvironmentSpec, JsonObject

Change = tuple[str, str | None, bytes | None]
"""What became of the state: (part, key, JSON). A part is a top-level field of the state. Without a key the whole part
is new; with a key one entry of a part that is an object. Without JSON the part or entry is gone."""


class Play(Protocol):
    """One isolated play of a program, at some state."""

    def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Call a tool; arguments are validated before foreign code sees them.

        Raises:
            EnvironmentFault: The environment broke; a refusal is a result.
        """

    def changes(self) -> list[Change]:
        """How the state differs from what the last call of this method told; at first, from the state at the start."""


@runtime_checkable
class PreparablePlay(Protocol):
    """A play whose form lets tasks start with methods that are no tools."""

    def prepare(self, actions: Sequence[InitialAction]) -> str | None:
        """Run the initial actions of a task; returns why one was refused, or None."""


def prepare(play: Play, actions: Sequence[InitialAction]) -> str | None:
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


class Program(Protocol):
    """The loaded code of an environment."""

    spec: EnvironmentSpec
    notes: list[str]
    """What the loader has to say about the environment's files: left out, disagreeing, changed on the way in."""

    def states(self, seed: int) -> list[JsonObject]:
        """The initial states that a run uses; the same seed gives the same states."""

    def start(self, state: bytes, changes: Sequence[Change] = ()) -> Play:
        """A new play at a state, given as JSON, after changes; the next `changes()` of the play tells from there on.

        Raises:
            EnvironmentFault: This is no state of the environment (kind `state`), or its code breaks on it.
        """


LOADERS: dict[str, str] = {
    "native": "environments.native_program:load",
    "envfactory": "environments.envfactory.program:load",
    "envscaler": "environments.envscaler.program:load",
    "agentworld": "environments.agentworld.program:load",
    "awm": "environments.awm.program:load",
    "openapi": "environments.openapi.program:load",
    "tau2": "environments.tau2.program:load",
    "check": "environments.check_program:load",
}
"""Where the loader of each kind of program is: a function from a payload (plain JSON, sources as text) to a program."""


def load_program(kind: str, payload: JsonObject) -> Program:
    """Load a program into this process.

    Raises:
        InputError: Its source is wrong; the text names file and line.
    """
    module, _, function = LOADERS[kind].partition(":")
    loader: Callable[[JsonObject], Program] = getattr(importlib.import_module(module), function)
    return loader(payload)


def changed_state(state: bytes, changes: Sequence[Change]) -> JsonObject:
    """A state after changes, as a fresh object.

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


class StateText:
    """Tells the changes of a state that is dumped as a whole: by part, comparing texts."""

    def __init__(self, state: Mapping[str, object]) -> None:
        self._texts = {name: orjson.dumps(part) for name, part in state.items()}

    def changes(self, state: Mapping[str, object], environment: str) -> list[Change]:
        """What is new in `state` since the last time.

        Raises:
            EnvironmentFault: The state is no JSON (kind `state`).
        """
        found: list[Change] = []
        for name, part in state.items():
            try:
                text = orjson.dumps(part)
            except (TypeError, orjson.JSONEncodeError) as error:
                raise EnvironmentFault("state", environment, f"{name} is no JSON: {error}") from error
            if self._texts.get(name) != text:
                self._texts[name] = text
                found.append((name, None, text))
        for name in self._texts.keys() - state.keys():
            del self._texts[name]
            found.append((name, None, None))
        return found

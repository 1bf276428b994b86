"""Finding a call that undoes another one, by trying: the state after both must be the one before."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, product

import orjson

from trajsmith.environments import Session
from trajsmith.environments.injected_faults import open_turn
from trajsmith.phrasing import iterate_rows
from trajsmith.records import (
    FunctionCall,
    JsonObject,
    JsonValue,
    NondeterminismMask,
    ToolSpec,
    Trajectory,
)
from trajsmith.verify.normalized_state import iter_leaves, normalize_state

MOST_VALUES = 3
"""Values that are tried for one parameter."""
MOST_CALLS = 24
"""Calls of one tool that are tried."""


async def find_undoing_call(
    play: Trajectory,
    message: int,
    state: JsonObject,
    session: Session,
    tools: Sequence[ToolSpec],
    masks: NondeterminismMask,
) -> FunctionCall | None:
    """Return a call of the agent that undoes what a message of a play changed; None if no single call does.

    Arguments are those of the undone call, values of its result, and values that it replaced where a result has shown
    them before: an agent cannot put back what it never saw. Nothing is tried on an environment that cannot go back to a
    state, such as a live server: wrong tries would stay there.

    Args:
        play: A play that replays.
        message: Index of the message whose calls are undone.
        state: Initial state of the play.
        session: Session of its environment, with the injected faults of the task; it is reset.
        tools: Tools that the agent may call.
        masks: What the environment generates, and may differ.
    """
    if not session.spec.can_restore:
        return None
    await session.reset(state)
    initial = await session.snapshot()
    await _repeat_calls(play, 0, message, session)
    before = await session.snapshot()
    values = _Values(before, _list_shown_rows(play, message))
    for event in play.events:
        if event.message == message and event.reached:
            result = await session.call(event.tool, event.arguments, event.actor)
            values.add_arguments(event.arguments)
            values.add_leaves(result.content)
            values.add_replaced(event.effect)
    wanted = normalize_state(initial, before, masks).hash
    if normalize_state(initial, await session.snapshot(), masks).hash == wanted:
        return None
    for tool in tools:
        if tool.actor != "assistant" or not tool.declares_write:
            continue
        for arguments in islice(_iterate_arguments(tool, values), MOST_CALLS):
            if not values.are_known(arguments):
                continue
            result = await session.call(tool.name, arguments, "assistant")
            if not result.ok:
                continue
            if normalize_state(initial, await session.snapshot(), masks).hash == wanted:
                return FunctionCall(name=tool.name, arguments=arguments)
            await session.reset(state)
            await _repeat_calls(play, 0, message + 1, session)
    return None


class _Values:
    """Values for the arguments of an undoing call, by name."""

    def __init__(self, before: JsonValue, rows: Sequence[Mapping[str, JsonValue]]) -> None:
        """`rows` are the objects that results have shown before the undone call."""
        self.before = dict(iter_leaves(before, ()))
        self.rows = rows
        self.named: dict[str, list[JsonValue]] = {}
        self.replaced: list[JsonValue] = []
        self.own: list[JsonValue] = []
        """Arguments of the undone call, and values of its result."""

    def are_known(self, arguments: JsonObject) -> bool:
        """Return True if the agent has seen all these values, those that were replaced beside another argument."""
        foreign = {name: value for name, value in arguments.items() if value not in self.own}
        others = [value for name, value in arguments.items() if name not in foreign]
        return all(
            any(row.get(name) == value and any(other in row.values() for other in others) for row in self.rows)
            for name, value in foreign.items()
        )

    def add_arguments(self, arguments: Mapping[str, JsonValue]) -> None:
        for name, value in arguments.items():
            self.own.append(value)
            self._add(name, value)

    def add_leaves(self, content: JsonValue) -> None:
        for path, value in iter_leaves(content, ()):
            self.own.append(value)
            self._add(path[-1] if path else "", value)

    def add_replaced(self, effect: JsonValue) -> None:
        """Add the values that stood where an RFC 6902 patch writes; they come before all others."""
        for operation in effect if isinstance(effect, list) else ():
            path = tuple(part.replace("~1", "/").replace("~0", "~") for part in str(operation["path"]).split("/")[1:])
            for place, value in self.before.items():
                if place[: len(path)] == path:
                    self.replaced.append(value)
                    self._add(place[-1], value, first=True)

    def list_for(self, name: str) -> list[JsonValue]:
        """Return the values to try for a parameter: those of its name, and those that were replaced."""
        return [*self.named.get(name, ())][:MOST_VALUES] or self.replaced[:MOST_VALUES]

    def _add(self, name: str, value: JsonValue, first: bool = False) -> None:
        known = self.named.setdefault(name, [])
        if value not in known:
            known.insert(0 if first else len(known), value)


def _iterate_arguments(tool: ToolSpec, values: _Values) -> Iterator[JsonObject]:
    schema = tool.input_schema
    names: list[str] = list(schema.get("required") or ())
    optional = [name for name in schema.get("properties") or {} if name not in names and values.named.get(name)]
    for chosen in product(*(values.list_for(name) for name in names)):
        yield dict(zip(names, chosen, strict=True))
        for name in optional:
            yield {**dict(zip(names, chosen, strict=True)), name: values.named[name][0]}


def _list_shown_rows(play: Trajectory, stop: int) -> list[Mapping[str, JsonValue]]:
    """Return all objects in results before a message."""
    rows: list[Mapping[str, JsonValue]] = []
    for message in play.messages[:stop]:
        if message.role == "tool" and message.content[:1] in ("{", "["):
            with suppress(orjson.JSONDecodeError):  # a text that only begins like data shows no rows
                rows += iterate_rows(orjson.loads(message.content))
    return rows


async def _repeat_calls(play: Trajectory, start: int, stop: int, session: Session) -> None:
    """Make the calls of the messages from `start` to `stop`."""
    done = 0
    for number, span in enumerate(play.turns):
        open_turn(session, number)
        while done < len(play.events) and play.events[done].message < span.stop:
            event = play.events[done]
            if start <= event.message < stop and event.reached:
                await session.call(event.tool, event.arguments, event.actor)
            done += 1
        if span.stop >= stop:
            return

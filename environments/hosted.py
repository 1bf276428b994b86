"""Sessions of programs, wherever they run: in this process, or behind a link to a sandbox worker."""

from collections.abc import Sequence
from typing import Protocol

import orjson

from environments.hosting import Change, Play, Program, prepare
from environments.mirror import Mirror
from environments.session import InitialAction, ToolResult
from trajectory import Actor, EnvironmentFault, EnvironmentSpec, JsonObject, canonical_json, environment_boundary

STARTS = 256
"""Initial states that are remembered per source."""
Starts = dict[bytes, Mirror]
"""Initial states taken apart, by their canonical JSON; shared by the sessions of a source."""


Checkpoint = tuple[Mirror, int]
"""A state of a play, and its moment."""


class Link(Protocol):
    """One play, wherever it is."""

    @property
    def wrote(self) -> bool:
        """True if the last call changed the state."""

    async def start(self, state: bytes, changes: Sequence[Change]) -> None:
        """Begin anew at this state after these changes."""

    async def call(self, tool: str, arguments: JsonObject, actor: Actor, moment: int) -> ToolResult:
        """Call a tool at a moment of the play: what the virtual clock and chance of foreign code are made of."""

    async def prepare(self, actions: Sequence[InitialAction]) -> str | None:
        """Run the initial actions of a task; returns why one was refused, or None."""

    async def changes(self) -> list[Change]: ...

    async def close(self) -> None: ...


class LocalLink:
    """A play in this process: for code that is trusted, and tells the time by its state alone."""

    wrote = False
    """Nobody asks: moments are for virtual clocks."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._play: Play | None = None

    async def start(self, state: bytes, changes: Sequence[Change]) -> None:
        with environment_boundary(self._program.spec.name):
            self._play = self._program.start(state, changes)

    async def call(self, tool: str, arguments: JsonObject, actor: Actor, moment: int) -> ToolResult:
        return self._running.call(tool, arguments, actor)

    async def prepare(self, actions: Sequence[InitialAction]) -> str | None:
        return prepare(self._running, actions)

    async def changes(self) -> list[Change]:
        with environment_boundary(self._program.spec.name):
            return self._running.changes()

    async def close(self) -> None:
        self._play = None

    @property
    def _running(self) -> Play:
        if self._play is None:
            raise EnvironmentFault("state", self._program.spec.name, "session was used before reset")
        return self._play


class HostedSession:
    """One isolated play of a program. The state is asked for only where somebody looks at it."""

    def __init__(self, spec: EnvironmentSpec, link: Link, starts: Starts | None = None) -> None:
        self.spec = spec
        self.link = link
        self._starts: Starts = {} if starts is None else starts
        self._mirror: Mirror | None = None
        self._fresh = False
        """True while the mirror is what the state is; False after a call that may have changed it."""
        self._moment = 0
        """Calls so far that changed the state: a read more or less changes nothing that comes after it."""

    async def reset(self, state: JsonObject) -> None:
        text = canonical_json(state)
        mirror = self._starts.get(text)
        if mirror is None:
            mirror = Mirror.of(orjson.loads(text), text)
            if len(self._starts) >= STARTS:
                self._starts.clear()
            self._starts[text] = mirror
        await self._begin(mirror, 0)

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        result = await self.link.call(tool, arguments, actor, self.moment())
        self.took_place()
        return result

    async def prepare(self, actions: Sequence[InitialAction]) -> str | None:
        """See `environments.session.Preparable`."""
        self.moment()
        return await self.link.prepare(actions)

    def moment(self) -> int:
        """The moment of the next call; whoever makes it without `call` tells `took_place` what came of it."""
        if self._mirror is None:
            raise EnvironmentFault("state", self.spec.name, "session was used before reset")
        self._fresh = False
        return self._moment

    def took_place(self) -> None:
        """A call was made at the last `moment`."""
        self._moment += self.link.wrote

    async def snapshot(self) -> JsonObject:
        return (await self._current()).snapshot()

    async def state_hash(self) -> str:
        return (await self._current()).digest()

    async def close(self) -> None:
        self._mirror = None
        await self.link.close()

    async def _begin(self, mirror: Mirror, moment: int) -> None:
        self._mirror = None
        await self.link.start(mirror.origin, mirror.delta)
        self._mirror, self._moment, self._fresh = mirror, moment, False

    async def _current(self) -> Mirror:
        if self._mirror is None:
            raise EnvironmentFault("state", self.spec.name, "session was used before reset")
        if not self._fresh:
            changes = await self.link.changes()
            if changes:
                self._mirror = self._mirror.changed(changes, self.spec.name)
            self._fresh = True
        return self._mirror


class RestorableSession(HostedSession):
    """A session of a program whose state is all that there is to it."""

    async def checkpoint(self) -> Checkpoint:
        """An opaque point to roll back to; cheaper than a snapshot."""
        return await self._current(), self._moment

    async def rollback(self, checkpoint: Checkpoint) -> None:
        """Go back to a checkpoint of any session of this environment."""
        await self._begin(*checkpoint)

    async def wait(self, moments: int) -> None:
        """Let moments pass in which nothing happens: foreign code sees a later clock and another chance after it."""
        await self._begin(await self._current(), self._moment + moments)

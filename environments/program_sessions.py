"""Sessions over programs: in this process, or behind a link to a sandbox worker."""

from collections.abc import Sequence
from typing import Protocol

import orjson

from trajsmith.environments.mirror import Mirror
from trajsmith.environments.programs import EnvironmentEpisode, EnvironmentProgram, StateChange, prepare
from trajsmith.environments.recent_states import RecentStates
from trajsmith.environments.session import InitialAction, ToolResult
from trajsmith.records import (
    Actor,
    EnvironmentFault,
    EnvironmentSpec,
    JsonObject,
    canonical_json,
    environment_boundary,
)

StartCache = RecentStates[Mirror]
"""Initial states taken apart, by their canonical JSON; shared by the sessions of a source."""


Checkpoint = tuple[Mirror, int]
"""A state of a play, and its moment."""


class EpisodeLink(Protocol):
    """Connection to one episode, in this process or in a worker."""

    @property
    def wrote_state(self) -> bool:
        """Return whether the last call changed the state."""

    async def start(self, state: bytes, changes: Sequence[StateChange]) -> None:
        """Begin a new play at this state after these changes."""

    async def restart(self, state: bytes, changes: Sequence[StateChange]) -> None:
        """Put the play at this state after these changes, where its state is complete."""

    async def call(self, tool: str, arguments: JsonObject, actor: Actor, step: int) -> ToolResult:
        """Call a tool at a virtual step, from which the virtual clock and randomness of foreign code follow."""

    async def prepare(self, actions: Sequence[InitialAction]) -> str | None:
        """Run the initial actions of a task; returns why one was refused, or None."""

    async def changes(self) -> list[StateChange]: ...

    async def close(self) -> None: ...


class LocalEpisodeLink:
    """Episode in this process, for trusted code that reads the time from its state alone."""

    wrote_state = False
    """Nobody asks: moments are for virtual clocks."""

    def __init__(self, program: EnvironmentProgram) -> None:
        self._program = program
        self._play: EnvironmentEpisode | None = None

    async def start(self, state: bytes, changes: Sequence[StateChange]) -> None:
        with environment_boundary(self._program.spec.name):
            self._play = self._program.start(state, changes)

    restart = start

    async def call(self, tool: str, arguments: JsonObject, actor: Actor, step: int) -> ToolResult:
        return self._running.call(tool, arguments, actor)

    async def prepare(self, actions: Sequence[InitialAction]) -> str | None:
        return prepare(self._running, actions)

    async def changes(self) -> list[StateChange]:
        with environment_boundary(self._program.spec.name):
            return self._running.changes()

    async def close(self) -> None:
        self._play = None

    @property
    def _running(self) -> EnvironmentEpisode:
        if self._play is None:
            raise EnvironmentFault("state", self._program.spec.name, "session was used before reset")
        return self._play


class ProgramSession:
    """Isolated episode of a program. The state is asked for only where somebody looks at it."""

    def __init__(self, spec: EnvironmentSpec, link: EpisodeLink, starts: StartCache | None = None) -> None:
        self.spec = spec
        self.link = link
        self._starts: StartCache = RecentStates() if starts is None else starts
        self._mirror: Mirror | None = None
        self._fresh = False
        """True while the mirror is what the state is; False after a call that may have changed it."""
        self._step = 0
        """Calls so far that changed the state: a read more or less changes nothing that comes after it."""

    async def reset(self, state: JsonObject) -> None:
        text = canonical_json(state)
        mirror = self._starts.get(text)
        if mirror is None:
            mirror = Mirror.of(orjson.loads(text), text)
            self._starts.put(text, mirror)
        await self._begin(mirror, 0)

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        result = await self.link.call(tool, arguments, actor, self.begin_step())
        self.finish_step()
        return result

    async def prepare(self, actions: Sequence[InitialAction]) -> str | None:
        """See `trajsmith.environments.session.Preparable`."""
        self.begin_step()
        return await self.link.prepare(actions)

    def begin_step(self) -> int:
        """Return the virtual step of the next call; callers that bypass `call` report its end by `finish_step`."""
        if self._mirror is None:
            raise EnvironmentFault("state", self.spec.name, "session was used before reset")
        self._fresh = False
        return self._step

    def finish_step(self) -> None:
        """Record that a call was made at the last step."""
        self._step += self.link.wrote_state

    async def snapshot(self) -> JsonObject:
        return (await self._current()).snapshot()

    async def state_hash(self) -> str:
        return (await self._current()).digest()

    async def close(self) -> None:
        self._mirror = None
        await self.link.close()

    async def _begin(self, mirror: Mirror, step: int, same_play: bool = False) -> None:
        self._mirror = None
        await (self.link.restart if same_play else self.link.start)(mirror.origin, mirror.delta)
        self._mirror, self._step, self._fresh = mirror, step, False

    async def _current(self) -> Mirror:
        if self._mirror is None:
            raise EnvironmentFault("state", self.spec.name, "session was used before reset")
        if not self._fresh:
            changes = await self.link.changes()
            if changes:
                self._mirror = self._mirror.with_changes(changes, self.spec.name)
            self._fresh = True
        return self._mirror


class RestorableSession(ProgramSession):
    """Session that can go back, over a program whose state is complete."""

    async def checkpoint(self) -> Checkpoint:
        """An opaque point to roll back to; cheaper than a snapshot."""
        return await self._current(), self._step

    async def rollback(self, checkpoint: Checkpoint) -> None:
        """Go back to a checkpoint of any session of this environment."""
        await self._begin(*checkpoint, same_play=True)

    async def skip_steps(self, steps: int) -> None:
        """Skip virtual steps, so that foreign code sees a later clock and different randomness."""
        await self._begin(await self._current(), self._step + steps, same_play=True)

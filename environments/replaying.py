"""Checkpoints for sessions that have none: going back is a fresh start and the same calls."""

from dataclasses import dataclass

from trajsmith.environments.session import Session, ToolResult
from trajsmith.records import Actor, EnvironmentFault, JsonObject


@dataclass(frozen=True, slots=True)
class _SuccessfulCall:
    """A call that succeeded."""

    tool: str
    arguments: JsonObject
    actor: Actor
    result: str
    """Hash of what it gave."""


@dataclass(frozen=True, slots=True)
class ReplayPoint:
    """A point to go back to: the calls that lead there from an initial state, and the hash of what is seen there."""

    state: JsonObject
    calls: tuple[_SuccessfulCall, ...]
    digest: str


class ReplayingSession:
    """Session with checkpoints over one that can only be reset, by replaying the calls that took effect.

    Where the state that is observed comes out the same, a result that differs is taken for what it mostly is, a time
    or a process id in a text. Where nothing is observed, the results are all there is to compare.
    """

    def __init__(self, inner: Session) -> None:
        self.spec = inner.spec
        self._inner = inner
        self._state: JsonObject = {}
        self._calls: list[_SuccessfulCall] = []
        self._looked: tuple[str, int] | None = None
        """Hash of the state when it was last looked at, and how many calls there were."""
        self._sound = False
        """False before the first reset and after a fault: nothing may be asked of it then."""

    async def reset(self, state: JsonObject) -> None:
        self._sound, self._looked = False, None
        self._state, self._calls = state, []
        await self._inner.reset(state)
        self._sound = True

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        try:
            result = await self._inner.call(tool, arguments, actor)
        except BaseException:  # cancelled too: nobody knows what became of the call
            self._sound = False
            raise
        if result.ok:
            self._calls.append(_SuccessfulCall(tool, arguments, actor, result.hash))
        return result

    async def snapshot(self) -> JsonObject:
        snapshot = await self._inner.snapshot()
        self._prune(await self._inner.state_hash(), any(snapshot.values()))
        return snapshot

    async def state_hash(self) -> str:
        await self.snapshot()
        return await self._inner.state_hash()

    async def close(self) -> None:
        self._sound = False
        await self._inner.close()

    async def checkpoint(self) -> ReplayPoint:
        """A point to roll back to; costs a look at the state."""
        digest = await self.state_hash()
        return ReplayPoint(self._state, tuple(self._calls), digest)

    async def rollback(self, checkpoint: ReplayPoint) -> None:
        """Go back to a checkpoint of any session of this environment.

        Raises:
            EnvironmentFault: The environment is not deterministic; the tool that shows it is named.
        """
        if await self._is_at(checkpoint):
            return
        await self.reset(checkpoint.state)
        different = None
        for past in checkpoint.calls:
            result = await self.call(past.tool, past.arguments, past.actor)
            if not result.ok:
                raise self._fault(f"a call that succeeded is refused after a fresh start: {result.text}", past.tool)
            if result.hash != past.result:
                different = different or past.tool
        last = checkpoint.calls[-1].tool if checkpoint.calls else None
        observed = any((await self._inner.snapshot()).values())
        if await self._inner.state_hash() != checkpoint.digest:
            raise self._fault("a fresh start and the same calls lead to another state", different or last)
        if different is not None and not observed:
            raise self._fault("the same call gives another result after a fresh start", different)

    async def _is_at(self, point: ReplayPoint) -> bool:
        """Return whether nothing visible has happened since the checkpoint."""
        if not self._sound or self._state != point.state:
            return False
        return await self.state_hash() == point.digest and tuple(self._calls) == point.calls

    def _prune(self, digest: str, observed: bool) -> None:
        """Forget what changed nothing since the last look; where nothing is observed, the calls that say they read."""
        if self._looked is not None and self._looked[0] == digest:
            start = self._looked[1]
            self._calls[start:] = [
                past for past in self._calls[start:] if not observed and self.spec.tool(past.tool).declares_write
            ]
        self._looked = (digest, len(self._calls))

    def _fault(self, message: str, tool: str | None) -> EnvironmentFault:
        return EnvironmentFault("state", self.spec.name, f"not deterministic: {message}", tool)

"""Going back in a session: by checkpoint where there are some, by a fresh start and the same calls where not."""

from typing import Protocol, runtime_checkable

from environments import Session
from trajectory import EnvironmentFault, GoldCall, JsonObject


@runtime_checkable
class Checkpointed(Protocol):
    """Sessions that can go back without starting anew."""

    async def checkpoint(self) -> bytes: ...

    async def rollback(self, checkpoint: bytes) -> None: ...


class Rewinder:
    """Marks and rewinds one session."""

    def __init__(self, session: Session, state: JsonObject) -> None:
        self.session = session
        self.state = state

    async def mark(self) -> bytes | None:
        """A point to come back to; None where only a fresh start leads back."""
        return await self.session.checkpoint() if isinstance(self.session, Checkpointed) else None

    async def rewind(self, mark: bytes | None, calls: list[GoldCall]) -> None:
        """Go back to the state after `calls`.

        Raises:
            EnvironmentFault: A fresh start with the same calls did not succeed: the environment is not deterministic.
        """
        if mark is not None and isinstance(self.session, Checkpointed):
            await self.session.rollback(mark)
            return
        await self.session.reset(self.state)
        for call in calls:
            result = await self.session.call(call.tool, call.arguments, call.actor)
            if not result.ok:
                raise EnvironmentFault(
                    "state", self.session.spec.name, "a call that succeeded is refused after a restart", call.tool
                )

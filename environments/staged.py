"""A session in which something is wrong on purpose: a tool is not there yet, or its first call fails."""

from environments.session import RefusalKind, Session, ToolResult
from trajectory import Actor, JsonObject, Task, Twist

NEVER = 1 << 30


class Staged:
    """Refuses the first calls of one tool without handing them on; everything else goes to the inner session.

    The refusal depends on nothing but the turn and how often the tool was called, so that a replay meets the same.
    """

    def __init__(self, inner: Session, twist: Twist) -> None:
        self.spec = inner.spec
        self.twist = twist
        self._inner = inner
        self._times = 1 if twist.refusal else NEVER
        self._left = self._times
        """Calls that are still refused."""

    def open_turn(self, turn: int) -> None:
        """A turn begins; from that of its arrival on a hidden tool works."""
        if self.twist.arrives is not None and turn >= self.twist.arrives:
            self._left = 0

    async def reset(self, state: JsonObject) -> None:
        self._left = self._times
        await self._inner.reset(state)

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        if tool == self.twist.tool and self._left > 0:
            self._left -= 1
            return ToolResult.refusal(*self._refusal)
        return await self._inner.call(tool, arguments, actor)

    @property
    def _refusal(self) -> tuple[RefusalKind, str]:
        if self.twist.refusal:
            return "refused", self.twist.refusal
        return "unknown_tool", f"unknown tool: {self.twist.tool}"

    async def snapshot(self) -> JsonObject:
        return await self._inner.snapshot()

    async def state_hash(self) -> str:
        return await self._inner.state_hash()

    async def close(self) -> None:
        await self._inner.close()


def staged(session: Session, task: Task) -> Session:
    """The session that a task is played and replayed on; the plain one for tasks that stage nothing."""
    twist = task.twist
    return session if twist is None or not (twist.hidden or twist.refusal) else Staged(session, twist)


def open_turn(session: Session, turn: int) -> None:
    """Say that a turn begins; whoever plays or replays on a session of `staged` says so."""
    if isinstance(session, Staged):
        session.open_turn(turn)

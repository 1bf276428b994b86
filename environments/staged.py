"""A session in which something is wrong on purpose: a tool is not there yet, or its first call fails."""

from environments.session import RefusalKind, Session, ToolResult
from trajectory import Actor, JsonObject, Task, Trajectory

NEVER = 1 << 30


class Staged:
    """Refuses the first calls of one tool without handing them on; everything else goes to the inner session.

    The refusal depends on nothing but how often the tool was called, so that a replay meets the same.
    """

    def __init__(self, inner: Session, tool: str, times: int, kind: RefusalKind, message: str) -> None:
        """
        Args:
            times: How many calls are refused.
        """
        self.spec = inner.spec
        self._inner = inner
        self._tool = tool
        self._times = times
        self._kind = kind
        self._message = message
        self._left = times

    def let_go(self) -> None:
        """From now on the tool works."""
        self._left = 0

    async def reset(self, state: JsonObject) -> None:
        self._left = self._times
        await self._inner.reset(state)

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        if tool == self._tool and self._left > 0:
            self._left -= 1
            return ToolResult.refusal(self._kind, self._message)
        return await self._inner.call(tool, arguments, actor)

    async def snapshot(self) -> JsonObject:
        return await self._inner.snapshot()

    async def state_hash(self) -> str:
        return await self._inner.state_hash()

    async def close(self) -> None:
        await self._inner.close()


def staged(session: Session, task: Task, trajectory: Trajectory | None = None) -> Session:
    """The session that a task is played on; the plain one for tasks that stage nothing.

    Args:
        trajectory: For a replay: a tool that arrives in the course of the play is refused as often as it was then.
    """
    twist = task.twist
    if twist is None or not (twist.hidden or twist.refusal):
        return session
    if twist.refusal:
        return Staged(session, twist.tool, 1, "refused", twist.refusal)
    times = NEVER
    if trajectory is not None and twist.arrives is not None:
        times = sum(event.tool == twist.tool and event.error == "unknown_tool" for event in trajectory.events)
    return Staged(session, twist.tool, times, "unknown_tool", f"unknown tool: {twist.tool}")

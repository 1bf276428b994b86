"""Sessions with injected faults: a tool that is not available yet, or whose first call fails."""

from trajsmith.environments.session import RefusalKind, Session, ToolResult
from trajsmith.records import Actor, JsonObject, Perturbation, Task

NEVER = 1 << 30


class InjectedFaultSession:
    """Session that refuses the first calls of one tool; everything else goes to the inner session.

    The refusal depends on nothing but the turn and how often the tool was called, so that a replay meets the same.
    """

    def __init__(self, inner: Session, perturbation: Perturbation) -> None:
        self.spec = inner.spec
        self.twist = perturbation
        self._inner = inner
        self._times = 1 if perturbation.refusal else NEVER
        self._left = self._times
        """Calls that are still refused."""

    def open_turn(self, turn: int) -> None:
        """Start a turn; a hidden tool works from the turn of its arrival on."""
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


def inject_faults(session: Session, task: Task) -> Session:
    """Wrap a session with the faults that a task injects; return it unchanged for tasks without any."""
    perturbation = task.twist
    return (
        session
        if perturbation is None or not (perturbation.hidden or perturbation.refusal)
        else InjectedFaultSession(session, perturbation)
    )


def open_turn(session: Session, turn: int) -> None:
    """Tell a session of `inject_faults` that a turn begins; needed before each turn and in replays."""
    if isinstance(session, InjectedFaultSession):
        session.open_turn(turn)

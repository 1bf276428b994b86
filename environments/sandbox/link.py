"""An episode in a worker. It survives its worker: a lost one is replaced, and the episode's calls are made again."""

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

from trajsmith.environments.programs import StateChange
from trajsmith.environments.sandbox.codec import Reply
from trajsmith.environments.sandbox.connection import RequestNotJson, WorkerConnection, WorkerLost
from trajsmith.environments.sandbox.host import WorkerHost, unwrap_reply
from trajsmith.environments.sandbox.serialization import ReplyStatus, WorkerOp
from trajsmith.environments.session import InitialAction, RefusalKind, ToolResult
from trajsmith.records import Actor, EnvironmentFault, JsonObject, hash_bytes

_REFUSALS: dict[int, RefusalKind] = {
    ReplyStatus.REFUSED: "refused",
    ReplyStatus.INVALID_ARGUMENTS: "invalid_arguments",
    ReplyStatus.UNKNOWN_TOOL: "unknown_tool",
}
_LOSSES = 3
_RECYCLES = 20
"""Times in a row that a request moves to another worker because trajsmith closed the one it was in."""
_episode_ids = itertools.count(1)


class SandboxLink:
    """Episode in a worker of a `WorkerHost`; the link of a `ProgramSession`."""

    def __init__(self, host: WorkerHost) -> None:
        self._host = host
        self._play = next(_episode_ids)
        self._connection: WorkerConnection | None = None
        self._origin: tuple[str, bytes, list[StateChange]] | None = None
        self._log: list[tuple[WorkerOp, tuple[Any, ...], int]] = []
        """What was asked since the start, each with a hash of the answer."""
        self._broken: str | None = None
        self._losses = 0
        """Workers lost since the last answer: where nobody is to blame, it is this play's own past after a few."""
        self._recycled = 0
        """Workers that trajsmith closed since the last answer."""
        self.wrote_state = False

    async def start(self, state: bytes, changes: Sequence[StateChange]) -> None:
        """Begin anew; in a process of its own where the host gives one to each episode."""
        if self._host.own_process:
            self._drop_process()
            self._connection = None
        await self.restart(state, changes)

    async def restart(self, state: bytes, changes: Sequence[StateChange]) -> None:
        """Begin anew at a state of the same play: its process may be used again."""
        connection = self.ready() if self._host.own_process else None
        self._origin = hash_bytes(state, 24), state, list(changes)
        self._log.clear()
        self._losses = self._recycled = 0
        self._broken = None
        self._connection = None
        await self._attached(connection)

    async def call(self, tool: str, arguments: JsonObject, actor: Actor, step: int) -> ToolResult:
        try:
            reply = await self._ask(WorkerOp.CALL, (tool, arguments, actor, step), tool)
        except RequestNotJson as error:
            return ToolResult.refusal("invalid_arguments", f"not JSON data: {error}")
        return self._result(reply, tool)

    def _result(self, reply: Reply, tool: str) -> ToolResult:
        self.wrote_state = reply.status == ReplyStatus.WROTE
        if self.wrote_state or reply.status == ReplyStatus.OK:
            return ToolResult(reply.value)
        if reply.status in _REFUSALS:
            return ToolResult(reply.value, _REFUSALS[reply.status])
        unwrap_reply(reply, self._host.name, tool)
        raise AssertionError("a reply that is neither result nor fault")

    def ready(self) -> WorkerConnection | None:
        """The worker of this episode, if it can be asked at once."""
        connection = self._connection
        return connection if connection is not None and connection.lost is None else None

    def request(self, tool: str, arguments: JsonObject, actor: Actor, step: int) -> tuple[Any, ...]:
        """A call as `Connection.send_together` wants it."""
        return (WorkerOp.CALL, self._play, tool, arguments, actor, step)

    def accept(self, reply: Reply, tool: str, arguments: JsonObject, actor: Actor, step: int) -> ToolResult:
        """Take the reply to such a request.

        Raises:
            EnvironmentFault: The environment broke.
        """
        self._remember(WorkerOp.CALL, (tool, arguments, actor, step), reply)
        return self._result(reply, tool)

    async def prepare(self, actions: Sequence[InitialAction]) -> str | None:
        """Run the initial actions of a task; returns why one was refused, or None."""
        refused: str | None = unwrap_reply(await self._ask(WorkerOp.PREPARE, (list(actions),), None), self._host.name)
        return refused

    async def changes(self) -> list[StateChange]:
        changes: list[StateChange] = unwrap_reply(await self._ask(WorkerOp.CHANGES, (), None), self._host.name)
        return changes

    async def close(self) -> None:
        connection, self._connection, self._origin = self._connection, None, None
        if connection is None or connection.lost is not None:
            return
        if self._host.own_process:
            connection.close()
        else:
            connection.send(WorkerOp.END, self._play)

    async def _ask(self, operation: WorkerOp, arguments: tuple[Any, ...], tool: str | None) -> Reply:
        """One request, answered in spite of lost workers.

        Raises:
            EnvironmentFault: This request is what the worker was lost over, or workers keep dying.
            NotJson: The arguments are no JSON.
        """
        while True:
            connection = self._connection
            if connection is None or connection.lost is not None:
                if connection is not None and self._broken is None:
                    self._host.count_idle_loss(connection)
                connection = await self._attached()
            try:
                reply = await connection.send(operation, self._play, *arguments)
            except WorkerLost as lost:
                self.handle_loss(lost, tool)
                continue
            self._remember(operation, arguments, reply)
            return reply

    def _remember(self, operation: WorkerOp, arguments: tuple[Any, ...], reply: Reply) -> None:
        self._losses = self._recycled = 0
        self._log.append((operation, arguments, hash(reply[:2])))

    def handle_loss(self, lost: WorkerLost, tool: str | None) -> None:
        """Handle the loss of the worker during a request of this episode, or beside it.

        Raises:
            EnvironmentFault: It was this request; or, of kind `recycled`, trajsmith closes its workers over and over.
        """
        if lost.recycled:
            self._recycled += 1
            if self._recycled > _RECYCLES:
                raise EnvironmentFault("recycled", self._host.name, f"trajsmith closed its worker: {lost}", tool)
            return
        self._losses += 1
        if not lost.culprit and self._losses < _LOSSES:
            return
        self._broken = str(lost)
        if lost.kind == "crash":
            self._host.count_loss()
        raise EnvironmentFault(lost.kind, self._host.name, f"its worker was lost: {lost}", tool)

    async def _attached(self, connection: WorkerConnection | None = None) -> WorkerConnection:
        """A worker in which this episode is where it should be: this one at first, if it is given."""
        if self._broken is not None:
            raise EnvironmentFault("state", self._host.name, "the play ended with its worker: reset the session")
        if self._origin is None:
            raise EnvironmentFault("state", self._host.name, "session was used before reset")
        name, state, changes = self._origin
        while True:
            if connection is None or connection.lost is not None:
                connection = await self._host.connect()
            try:
                self._host.keep_base(connection, name, state)
                started = connection.send(WorkerOp.START, self._play, name, changes)
                repeated = [connection.send(operation, self._play, *asked) for operation, asked, _ in self._log]
                unwrap_reply(await started, self._host.name)
                self._compare(await asyncio.gather(*repeated))
            except WorkerLost as lost:
                self.handle_loss(lost, None)
                continue
            self._connection = connection
            return connection

    def _compare(self, replies: Sequence[Reply]) -> None:
        """Compare what calls that were made again answer with what they did.

        Raises:
            EnvironmentFault: An answer is another one: the environment is not deterministic.
        """
        for number, (reply, (operation, arguments, known)) in enumerate(zip(replies, self._log, strict=True), 1):
            if hash(reply[:2]) != known:
                tool = arguments[0] if operation == WorkerOp.CALL else None
                message = f"not deterministic: after its worker was replaced, request {number} is answered otherwise"
                raise EnvironmentFault("state", self._host.name, message, tool)

    def _drop_process(self) -> None:
        if self._connection is not None and self._connection.lost is None:
            self._connection.close()

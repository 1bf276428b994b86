"""A play in a worker. It survives its worker: a lost one is replaced, and the play's calls are made again."""

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

import orjson

from environments.hosting import Change
from environments.sandbox.connection import Connection, NotJson, WorkerLost
from environments.sandbox.host import Host, content
from environments.sandbox.wire import Op, Reply, Status
from environments.session import InitialAction, RefusalKind, ToolResult
from trajectory import Actor, EnvironmentFault, JsonObject, hash_bytes

_REFUSALS: dict[int, RefusalKind] = {
    Status.REFUSED: "refused",
    Status.INVALID_ARGUMENTS: "invalid_arguments",
    Status.UNKNOWN_TOOL: "unknown_tool",
}
_LOSSES = 3
_RECYCLES = 20
"""Times in a row that a request moves to another worker because trajsmith closed the one it was in."""
_plays = itertools.count(1)


class SandboxLink:
    """One play behind a `Host`; the link of a `HostedSession`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._play = next(_plays)
        self._connection: Connection | None = None
        self._origin: tuple[str, bytes, list[Change]] | None = None
        self._log: list[tuple[Op, tuple[Any, ...], int]] = []
        """What was asked since the start, each with a hash of the answer."""
        self._broken: str | None = None
        self._losses = 0
        """Workers lost since the last answer: where nobody is to blame, it is this play's own past after a few."""
        self._recycled = 0
        """Workers that trajsmith closed since the last answer."""
        self.wrote = False

    async def start(self, state: bytes, changes: Sequence[Change]) -> None:
        """Begin anew; in a process of its own where the host gives one to each play."""
        if self._host.own_process:
            self._drop_process()
        self._origin = hash_bytes(state, 24), state, list(changes)
        self._log.clear()
        self._losses = self._recycled = 0
        self._broken = None
        self._connection = None
        await self._attached()

    async def call(self, tool: str, arguments: JsonObject, actor: Actor, moment: int) -> ToolResult:
        try:
            reply = await self._ask(Op.CALL, (tool, arguments, actor, moment), tool)
        except NotJson as error:
            return ToolResult.refusal("invalid_arguments", f"not JSON data: {error}")
        return self._result(reply, tool)

    def _result(self, reply: Reply, tool: str) -> ToolResult:
        status, found = reply[1], reply[2]
        self.wrote = status == Status.WROTE
        if self.wrote or status == Status.OK:
            return ToolResult(orjson.loads(found))
        if status in _REFUSALS:
            return ToolResult(orjson.loads(found), _REFUSALS[status])
        content(reply, self._host.name, tool)
        raise AssertionError("a reply that is neither result nor fault")

    def ready(self) -> Connection | None:
        """The worker of this play, if it can be asked at once."""
        connection = self._connection
        return connection if connection is not None and connection.lost is None else None

    def request(self, tool: str, arguments: JsonObject, actor: Actor, moment: int) -> tuple[Any, ...]:
        """A call as `Connection.send_together` wants it."""
        return (Op.CALL, self._play, tool, arguments, actor, moment)

    def accept(self, reply: Reply, tool: str, arguments: JsonObject, actor: Actor, moment: int) -> ToolResult:
        """Take the reply to such a request.

        Raises:
            EnvironmentFault: The environment broke.
        """
        self._remember(Op.CALL, (tool, arguments, actor, moment), reply)
        return self._result(reply, tool)

    async def prepare(self, actions: Sequence[InitialAction]) -> str | None:
        """Run the initial actions of a task; returns why one was refused, or None."""
        refused: str | None = content(await self._ask(Op.PREPARE, (list(actions),), None), self._host.name)
        return refused

    async def changes(self) -> list[Change]:
        reply = await self._ask(Op.CHANGES, (), None)
        content(reply, self._host.name)
        return [(name, key, text) for name, key, text in reply[2]]

    async def close(self) -> None:
        connection, self._connection, self._origin = self._connection, None, None
        if connection is None or connection.lost is not None:
            return
        if self._host.own_process:
            connection.close()
        else:
            connection.send(Op.END, self._play).add_done_callback(self._ended)

    def _ended(self, future: asyncio.Future[Reply]) -> None:
        if not future.cancelled() and future.exception() is None and future.result()[1] == Status.OK:
            self._host.leaked(future.result()[2])

    async def _ask(self, operation: Op, arguments: tuple[Any, ...], tool: str | None) -> Reply:
        """One request, answered in spite of lost workers.

        Raises:
            EnvironmentFault: This request is what the worker was lost over, or workers keep dying.
            NotJson: The arguments are no JSON.
        """
        while True:
            connection = self._connection
            if connection is None or connection.lost is not None:
                connection = await self._attached()
            try:
                reply = await connection.send(operation, self._play, *arguments)
            except WorkerLost as lost:
                self.gone(lost, tool)
                continue
            self._remember(operation, arguments, reply)
            return reply

    def _remember(self, operation: Op, arguments: tuple[Any, ...], reply: Reply) -> None:
        self._losses = self._recycled = 0
        self._log.append((operation, arguments, hash((reply[1], _hashable(reply[2])))))

    def gone(self, lost: WorkerLost, tool: str | None) -> None:
        """Count the loss of a worker over a request of this play, or beside it. Without an error: ask again.

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
        self._host.count_loss()
        raise EnvironmentFault(
            "timeout" if lost.killed else "crash", self._host.name, f"its worker was lost: {lost}", tool
        )

    async def _attached(self) -> Connection:
        """A worker in which this play is where it should be."""
        if self._broken is not None:
            raise EnvironmentFault("state", self._host.name, "the play ended with its worker: reset the session")
        if self._origin is None:
            raise EnvironmentFault("state", self._host.name, "session was used before reset")
        name, state, changes = self._origin
        while True:
            connection = await self._host.connect()
            try:
                await self._host.keep_base(connection, name, state)
                content(await connection.send(Op.START, self._play, name, changes), self._host.name)
                await self._repeat(connection)
            except WorkerLost as lost:
                self.gone(lost, None)
                continue
            self._connection = connection
            return connection

    async def _repeat(self, connection: Connection) -> None:
        """Make all calls again, and compare.

        Raises:
            EnvironmentFault: An answer is another one: the environment is not deterministic.
        """
        waiting = [connection.send(operation, self._play, *arguments) for operation, arguments, _ in self._log]
        replies = await asyncio.gather(*waiting)
        for number, (reply, (operation, arguments, known)) in enumerate(zip(replies, self._log, strict=True), 1):
            if hash((reply[1], _hashable(reply[2]))) != known:
                what = arguments[0] if operation == Op.CALL else None
                message = f"not deterministic: after its worker was replaced, request {number} is answered otherwise"
                raise EnvironmentFault("state", self._host.name, message, what)

    def _drop_process(self) -> None:
        if self._connection is not None and self._connection.lost is None:
            self._connection.close()


def _hashable(found: Any) -> Any:
    """Changes are lists of lists; all else is bytes or text."""
    return found if found is None or isinstance(found, bytes | str) else repr(found)

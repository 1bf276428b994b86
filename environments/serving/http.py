"""Serving over streamable HTTP. Imports `mcp`, so import it only where it is used.

Sessions are kept here rather than by the SDK's manager, which runs one lifespan for all of them, and which serves the
protocol's sessionless era (2026-07-28) as well: there every request would meet a fresh environment. Clients that
begin in that era are told which versions have sessions, and go on with one of those.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from uuid import uuid4

import anyio
import orjson
import uvicorn
from anyio.abc import TaskGroup, TaskStatus
from mcp.server import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, StreamableHTTPServerTransport
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, RequestBodyLimitMiddleware
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, UNSUPPORTED_PROTOCOL_VERSION, ErrorData, JSONRPCError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trajsmith.environments.serving.access import AccessControl, AccessSettings, is_local
from trajsmith.environments.serving.mcp_server import build_mcp_server
from trajsmith.environments.serving.session_manager import ServingSpec, SessionManager
from trajsmith.environments.serving.sockets import UvicornWithoutSignals, listen

_log = logging.getLogger(__name__)
PATH = "/mcp"
__all__ = ["PATH", "Connections", "build_application", "listen", "serve_http"]
_LAST_REQUESTS = 3
"""Seconds that requests in work get when the server ends."""


class Connections:
    """An ASGI application: the sessions of one server by their id, each with a run of its own."""

    def __init__(
        self, server: Server[SessionManager], most: int, idle: float, most_by_address: int | None = None
    ) -> None:
        """`most` sessions at a time; one that has no request in work for `idle` seconds is closed.

        Args:
            most_by_address: Sessions of one address at a time, so that one client leaves others their share.
        """
        self._server = server
        self._most = most
        self._most_by_address = most_by_address or most
        self._idle = idle
        self._open: dict[str, StreamableHTTPServerTransport] = {}
        self._addresses: dict[str, str] = {}
        self._group: TaskGroup | None = None
        self._limited = RequestBodyLimitMiddleware(self._handle, DEFAULT_MAX_REQUEST_BODY_SIZE)

    def __len__(self) -> int:
        return len(self._open)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve inside this; leaving it closes all sessions."""
        async with anyio.create_task_group() as group:
            self._group = group
            yield
            await self.close()
            group.cancel_scope.cancel()

    async def close(self) -> None:
        """End all sessions; their streams end, so that the connections below them can close."""
        for name, transport in list(self._open.items()):
            await self._forget(name, transport)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._limited(scope, receive, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
        name = headers.get(MCP_SESSION_ID_HEADER)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await _no_such_version(version)(scope, receive, send)
        elif name is None:
            await self._first(scope, receive, send)
        elif (transport := self._open.get(name)) is None:
            await _error(404, INVALID_REQUEST, "no such session: it ended, or never was")(scope, receive, send)
        else:
            await transport.handle_request(scope, receive, send)
            if transport.is_terminated:
                await self._forget(name, transport)

    async def _first(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request without a session opens one, and keeps it if it is an accepted handshake."""
        if len(self._open) >= self._most:
            text = f"{self._most} sessions are open, which is the most: close one, or try later"
            await _error(503, INTERNAL_ERROR, text)(scope, receive, send)
            return
        address = (scope.get("client") or ("",))[0]
        if sum(one == address for one in self._addresses.values()) >= self._most_by_address:
            text = f"{self._most_by_address} sessions of {address} are open, which is the most: close one, or try later"
            await _error(503, INTERNAL_ERROR, text)(scope, receive, send)
            return
        name = uuid4().hex
        transport = StreamableHTTPServerTransport(name, is_json_response_enabled=True, idle_timeout=self._idle)
        self._open[name], self._addresses[name] = transport, address
        accepted = False

        async def watch(message: Message) -> None:
            nonlocal accepted
            if message["type"] == "http.response.body":
                accepted = _is_result(message.get("body", b""))
            await send(message)

        try:
            assert self._group is not None, "requests come while `running`"
            await self._group.start(self._run, name, transport)
            await transport.handle_request(scope, receive, watch)
        finally:
            if not accepted:
                await self._forget(name, transport)

    async def _run(self, name: str, transport: StreamableHTTPServerTransport, *, task_status: TaskStatus[None]) -> None:
        try:
            async with transport.connect() as (incoming, outgoing):
                task_status.started()
                with transport.idle_scope or anyio.CancelScope():
                    await self._server.run(incoming, outgoing, self._server.create_initialization_options())
        except Exception:  # noqa: BLE001 - one session that breaks must not end the others
            _log.warning("session %s broke", name, exc_info=True)
        finally:
            await self._forget(name, transport)

    async def _forget(self, name: str, transport: StreamableHTTPServerTransport) -> None:
        self._open.pop(name, None)
        self._addresses.pop(name, None)
        if not transport.is_terminated:
            with anyio.CancelScope(shield=True):
                await transport.terminate()


def _is_result(body: bytes) -> bool:
    """True for the answer to a request that was accepted; such an answer is one JSON body here."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(answer, dict) and "result" in answer


def _error(status: int, code: int, message: str, data: object = None) -> Response:
    error = ErrorData(code=code, message=message, data=data)
    body = JSONRPCError(jsonrpc="2.0", id=None, error=error).model_dump_json(by_alias=True, exclude_unset=True)
    return Response(body, status, media_type="application/json")


def _no_such_version(version: str) -> Response:
    data = {"supported": list(HANDSHAKE_PROTOCOL_VERSIONS), "requested": version}
    text = f"protocol version {version} has no sessions, and an environment needs one: begin with initialize"
    return _error(400, UNSUPPORTED_PROTOCOL_VERSION, text, data)


def build_application(connections: Connections) -> ASGIApp:
    """The sessions at `/mcp`, for any ASGI server."""
    return Starlette(
        routes=[Route(PATH, connections, methods=["GET", "POST", "DELETE"])], lifespan=lambda _: connections.running()
    )


async def serve_http(
    offer: ServingSpec,
    where: socket.socket,
    most: int = 1000,
    idle: float = 1800.0,
    access: AccessSettings | None = None,
) -> None:
    """Serve any number of clients, until this is cancelled; then all sessions are closed.

    Args:
        where: A listening socket, see `listen`.
        most: Sessions at a time; a quarter of them for one address of another machine.
        access: What requests must bring; by default that of the address that is listened on.
        idle: Seconds without a request after which a session is closed. Clients that go without a word cost so long.
    """
    address = where.getsockname()[0]
    share = None if is_local(address) else max(1, most // 4)
    connections = Connections(build_mcp_server(offer), most, idle, share)
    config = uvicorn.Config(
        AccessControl(build_application(connections), access or AccessSettings.for_address(address)),
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=_LAST_REQUESTS,
    )
    server = UvicornWithoutSignals(config)
    serving = asyncio.create_task(server.serve(sockets=[where]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        await connections.close()
        server.should_exit = True
        await serving
        raise

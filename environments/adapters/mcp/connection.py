"""One connection to one running server. Imports `mcp`, so import it only where it is used.

The client's contexts must be left by the task that entered them, while sessions are used and closed by whatever task
the engine runs. So every connection has an owner task that opens, waits and leaves; calls run in the caller's task.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import get_args

import anyio
from mcp import ClientSession, MCPError
from mcp.client import Transport
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolResult,
    Implementation,
    PaginatedRequestParams,
    Tool,
)
from pydantic import ValidationError

from trajsmith.environments.adapters.mcp.process import ServerProcess
from trajsmith.environments.arguments import find_fault
from trajsmith.environments.json_data import NotJsonError, to_exact_json
from trajsmith.environments.schema_patterns import SchemaValidator, compile_schema
from trajsmith.environments.serving.protocol_keys import FAULT
from trajsmith.records import (
    EnvironmentFault,
    FaultKind,
    InputError,
    JsonObject,
    TrajsmithError,
    format_first_error,
    to_one_line,
)

_QUIET = logging.NullHandler()
"""Keeps the SDK's loggers off the terminal unless the program sets logging up."""
_CLOSED = "Connection closed"
"""How the SDK words the end of a connection; servers use its code (-32000) for their own errors too."""
_LAST_OUTPUT_SECONDS = 0.5
"""Seconds that a dying server gets to tell its exit code and the rest of stderr."""
_SHUTDOWN_SECONDS = 5.0
"""Seconds that leaving a connection may take before it is torn down."""


_MOST_PAGES = 1000
_MOST_TOOLS = 5000
"""Tools of one server: more than anybody has, and few enough to check them all."""
_MOST_BYTES = 16 << 20
"""Bytes of all pages of a list together, as JSON: what one message may have."""


class _Session(ClientSession):
    """A session that checks results in bounded time. The SDK matches a server's own patterns with `re`, which one of
    them can stop for ever.
    """

    output_validators: Mapping[str, SchemaValidator] = {}

    async def validate_tool_result(self, name: str, result: CallToolResult) -> None:
        """Check a result against the schema of its tool.

        Raises:
            RuntimeError: It is missing, or breaks the schema.
        """
        validator = self.output_validators.get(name)
        if validator is None:
            return
        if "structured_content" not in result.model_fields_set:
            raise RuntimeError(f"{name} has an output schema and gave no structured content")
        try:
            fault = find_fault(validator, result.structured_content)
        except Exception as error:  # jsonschema raises many kinds where the schema, which is the server's, is wrong
            message = to_one_line(error, 200)
            raise RuntimeError(f"the output schema of {name} is wrong: {type(error).__name__}: {message}") from error
        if fault is not None:
            raise RuntimeError(f"invalid structured content of {name}: {fault}")


@dataclass(frozen=True)
class ServerInfo:
    """Name, instructions and tools that a server reports when it is connected."""

    name: str
    version: str
    tools: tuple[Tool, ...]
    instructions: str = ""
    """What the server says about its use; empty for most."""


class ToolCallError(Exception):
    """The server answered a call with a JSON-RPC error."""


class McpConnection:
    """Connection to an MCP server: `open`, `call`, `close`. After a fault only `close` makes sense."""

    def __init__(
        self,
        environment: str,
        address: str,
        transport: Transport,
        process: ServerProcess | None,
        public: Callable[[str], str],
    ) -> None:
        self._environment = environment
        self._address = address
        """Program or host, to name it where it does not start."""
        self._transport = transport
        self._process = process
        self._public = public
        """Takes real paths and secrets out of a text."""
        self._stop = asyncio.Event()
        self._session: ClientSession | None = None
        self._owner: asyncio.Task[None] | None = None

    async def open(self, seconds: float) -> ServerInfo:
        """Shake hands and list the tools.

        Raises:
            EnvironmentFault: The server does not come up.
            InputError: The server describes a tool in a way that no client can use.
        """
        for name in ("mcp", "client"):
            logging.getLogger(name).addHandler(_QUIET)
        ready: asyncio.Future[ServerInfo] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(ready))
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(ready)
        except TimeoutError as error:
            raise self._fault("start", f"no answer within {seconds:g} s") from error
        finally:
            if not ready.done():
                ready.cancel()

    async def _own(self, ready: "asyncio.Future[ServerInfo]") -> None:
        try:
            async with AsyncExitStack() as stack:
                dispatcher = JSONRPCDispatcher(*await stack.enter_async_context(self._transport))
                session = await stack.enter_async_context(
                    _Session(dispatcher=dispatcher, client_info=Implementation(name="trajsmith", version="1"))
                )
                try:
                    hello = await self._shake_hands(session, dispatcher)
                except MCPError as error:
                    if self._process is None:
                        raise
                    await self._dying()
                    raise self._fault("start", self._end(error)) from error
                self._session = session
                if not ready.done():
                    ready.set_result(hello)
                await self._stop.wait()
        except Exception as error:  # noqa: BLE001 - anything, in groups; who calls later sees a closed connection
            if not ready.done():
                ready.set_exception(self._start_fault(error))
        finally:
            self.kill()

    def _start_fault(self, error: Exception) -> TrajsmithError:
        leaves = list(_leaves(error))
        known = next((leaf for leaf in leaves if isinstance(leaf, TrajsmithError)), None)
        if known is not None:
            return known
        cause = next((leaf for leaf in leaves if not isinstance(leaf, MCPError)), leaves[0])
        return self._fault("start", str(cause) or type(cause).__name__)

    async def _shake_hands(self, session: "_Session", dispatcher: JSONRPCDispatcher) -> ServerInfo:
        try:
            await session.initialize()
        except MCPError as error:
            if error.code not in (UNSUPPORTED_PROTOCOL_VERSION, METHOD_NOT_FOUND):
                raise
            await session.discover()
        tools: list[Tool] = []
        cursor: str | None = None
        pages = size = 0
        try:
            while True:
                page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
                tools += page.tools
                cursor = page.next_cursor
                pages += 1
                size += len(page.model_dump_json())
                if size > _MOST_BYTES:
                    raise InputError(f"MCP server {self._environment}: it lists more than {_MOST_BYTES} bytes of tools")
                if pages > _MOST_PAGES or len(tools) > _MOST_TOOLS:
                    raise InputError(f"MCP server {self._environment}: it lists more than {_MOST_TOOLS} tools")
                if not cursor:
                    break
        except ValidationError as error:
            raise await self._unusable_tool(error, dispatcher, cursor) from error
        about = session.server_info
        outputs = ((tool.name, tool.output_schema) for tool in tools)
        session.output_validators = {name: compile_schema(schema) for name, schema in outputs if schema}
        name, version = (about.name, about.version) if about else ("", "")
        return ServerInfo(name, version, tuple(tools), session.instructions or "")

    async def _unusable_tool(
        self, error: ValidationError, dispatcher: JSONRPCDispatcher, cursor: str | None
    ) -> InputError:
        """The SDK tells the number of the tool that it cannot read; find its name."""
        fault = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in fault["loc"])
        if fault["loc"][:1] == ("tools",) and len(fault["loc"]) > 1:
            raw = await dispatcher.send_raw_request("tools/list", {"cursor": cursor} if cursor else None)
            tool = raw["tools"][fault["loc"][1]]
            name = tool.get("name", "?") if isinstance(tool, dict) else "?"
            where = f"tool {name}: " + ".".join(str(part) for part in fault["loc"][2:])
        return InputError(f"MCP server {self._environment}: {where}: {fault['msg']}")

    async def call(self, tool: str, arguments: JsonObject, seconds: float) -> CallToolResult:
        """Call a tool.

        Raises:
            Refused: The server answered with an error of the protocol.
            EnvironmentFault: It did not answer, died, or talked nonsense; it is killed.
        """
        try:
            return await self._call(tool, arguments, seconds)
        except (EnvironmentFault, asyncio.CancelledError):
            self.kill()
            self._stop.set()
            raise

    async def _call(self, tool: str, arguments: JsonObject, seconds: float) -> CallToolResult:
        if self._session is None:
            raise self._fault("server_exited", "there is no server", tool)
        try:
            async with asyncio.timeout(seconds):
                result = await self._session.call_tool(tool, arguments, allow_input_required=True)
        except TimeoutError as error:
            raise self._fault("timeout", f"no answer within {seconds:g} s", tool) from error
        except ValidationError as error:
            raise self._fault("protocol", format_first_error(error), tool) from error
        except RuntimeError as error:
            raise self._fault("output_schema", str(error), tool) from error
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            await self._dying()
            raise self._fault("server_exited", self._end(error), tool) from error
        except MCPError as error:
            if error.code in (METHOD_NOT_FOUND, INVALID_REQUEST, PARSE_ERROR):
                raise self._fault("protocol", error.message, tool) from error
            fault = error.data.get(FAULT) if isinstance(error.data, dict) else None
            if isinstance(fault, dict) and fault.get("kind") in get_args(FaultKind):
                raise self._fault(fault["kind"], error.message, tool) from error  # an environment of our own, served
            closed = self._process is None or error.message == _CLOSED
            if error.code != CONNECTION_CLOSED or not closed or not await self._dying():
                raise ToolCallError(error.message) from error
            raise self._fault("server_exited", self._end(error), tool) from error
        if not isinstance(result, CallToolResult):
            raise self._fault("protocol", "the server asks the client for input, which a run cannot give", tool)
        try:
            to_exact_json(result.structured_content)
        except NotJsonError as error:
            raise self._fault("protocol", f"its result is no JSON: {error}", tool) from error
        return result

    async def _dying(self) -> bool:
        """Wait for the exit code; true if the connection is over."""
        if self._owner is None or self._process is None:
            return True
        return await self._process.wait_until_ended(_LAST_OUTPUT_SECONDS) or self._owner.done() or self._process.mute

    def _end(self, error: BaseException) -> str:
        code = self._process.exit_code if self._process else None
        if code is None:
            return str(error) or type(error).__name__
        return f"the server was killed by signal {-code}" if code < 0 else f"the server exited with code {code}"

    def _fault(self, kind: FaultKind, message: str, tool: str | None = None) -> EnvironmentFault:
        """A fault with what the server last said. What it wrote between messages explains more than silence does."""
        if self._process and self._process.garbage and kind in ("start", "timeout", "server_exited"):
            kind = "protocol"
            message = f"{message}; stdout has a line that is not a JSON-RPC message: {self._process.garbage[0][:200]!r}"
        if self._session is None:
            message = f"{self._address}: {message}"
        words = self._process.last_stderr_line[:300] if self._process else ""
        text = self._public(f"{message}; its last line on stderr: {words}" if words else message)
        return EnvironmentFault(kind, self._environment, " ".join(text.split()), tool)

    @property
    def alive(self) -> bool:
        """True while calls make sense, as far as is known."""
        if self._session is None or self._stop.is_set() or self._owner is None or self._owner.done():
            return False
        return self._process is None or (self._process.exit_code is None and not self._process.mute)

    def kill(self) -> None:
        """Kill the server's process group now, if it has one."""
        if self._process is not None:
            self._process.kill()

    async def close(self) -> None:
        """Leave the connection and end the server; when this is cancelled, the server is still killed."""
        self._stop.set()
        if self._owner is None:
            self.kill()
            return
        try:
            if self._session is None:
                self._owner.cancel()
            done, _ = await asyncio.wait([self._owner], timeout=_SHUTDOWN_SECONDS)
            if not done:
                self._owner.cancel()
                await asyncio.wait([self._owner])
        finally:
            self.kill()


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error

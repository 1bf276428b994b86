"""An environment as an MCP server. Imports `mcp`, so import it only where it is used.

The server's lifespan is one connection: whoever runs it gives every client a run of its own.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
    Tool,
)
from pydantic import ValidationError

from trajsmith.environments.serving.protocol_keys import FAULT, REFUSAL
from trajsmith.environments.serving.session_manager import ServingSpec, SessionManager
from trajsmith.environments.session import ToolResult
from trajsmith.phrasing import render_full_policy
from trajsmith.records import EnvironmentFault, InputError, ToolSpec, TrajsmithError, format_first_error, to_one_line

_SHUTDOWN_SECONDS = 10.0
"""Seconds that freeing a session may take."""
_MARKDOWN = "text/markdown"

Context = ServerRequestContext[SessionManager]


def build_mcp_server(offer: ServingSpec) -> Server[SessionManager]:
    """The MCP server of an environment: its tools, and its policy as instructions and as a resource."""
    handlers = _McpHandlers(offer)
    spec = offer.spec
    server: Server[SessionManager] = Server(
        spec.name,
        version=spec.version,
        description=spec.description or None,
        instructions=render_full_policy(spec) or spec.description or None,
        lifespan=handlers.connection,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_read_resource=handlers.read_resource,
    )
    server.middleware.append(handlers.around)
    return server


class _McpHandlers:
    def __init__(self, offer: ServingSpec) -> None:
        self._offer = offer
        self._tools = [to_mcp_tool(tool) for tool in offer.tools]
        self._uri = f"policy://{offer.spec.name}"
        self._policy = render_full_policy(offer.spec)

    @asynccontextmanager
    async def connection(self, server: Server[SessionManager]) -> AsyncIterator[SessionManager]:
        manager = SessionManager(self._offer)
        try:
            yield manager
        finally:
            with anyio.move_on_after(_SHUTDOWN_SECONDS, shield=True):
                await manager.close()

    async def around(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Open the session before a handshake is accepted, and say what is wrong with a malformed request."""
        try:
            if ctx.method == "initialize":
                await ctx.lifespan_context.open()
            return await call_next(ctx)
        except ValidationError as error:
            raise MCPError(INVALID_PARAMS, f"{ctx.method}: {format_first_error(error)}") from error
        except TrajsmithError as error:
            raise _to_protocol_error(error) from error

    async def list_tools(self, ctx: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=self._tools)

    async def call_tool(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        return to_mcp_result(await ctx.lifespan_context.call(params.name, params.arguments or {}))

    async def list_resources(self, ctx: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        if not self._policy:
            return ListResourcesResult(resources=[])
        text = "The rules that the agent must obey."
        return ListResourcesResult(
            resources=[Resource(uri=self._uri, name="policy", description=text, mime_type=_MARKDOWN)]
        )

    async def read_resource(self, ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        policy = self._policy
        if params.uri != self._uri or not policy:
            raise MCPError(INVALID_PARAMS, f"no resource {params.uri}" + (f"; there is {self._uri}" if policy else ""))
        return ReadResourceResult(contents=[TextResourceContents(uri=self._uri, text=policy, mime_type=_MARKDOWN)])


def to_mcp_tool(spec: ToolSpec) -> Tool:
    """The tool as MCP lists it, word for word. An output that is no object cannot be declared there, so it is not."""
    shape = spec.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"server", "actor"})
    shape["inputSchema"].setdefault("type", "object")
    if shape.get("outputSchema", {}).get("type") != "object":
        shape.pop("outputSchema", None)
    return Tool.model_validate(shape)


def to_mcp_result(result: ToolResult) -> CallToolResult:
    """The result as MCP tells it: what the agent sees as text, an object beside it, a refusal's kind in `_meta`."""
    content = [TextContent(text=result.text)]
    if not result.ok:
        return CallToolResult(content=content, is_error=True, _meta={REFUSAL: result.error})
    if isinstance(result.content, dict):
        return CallToolResult(content=content, structured_content=result.content)
    return CallToolResult(content=content)


def _to_protocol_error(error: TrajsmithError) -> MCPError:
    message = to_one_line(error)
    if isinstance(error, EnvironmentFault):
        about = {"kind": error.kind, "environment": error.environment, "tool": error.tool}
        return MCPError(INTERNAL_ERROR, message, {FAULT: about})
    return MCPError(INVALID_PARAMS if isinstance(error, InputError) else INTERNAL_ERROR, message)

"""An environment as an OpenEnv server. Imports `openenv`, so import it only where it is used.

Actions are OpenEnv's own for tools (`list_tools`, `call_tool`), so that any of its clients can drive it. A refusal is
an observation with its kind as OpenEnv names it; what the agent sees is the `result`. A fault is an error of the
protocol. Every WebSocket session has a session of the environment of its own.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import uvicorn
from fastapi import FastAPI
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_types import (
    CallToolAction,
    CallToolObservation,
    ListToolsAction,
    ListToolsObservation,
    Tool,
    ToolError,
    ToolErrorType,
)
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State

from trajsmith.environments.serving.access import AccessControl, AccessSettings
from trajsmith.environments.serving.session_manager import ServingSpec, SessionManager
from trajsmith.environments.serving.sockets import UvicornWithoutSignals
from trajsmith.environments.session import RefusalKind, ToolResult
from trajsmith.phrasing import render_full_policy
from trajsmith.records import InputError, ToolSpec

ERRORS: dict[RefusalKind, ToolErrorType] = {
    "refused": ToolErrorType.EXECUTION_ERROR,
    "invalid_arguments": ToolErrorType.INVALID_ARGS,
    "unknown_tool": ToolErrorType.TOOL_NOT_FOUND,
}
"""Kind of refusal to OpenEnv's word for it; one to one, so that a client can tell it back."""


class ServedEnvironment(Environment[Action, Observation, State]):  # type: ignore[misc]
    """One session of the environment behind OpenEnv's interface."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, offer: ServingSpec) -> None:
        super().__init__()
        self._offer = offer
        self._manager: SessionManager | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._state = State()

    async def reset_async(self, seed: int | None = None, episode_id: str | None = None, **options: Any) -> Observation:
        """Begin anew, at the state that is served; with a seed, at the first state of that seed.

        Raises:
            InputError: There are options that mean nothing here.
        """
        if options:
            raise InputError(f"reset takes seed and episode_id, not {', '.join(sorted(options))}")
        await self._leave()
        offer = self._offer
        if seed is not None:
            offer = replace(offer, state=(await offer.source.states(seed))[0])
        self._loop = asyncio.get_running_loop()
        self._manager = SessionManager(offer)
        await self._manager.open()
        self._state = State(episode_id=episode_id)
        policy = render_full_policy(self._offer.spec)
        return Observation(metadata={"policy": policy} if policy else {})

    async def step_async(self, action: Action, timeout_s: float | None = None, **_: Any) -> Observation:
        """List the tools, or call one."""
        if isinstance(action, ListToolsAction):
            return ListToolsObservation(tools=[build_tool(tool) for tool in self._offer.tools])
        if not isinstance(action, CallToolAction):
            raise InputError('an action is {"type": "call_tool", "tool_name": ..., "arguments": {...}} or "list_tools"')
        if self._manager is None:
            raise InputError("reset comes before the first call")
        async with asyncio.timeout(timeout_s):
            result = await self._manager.call(action.tool_name, action.arguments)
        self._state.step_count += 1
        return build_tool_observation(action.tool_name, result)

    def reset(self, seed: int | None = None, episode_id: str | None = None, **options: Any) -> Observation:
        """The same, for who is not asynchronous."""
        return _wait(self.reset_async(seed, episode_id, **options))

    def step(self, action: Action, timeout_s: float | None = None, **options: Any) -> Observation:
        """The same, for who is not asynchronous."""
        return _wait(self.step_async(action, timeout_s, **options))

    @property
    def state(self) -> State:
        """Episode and number of calls."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        spec = self._offer.spec
        return EnvironmentMetadata(name=spec.name, description=spec.description, version=spec.version)

    def close(self) -> None:
        """Let go of the session; OpenEnv calls this from a thread."""
        manager, self._manager = self._manager, None
        if manager is not None and self._loop is not None and self._loop.is_running():
            asyncio.run_coroutine_threadsafe(manager.close(), self._loop)

    async def _leave(self) -> None:
        manager, self._manager = self._manager, None
        if manager is not None:
            await manager.close()


def build_tool(spec: ToolSpec) -> Tool:
    """Return a tool as OpenEnv lists it."""
    return Tool(name=spec.name, description=spec.description, input_schema=spec.input_schema)


def build_tool_observation(tool: str, result: ToolResult) -> CallToolObservation:
    """Return what a call gave as OpenEnv says it."""
    error = None
    if result.error is not None:
        error = ToolError(error_type=ERRORS[result.error], message=result.text)
    return CallToolObservation(tool_name=tool, result=result.content, error=error)


def _wait(work: Coroutine[Any, Any, Observation]) -> Observation:
    return asyncio.run(work)


def build_application(offer: ServingSpec, most: int = 1000) -> FastAPI:
    """OpenEnv's server for an environment, with `most` sessions at a time."""
    app: FastAPI = create_fastapi_app(
        lambda: ServedEnvironment(offer),
        CallToolAction,  # the server lists tools to MCP clients only for this class; list_tools is read beside it
        CallToolObservation,
        max_concurrent_envs=most if most > 1 else None,
    )
    return app


async def serve_openenv(offer: ServingSpec, where: Any, most: int = 1000, access: AccessSettings | None = None) -> None:
    """Serve an environment until this is cancelled.

    Args:
        where: A listening socket.
        most: Sessions at a time.
        access: What requests must bring; by default that of the address that is listened on.
    """
    await serve_application(build_application(offer, most), where, access)


async def serve_application(inner: FastAPI, where: Any, access: AccessSettings | None = None) -> None:
    """Serve an application until this is cancelled."""
    access = access or AccessSettings.for_address(where.getsockname()[0])
    application = AccessControl(inner, access)
    server = UvicornWithoutSignals(uvicorn.Config(application, log_config=None, access_log=False))
    serving = asyncio.create_task(server.serve(sockets=[where]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        server.should_exit = True
        await serving
        raise

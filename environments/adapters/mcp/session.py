"""A session on a live server that cannot save its state: a reset is a fresh server on a fresh workspace."""

from pathlib import Path

from pydantic import ValidationError

from trajsmith.environments.adapters.mcp.server import LiveServer
from trajsmith.environments.adapters.mcp.settings import McpSettings, StateSettings
from trajsmith.environments.arguments import ArgumentValidator
from trajsmith.environments.session import ToolResult
from trajsmith.records import (
    Actor,
    EnvironmentFault,
    EnvironmentSpec,
    JsonObject,
    compute_state_digest,
    format_first_error,
)


class McpSession:
    """Isolated episode. States are what `McpSource.states` gives; snapshots are what can be observed."""

    def __init__(self, spec: EnvironmentSpec, settings: McpSettings, base: Path) -> None:
        self.spec = spec
        self._settings = settings
        self._base = base
        self._checks = ArgumentValidator(spec)
        self._actors = {tool.name: tool.actor for tool in spec.tools}
        self._live: LiveServer | None = None
        self._seen: JsonObject | None = None
        self._wanted: StateSettings | None = None
        """Initial state of the running server."""
        self._only_read = False
        """True as long as all calls since the start were of tools that declare that they only read."""

    async def reset(self, state: JsonObject) -> None:
        """Stop the old server and start afresh, whatever happened before.

        An explored server that was only read since it started with this state goes on: its reads were seen to change
        nothing.

        Raises:
            EnvironmentFault: This is no initial state, or the server does not come up or refuses its initial calls.
        """
        try:
            wanted = StateSettings.model_validate(state)
        except ValidationError as error:
            await self.close()
            raise EnvironmentFault("state", self.spec.name, format_first_error(error)) from error
        if self._only_read and wanted == self._wanted and self._live is not None and self._live.running:
            return
        await self.close()
        if wanted.load is not None:
            raise EnvironmentFault("state", self.spec.name, "load: the settings name no tool that loads states")
        self._live = await LiveServer.start(self._settings, self._base, wanted)
        await self._live.prepare(wanted)
        self._wanted = wanted
        self._only_read = self._settings.explored

    async def call(self, tool: str, arguments: JsonObject, actor: Actor = "assistant") -> ToolResult:
        """Call a tool. What a refused call did all the same cannot be undone on a live server; the hash shows it."""
        if self._actors.get(tool) != actor:
            return ToolResult.refusal("unknown_tool", f"unknown tool: {tool}")
        fault = self._checks.fault(tool, arguments)
        if fault is not None:
            return ToolResult.refusal("invalid_arguments", fault)
        self._seen = None
        self._only_read = self._only_read and not self.spec.tool(tool).declares_write
        return await self._running.call(tool, arguments)

    @property
    def _running(self) -> LiveServer:
        if self._live is None:
            raise EnvironmentFault("state", self.spec.name, "session was used before reset")
        return self._live

    async def snapshot(self) -> JsonObject:
        """Files and observations; looked at once between two calls."""
        if self._seen is None:
            self._seen = await self._running.snapshot()
        return self._seen

    async def state_hash(self) -> str:
        return compute_state_digest(await self.snapshot())

    async def close(self) -> None:
        """End the server's process group and remove the workspace; the session can be reset again."""
        live, self._live, self._seen = self._live, None, None
        if live is not None:
            await live.close()

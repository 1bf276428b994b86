"""A live MCP server as a source of sessions."""

import asyncio
from functools import cached_property
from pathlib import Path

from chatmodel import Phrasebook
from chatmodel.phrasebook import load_phrasebook
from environments.mcp.server import LiveServer
from environments.mcp.session import McpSession
from environments.mcp.settings import McpSettings, StateSettings
from environments.mcp.tools import describe
from trajectory import EnvironmentSpec, JsonObject


class McpSource:
    """Any stdio or streamable HTTP server, as `EnvironmentSource`."""

    def __init__(self, settings: McpSettings, base: Path | None = None) -> None:
        self.name = settings.name
        self._settings = settings
        self._base = (base or Path()).absolute()
        self._spec: EnvironmentSpec | None = None
        self._asking = asyncio.Lock()

    @cached_property
    def phrasebook(self) -> Phrasebook:
        """The phrasebook of the settings, or an empty one."""
        return load_phrasebook(self._base / self._settings.phrases) if self._settings.phrases else Phrasebook()

    async def spec(self) -> EnvironmentSpec:
        """Ask a server once, on the files of the first state (some servers refuse to start on an empty directory).

        Raises:
            EnvironmentFault: It does not come up.
            InputError: The program is missing, a tool's schema is unusable, or the settings name unknown tools.
        """
        async with self._asking:
            if self._spec is None:
                first = next(iter(self._settings.states.values()), StateSettings())
                live = await LiveServer.start(self._settings, self._base, first)
                try:
                    self._spec = describe(self._settings, live.hello)
                finally:
                    await live.close()
            return self._spec

    async def states(self, seed: int) -> list[JsonObject]:
        """The configured states in their order; the seed has no say."""
        states = self._settings.states.values() or [StateSettings()]
        return [state.model_dump(mode="json") for state in states]

    async def open(self) -> McpSession:
        return McpSession(await self.spec(), self._settings, self._base)

"""A live MCP server as a source of sessions."""

import asyncio
import copy
from functools import cached_property
from pathlib import Path

from trajsmith.environments.adapters.mcp.server import LiveServer
from trajsmith.environments.adapters.mcp.session import McpSession
from trajsmith.environments.adapters.mcp.settings import McpSettings, SnapshotSettings, StateSettings
from trajsmith.environments.adapters.mcp.snapshot_session import SnapshotSession
from trajsmith.environments.adapters.mcp.tools import describe
from trajsmith.environments.replaying import ReplayingSession
from trajsmith.phrasing import Phrasebook, ScenarioBook, load_phrasebook, open_scenarios
from trajsmith.records import EnvironmentSpec, JsonObject


class McpSource:
    """Any stdio or streamable HTTP server, as `EnvironmentSource`."""

    def __init__(self, settings: McpSettings, base: Path | None = None) -> None:
        self.name = settings.name
        self._settings = settings
        self._base = (base or Path()).absolute()
        self._spec: EnvironmentSpec | None = None
        self._saved: list[JsonObject] | None = None
        self._asking = asyncio.Lock()

    @property
    def isolation(self) -> str:
        return "a live server that the user chose, with the user's rights"

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    @cached_property
    def phrasebook(self) -> Phrasebook:
        """The phrasebook of the settings, or an empty one."""
        phrases = self._settings.phrases
        return load_phrasebook(self._base / phrases) if isinstance(phrases, Path) else phrases or Phrasebook()

    @cached_property
    def scenarios(self) -> ScenarioBook:
        """The scenarios of the settings, or those beside the phrasebook."""
        files = (self._settings.scenarios, self._settings.phrases)
        return open_scenarios(*(self._base / file if isinstance(file, Path) else None for file in files))

    async def spec(self) -> EnvironmentSpec:
        """Ask a server once, on the files of the first state (some servers refuse to start on an empty directory).

        Raises:
            EnvironmentFault: It does not come up.
            InputError: The program is missing, a tool's schema is unusable, or the settings name unknown tools.
        """
        async with self._asking:
            if self._spec is None:
                live = await LiveServer.start(self._settings, self._base, self._settings.first_state)
                try:
                    self._spec = describe(self._settings, live.server_info)
                finally:
                    await live.close()
            return self._spec

    async def states(self, seed: int) -> list[JsonObject]:
        """The configured states in their order; the seed has no say. With `snapshot`, they are what the server saves.

        Raises:
            EnvironmentFault: A state cannot be brought about.
        """
        states = list(self._settings.states.values()) or [StateSettings()]
        if self._settings.snapshot is None:
            return [state.model_dump(mode="json", exclude={"load"}) for state in states]
        await self.spec()  # it says what is wrong with the settings
        async with self._asking:
            if self._saved is None:
                self._saved = [await self._save(state, self._settings.snapshot) for state in states]
            return [copy.deepcopy(state) for state in self._saved]

    async def _save(self, state: StateSettings, tools: SnapshotSettings) -> JsonObject:
        live = await LiveServer.start(self._settings, self._base, state)
        try:
            if state.load is not None:
                await live.load(tools, state.load)
            await live.prepare(state)
            return await live.save(tools)
        finally:
            await live.close()

    async def open(self) -> ReplayingSession | SnapshotSession:
        """A session that can go back: by the server's own tools, or by a fresh server and the same calls."""
        spec = await self.spec()
        if self._settings.snapshot is not None:
            return SnapshotSession(spec, self._settings, self._base)
        return ReplayingSession(McpSession(spec, self._settings, self._base))

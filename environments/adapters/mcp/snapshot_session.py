"""A session on a live server that saves and loads its state by tools of its own."""

from pathlib import Path

from trajsmith.environments.adapters.mcp.server import LiveServer
from trajsmith.environments.adapters.mcp.session import McpSession
from trajsmith.environments.adapters.mcp.settings import McpSettings, StateSettings
from trajsmith.environments.diff import diff
from trajsmith.records import EnvironmentFault, EnvironmentSpec, JsonObject, compute_state_digest


class SnapshotSession(McpSession):
    """Isolated episode. A state is what the server saves; a reset loads it, and looks whether it is there."""

    def __init__(self, spec: EnvironmentSpec, settings: McpSettings, base: Path) -> None:
        super().__init__(spec, settings, base)
        assert settings.snapshot is not None, "the source makes these only for servers that save"
        self._tools = settings.snapshot

    async def reset(self, state: JsonObject) -> None:
        """Load a state: on the running server where the settings say that this is right, else on a fresh one.

        Raises:
            EnvironmentFault: The server does not come up, refuses the state, or has another one afterwards.
        """
        self._seen = None
        try:
            if self._live is None or not self._tools.reuse or not self._live.running:
                await self.close()
                files = StateSettings(files=self._settings.first_state.files)
                self._live = await LiveServer.start(self._settings, self._base, files)
            await self._live.load(self._tools, state)
            saved = await self._live.save(self._tools)
            if compute_state_digest(saved) != compute_state_digest(state):
                raise EnvironmentFault("state", self.spec.name, self._describe_mismatch(state, saved), self._tools.load)
        except BaseException:  # cancelled too: nobody knows which state it has now
            await self.close()
            raise
        self._seen = saved

    async def snapshot(self) -> JsonObject:
        """Return the state that the server saves; asked once between two calls."""
        if self._seen is None:
            self._seen = await self._running.save(self._tools)
        return self._seen

    async def checkpoint(self) -> JsonObject:
        """A point to roll back to: the state as it is saved."""
        return await self.snapshot()

    async def rollback(self, checkpoint: JsonObject) -> None:
        """Load a checkpoint of any session of this environment, unless nothing happened since."""
        running = self._live is not None and self._live.running
        if not running or await self.state_hash() != compute_state_digest(checkpoint):
            await self.reset(checkpoint)

    def _describe_mismatch(self, wanted: JsonObject, saved: JsonObject) -> str:
        change = next(iter(diff(wanted, saved)), {"op": "replace", "path": ""})
        difference = {"add": "is more in it", "remove": "is missing"}.get(change["op"], "differs")
        hint = "; if only a fresh server loads well, set reuse: false" if self._tools.reuse else ""
        return f"the server saves another state than it was asked to load: {change['path'] or '/'} {difference}{hint}"

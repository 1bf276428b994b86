"""A running server beside its workspace: everything that lives between two resets. Imports `mcp` when it starts."""

import asyncio
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trajsmith.environments.adapters.mcp.launch import ServerLaunch, fill_from_parent, prepare_launch
from trajsmith.environments.adapters.mcp.process import ServerProcess
from trajsmith.environments.adapters.mcp.settings import McpSettings, ObserveSettings, SnapshotSettings, StateSettings
from trajsmith.environments.adapters.mcp.workspace import Workspace
from trajsmith.environments.mcp_library import require_mcp
from trajsmith.environments.session import ToolResult
from trajsmith.records import EnvironmentFault, InputError, JsonObject, JsonValue, canonical_json

if TYPE_CHECKING:
    from trajsmith.environments.adapters.mcp.connection import McpConnection, ServerInfo

_OPENING = 1000
"""Characters of a result in which a pattern for refusals is looked for."""


class LiveServer:
    """Use `start`, and always `close`."""

    def __init__(self, settings: McpSettings, workspace: Workspace) -> None:
        self._settings = settings
        self._workspace = workspace
        self._connection: McpConnection | None = None
        self._hello: ServerInfo | None = None

    @classmethod
    async def start(cls, settings: McpSettings, base: Path, state: StateSettings) -> "LiveServer":
        """A fresh workspace with the state's files, and a fresh server on it. The state's calls are not made yet.

        Raises:
            EnvironmentFault: The set-up fails or the server does not come up.
            InputError: The settings ask for a program or a variable that is not there.
        """
        live = cls(settings, Workspace(settings.name, settings.workspace))
        try:
            await live._start(base, state)
        except BaseException:  # cancelled too: no process may be left behind
            await live.close()
            raise
        return live

    @property
    def server_info(self) -> "ServerInfo":
        """Description that the server gave of itself."""
        assert self._hello is not None, "`start` sets it"
        return self._hello

    async def _start(self, base: Path, state: StateSettings) -> None:
        workspace = self._workspace
        launch = prepare_launch(self._settings, base, workspace.path)
        workspace.mask(launch.secrets)
        await asyncio.to_thread(workspace.write, state.files)
        for command in self._settings.workspace.setup:
            await self._set_up(launch, command)
        self._connection = await self._connect(launch)
        self._hello = await self._connection.open(self._settings.start_timeout)

    async def _set_up(self, launch: ServerLaunch, command: list[str]) -> None:
        name = self._settings.name
        seconds = self._settings.start_timeout
        process = await self._spawn(launch, command)
        process.close_stdin()
        reading = asyncio.gather(process.listen_to_stderr(), process.skip_stdout())
        try:
            async with asyncio.timeout(seconds):
                await reading
                await process.wait_until_ended(seconds)
        except TimeoutError as error:
            raise EnvironmentFault("start", name, f"set-up command {command[0]} took over {seconds:g} s") from error
        finally:
            process.kill()
        if process.exit_code != 0:
            words = self._workspace.mask_text(process.last_stderr_line)
            message = f"set-up command {command[0]} ended with code {process.exit_code}: {words}"
            raise EnvironmentFault("start", name, message)

    async def _spawn(self, launch: ServerLaunch, command: list[str]) -> ServerProcess:
        resolved = launch.resolve(command, self._workspace.path)
        try:
            return await ServerProcess.spawn(resolved, launch.env, self._workspace.path)
        except OSError as error:
            raise EnvironmentFault("start", self._settings.name, f"{command[0]}: {error.strerror}") from error

    async def _connect(self, launch: ServerLaunch) -> "McpConnection":
        require_mcp(f"the MCP server {self._settings.name}")
        from trajsmith.environments.adapters.mcp import transport
        from trajsmith.environments.adapters.mcp.connection import McpConnection

        settings, public = self._settings, self._workspace.mask_text
        if settings.command is not None:
            process = await self._spawn(launch, settings.command)
            return McpConnection(settings.name, settings.command[0], transport.stdio(process), process, public)
        url = (settings.url or "").replace("{workspace}", str(self._workspace.path))
        headers, secrets = fill_from_parent(settings.name, settings.headers)
        self._workspace.mask((*launch.secrets, *secrets))
        streams = transport.http(url, headers, settings.start_timeout)
        return McpConnection(settings.name, urlsplit(url).netloc.rpartition("@")[2], streams, None, public)

    async def call(self, tool: str, arguments: JsonObject) -> ToolResult:
        """Call any tool of the server, with aliased arguments and an aliased result.

        Raises:
            EnvironmentFault: The server broke; it is dead from now on.
        """
        from trajsmith.environments.adapters.mcp.connection import ToolCallError
        from trajsmith.environments.adapters.mcp.results import join_text, read_content, read_refusal

        if self._connection is None:
            raise EnvironmentFault("server_exited", self._settings.name, "the server is closed", tool)
        try:
            result = await self._connection.call(tool, self._workspace.to_server(arguments), self._settings.timeout)
        except ToolCallError as refusal:
            return ToolResult.refusal("refused", self._workspace.mask_text(str(refusal)))
        opening = join_text(result)[:_OPENING]
        if result.is_error or any(re.match(pattern, opening) for pattern in self._settings.refusals):
            return read_refusal(result, self._workspace.mask_text)
        content = self._workspace.from_server(read_content(result, self._settings.literals))
        try:
            canonical_json(content)
        except InputError as error:
            raise EnvironmentFault("protocol", self._settings.name, str(error), tool) from error
        return ToolResult(content)

    @property
    def running(self) -> bool:
        """False once a call has broken it or it has ended by itself."""
        return self._connection is not None and self._connection.alive

    async def prepare(self, state: StateSettings) -> None:
        """Make the initial calls of a state on the fresh server.

        Raises:
            EnvironmentFault: One of them is refused.
        """
        for call in state.calls:
            result = await self.call(call.tool, call.arguments)
            if not result.ok:
                raise self._state_fault(f"the initial state's call was refused: {result.text}", call.tool)

    async def save(self, tools: SnapshotSettings) -> JsonObject:
        """The state as the server's own tool gives it.

        Raises:
            EnvironmentFault: It refuses, or gives no object.
        """
        result = await self.call(tools.save, {})
        if not result.ok:
            raise self._state_fault(f"the state cannot be saved: {result.text}", tools.save)
        if not isinstance(result.content, dict):
            raise self._state_fault(f"a saved state must be an object, not {result.text[:100]}", tools.save)
        return result.content

    async def load(self, tools: SnapshotSettings, state: JsonObject) -> None:
        """Go on from a state, by the server's own tool. It may lie: save again to see.

        Raises:
            EnvironmentFault: It refuses.
        """
        spec = next(tool for tool in self.server_info.tools if tool.name == tools.load)
        as_text = spec.input_schema["properties"][tools.argument].get("type") == "string"
        argument = canonical_json(state).decode() if as_text else state
        result = await self.call(tools.load, {tools.argument: argument})
        if not result.ok:
            raise self._state_fault(f"the state cannot be loaded: {result.text}", tools.load)

    def _state_fault(self, message: str, tool: str) -> EnvironmentFault:
        return EnvironmentFault("state", self._settings.name, message, tool)

    async def snapshot(self) -> JsonObject:
        """Return the observable state: the workspace's files, and the results of the `observe` calls."""
        observed = {call.label: await self._observe(call) for call in self._settings.observe}
        return {"files": await asyncio.to_thread(self._workspace.files), "observed": observed}

    def list_files(self) -> JsonObject:
        """Return the files of the workspace, as they stand in a snapshot.

        Raises:
            EnvironmentFault: There are too many.
        """
        return self._workspace.files()

    def list_databases(self) -> list[str]:
        """Return the SQLite files of the workspace, also those that are read as databases already."""
        return self._workspace.list_databases()

    def read_databases(self, globs: list[str]) -> None:
        """From now on read these files as databases."""
        self._workspace.read_databases(globs)

    async def _observe(self, call: ObserveSettings) -> JsonValue:
        result = await self.call(call.tool, call.arguments)
        return _without(result.content, [re.compile(pattern) for pattern in call.drop])

    async def close(self) -> None:
        """End the server and remove its workspace, also when this is cancelled."""
        connection, self._connection = self._connection, None
        try:
            if connection is not None:
                await connection.close()
        finally:
            with suppress(OSError):
                self._workspace.close()


def _without(value: JsonValue, patterns: list[re.Pattern[str]]) -> JsonValue:
    if isinstance(value, str):
        for pattern in patterns:
            value = pattern.sub("", value)
        return value
    if isinstance(value, list):
        return [_without(item, patterns) for item in value]
    if isinstance(value, dict):
        return {key: _without(item, patterns) for key, item in value.items()}
    return value

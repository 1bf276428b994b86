"""Calls on a fresh server in a workspace of its own, within limits of calls, time and size."""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from trajsmith.envgen.exploration.refusals import looks_refused
from trajsmith.environments.adapters.mcp import McpSettings
from trajsmith.environments.adapters.mcp.literals import parse_literal, unwrap_data
from trajsmith.environments.adapters.mcp.server import LiveServer
from trajsmith.environments.adapters.mcp.settings import CallSettings
from trajsmith.records import EnvironmentFault, JsonObject, JsonValue

LARGEST_RESULT = 100_000
"""Characters of a result; a tool that gives more is left out."""
SLOWEST = 8.0
"""Seconds of a call; a tool that takes longer is left out."""
MOST_FAULTS = 6
"""Faults of the server after which the exploration ends with what is known."""


class ExplorationEnded(Exception):
    """A limit is reached; what is known by then counts."""


@dataclass(frozen=True)
class TrialCall:
    """Result of a call, or its refusal."""

    tool: str
    arguments: JsonObject
    ok: bool
    text: str
    content: JsonValue
    plain_refusal: bool = False
    """The server did not mark it as a refusal, and it reads like one."""


@dataclass
class ExplorationLimits:
    """Bounds of one exploration."""

    calls: int = 600
    seconds: float = 240.0
    starts: int = 40


@dataclass
class Prober:
    """A server that is started anew as often as it is needed."""

    settings: McpSettings
    base: Path
    limits: ExplorationLimits = field(default_factory=ExplorationLimits)
    calls: int = 0
    starts: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    """Tool to why it is left out: it broke the server, hung or gave too much."""
    log: list[TrialCall] = field(default_factory=list)
    literals: bool = False
    """A result was the text of a Python list or dict."""
    databases: list[str] = field(default_factory=list)
    """SQLite files that were seen in the workspace."""
    _live: LiveServer | None = None
    _began: float = field(default_factory=time.monotonic)

    async def start(self) -> LiveServer:
        """Start a fresh server.

        Raises:
            EnvironmentFault: It does not come up.
            ExplorationEnded: It was started too often.
        """
        await self.close()
        self.starts += 1
        if self.starts > self.limits.starts:
            raise ExplorationEnded(f"after {self.limits.starts} starts of the server")
        workspace = self.settings.workspace
        bounded = self.settings.model_copy(
            update={
                "timeout": min(self.settings.timeout, SLOWEST),
                "workspace": workspace.model_copy(update={"databases": [*workspace.databases, *self.databases]}),
            }
        )
        self._live = await LiveServer.start(bounded, self.base, self.settings.first_state)
        return self._live

    async def restart(self, calls: list[CallSettings]) -> list[TrialCall]:
        """Start a fresh server and make calls on it."""
        await self.start()
        return [await self.call(call.tool, call.arguments) for call in calls]

    async def call(self, tool: str, arguments: JsonObject) -> TrialCall:
        """Make a call; a fault is a refusal here, and the tool is not called again.

        Raises:
            ExplorationEnded: A limit is reached.
        """
        self.calls += 1
        if self.calls > self.limits.calls:
            raise ExplorationEnded(f"after {self.limits.calls} calls")
        if time.monotonic() - self._began > self.limits.seconds:
            raise ExplorationEnded(f"after {self.limits.seconds:g} s")
        if len(self.faults) > MOST_FAULTS:
            raise ExplorationEnded(f"after {MOST_FAULTS} faults of the server")
        if self._live is None or not self._live.running:
            await self.start()
        assert self._live is not None
        try:
            result = await self._live.call(tool, arguments)
        except EnvironmentFault as fault:
            self.faults[tool] = f"{fault.kind}: {str(fault)[:160]}"
            await self.close()
            return self._keep(TrialCall(tool, arguments, False, str(fault), None))
        content = result.content
        data = parse_literal(content) if isinstance(content, str) else unwrap_data(content)
        if data != content:
            content, self.literals = data, True
        text = _read_text(result.content, result.text)
        if len(text) > LARGEST_RESULT:
            self.faults[tool] = f"a result of {len(text)} characters"
            return self._keep(TrialCall(tool, arguments, False, text[:200], None))
        plain = result.ok and looks_refused(text)
        return self._keep(TrialCall(tool, arguments, result.ok and not plain, text, content, plain))

    def _keep(self, outcome: TrialCall) -> TrialCall:
        self.log.append(outcome)
        return outcome

    async def files(self) -> JsonObject:
        """Return the files of the workspace, as the state has them."""
        if self._live is None or not self._live.running:
            return {}
        try:
            files = await asyncio.to_thread(self._live.list_files)
            new = [path for path in self._live.list_databases() if path not in self.databases]
            if new:
                self.databases += new
                self._live.read_databases(self.databases)
                files = await asyncio.to_thread(self._live.list_files)
            return files
        except EnvironmentFault as fault:
            raise ExplorationEnded(str(fault)) from fault

    async def close(self) -> None:
        """End the server; safe to call twice."""
        live, self._live = self._live, None
        if live is not None:
            await live.close()


def _read_text(content: JsonValue, text: str) -> str:
    """Return a result as the server wrote it: a text that FastMCP wraps as `{"result": ...}` is that text."""
    if isinstance(content, dict) and content.keys() == {"result"} and isinstance(content["result"], str):
        content = content["result"]
    return content if isinstance(content, str) else text

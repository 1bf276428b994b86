"""One tool of a live MCP server that is asked for sources: what searches, or what reads a page."""

import re
from pathlib import Path
from typing import Protocol

from trajsmith.environments.adapters.mcp import McpSettings
from trajsmith.environments.adapters.mcp.server import LiveServer
from trajsmith.environments.adapters.mcp.settings import ToolFilter
from trajsmith.environments.adapters.mcp.tools import describe
from trajsmith.environments.arguments import ArgumentValidator
from trajsmith.records import EnvironmentFault, InputError, JsonObject, JsonValue, escape_controls


class AskedSettings(Protocol):
    """Settings of a tool that is asked."""

    @property
    def tool(self) -> str: ...
    @property
    def argument(self) -> str: ...
    @property
    def arguments(self) -> JsonObject: ...


class AskedTool:
    """A running server of which one tool is called. One that broke is started again at the next call.

    Args:
        server: How it is started.
        asked: The tool, the parameter that takes what is asked, and further arguments.
        key: Name of its settings, for errors.
        example: What could be asked, to see whether the tool takes it.
        base: Folder that relative paths start at.
    """

    def __init__(
        self, server: McpSettings, asked: AskedSettings, key: str, example: str, base: Path | None = None
    ) -> None:
        # only this tool is looked at: what else the server has may be described as it likes
        self._settings = server.model_copy(update={"tools": ToolFilter(include=[asked.tool])})
        self._asked, self._key, self._example = asked, key, example
        self._base = (base or Path()).absolute()
        self._live: LiveServer | None = None
        self.name = server.name
        """As the server calls itself, else its name in the settings."""

    async def start(self) -> None:
        """Start the server and see whether it can be asked.

        Raises:
            InputError: It does not start, has no such tool, or the tool wants other arguments.
        """
        try:
            live = await self._running()
        except EnvironmentFault as fault:
            raise InputError(
                f"{self._key}: {fault.environment}: {fault.message}; mend `{self._key}`, or leave it out"
            ) from fault
        try:
            self._check(live)
        except BaseException:
            await self.close()
            raise

    async def call(self, value: str) -> tuple[JsonValue, str]:
        """Return what the tool answers, or None and the reason."""
        asked = self._asked
        try:
            live = await self._running()
            result = await live.call(asked.tool, {**asked.arguments, asked.argument: value})
        except (EnvironmentFault, InputError) as fault:
            return None, to_reason(str(fault))
        if not result.ok:
            error_text = result.content.get("error", result.text) if isinstance(result.content, dict) else result.text
            return None, f"refused: {to_reason(str(error_text))}"
        return result.content, ""

    async def close(self) -> None:
        """End the server."""
        live, self._live = self._live, None
        if live is not None:
            await live.close()

    async def _running(self) -> LiveServer:
        if self._live is None or not self._live.running:
            await self.close()
            self._live = await LiveServer.start(self._settings, self._base, self._settings.first_state)
            self.name = self._live.server_info.name or self._settings.name
        return self._live

    def _check(self, live: LiveServer) -> None:
        asked, offered = self._asked, sorted(tool.name for tool in live.server_info.tools)
        if asked.tool not in offered:
            has = ", ".join(offered) or "no tools"
            raise InputError(f"{self._key}.tool: {self._settings.name} has no tool {asked.tool!r}; it has {has}")
        spec = describe(self._settings, live.server_info)
        known = list(spec.tools[0].parameters)
        configured = {asked.argument: "argument", **dict.fromkeys(asked.arguments, "arguments")}
        for name, key in configured.items():
            if name not in known:
                has = ", ".join(known) or "no parameters"
                raise InputError(f"{self._key}.{key}: the tool {asked.tool} has no parameter {name!r}; it has {has}")
        fault = ArgumentValidator(spec).fault(asked.tool, {**asked.arguments, asked.argument: self._example})
        if fault:
            raise InputError(f"{self._key}.arguments: the tool {asked.tool} wants others: {fault}")


def to_reason(text: str) -> str:
    """Return a message of a server on one line of bounded length."""
    return escape_controls(re.sub(r"\s+", " ", text).strip()[:300])

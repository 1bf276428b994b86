"""The adapter of live MCP servers."""

from trajsmith.environments.adapters.mcp.settings import McpSettings
from trajsmith.environments.adapters.mcp.source import McpSource
from trajsmith.environments.adapters.registry import ADAPTERS, Adapter, SourceOptions


def open_source(settings: McpSettings, options: SourceOptions) -> McpSource:
    """Open the server that the settings name; nothing runs yet."""
    return McpSource(settings)


ADAPTERS.register("mcp")(Adapter(McpSettings, open_source))

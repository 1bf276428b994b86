"""The adapter of live MCP servers."""

from trajsmith.environments.adapters._base import ADAPTERS, Adapter, SourceOptions
from trajsmith.environments.adapters.mcp.settings import McpSettings
from trajsmith.environments.adapters.mcp.source import McpSource


def open_source(settings: McpSettings, options: SourceOptions) -> McpSource:
    """Open the server that the settings name; nothing runs yet."""
    return McpSource(settings)


ADAPTERS.register("mcp")(Adapter(McpSettings, open_source))

"""Live MCP servers (stdio, streamable HTTP) as environments. Importing this does not import `mcp`."""

from environments.mcp.session import McpSession
from environments.mcp.settings import McpSettings
from environments.mcp.source import McpSource

__all__ = ["McpSession", "McpSettings", "McpSource"]

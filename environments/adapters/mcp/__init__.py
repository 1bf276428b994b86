"""Live MCP servers (stdio, streamable HTTP) as environments. Importing this does not import `mcp`."""

from trajsmith.environments.adapters.mcp.client_files import is_client_file
from trajsmith.environments.adapters.mcp.session import McpSession
from trajsmith.environments.adapters.mcp.settings import McpSettings
from trajsmith.environments.adapters.mcp.source import McpSource

__all__ = ["McpSession", "McpSettings", "McpSource", "is_client_file"]

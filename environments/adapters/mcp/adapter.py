"""The adapter of live MCP servers."""

from trajsmith.environments.adapters.mcp.client_files import read_client_file
from trajsmith.environments.adapters.mcp.settings import McpSettings
from trajsmith.environments.adapters.mcp.source import McpSource
from trajsmith.environments.adapters.registry import ADAPTERS, Adapter, SourceOptions


def open_source(settings: McpSettings, options: SourceOptions) -> McpSource:
    """Open the server that the settings name; nothing runs yet."""
    return McpSource(settings)


def expand(settings: McpSettings) -> list[McpSettings]:
    """Return the servers of a client's file, or the settings themselves."""
    if settings.file is None:
        return [settings]
    return read_client_file(settings.file, settings.name, settings.explore is not False)


ADAPTERS.register("mcp")(Adapter(McpSettings, open_source, expand, path_field="file"))

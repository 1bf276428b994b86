"""What an environment is, sessions, state diff and hash, adapters, and the bundled library."""

from trajsmith.environments.bundles import BUNDLES, list_bundled_environments
from trajsmith.environments.check_time import count_check_time, limit_check_time
from trajsmith.environments.diff import diff, escape_pointer
from trajsmith.environments.mcp_library import require_mcp
from trajsmith.environments.native import Environment, EnvironmentState, StateModel, native_tools, tool
from trajsmith.environments.native_program import NativeSession
from trajsmith.environments.published import (
    CONFORMANCE,
    PUBLISHED_FOLDER,
    PUBLISHED_INDEX,
    PULLED,
    HubReference,
    PublishedEnvironment,
    PublishedIndex,
    PulledCopy,
    check_published_version,
    compute_version,
    get_copy_folder,
    parse_hub_reference,
    read_published_index,
)
from trajsmith.environments.schema_patterns import compile_schema, find_schema_fault
from trajsmith.environments.session import (
    EnvironmentSource,
    InitialAction,
    Preparable,
    RefusalKind,
    Session,
    ToolResult,
)
from trajsmith.environments.tool_actors import check_user_tools, find_tool_actor
from trajsmith.records import ToolError

__all__ = [
    "BUNDLES",
    "CONFORMANCE",
    "PUBLISHED_FOLDER",
    "PUBLISHED_INDEX",
    "PULLED",
    "Environment",
    "EnvironmentSource",
    "EnvironmentState",
    "HubReference",
    "InitialAction",
    "NativeSession",
    "Preparable",
    "PublishedEnvironment",
    "PublishedIndex",
    "PulledCopy",
    "RefusalKind",
    "Session",
    "StateModel",
    "ToolError",
    "ToolResult",
    "check_published_version",
    "check_user_tools",
    "compile_schema",
    "compute_version",
    "count_check_time",
    "diff",
    "escape_pointer",
    "find_schema_fault",
    "find_tool_actor",
    "get_copy_folder",
    "limit_check_time",
    "list_bundled_environments",
    "native_tools",
    "parse_hub_reference",
    "read_published_index",
    "require_mcp",
    "tool",
]

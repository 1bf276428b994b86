"""What an environment is, sessions, state diff and hash, adapters, and the bundled library."""

from trajsmith.environments.check_time import count_check_time, limit_check_time
from trajsmith.environments.diff import diff, escape_pointer
from trajsmith.environments.mcp_library import require_mcp
from trajsmith.environments.native import Environment, EnvironmentState, StateModel, native_tools, tool
from trajsmith.environments.native_program import NativeSession
from trajsmith.environments.schema_patterns import compile_schema, find_schema_fault
from trajsmith.environments.session import EnvironmentSource, InitialAction, Preparable, Session, ToolResult
from trajsmith.environments.tool_actors import check_user_tools, find_tool_actor
from trajsmith.records import ToolError

__all__ = [
    "Environment",
    "EnvironmentSource",
    "EnvironmentState",
    "InitialAction",
    "NativeSession",
    "Preparable",
    "Session",
    "StateModel",
    "ToolError",
    "ToolResult",
    "check_user_tools",
    "compile_schema",
    "count_check_time",
    "diff",
    "escape_pointer",
    "find_schema_fault",
    "find_tool_actor",
    "limit_check_time",
    "native_tools",
    "require_mcp",
    "tool",
]

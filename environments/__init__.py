"""What an environment is, sessions, state diff and hash, adapters, and the bundled library."""

from environments.diff import diff
from environments.native import Environment, EnvironmentState, StateModel, native_tools, tool
from environments.native_program import NativeSession
from environments.session import EnvironmentSource, InitialAction, Preparable, Session, ToolResult
from trajectory import ToolError

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
    "diff",
    "native_tools",
    "tool",
]

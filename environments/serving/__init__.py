"""Environments served over MCP (stdio, streamable HTTP). Importing this does not import `mcp`.

Every connection has its own session of the environment: every stdio process one, every HTTP session one.
"""

from trajsmith.environments.serving.session_manager import ServingSpec, SessionManager, prepare_serving

__all__ = ["ServingSpec", "SessionManager", "prepare_serving"]

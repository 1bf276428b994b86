"""Environments served over MCP (stdio, streamable HTTP). Importing this does not import `mcp`.

Every connection has its own session of the environment: every stdio process one, every HTTP session one.
"""

from environments.serving.desk import Desk, Offer, prepare

__all__ = ["Desk", "Offer", "prepare"]

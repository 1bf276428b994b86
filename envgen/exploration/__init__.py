"""Exploration of live MCP servers: from a command that starts one to an entry that makes a dataset of it."""

from trajsmith.envgen.exploration.entry import ExploredEntry, compose_entry
from trajsmith.envgen.exploration.explorer import explore_server
from trajsmith.envgen.exploration.findings import Findings
from trajsmith.envgen.exploration.prober import ExplorationLimits

__all__ = ["ExplorationLimits", "ExploredEntry", "Findings", "compose_entry", "explore_server"]

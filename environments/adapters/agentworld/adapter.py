"""The adapter of Agent-World: a directory of data files, and functions."""

from trajsmith.environments.adapters.agentworld.settings import PRELOAD, AgentWorldSettings, build_payload
from trajsmith.environments.adapters.registry import ADAPTERS, Adapter, SourceOptions, open_sandboxed
from trajsmith.environments.session import EnvironmentSource


def open_source(settings: AgentWorldSettings, options: SourceOptions) -> EnvironmentSource:
    """Open the environment that the settings name; nothing runs yet."""
    return open_sandboxed("agentworld", build_payload(settings), options, PRELOAD)


ADAPTERS.register("agentworld")(Adapter(AgentWorldSettings, open_source, path_field="directory"))

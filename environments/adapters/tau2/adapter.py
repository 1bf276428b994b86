"""The adapter of domains of tau2-bench, where that package is installed or a checkout is at hand."""

from trajsmith.environments.adapters.registry import ADAPTERS, Adapter, SourceOptions, open_sandboxed
from trajsmith.environments.adapters.tau2.settings import PRELOAD, Tau2Settings, build_payload
from trajsmith.environments.session import EnvironmentSource


def open_source(settings: Tau2Settings, options: SourceOptions) -> EnvironmentSource:
    """Open the environment that the settings name; nothing runs yet."""
    return open_sandboxed("tau2", build_payload(settings), options, PRELOAD)


ADAPTERS.register("tau2")(Adapter(Tau2Settings, open_source))

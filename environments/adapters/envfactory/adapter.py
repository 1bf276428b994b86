"""The adapter of EnvFactory: a tool file and what lies beside it, or a whole checkout."""

from trajsmith.environments.adapters.envfactory.settings import PRELOAD, EnvFactorySettings, build_payload, discover
from trajsmith.environments.adapters.registry import ADAPTERS, Adapter, SourceOptions, open_sandboxed
from trajsmith.environments.session import EnvironmentSource


def open_source(settings: EnvFactorySettings, options: SourceOptions) -> EnvironmentSource:
    """Open the environment that the settings name; nothing runs yet."""
    return open_sandboxed("envfactory", build_payload(settings), options, PRELOAD, own_modules=True)


def expand(settings: EnvFactorySettings) -> list[EnvFactorySettings]:
    """Return the settings of every tool file of a checkout."""
    if not settings.tools.is_dir():
        return [settings]
    chosen = settings.model_dump(include={"max_states", "moment", "hide"})
    return [one.model_copy(update=chosen) for one in discover(settings.tools)]


ADAPTERS.register("envfactory")(Adapter(EnvFactorySettings, open_source, expand, path_field="tools"))

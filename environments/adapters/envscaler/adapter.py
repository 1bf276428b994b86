"""The adapter of EnvScaler: a class with a config dict."""

from trajsmith.environments.adapters.envscaler.settings import PRELOAD, EnvScalerSettings, build_payload, discover
from trajsmith.environments.adapters.registry import ADAPTERS, Adapter, SourceOptions, open_sandboxed
from trajsmith.environments.session import EnvironmentSource


def open_source(settings: EnvScalerSettings, options: SourceOptions) -> EnvironmentSource:
    """Open the environment that the settings name; nothing runs yet."""
    return open_sandboxed("envscaler", build_payload(settings), options, PRELOAD, own_modules=True)


def expand(settings: EnvScalerSettings) -> list[EnvScalerSettings]:
    """Return the settings of every environment of a metadata file."""
    if settings.file.suffix == ".py" or settings.id is not None:
        return [settings]
    return [settings.model_copy(update={"id": one.id}) for one in discover(settings.file)]


ADAPTERS.register("envscaler")(Adapter(EnvScalerSettings, open_source, expand))

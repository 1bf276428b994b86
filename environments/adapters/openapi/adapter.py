"""The adapter of OpenAPI documents."""

from trajsmith.environments.adapters.openapi.settings import PRELOAD, OpenApiSettings, build_payload
from trajsmith.environments.adapters.registry import ADAPTERS, Adapter, SourceOptions, open_sandboxed
from trajsmith.environments.session import EnvironmentSource


def open_source(settings: OpenApiSettings, options: SourceOptions) -> EnvironmentSource:
    """Open the environment that the settings name; nothing runs yet."""
    return open_sandboxed("openapi", build_payload(settings), options, PRELOAD)


ADAPTERS.register("openapi")(Adapter(OpenApiSettings, open_source, path_field="spec"))

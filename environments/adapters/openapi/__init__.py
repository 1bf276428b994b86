"""OpenAPI documents (3.0, 3.1) as stateful environments: a table per resource, behaviour derived from the document."""

from trajsmith.environments.adapters.openapi.settings import OpenApiSettings, build_payload

__all__ = ["OpenApiSettings", "build_payload"]

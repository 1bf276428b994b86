"""OpenAPI documents (3.0, 3.1) as stateful environments: a table per resource, behaviour derived from the document."""

from environments.openapi.settings import OpenApiSettings, payload

__all__ = ["OpenApiSettings", "payload"]

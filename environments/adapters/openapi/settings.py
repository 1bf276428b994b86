"""Settings of an OpenAPI document, and the payload that the program gets."""

import re
from typing import Literal

from pydantic import Field, NonNegativeInt

from trajsmith.records import FrozenModel, InputError, JsonObject, SourcePath

PRELOAD = ("yaml", "jsonschema_rs", "jsonschema", "referencing", "trajsmith.environments.adapters.openapi.program")
"""Modules that a worker must have imported before it is locked down."""
MAX_BYTES = 64_000_000
"""Largest document that is read."""

Size = Literal["small", "medium", "large"]


class OpenApiSettings(FrozenModel):
    """Settings of an environment from an OpenAPI document."""

    spec: SourcePath
    """The document, OpenAPI 3.0 or 3.1, JSON or YAML, in one file."""
    name: str | None = None
    """Name of the environment; the file's name if left out."""
    domain: str = ""
    """Domain path, for example "commerce/retail"."""
    policy: str = ""
    """Rules that the agent must obey, markdown."""
    states: dict[Size, NonNegativeInt] = Field(default={"small": 2, "medium": 1})
    """How many initial states of each size are made."""
    include: list[str] | None = None
    """Only these operations, by operationId, tool name or "GET /path"; all if left out."""
    exclude: list[str] = []
    """Operations to leave out, by the same names."""
    user: list[str] | None = None
    """Tools that only the user calls, on their own device, by tool name; if left out, those of which
    `x-trajsmith-actor` or the description says so."""


def build_environment_name(settings: OpenApiSettings) -> str:
    """Return the environment's name: from the settings, or the file's name."""
    name = re.sub(r"[^0-9a-zA-Z]+", "_", settings.name or settings.spec.stem).strip("_").lower()
    return name or "openapi"


def build_payload(settings: OpenApiSettings) -> JsonObject:
    """Return everything that the program needs, as plain JSON. The document is read as text.

    Raises:
        InputError: There is no such file, or it is no text.
    """
    try:
        if settings.spec.stat().st_size > MAX_BYTES:
            raise InputError(
                f"{settings.spec}: larger than {MAX_BYTES // 1_000_000} MB; give a smaller OpenAPI document"
            )
        text = settings.spec.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(f"OpenAPI document not found: {settings.spec}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{settings.spec}: cannot be read: {error}") from error
    return {
        "file": settings.spec.name,
        "name": build_environment_name(settings),
        "text": text,
        "domain": settings.domain,
        "policy": settings.policy,
        "states": dict(settings.states),
        "include": settings.include,
        "exclude": settings.exclude,
        "user": settings.user,
    }

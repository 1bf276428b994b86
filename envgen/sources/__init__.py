"""What environments are made from: a domain's name, users' requests, documents, a described service, tables."""

from typing import Literal

from trajsmith.records import FrozenModel

MAX_SHOWN_PASSAGES = 12
"""Passages that a prompt shows at most, the first of a source."""


class ThemeSource(FrozenModel):
    """Theme of an environment, with the requests and passages that describe it."""

    kind: Literal["domain", "tasks", "documents", "openapi", "mcp", "tables", "environment"]
    name: str
    """Short name of the theme, for example "library loans"."""
    summary: str
    """One or two sentences of what it is about."""
    requests: tuple[str, ...] = ()
    """What users ask for, in their words."""
    passages: tuple[str, ...] = ()
    """Extracts of documents or of what a search found, each of bounded length."""
    origin: str
    """Name of the file or folder that it was read from, without a path."""
    licence: str | None
    """As the origin states it; None if it does not."""

"""OpenAPI documents, tables and SQL schemas as services beside those of tool lists."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trajsmith.envgen.generate.blueprint import Blueprint
from trajsmith.envgen.generate.from_openapi import read_openapi
from trajsmith.envgen.generate.from_sql import read_sql_schema
from trajsmith.envgen.generate.from_tables import read_tables
from trajsmith.envgen.generate.tool_lists import ToolList
from trajsmith.envgen.scale.services import Service, build_service
from trajsmith.records import FrozenModel, InputError

DOCUMENTS = (".yaml", ".yml", ".json")


class SourceRejection(FrozenModel):
    """Server or document of which no environment is made, with the reason."""

    server: str
    reason: str
    detail: str = ""


@dataclass
class DocumentSources:
    """Services, schemas and rejections of documents and tables."""

    services: list[Service] = field(default_factory=list)
    schemas: list[ToolList] = field(default_factory=list)
    """Of SQL without rows: they are read as tool lists are."""
    rejected: list[SourceRejection] = field(default_factory=list)


def read_documents(openapi: Sequence[Path], tables: Sequence[Path]) -> DocumentSources:
    """Read every document and every table; what cannot be used is rejected with its reason.

    Args:
        openapi: Documents, or directories of them.
        tables: CSV, JSON, JSON Lines, SQLite or `.sql` files, or directories of the first four.

    Raises:
        InputError: There is no such file.
    """
    sources = DocumentSources()
    for path in (*openapi, *tables):
        if not path.exists():
            raise InputError(f"no such file or directory: {path}")
    for path in openapi:
        inside = sorted(one for one in path.iterdir() if one.suffix in DOCUMENTS) if path.is_dir() else [path]
        for file in inside:
            _read(sources, file, read_openapi)
    for path in tables:
        if path.suffix == ".sql":
            try:
                sources.schemas.append(read_sql_schema(path))
            except InputError as error:
                _reject(sources, path, error)
        else:
            _read(sources, path, read_tables)
    return sources


def _read(sources: DocumentSources, path: Path, read: Callable[[Path], Blueprint]) -> None:
    try:
        sources.services.append(build_service(read(path)))
    except InputError as error:
        _reject(sources, path, error)


def _reject(sources: DocumentSources, path: Path, error: InputError) -> None:
    rejection = SourceRejection(server=path.name, reason="no usable document or table", detail=str(error)[:200])
    sources.rejected.append(rejection)

"""Resolve the parameters in a path to the records that they select."""

from dataclasses import dataclass

from trajsmith.environments.adapters.openapi.document_model import DocumentModel, RequestRefused, set_at_path
from trajsmith.environments.adapters.openapi.query_execution import find_values, is_same_value
from trajsmith.environments.adapters.openapi.relations import ParentRelation
from trajsmith.environments.adapters.openapi.store import (
    ResourceStore,
    build_reference,
    find_leaves,
    find_record_key,
    to_key,
)
from trajsmith.environments.adapters.openapi.value_generation import Path
from trajsmith.records import JsonObject

SINGLETON_KEY = "current"
"""Key of the record of a table that has only one."""


@dataclass(frozen=True)
class PathScope:
    """Path parameter that fixes a property of the records."""

    parameter: str
    path: Path


@dataclass(frozen=True)
class PathLevel:
    """One parent record on the path."""

    table: str
    parameter: str | None
    """Path parameter that has its identity; None for what is keyed by its parent, or the only one."""
    relation: ParentRelation | None
    """How it stands below the level before; None for the first."""
    scopes: tuple[PathScope, ...] = ()
    """What its properties must be."""


@dataclass(frozen=True)
class ResourcePath:
    """All parameters of a path."""

    levels: tuple[PathLevel, ...]
    scopes: tuple[PathScope, ...] = ()
    """What the properties of the records below the last level must be."""

    def records(
        self, model: DocumentModel, store: ResourceStore, arguments: JsonObject
    ) -> list[tuple[str, JsonObject]]:
        """Return key and record of every level.

        Raises:
            Refused: One does not exist, or does not stand below the one before.
        """
        records: list[tuple[str, JsonObject]] = []
        for level in self.levels:
            if level.parameter is not None:
                key = to_key(arguments[level.parameter])
            else:
                key = records[-1][0] if records else SINGLETON_KEY
            record = store.get(level.table, key)
            before = records[-1] if records else None
            known = record is not None and is_in_scope(level.scopes, store, record, arguments)
            if record is None or not known or not (before is None or is_below(level.relation, before, (key, record))):
                noun = model.tables[level.table].noun
                raise RequestRefused(404, f"{noun} not found: {key}" if level.parameter else f"{noun} not found")
            records.append((key, record))
        return records

    def apply_scopes(self, record: JsonObject, arguments: JsonObject) -> JsonObject:
        """Return a new record with the properties that the scopes fix."""
        for scope in self.scopes:
            if "*" not in scope.path and not any(True for _ in find_leaves(record, scope.path)):
                record = set_at_path(record, scope.path, arguments[scope.parameter])
        return record


def is_in_scope(scopes: tuple[PathScope, ...], store: ResourceStore, record: JsonObject, arguments: JsonObject) -> bool:
    """Return True if a record's properties match the scopes."""
    for scope in scopes:
        wanted = arguments[scope.parameter]
        if not any(is_same_value(value, wanted) for value in find_values(store, record, scope.path)):
            return False
    return True


def is_below(relation: ParentRelation | None, parent: tuple[str, JsonObject], child: tuple[str, JsonObject]) -> bool:
    """Return True if one record belongs to another."""
    if relation is None:
        return True
    if relation.kind == "keyed":
        return parent[0] == child[0]
    if relation.kind == "owned":
        return any(find_record_key(value) == parent[0] for value in find_leaves(child[1], relation.path))
    return any(find_record_key(value) == child[0] for value in find_leaves(parent[1], relation.path))


def put_below(
    model: DocumentModel,
    store: ResourceStore,
    relation: ParentRelation,
    parent: tuple[str, str],
    table: str,
    record: JsonObject,
) -> JsonObject:
    """Return a new record with the reference to its parent.

    Args:
        parent: Table and key of what it stands below.

    Raises:
        Refused: It already says something else.
    """
    if relation.kind != "owned":
        return record
    present = [value for value in find_leaves(record, relation.path) if value is not None]
    if present:
        if find_record_key(present[0]) != parent[1]:
            raise RequestRefused(400, f"{'.'.join(relation.path)} is not {parent[1]}")
        return record
    reference = next(candidate for candidate in model.tables[table].references if candidate.path == relation.path)
    value = (
        build_reference(*parent)
        if reference.embedded
        else model.identity_value(store, model.tables[parent[0]], parent[1])
    )
    return set_at_path(record, relation.path, parent[1] if relation.path[0].startswith("@") else value)

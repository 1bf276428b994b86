"""From the parameters in a path to the records that they pick."""

from dataclasses import dataclass

from environments.openapi.model import Model, Refused, put_at
from environments.openapi.relations import Relation
from environments.openapi.selecting import same, values_at
from environments.openapi.store import Store, key_of, leaves, reference_to
from environments.openapi.tables import REF
from environments.openapi.values import Path
from trajectory import JsonObject, JsonValue

ONLY = "current"
"""Key of the record of a table that has only one."""


@dataclass(frozen=True)
class Scope:
    """A path parameter that says what a property of the records is."""

    parameter: str
    path: Path


@dataclass(frozen=True)
class Level:
    """One record on the way."""

    table: str
    parameter: str | None
    """Path parameter that has its identity; None for what is keyed by its parent, or the only one."""
    relation: Relation | None
    """How it stands below the level before; None for the first."""
    scopes: tuple[Scope, ...] = ()
    """What its properties must be."""


@dataclass(frozen=True)
class Chain:
    """All parameters of a path."""

    levels: tuple[Level, ...]
    scopes: tuple[Scope, ...] = ()
    """What the properties of the records below the last level must be."""

    def records(self, model: Model, store: Store, arguments: JsonObject) -> list[tuple[str, JsonObject]]:
        """Key and record of every level.

        Raises:
            Refused: One does not exist, or does not stand below the one before.
        """
        found: list[tuple[str, JsonObject]] = []
        for level in self.levels:
            if level.parameter is not None:
                key = key_of(arguments[level.parameter])
            else:
                key = found[-1][0] if found else ONLY
            record = store.get(level.table, key)
            before = found[-1] if found else None
            known = record is not None and in_scope(level.scopes, store, record, arguments)
            if record is None or not known or not (before is None or is_below(level.relation, before, (key, record))):
                noun = model.tables[level.table].noun
                raise Refused(404, f"{noun} not found: {key}" if level.parameter else f"{noun} not found")
            found.append((key, record))
        return found

    def scoped(self, record: JsonObject, arguments: JsonObject) -> JsonObject:
        """A new record with the properties that the scopes say."""
        for scope in self.scopes:
            if "*" not in scope.path and not any(True for _ in leaves(record, scope.path)):
                record = put_at(record, scope.path, arguments[scope.parameter])
        return record


def in_scope(scopes: tuple[Scope, ...], store: Store, record: JsonObject, arguments: JsonObject) -> bool:
    """True if a record's properties are what the scopes say."""
    for scope in scopes:
        wanted = arguments[scope.parameter]
        if not any(same(value, wanted) for value in values_at(store, record, scope.path)):
            return False
    return True


def is_below(relation: Relation | None, parent: tuple[str, JsonObject], child: tuple[str, JsonObject]) -> bool:
    """True if one record stands below another."""
    if relation is None:
        return True
    if relation.kind == "keyed":
        return parent[0] == child[0]
    if relation.kind == "owned":
        return any(_key(value) == parent[0] for value in leaves(child[1], relation.path))
    return any(_key(value) == child[0] for value in leaves(parent[1], relation.path))


def put_below(
    model: Model, store: Store, relation: Relation, parent: tuple[str, str], table: str, record: JsonObject
) -> JsonObject:
    """A new record that says what it stands below.

    Args:
        parent: Table and key of what it stands below.

    Raises:
        Refused: It already says something else.
    """
    if relation.kind != "owned":
        return record
    present = [value for value in leaves(record, relation.path) if value is not None]
    if present:
        if _key(present[0]) != parent[1]:
            raise Refused(400, f"{'.'.join(relation.path)} is not {parent[1]}")
        return record
    reference = next(found for found in model.tables[table].references if found.path == relation.path)
    value = (
        reference_to(*parent) if reference.embedded else model.identity_value(store, model.tables[parent[0]], parent[1])
    )
    return put_at(record, relation.path, parent[1] if relation.path[0].startswith("@") else value)


def _key(value: JsonValue) -> str | None:
    if isinstance(value, dict):
        place = value.get(REF)
        return place.partition("/")[2] if isinstance(place, str) else None
    return None if value is None else key_of(value)

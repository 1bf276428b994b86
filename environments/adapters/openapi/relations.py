"""Find which records refer to which others: foreign keys, embedded records, parents in paths."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from trajsmith.environments.adapters.openapi.naming import normalize_name, normalize_words, to_singular, to_snake_case
from trajsmith.environments.adapters.openapi.payloads import overlaps_known
from trajsmith.environments.adapters.openapi.resource_collections import PathStep, ResourceCollection
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.adapters.openapi.tables import (
    GENERATED_ID,
    RecordReference,
    ResourceTable,
    TableDerivation,
)
from trajsmith.environments.adapters.openapi.value_generation import Path
from trajsmith.records import JsonObject

_DEPTH = 4
"""Objects inside objects in which references are looked for."""
_SUFFIX = re.compile(r"_(ids?|uuids?|keys?|refs?|gid)$")
_PEOPLE = normalize_words(
    "owner author assignee creator reporter manager sender recipient member user customer approver reviewer requester "
    "created_by updated_by assigned_to follower participant attendee organizer host seller buyer"
)
_CROWDS = ("user", "member", "person", "employee", "customer", "account", "contact", "agent")
_SAID = re.compile(r"\b(?:id|identifier|key)s? (?:of|for) (?:the |an? |its |this )?(\w+)", re.IGNORECASE)


@dataclass(frozen=True)
class ParentRelation:
    """Reference of a record to its parent.

    Attributes:
        kind: "owned" - the child holds the parent's key at `path`; "held" - the parent holds the children's keys in the
            list at `path`; "keyed" - both have the same key.
    """

    kind: Literal["owned", "held", "keyed"]
    path: Path = ()


class ReferenceFinder:
    """Finder of the references of all tables."""

    def __init__(self, tables: TableDerivation, dialect: Dialect) -> None:
        self._tables = tables
        self._dialect = dialect
        self._nouns: dict[str, ResourceTable] = {}
        self._components: dict[str, ResourceTable] = {}
        for table in tables.all.values():
            if not table.fixed:
                for noun in (
                    table.noun,
                    to_singular(table.name),
                    *(to_singular(to_snake_case(name)) for name in table.components),
                ):
                    self._nouns.setdefault(noun, table)
                for name in table.components:
                    self._components.setdefault(name, table)
        for table in tables.all.values():
            table.references = list(self._in_record(table))

    def find_body_references(self, schema: JsonObject, dialect: Dialect, table: ResourceTable) -> list[RecordReference]:
        """Return references in the schema of a request's record.

        What a record shows as another record, the request may name by its identity alone.
        """
        references = list(self._walk(schema, (), dialect, table, frozenset()))
        known = {reference.path for reference in references}
        for reference in table.references:
            if reference.embedded and reference.path not in known:
                place = find_schema_at(dialect, schema, reference.path) or {}
                target = self._tables.all[reference.table]
                if target.identity in dialect.properties(place):
                    references.append(reference)
                    references = [other for other in references if other.path[:-1] != reference.path]
                elif place.get("type") in ("string", "integer") and _has_same_type(place, target.identity_schema):
                    references.append(RecordReference(reference.path, reference.table, embedded=False))
        return references

    def _in_record(self, table: ResourceTable) -> Iterator[RecordReference]:
        return self._walk(table.schema, (), self._dialect, table, frozenset())

    def _walk(
        self, schema: JsonObject, at: Path, dialect: Dialect, table: ResourceTable, seen: frozenset[str]
    ) -> Iterator[RecordReference]:
        for name, child in dialect.properties(schema).items():
            if (*at, name) != (table.identity,):
                yield from self._at(child, (*at, name), name, dialect, table, seen)
        looked = dialect.look(schema)
        for branch in (*looked.get("oneOf", ()), *looked.get("anyOf", ())) if len(at) < _DEPTH else ():
            yield from self._walk(branch, at, dialect, table, seen)

    def _at(
        self, schema: JsonObject, at: Path, name: str, dialect: Dialect, table: ResourceTable, seen: frozenset[str]
    ) -> Iterator[RecordReference]:
        component = _find_component(schema, dialect)
        looked = _strip_null(schema, dialect)
        if "properties" in looked or "oneOf" in looked:
            target = self._components.get(component or "") or self._embedded(name, looked, dialect)
            if target is not None:
                yield RecordReference(at, target.name, embedded=True)
            elif len(at) < _DEPTH and component not in seen:
                more = seen | {component} if component else seen
                yield from self._walk(looked, at, dialect, table, more)
        elif isinstance(looked.get("items"), dict) and len(at) < _DEPTH:
            yield from self._at(looked["items"], (*at, "*"), name, dialect, table, seen)
        elif "enum" not in looked and "const" not in looked:
            target = self._find_named_table(name, looked, schema, table)
            if target is not None and _has_same_type(looked, target.identity_schema):
                yield RecordReference(at, target.name, embedded=False)

    def _embedded(self, name: str, schema: JsonObject, dialect: Dialect) -> ResourceTable | None:
        table = self._nouns.get(to_singular(to_snake_case(name)))
        if table is None or table.identity == GENERATED_ID or table.identity not in dialect.properties(schema):
            return None
        return table if overlaps_known(dialect, schema, self._dialect.properties(table.schema)) else None

    def _find_named_table(
        self, name: str, schema: JsonObject, around: JsonObject, table: ResourceTable
    ) -> ResourceTable | None:
        """Return the table that a property's name or description refers to."""
        spelled = to_snake_case(name)
        base = _SUFFIX.sub("", spelled)
        for noun, target in self._nouns.items():
            if target.identity != GENERATED_ID and spelled.endswith(f"{noun}_{to_snake_case(target.identity)}"):
                return target
        if base == spelled:
            sure = schema.get("type") in ("integer", "number") or schema.get("format") == "uuid"
            if not sure:
                return None
        if base in ("parent", "root", "previous", "next", "reply_to", f"parent_{table.noun}"):
            return table
        words = base.split("_")
        for start in range(len(words)):
            named_table = self._nouns.get(to_singular("_".join(words[start:])))
            if named_table is not None and (base != spelled or start == 0):
                return named_table
        if base in _PEOPLE or words[0] in _PEOPLE:
            return next((self._nouns[crowd] for crowd in _CROWDS if crowd in self._nouns), None)
        match = _SAID.search(str(around.get("description") or schema.get("description") or ""))
        return self._nouns.get(to_singular(to_snake_case(match[1]))) if (match and base != spelled) or match else None

    # What stands below what

    def below(
        self, child: ResourceTable, parent: ResourceTable, family: ResourceCollection, step: PathStep
    ) -> ParentRelation:
        """Return how the records of a collection refer to their parent."""
        if child.fixed:
            return ParentRelation("keyed")
        owning = [
            reference for reference in child.references if reference.table == parent.name and "*" not in reference.path
        ]
        if owning:
            return ParentRelation("owned", _find_closest(owning, step.parameter, parent.noun).path)
        held = [
            reference
            for reference in parent.references
            if reference.table == child.name and reference.path[-1] == "*" and is_alike(reference.path[-2], family.noun)
        ]
        if held:
            return ParentRelation("held", held[0].path)
        if not child.has_root:
            return ParentRelation("owned", (f"@{parent.name}",))
        return ParentRelation("held", (f"@{family.noun}", "*"))

    def find_by_parameter(self, table: ResourceTable, step: PathStep) -> tuple[ResourceTable, ParentRelation] | None:
        """Return the table that a parameter without a collection of its own selects from, if records show it."""
        wanted = normalize_name(step.parameter)
        for reference in table.references:
            target = self._tables.all[reference.table]
            names = {normalize_name(target.identity), normalize_name(target.noun), normalize_name(target.noun) + "id"}
            if "*" not in reference.path and (wanted in names or wanted == normalize_name(reference.path[-1])):
                return target, ParentRelation("owned", reference.path)
        return None


def find_schema_at(dialect: Dialect, schema: JsonObject, path: Path) -> JsonObject | None:
    """Return the schema at a path, or None if the schema has no such path."""
    looked = _strip_null(schema, dialect)
    for part in path:
        inner = looked.get("items") if part == "*" else dialect.all_properties(looked).get(part)
        if not isinstance(inner, dict):
            return None
        looked = _strip_null(inner, dialect)
    return looked


def _find_component(schema: JsonObject, dialect: Dialect) -> str | None:
    """Name of the definition that a schema is, or that it may be beside null."""
    for branch in (schema, *schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        name = dialect.component(branch)
        if name is not None:
            return name
    return None


def _strip_null(schema: JsonObject, dialect: Dialect) -> JsonObject:
    """The schema without the choice to be null."""
    looked = dialect.look(schema)
    for key in ("anyOf", "oneOf"):
        branches = [branch for branch in looked.get(key, ()) if branch.get("type") != "null"]
        if len(branches) == 1:
            return _strip_null(branches[0], dialect)
    if len(looked.get("allOf", ())) == 1:
        return _strip_null(looked["allOf"][0], dialect)
    return looked


def _has_same_type(schema: JsonObject, identity: JsonObject) -> bool:
    mine, other = schema.get("type"), identity.get("type")
    kinds = set(mine) - {"null"} if isinstance(mine, list) else {mine}
    numbers = {"integer", "number"}
    return other in kinds or (other in numbers and bool(kinds & numbers)) or other is None


def _find_closest(references: Iterable[RecordReference], parameter: str, noun: str) -> RecordReference:
    wanted = (normalize_name(parameter), normalize_name(noun) + "id", normalize_name(noun))
    candidates = list(references)
    for name in wanted:
        for reference in candidates:
            if normalize_name(reference.path[-1]) == name:
                return reference
    return candidates[0]


def is_alike(name: str, noun: str) -> bool:
    mine = to_singular(_SUFFIX.sub("", to_snake_case(name)))
    return mine == to_singular(noun) or to_singular(noun).endswith(mine) or mine.endswith(to_singular(noun))

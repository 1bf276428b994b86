"""Which records mean which others: foreign keys, embedded records, and what stands below what in a path."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from environments.openapi.dialect import Dialect
from environments.openapi.families import Family, Step
from environments.openapi.payloads import overlap
from environments.openapi.tables import ID, Reference, Table, Tables
from environments.openapi.values import Path
from environments.openapi.words import kinds_of, plain, singular, snake
from trajectory import JsonObject

_DEPTH = 4
"""Objects inside objects in which references are looked for."""
_SUFFIX = re.compile(r"_(ids?|uuids?|keys?|refs?|gid)$")
_PEOPLE = kinds_of(
    "owner author assignee creator reporter manager sender recipient member user customer approver reviewer requester "
    "created_by updated_by assigned_to follower participant attendee organizer host seller buyer"
)
_CROWDS = ("user", "member", "person", "employee", "customer", "account", "contact", "agent")
_SAID = re.compile(r"\b(?:id|identifier|key)s? (?:of|for) (?:the |an? |its |this )?(\w+)", re.IGNORECASE)


@dataclass(frozen=True)
class Relation:
    """How a record says what it stands below.

    Attributes:
        kind: "owned" - the child holds the parent's key at `path`; "held" - the parent holds the children's keys in the
            list at `path`; "keyed" - both have the same key.
    """

    kind: Literal["owned", "held", "keyed"]
    path: Path = ()


class Relations:
    """Finds the references of all tables, once all tables are there."""

    def __init__(self, tables: Tables, dialect: Dialect) -> None:
        self._tables = tables
        self._dialect = dialect
        self._nouns: dict[str, Table] = {}
        self._components: dict[str, Table] = {}
        for table in tables.all.values():
            if not table.fixed:
                for noun in (table.noun, singular(table.name), *(singular(snake(name)) for name in table.components)):
                    self._nouns.setdefault(noun, table)
                for name in table.components:
                    self._components.setdefault(name, table)
        for table in tables.all.values():
            table.references = list(self._in_record(table))

    def of_body(self, schema: JsonObject, dialect: Dialect, table: Table) -> list[Reference]:
        """References in the schema of a request's record.

        What a record shows as another record, the request may name by its identity alone.
        """
        found = list(self._walk(schema, (), dialect, table, frozenset()))
        known = {reference.path for reference in found}
        for reference in table.references:
            if reference.embedded and reference.path not in known:
                place = schema_at(dialect, schema, reference.path) or {}
                target = self._tables.all[reference.table]
                if target.identity in dialect.properties(place):
                    found.append(reference)
                    found = [other for other in found if other.path[:-1] != reference.path]
                elif place.get("type") in ("string", "integer") and _same_type(place, target.identity_schema):
                    found.append(Reference(reference.path, reference.table, embedded=False))
        return found

    def _in_record(self, table: Table) -> Iterator[Reference]:
        return self._walk(table.schema, (), self._dialect, table, frozenset())

    def _walk(
        self, schema: JsonObject, at: Path, dialect: Dialect, table: Table, seen: frozenset[str]
    ) -> Iterator[Reference]:
        for name, child in dialect.properties(schema).items():
            if (*at, name) != (table.identity,):
                yield from self._at(child, (*at, name), name, dialect, table, seen)
        looked = dialect.look(schema)
        for branch in (*looked.get("oneOf", ()), *looked.get("anyOf", ())) if len(at) < _DEPTH else ():
            yield from self._walk(branch, at, dialect, table, seen)

    def _at(
        self, schema: JsonObject, at: Path, name: str, dialect: Dialect, table: Table, seen: frozenset[str]
    ) -> Iterator[Reference]:
        component = _component(schema, dialect)
        looked = _bare(schema, dialect)
        if "properties" in looked or "oneOf" in looked:
            target = self._components.get(component or "") or self._embedded(name, looked, dialect)
            if target is not None:
                yield Reference(at, target.name, embedded=True)
            elif len(at) < _DEPTH and component not in seen:
                more = seen | {component} if component else seen
                yield from self._walk(looked, at, dialect, table, more)
        elif isinstance(looked.get("items"), dict) and len(at) < _DEPTH:
            yield from self._at(looked["items"], (*at, "*"), name, dialect, table, seen)
        elif "enum" not in looked and "const" not in looked:
            target = self._named(name, looked, schema, table)
            if target is not None and _same_type(looked, target.identity_schema):
                yield Reference(at, target.name, embedded=False)

    def _embedded(self, name: str, schema: JsonObject, dialect: Dialect) -> Table | None:
        table = self._nouns.get(singular(snake(name)))
        if table is None or table.identity == ID or table.identity not in dialect.properties(schema):
            return None
        return table if overlap(dialect, schema, self._dialect.properties(table.schema)) else None

    def _named(self, name: str, schema: JsonObject, around: JsonObject, table: Table) -> Table | None:
        """The table that a property's name or description speaks of."""
        spelled = snake(name)
        base = _SUFFIX.sub("", spelled)
        for noun, target in self._nouns.items():
            if target.identity != ID and spelled.endswith(f"{noun}_{snake(target.identity)}"):
                return target
        if base == spelled:
            sure = schema.get("type") in ("integer", "number") or schema.get("format") == "uuid"
            if not sure:
                return None
        if base in ("parent", "root", "previous", "next", "reply_to", f"parent_{table.noun}"):
            return table
        words = base.split("_")
        for start in range(len(words)):
            found = self._nouns.get(singular("_".join(words[start:])))
            if found is not None and (base != spelled or start == 0):
                return found
        if base in _PEOPLE or words[0] in _PEOPLE:
            return next((self._nouns[crowd] for crowd in _CROWDS if crowd in self._nouns), None)
        said = _SAID.search(str(around.get("description") or schema.get("description") or ""))
        return self._nouns.get(singular(snake(said[1]))) if (said and base != spelled) or said else None

    # What stands below what

    def below(self, child: Table, parent: Table, family: Family, step: Step) -> Relation:
        """How records of a collection say which parent's they are."""
        if child.fixed:
            return Relation("keyed")
        owning = [
            reference for reference in child.references if reference.table == parent.name and "*" not in reference.path
        ]
        if owning:
            return Relation("owned", _closest(owning, step.parameter, parent.noun).path)
        held = [
            reference
            for reference in parent.references
            if reference.table == child.name and reference.path[-1] == "*" and alike(reference.path[-2], family.noun)
        ]
        if held:
            return Relation("held", held[0].path)
        if not child.has_root:
            return Relation("owned", (f"@{parent.name}",))
        return Relation("held", (f"@{family.noun}", "*"))

    def by_parameter(self, table: Table, step: Step) -> tuple[Table, Relation] | None:
        """The table that a parameter without a collection of its own picks from, where the records say so."""
        wanted = plain(step.parameter)
        for reference in table.references:
            target = self._tables.all[reference.table]
            names = {plain(target.identity), plain(target.noun), plain(target.noun) + "id"}
            if "*" not in reference.path and (wanted in names or wanted == plain(reference.path[-1])):
                return target, Relation("owned", reference.path)
        return None


def schema_at(dialect: Dialect, schema: JsonObject, path: Path) -> JsonObject | None:
    """The schema of a place, or None if the schema has no such place."""
    looked = _bare(schema, dialect)
    for part in path:
        inner = looked.get("items") if part == "*" else dialect.all_properties(looked).get(part)
        if not isinstance(inner, dict):
            return None
        looked = _bare(inner, dialect)
    return looked


def _component(schema: JsonObject, dialect: Dialect) -> str | None:
    """Name of the definition that a schema is, or that it may be beside null."""
    for branch in (schema, *schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        name = dialect.component(branch)
        if name is not None:
            return name
    return None


def _bare(schema: JsonObject, dialect: Dialect) -> JsonObject:
    """The schema without the choice to be null."""
    looked = dialect.look(schema)
    for key in ("anyOf", "oneOf"):
        branches = [branch for branch in looked.get(key, ()) if branch.get("type") != "null"]
        if len(branches) == 1:
            return _bare(branches[0], dialect)
    if len(looked.get("allOf", ())) == 1:
        return _bare(looked["allOf"][0], dialect)
    return looked


def _same_type(schema: JsonObject, identity: JsonObject) -> bool:
    mine, other = schema.get("type"), identity.get("type")
    kinds = set(mine) - {"null"} if isinstance(mine, list) else {mine}
    numbers = {"integer", "number"}
    return other in kinds or (other in numbers and bool(kinds & numbers)) or other is None


def _closest(references: Iterable[Reference], parameter: str, noun: str) -> Reference:
    wanted = (plain(parameter), plain(noun) + "id", plain(noun))
    found = list(references)
    for name in wanted:
        for reference in found:
            if plain(reference.path[-1]) == name:
                return reference
    return found[0]


def alike(name: str, noun: str) -> bool:
    mine = singular(_SUFFIX.sub("", snake(name)))
    return mine == singular(noun) or singular(noun).endswith(mine) or mine.endswith(singular(noun))

"""Derive the tables of the state: shared collections, record schemas, identities."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from trajsmith.environments.adapters.openapi.naming import normalize_name, normalize_words, to_singular, to_snake_case
from trajsmith.environments.adapters.openapi.operations import Operation
from trajsmith.environments.adapters.openapi.payloads import find_list, find_record, overlaps_known
from trajsmith.environments.adapters.openapi.resource_collections import ResourceCollection
from trajsmith.environments.adapters.openapi.schema_dialect import Dialect
from trajsmith.environments.adapters.openapi.value_generation import Path
from trajsmith.records import JsonObject, JsonValue

RESERVED = ("now", "counters", "seed")
"""Parts of a state that are no tables."""
GENERATED_ID = "@id"
"""Hidden property that identifies a record whose schema has none; names with "@" are never shown."""
REFERENCE_MARK = "@ref"
"""Only key of an object that stands for another record: {"@ref": "customers/7"}."""

_APART = 1_000
"""Between the integer identities of two tables."""
_IDENTITIES = ("id", "uuid", "uid", "guid", "key", "slug", "code", "number", "username", "login", "email", "name")
_COMPUTED = normalize_words(
    "stats statistics summary count counts inventory health healthz status ping version metrics analytics report "
    "reports search suggestions usage login logout token auth authenticate recommendations estimates"
)


@dataclass(frozen=True)
class RecordReference:
    """Place in records that refers to another record."""

    path: Path
    table: str
    embedded: bool
    """True if the other record itself is shown there, not only its id."""


@dataclass
class ResourceTable:
    """Table of records of one kind."""

    name: str
    noun: str
    """What one record is, in the singular."""
    schema: JsonObject
    """What a record shows, at most, over all answers."""
    identity: str
    identity_schema: JsonObject
    families: list[ResourceCollection]
    components: set[str] = field(default_factory=set)
    references: list[RecordReference] = field(default_factory=list)
    scopes: dict[str, list[JsonValue]] = field(default_factory=dict)
    """Properties that path parameters without a table ask for, and their possible values; mostly hidden ones."""
    examples: list[JsonObject] = field(default_factory=list)
    """Whole records that the document gives as examples."""
    start: int = 0
    """What integer identities begin after: other tables have other numbers, so that one does not look like another."""
    fixed: bool = False
    """True if it is one record per parent (or one at all), made with the state."""

    @property
    def has_root(self) -> bool:
        return any(family.is_root for family in self.families)


class TableDerivation:
    """Derivation of a document's tables."""

    def __init__(self, families: list[ResourceCollection], dialect: Dialect, requests: Dialect) -> None:
        self.all: dict[str, ResourceTable] = {}
        self.of_family: dict[tuple[str, ...], ResourceTable] = {}
        self.reasons: dict[tuple[str, ...], str] = {}
        """Why a collection has no table."""
        self._dialect = dialect
        self._requests = requests
        self.views: dict[tuple[str, ...], ResourceTable] = {}
        """Collections that show some records of a table, and only their parameters can say which."""
        self.parts: dict[tuple[str, ...], tuple[ResourceTable, str]] = {}
        """Paths of one property of a record: the table and the property."""
        waiting = [family for family in families if not self._is_listed_only(family)]
        for family in (*waiting, *(family for family in families if family not in waiting)):
            self._place(family)

    def discard(self, name: str, reason: str) -> None:
        """Remove a table, with the reason for whoever asks for its collections."""
        table = self.all.pop(name, None)
        for places in (self.of_family, self.views):
            for prefix in [prefix for prefix, owner in places.items() if owner is table]:
                del places[prefix]
                self.reasons[prefix] = reason
        for prefix in [prefix for prefix, (owner, _) in self.parts.items() if owner is table]:
            del self.parts[prefix]
            self.reasons[prefix] = reason

    def _is_listed_only(self, family: ResourceCollection) -> bool:
        return family.has == {"get"} and not family.single

    def _place(self, family: ResourceCollection) -> None:
        reason = self._unfit(family)
        if reason:
            self.reasons[family.prefix] = reason
            return
        if self._is_view(family) or self._is_part(family):
            return
        table = self._known(family)
        if table is None:
            table = self._new(family)
            self.all[table.name] = table
        else:
            self._join(table, family)
        self.of_family[family.prefix] = table
        table.components.update(filter(None, (self._dialect.component(payload.schema) for payload in family.payloads)))
        table.examples.extend(self._examples(family, table))

    def _is_view(self, family: ResourceCollection) -> bool:
        if not self._is_listed_only(family) or not family.is_root:
            return False
        payload = family.payloads[0]
        component = self._dialect.component(payload.schema)
        base = self.of_family.get(family.prefix[:-1])
        for table in self.all.values():
            if table.fixed or to_singular(family.noun) == table.noun:
                continue
            alike = overlaps_known(self._dialect, payload.schema, self._dialect.properties(table.schema))
            if (component is not None and component in table.components) or (table is base and alike):
                self.views[family.prefix] = table
                return True
        return False

    def _is_part(self, family: ResourceCollection) -> bool:
        parent = self.of_family.get(family.steps[-1].prefix) if family.steps else None
        if not family.single or parent is None or family.prefix[:-1] != (*family.steps[-1].prefix, "{}"):
            return False
        for name, schema in self._dialect.properties(parent.schema).items():
            shown = self._dialect.properties(schema)
            if (
                normalize_name(name) == normalize_name(family.noun)
                and shown
                and overlaps_known(self._dialect, family.payloads[0].schema, shown)
            ):
                self.parts[family.prefix] = parent, name
                return True
        return False

    def _unfit(self, family: ResourceCollection) -> str:
        if not family.payloads:
            return "no answer shows a record"
        if family.single and normalize_name(family.noun) in _COMPUTED and not family.has & {"put", "patch"}:
            return f"{family.noun} would have to be computed, and nothing says how"
        if not any(self._dialect.properties(payload.schema) for payload in family.payloads) and family.single:
            return "the answer has no declared properties"
        return ""

    def _known(self, family: ResourceCollection) -> ResourceTable | None:
        """Return the table whose records this collection shows, too."""
        if family.single:
            return None
        payload = family.payloads[0]
        component = self._dialect.component(payload.schema)
        for table in self.all.values():
            if table.fixed or (family.item and not self._same_identity(table, family)):
                continue
            same = component is not None and component in table.components
            alike = same or overlaps_known(self._dialect, payload.schema, self._dialect.properties(table.schema))
            if alike and to_singular(family.noun) == table.noun:
                return table
            if same and not family.is_root:
                return table
        return None

    def _same_identity(self, table: ResourceTable, family: ResourceCollection) -> bool:
        identity, _ = self._identity(family, self._union(family))
        return identity == table.identity

    def _new(self, family: ResourceCollection) -> ResourceTable:
        schema = self._union(family)
        identity, identity_schema = self._identity(family, schema)
        identity_schema = {
            **self._dialect.look(identity_schema),
            **{k: v for k, v in identity_schema.items() if k != "$ref"},
        }
        name = to_snake_case(family.noun) or "items"
        parents = [part for part in family.prefix[:-1] if part != "{}"]
        while name in self.all or name in RESERVED:
            name = f"{to_snake_case(parents.pop())}_{name}" if parents else f"{name}_records"
        noun = to_singular(to_snake_case(family.noun))
        start = _APART * sum(not table.fixed for table in self.all.values())
        return ResourceTable(name, noun, schema, identity, identity_schema, [family], start=start, fixed=family.single)

    def _join(self, table: ResourceTable, family: ResourceCollection) -> None:
        table.families.append(family)
        merged = self._union(family)
        if "properties" in table.schema and "properties" in merged:
            table.schema = {
                **table.schema,
                "properties": {**merged["properties"], **table.schema["properties"]},
                "required": list(dict.fromkeys([*table.schema["required"], *merged["required"]])),
            }

    def _union(self, family: ResourceCollection) -> JsonObject:
        """Return the schema that holds everything the answers of a collection show."""
        first = family.payloads[0].schema
        if not self._dialect.properties(first):
            return first
        properties: JsonObject = {}
        required: dict[str, None] = {}
        for payload in family.payloads:
            for name, schema in self._dialect.properties(payload.schema).items():
                known = properties.get(name)
                richer = known is not None and not self._dialect.look(known) and self._dialect.look(schema)
                properties[name] = schema if known is None or richer else known
            required.update(dict.fromkeys(sorted(self._dialect.required(payload.schema))))
        return {"type": "object", "properties": properties, "required": [n for n in required if n in properties]}

    # Identity

    def _identity(self, family: ResourceCollection, schema: JsonObject) -> tuple[str, JsonObject]:
        """Return the property that identifies a record, and its schema."""
        if family.single:
            return GENERATED_ID, {"type": "string"}
        properties = self._dialect.all_properties(schema)
        parameter = self._parameter(family)
        if family.item is None or parameter is None:
            own = (*_IDENTITIES[:3], normalize_name(to_singular(family.noun)) + "id")
            name = next((name for name in properties if normalize_name(name) in own), None)
            return (name, properties[name]) if name else (GENERATED_ID, {"type": "string"})
        for name, sure in self._candidates(family, properties):
            if self._fits(properties[name], parameter, sure):
                return name, properties[name]
        return GENERATED_ID, parameter

    def _candidates(self, family: ResourceCollection, properties: dict[str, JsonObject]) -> Iterator[tuple[str, bool]]:
        """Properties that the item's parameter may mean, the most likely first; True where its name says so."""
        wanted = normalize_name(family.item or "")
        noun = normalize_name(to_singular(family.noun))
        by_name = {normalize_name(name): name for name in properties}
        for key in (wanted, wanted.removeprefix(noun), noun + wanted):
            if key in by_name:
                yield by_name[key], True
        if wanted.endswith("id") or wanted in (noun, *_IDENTITIES):
            for key in (*_IDENTITIES[:4], noun + "id", *_IDENTITIES[4:]):
                if key in by_name:
                    yield by_name[key], key == "id" and wanted.endswith("id")

    def _fits(self, schema: JsonObject, parameter: JsonObject, sure: bool) -> bool:
        mine, asked = self._dialect.look(schema).get("type"), parameter.get("type")
        if sure and asked == "string":  # everything in a path is a text
            return mine in ("string", "integer", "number")
        if not isinstance(mine, str) or not isinstance(asked, str):
            return mine in (None, "string", "integer", "number") or isinstance(mine, list)
        return mine == asked or {mine, asked} <= {"integer", "number"}

    def _parameter(self, family: ResourceCollection) -> JsonObject | None:
        for operation in family.on_item:
            for parameter in operation.parameters:
                if parameter.place == "path" and parameter.name == family.item:
                    return self._requests.look(parameter.schema) or {"type": "string"}
        return None

    # Examples

    def _examples(self, family: ResourceCollection, table: ResourceTable) -> Iterator[JsonObject]:
        for payload in family.payloads:
            looked = self._dialect.look(payload.schema)
            yield from (value for value in looked.get("examples", ()) if isinstance(value, dict))
        for operation in (*family.on_item, *family.on_list):
            for example in operation.answer.examples if operation.method != "delete" else ():
                yield from self._records_in(example, operation, family)

    def _records_in(self, example: JsonValue, operation: Operation, family: ResourceCollection) -> Iterator[JsonObject]:
        listed = None if operation in family.on_item else find_list(self._dialect, operation.answer.schema, family.noun)
        payload = listed or find_record(self._dialect, operation.answer.schema, family.noun)
        for name in payload.path if payload else ():
            example = example.get(name) if isinstance(example, dict) else None
        values = example if isinstance(example, list) else [example]
        yield from (value for value in values if isinstance(value, dict))

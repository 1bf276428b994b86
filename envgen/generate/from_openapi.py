"""OpenAPI documents as blueprints; resources, relations and what operations do come from `environments.openapi`."""

from pathlib import Path as FilePath

from envgen.generate.blueprint import Blueprint, Column, Entity, LeftOut, Operation, Source
from envgen.generate.columns import Columns
from envgen.generate.spelling import class_name, identifier, noun_of
from environments.openapi.building import Builder, Built
from environments.openapi.derive import Kept
from environments.openapi.reading import read_document
from environments.openapi.reads import Getting, Listing
from environments.openapi.references import Document
from environments.openapi.settings import OpenApiSettings, payload
from environments.openapi.tables import ID, Table
from environments.openapi.words import plain
from environments.openapi.writes import Creating, Deleting, Updating
from trajectory import InputError, JsonObject, hash_bytes

COLUMNS = 24
"""Columns of an entity; required ones come first."""


def read_openapi(path: FilePath) -> Blueprint:
    """Read a document.

    Raises:
        InputError: It is none, or nothing of it can be played.
    """
    given = payload(OpenApiSettings(spec=path))
    try:
        document = Document(read_document(given["text"], path.name), path.name)
        built = Builder(document).build(None, set())
    except RecursionError as error:
        raise InputError(f"{path}: nested too deeply") from error
    return _Reader(document, built, str(given["name"]), str(given["text"])).blueprint()


class _Reader:
    def __init__(self, document: Document, built: Built, name: str, text: str) -> None:
        self._document = document
        self._built = built
        self._name = name
        self._text = text
        self._columns = Columns(built.model.responses)
        self._left_out = [LeftOut(what=label, reason=reason) for label, reason in built.left_out.items()]
        self._names: dict[str, dict[str, str]] = {}
        """Names of columns by the properties that they are, by table."""
        self._keys: dict[str, str] = {}
        self._nouns: dict[str, str] = {}

    def blueprint(self) -> Blueprint:
        tables = {name: table for name, table in self._built.model.tables.items() if not table.fixed}
        nouns: set[str] = set()
        for name, table in tables.items():
            noun = identifier(table.noun, "item", nouns)
            nouns.add(noun)
            self._nouns[name] = noun
            self._keys[name] = (
                f"{noun}_id" if plain(table.identity) in ("id", "uuid", "guid", "@id") else identifier(table.identity)
            )
        entities = tuple(self._entity(table) for table in tables.values())
        known = {entity.table: entity for entity in entities}
        operations: list[Operation] = []
        for tool, kept in self._built.kept.items():
            made = self._operation(tool, kept, known)
            if isinstance(made, str):
                self._left_out.append(LeftOut(what=kept.operation.label, reason=made))
            else:
                operations.append(made)
        info = self._document.root.get("info")
        title = str(info.get("title") or self._name) if isinstance(info, dict) else self._name
        name = identifier(self._name, "api")
        return Blueprint(
            name=name, cls=class_name(name), title=title, domain=f"openapi/{name}",
            source=Source(
                kind="openapi", name=self._document.file, digest=hash_bytes(self._text.encode()), title=title,
                licence=_licence(info),
            ),
            entities=entities, operations=tuple(operations), left_out=tuple(self._left_out),
        )  # fmt: skip

    # Entities

    def _entity(self, table: Table) -> Entity:
        noun, key = self._nouns[table.name], self._keys[table.name]
        dialect = self._built.model.responses
        required, places = dialect.required(table.schema), {r.path: r.table for r in table.references}
        whole = table.identity != ID and dialect.look(table.identity_schema).get("type") == "integer"
        columns = [
            Column(
                name=key,
                kind="whole" if whole else "text",
                label=table.identity,
                description=f"Identifies the {noun.replace('_', ' ')}.",
            )
        ]
        names = self._names[table.name] = {table.identity: key}
        properties = dialect.all_properties(table.schema)
        for path, target in places.items():
            if path[0] not in properties and target in self._keys and len(path) <= 2:
                properties = {**properties, path[0]: {"type": "string"}}  # where the path alone says to whom it belongs
        for label in sorted(properties, key=lambda one: (one not in required, (one,) not in places)):
            if label in names:
                continue
            reason = self._add(table, label, properties[label], label in required, columns)
            if reason:
                self._left_out.append(LeftOut(what=f"{table.name}.{label}", reason=reason))
        prefix = "" if whole else f"{noun.replace('_', '')[:3].upper()}-"
        return Entity(
            table=identifier(table.name, "items"), noun=noun, cls=class_name(noun), key=key, columns=tuple(columns),
            start=table.start + 1000, prefix=prefix,
        )  # fmt: skip

    def _add(self, table: Table, label: str, schema: JsonObject, required: bool, columns: list[Column]) -> str:
        names = self._names[table.name]
        target = next((r.table for r in table.references if r.path in ((label,), (label, "*"))), None)
        many = any(r.path == (label, "*") for r in table.references)
        if len(columns) >= COLUMNS:
            return f"more than {COLUMNS} columns"
        if target is not None and target in self._keys:
            stem = noun_of(label.strip("@"))
            name = stem if stem.endswith("_id") else f"{stem}_id"
            name = identifier(f"{name}s" if many else name, taken=[column.name for column in columns])
            target_whole = self._whole(self._built.model.tables[target])
            if many and target_whole:
                return "a list of numbers that mean other records"
            columns.append(Column(
                name=name, kind="texts" if many else "whole" if target_whole else "text", label=label,
                description=f"The {self._nouns[target].replace('_', ' ')} it belongs to." if not many else "",
                required=required or label.startswith("@"), references=identifier(target, "items"),
            ))  # fmt: skip
            names[label] = name
            return ""
        if label.startswith("@"):
            return "hidden"
        name = identifier(label, taken=[column.name for column in columns])
        made = self._columns.column(label, schema, table.noun, required, name)
        if isinstance(made, str):
            return made
        columns.append(made)
        names[label] = name
        return ""

    def _whole(self, table: Table) -> bool:
        looked = self._built.model.responses.look(table.identity_schema)
        return table.identity != ID and looked.get("type") == "integer"

    # Operations

    def _operation(self, tool: str, kept: Kept, known: dict[str, Entity]) -> Operation | str:
        action = kept.action
        name = identifier(action.table.name, "items")
        entity = known.get(name)
        if entity is None:
            return "about something there is only one of"
        description = (
            " ".join(kept.operation.description.split("\n")[0].split())[:200].replace('"""', "").replace("\\", "/")
        )
        base = {"name": identifier(tool, "tool"), "table": name, "description": description}
        if isinstance(action, Getting):
            return Operation(action="get", **base)
        if isinstance(action, Deleting):
            return Operation(action="delete", **base)
        if isinstance(action, Listing):
            return self._listing(action, base, entity)
        if isinstance(action, Creating):
            return self._creating(action, base, entity)
        if isinstance(action, Updating):
            return self._updating(action, base, entity)
        return f"{kept.kind} of a part of a record"

    def _listing(self, action: Listing, base: dict[str, str], entity: Entity) -> Operation:
        names = self._names[action.table.name]
        fields, search = [], ""
        for test in action.query.conditions:
            if test.test == "equal" and test.paths and test.paths[0][0] in names and len(test.paths[0]) == 1:
                fields.append(names[test.paths[0][0]])
            elif test.test == "search":
                search = "query"
        needed = []
        if action.below is not None and action.below.kind == "owned" and action.below.path[0] in names:
            needed = [names[action.below.path[0]]]
        fields = [f for f in dict.fromkeys([*needed, *fields]) if f != entity.key and entity.column(f).kind != "moment"]
        return Operation(action="list", fields=tuple(fields), needed=tuple(needed), search=search, **base)

    def _creating(self, action: Creating, base: dict[str, str], entity: Entity) -> Operation | str:
        names = self._names[action.table.name]
        required = self._built.model.requests.required(action.inputs.record_schema or {})
        given = [label for label in action.inputs.fields.values() if label in names and names[label] != entity.key]
        if action.inputs.record_schema is not None:
            inner = self._built.model.requests.all_properties(action.inputs.record_schema)
            given = [label for label in inner if label in names and names[label] != entity.key]
        fields = [names[label] for label in given if not entity.column(names[label]).automatic]
        needed = [names[label] for label in given if label in required]
        if action.below is not None and action.below.kind == "owned" and action.below.path[0] in names:
            owner = names[action.below.path[0]]
            fields, needed = [owner, *fields], [owner, *needed]
        if not fields:
            return "nothing that it is sent is kept"
        return Operation(
            action="create", fields=tuple(dict.fromkeys(fields)), needed=tuple(dict.fromkeys(needed)), **base
        )

    def _updating(self, action: Updating, base: dict[str, str], entity: Entity) -> Operation | str:
        names = self._names[action.table.name]
        status = entity.status
        for label, value in action.sets.items():
            if status is not None and names.get(label) == status.name and value in status.choices:
                return Operation(action="move", sets=str(value), **base)
        if action.sets:
            return "what it changes is no status that records show"
        inner = self._built.model.requests.all_properties(action.inputs.record_schema or {})
        labels = [*inner, *action.inputs.fields.values()]
        fields = [names[label] for label in labels if label in names and names[label] != entity.key]
        fields = [name for name in dict.fromkeys(fields) if not entity.column(name).automatic]
        return Operation(action="update", fields=tuple(fields), **base) if fields else "nothing that it is sent is kept"


def _licence(info: object) -> str:
    licence = info.get("license") if isinstance(info, dict) else None
    return str(licence.get("name") or "") if isinstance(licence, dict) else ""

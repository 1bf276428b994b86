"""OpenAPI documents as blueprints; resources, relations and what operations do come from
`trajsmith.environments.adapters.openapi`.
"""

from pathlib import Path as FilePath

from trajsmith.envgen.generate.blueprint import (
    Blueprint,
    BlueprintSource,
    Entity,
    SkippedItem,
    TableColumn,
    ToolBlueprint,
)
from trajsmith.envgen.generate.columns import ColumnBuilder
from trajsmith.envgen.generate.identifiers import to_class_name, to_identifier, to_noun
from trajsmith.environments.adapters.openapi.document_reading import read_document
from trajsmith.environments.adapters.openapi.document_references import OpenApiDocument
from trajsmith.environments.adapters.openapi.model_builder import BuildResult, ModelBuilder
from trajsmith.environments.adapters.openapi.operation_derivation import DerivedOperation
from trajsmith.environments.adapters.openapi.read_actions import GetAction, ListAction
from trajsmith.environments.adapters.openapi.settings import OpenApiSettings, build_payload
from trajsmith.environments.adapters.openapi.tables import GENERATED_ID, ResourceTable
from trajsmith.environments.adapters.openapi.write_actions import CreateAction, DeleteAction, UpdateAction
from trajsmith.phrasing.words import normalize_name
from trajsmith.records import InputError, JsonObject, hash_bytes

MAX_COLUMNS = 24
"""Columns of an entity; required ones come first."""


def read_openapi(path: FilePath) -> Blueprint:
    """Read a document.

    Raises:
        InputError: It is none, or nothing of it can be played.
    """
    document_payload = build_payload(OpenApiSettings(spec=path))
    try:
        document = OpenApiDocument(read_document(document_payload["text"], path.name), path.name)
        built = ModelBuilder(document).build(None, set())
    except RecursionError as error:
        raise InputError(f"{path}: nested too deeply") from error
    return _BlueprintReader(document, built, str(document_payload["name"]), str(document_payload["text"])).blueprint()


class _BlueprintReader:
    def __init__(self, document: OpenApiDocument, built: BuildResult, name: str, text: str) -> None:
        self._document = document
        self._built = built
        self._name = name
        self._text = text
        self._columns = ColumnBuilder(built.model.responses)
        self._left_out = [SkippedItem(what=label, reason=reason) for label, reason in built.left_out.items()]
        self._names: dict[str, dict[str, str]] = {}
        """Names of columns by the properties that they are, by table."""
        self._keys: dict[str, str] = {}
        self._nouns: dict[str, str] = {}

    def blueprint(self) -> Blueprint:
        tables = {name: table for name, table in self._built.model.tables.items() if not table.fixed}
        nouns: set[str] = set()
        for name, table in tables.items():
            noun = to_identifier(table.noun, "item", nouns)
            nouns.add(noun)
            self._nouns[name] = noun
            self._keys[name] = (
                f"{noun}_id"
                if normalize_name(table.identity) in ("id", "uuid", "guid", "@id")
                else to_identifier(table.identity)
            )
        entities = tuple(self._entity(table) for table in tables.values())
        known = {entity.table: entity for entity in entities}
        operations: list[ToolBlueprint] = []
        for tool, derived in self._built.derived.items():
            operation = self._operation(tool, derived, known)
            if isinstance(operation, str):
                self._left_out.append(SkippedItem(what=derived.operation.label, reason=operation))
            else:
                operations.append(operation)
        info = self._document.root.get("info")
        title = str(info.get("title") or self._name) if isinstance(info, dict) else self._name
        name = to_identifier(self._name, "api")
        return Blueprint(
            name=name, cls=to_class_name(name), title=title, domain=f"openapi/{name}",
            source=BlueprintSource(
                kind="openapi", name=self._document.file, digest=hash_bytes(self._text.encode()), title=title,
                licence=_read_licence(info),
            ),
            entities=entities, operations=tuple(operations), left_out=tuple(self._left_out),
        )  # fmt: skip

    # Entities

    def _entity(self, table: ResourceTable) -> Entity:
        noun, key = self._nouns[table.name], self._keys[table.name]
        dialect = self._built.model.responses
        required, places = dialect.required(table.schema), {r.path: r.table for r in table.references}
        whole = table.identity != GENERATED_ID and dialect.look(table.identity_schema).get("type") == "integer"
        columns = [
            TableColumn(
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
                self._left_out.append(SkippedItem(what=f"{table.name}.{label}", reason=reason))
        prefix = "" if whole else f"{noun.replace('_', '')[:3].upper()}-"
        return Entity(
            table=to_identifier(table.name, "items"),
            noun=noun,
            cls=to_class_name(noun),
            key=key,
            columns=tuple(columns),
            start=table.start + 1000,
            prefix=prefix,
        )

    def _add(
        self, table: ResourceTable, label: str, schema: JsonObject, required: bool, columns: list[TableColumn]
    ) -> str:
        names = self._names[table.name]
        target = next((r.table for r in table.references if r.path in ((label,), (label, "*"))), None)
        many = any(r.path == (label, "*") for r in table.references)
        if len(columns) >= MAX_COLUMNS:
            return f"more than {MAX_COLUMNS} columns"
        if target is not None and target in self._keys:
            stem = to_noun(label.strip("@"))
            name = stem if stem.endswith("_id") else f"{stem}_id"
            name = to_identifier(f"{name}s" if many else name, taken=[column.name for column in columns])
            target_whole = self._whole(self._built.model.tables[target])
            if many and target_whole:
                return "a list of numbers that mean other records"
            columns.append(TableColumn(
                name=name, kind="texts" if many else "whole" if target_whole else "text", label=label,
                description=f"The {self._nouns[target].replace('_', ' ')} it belongs to." if not many else "",
                required=required or label.startswith("@"), references=to_identifier(target, "items"),
            ))  # fmt: skip
            names[label] = name
            return ""
        if label.startswith("@"):
            return "hidden"
        name = to_identifier(label, taken=[column.name for column in columns])
        result = self._columns.column(label, schema, table.noun, required, name)
        if isinstance(result, str):
            return result
        columns.append(result)
        names[label] = name
        return ""

    def _whole(self, table: ResourceTable) -> bool:
        looked = self._built.model.responses.look(table.identity_schema)
        return table.identity != GENERATED_ID and looked.get("type") == "integer"

    # Operations

    def _operation(self, tool: str, derived: DerivedOperation, known: dict[str, Entity]) -> ToolBlueprint | str:
        action = derived.action
        name = to_identifier(action.table.name, "items")
        entity = known.get(name)
        if entity is None:
            return "about something there is only one of"
        description = (
            " ".join(derived.operation.description.split("\n")[0].split())[:200].replace('"""', "").replace("\\", "/")
        )
        base = {"name": to_identifier(tool, "tool"), "table": name, "description": description}
        if isinstance(action, GetAction):
            return ToolBlueprint(action="get", **base)
        if isinstance(action, DeleteAction):
            return ToolBlueprint(action="delete", **base)
        if isinstance(action, ListAction):
            return self._listing(action, base, entity)
        if isinstance(action, CreateAction):
            return self._creating(action, base, entity)
        if isinstance(action, UpdateAction):
            return self._updating(action, base, entity)
        return f"{derived.kind} of a part of a record"

    def _listing(self, action: ListAction, base: dict[str, str], entity: Entity) -> ToolBlueprint:
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
        return ToolBlueprint(action="list", fields=tuple(fields), needed=tuple(needed), search=search, **base)

    def _creating(self, action: CreateAction, base: dict[str, str], entity: Entity) -> ToolBlueprint | str:
        names = self._names[action.table.name]
        required = self._built.model.requests.required(action.inputs.record_schema or {})
        arguments = [label for label in action.inputs.fields.values() if label in names and names[label] != entity.key]
        if action.inputs.record_schema is not None:
            inner = self._built.model.requests.all_properties(action.inputs.record_schema)
            arguments = [label for label in inner if label in names and names[label] != entity.key]
        fields = [names[label] for label in arguments if not entity.column(names[label]).automatic]
        needed = [names[label] for label in arguments if label in required]
        if action.below is not None and action.below.kind == "owned" and action.below.path[0] in names:
            owner = names[action.below.path[0]]
            fields, needed = [owner, *fields], [owner, *needed]
        if not fields:
            return "nothing that it is sent is kept"
        return ToolBlueprint(
            action="create", fields=tuple(dict.fromkeys(fields)), needed=tuple(dict.fromkeys(needed)), **base
        )

    def _updating(self, action: UpdateAction, base: dict[str, str], entity: Entity) -> ToolBlueprint | str:
        names = self._names[action.table.name]
        status = entity.status
        for label, value in action.sets.items():
            if status is not None and names.get(label) == status.name and value in status.choices:
                return ToolBlueprint(action="move", sets=str(value), **base)
        if action.sets:
            return "what it changes is no status that records show"
        inner = self._built.model.requests.all_properties(action.inputs.record_schema or {})
        labels = [*inner, *action.inputs.fields.values()]
        fields = [names[label] for label in labels if label in names and names[label] != entity.key]
        fields = [name for name in dict.fromkeys(fields) if not entity.column(name).automatic]
        return (
            ToolBlueprint(action="update", fields=tuple(fields), **base)
            if fields
            else "nothing that it is sent is kept"
        )


def _read_licence(info: object) -> str:
    licence = info.get("license") if isinstance(info, dict) else None
    return str(licence.get("name") or "") if isinstance(licence, dict) else ""

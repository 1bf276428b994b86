"""OpenAPI documents as blueprints; resources, relations and what operations do come from
`trajsmith.environments.adapters.openapi`.
"""

from pathlib import Path as FilePath
from typing import Any, Literal

from trajsmith.envgen.generate.blueprint import (
    Blueprint,
    BlueprintSource,
    Entity,
    RangeFilter,
    SkippedItem,
    TableColumn,
    ToolBlueprint,
)
from trajsmith.envgen.generate.columns import ColumnBuilder
from trajsmith.envgen.generate.identifiers import to_class_name, to_identifier, to_noun
from trajsmith.environments import limit_check_time
from trajsmith.environments.adapters.openapi.document_reading import read_document
from trajsmith.environments.adapters.openapi.document_references import OpenApiDocument
from trajsmith.environments.adapters.openapi.model_builder import BuildResult, ModelBuilder
from trajsmith.environments.adapters.openapi.operation_derivation import DerivedOperation
from trajsmith.environments.adapters.openapi.read_actions import (
    GetAction,
    GetPropertyAction,
    ListAction,
    OperationAction,
)
from trajsmith.environments.adapters.openapi.settings import OpenApiSettings, build_payload
from trajsmith.environments.adapters.openapi.tables import GENERATED_ID, ResourceTable
from trajsmith.environments.adapters.openapi.write_actions import (
    CreateAction,
    DeleteAction,
    LinkAction,
    UnlinkAction,
    UpdateAction,
    UpdatePropertyAction,
)
from trajsmith.phrasing import normalize_name
from trajsmith.records import InputError, JsonObject, hash_bytes

_SIGNS: dict[str, Literal[">=", ">", "<=", "<"]] = {"at_least": ">=", "above": ">", "at_most": "<=", "below": "<"}
_NOTHING_KEPT = "nothing that it is sent is kept"
MAX_COLUMNS = 24
"""Columns of an entity; required ones come first."""


def read_openapi(path: FilePath) -> Blueprint:
    """Read a document.

    Raises:
        InputError: It is none, or nothing of it can be played.
    """
    document_payload = build_payload(OpenApiSettings(spec=path))
    with limit_check_time(str(path)):
        try:
            document = OpenApiDocument(read_document(document_payload["text"], path.name), path.name)
            built = ModelBuilder(document).build(None, set())
        except RecursionError as error:
            raise InputError(f"{path}: nested too deeply") from error
        name, text = str(document_payload["name"]), str(document_payload["text"])
        return _BlueprintReader(document, built, name, text).blueprint()


class _BlueprintReader:
    def __init__(self, document: OpenApiDocument, built: BuildResult, name: str, text: str) -> None:
        self._document = document
        self._built = built
        self._name = name
        self._text = text
        self._columns = ColumnBuilder(built.model.responses, nested=True)
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
        for single in self._built.model.keyed.get(table.name, ()):
            part = self._built.model.tables[single]
            column = self._columns.record(single, part.schema, to_identifier(single, taken=names.values()), False)
            if column is not None:
                columns.append(self._refer_inside(part, column, ()))
                names[f"@{single}"] = column.name
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
        columns.append(self._refer_inside(table, result, (label,)))
        names[label] = name
        return ""

    def _refer_inside(self, table: ResourceTable, column: TableColumn, above: tuple[str, ...]) -> TableColumn:
        """Return a column of records in which keys of other tables refer to them.

        Args:
            above: Where they stand in the table's records.
        """
        inner = []
        for one in column.columns:
            paths = ((*above, one.label), (*above, "*", one.label))
            target = next((r.table for r in table.references if r.path in paths and r.table in self._keys), None)
            if target is not None and one.kind in ("text", "whole"):
                kind = "whole" if self._whole(self._built.model.tables[target]) else "text"
                references = to_identifier(target, "items")
                one = one.model_copy(update={"kind": kind, "references": references, "pool": (), "pattern": ""})
            inner.append(one)
        return column.model_copy(update={"columns": tuple(inner)})

    def _whole(self, table: ResourceTable) -> bool:
        looked = self._built.model.responses.look(table.identity_schema)
        return table.identity != GENERATED_ID and looked.get("type") == "integer"

    # Operations

    def _operation(self, tool: str, derived: DerivedOperation, known: dict[str, Entity]) -> ToolBlueprint | str:
        action = derived.action
        levels, whose, part, linked = action.chain.levels, action.table.name, "", ""
        if isinstance(action, LinkAction | UnlinkAction):
            whose = levels[-2 if action.by is None else -1].table
            linked = self._names.get(whose, {}).get(action.path[0], "") if action.path[1:] == ("*",) else ""
        elif action.table.fixed and len(levels) > 1:
            whose, part = levels[-2].table, f"@{action.table.name}"
        elif isinstance(action, GetPropertyAction | UpdatePropertyAction):
            part = action.part
        name = to_identifier(whose, "items")
        entity = known.get(name)
        if entity is None:
            return "about something there is only one of"
        words = " ".join(derived.operation.description.split("\n")[0].split())
        stated = "" if words == derived.operation.label else words
        description = stated[:200].replace('"""', "").replace("\\", "/")
        base: dict[str, Any] = {"name": to_identifier(tool, "tool"), "table": name, "description": description}
        base["actor"] = derived.operation.find_actor()
        if part:
            return self._on_part(action, base, entity, self._names[whose].get(part, ""))
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
        if linked and entity.column(linked).references:
            return ToolBlueprint(action="link" if isinstance(action, LinkAction) else "unlink", column=linked, **base)
        return f"{derived.kind} of a part of a record"

    def _on_part(self, action: OperationAction, base: dict[str, Any], entity: Entity, name: str) -> ToolBlueprint | str:
        """Return a tool on the one record inside another."""
        column = next((one for one in entity.columns if one.name == name and one.kind == "record"), None)
        if column is None:
            return "about a part that no record has"
        if isinstance(action, GetAction | GetPropertyAction):
            return ToolBlueprint(action="get", column=name, **base)
        if not isinstance(action, UpdateAction | UpdatePropertyAction):
            return "what it does to a part of a record is not known"
        sent = self._built.model.requests.all_properties(action.inputs.record_schema or {})
        fields = tuple(one.name for one in column.columns if one.label in sent)
        return ToolBlueprint(action="update", column=name, fields=fields, **base) if fields else _NOTHING_KEPT

    def _listing(self, action: ListAction, base: dict[str, Any], entity: Entity) -> ToolBlueprint | str:
        names = self._names[action.table.name]
        fields, search, ranges = list[str](), "", list[RangeFilter]()
        for test in action.query.conditions:
            path = test.paths[0] if test.paths else ("",)
            name = names.get(path[0], "") if path[1:] in ((), ("*",), self._embedded_key(action, path[0])) else ""
            if test.test in ("equal", "any") and name:
                fields.append(name)
            elif test.test in _SIGNS and name and not path[1:]:
                taken = {*names.values(), *(one.name for one in ranges)}
                argument = to_identifier(test.parameter, taken=taken)
                ranges.append(RangeFilter(name=argument, column=name, sign=_SIGNS[test.test]))
            elif test.test == "search":
                search = "query"
        needed, held = list[str](), dict[str, str]()
        if action.below is not None and action.below.kind == "owned" and action.below.path[0] in names:
            needed = [names[action.below.path[0]]]
        if action.below is not None and action.below.kind == "held" and action.chain.levels:
            owner = action.chain.levels[-1].table
            column = self._names.get(owner, {}).get(action.below.path[0], "")
            held = {"owner": to_identifier(owner, "items"), "column": column}
        if action.below is not None and not needed and not held.get("column"):
            return "nothing that records show says what they stand below"
        fields = [f for f in dict.fromkeys([*needed, *fields]) if f != entity.key and entity.column(f).kind != "moment"]
        ranges = [one for one in ranges if entity.column(one.column).kind in ("whole", "number", "date", "moment")]
        return ToolBlueprint(
            action="list",
            fields=tuple(fields),
            needed=tuple(needed),
            search=search,
            ranges=tuple(ranges),
            **held,
            **base,
        )

    def _embedded_key(self, action: ListAction, label: str) -> tuple[str, ...]:
        """Return where a record that is shown inside another one has its key; empty if none is shown there."""
        shown = (one.table for one in action.table.references if one.path == (label,) and one.embedded)
        return tuple(self._built.model.tables[name].identity for name in shown)

    def _creating(self, action: CreateAction, base: dict[str, Any], entity: Entity) -> ToolBlueprint | str:
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
            return _NOTHING_KEPT
        return ToolBlueprint(
            action="create", fields=tuple(dict.fromkeys(fields)), needed=tuple(dict.fromkeys(needed)), **base
        )

    def _updating(self, action: UpdateAction, base: dict[str, Any], entity: Entity) -> ToolBlueprint | str:
        names = self._names[action.table.name]
        inner = self._built.model.requests.all_properties(action.inputs.record_schema or {})
        labels = [*inner, *action.inputs.fields.values()]
        fields = [names[label] for label in labels if label in names and names[label] != entity.key]
        fields = [name for name in dict.fromkeys(fields) if not entity.column(name).automatic]
        for label, value in action.sets.items():
            column = names.get(label, "")
            values = entity.column(column).choices if column else ()
            if value in values or (column and isinstance(value, bool) and entity.column(column).kind == "flag"):
                also = tuple(name for name in fields if name != column)
                return ToolBlueprint(action="move", column=column, sets=value, fields=also, **base)
        if action.sets:
            return "what it changes is nothing that records show"
        return ToolBlueprint(action="update", fields=tuple(fields), **base) if fields else _NOTHING_KEPT


def _read_licence(info: object) -> str:
    licence = info.get("license") if isinstance(info, dict) else None
    return str(licence.get("name") or "") if isinstance(licence, dict) else ""

"""Actions of operations that write: create, update, act, delete, link and unlink."""

from dataclasses import dataclass, field

from trajsmith.environments.adapters.openapi.document_model import (
    DocumentModel,
    RequestRefused,
    remove_reference,
    set_at_path,
)
from trajsmith.environments.adapters.openapi.record_completion import complete_record, create_identity, touch_record
from trajsmith.environments.adapters.openapi.relations import ParentRelation
from trajsmith.environments.adapters.openapi.resource_paths import PathLevel, ResourcePath, put_below
from trajsmith.environments.adapters.openapi.responses import ResponseBuilder, ResponseContext
from trajsmith.environments.adapters.openapi.store import (
    ResourceStore,
    build_reference,
    find_leaves,
    find_target_key,
    to_key,
)
from trajsmith.environments.adapters.openapi.tables import GENERATED_ID, RecordReference, ResourceTable
from trajsmith.environments.adapters.openapi.tool_inputs import ToolInputs
from trajsmith.environments.adapters.openapi.value_generation import Path
from trajsmith.records import JsonObject, JsonValue

_DONE = {"success": True}


@dataclass(frozen=True)
class CreateAction:
    """Creation of a record from the body."""

    table: ResourceTable
    chain: ResourcePath
    """What it is made below."""
    below: ParentRelation | None
    inputs: ToolInputs
    references: list[RecordReference]
    """References in the body's record."""
    reply: ResponseBuilder

    def run(self, model: DocumentModel, store: ResourceStore, arguments: JsonObject) -> JsonValue:
        picked = self.chain.records(model, store, arguments)
        content = self.inputs.record(arguments)
        record = self.chain.apply_scopes(dict(content), arguments)
        parent = (self.chain.levels[-1].table, picked[-1][0]) if picked else None
        key = create_record(model, store, self.table, record, self.references, parent, self.below)
        created = store.get(self.table.name, key) or {}
        message = f"{self.table.noun} {key} created"
        return self.reply.record(store, {**content, **created}, ResponseContext({**_DONE, "message": message}))


def create_record(
    model: DocumentModel,
    store: ResourceStore,
    table: ResourceTable,
    record: JsonObject,
    references: list[RecordReference],
    parent: tuple[str, str] | None = None,
    below: ParentRelation | None = None,
) -> str:
    """Put a new record into a table with everything that comes with it; return its key.

    Raises:
        Refused: It means what does not exist, exists already, or cannot be shown as the document says.
    """
    record = model.normalize_record(store, record, [*references, *table.references])
    model.check_references(store, record, references)
    if parent is not None and below is not None:
        record = put_below(model, store, below, parent, table.name, record)
    client_identity = None if table.identity == GENERATED_ID else record.get(table.identity)
    if client_identity is not None and store.get(table.name, to_key(client_identity)) is not None:
        raise RequestRefused(409, f"{table.noun} already exists: {to_key(client_identity)}")
    identity = create_identity(model, store, table) if client_identity is None else client_identity
    key = to_key(identity)
    if table.identity != GENERATED_ID:
        record = {**record, table.identity: identity}
    record = complete_record(model, store, table, key, record)
    model.check_references(store, record, table.references)
    fault = model.find_record_fault(store, table, record)
    if fault is not None:
        raise RequestRefused(422, fault)
    store.put(table.name, key, record)
    if parent is not None and below is not None and below.kind == "held":
        _add_to_list(model, store, parent, below.path, (table.name, key))
    for name in model.keyed.get(table.name, ()):
        single = model.tables[name]
        store.put(name, key, complete_record(model, store, single, key, {}))
    return key


def _add_to_list(
    model: DocumentModel, store: ResourceStore, parent: tuple[str, str], path: Path, child: tuple[str, str]
) -> None:
    """Put a record into a list of its parent, if it is not there."""
    holder = store.get(*parent) or {}
    reference = next(candidate for candidate in model.tables[parent[0]].references if candidate.path == path)
    values = list(find_leaves(holder, path))
    if child[1] in [find_target_key(value, reference) for value in values]:
        return
    if path[0].startswith("@"):
        value: JsonValue = child[1]
    elif reference.embedded:
        value = build_reference(*child)
    else:
        value = model.identity_value(store, model.tables[child[0]], child[1])
    store.put(*parent, set_at_path(holder, path[:-1], [*values, value]))


@dataclass(frozen=True)
class UpdateAction:
    """Update of a record by the body, by constants, or both."""

    table: ResourceTable
    chain: ResourcePath
    inputs: ToolInputs
    references: list[RecordReference]
    reply: ResponseBuilder
    replace: bool = False
    """True if what the body could say and does not goes away."""
    sets: JsonObject = field(default_factory=dict)
    """Properties that the operation itself sets."""
    by_body: bool = False
    """True if the body has the identity, and no path parameter."""
    done: str = "updated"

    def run(self, model: DocumentModel, store: ResourceStore, arguments: JsonObject) -> JsonValue:
        content = model.normalize_record(
            store, self.inputs.record(arguments), [*self.references, *self.table.references]
        )
        key, record = self._pick_record(model, store, arguments, content)
        model.check_references(store, content, self.references)
        identity = content.get(self.table.identity)
        if identity is not None and to_key(identity) != key:
            raise RequestRefused(400, f"{self.table.identity} of {self.table.noun} {key} cannot be changed")
        previous = self._keep_unwritable(model, record, content) if self.replace else record
        changed = touch_record(model, store, self.table, {**previous, **content, **self.sets})
        fault = model.find_record_fault(store, self.table, changed)
        if fault is not None:
            raise RequestRefused(422, fault)
        if changed != record:
            store.put(self.table.name, key, changed)
        message = f"{self.table.noun} {key} {self.done}"
        return self.reply.record(store, changed, ResponseContext({**_DONE, "message": message}))

    def _pick_record(
        self, model: DocumentModel, store: ResourceStore, arguments: JsonObject, content: JsonObject
    ) -> tuple[str, JsonObject]:
        if not self.by_body:
            return self.chain.records(model, store, arguments)[-1]
        if content.get(self.table.identity) is None:
            raise RequestRefused(400, f"{self.table.identity} is missing")
        key = to_key(content[self.table.identity])
        record = store.get(self.table.name, key)
        if record is None:
            raise RequestRefused(404, f"{self.table.noun} not found: {key}")
        return key, record

    def _keep_unwritable(self, model: DocumentModel, record: JsonObject, content: JsonObject) -> JsonObject:
        """Return what stays of the old record: what the body cannot set, and what is required."""
        schema = self.inputs.record_schema or {}
        writable = model.requests.all_properties(schema).keys()
        needed = model.responses.required(self.table.schema) | {self.table.identity}
        return {
            name: value for name, value in record.items() if name not in writable or name in needed or name in content
        }


@dataclass(frozen=True)
class UpdatePropertyAction:
    """Update of one property of a record, by a path of its own."""

    table: ResourceTable
    chain: ResourcePath
    part: str
    inputs: ToolInputs
    reply: ResponseBuilder
    replace: bool

    def run(self, model: DocumentModel, store: ResourceStore, arguments: JsonObject) -> JsonValue:
        key, record = self.chain.records(model, store, arguments)[-1]
        old = record.get(self.part)
        content = self.inputs.record(arguments)
        inner = content if self.replace or not isinstance(old, dict) else {**old, **content}
        changed = touch_record(model, store, self.table, {**record, self.part: inner})
        model.check_references(store, changed, self.table.references)
        fault = model.find_record_fault(store, self.table, changed)
        if fault is not None:
            raise RequestRefused(422, fault)
        store.put(self.table.name, key, changed)
        return self.reply.record(store, inner, ResponseContext({**_DONE, "message": f"{self.part} updated"}))


@dataclass(frozen=True)
class DeleteAction:
    """Deletion of a record and of what cannot exist without it."""

    table: ResourceTable
    chain: ResourcePath
    reply: ResponseBuilder

    def run(self, model: DocumentModel, store: ResourceStore, arguments: JsonObject) -> JsonValue:
        key, record = self.chain.records(model, store, arguments)[-1]
        facts = ResponseContext({**_DONE, "message": f"{self.table.noun} {key} deleted"})
        answer = self.reply.record(store, record, facts)
        remove_record(model, store, (self.table.name, key))
        return answer


def remove_record(model: DocumentModel, store: ResourceStore, first: tuple[str, str]) -> None:
    """Remove a record, with all that belongs to it.

    Raises:
        Refused: Another record still means it.
    """
    gone = dict.fromkeys([first])
    listed: list[tuple[str, str, RecordReference, str]] = []
    waiting = [first]
    blocking: list[tuple[tuple[str, str], str]] = []
    while waiting:
        name, key = waiting.pop()
        for single in model.keyed.get(name, ()):
            if store.get(single, key) is not None:
                gone[single, key] = None
        for other, reference in model.referrers[name]:
            for other_key, record in store.items(other):
                if key not in [find_target_key(value, reference) for value in find_leaves(record, reference.path)]:
                    continue
                place = (other, other_key)
                if (other, reference.path) in model.owned:
                    waiting.extend([place] if place not in gone else [])
                    gone[place] = None
                elif reference.path[-1] == "*":
                    listed.append((other, other_key, reference, key))
                else:
                    blocking.append((place, f"{model.tables[name].noun} {key}"))
    for place, record_key in blocking:
        if place not in gone:
            raise RequestRefused(409, f"{record_key} is still used by {model.tables[place[0]].noun} {place[1]}")
    for other, other_key, reference, key in listed:
        if (other, other_key) not in gone:
            store.put(other, other_key, remove_reference(store.get(other, other_key), reference.path, key, reference))
    for place in gone:
        store.remove(*place)


@dataclass(frozen=True)
class LinkAction:
    """Insertion of a record into a list of its parent."""

    table: ResourceTable
    chain: ResourcePath
    """Up to the parent."""
    path: Path
    """The parent's list."""
    by: str
    """Parameter of the path, or property of the body, that names the record."""
    inputs: ToolInputs
    reply: ResponseBuilder

    def run(self, model: DocumentModel, store: ResourceStore, arguments: JsonObject) -> JsonValue:
        key, _ = self.chain.records(model, store, arguments)[-1]
        level: PathLevel = self.chain.levels[-1]
        identity = {**arguments, **self.inputs.record(arguments)}.get(self.by)
        if identity is None:
            raise RequestRefused(400, f"{self.by} is missing")
        for value in identity if isinstance(identity, list) else [identity]:
            if store.get(self.table.name, to_key(value)) is None:
                raise RequestRefused(404, f"{self.table.noun} not found: {to_key(value)}")
        for value in identity if isinstance(identity, list) else [identity]:
            _add_to_list(model, store, (level.table, key), self.path, (self.table.name, to_key(value)))
        shown = store.get(self.table.name, to_key(identity)) if not isinstance(identity, list) else None
        return self.reply.record(store, shown or {}, ResponseContext({**_DONE, "message": f"{self.table.noun} added"}))


@dataclass(frozen=True)
class UnlinkAction:
    """Removal of a record from a list of its parent."""

    table: ResourceTable
    chain: ResourcePath
    """Down to the record, or to the parent if the body names the record."""
    path: Path
    by: str | None
    """Property of the body that names the record."""
    inputs: ToolInputs
    reply: ResponseBuilder

    def run(self, model: DocumentModel, store: ResourceStore, arguments: JsonObject) -> JsonValue:
        picked = self.chain.records(model, store, arguments)
        if self.by is None:
            (holder_key, holder), (key, record) = picked[-2], picked[-1]
            name = self.chain.levels[-2].table
        else:
            holder_key, holder = picked[-1]
            name = self.chain.levels[-1].table
            key = to_key(self.inputs.record(arguments).get(self.by))
            record = store.get(self.table.name, key) or {}
        reference = next(candidate for candidate in model.tables[name].references if candidate.path == self.path)
        if key not in [find_target_key(value, reference) for value in find_leaves(holder, self.path)]:
            raise RequestRefused(404, f"{self.table.noun} not found: {key}")
        changed = remove_reference(holder, self.path, key, reference)
        fault = model.find_record_fault(store, model.tables[name], changed)
        if fault is not None:
            raise RequestRefused(409, fault)
        store.put(name, holder_key, changed)
        return self.reply.record(
            store, record, ResponseContext({**_DONE, "message": f"{self.table.noun} {key} removed"})
        )

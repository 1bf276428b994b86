"""Operations that write: create, update, act, delete, link and unlink."""

from dataclasses import dataclass, field

from environments.openapi.bodies import Inputs
from environments.openapi.chains import Chain, Level, put_below
from environments.openapi.filling import completed, new_identity, touched
from environments.openapi.model import Model, Refused, without
from environments.openapi.relations import Relation
from environments.openapi.replies import Facts, Reply
from environments.openapi.store import Store, key_of, leaves, reference_to, target_of
from environments.openapi.tables import ID, Reference, Table
from environments.openapi.values import Path
from trajectory import JsonObject, JsonValue

_DONE = {"success": True}


@dataclass(frozen=True)
class Creating:
    """A new record from the body."""

    table: Table
    chain: Chain
    """What it is made below."""
    below: Relation | None
    inputs: Inputs
    references: list[Reference]
    """References in the body's record."""
    reply: Reply

    def run(self, model: Model, store: Store, arguments: JsonObject) -> JsonValue:
        picked = self.chain.records(model, store, arguments)
        given = self.inputs.record(arguments)
        record = self.chain.scoped(dict(given), arguments)
        parent = (self.chain.levels[-1].table, picked[-1][0]) if picked else None
        key = create(model, store, self.table, record, self.references, parent, self.below)
        made = store.get(self.table.name, key) or {}
        message = f"{self.table.noun} {key} created"
        return self.reply.record(store, {**given, **made}, Facts({**_DONE, "message": message}))


def create(
    model: Model,
    store: Store,
    table: Table,
    record: JsonObject,
    references: list[Reference],
    parent: tuple[str, str] | None = None,
    below: Relation | None = None,
) -> str:
    """Put a new record into a table and everything that comes with it; its key.

    Raises:
        Refused: It means what does not exist, exists already, or cannot be shown as the document says.
    """
    record = model.normalised(store, record, [*references, *table.references])
    model.check_references(store, record, references)
    if parent is not None and below is not None:
        record = put_below(model, store, below, parent, table.name, record)
    given = None if table.identity == ID else record.get(table.identity)
    if given is not None and store.get(table.name, key_of(given)) is not None:
        raise Refused(409, f"{table.noun} already exists: {key_of(given)}")
    identity = new_identity(model, store, table) if given is None else given
    key = key_of(identity)
    if table.identity != ID:
        record = {**record, table.identity: identity}
    record = completed(model, store, table, key, record)
    model.check_references(store, record, table.references)
    fault = model.record_fault(store, table, record)
    if fault is not None:
        raise Refused(422, fault)
    store.put(table.name, key, record)
    if parent is not None and below is not None and below.kind == "held":
        _hold(model, store, parent, below.path, (table.name, key))
    for name in model.keyed.get(table.name, ()):
        single = model.tables[name]
        store.put(name, key, completed(model, store, single, key, {}))
    return key


def _hold(model: Model, store: Store, parent: tuple[str, str], path: Path, child: tuple[str, str]) -> None:
    """Put a record into a list of its parent, if it is not there."""
    holder = store.get(*parent) or {}
    reference = next(found for found in model.tables[parent[0]].references if found.path == path)
    values = list(leaves(holder, path))
    if child[1] in [target_of(value, reference) for value in values]:
        return
    if path[0].startswith("@"):
        value: JsonValue = child[1]
    elif reference.embedded:
        value = reference_to(*child)
    else:
        value = model.identity_value(store, model.tables[child[0]], child[1])
    store.put(*parent, _with_list(holder, path[:-1], [*values, value]))


def _with_list(record: JsonObject, path: Path, values: list[JsonValue]) -> JsonObject:
    if len(path) == 1:
        return {**record, path[0]: values}
    inner = record.get(path[0])
    return {**record, path[0]: _with_list(inner if isinstance(inner, dict) else {}, path[1:], values)}


@dataclass(frozen=True)
class Updating:
    """A record changed by the body, by constants, or both."""

    table: Table
    chain: Chain
    inputs: Inputs
    references: list[Reference]
    reply: Reply
    replace: bool = False
    """True if what the body could say and does not goes away."""
    sets: JsonObject = field(default_factory=dict)
    """Properties that the operation itself sets."""
    by_body: bool = False
    """True if the body has the identity, and no path parameter."""
    done: str = "updated"

    def run(self, model: Model, store: Store, arguments: JsonObject) -> JsonValue:
        given = model.normalised(store, self.inputs.record(arguments), [*self.references, *self.table.references])
        key, record = self._picked(model, store, arguments, given)
        model.check_references(store, given, self.references)
        identity = given.get(self.table.identity)
        if identity is not None and key_of(identity) != key:
            raise Refused(400, f"{self.table.identity} of {self.table.noun} {key} cannot be changed")
        kept = self._kept(model, record, given) if self.replace else record
        changed = touched(model, store, self.table, {**kept, **given, **self.sets})
        fault = model.record_fault(store, self.table, changed)
        if fault is not None:
            raise Refused(422, fault)
        if changed != record:
            store.put(self.table.name, key, changed)
        message = f"{self.table.noun} {key} {self.done}"
        return self.reply.record(store, changed, Facts({**_DONE, "message": message}))

    def _picked(self, model: Model, store: Store, arguments: JsonObject, given: JsonObject) -> tuple[str, JsonObject]:
        if not self.by_body:
            return self.chain.records(model, store, arguments)[-1]
        if given.get(self.table.identity) is None:
            raise Refused(400, f"{self.table.identity} is missing")
        key = key_of(given[self.table.identity])
        found = store.get(self.table.name, key)
        if found is None:
            raise Refused(404, f"{self.table.noun} not found: {key}")
        return key, found

    def _kept(self, model: Model, record: JsonObject, given: JsonObject) -> JsonObject:
        """What stays of the old record: what the body cannot say, and what must be there."""
        schema = self.inputs.record_schema or {}
        said = model.requests.all_properties(schema).keys()
        needed = model.responses.required(self.table.schema) | {self.table.identity}
        return {name: value for name, value in record.items() if name not in said or name in needed or name in given}


@dataclass(frozen=True)
class UpdatingPart:
    """One property of a record, by a path of its own."""

    table: Table
    chain: Chain
    part: str
    inputs: Inputs
    reply: Reply
    replace: bool

    def run(self, model: Model, store: Store, arguments: JsonObject) -> JsonValue:
        key, record = self.chain.records(model, store, arguments)[-1]
        old = record.get(self.part)
        given = self.inputs.record(arguments)
        inner = given if self.replace or not isinstance(old, dict) else {**old, **given}
        changed = touched(model, store, self.table, {**record, self.part: inner})
        model.check_references(store, changed, self.table.references)
        fault = model.record_fault(store, self.table, changed)
        if fault is not None:
            raise Refused(422, fault)
        store.put(self.table.name, key, changed)
        return self.reply.record(store, inner, Facts({**_DONE, "message": f"{self.part} updated"}))


@dataclass(frozen=True)
class Deleting:
    """A record, and what cannot be without it, goes away."""

    table: Table
    chain: Chain
    reply: Reply

    def run(self, model: Model, store: Store, arguments: JsonObject) -> JsonValue:
        key, record = self.chain.records(model, store, arguments)[-1]
        facts = Facts({**_DONE, "message": f"{self.table.noun} {key} deleted"})
        answer = self.reply.record(store, record, facts)
        remove(model, store, (self.table.name, key))
        return answer


def remove(model: Model, store: Store, first: tuple[str, str]) -> None:
    """Take a record away, with all that belongs to it.

    Raises:
        Refused: Another record still means it.
    """
    gone = dict.fromkeys([first])
    listed: list[tuple[str, str, Reference, str]] = []
    waiting = [first]
    blocking: list[tuple[tuple[str, str], str]] = []
    while waiting:
        name, key = waiting.pop()
        for single in model.keyed.get(name, ()):
            if store.get(single, key) is not None:
                gone[single, key] = None
        for other, reference in model.referrers[name]:
            for other_key, record in store.items(other):
                if key not in [target_of(value, reference) for value in leaves(record, reference.path)]:
                    continue
                place = (other, other_key)
                if (other, reference.path) in model.owned:
                    waiting.extend([place] if place not in gone else [])
                    gone[place] = None
                elif reference.path[-1] == "*":
                    listed.append((other, other_key, reference, key))
                else:
                    blocking.append((place, f"{model.tables[name].noun} {key}"))
    for place, what in blocking:
        if place not in gone:
            raise Refused(409, f"{what} is still used by {model.tables[place[0]].noun} {place[1]}")
    for other, other_key, reference, key in listed:
        if (other, other_key) not in gone:
            store.put(other, other_key, without(store.get(other, other_key), reference.path, key, reference))
    for place in gone:
        store.remove(*place)


@dataclass(frozen=True)
class Linking:
    """A record put into a list of the record that it stands below in the path."""

    table: Table
    chain: Chain
    """Up to the parent."""
    path: Path
    """The parent's list."""
    by: str
    """Parameter of the path, or property of the body, that names the record."""
    inputs: Inputs
    reply: Reply

    def run(self, model: Model, store: Store, arguments: JsonObject) -> JsonValue:
        key, _ = self.chain.records(model, store, arguments)[-1]
        level: Level = self.chain.levels[-1]
        given = {**arguments, **self.inputs.record(arguments)}.get(self.by)
        if given is None:
            raise Refused(400, f"{self.by} is missing")
        for value in given if isinstance(given, list) else [given]:
            if store.get(self.table.name, key_of(value)) is None:
                raise Refused(404, f"{self.table.noun} not found: {key_of(value)}")
        for value in given if isinstance(given, list) else [given]:
            _hold(model, store, (level.table, key), self.path, (self.table.name, key_of(value)))
        shown = store.get(self.table.name, key_of(given)) if not isinstance(given, list) else None
        return self.reply.record(store, shown or {}, Facts({**_DONE, "message": f"{self.table.noun} added"}))


@dataclass(frozen=True)
class Unlinking:
    """A record taken out of a list of the record that it stands below in the path."""

    table: Table
    chain: Chain
    """Down to the record, or to the parent if the body names the record."""
    path: Path
    by: str | None
    """Property of the body that names the record."""
    inputs: Inputs
    reply: Reply

    def run(self, model: Model, store: Store, arguments: JsonObject) -> JsonValue:
        picked = self.chain.records(model, store, arguments)
        if self.by is None:
            (holder_key, holder), (key, record) = picked[-2], picked[-1]
            name = self.chain.levels[-2].table
        else:
            holder_key, holder = picked[-1]
            name = self.chain.levels[-1].table
            key = key_of(self.inputs.record(arguments).get(self.by))
            record = store.get(self.table.name, key) or {}
        reference = next(found for found in model.tables[name].references if found.path == self.path)
        if key not in [target_of(value, reference) for value in leaves(holder, self.path)]:
            raise Refused(404, f"{self.table.noun} not found: {key}")
        changed = without(holder, self.path, key, reference)
        fault = model.record_fault(store, model.tables[name], changed)
        if fault is not None:
            raise Refused(409, fault)
        store.put(name, holder_key, changed)
        return self.reply.record(store, record, Facts({**_DONE, "message": f"{self.table.noun} {key} removed"}))

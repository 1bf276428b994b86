"""What a new or changed record gets beside what the caller says: its id, times, defaults, what must be there."""

import re
import uuid

from environments.openapi.model import Model, Refused
from environments.openapi.references import LeftOut
from environments.openapi.store import Store, reference_to
from environments.openapi.tables import ID, Reference, Table
from environments.openapi.values import Occasion, Omit, Path, Slot
from environments.openapi.words import kinds_of, plain, snake
from trajectory import JsonObject, JsonValue

_CREATED = kinds_of("createdat created createdon createddate datecreated creationdate createtime timestamp")
_UPDATED = kinds_of("updatedat updated updatedon modifiedat modified lastmodified lastupdated updatetime modifieddate")
_TIMES = ("date-time", "date")
_TRIES = 50


def new_identity(model: Model, store: Store, table: Table) -> JsonValue:
    """An identity that no record of the table has, in the form that the document's examples show.

    Raises:
        Refused: The document leaves no free one.
    """
    for _ in range(_TRIES):
        value = identity_of_number(model, store, table, store.next_number(table.name))
        if store.get(table.name, str(value)) is None:
            return value
    raise Refused(409, f"there is no free {table.identity} for another {table.noun}")


def identity_of_number(model: Model, store: Store, table: Table, number: int) -> JsonValue:
    """The identity of the n-th record of a table."""
    schema = model.responses.look(table.identity_schema)
    kinds = schema.get("type")
    if kinds in ("integer", "number"):
        most = schema.get("maximum", table.start + number)
        start = table.start if table.start + number <= most else 0
        return max(start + number, int(schema.get("minimum", 1)) + number - 1)
    if "enum" in schema:
        return schema["enum"][number % len(schema["enum"])]
    rng = model.rng(store, f"{table.name}.id", number)
    if schema.get("format") == "uuid":
        return str(uuid.UUID(int=rng.getrandbits(128), version=4))
    example = next((text for text in schema.get("examples", ()) if isinstance(text, str)), None)
    if "pattern" in schema or "format" in schema:
        return _made(model, store, table, number)
    counted = re.fullmatch(r"(.*?)(\d+)", example or "")
    if counted and len(counted[2]) < 12:
        return f"{counted[1]}{int(counted[2]) + number - 1:0{len(counted[2])}d}"
    if table.identity != ID and plain(table.identity) not in ("id", plain(table.noun) + "id", "key", "code"):
        value = _made(model, store, table, number)
        return value if number == 1 or str(number) in str(value) else f"{snake(str(value)).replace('_', '-')}-{number}"
    most = schema.get("maxLength")
    text = f"{table.noun}_{number}"
    return text if not isinstance(most, int) or len(text) <= most else str(number).rjust(min(most, 4), "0")


def _made(model: Model, store: Store, table: Table, number: int) -> JsonValue:
    occasion = Occasion(table.noun, number, model.rng(store, f"{table.name}.id", number), model.moment(store))
    name = table.identity.lstrip("@")
    return model.maker.make(table.identity_schema, (name,), occasion)


def completed(model: Model, store: Store, table: Table, key: str, record: JsonObject) -> JsonObject:
    """A new record with everything that it must have: times, defaults, and made values for the rest.

    Raises:
        Refused: Something that it must mean does not exist at all.
    """
    needed = model.responses.required(table.schema)
    rng = model.rng(store, table.name, len(store.records(table.name)) + store.next_number(f"{table.name}.made"))
    occasion = Occasion(table.noun, 1 + len(store.records(table.name)), rng, model.moment(store))
    occasion.slots = slots_of(model, store, table.references, occasion)
    made = dict(record)
    for name, schema in model.responses.all_properties(table.schema).items():
        if name in made:
            continue
        value = _given_by_server(model, store, name, schema)
        if value is None and name in needed:
            value = _required(model, table, name, schema, occasion)
        if value is not None:
            made[name] = value
    return made


def _given_by_server(model: Model, store: Store, name: str, schema: JsonObject) -> JsonValue:
    looked = model.responses.look(schema)
    if "const" in looked:
        return looked["const"]
    if schema.get("default", looked.get("default")) is not None:
        return schema.get("default", looked.get("default"))
    if looked.get("format") in _TIMES and plain(name) in _CREATED | _UPDATED:
        return store.now if looked["format"] == "date-time" else store.now[:10]
    return None


def _required(model: Model, table: Table, name: str, schema: JsonObject, occasion: Occasion) -> JsonValue:
    looked = model.responses.look(schema)
    if looked.get("enum"):
        return looked["enum"][0]
    if looked.get("type") == "array" and not looked.get("minItems"):
        return []
    try:
        return model.maker.make(schema, (name,), occasion)
    except (LeftOut, Omit) as reason:
        raise Refused(409, f"{table.noun} cannot be made: {name}: {reason}") from reason


def touched(model: Model, store: Store, table: Table, record: JsonObject) -> JsonObject:
    """A changed record with the time of the change, where records have one."""
    for name, schema in model.responses.all_properties(table.schema).items():
        looked = model.responses.look(schema)
        if plain(name) in _UPDATED and looked.get("format") in _TIMES and name in record:
            record = {**record, name: store.now if looked["format"] == "date-time" else store.now[:10]}
    return record


def slots_of(model: Model, store: Store, references: list[Reference], occasion: Occasion) -> dict[Path, Slot]:
    """What stands at the places of references: one of the records that are there."""
    return {
        reference.path: _slot(model, store, reference.table, reference.embedded, occasion)
        for reference in references
        if not reference.path[0].startswith("@")
    }


def _slot(model: Model, store: Store, target: str, embedded: bool, occasion: Occasion) -> Slot:
    def pick() -> JsonValue:
        keys = store.keys(target)
        if not keys:
            raise Omit(f"there is no {model.tables[target].noun}")
        key = occasion.rng.choice(keys)
        return reference_to(target, key) if embedded else model.identity_value(store, model.tables[target], key)

    return pick

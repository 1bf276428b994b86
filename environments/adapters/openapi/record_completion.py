"""Complete new or changed records beyond the caller's values: id, times, defaults, required properties."""

import re
import uuid

from trajsmith.environments.adapters.openapi.document_model import DocumentModel, RequestRefused
from trajsmith.environments.adapters.openapi.document_references import UnsupportedFeature
from trajsmith.environments.adapters.openapi.naming import normalize_name, normalize_words, to_snake_case
from trajsmith.environments.adapters.openapi.store import ResourceStore, build_reference
from trajsmith.environments.adapters.openapi.tables import GENERATED_ID, RecordReference, ResourceTable
from trajsmith.environments.adapters.openapi.value_generation import OmitValue, Path, Slot, ValueContext
from trajsmith.records import JsonObject, JsonValue

_CREATED = normalize_words("createdat created createdon createddate datecreated creationdate createtime timestamp")
_UPDATED = normalize_words(
    "updatedat updated updatedon modifiedat modified lastmodified lastupdated updatetime modifieddate"
)
_TIMES = ("date-time", "date")
_TRIES = 50


def create_identity(model: DocumentModel, store: ResourceStore, table: ResourceTable) -> JsonValue:
    """Return an unused identity, in the form that the document's examples show.

    Raises:
        Refused: The document leaves no free one.
    """
    for _ in range(_TRIES):
        value = build_identity(model, store, table, store.next_number(table.name))
        if store.get(table.name, str(value)) is None:
            return value
    raise RequestRefused(409, f"there is no free {table.identity} for another {table.noun}")


def build_identity(model: DocumentModel, store: ResourceStore, table: ResourceTable, number: int) -> JsonValue:
    """Return the identity of the n-th record of a table."""
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
        return _build_unused_identity(model, store, table, number)
    counted = re.fullmatch(r"(.*?)(\d+)", example or "")
    if counted and len(counted[2]) < 12:
        return f"{counted[1]}{int(counted[2]) + number - 1:0{len(counted[2])}d}"
    if table.identity != GENERATED_ID and normalize_name(table.identity) not in (
        "id",
        normalize_name(table.noun) + "id",
        "key",
        "code",
    ):
        value = _build_unused_identity(model, store, table, number)
        return (
            value
            if number == 1 or str(number) in str(value)
            else f"{to_snake_case(str(value)).replace('_', '-')}-{number}"
        )
    most = schema.get("maxLength")
    text = f"{table.noun}_{number}"
    return text if not isinstance(most, int) or len(text) <= most else str(number).rjust(min(most, 4), "0")


def _build_unused_identity(model: DocumentModel, store: ResourceStore, table: ResourceTable, number: int) -> JsonValue:
    occasion = ValueContext(table.noun, number, model.rng(store, f"{table.name}.id", number), model.moment(store))
    name = table.identity.lstrip("@")
    return model.maker.make(table.identity_schema, (name,), occasion)


def complete_record(
    model: DocumentModel, store: ResourceStore, table: ResourceTable, key: str, record: JsonObject
) -> JsonObject:
    """Return a new record with times, defaults, and generated values for the rest.

    Raises:
        Refused: Something that it must mean does not exist at all.
    """
    needed = model.responses.required(table.schema)
    rng = model.rng(store, table.name, len(store.records(table.name)) + store.next_number(f"{table.name}.made"))
    occasion = ValueContext(table.noun, 1 + len(store.records(table.name)), rng, model.moment(store))
    occasion.slots = build_slots(model, store, table.references, occasion)
    completed_record = dict(record)
    for name, schema in model.responses.all_properties(table.schema).items():
        if name in completed_record:
            continue
        value = _build_server_value(model, store, name, schema)
        if value is None and name in needed:
            value = _build_required_value(model, table, name, schema, occasion)
        if value is not None:
            completed_record[name] = value
    return completed_record


def _build_server_value(model: DocumentModel, store: ResourceStore, name: str, schema: JsonObject) -> JsonValue:
    looked = model.responses.look(schema)
    if "const" in looked:
        return looked["const"]
    if schema.get("default", looked.get("default")) is not None:
        return schema.get("default", looked.get("default"))
    if looked.get("format") in _TIMES and normalize_name(name) in _CREATED | _UPDATED:
        return store.now if looked["format"] == "date-time" else store.now[:10]
    return None


def _build_required_value(
    model: DocumentModel, table: ResourceTable, name: str, schema: JsonObject, occasion: ValueContext
) -> JsonValue:
    looked = model.responses.look(schema)
    if looked.get("enum"):
        return looked["enum"][0]
    if looked.get("type") == "array" and not looked.get("minItems"):
        return []
    try:
        return model.maker.make(schema, (name,), occasion)
    except (UnsupportedFeature, OmitValue) as reason:
        raise RequestRefused(409, f"{table.noun} cannot be made: {name}: {reason}") from reason


def touch_record(model: DocumentModel, store: ResourceStore, table: ResourceTable, record: JsonObject) -> JsonObject:
    """Return a changed record with the time of the change, where records have one."""
    for name, schema in model.responses.all_properties(table.schema).items():
        looked = model.responses.look(schema)
        if normalize_name(name) in _UPDATED and looked.get("format") in _TIMES and name in record:
            record = {**record, name: store.now if looked["format"] == "date-time" else store.now[:10]}
    return record


def build_slots(
    model: DocumentModel, store: ResourceStore, references: list[RecordReference], occasion: ValueContext
) -> dict[Path, Slot]:
    """Return value generators for references: each chooses an existing record."""
    return {
        reference.path: _build_slot(model, store, reference.table, reference.embedded, occasion)
        for reference in references
        if not reference.path[0].startswith("@")
    }


def _build_slot(
    model: DocumentModel, store: ResourceStore, target: str, embedded: bool, occasion: ValueContext
) -> Slot:
    def pick() -> JsonValue:
        keys = store.keys(target)
        if not keys:
            raise OmitValue(f"there is no {model.tables[target].noun}")
        key = occasion.rng.choice(keys)
        return build_reference(target, key) if embedded else model.identity_value(store, model.tables[target], key)

    return pick

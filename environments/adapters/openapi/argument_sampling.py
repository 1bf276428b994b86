"""Sample arguments for a tool that fit a state, to try an operation before it is relied on."""

import random
from dataclasses import replace

from trajsmith.environments.adapters.openapi.document_model import DocumentModel
from trajsmith.environments.adapters.openapi.document_references import UnsupportedFeature
from trajsmith.environments.adapters.openapi.operation_derivation import DerivedOperation
from trajsmith.environments.adapters.openapi.query_execution import find_values
from trajsmith.environments.adapters.openapi.read_actions import ListAction, OperationAction
from trajsmith.environments.adapters.openapi.record_completion import build_slots
from trajsmith.environments.adapters.openapi.relations import find_schema_at
from trajsmith.environments.adapters.openapi.resource_paths import is_below
from trajsmith.environments.adapters.openapi.store import ResourceStore, to_key
from trajsmith.environments.adapters.openapi.tables import GENERATED_ID, ResourceTable
from trajsmith.environments.adapters.openapi.tool_inputs import BODY
from trajsmith.environments.adapters.openapi.value_generation import (
    OmitValue,
    Path,
    Slot,
    ValueContext,
    ValueGenerator,
)
from trajsmith.environments.adapters.openapi.write_actions import CreateAction, LinkAction, UnlinkAction, UpdateAction
from trajsmith.records import JsonObject, JsonValue

_TRIES = 20
_GIVEN = 0.5
"""Chance that an optional argument is given."""


def sample_arguments(
    derived: DerivedOperation, model: DocumentModel, store: ResourceStore, rng: random.Random
) -> JsonObject:
    """Return arguments that the operation should accept at this state.

    Raises:
        LeftOut: None can be made.
    """
    action = derived.action
    occasion = ValueContext(action.table.noun, rng.randint(0, 50), rng, model.moment(store))
    occasion.slots = _build_body_slots(derived, model, store, occasion)
    picked = _sample_path_arguments(action, model, store, rng)
    if isinstance(action, ListAction):
        picked |= _sample_filters(action, model, store, rng)
    arguments: JsonObject = {}
    required = set(derived.inputs.schema.get("required", ()))
    for parameter in derived.inputs.parameters:
        if parameter.name in picked and model.requests.look(parameter.schema).get("type") == "string":
            picked[parameter.name] = to_key(picked[parameter.name])  # everything in a path is a text
    for name, schema in derived.inputs.schema["properties"].items():
        if name in picked:
            arguments[name] = picked[name]
        elif name in required or (name in derived.inputs.fields and rng.random() < _GIVEN):
            try:
                arguments[name] = ValueGenerator(model.requests).make(
                    schema, (derived.inputs.fields.get(name, name),), occasion
                )
            except OmitValue as reason:
                if name in required:
                    raise UnsupportedFeature(f"{name}: {reason}") from reason
    return arguments


def _build_body_slots(
    derived: DerivedOperation, model: DocumentModel, store: ResourceStore, occasion: ValueContext
) -> dict[Path, Slot]:
    """References of the body: to records that are there."""
    action, table = derived.action, derived.action.table
    references = action.references if isinstance(action, CreateAction | UpdateAction) else []
    slots = build_slots(model, store, references, occasion)
    for reference in references:
        if reference.embedded:
            slots[reference.path] = _sample_shown_record(model, store, model.tables[reference.table], occasion.rng)
    if isinstance(action, UpdateAction) and action.by_body:
        slots[table.identity,] = _sample_identity(model, store, table, occasion.rng)
    if isinstance(action, LinkAction | UnlinkAction) and action.by is not None:
        slots[action.by,] = slots[action.by, "*"] = _sample_identity(model, store, table, occasion.rng)
        asked = find_schema_at(model.requests, derived.inputs.record_schema or {}, (action.by,)) or {}
        if asked.get("type") == "array":
            del slots[action.by,]
    inner = ((BODY,) if derived.inputs.whole else ()) + derived.inputs.record_path
    slots_below = {(*inner, *path): slot for path, slot in slots.items()}
    for name, schema in model.requests.properties(derived.inputs.record_schema or {}).items():
        if isinstance(action, CreateAction | UpdateAction) and name != table.identity:
            slots_below.setdefault((*inner, name), _sample_value(model, store, table, schema, (*inner, name), occasion))
    if isinstance(action, LinkAction):
        slots_below[action.by,] = slots_below.get((action.by,)) or _sample_identity(model, store, table, occasion.rng)
    return slots_below


def _sample_value(
    model: DocumentModel,
    store: ResourceStore,
    table: ResourceTable,
    schema: JsonObject,
    at: Path,
    occasion: ValueContext,
) -> Slot:
    """A value that another record has there, or one made from the schema."""

    def pick() -> JsonValue:
        keys = store.keys(table.name)
        value = (store.get(table.name, occasion.rng.choice(keys)) or {}).get(at[-1]) if keys else None
        if isinstance(value, str | int | float) and model.find_fault(schema, value, request=True) is None:
            return value
        others = {path: slot for path, slot in occasion.slots.items() if path != at}
        return ValueGenerator(model.requests).make(schema, at, replace(occasion, slots=others))

    return pick


def _sample_identity(model: DocumentModel, store: ResourceStore, table: ResourceTable, rng: random.Random) -> Slot:
    return lambda: model.identity_value(store, table, rng.choice(store.keys(table.name)))


def _sample_shown_record(model: DocumentModel, store: ResourceStore, table: ResourceTable, rng: random.Random) -> Slot:
    def pick() -> JsonObject:
        keys = store.keys(table.name)
        if not keys:
            raise OmitValue(f"there is no {table.noun}")
        return model.viewer.show(store, store.get(table.name, rng.choice(keys)) or {}, table.schema)

    return pick


def _sample_filters(action: ListAction, model: DocumentModel, store: ResourceStore, rng: random.Random) -> JsonObject:
    """Values for some of a list's parameters, as a record has them."""
    arguments: JsonObject = {}
    keys = store.keys(action.table.name)
    for condition in action.query.conditions if keys else ():
        parameter = next((p for p in action.inputs.parameters if p.name == condition.parameter), None)
        if parameter is None or not (parameter.required or rng.random() < _GIVEN):
            continue
        record = store.get(action.table.name, rng.choice(keys)) or {}
        values = [v for path in condition.paths for v in find_values(store, record, path) if v is not None]
        value = rng.choice(values) if values else None
        wanted = [value] if condition.test == "any" else value
        if value is not None and model.find_fault(parameter.schema, wanted, request=True) is None:
            arguments[condition.parameter] = wanted
    return arguments


def _sample_path_arguments(
    action: OperationAction, model: DocumentModel, store: ResourceStore, rng: random.Random
) -> JsonObject:
    """Arguments for the path's parameters: records that stand below one another."""
    for _ in range(_TRIES):
        arguments = _walk_path(action, model, store, rng)
        if arguments is not None:
            return arguments
    raise UnsupportedFeature("no records stand below one another as its path says")


def _walk_path(
    action: OperationAction, model: DocumentModel, store: ResourceStore, rng: random.Random
) -> JsonObject | None:
    arguments: JsonObject = {}
    before: tuple[str, JsonObject] | None = None
    for level in action.chain.levels:
        table = model.tables[level.table]
        fitting = [
            (key, record)
            for key, record in store.items(level.table)
            if before is None or is_below(level.relation, before, (key, record))
        ]
        if not fitting:
            return None
        before = rng.choice(fitting)
        if level.parameter is not None:
            arguments[level.parameter] = before[0] if table.identity == GENERATED_ID else before[1].get(table.identity)
            if table.identity == GENERATED_ID and table.identity_schema.get("type") in ("integer", "number"):
                arguments[level.parameter] = int(before[0])
        for scope in level.scopes:
            arguments[scope.parameter] = next(
                (v for v in find_values(store, before[1], scope.path) if v is not None), None
            )
    keys = store.keys(action.table.name)
    record = store.get(action.table.name, rng.choice(keys)) if keys else None
    for scope in action.chain.scopes:
        values = find_values(store, record or {}, scope.path)
        arguments[scope.parameter] = next((value for value in values if value is not None), None)
    return arguments

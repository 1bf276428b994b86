"""Arguments for a tool that fit a state: for trying an operation before anybody relies on it."""

import random
from dataclasses import replace

from environments.openapi.bodies import BODY
from environments.openapi.chains import is_below
from environments.openapi.derive import Kept
from environments.openapi.filling import slots_of
from environments.openapi.model import Model
from environments.openapi.reads import Action, Listing
from environments.openapi.references import LeftOut
from environments.openapi.relations import schema_at
from environments.openapi.selecting import values_at
from environments.openapi.store import Store, key_of
from environments.openapi.tables import ID, Table
from environments.openapi.values import Maker, Occasion, Omit, Path, Slot
from environments.openapi.writes import Creating, Linking, Unlinking, Updating
from trajectory import JsonObject, JsonValue

_TRIES = 20
_GIVEN = 0.5
"""Chance that an optional argument is given."""


def sample(kept: Kept, model: Model, store: Store, rng: random.Random) -> JsonObject:
    """Arguments that the operation should take at this state.

    Raises:
        LeftOut: None can be made.
    """
    action = kept.action
    occasion = Occasion(action.table.noun, rng.randint(0, 50), rng, model.moment(store))
    occasion.slots = _slots(kept, model, store, occasion)
    picked = _picked(action, model, store, rng)
    if isinstance(action, Listing):
        picked |= _narrowing(action, model, store, rng)
    arguments: JsonObject = {}
    required = set(kept.inputs.schema.get("required", ()))
    for parameter in kept.inputs.parameters:
        if parameter.name in picked and model.requests.look(parameter.schema).get("type") == "string":
            picked[parameter.name] = key_of(picked[parameter.name])  # everything in a path is a text
    for name, schema in kept.inputs.schema["properties"].items():
        if name in picked:
            arguments[name] = picked[name]
        elif name in required or (name in kept.inputs.fields and rng.random() < _GIVEN):
            try:
                arguments[name] = Maker(model.requests).make(schema, (kept.inputs.fields.get(name, name),), occasion)
            except Omit as reason:
                if name in required:
                    raise LeftOut(f"{name}: {reason}") from reason
    return arguments


def _slots(kept: Kept, model: Model, store: Store, occasion: Occasion) -> dict[Path, Slot]:
    """References of the body: to records that are there."""
    action, table = kept.action, kept.action.table
    references = action.references if isinstance(action, Creating | Updating) else []
    slots = slots_of(model, store, references, occasion)
    for reference in references:
        if reference.embedded:
            slots[reference.path] = _shown(model, store, model.tables[reference.table], occasion.rng)
    if isinstance(action, Updating) and action.by_body:
        slots[table.identity,] = _identity(model, store, table, occasion.rng)
    if isinstance(action, Linking | Unlinking) and action.by is not None:
        slots[action.by,] = slots[action.by, "*"] = _identity(model, store, table, occasion.rng)
        asked = schema_at(model.requests, kept.inputs.record_schema or {}, (action.by,)) or {}
        if asked.get("type") == "array":
            del slots[action.by,]
    inner = ((BODY,) if kept.inputs.whole else ()) + kept.inputs.record_path
    made = {(*inner, *path): slot for path, slot in slots.items()}
    for name, schema in model.requests.properties(kept.inputs.record_schema or {}).items():
        if isinstance(action, Creating | Updating) and name != table.identity:
            made.setdefault((*inner, name), _like_others(model, store, table, schema, (*inner, name), occasion))
    if isinstance(action, Linking):
        made[action.by,] = made.get((action.by,)) or _identity(model, store, table, occasion.rng)
    return made


def _like_others(model: Model, store: Store, table: Table, schema: JsonObject, at: Path, occasion: Occasion) -> Slot:
    """A value that another record has there, or one made from the schema."""

    def pick() -> JsonValue:
        keys = store.keys(table.name)
        value = (store.get(table.name, occasion.rng.choice(keys)) or {}).get(at[-1]) if keys else None
        if isinstance(value, str | int | float) and model.fault(schema, value, request=True) is None:
            return value
        others = {path: slot for path, slot in occasion.slots.items() if path != at}
        return Maker(model.requests).make(schema, at, replace(occasion, slots=others))

    return pick


def _identity(model: Model, store: Store, table: Table, rng: random.Random) -> Slot:
    return lambda: model.identity_value(store, table, rng.choice(store.keys(table.name)))


def _shown(model: Model, store: Store, table: Table, rng: random.Random) -> Slot:
    def pick() -> JsonObject:
        keys = store.keys(table.name)
        if not keys:
            raise Omit(f"there is no {table.noun}")
        return model.viewer.show(store, store.get(table.name, rng.choice(keys)) or {}, table.schema)

    return pick


def _narrowing(action: Listing, model: Model, store: Store, rng: random.Random) -> JsonObject:
    """Values for some of a list's parameters, as a record has them."""
    found: JsonObject = {}
    keys = store.keys(action.table.name)
    for condition in action.query.conditions if keys else ():
        parameter = next((p for p in action.inputs.parameters if p.name == condition.parameter), None)
        if parameter is None or not (parameter.required or rng.random() < _GIVEN):
            continue
        record = store.get(action.table.name, rng.choice(keys)) or {}
        values = [v for path in condition.paths for v in values_at(store, record, path) if v is not None]
        value = rng.choice(values) if values else None
        wanted = [value] if condition.test == "any" else value
        if value is not None and model.fault(parameter.schema, wanted, request=True) is None:
            found[condition.parameter] = wanted
    return found


def _picked(action: Action, model: Model, store: Store, rng: random.Random) -> JsonObject:
    """Arguments for the path's parameters: records that stand below one another."""
    for _ in range(_TRIES):
        found = _walk(action, model, store, rng)
        if found is not None:
            return found
    raise LeftOut("no records stand below one another as its path says")


def _walk(action: Action, model: Model, store: Store, rng: random.Random) -> JsonObject | None:
    found: JsonObject = {}
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
            found[level.parameter] = before[0] if table.identity == ID else before[1].get(table.identity)
            if table.identity == ID and table.identity_schema.get("type") in ("integer", "number"):
                found[level.parameter] = int(before[0])
        for scope in level.scopes:
            found[scope.parameter] = next((v for v in values_at(store, before[1], scope.path) if v is not None), None)
    keys = store.keys(action.table.name)
    record = store.get(action.table.name, rng.choice(keys)) if keys else None
    for scope in action.chain.scopes:
        values = values_at(store, record or {}, scope.path)
        found[scope.parameter] = next((value for value in values if value is not None), None)
    return found

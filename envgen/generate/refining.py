"""What every blueprint goes through before it becomes code: limits, references that lead somewhere, no two alike."""

from collections.abc import Iterable

from envgen.generate.blueprint import Blueprint, Column, Entity, LeftOut, Operation, final_choices
from trajectory import InputError

ENTITIES = 12
"""Tables that an environment has at most."""
OPERATIONS = 36
"""Tools that it has at most."""
FEWEST = 3
"""Tools that it has at least."""


def refined(blueprint: Blueprint) -> Blueprint:
    """The largest coherent part of a blueprint.

    Raises:
        InputError: Nothing is left to be played.
    """
    left_out = list(blueprint.left_out)
    kept = _largest_part(blueprint)
    for entity in blueprint.entities:
        if entity.table not in kept:
            left_out.append(
                LeftOut(what=entity.table, reason=f"beyond the {ENTITIES} tables that belong together most")
            )
    entities = _named([_loose(entity, kept) for entity in blueprint.entities if entity.table in kept])
    operations = _distinct(_usable(blueprint.operations, entities, left_out), left_out)
    operations = _limited(operations, left_out)
    entities = [_settable(entity, operations) for entity in _ordered(entities)]
    reason = _unplayable(operations)
    if reason:
        reasons = "; ".join(f"{one.what}: {one.reason}" for one in left_out[:3])
        raise InputError(f"{blueprint.source.name}: nothing usable: {reason}" + (f" ({reasons})" if reasons else ""))
    return blueprint.model_copy(
        update={"entities": tuple(entities), "operations": tuple(operations), "left_out": tuple(left_out)}
    )


def _unplayable(operations: list[Operation]) -> str:
    """Why no task could be made of the tools; empty if some can."""
    if len(operations) < FEWEST:
        return f"{len(operations)} tools are left, fewer than {FEWEST}"
    if not any(operation.action in ("get", "list") for operation in operations):
        return "no tool shows a record"
    return ""


def _largest_part(blueprint: Blueprint) -> set[str]:
    """Tables to keep: those with most tools, joined by what they mean, until the limit is reached."""
    weight = {entity.table: 0 for entity in blueprint.entities}
    for operation in blueprint.operations:
        weight[operation.table] += 1 + (operation.action != "list")
    used = [table for table in weight if weight[table]]
    if len(used) <= ENTITIES:
        return _with_targets(blueprint, used)
    near = {table: set[str]() for table in weight}
    for entity in blueprint.entities:
        for column in entity.columns:
            if column.references in near:
                near[entity.table].add(column.references)
                near[column.references].add(entity.table)
    kept = [max(used, key=lambda table: (weight[table] * (1 + len(near[table])), table))]
    while len(kept) < ENTITIES:
        rest = [table for table in used if table not in kept]
        kept.append(max(rest, key=lambda table: (len(near[table] & set(kept)) > 0, weight[table], table)))
    return set(kept)


def _with_targets(blueprint: Blueprint, tables: list[str]) -> set[str]:
    """Tables, and those that their records must mean."""
    kept, waiting = set(tables), list(tables)
    while waiting:
        for column in blueprint.entity(waiting.pop()).columns:
            if column.references and column.required and column.references not in kept:
                kept.add(column.references)
                waiting.append(column.references)
    return kept


def _loose(entity: Entity, kept: set[str]) -> Entity:
    """An entity whose references lead to tables that are there; others become plain values."""
    columns = []
    for column in entity.columns:
        if column.references and column.references not in kept:
            pool = tuple(f"{column.name}-{n}" if column.kind != "whole" else 5000 + n for n in range(1, 9))
            column = column.model_copy(update={"references": "", "pool": pool})
        columns.append(column)
    return entity.model_copy(update={"columns": tuple(columns)})


def _named(entities: list[Entity]) -> list[Entity]:
    """Entities in which columns that are called like another entity's key mean its records; numbers have bounds."""
    found = []
    for entity in entities:
        columns = []
        for column in entity.columns:
            if column.name != entity.key and not column.references and column.name.endswith("_id"):
                target = _meant(column, entities)
                if target is not None and not entity.rows:
                    column = column.model_copy(update={"references": target.table, "pool": ()})
            columns.append(_bounded(column) if column.name != entity.key else column)
        found.append(entity.model_copy(update={"columns": tuple(columns)}))
    return found


def _meant(column: Column, entities: list[Entity]) -> Entity | None:
    noun = column.name.removesuffix("_id")
    found = [
        one for one in entities if one.noun == noun or one.noun.endswith(f"_{noun}") or noun.endswith(f"_{one.noun}")
    ]
    found = [one for one in found if one.column(one.key).kind == column.kind]
    return min(found, key=lambda one: (one.noun != noun, len(one.noun))) if found else None


_SIGNED = (
    "balance",
    "change",
    "delta",
    "latitude",
    "longitude",
    "lat",
    "lon",
    "lng",
    "offset",
    "temperature",
    "x",
    "y",
    "z",
)
_MOST = 1_000_000


def _bounded(column: Column) -> Column:
    """Numbers of which no limits are stated get those that their name and values suggest."""
    if column.kind not in ("whole", "number") or column.references:
        return column
    values = [value for value in column.pool if isinstance(value, int | float)]
    if column.low is None and column.name.split("_")[-1] not in _SIGNED and all(value >= 0 for value in values):
        column = column.model_copy(update={"low": 0})
    if column.high is None:
        column = column.model_copy(update={"high": max([_MOST, *(10 * abs(value) for value in values)])})
    return column


def _usable(operations: Iterable[Operation], entities: list[Entity], left_out: list[LeftOut]) -> list[Operation]:
    known = {entity.table: entity for entity in entities}
    found = []
    for operation in operations:
        entity = known.get(operation.table)
        if entity is None:
            left_out.append(LeftOut(what=operation.name, reason=f"{operation.table} is left out"))
            continue
        if operation.action == "move" and operation.sets not in (entity.status.choices if entity.status else ()):
            left_out.append(LeftOut(what=operation.name, reason=f"{operation.sets} is no status of {operation.table}"))
            continue
        found.append(operation)
    return found


def _distinct(operations: list[Operation], left_out: list[LeftOut]) -> list[Operation]:
    """Operations without those that do the same as another."""
    seen: dict[tuple[object, ...], str] = {}
    found = []
    for operation in operations:
        fields = operation.fields if operation.action in ("list", "create", "update") else ()
        does = (operation.action, operation.table, fields, operation.needed, operation.sets, operation.search)
        if does in seen:
            left_out.append(LeftOut(what=operation.name, reason=f"it does the same as {seen[does]}"))
        else:
            seen[does] = operation.name
            found.append(operation)
    return found


def _limited(operations: list[Operation], left_out: list[LeftOut]) -> list[Operation]:
    if len(operations) <= OPERATIONS:
        return operations
    for operation in operations[OPERATIONS:]:
        left_out.append(LeftOut(what=operation.name, reason=f"beyond the limit of {OPERATIONS} tools"))
    return operations[:OPERATIONS]


def _ordered(entities: list[Entity]) -> list[Entity]:
    """Entities after those that they refer to; references that close a circle need not be there."""
    waiting, done, found = list(entities), set[str](), list[Entity]()
    while waiting:
        ready = next((one for one in waiting if _targets(one) <= done | {one.table}), None)
        if ready is None:
            ready = min(waiting, key=lambda one: (len(_targets(one) - done), one.table))
            ready = _opened(ready, done)
        else:
            ready = _opened(ready, done)
        waiting = [one for one in waiting if one.table != ready.table]
        done.add(ready.table)
        found.append(ready)
    return found


def _targets(entity: Entity) -> set[str]:
    return {column.references for column in entity.columns if column.references and column.required}


def _opened(entity: Entity, done: set[str]) -> Entity:
    columns = tuple(
        column.model_copy(update={"required": False}) if column.references and column.references not in done else column
        for column in entity.columns
    )
    return entity.model_copy(update={"columns": columns})


def _settable(entity: Entity, operations: list[Operation]) -> Entity:
    """An entity whose new records can be made: what no maker is told and nothing starts with may be missing."""
    makers = [operation for operation in operations if operation.table == entity.table and operation.action == "create"]
    return entity.model_copy(update={"columns": tuple(_column(entity, column, makers) for column in entity.columns)})


def _column(entity: Entity, column: Column, makers: list[Operation]) -> Column:
    told = all(column.name in maker.needed for maker in makers)
    starts = column.automatic or column.kind in ("flag", "texts") or column.name == entity.key
    starts = starts or (column.kind == "choice" and column == entity.status and bool(starting(entity)))
    if told and makers and not column.references and not entity.rows:
        return column.model_copy(update={"required": True})
    return column if told or starts else column.model_copy(update={"required": False})


def starting(entity: Entity) -> str:
    """What the status of a new record is."""
    status, final = entity.status, final_choices(entity)
    return next((choice for choice in status.choices if choice not in final), "") if status else ""

"""What every blueprint goes through before it becomes code: limits, references that lead somewhere, no two alike."""

from collections.abc import Callable, Iterable

from trajsmith.envgen.generate.blueprint import (
    Blueprint,
    Entity,
    SkippedItem,
    TableColumn,
    ToolBlueprint,
    find_final_choices,
)
from trajsmith.records import InputError

MAX_ENTITIES = 12
"""Tables that an environment has at most."""
MAX_OPERATIONS = 36
"""Tools that it has at most."""
MIN_OPERATIONS = 3
"""Tools that it has at least."""
_REOPENING = frozenset({"reopen", "restore", "reactivate", "unarchive", "undelete", "uncancel"})


def refine_blueprint(blueprint: Blueprint) -> Blueprint:
    """Return the largest coherent part of a blueprint.

    Raises:
        InputError: Nothing is left to be played.
    """
    left_out = list(blueprint.left_out)
    tables = _find_largest_part(blueprint)
    for entity in blueprint.entities:
        if entity.table not in tables:
            left_out.append(
                SkippedItem(what=entity.table, reason=f"beyond the {MAX_ENTITIES} tables that belong together most")
            )
    entities = _link_named_columns(
        [_drop_dangling_references(entity, tables) for entity in blueprint.entities if entity.table in tables]
    )
    operations = _drop_duplicates(_keep_usable(blueprint.operations, entities, left_out), left_out)
    operations = _limit_operations(operations, left_out)
    entities = [_make_creatable(entity, operations) for entity in _order_by_reference(entities)]
    reopened = {one.table for one in operations if one.action == "move" and _REOPENING & set(one.name.split("_"))}
    entities = [one.model_copy(update={"reopens": one.table in reopened}) for one in entities]
    reason = _find_task_obstacle(operations)
    if reason:
        reasons = "; ".join(f"{one.what}: {one.reason}" for one in left_out[:3])
        raise InputError(f"{blueprint.source.name}: nothing usable: {reason}" + (f" ({reasons})" if reasons else ""))
    return blueprint.model_copy(
        update={"entities": tuple(entities), "operations": tuple(operations), "left_out": tuple(left_out)}
    )


def _find_task_obstacle(operations: list[ToolBlueprint]) -> str:
    """Return the reason why no task can be built from the tools; empty if one can."""
    if len(operations) < MIN_OPERATIONS:
        return f"{len(operations)} tools are left, fewer than {MIN_OPERATIONS}"
    if not any(operation.action in ("get", "list") for operation in operations):
        return "no tool shows a record"
    return ""


def _find_largest_part(blueprint: Blueprint) -> set[str]:
    """Tables to keep: those with most tools, joined by what they mean, until the limit is reached."""
    weight = {entity.table: 0 for entity in blueprint.entities}
    for operation in blueprint.operations:
        weight[operation.table] += 1 + (operation.action != "list")
    used = [table for table in weight if weight[table]]
    if len(used) <= MAX_ENTITIES:
        return _add_targets(blueprint, used)
    near = {table: set[str]() for table in weight}
    for entity in blueprint.entities:
        for column in entity.columns:
            if column.references in near:
                near[entity.table].add(column.references)
                near[column.references].add(entity.table)
    selected = [max(used, key=lambda table: (weight[table] * (1 + len(near[table])), table))]
    while len(selected) < MAX_ENTITIES:
        rest = [table for table in used if table not in selected]
        selected.append(max(rest, key=lambda table: (len(near[table] & set(selected)) > 0, weight[table], table)))
    return set(selected)


def _add_targets(blueprint: Blueprint, tables: list[str]) -> set[str]:
    """Tables, and those that their records must mean."""
    closure, waiting = set(tables), list(tables)
    while waiting:
        for table in sorted(_find_targets(blueprint.entity(waiting.pop())) - closure):
            closure.add(table)
            waiting.append(table)
    return closure


def _drop_dangling_references(entity: Entity, table_names: set[str]) -> Entity:
    """An entity whose references lead to tables that are there; others become plain values."""

    def drop(column: TableColumn) -> TableColumn:
        if not column.references or column.references in table_names:
            return column
        pool = tuple(f"{column.name}-{n}" if column.kind != "whole" else 5000 + n for n in range(1, 9))
        return column.model_copy(update={"references": "", "pool": pool})

    return _change_columns(entity, drop)


def _change_columns(entity: Entity, change: Callable[[TableColumn], TableColumn]) -> Entity:
    """Return an entity with changed columns, also those of the records inside its own."""
    columns = (
        change(column.model_copy(update={"columns": tuple(map(change, column.columns))})) for column in entity.columns
    )
    return entity.model_copy(update={"columns": tuple(columns)})


def _link_named_columns(entities: list[Entity]) -> list[Entity]:
    """Entities in which columns that are called like another entity's key mean its records; numbers have bounds."""
    refined_entities = []
    for entity in entities:

        def link(column: TableColumn, entity: Entity = entity) -> TableColumn:
            if column.name == entity.key:
                return column
            if not column.references and column.name.endswith("_id"):
                target = _find_meant_entity(column, entities)
                if target is not None and not entity.rows:
                    column = column.model_copy(update={"references": target.table, "pool": ()})
            return _bound_numbers(column)

        refined_entities.append(_change_columns(entity, link))
    return refined_entities


def _find_meant_entity(column: TableColumn, entities: list[Entity]) -> Entity | None:
    noun = column.name.removesuffix("_id")
    candidates = [
        one for one in entities if one.noun == noun or one.noun.endswith(f"_{noun}") or noun.endswith(f"_{one.noun}")
    ]
    candidates = [one for one in candidates if one.column(one.key).kind == column.kind]
    return min(candidates, key=lambda one: (one.noun != noun, len(one.noun))) if candidates else None


_SIGNED = (
    "balance", "change", "delta", "latitude", "longitude", "lat", "lon", "lng", "offset", "temperature", "x", "y", "z",
)  # fmt: skip
_MOST = 1_000_000


def _bound_numbers(column: TableColumn) -> TableColumn:
    """Numbers of which no limits are stated get those that their name and values suggest."""
    if column.kind not in ("whole", "number") or column.references:
        return column
    values = [value for value in column.pool if isinstance(value, int | float)]
    if column.low is None and column.name.split("_")[-1] not in _SIGNED and all(value >= 0 for value in values):
        column = column.model_copy(update={"low": 0})
    if column.high is None:
        column = column.model_copy(update={"high": max([_MOST, *(10 * abs(value) for value in values)])})
    return column


def _keep_usable(
    operations: Iterable[ToolBlueprint], entities: list[Entity], left_out: list[SkippedItem]
) -> list[ToolBlueprint]:
    known = {entity.table: entity for entity in entities}
    usable = []
    for operation in operations:
        entity = known.get(operation.table)
        if entity is None:
            left_out.append(SkippedItem(what=operation.name, reason=f"{operation.table} is left out"))
            continue
        column = entity.column(operation.column) if operation.column in entity.names else None
        known_values = (True, False) if column and column.kind == "flag" else column.choices if column else ()
        if operation.action == "move" and operation.sets not in known_values:
            reason = f"{operation.sets} is no {operation.column or 'status'} of {operation.table}"
            left_out.append(SkippedItem(what=operation.name, reason=reason))
            continue
        holder = known.get(operation.owner) if operation.owner else entity
        if operation.column and operation.column not in (holder.names if holder else ()):
            left_out.append(SkippedItem(what=operation.name, reason=f"{operation.column} is left out"))
            continue
        if (operation.owner or operation.action in ("link", "unlink")) and not (
            holder and holder.column(operation.column).references
        ):
            left_out.append(SkippedItem(what=operation.name, reason=f"what {operation.column} means is left out"))
            continue
        usable.append(operation)
    return usable


def _drop_duplicates(operations: list[ToolBlueprint], left_out: list[SkippedItem]) -> list[ToolBlueprint]:
    """Operations without those that do the same as another."""
    seen: dict[tuple[object, ...], str] = {}
    distinct = []
    for operation in operations:
        fields = operation.fields if operation.action in ("list", "create", "update") else ()
        how = (operation.needed, operation.owner, operation.column, operation.sets, operation.search, operation.ranges)
        does = (operation.action, operation.table, fields, *how)
        if does in seen:
            left_out.append(SkippedItem(what=operation.name, reason=f"it does the same as {seen[does]}"))
        else:
            seen[does] = operation.name
            distinct.append(operation)
    return distinct


def _limit_operations(operations: list[ToolBlueprint], left_out: list[SkippedItem]) -> list[ToolBlueprint]:
    if len(operations) <= MAX_OPERATIONS:
        return operations
    for operation in operations[MAX_OPERATIONS:]:
        left_out.append(SkippedItem(what=operation.name, reason=f"beyond the limit of {MAX_OPERATIONS} tools"))
    return operations[:MAX_OPERATIONS]


def _order_by_reference(entities: list[Entity]) -> list[Entity]:
    """Entities after those that they refer to; references that close a circle need not be there."""
    waiting, done, in_order = list(entities), set[str](), list[Entity]()
    while waiting:
        usable = [one for one in waiting if _find_targets(one) <= done | {one.table}]
        ready = next((one for one in usable if _find_targets(one, optional=True) <= done | {one.table}), None)
        ready = ready or next(iter(usable), None)
        if ready is None:
            ready = min(waiting, key=lambda one: (len(_find_targets(one) - done), one.table))
            ready = _open_cycles(ready, done)
        else:
            ready = _open_cycles(ready, done)
        waiting = [one for one in waiting if one.table != ready.table]
        done.add(ready.table)
        in_order.append(ready)
    return in_order


def _find_targets(entity: Entity, optional: bool = False) -> set[str]:
    """Return the tables whose records a record must mean, with those that it may mean if wanted."""
    columns = (one for column in entity.columns for one in (column, *column.columns))
    return {column.references for column in columns if column.references and (column.required or optional)}


def _open_cycles(entity: Entity, done: set[str]) -> Entity:
    def open_one(column: TableColumn) -> TableColumn:
        is_open = column.references and column.references not in done
        return column.model_copy(update={"required": False}) if is_open else column

    return _change_columns(entity, open_one)


def _make_creatable(entity: Entity, operations: list[ToolBlueprint]) -> Entity:
    """An entity whose new records can be made: what no maker is told and nothing starts with may be missing."""
    makers = [operation for operation in operations if operation.table == entity.table and operation.action == "create"]
    return entity.model_copy(
        update={"columns": tuple(_make_column_creatable(entity, column, makers) for column in entity.columns)}
    )


def _make_column_creatable(entity: Entity, column: TableColumn, makers: list[ToolBlueprint]) -> TableColumn:
    always_required = all(column.name in maker.needed for maker in makers)
    starts = column.automatic or column.kind in ("flag", "texts") or column.name == entity.key
    starts = starts or (column.kind == "records" and not column.shortest)
    starts = starts or (column.kind == "choice" and column == entity.status and bool(find_starting_status(entity)))
    if always_required and makers and not column.references and not entity.rows:
        return column.model_copy(update={"required": True})
    return column if always_required or starts else column.model_copy(update={"required": False})


def find_starting_status(entity: Entity) -> str:
    """Return the status of a new record."""
    status, final = entity.status, find_final_choices(entity)
    return next((choice for choice in status.choices if choice not in final), "") if status else ""

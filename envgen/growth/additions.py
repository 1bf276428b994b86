"""Propose additions to a blueprint: tables, states, groups, look-ups.

Agent-World's complexification (3.1) asks an agent to enrich a database; here each idea is a change of the blueprint
that leaves every tool, parameter and rule as it was and adds to them, so that it needs no model and can be undone.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from trajsmith.envgen.generate.blueprint import (
    Blueprint,
    Entity,
    Scalar,
    TableColumn,
    ToolBlueprint,
    find_final_choices,
)
from trajsmith.envgen.generate.columns import NOW, invent_texts
from trajsmith.envgen.generate.identifiers import to_class_name, to_words
from trajsmith.phrasing.words import with_article
from trajsmith.records import derive_seed

MAX_ROWS = 60
"""Rows of a new table, where tables hold real rows."""
MAX_GROUPS = 8
"""Rows of a new table that others are sorted by."""


@dataclass(frozen=True)
class Addition:
    """One growth step."""

    name: str
    """Stable name, for records: "reviews of visit"."""
    says: str
    apply: Callable[[Blueprint], Blueprint] = field(repr=False)


def propose_additions(blueprint: Blueprint, seed: int) -> Iterator[Addition]:
    """Return steps that fit a blueprint, the most useful first; the seed decides which entities they concern.

    Each is given the blueprint as the steps before have left it.
    """
    busy = order_by_use(blueprint)
    rng = random.Random(derive_seed(seed, blueprint.name, "growth"))
    records = [_propose_reviews, _propose_reminders, _propose_holds, _propose_notes]
    rng.shuffle(records)
    about = [busy[place % len(busy)] for place in range(len(records))]
    lives = [entity for entity in busy if entity.status is None]
    yield records[0](blueprint, about[0])
    if lives:
        yield _propose_lifecycle(lives[0])
    yield _propose_groups(blueprint, busy[0] if len(busy) == 1 else busy[1])
    yield _propose_lookups()
    for make, entity in zip(records[1:], about[1:], strict=True):
        yield make(blueprint, entity)
    yield from (_propose_lifecycle(entity) for entity in lives[1:3])


def order_by_use(blueprint: Blueprint) -> list[Entity]:
    """Return the entities, those with most tools and references first."""

    def use(entity: Entity) -> tuple[int, str]:
        tools = sum(operation.table == entity.table for operation in blueprint.operations)
        return -(tools + 2 * len(blueprint.referrers(entity.table))), entity.table

    return sorted(blueprint.entities, key=use)


def _propose_reviews(blueprint: Blueprint, about: Entity) -> Addition:
    columns = (
        TableColumn(name="rating", kind="whole", low=1, high=5, pool=(5, 4, 3, 2, 1), description="One to five."),
        TableColumn(
            name="comment", kind="text", required=False, longest=400, pool=tuple(invent_texts("comment", "review"))
        ),
        TableColumn(name="written_at", kind="moment", automatic=True),
    )
    return _propose_table(about, "review", "reviews", columns, "What somebody thought", changes=("rating", "comment"))


def _propose_reminders(blueprint: Blueprint, about: Entity) -> Addition:
    columns = (
        TableColumn(name="day", kind="date", description="The day that it is for."),
        TableColumn(name="message", kind="text", longest=200, pool=tuple(invent_texts("message", "reminder"))),
        TableColumn(name="status", kind="choice", choices=("open", "done", "cancelled")),
    )
    return _propose_table(about, "reminder", "reminders", columns, "Something to see to", changes=("day", "message"))


def _propose_holds(blueprint: Blueprint, about: Entity) -> Addition:
    columns = (
        TableColumn(name="start_on", kind="date"),
        TableColumn(name="end_on", kind="date"),
        TableColumn(name="reason", kind="choice", choices=("maintenance", "request", "dispute", "review")),
        TableColumn(name="status", kind="choice", choices=("planned", "active", "expired")),
    )
    return _propose_table(
        about, "hold", "holds", columns, "Days on which nothing is done", changes=("end_on", "reason")
    )


def _propose_notes(blueprint: Blueprint, about: Entity) -> Addition:
    columns = (
        TableColumn(name="message", kind="text", longest=400, pool=tuple(invent_texts("message", "note"))),
        TableColumn(name="pinned", kind="flag"),
        TableColumn(name="created_at", kind="moment", automatic=True),
    )
    return _propose_table(about, "note", "notes", columns, "What somebody wrote down", changes=("message", "pinned"))


def _propose_table(
    about: Entity, noun: str, many: str, columns: tuple[TableColumn, ...], label: str, changes: tuple[str, ...]
) -> Addition:
    """A table whose records belong to those of another one, with tools of its own."""

    def apply(blueprint: Blueprint) -> Blueprint:
        parent = blueprint.entity(about.table)
        one, table = f"{parent.noun}_{noun}", f"{parent.noun}_{many}"
        if _has_entity(blueprint, one, table):
            return blueprint
        meant = parent.column(parent.key)
        reference = TableColumn(
            name=_build_reference_name(parent), kind=meant.kind, references=parent.table,
            description=f"The {to_words(parent.noun)} that it belongs to.",
        )  # fmt: skip
        entity = _build_entity(one, table, (reference, *columns), f"{label} about {with_article(parent.noun)}")
        entity = _add_rows(blueprint, entity, MAX_ROWS)
        added = (*blueprint.operations, *_build_tools(entity, reference.name, changes))
        return blueprint.model_copy(update={"entities": (*blueprint.entities, entity), "operations": added})

    says = f"{many} of {to_words(about.table)}: a table that refers to them, with its tools"
    return Addition(f"{many} of {about.table}", says, apply)


def _propose_groups(blueprint: Blueprint, about: Entity) -> Addition:
    """A table that records of another one may belong to."""

    def apply(blueprint: Blueprint) -> Blueprint:
        member = blueprint.entity(about.table)
        one, table = f"{member.noun}_category", f"{member.noun}_categories"
        if _has_entity(blueprint, one, table):
            return blueprint
        columns = (
            TableColumn(
                name="name", kind="text", unique=True, longest=80, pool=tuple(invent_texts("name", "category"))
            ),
            TableColumn(name="description", kind="text", required=False, pool=tuple(invent_texts("description", one))),
        )
        group = _build_entity(one, table, columns, f"What {to_words(member.table)} are sorted by")
        group = _add_rows(blueprint, group, MAX_GROUPS)
        column = TableColumn(
            name=group.key,
            kind="text",
            required=False,
            references=table,
            description=f"Its {to_words(one)}, if it has one.",
        )
        entities = tuple(
            _add_column(entity, column, [row[0] for row in group.rows]) if entity.table == member.table else entity
            for entity in blueprint.entities
        )
        assign = ToolBlueprint(
            name=f"sort_{member.noun}", action="update", table=member.table, fields=(group.key,),
            description=f"Put {with_article(member.noun)} into {with_article(one)}.",
        )  # fmt: skip
        listed = ToolBlueprint(
            name=f"list_{member.table}_in_category", action="list", table=member.table, fields=(group.key,),
            needed=(group.key,), description=f"List the {to_words(member.table)} of {with_article(one)}.",
        )  # fmt: skip
        operations = (*blueprint.operations, *_build_tools(group, "", ("name", "description")), assign, listed)
        return blueprint.model_copy(update={"entities": (group, *entities), "operations": operations})

    says = f"categories that {to_words(about.table)} may belong to, with tools to sort them"
    return Addition(f"categories of {about.table}", says, apply)


def _propose_lifecycle(about: Entity) -> Addition:
    """A status that records go through, with a last one that they keep."""
    choices = ("active", "suspended", "archived")

    def apply(blueprint: Blueprint) -> Blueprint:
        entity = blueprint.entity(about.table)
        name = "status" if "status" not in entity.names else f"{entity.noun}_status"
        column = TableColumn(name=name, kind="choice", choices=choices, description="How far it has come.")
        entities = tuple(
            _add_column(one, column, ["active", "active", "suspended"]) if one.table == entity.table else one
            for one in blueprint.entities
        )
        moves = tuple(
            ToolBlueprint(
                name=f"{verb}_{entity.noun}", action="move", table=entity.table, sets=sets,
                description=f"{verb.capitalize()} {with_article(entity.noun)}.",
            )
            for verb, sets in (("suspend", "suspended"), ("resume", "active"), ("archive", "archived"))
        )  # fmt: skip
        listed = ToolBlueprint(
            name=f"list_{entity.table}_by_{name}", action="list", table=entity.table, fields=(name,), needed=(name,),
            description=f"List {to_words(entity.table)} by their status.",
        )  # fmt: skip
        operations = (*blueprint.operations, *moves, listed)
        return blueprint.model_copy(update={"entities": entities, "operations": operations})

    says = f"a status of {to_words(about.table)} that ends with archived, with tools that move it"
    return Addition(f"lifecycle of {about.table}", says, apply)


def _propose_lookups() -> Addition:
    """For references that nothing lists by, a tool that does."""

    def apply(blueprint: Blueprint) -> Blueprint:
        lookups = []
        for entity in blueprint.entities:
            lists = [one for one in blueprint.operations if one.table == entity.table and one.action == "list"]
            for column in entity.columns:
                if column.references and not any(one.needed == (column.name,) for one in lists):
                    whose = column.name.removesuffix("_id")
                    lookups.append(
                        ToolBlueprint(
                            name=f"list_{entity.table}_of_{whose}", action="list", table=entity.table,
                            fields=(column.name,), needed=(column.name,),
                            description=f"List the {to_words(entity.table)} of {with_article(whose)}.",
                        )
                    )  # fmt: skip
        return blueprint.model_copy(update={"operations": (*blueprint.operations, *lookups[:4])})

    return Addition("look-ups", "tools that list records by what they belong to", apply)


def _has_entity(blueprint: Blueprint, *names: str) -> bool:
    """Return True if an entity of this name exists, as after an earlier growth."""
    known = {entity.noun for entity in blueprint.entities} | {entity.table for entity in blueprint.entities}
    return not known.isdisjoint(names)


def _build_reference_name(parent: Entity) -> str:
    """The name of a column that holds a parent's key."""
    return parent.key if parent.key.startswith(parent.noun) else f"{parent.noun}_id"


def _build_entity(noun: str, table: str, columns: tuple[TableColumn, ...], description: str) -> Entity:
    key = TableColumn(name=f"{noun}_id", kind="text", description=f"Identifies the {to_words(noun)}.")
    prefix = noun.rpartition("_")[2][:3].upper() + "-"
    return Entity(
        table=table, noun=noun, cls=to_class_name(noun), key=key.name, prefix=prefix, start=0,
        description=description, columns=(key, *columns),
    )  # fmt: skip


def _build_tools(entity: Entity, reference: str, changes: tuple[str, ...]) -> list[ToolBlueprint]:
    noun, table = entity.noun, entity.table
    settable = [column for column in entity.columns[1:] if not column.automatic and column != entity.status]
    filters = tuple(filter(None, [reference, entity.status.name if entity.status else ""]))
    searched = any(column.kind == "text" and not column.references for column in entity.columns[1:])
    tools = [
        ToolBlueprint(name=f"get_{noun}", action="get", table=table, description=f"Show {with_article(noun)}."),
        ToolBlueprint(
            name=f"search_{table}",
            action="list",
            table=table,
            fields=filters,
            search="query" if searched else "",
            description=f"List {to_words(table)}, all or those that fit.",
        ),
        ToolBlueprint(
            name=f"add_{noun}",
            action="create",
            table=table,
            fields=tuple(column.name for column in settable),
            needed=tuple(column.name for column in settable if column.required),
            description=(f"Add {with_article(noun)}."),
        ),
        ToolBlueprint(
            name=f"update_{noun}",
            action="update",
            table=table,
            fields=changes,
            description=f"Change {with_article(noun)}.",
        ),
        ToolBlueprint(name=f"delete_{noun}", action="delete", table=table, description=f"Delete {with_article(noun)}."),
    ]
    verbs = {"done": "complete", "cancelled": "cancel", "active": "activate", "expired": "expire"}
    for choice in entity.status.choices[1:] if entity.status else ():
        name = f"{verbs.get(choice, f'mark_{choice}')}_{noun}"
        about = f"Mark {with_article(noun)} as {choice}."
        tools.append(ToolBlueprint(name=name, action="move", table=table, sets=choice, description=about))
    return tools


def _add_column(entity: Entity, column: TableColumn, values: list[Scalar | None]) -> Entity:
    """An entity with one more column; its real rows get values by turns."""
    rows = tuple((*row, values[place % len(values)] if values else None) for place, row in enumerate(entity.rows))
    return entity.model_copy(update={"columns": (*entity.columns, column), "rows": rows})


def _add_rows(blueprint: Blueprint, entity: Entity, count: int) -> Entity:
    """A new table with rows, where the environment holds real ones; elsewhere its seed states are drawn."""
    if not any(one.rows for one in blueprint.entities):
        return entity
    rng = random.Random(derive_seed(0, entity.table))
    rows = tuple(
        tuple(_invent_value(blueprint, entity, column, number, rng) for column in entity.columns)
        for number in range(1, count + 1)
    )
    return entity.model_copy(update={"rows": rows, "start": count})


def _invent_value(
    blueprint: Blueprint, entity: Entity, column: TableColumn, number: int, rng: random.Random
) -> Scalar | None:
    if column.name == entity.key:
        return f"{entity.prefix}{number}"
    if column.references:
        target = blueprint.entity(column.references)
        place = target.names.index(target.key)
        return rng.choice([row[place] for row in target.rows])
    if column.unique:
        first = column.pool[(number - 1) % len(column.pool)]
        return first if number <= len(column.pool) else f"{first} {number}"
    if column.kind == "choice":
        return rng.choice(
            [choice for choice in column.choices if choice not in find_final_choices(entity)] * 2 + [*column.choices]
        )
    if column.kind == "flag":
        return rng.random() < 0.3
    if column.kind in ("date", "moment"):
        return _invent_day(column, number, rng)
    return rng.choice(column.pool)


def _invent_day(column: TableColumn, number: int, rng: random.Random) -> str:
    """Dates so that what ends does not end before it started."""
    from datetime import timedelta

    days = number % 40 + (30 if column.name.startswith("end") else 0)
    when = NOW + timedelta(days=-days if column.automatic else days, minutes=rng.randint(0, 500))
    return when.isoformat() if column.kind == "moment" else when.date().isoformat()

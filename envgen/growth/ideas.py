"""What can be added to an environment that somebody already works with: tables, states, groups, look-ups.

Agent-World's complexification (3.1) asks an agent to enrich a database; here each idea is a change of the blueprint
that leaves every tool, parameter and rule as it was and adds to them, so that it needs no model and can be undone.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from envgen.generate.blueprint import Blueprint, Column, Entity, Operation, Scalar, final_choices
from envgen.generate.columns import NOW, invented
from envgen.generate.spelling import class_name, words
from environments.openapi.words import a
from trajectory import derive_seed

ROWS = 60
"""Rows of a new table, where tables hold real rows."""
GROUPS = 8
"""Rows of a new table that others are sorted by."""


@dataclass(frozen=True)
class Addition:
    """One step of growth."""

    name: str
    """Stable name, for records: "reviews of visit"."""
    says: str
    apply: Callable[[Blueprint], Blueprint] = field(repr=False)


def ideas(blueprint: Blueprint, seed: int) -> Iterator[Addition]:
    """Steps that fit a blueprint, the most telling first; which entities they are about depends on the seed.

    Each is given the blueprint as the steps before have left it.
    """
    busy = by_use(blueprint)
    rng = random.Random(derive_seed(seed, blueprint.name, "growth"))
    records = [_reviews, _reminders, _holds, _notes]
    rng.shuffle(records)
    about = [busy[place % len(busy)] for place in range(len(records))]
    lives = [entity for entity in busy if entity.status is None]
    yield records[0](blueprint, about[0])
    if lives:
        yield _lifecycle(lives[0])
    yield _groups(blueprint, busy[0] if len(busy) == 1 else busy[1])
    yield _lookups()
    for make, entity in zip(records[1:], about[1:], strict=True):
        yield make(blueprint, entity)
    yield from (_lifecycle(entity) for entity in lives[1:3])


def by_use(blueprint: Blueprint) -> list[Entity]:
    """Entities, those first that most tools and references are about."""

    def use(entity: Entity) -> tuple[int, str]:
        tools = sum(operation.table == entity.table for operation in blueprint.operations)
        return -(tools + 2 * len(blueprint.referrers(entity.table))), entity.table

    return sorted(blueprint.entities, key=use)


def _reviews(blueprint: Blueprint, about: Entity) -> Addition:
    columns = (
        Column(name="rating", kind="whole", low=1, high=5, pool=(5, 4, 3, 2, 1), description="One to five."),
        Column(name="comment", kind="text", required=False, longest=400, pool=tuple(invented("comment", "review"))),
        Column(name="written_at", kind="moment", automatic=True),
    )
    return _table(about, "review", "reviews", columns, "What somebody thought", changes=("rating", "comment"))


def _reminders(blueprint: Blueprint, about: Entity) -> Addition:
    columns = (
        Column(name="day", kind="date", description="The day that it is for."),
        Column(name="message", kind="text", longest=200, pool=tuple(invented("message", "reminder"))),
        Column(name="status", kind="choice", choices=("open", "done", "cancelled")),
    )
    return _table(about, "reminder", "reminders", columns, "Something to see to", changes=("day", "message"))


def _holds(blueprint: Blueprint, about: Entity) -> Addition:
    columns = (
        Column(name="start_on", kind="date"),
        Column(name="end_on", kind="date"),
        Column(name="reason", kind="choice", choices=("maintenance", "request", "dispute", "review")),
        Column(name="status", kind="choice", choices=("planned", "active", "expired")),
    )
    return _table(about, "hold", "holds", columns, "Days on which nothing is done", changes=("end_on", "reason"))


def _notes(blueprint: Blueprint, about: Entity) -> Addition:
    columns = (
        Column(name="message", kind="text", longest=400, pool=tuple(invented("message", "note"))),
        Column(name="pinned", kind="flag"),
        Column(name="created_at", kind="moment", automatic=True),
    )
    return _table(about, "note", "notes", columns, "What somebody wrote down", changes=("message", "pinned"))


def _table(
    about: Entity, noun: str, many: str, columns: tuple[Column, ...], what: str, changes: tuple[str, ...]
) -> Addition:
    """A table whose records belong to those of another one, with tools of its own."""

    def apply(blueprint: Blueprint) -> Blueprint:
        parent = blueprint.entity(about.table)
        one, table = f"{parent.noun}_{noun}", f"{parent.noun}_{many}"
        if _taken(blueprint, one, table):
            return blueprint
        meant = parent.column(parent.key)
        reference = Column(
            name=_reference_name(parent), kind=meant.kind, references=parent.table,
            description=f"The {words(parent.noun)} that it belongs to.",
        )  # fmt: skip
        made = _entity(one, table, (reference, *columns), f"{what} about {a(parent.noun)}")
        made = _with_rows(blueprint, made, ROWS)
        added = (*blueprint.operations, *_tools(made, reference.name, changes))
        return blueprint.model_copy(update={"entities": (*blueprint.entities, made), "operations": added})

    says = f"{many} of {words(about.table)}: a table that refers to them, with its tools"
    return Addition(f"{many} of {about.table}", says, apply)


def _groups(blueprint: Blueprint, about: Entity) -> Addition:
    """A table that records of another one may belong to."""

    def apply(blueprint: Blueprint) -> Blueprint:
        member = blueprint.entity(about.table)
        one, table = f"{member.noun}_category", f"{member.noun}_categories"
        if _taken(blueprint, one, table):
            return blueprint
        columns = (
            Column(name="name", kind="text", unique=True, longest=80, pool=tuple(invented("name", "category"))),
            Column(name="description", kind="text", required=False, pool=tuple(invented("description", one))),
        )
        group = _entity(one, table, columns, f"What {words(member.table)} are sorted by")
        group = _with_rows(blueprint, group, GROUPS)
        column = Column(
            name=group.key,
            kind="text",
            required=False,
            references=table,
            description=f"Its {words(one)}, if it has one.",
        )
        entities = tuple(
            _with_column(entity, column, [row[0] for row in group.rows]) if entity.table == member.table else entity
            for entity in blueprint.entities
        )
        assign = Operation(
            name=f"sort_{member.noun}", action="update", table=member.table, fields=(group.key,),
            description=f"Put {a(member.noun)} into {a(one)}.",
        )  # fmt: skip
        listed = Operation(
            name=f"list_{member.table}_in_category", action="list", table=member.table, fields=(group.key,),
            needed=(group.key,), description=f"List the {words(member.table)} of {a(one)}.",
        )  # fmt: skip
        operations = (*blueprint.operations, *_tools(group, "", ("name", "description")), assign, listed)
        return blueprint.model_copy(update={"entities": (group, *entities), "operations": operations})

    says = f"categories that {words(about.table)} may belong to, with tools to sort them"
    return Addition(f"categories of {about.table}", says, apply)


def _lifecycle(about: Entity) -> Addition:
    """A status that records go through, with a last one that they keep."""
    choices = ("active", "suspended", "archived")

    def apply(blueprint: Blueprint) -> Blueprint:
        entity = blueprint.entity(about.table)
        name = "status" if "status" not in entity.names else f"{entity.noun}_status"
        column = Column(name=name, kind="choice", choices=choices, description="How far it has come.")
        entities = tuple(
            _with_column(one, column, ["active", "active", "suspended"]) if one.table == entity.table else one
            for one in blueprint.entities
        )
        moves = tuple(
            Operation(
                name=f"{verb}_{entity.noun}", action="move", table=entity.table, sets=sets,
                description=f"{verb.capitalize()} {a(entity.noun)}.",
            )
            for verb, sets in (("suspend", "suspended"), ("resume", "active"), ("archive", "archived"))
        )  # fmt: skip
        listed = Operation(
            name=f"list_{entity.table}_by_{name}", action="list", table=entity.table, fields=(name,), needed=(name,),
            description=f"List {words(entity.table)} by their status.",
        )  # fmt: skip
        operations = (*blueprint.operations, *moves, listed)
        return blueprint.model_copy(update={"entities": entities, "operations": operations})

    says = f"a status of {words(about.table)} that ends with archived, with tools that move it"
    return Addition(f"lifecycle of {about.table}", says, apply)


def _lookups() -> Addition:
    """For references that nothing lists by, a tool that does."""

    def apply(blueprint: Blueprint) -> Blueprint:
        found = []
        for entity in blueprint.entities:
            lists = [one for one in blueprint.operations if one.table == entity.table and one.action == "list"]
            for column in entity.columns:
                if column.references and not any(one.needed == (column.name,) for one in lists):
                    whose = column.name.removesuffix("_id")
                    found.append(
                        Operation(
                            name=f"list_{entity.table}_of_{whose}", action="list", table=entity.table,
                            fields=(column.name,), needed=(column.name,),
                            description=f"List the {words(entity.table)} of {a(whose)}.",
                        )
                    )  # fmt: skip
        return blueprint.model_copy(update={"operations": (*blueprint.operations, *found[:4])})

    return Addition("look-ups", "tools that list records by what they belong to", apply)


def _taken(blueprint: Blueprint, *names: str) -> bool:
    """True if there is an entity of such a name, as after an earlier growth."""
    known = {entity.noun for entity in blueprint.entities} | {entity.table for entity in blueprint.entities}
    return not known.isdisjoint(names)


def _reference_name(parent: Entity) -> str:
    """The name of a column that holds a parent's key."""
    return parent.key if parent.key.startswith(parent.noun) else f"{parent.noun}_id"


def _entity(noun: str, table: str, columns: tuple[Column, ...], description: str) -> Entity:
    key = Column(name=f"{noun}_id", kind="text", description=f"Identifies the {words(noun)}.")
    prefix = noun.rpartition("_")[2][:3].upper() + "-"
    return Entity(
        table=table, noun=noun, cls=class_name(noun), key=key.name, prefix=prefix, start=0,
        description=description, columns=(key, *columns),
    )  # fmt: skip


def _tools(entity: Entity, reference: str, changes: tuple[str, ...]) -> list[Operation]:
    noun, table = entity.noun, entity.table
    told = [column for column in entity.columns[1:] if not column.automatic and column != entity.status]
    filters = tuple(filter(None, [reference, entity.status.name if entity.status else ""]))
    searched = any(column.kind == "text" and not column.references for column in entity.columns[1:])
    found = [
        Operation(name=f"get_{noun}", action="get", table=table, description=f"Show {a(noun)}."),
        Operation(
            name=f"search_{table}", action="list", table=table, fields=filters, search="query" if searched else "",
            description=f"List {words(table)}, all or those that fit.",
        ),
        Operation(
            name=f"add_{noun}", action="create", table=table, fields=tuple(column.name for column in told),
            needed=tuple(column.name for column in told if column.required), description=f"Add {a(noun)}.",
        ),
        Operation(
            name=f"update_{noun}", action="update", table=table, fields=changes, description=f"Change {a(noun)}."
        ),
        Operation(name=f"delete_{noun}", action="delete", table=table, description=f"Delete {a(noun)}."),
    ]  # fmt: skip
    verbs = {"done": "complete", "cancelled": "cancel", "active": "activate", "expired": "expire"}
    for choice in entity.status.choices[1:] if entity.status else ():
        name = f"{verbs.get(choice, f'mark_{choice}')}_{noun}"
        about = f"Mark {a(noun)} as {choice}."
        found.append(Operation(name=name, action="move", table=table, sets=choice, description=about))
    return found


def _with_column(entity: Entity, column: Column, values: list[Scalar | None]) -> Entity:
    """An entity with one more column; its real rows get values by turns."""
    rows = tuple((*row, values[place % len(values)] if values else None) for place, row in enumerate(entity.rows))
    return entity.model_copy(update={"columns": (*entity.columns, column), "rows": rows})


def _with_rows(blueprint: Blueprint, entity: Entity, count: int) -> Entity:
    """A new table with rows, where the environment holds real ones; elsewhere its seed states are drawn."""
    if not any(one.rows for one in blueprint.entities):
        return entity
    rng = random.Random(derive_seed(0, entity.table))
    rows = tuple(
        tuple(_value(blueprint, entity, column, number, rng) for column in entity.columns)
        for number in range(1, count + 1)
    )
    return entity.model_copy(update={"rows": rows, "start": count})


def _value(blueprint: Blueprint, entity: Entity, column: Column, number: int, rng: random.Random) -> Scalar | None:
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
            [choice for choice in column.choices if choice not in final_choices(entity)] * 2 + [*column.choices]
        )
    if column.kind == "flag":
        return rng.random() < 0.3
    if column.kind in ("date", "moment"):
        return _day(column, number, rng)
    return rng.choice(column.pool)


def _day(column: Column, number: int, rng: random.Random) -> str:
    """Dates so that what ends does not end before it started."""
    from datetime import timedelta

    days = number % 40 + (30 if column.name.startswith("end") else 0)
    when = NOW + timedelta(days=-days if column.automatic else days, minutes=rng.randint(0, 500))
    return when.isoformat() if column.kind == "moment" else when.date().isoformat()

"""The rules that the code keeps, in words."""

import textwrap
from collections.abc import Iterator

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, TableColumn, find_final_choices
from trajsmith.envgen.generate.code_behaviours import describe_behaviours, describe_permissions
from trajsmith.envgen.generate.identifiers import quote_text, to_words
from trajsmith.envgen.generate.phrase_slots import MONEY, name_many
from trajsmith.phrasing import is_noun, with_article


def render_policy(blueprint: Blueprint) -> str:
    """Return the policy's text, as the body of an indented triple-quoted string."""
    lines = [f"    {quote_text(f'# Rules of {blueprint.title}')}", ""]
    for number, rule in enumerate(render_rules(blueprint), 1):
        lines += textwrap.wrap(f"{number}. {quote_text(rule)}", 110, initial_indent="    ", subsequent_indent="       ")
    return "\n".join(lines)


def render_rules(blueprint: Blueprint) -> Iterator[str]:
    """Return the rules that the code enforces, one per line."""
    actions = {(operation.table, str(operation.action)) for operation in blueprint.operations}
    are_counted = all(entity.key_style == "counted" for entity in blueprint.entities)
    order = "in the order in which they were made" if are_counted else "in the order of their identifiers"
    yield f"Lists show at most as many records as their limit says, {order}."
    if any(column.name in MONEY for entity in blueprint.entities for column in entity.columns):
        yield "Amounts of money are in pounds."
    for entity in blueprint.entities:
        if {(entity.table, "create"), (entity.table, "update")} & actions:
            yield from _describe_values(blueprint, entity)
        if {(entity.table, "delete"), (entity.table, "discard")} & actions:
            yield from _describe_deletion(blueprint, entity)
        yield from _describe_limits(blueprint, entity, actions)
        yield from _describe_guards(blueprint, entity)
        yield from describe_behaviours(blueprint, entity)
        final = find_final_choices(entity)
        if _moves_are_guarded(blueprint, entity):
            continue
        if final and {(entity.table, "update"), (entity.table, "move")} & actions and entity.status:
            yield (
                f"{with_article(entity.noun).capitalize()} that is {' or '.join(map(to_words, final))} stays so: "
                f"its {to_words(entity.status.name)} cannot be changed any more."
            )
    yield from describe_permissions(blueprint)
    users = [operation.name for operation in blueprint.operations if operation.actor == "user"]
    if users:
        yield f"Only the user can do this, when asked to: {', '.join(map(to_words, users))}."
    if any(action in ("update", "move", "link", "unlink") for _, action in actions):
        yield "A change that changes nothing is refused."


def _describe_values(blueprint: Blueprint, entity: Entity) -> Iterator[str]:
    for column in entity.columns:
        if column.references:
            yield f"The {_name_owner(column)} of {with_article(entity.noun)} must exist."
        for one in (one for one in column.columns if one.references):
            inside = f"in the {to_words(column.name)} of {with_article(entity.noun)}"
            yield f"The {_name_owner(one)} {inside} must exist."
        if column.unique and column.name != entity.key:
            owner = blueprint.entity(entity.column(column.within).references).noun if column.within else ""
            whose = f" of {with_article(owner)}" if owner else ""
            yield f"No two {name_many(entity)}{whose} have the same {to_words(column.name)}."
    for link in entity.shared_owners:
        owner = to_words(blueprint.entity(entity.column(link.column).references).noun)
        other = to_words(blueprint.entity(entity.column(link.through).references).noun)
        yield f"The {owner} of {with_article(entity.noun)} is that of its {other}, where both are known."
    for first, last in find_spans(entity):
        order = f"{to_words(last.name)} is not before {to_words(first.name)}"
        yield f"{with_article(entity.noun).capitalize()} does not end before it starts: {order}."


def _name_owner(column: TableColumn) -> str:
    """Return what a column with the key of another record is called: "project" of project_id."""
    return to_words(column.name.removesuffix("_id") or column.name)


def _moves_are_guarded(blueprint: Blueprint, entity: Entity) -> bool:
    """Return True if every change of a record's status says in which states it may happen."""
    status = entity.status.name if entity.status else ""
    own = [one for one in blueprint.operations if one.table == entity.table]
    changing = [
        o for o in own if (o.action == "move" and o.column == status) or (o.action == "update" and status in o.fields)
    ]
    return bool(changing) and all(one.only_while for one in changing)


def _describe_limits(blueprint: Blueprint, entity: Entity, actions: set[tuple[str, str]]) -> Iterator[str]:
    noun = with_article(entity.noun)
    if not {(entity.table, "create"), (entity.table, "update")} & actions:
        return
    if entity.quota is not None and (entity.table, "create") in actions:
        owner = blueprint.entity(entity.column(entity.quota.column).references)
        yield f"{with_article(owner.noun).capitalize()} has at most {entity.quota.most} {to_words(entity.table)}."
    for limit in entity.limits:
        yield f"The {to_words(limit.column)} of {noun} is at most {limit.most:g}."
    for name in entity.ahead:
        words = to_words(name) if is_noun(to_words(name)) else f"date '{to_words(name)}'"
        yield f"Whoever sets the {words} of {noun} sets none that is over already."


def _describe_guards(blueprint: Blueprint, entity: Entity) -> Iterator[str]:
    verbs = {
        "update": "changed",
        "delete": "deleted",
        "discard": "archived" if entity.bin == "in_archive" else "deleted",
    }
    noun = with_article(entity.noun).capitalize()
    for one in blueprint.operations:
        if one.table != entity.table:
            continue
        verb = f"set to {to_words(str(one.sets))}" if one.action == "move" else verbs.get(one.action, "")
        if one.only_while:
            yield f"{noun} is {verb} only while it is {' or '.join(map(to_words, one.only_while))}."
        if one.unless:
            yield f"{noun} that is {to_words(one.unless)} is not {verb}."


def _describe_deletion(blueprint: Blueprint, entity: Entity) -> Iterator[str]:
    users = [to_words(other.table) for other, _ in blueprint.referrers(entity.table)]
    if users:
        belongings = ", ".join(dict.fromkeys(users))
        yield f"{with_article(entity.noun).capitalize()} is deleted only while nothing belongs to it: {belongings}."


_SPANS = (
    ("start", "end"),
    ("check_in", "check_out"),
    ("valid_from", "valid_until"),
    ("from", "to"),
    ("departure", "arrival"),
)


def find_spans(entity: Entity) -> list[tuple[TableColumn, TableColumn]]:
    """Return pairs of columns of which the second is not before the first."""
    pairs = []
    times = {
        column.name: column for column in entity.columns if column.kind in ("date", "moment") and not column.automatic
    }
    for first, last in _SPANS:
        for name, column in times.items():
            other = (
                times.get(name.replace(first, last, 1)) if first in name.split("_") or name.startswith(first) else None
            )
            if other is not None and other.name != name and other.kind == column.kind and (column, other) not in pairs:
                pairs.append((column, other))
    return pairs

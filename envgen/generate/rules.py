"""The rules that the code keeps, in words."""

import textwrap
from collections.abc import Iterator

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, TableColumn, find_final_choices
from trajsmith.envgen.generate.identifiers import quote_text, to_words
from trajsmith.phrasing.words import with_article


def render_policy(blueprint: Blueprint) -> str:
    """Return the policy's text, as the body of an indented triple-quoted string."""
    lines = [f"    {quote_text(f'# Rules of {blueprint.title}')}", ""]
    for number, rule in enumerate(render_rules(blueprint), 1):
        lines += textwrap.wrap(f"{number}. {quote_text(rule)}", 110, initial_indent="    ", subsequent_indent="       ")
    return "\n".join(lines)


def render_rules(blueprint: Blueprint) -> Iterator[str]:
    """Return the rules that the code enforces, one per line."""
    actions = {(operation.table, operation.action) for operation in blueprint.operations}
    yield "Lists show at most as many records as their limit says, in the order in which they were made."
    for entity in blueprint.entities:
        if {(entity.table, "create"), (entity.table, "update")} & actions:
            yield from _describe_values(blueprint, entity)
        if (entity.table, "delete") in actions:
            yield from _describe_deletion(blueprint, entity)
        final = find_final_choices(entity)
        if final and {(entity.table, "update"), (entity.table, "move")} & actions and entity.status:
            yield (
                f"{with_article(entity.noun).capitalize()} that is {' or '.join(map(to_words, final))} stays so: "
                f"its {to_words(entity.status.name)} cannot be changed any more."
            )
    if any(action in ("update", "move", "link", "unlink") for _, action in actions):
        yield "A change that changes nothing is refused."


def _describe_values(blueprint: Blueprint, entity: Entity) -> Iterator[str]:
    for column in entity.columns:
        if column.references:
            yield f"The {to_words(column.name)} of {with_article(entity.noun)} must exist."
        for one in (one for one in column.columns if one.references):
            inside = f"in the {to_words(column.name)} of {with_article(entity.noun)}"
            yield f"The {to_words(one.name)} {inside} must exist."
        if column.unique and column.name != entity.key:
            yield f"No two {to_words(entity.table)} have the same {to_words(column.name)}."
    for first, last in find_spans(entity):
        order = f"{to_words(last.name)} is not before {to_words(first.name)}"
        yield f"{with_article(entity.noun).capitalize()} does not end before it starts: {order}."


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

"""The rules that the code keeps, in words."""

import textwrap
from collections.abc import Iterator

from envgen.generate.blueprint import Blueprint, Column, Entity, final_choices
from envgen.generate.spelling import quoted, words
from environments.openapi.words import a


def policy(blueprint: Blueprint) -> str:
    """The policy's text, as the body of an indented triple-quoted string."""
    lines = [f"    {quoted(f'# Rules of {blueprint.title}')}", ""]
    for number, rule in enumerate(rules(blueprint), 1):
        lines += textwrap.wrap(f"{number}. {quoted(rule)}", 110, initial_indent="    ", subsequent_indent="       ")
    return "\n".join(lines)


def rules(blueprint: Blueprint) -> Iterator[str]:
    """One rule per line."""
    actions = {(operation.table, operation.action) for operation in blueprint.operations}
    yield "Lists show at most as many records as their limit says, in the order in which they were made."
    for entity in blueprint.entities:
        if {(entity.table, "create"), (entity.table, "update")} & actions:
            yield from _values(blueprint, entity)
        if (entity.table, "delete") in actions:
            yield from _deletion(blueprint, entity)
        final = final_choices(entity)
        if final and {(entity.table, "update"), (entity.table, "move")} & actions and entity.status:
            yield (
                f"{a(entity.noun).capitalize()} that is {' or '.join(map(words, final))} stays so: "
                f"its {words(entity.status.name)} cannot be changed any more."
            )
    if any(action in ("update", "move") for _, action in actions):
        yield "A change that changes nothing is refused."


def _values(blueprint: Blueprint, entity: Entity) -> Iterator[str]:
    for column in entity.columns:
        if column.references:
            yield f"The {words(column.name)} of {a(entity.noun)} must exist."
        if column.unique and column.name != entity.key:
            yield f"No two {words(entity.table)} have the same {words(column.name)}."
    for first, last in spans(entity):
        order = f"{words(last.name)} is not before {words(first.name)}"
        yield f"{a(entity.noun).capitalize()} does not end before it starts: {order}."


def _deletion(blueprint: Blueprint, entity: Entity) -> Iterator[str]:
    users = [words(other.table) for other, _ in blueprint.referrers(entity.table)]
    if users:
        belongings = ", ".join(dict.fromkeys(users))
        yield f"{a(entity.noun).capitalize()} is deleted only while nothing belongs to it: {belongings}."


_SPANS = (
    ("start", "end"),
    ("check_in", "check_out"),
    ("valid_from", "valid_until"),
    ("from", "to"),
    ("departure", "arrival"),
)


def spans(entity: Entity) -> list[tuple[Column, Column]]:
    """Pairs of columns of which the second is not before the first."""
    found = []
    times = {
        column.name: column for column in entity.columns if column.kind in ("date", "moment") and not column.automatic
    }
    for first, last in _SPANS:
        for name, column in times.items():
            other = (
                times.get(name.replace(first, last, 1)) if first in name.split("_") or name.startswith(first) else None
            )
            if other is not None and other.name != name and other.kind == column.kind and (column, other) not in found:
                found.append((column, other))
    return found

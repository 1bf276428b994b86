"""What services of known records do beyond plain changes: trash and archive, statistics, permissions of people."""

import random
from collections.abc import Sequence

from trajsmith.envgen.generate.blueprint import Entity, SignedIn, TableColumn, ToolAction, ToolBlueprint
from trajsmith.envgen.generate.known_records import is_person

RESTORING = frozenset({"restore", "untrash", "undelete", "recover", "unarchive", "unremove"})
"""Verbs that bring a record back."""
_BINNING = {"trash": "in_trash", "bin": "in_trash", "archive": "in_archive"}
_LEFT_OUT = ("void", "cancelled", "archived", "rejected", "discontinued", "withdrawn")
_SUMS = ("amount", "total", "budget", "price", "balance", "monthly_cost")
OWNERS = ("owner", "lead", "author", "organizer", "host", "manager", "creator", "account_manager")
"""Columns with the person to whom a record belongs."""
TRASH_SHARE = 0.25
"""Share of the tables with a tool that deletes which get a trash though no tool speaks of one."""
NUMBERS_SHARE = 0.3
"""Share of the tables with states or amounts that get a tool for their statistics though no source has one."""
OWNED_SHARE = 0.5
"""Share of the tables with an owner of which only the owner changes records."""
ROLE_SHARE = 0.6
"""Share of the tables of which only some roles delete records."""


def find_bin(
    verbs: set[str], actions: set[ToolAction], known: dict[str, str], states: Sequence[str], rng: random.Random
) -> str:
    """Return the flag of records that are in the trash or archive; empty if there is none.

    Args:
        verbs: Of the tools that are about the record.
        actions: Of these tools.
        known: Verbs to the states that they lead to.
        states: All states.
    """
    plain = {verb for verb in verbs if verb not in known}
    if "archive" in plain and "archived" not in states:
        return "in_archive"
    if plain & {"trash", "bin"} or ("delete" in actions and plain & (RESTORING - {"unarchive"})):
        return "in_trash"
    wanted = "delete" in actions and "list" in actions and not {"deleted", "archived"} & set(states)
    return "in_trash" if wanted and rng.random() < TRASH_SHARE else ""


def find_bin_action(action: ToolAction, verb: str, column: str) -> ToolAction:
    """Return what a tool does to a record that may be in the trash or archive."""
    if not column:
        return action
    if action == "move" and verb in RESTORING:
        return "restore"
    if _BINNING.get(verb) == column or (action == "delete" and column == "in_trash"):
        return "discard"
    return action


def build_bin_column(name: str) -> TableColumn:
    """Return the flag of records that are in the trash or archive."""
    return TableColumn(name=name, kind="flag", label=name)


def find_measure(entity: Entity) -> str:
    """Return the column of amounts that can be added up."""
    columns = {column.name for column in entity.columns if column.kind == "number"}
    return next((name for name in _SUMS if name in columns), "")


def find_excluded(entity: Entity) -> tuple[str, ...]:
    """Return the states of records that statistics leave out."""
    states = entity.status.choices if entity.status else ()
    return tuple(state for state in states if state in _LEFT_OUT)


def add_permissions(
    entities: Sequence[Entity], operations: Sequence[ToolBlueprint], tool: str, rng: random.Random
) -> tuple[list[ToolBlueprint], SignedIn | None]:
    """Return the tools with who may call them, and who is signed in; None where the records name nobody.

    Args:
        tool: Name of the tool that shows who is signed in.
    """
    people = [(one, role) for one in entities if (role := _find_role(one))]
    if people:
        return _add_roles(*people[0], operations, tool, rng)
    return _add_owners(entities, operations, tool, rng)


def _find_role(entity: Entity) -> str:
    """Return the column with the role of a person."""
    column = next((c for c in entity.columns if c.name == "role" and c.kind == "choice"), None)
    label = next((c for c in entity.columns if c.name == entity.label), None)
    person = label is not None and bool(label.pool) and is_person(str(label.pool[0]))
    usable = column is not None and {"admin", "editor"} <= set(column.choices) and not entity.key_is_given
    return column.name if column is not None and usable and person else ""


def _add_roles(
    people: Entity, role: str, operations: Sequence[ToolBlueprint], tool: str, rng: random.Random
) -> tuple[list[ToolBlueprint], SignedIn | None]:
    allowed, limited = list[ToolBlueprint](), {people.table}
    tables = dict.fromkeys(one.table for one in operations)
    limited |= {table for table in tables if rng.random() < ROLE_SHARE}
    for one in operations:
        roles: tuple[str, ...] = ()
        deletes = one.action in ("delete", "discard")
        if deletes if one.table != people.table else deletes or one.action in ("create", "update", "move"):
            roles = ("admin",) if one.table in limited else ()
        elif one.table in limited and one.action in ("create", "update") and not one.column:
            roles = ("admin", "editor")
        allowed.append(one.model_copy(update={"roles": roles}) if roles and one.actor == "assistant" else one)
    if not any(one.roles for one in allowed):
        return list(operations), None
    show = ToolBlueprint(name=tool, action="whoami", table=people.table, description="")
    return [*allowed, show], SignedIn(table=people.table, role=role, roles=("admin", "editor"))


def _add_owners(
    entities: Sequence[Entity], operations: Sequence[ToolBlueprint], tool: str, rng: random.Random
) -> tuple[list[ToolBlueprint], SignedIn | None]:
    owned = dict[str, str]()
    names = list[str]()
    for entity in entities:
        column = next((c for c in entity.columns if c.name in OWNERS and c.kind == "text" and not c.references), None)
        if column is None or not column.pool or rng.random() > OWNED_SHARE:
            continue
        owned[entity.table] = column.name
        names += [str(value) for value in column.pool]
    limited = [
        one.model_copy(update={"belongs": owned[one.table]})
        if one.table in owned and one.action in ("delete", "discard", "update") and one.actor == "assistant"
        else one
        for one in operations
    ]
    guarded = next((one.table for one in limited if one.belongs), "")
    if not guarded:
        return list(operations), None
    show = ToolBlueprint(name=tool, action="whoami", table=guarded, description="")
    return [*limited, show], SignedIn(people=tuple(dict.fromkeys(names))[:3])

"""How users and agents call the records of a table: by name, by what they are looked up with, and in lists."""

from typing import Any

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, TableColumn, ToolBlueprint
from trajsmith.envgen.generate.code_behaviours import name_bin
from trajsmith.envgen.generate.identifiers import to_words
from trajsmith.envgen.generate.phrase_slots import (
    MONEY,
    find_label_column,
    is_called,
    is_free_text,
    looks_like_person,
    name_many,
    render_quoted,
    render_slot,
)
from trajsmith.phrasing import is_noun, word_set


def _build_lookup_words(blueprint: Blueprint, entity: Entity) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return how a record is called by what it is looked up with: a text that is searched, and further parameters."""
    noun, label = to_words(entity.noun), find_label_column(entity)
    by: dict[str, list[str]] = {}
    within: dict[str, list[str]] = {}
    for operation in blueprint.operations:
        if operation.action != "list" or operation.owner:
            continue
        if operation.table == entity.table:
            within |= _describe_own_filters(entity, operation)
            if operation.search_needed:
                person = label is not None and looks_like_person(label)
                by[operation.search] = ["{value}"] if person else [f'the {noun} "{{value}}"']
            elif operation.search:
                by.setdefault(operation.search, [f'the {noun} with "{{value}}" in it'])
    for other, column in blueprint.referrers(entity.table):
        if column.references != entity.table or column.kind == "texts" or other.table == entity.table:
            continue
        within.setdefault(other.key, ["{phrase} of {owner}"])
        for operation in blueprint.operations:
            if operation.action == "list" and operation.table == other.table and not operation.owner:
                within |= _describe_others_filters(other, operation)
    return by, within


def _describe_own_filters(entity: Entity, operation: ToolBlueprint) -> dict[str, list[str]]:
    """Return how a record is called by the filters of a list of such records."""
    words, tool = dict[str, list[str]](), operation.name
    for name in operation.fields:
        column = entity.column(name)
        if column.references:
            words[name] = ["{phrase} of {owner}"]
        elif column == entity.status:
            words[f"{tool}.{name}"] = ["{phrase} that is {value}"]
        elif column.kind == "choice":
            words[f"{tool}.{name}"] = [f"{{phrase}} whose {to_words(name)} is {{value}}"]
    if entity.bin:
        words[f"{tool}.{entity.bin}"] = ["{phrase}"]
    if operation.search:
        words[f"{tool}.{operation.search}"] = ['{phrase} (look for "{value}")']
    return words


def _describe_others_filters(other: Entity, operation: ToolBlueprint) -> dict[str, list[str]]:
    """Return how a record is called by the filters of a list of records that belong to it."""
    words, tool, noun = dict[str, list[str]](), operation.name, to_words(other.noun)
    label = find_label_column(other)
    for name in operation.fields:
        column = other.column(name)
        if column.kind == "choice":
            state = "that is" if column == other.status else f"whose {to_words(name)} is"
            words[f"{tool}.{name}"] = [f"{{phrase}} of the {noun} {state} {{value}}"]
    if other.bin:
        words[f"{tool}.{other.bin}"] = [f"{{phrase}} of the {noun} in the {name_bin(other)}"]
    if operation.search:
        person = label is not None and looks_like_person(label)
        phrase = "{value}" if person else f'the {noun} "{{value}}"'
        words[f"{tool}.{operation.search}"] = [f"{{phrase}} of {phrase}"]
    return words


_DONE = word_set("decided issued ordered placed opened purchased planted requested booked paid bought born done eaten")
"""What was done to a record on a day that a column holds."""


def build_entity_words(blueprint: Blueprint, entity: Entity) -> dict[str, Any]:
    noun, label = to_words(entity.noun), find_label_column(entity)
    by: dict[str, list[str]] = {}
    for column in entity.columns:
        if column.name == entity.key or column.references:
            continue
        if column == label and looks_like_person(column):
            by[column.name] = ["{value}", f"the {noun} {{value}}"]
        elif column == label and is_free_text(column):
            by[column.name] = [f'the {noun} "{{value}}"']
        elif column == label and not is_called(column):
            by[column.name] = [f'the {noun} "{{value}}"', f"the {noun} with the {to_words(column.name)} {{value}}"]
        elif column == label:
            by[column.name] = [f'the {noun} "{{value}}"', f'the {noun} called "{{value}}"']
        elif column.name == "email":
            by[column.name] = [f"the {noun} with the email {{value}}"]
        elif column.kind == "choice" and entity.key_style == "counted":
            by[column.name] = [f"the {noun} whose {to_words(column.name)} is {{value|human}}"]
        elif column.kind == "date" and column.required:
            name = to_words(column.name)
            verb = f"that was {name}" if name.removesuffix(" on") in _DONE else f"that {name}"
            link = "on" if name in ("day", "date") else f"with the {name}" if is_noun(name) else verb
            by[column.name] = [f"the {noun} {link} {{value|date}}"]
    entry: dict[str, Any] = {"noun": noun, "plural": name_many(entity), "own": [f"that {noun}"]}
    rows = _build_rows(entity, label)
    if rows:
        entry["row"] = rows
    if label is not None:
        entry["name"] = [f"the {noun} {render_quoted(label)}"] if not looks_like_person(label) else [render_slot(label)]
    sought, within = _build_lookup_words(blueprint, entity)
    by = {**dict(list(by.items())[:4]), **sought}
    return entry | ({"by": by} if by else {}) | ({"within": within} if within else {})


def _build_rows(entity: Entity, label: TableColumn | None) -> list[str]:
    """Return how one record is told among others: with its key, and without it where its name is enough."""
    if label is None:
        return [f"{{{entity.key}}}"]
    status = entity.status
    others = [
        c for c in entity.columns if c.required and c.kind in ("date", "number") and c.name in (*MONEY, "due_date")
    ]
    parts = []
    if status is not None:
        parts.append(
            f"{{{status.name}|human}}"
            if status.required
            else f"{{% if {status.name} %}}{{{status.name}|human}}{{% else %}}no {to_words(status.name)}{{% endif %}}"
        )
    parts += [render_slot(column) for column in others[:1]]
    name, key = render_quoted(label), f"{{{entity.key}}}"
    if not label.unique or label.within:
        return [f"{name} ({', '.join([key, *parts])})"]
    ways = [*([] if entity.is_named else [[key, *parts]]), parts, parts[1:], []]
    return list(dict.fromkeys(f"{name} ({', '.join(way)})" if way else name for way in ways))

"""The methods that are tools."""

import re
import textwrap
from collections.abc import Callable

from envgen.generate.blueprint import Blueprint, Column, Entity, Operation, final_choices
from envgen.generate.code_checks import has_checks
from envgen.generate.refining import starting
from envgen.generate.spelling import plain_words, quoted, words
from environments.openapi.words import a

TypeName = Callable[[Entity, Column], str]
LIMIT = 20
"""Records that a list shows if it is not told how many."""


def tool_code(blueprint: Blueprint, operation: Operation, type_name: TypeName) -> str:
    """One decorated method."""
    entity = blueprint.entity(operation.table)
    body = {
        "get": _get, "list": _list, "create": _create, "update": _update, "delete": _delete, "move": _move,
    }[operation.action](blueprint, operation, entity)  # fmt: skip
    effect = "read" if operation.action in ("get", "list") else "write"
    marks = ", destructive=True" if operation.action == "delete" else ""
    result = f"list[{entity.cls}]" if operation.action == "list" else entity.cls
    arguments = _arguments(operation, entity, type_name)
    signature = ", ".join(["self", *(text for text, _ in arguments)])
    documented = "\n".join(f"            {text.split(':')[0]}: {about}" for text, about in arguments)
    return "\n".join(
        [
            f'    @tool(effect="{effect}"{marks})',
            f"    def {operation.name}({signature}) -> {result}:",
            f'        """{_summary(operation, entity)}',
            "",
            "        Args:",
            documented,
            '        """',
            *(f"        {line}" for line in body),
            "",
        ]
    )


def _summary(operation: Operation, entity: Entity) -> str:
    given = _with_article(quoted(operation.description), operation, entity)
    thing, many = a(entity.noun), words(entity.table)
    made = {
        "get": f"Show {thing}.", "list": f"List {many}.", "create": f"Make a new {words(entity.noun)}.",
        "update": f"Change {thing}.", "delete": f"Delete {thing}.",
        "move": f"Mark {thing} as {plain_words(operation.sets)}.",
    }[operation.action]  # fmt: skip
    text = (given if given.endswith((".", "!", "?")) else f"{given}.") if given else made
    return "\n        ".join(textwrap.wrap(text, 100))


def _with_article(text: str, operation: Operation, entity: Entity) -> str:
    """What is said of a tool for one record, with the article that titles of operations leave out."""
    nouns = "|".join(re.escape(words(name)) for name in (entity.table, entity.noun))
    found = re.fullmatch(rf"(\w+) ({nouns})\.?", text, re.IGNORECASE)
    return f"{found.group(1)} {a(entity.noun)}." if found and operation.action != "list" else text


def _arguments(operation: Operation, entity: Entity, type_name: TypeName) -> list[tuple[str, str]]:
    """Parameters with their types and defaults, those without a default first, and what is said of them."""
    key = entity.column(entity.key)
    key_type = "int" if key.kind == "whole" else "str"
    needed, others = list[tuple[str, str]](), list[tuple[str, str]]()
    if operation.action in ("get", "update", "delete", "move") or (
        operation.action == "create" and entity.key_is_given
    ):
        needed.append((f"{entity.key}: {key_type}", _about(key, entity)))
    for name in operation.fields:
        column = entity.column(name)
        kind = type_name(entity, column)
        if operation.action == "list":
            kind = "str" if column.kind in ("text", "texts") else kind
            kind = {"whole": "int", "number": "float"}.get(column.kind, kind)
        about = _about(column, entity)
        if name in operation.needed:
            needed.append((f"{name}: {kind}", about))
        else:
            others.append(
                (
                    f"{name}: {kind} | None = None",
                    f"Only those with this {words(name)}." if operation.action == "list" else about,
                )
            )
    if operation.action == "list":
        if operation.search and _texts(entity):
            others.append((f"{operation.search}: str | None = None", "Only those with this text in them."))
        others.append((f"limit: Annotated[int, Field(ge=1, le=100)] = {LIMIT}", "How many to show at most."))
    return [*needed, *others]


def _about(column: Column, entity: Entity) -> str:
    return quoted(column.description) or f"{words(column.name).capitalize()} of the {words(entity.noun)}."


def _key(entity: Entity) -> str:
    return f"str({entity.key})" if entity.column(entity.key).kind == "whole" else entity.key


def _found(entity: Entity) -> str:
    return f"record = self.lookup(self.state.{entity.table}, {_key(entity)}, {words(entity.noun)!r})"


def _get(blueprint: Blueprint, operation: Operation, entity: Entity) -> list[str]:
    return [f"return self.lookup(self.state.{entity.table}, {_key(entity)}, {words(entity.noun)!r})"]


def _list(blueprint: Blueprint, operation: Operation, entity: Entity) -> list[str]:
    lines, tests = list[str](), list[str]()
    for name in operation.fields:
        column = entity.column(name)
        if column.references:
            target = blueprint.entity(column.references)
            key = f"str({name})" if blueprint.entity(column.references).column(target.key).kind == "whole" else name
            look = f"self.lookup(self.state.{target.table}, {key}, {words(target.noun)!r})"
            lines += [look] if name in operation.needed else [f"if {name} is not None:", f"    {look}"]
        holds = f"{name} in (one.{name} or [])" if column.kind == "texts" else f"one.{name} == {name}"
        tests.append(holds if name in operation.needed else f"({name} is None or {holds})")
    if operation.search and _texts(entity):
        searched = ", ".join(f"one.{name}" for name in _texts(entity))
        tests.append(f"({operation.search} is None or _mentions({operation.search}, {searched}))")
    if not tests:
        return [f"return list(self.state.{entity.table}.values())[:limit]"]
    lines.append(f"found = [one for one in self.state.{entity.table}.values() if {' and '.join(tests)}]")
    return [*lines, "return found[:limit]"]


def _texts(entity: Entity) -> list[str]:
    """Columns that a search looks into."""
    return [c.name for c in entity.columns if c.kind == "text" and not c.references]


def _create(blueprint: Blueprint, operation: Operation, entity: Entity) -> list[str]:
    key, lines = entity.column(entity.key), list[str]()
    if entity.key_is_given:
        lines += [
            f"if {_key(entity)} in self.state.{entity.table}:",
            f'    raise ToolError(f"there is a {words(entity.noun)} {{{entity.key}}} already")',
        ]
    elif key.kind == "whole":
        lines.append(f'{entity.key} = int(self.new_id("{entity.noun}"))')
    else:
        lines.append(f'{entity.key} = self.new_id("{entity.noun}", "{entity.prefix}{{:d}}")')
    values = [f"{column.name}={_new_value(column, operation, entity)}" for column in entity.columns]
    lines += [f"record = {entity.cls}({', '.join(values)})"]
    if has_checks(entity):
        lines.append(f"self._check_{entity.noun}(record)")
    return [*lines, f"self.state.{entity.table}[{_key(entity)}] = record", "return record"]


def _new_value(column: Column, operation: Operation, entity: Entity) -> str:
    given = column.name in operation.fields or column.name == entity.key
    start = _starting(column, entity)
    if not given:
        return start
    needed = column.name in operation.needed or column.name == entity.key
    return column.name if needed or start == "None" else f"{start} if {column.name} is None else {column.name}"


def _starting(column: Column, entity: Entity) -> str:
    if column.automatic:
        return "self.state.now" if column.kind == "moment" else "self.state.now.date()"
    if entity.status is not None and column.name == entity.status.name and starting(entity):
        return repr(starting(entity))
    if column.required:
        return {"flag": "False", "texts": "[]"}.get(column.kind, "None")
    return "None"


def _update(blueprint: Blueprint, operation: Operation, entity: Entity) -> list[str]:
    given = ", ".join(f'"{name}": {name}' for name in operation.fields)
    lines = [
        _found(entity),
        f"given = {{name: value for name, value in {{{given}}}.items() if value is not None}}",
        "changed = record.model_copy(update=given)",
        "if changed == record:",
        f'    raise ToolError(f"nothing to change: {words(entity.noun)} {{{entity.key}}} is like that already")',
    ]
    final = final_choices(entity)
    if final and entity.status and entity.status.name in operation.fields:
        status = entity.status.name
        lines += [
            f"if record.{status} in {entity.noun.upper()}_FINAL and changed.{status} != record.{status}:",
            f'    raise ToolError(f"{words(entity.noun)} {{{entity.key}}} is {{record.{status}}} and stays so")',
        ]
    touched = [
        column for column in entity.columns if column.automatic and column.name.startswith(("updated", "modified"))
    ]
    if has_checks(entity):
        lines.append(f"self._check_{entity.noun}(changed)")
    lines += [f"changed.{column.name} = {_starting(column, entity)}" for column in touched]
    return [*lines, f"self.state.{entity.table}[{_key(entity)}] = changed", "return changed"]


def _delete(blueprint: Blueprint, operation: Operation, entity: Entity) -> list[str]:
    lines = [_found(entity)]
    for other, column in blueprint.referrers(entity.table):
        holds = (
            f"{entity.key} in (one.{column.name} or [])"
            if column.kind == "texts"
            else f"one.{column.name} == {entity.key}"
        )
        if other.table == entity.table:
            holds += f" and one.{entity.key} != {entity.key}"
        lines += [
            f"if any({holds} for one in self.state.{other.table}.values()):",
            f'    raise ToolError(f"{words(entity.noun)} {{{entity.key}}} still has {words(other.table)}")',
        ]
    return [*lines, f"del self.state.{entity.table}[{_key(entity)}]", "return record"]


def _move(blueprint: Blueprint, operation: Operation, entity: Entity) -> list[str]:
    assert entity.status is not None, "moves are of entities with a status"
    status = entity.status.name
    lines = [
        _found(entity),
        f"if record.{status} == {operation.sets!r}:",
        f'    raise ToolError(f"{words(entity.noun)} {{{entity.key}}} is {plain_words(operation.sets)} already")',
    ]
    if final_choices(entity):
        lines += [
            f"if record.{status} in {entity.noun.upper()}_FINAL:",
            f'    raise ToolError(f"{words(entity.noun)} {{{entity.key}}} is {{record.{status}}} and stays so")',
        ]
    return [*lines, f"record.{status} = {operation.sets!r}", "return record"]

"""The methods that are tools."""

import re
import textwrap
from collections.abc import Callable

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, TableColumn, ToolBlueprint, find_final_choices
from trajsmith.envgen.generate.code_checks import has_checks
from trajsmith.envgen.generate.identifiers import quote_text, to_plain_words, to_words
from trajsmith.envgen.generate.refinement import find_starting_status
from trajsmith.phrasing.words import with_article

TypeName = Callable[[Entity, TableColumn], str]
LIST_LIMIT = 20
"""Records that a list shows if it is not told how many."""


def render_tool_code(blueprint: Blueprint, operation: ToolBlueprint, type_name: TypeName) -> str:
    """Return one decorated tool method."""
    entity = blueprint.entity(operation.table)
    body = {
        "get": _render_get,
        "list": _render_list,
        "create": _render_create,
        "update": _render_update,
        "delete": _render_delete,
        "move": _render_move,
    }[operation.action](blueprint, operation, entity)
    effect = "read" if operation.action in ("get", "list") else "write"
    marks = ", destructive=True" if operation.action == "delete" else ""
    result = f"list[{entity.cls}]" if operation.action == "list" else entity.cls
    arguments = _render_arguments(operation, entity, type_name)
    signature = ", ".join(["self", *(text for text, _ in arguments)])
    documented = "\n".join(f"            {text.split(':')[0]}: {about}" for text, about in arguments)
    return "\n".join(
        [
            f'    @tool(effect="{effect}"{marks})',
            f"    def {operation.name}({signature}) -> {result}:",
            f'        """{_build_summary(operation, entity)}',
            "",
            "        Args:",
            documented,
            '        """',
            *(f"        {line}" for line in body),
            "",
        ]
    )


def _build_summary(operation: ToolBlueprint, entity: Entity) -> str:
    described = _insert_article(quote_text(operation.description), operation, entity)
    noun, many = with_article(entity.noun), to_words(entity.table)
    summaries = {
        "get": f"Show {noun}.", "list": f"List {many}.", "create": f"Make a new {to_words(entity.noun)}.",
        "update": f"Change {noun}.", "delete": f"Delete {noun}.",
        "move": f"Mark {noun} as {to_plain_words(operation.sets)}.",
    }[operation.action]  # fmt: skip
    text = (described if described.endswith((".", "!", "?")) else f"{described}.") if described else summaries
    return "\n        ".join(textwrap.wrap(text, 100))


def _insert_article(text: str, operation: ToolBlueprint, entity: Entity) -> str:
    """Return a tool's description with the article that operation titles leave out."""
    nouns = "|".join(re.escape(to_words(name)) for name in (entity.table, entity.noun))
    match = re.fullmatch(rf"(\w+) ({nouns})\.?", text, re.IGNORECASE)
    return f"{match.group(1)} {with_article(entity.noun)}." if match and operation.action != "list" else text


def _render_arguments(operation: ToolBlueprint, entity: Entity, type_name: TypeName) -> list[tuple[str, str]]:
    """Parameters with their types and defaults, those without a default first, and what is said of them."""
    key = entity.column(entity.key)
    key_type = "int" if key.kind == "whole" else "str"
    needed, others = list[tuple[str, str]](), list[tuple[str, str]]()
    if operation.action in ("get", "update", "delete", "move") or (
        operation.action == "create" and entity.key_is_given
    ):
        needed.append((f"{entity.key}: {key_type}", _describe_argument(key, entity)))
    for name in operation.fields:
        column = entity.column(name)
        kind = type_name(entity, column)
        if operation.action == "list":
            kind = "str" if column.kind in ("text", "texts") else kind
            kind = {"whole": "int", "number": "float"}.get(column.kind, kind)
        about = _describe_argument(column, entity)
        if name in operation.needed:
            needed.append((f"{name}: {kind}", about))
        else:
            others.append(
                (
                    f"{name}: {kind} | None = None",
                    f"Only those with this {to_words(name)}." if operation.action == "list" else about,
                )
            )
    if operation.action == "list":
        if operation.search and _find_text_columns(entity):
            others.append((f"{operation.search}: str | None = None", "Only those with this text in them."))
        others.append((f"limit: Annotated[int, Field(ge=1, le=100)] = {LIST_LIMIT}", "How many to show at most."))
    return [*needed, *others]


def _describe_argument(column: TableColumn, entity: Entity) -> str:
    return quote_text(column.description) or f"{to_words(column.name).capitalize()} of the {to_words(entity.noun)}."


def _render_key(entity: Entity) -> str:
    return f"str({entity.key})" if entity.column(entity.key).kind == "whole" else entity.key


def _render_lookup(entity: Entity) -> str:
    return f"record = self.lookup(self.state.{entity.table}, {_render_key(entity)}, {to_words(entity.noun)!r})"


def _render_get(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> list[str]:
    return [f"return self.lookup(self.state.{entity.table}, {_render_key(entity)}, {to_words(entity.noun)!r})"]


def _render_list(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> list[str]:
    lines, tests = list[str](), list[str]()
    for name in operation.fields:
        column = entity.column(name)
        if column.references:
            target = blueprint.entity(column.references)
            key = f"str({name})" if blueprint.entity(column.references).column(target.key).kind == "whole" else name
            look = f"self.lookup(self.state.{target.table}, {key}, {to_words(target.noun)!r})"
            lines += [look] if name in operation.needed else [f"if {name} is not None:", f"    {look}"]
        holds = f"{name} in (one.{name} or [])" if column.kind == "texts" else f"one.{name} == {name}"
        tests.append(holds if name in operation.needed else f"({name} is None or {holds})")
    if operation.search and _find_text_columns(entity):
        searched = ", ".join(f"one.{name}" for name in _find_text_columns(entity))
        tests.append(f"({operation.search} is None or _mentions({operation.search}, {searched}))")
    if not tests:
        return [f"return list(self.state.{entity.table}.values())[:limit]"]
    lines.append(f"found = [one for one in self.state.{entity.table}.values() if {' and '.join(tests)}]")
    return [*lines, "return found[:limit]"]


def _find_text_columns(entity: Entity) -> list[str]:
    """Columns that a search looks into."""
    return [c.name for c in entity.columns if c.kind == "text" and not c.references]


def _render_create(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> list[str]:
    key, lines = entity.column(entity.key), list[str]()
    if entity.key_is_given:
        lines += [
            f"if {_render_key(entity)} in self.state.{entity.table}:",
            f'    raise ToolError(f"there is a {to_words(entity.noun)} {{{entity.key}}} already")',
        ]
    elif key.kind == "whole":
        lines.append(f'{entity.key} = int(self.new_id("{entity.noun}"))')
    else:
        lines.append(f'{entity.key} = self.new_id("{entity.noun}", "{entity.prefix}{{:d}}")')
    values = [f"{column.name}={_render_new_value(column, operation, entity)}" for column in entity.columns]
    lines += [f"record = {entity.cls}({', '.join(values)})"]
    if has_checks(entity):
        lines.append(f"self._check_{entity.noun}(record)")
    return [*lines, f"self.state.{entity.table}[{_render_key(entity)}] = record", "return record"]


def _render_new_value(column: TableColumn, operation: ToolBlueprint, entity: Entity) -> str:
    is_argument = column.name in operation.fields or column.name == entity.key
    start = _render_starting_status(column, entity)
    if not is_argument:
        return start
    needed = column.name in operation.needed or column.name == entity.key
    return column.name if needed or start == "None" else f"{start} if {column.name} is None else {column.name}"


def _render_starting_status(column: TableColumn, entity: Entity) -> str:
    if column.automatic:
        return "self.state.now" if column.kind == "moment" else "self.state.now.date()"
    if entity.status is not None and column.name == entity.status.name and find_starting_status(entity):
        return repr(find_starting_status(entity))
    if column.required:
        return {"flag": "False", "texts": "[]"}.get(column.kind, "None")
    return "None"


def _render_update(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> list[str]:
    entries = ", ".join(f'"{name}": {name}' for name in operation.fields)
    lines = [
        _render_lookup(entity),
        f"given = {{name: value for name, value in {{{entries}}}.items() if value is not None}}",
        "changed = record.model_copy(update=given)",
        "if changed == record:",
        f'    raise ToolError(f"nothing to change: {to_words(entity.noun)} {{{entity.key}}} is like that already")',
    ]
    final = find_final_choices(entity)
    if final and entity.status and entity.status.name in operation.fields:
        status = entity.status.name
        lines += [
            f"if record.{status} in {entity.noun.upper()}_FINAL and changed.{status} != record.{status}:",
            f'    raise ToolError(f"{to_words(entity.noun)} {{{entity.key}}} is {{record.{status}}} and stays so")',
        ]
    touched = [
        column for column in entity.columns if column.automatic and column.name.startswith(("updated", "modified"))
    ]
    if has_checks(entity):
        lines.append(f"self._check_{entity.noun}(changed)")
    lines += [f"changed.{column.name} = {_render_starting_status(column, entity)}" for column in touched]
    return [*lines, f"self.state.{entity.table}[{_render_key(entity)}] = changed", "return changed"]


def _render_delete(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> list[str]:
    lines = [_render_lookup(entity)]
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
            f'    raise ToolError(f"{to_words(entity.noun)} {{{entity.key}}} still has {to_words(other.table)}")',
        ]
    return [*lines, f"del self.state.{entity.table}[{_render_key(entity)}]", "return record"]


def _render_move(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> list[str]:
    assert entity.status is not None, "moves are of entities with a status"
    status = entity.status.name
    lines = [
        _render_lookup(entity),
        f"if record.{status} == {operation.sets!r}:",
        f'    raise ToolError(f"{to_words(entity.noun)} {{{entity.key}}} is {to_plain_words(operation.sets)} already")',
    ]
    if find_final_choices(entity):
        lines += [
            f"if record.{status} in {entity.noun.upper()}_FINAL:",
            f'    raise ToolError(f"{to_words(entity.noun)} {{{entity.key}}} is {{record.{status}}} and stays so")',
        ]
    return [*lines, f"record.{status} = {operation.sets!r}", "return record"]

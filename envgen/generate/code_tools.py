"""The methods that are tools."""

import re
import textwrap
from collections.abc import Callable

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, TableColumn, ToolBlueprint, find_final_choices
from trajsmith.envgen.generate.code_checks import (
    has_checks,
    render_date_checks,
    render_guards,
    render_quota_check,
)
from trajsmith.envgen.generate.code_seeds import name_key_function
from trajsmith.envgen.generate.identifiers import quote_text, to_identifier, to_plain_words, to_words
from trajsmith.envgen.generate.refinement import find_starting_status
from trajsmith.phrasing import with_article

TypeName = Callable[[Entity, TableColumn], str]
_PLAIN_TYPES = {"whole": "int", "number": "float", "date": "date", "moment": "datetime"}
_SIGNS = {">=": "at least", ">": "more than", "<=": "at most", "<": "less than"}
LIST_LIMIT = 10
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
        "link": _render_link,
        "unlink": _render_link,
    }[operation.action](blueprint, operation, entity)
    effect = "read" if operation.action in ("get", "list") else "write"
    marks = ", destructive=True" if operation.action == "delete" else ""
    marks += ', actor="user"' if operation.actor == "user" else ""
    result = f"list[{entity.cls}]" if operation.action == "list" else entity.cls
    if operation.action in ("get", "update") and operation.column:
        body, result = _render_part(operation, entity), entity.part(entity.column(operation.column)).cls
    arguments = _render_arguments(blueprint, operation, entity, type_name)
    signature = ", ".join(["self", *(text for text, _ in arguments)])
    documented = "\n".join(f"            {text.split(':')[0]}: {about}" for text, about in arguments)
    return "\n".join(
        [
            f'    @tool(effect="{effect}"{marks})',
            f"    def {operation.name}({signature}) -> {result}:",
            f'        """{_build_summary(blueprint, operation, entity)}',
            "",
            "        Args:",
            documented,
            '        """',
            *(f"        {line}" for line in body),
            "",
        ]
    )


def _build_summary(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> str:
    described = _insert_article(quote_text(operation.description), operation, entity)
    noun, many = with_article(entity.noun), to_words(entity.table)
    if operation.owner:
        many = f"the {many} of {with_article(blueprint.entity(operation.owner).noun)}"
    elif operation.column:
        label = to_words(to_identifier(entity.column(operation.column).label))
        linked = with_article(find_linked(blueprint, operation).noun) if operation.action in ("link", "unlink") else ""
        whose = f"the {label} of {noun}"
        noun = whose if operation.action in ("get", "update") else noun
    summaries = {
        "get": f"Show {noun}.", "list": f"List {many}.", "create": f"Make a new {to_words(entity.noun)}.",
        "update": f"Change {noun}.", "delete": f"Delete {noun}.",
        "move": f"Mark {noun} as {_describe_value(operation)}.",
    }  # fmt: skip
    if operation.action in ("link", "unlink"):
        way = "Add {} to" if operation.action == "link" else "Remove {} from"
        summaries[operation.action] = f"{way.format(linked)} {whose}."
    text = described or summaries[operation.action]
    text = text if text.endswith((".", "!", "?")) else f"{text}."
    return "\n        ".join(textwrap.wrap(text, 100))


def _insert_article(text: str, operation: ToolBlueprint, entity: Entity) -> str:
    """Return a tool's description with the article that operation titles leave out."""
    nouns = "|".join(re.escape(to_words(name)) for name in (entity.table, entity.noun))
    match = re.fullmatch(rf"(\w+) ({nouns})\.?", text, re.IGNORECASE)
    return f"{match.group(1)} {with_article(entity.noun)}." if match and operation.action != "list" else text


def _render_arguments(
    blueprint: Blueprint, operation: ToolBlueprint, entity: Entity, type_name: TypeName
) -> list[tuple[str, str]]:
    """Parameters with their types and defaults, those without a default first, and what is said of them."""
    key = entity.column(entity.key)
    key_type = "int" if key.kind == "whole" else "str"
    needed, others = list[tuple[str, str]](), list[tuple[str, str]]()
    if operation.action not in ("list", "create") or (operation.action == "create" and entity.key_is_given):
        needed.append((f"{entity.key}: {key_type}", _describe_argument(key, entity)))
    if operation.action in ("link", "unlink"):
        target = find_linked(blueprint, operation)
        about = _describe_argument(target.column(target.key), target)
        needed.append((f"{name_linked_key(blueprint, operation)}: str", about))
    if operation.owner:
        owner = blueprint.entity(operation.owner)
        kind = "int" if owner.column(owner.key).kind == "whole" else "str"
        needed.append((f"{owner.key}: {kind}", _describe_argument(owner.column(owner.key), owner)))
    is_part = operation.action == "update" and operation.column
    holder = entity.part(entity.column(operation.column)) if is_part else entity
    for name in operation.fields:
        column = holder.column(name)
        kind = type_name(holder, column)
        if operation.action == "list":
            kind = "str" if column.kind in ("text", "texts") else kind
            kind = _PLAIN_TYPES.get(column.kind, kind)
        about = _describe_argument(column, holder, operation)
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
        for bound in operation.ranges:
            column = entity.column(bound.column)
            about = f"Only those whose {to_words(bound.column)} is {_SIGNS[bound.sign]} this."
            others.append((f"{bound.name}: {_PLAIN_TYPES[column.kind]} | None = None", about))
        if operation.search and _find_text_columns(entity):
            if operation.search_needed:
                label = entity.column(entity.label or _find_text_columns(entity)[0])
                examples = [str(value) for value in label.pool[:6]]
                kind = f"Annotated[str, Field(min_length=1, examples={examples!r})]" if examples else "str"
                needed.append((f"{operation.search}: {kind}", "Text to look for."))
            else:
                others.append((f"{operation.search}: str | None = None", "Only those with this text in them."))
        others.append((f"limit: Annotated[int, Field(ge=1, le=100)] = {LIST_LIMIT}", "How many to show at most."))
        if operation.paged:
            others.append(
                ("page: Annotated[int, Field(ge=1)] = 1", "Page to show; each has as many as the limit says.")
            )
    return [*needed, *others]


def _describe_argument(column: TableColumn, entity: Entity, operation: ToolBlueprint | None = None) -> str:
    label, noun = to_words(column.name), to_words(entity.noun)
    described = quote_text(column.description)
    if described or operation is None or column.references or operation.action not in ("create", "update"):
        return described or f"{label.capitalize()} of the {noun}."
    return f"{label.capitalize()} of the new {noun}." if operation.action == "create" else f"New {label} of the {noun}."


def _render_part(operation: ToolBlueprint, entity: Entity) -> list[str]:
    """Return the body of a tool that shows or changes the record in a column."""
    part, value = entity.part(entity.column(operation.column)), f"record.{operation.column}"
    whose = f"{to_words(entity.noun)} {{{entity.key}}} has no {to_words(operation.column)}"
    if operation.action == "get":
        missing = [f"if {value} is None:", f'    raise ToolError(f"{whose}")']
        return [_render_lookup(entity), *missing, f"return {value}"]
    entries = ", ".join(f'"{name}": {name}' for name in operation.fields)
    required = [column.name for column in part.columns if column.required]
    lines = [
        _render_lookup(entity),
        f"given = {{name: value for name, value in {{{entries}}}.items() if value is not None}}",
        f"if {value} is None:",
        f"    missing = [name for name in {required!r} if name not in given]",
        "    if missing:",
        f"        raise ToolError(f\"{whose} yet: give {{', '.join(missing)}}\")",
        f"    part = {part.cls}.model_validate(given)",
        "else:",
        f"    part = {value}.model_copy(update=given)",
        f"if part == {value}:",
        f'    raise ToolError(f"nothing to change: {to_words(entity.noun)} {{{entity.key}}} is like that already")',
        f'changed = record.model_copy(update={{"{operation.column}": part}})',
    ]
    if has_checks(entity):
        lines.append(f"self._check_{entity.noun}(changed)")
    return [*lines, f"self.state.{entity.table}[{_render_key(entity)}] = changed", "return part"]


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
    if operation.owner:
        owner = blueprint.entity(operation.owner)
        look = f"self.lookup(self.state.{owner.table}, {_render_key(owner)}, {to_words(owner.noun)!r})"
        lines.append(f"owner = {look}")
        tests.append(f"one.{entity.key} in (owner.{operation.column} or [])")
    for bound in operation.ranges:
        reads = "_moment({})" if entity.column(bound.column).kind == "moment" else "{}"
        value, limit = reads.format(f"one.{bound.column}"), reads.format(bound.name)
        compared = f"{value} {bound.sign} {limit}"
        present = "" if entity.column(bound.column).required else f"one.{bound.column} is not None and "
        tests.append(f"({bound.name} is None or {present}{compared})")
    if operation.search and _find_text_columns(entity):
        searched = ", ".join(f"one.{name}" for name in _find_text_columns(entity))
        test = f"_mentions({operation.search}, {searched})"
        tests.append(test if operation.search_needed else f"({operation.search} is None or {test})")
    shown = "[(page - 1) * limit : page * limit]" if operation.paged else "[:limit]"
    if not tests:
        return [f"return list(self.state.{entity.table}.values()){shown}"]
    lines.append(f"found = [one for one in self.state.{entity.table}.values() if {' and '.join(tests)}]")
    return [*lines, f"return found{shown}"]


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
    elif entity.key_style != "counted":
        lines.append(f'{entity.key} = {name_key_function(entity)}(int(self.new_id("{entity.noun}")))')
    elif key.kind == "whole":
        lines.append(f'{entity.key} = int(self.new_id("{entity.noun}"))')
    else:
        lines.append(f'{entity.key} = self.new_id("{entity.noun}", "{entity.prefix}{{:d}}")')
    values = [f"{column.name}={_render_new_value(column, operation, entity)}" for column in entity.columns]
    lines = [*render_date_checks(entity, operation.fields, optional=False), *lines]
    lines += [f"record = {entity.cls}({', '.join(values)})"]
    if has_checks(entity):
        lines.append(f"self._check_{entity.noun}(record)")
    lines += render_quota_check(blueprint, entity)
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
        return {"flag": "False", "texts": "[]", "records": "[]"}.get(column.kind, "None")
    return "None"


def _render_update(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> list[str]:
    entries = ", ".join(f'"{name}": {name}' for name in operation.fields)
    lines = [
        _render_lookup(entity),
        *render_guards(operation, entity),
        *render_date_checks(entity, operation.fields, optional=True),
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
    lines = [_render_lookup(entity), *render_guards(operation, entity)]
    for other, column in blueprint.referrers(entity.table):
        holds = _render_holding(column, entity)
        if other.table == entity.table:
            holds += f" and one.{entity.key} != {entity.key}"
        lines += [
            f"if any({holds} for one in self.state.{other.table}.values()):",
            f'    raise ToolError(f"{to_words(entity.noun)} {{{entity.key}}} still has {to_words(other.table)}")',
        ]
    return [*lines, f"del self.state.{entity.table}[{_render_key(entity)}]", "return record"]


def _render_holding(column: TableColumn, entity: Entity) -> str:
    """Return the test that a record `one` holds the key of an entity's record in a column."""
    inner = [f"part.{one.name} == {entity.key}" for one in column.columns if one.references == entity.table]
    if column.kind == "records":
        return f"any({' or '.join(inner)} for part in one.{column.name} or [])"
    if column.kind == "record":
        return f"(one.{column.name} is not None and any({' or '.join(inner)} for part in [one.{column.name}]))"
    return (
        f"{entity.key} in (one.{column.name} or [])" if column.kind == "texts" else f"one.{column.name} == {entity.key}"
    )


def _render_move(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> list[str]:
    column = operation.column
    is_flag = isinstance(operation.sets, bool)
    is_there = f"record.{column}{'' if is_flag else f' == {operation.sets!r}'}"
    lines = [
        _render_lookup(entity),
        f"if {'not ' if operation.sets is False else ''}{is_there}:",
        f'    raise ToolError(f"{to_words(entity.noun)} {{{entity.key}}} is {_describe_value(operation)} already")',
    ]
    lines += render_guards(operation, entity)
    if (
        not operation.only_while
        and entity.status is not None
        and column == entity.status.name
        and find_final_choices(entity)
    ):
        lines += [
            f"if record.{column} in {entity.noun.upper()}_FINAL:",
            f'    raise ToolError(f"{to_words(entity.noun)} {{{entity.key}}} is {{record.{column}}} and stays so")',
        ]
    if not operation.fields:
        return [*lines, f"record.{column} = {operation.sets!r}", "return record"]
    entries = ", ".join(f'"{name}": {name}' for name in operation.fields)
    lines += [
        f"given = {{name: value for name, value in {{{entries}}}.items() if value is not None}}",
        f'changed = record.model_copy(update={{**given, "{column}": {operation.sets!r}}})',
    ]
    if has_checks(entity):
        lines.append(f"self._check_{entity.noun}(changed)")
    return [*lines, f"self.state.{entity.table}[{_render_key(entity)}] = changed", "return changed"]


def _render_link(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> list[str]:
    """Return the body of a tool that adds a key to a column of keys, or takes it away."""
    target, key = find_linked(blueprint, operation), name_linked_key(blueprint, operation)
    held = f"record.{operation.column} or []"
    adds = operation.action == "link"
    fault = f"has {to_words(target.noun)} {{{key}}} already" if adds else f"has no {to_words(target.noun)} {{{key}}}"
    keys = f"[*({held}), {key}]" if adds else f"[one for one in {held} if one != {key}]"
    return [
        _render_lookup(entity),
        f"self.lookup(self.state.{target.table}, {key}, {to_words(target.noun)!r})",
        f"if {key} {'in' if adds else 'not in'} ({held}):",
        f'    raise ToolError(f"{to_words(entity.noun)} {{{entity.key}}} {fault}")',
        f"record.{operation.column} = {keys}",
        "return record",
    ]


def find_linked(blueprint: Blueprint, operation: ToolBlueprint) -> Entity:
    """Return the entity whose keys a link adds or an unlink takes away."""
    return blueprint.entity(blueprint.entity(operation.table).column(operation.column).references)


def name_linked_key(blueprint: Blueprint, operation: ToolBlueprint) -> str:
    """Return the argument of a link or unlink that holds the other record's key."""
    key = find_linked(blueprint, operation).key
    return f"other_{key}" if key == blueprint.entity(operation.table).key else key


def _describe_value(operation: ToolBlueprint) -> str:
    """Describe the effect of a move on a record: "closed", "locked", "not locked"."""
    if isinstance(operation.sets, bool):
        flag = to_words(operation.column.removeprefix("is_"))
        return flag if operation.sets else f"not {flag}"
    return to_plain_words(operation.sets)

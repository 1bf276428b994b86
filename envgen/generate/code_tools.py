"""The methods that are tools."""

from collections.abc import Callable

from trajsmith.envgen.generate.blueprint import (
    READS,
    Blueprint,
    Entity,
    TableColumn,
    ToolBlueprint,
    find_final_choices,
)
from trajsmith.envgen.generate.code_behaviours import (
    get_result_class,
    name_bin,
    render_bin_check,
    render_discard,
    render_permission,
    render_restore,
    render_summary,
    render_whoami,
)
from trajsmith.envgen.generate.code_checks import (
    has_checks,
    render_date_checks,
    render_guards,
    render_quota_check,
)
from trajsmith.envgen.generate.code_seeds import name_key_function
from trajsmith.envgen.generate.identifiers import quote_text, to_words
from trajsmith.envgen.generate.refinement import find_starting_status
from trajsmith.envgen.generate.tool_docstrings import build_summary, describe_value, find_linked, name_linked_key

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
        "discard": _render_discard,
        "restore": _render_restore,
        "summarize": render_summary,
        "whoami": lambda blueprint, *_: render_whoami(blueprint),
    }[operation.action](blueprint, operation, entity)
    effect = "read" if operation.action in READS else "write"
    marks = ", destructive=True" if operation.action == "delete" else ""
    marks += ', actor="user"' if operation.actor == "user" else ""
    result = f"list[{entity.cls}]" if operation.action == "list" else entity.cls
    if operation.action in ("summarize", "whoami"):
        result = get_result_class(blueprint, operation, entity)
    if operation.action in ("get", "update") and operation.column:
        body, result = _render_part(operation, entity), entity.part(entity.column(operation.column)).cls
    arguments = _render_arguments(blueprint, operation, entity, type_name)
    signature = ", ".join(["self", *(text for text, _ in arguments)])
    documented = "\n".join(f"            {text.split(':')[0]}: {about}" for text, about in arguments)
    return "\n".join(
        [
            f'    @tool(effect="{effect}"{marks})',
            f"    def {operation.name}({signature}) -> {result}:",
            f'        """{build_summary(blueprint, operation, entity)}',
            "",
            "        Args:",
            documented,
            '        """',
            *(f"        {line}" for line in body),
            "",
        ]
        if arguments
        else [
            f'    @tool(effect="{effect}"{marks})',
            f"    def {operation.name}(self) -> {result}:",
            f'        """{build_summary(blueprint, operation, entity)}"""',
            *(f"        {line}" for line in body),
            "",
        ]
    )


def _render_arguments(
    blueprint: Blueprint, operation: ToolBlueprint, entity: Entity, type_name: TypeName
) -> list[tuple[str, str]]:
    """Parameters with their types and defaults, those without a default first, and what is said of them."""
    key = entity.column(entity.key)
    key_type = "int" if key.kind == "whole" else "str"
    needed, others = list[tuple[str, str]](), list[tuple[str, str]]()
    if operation.action not in ("list", "create", "summarize", "whoami") or (
        operation.action == "create" and entity.key_is_given
    ):
        if operation.action == "create" and key.examples:
            key_type = f"Annotated[str, Field(min_length=1, examples={list(key.examples)!r})]"
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
        narrows = operation.action in ("list", "summarize")
        if name in operation.needed:
            needed.append((f"{name}: {kind}", about))
        else:
            others.append(
                (
                    f"{name}: {kind} | None = None",
                    f"Only those with this {to_words(name)}." if narrows else about,
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
        if entity.bin:
            about = f"Show those in the {name_bin(entity)} in place of the others."
            others.append((f"{entity.bin}: bool = False", about))
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
    if entity.bin:
        tests.append(f"one.{entity.bin} == {entity.bin}")
    shown = "[(page - 1) * limit : page * limit]" if operation.paged else "[:limit]"
    order = f"key=lambda one: one.{entity.key}" if entity.key_style != "counted" else ""
    if not tests:
        rows = f"self.state.{entity.table}.values()"
        return [f"return sorted({rows}, {order}){shown}" if order else f"return list({rows}){shown}"]
    lines.append(f"found = [one for one in self.state.{entity.table}.values() if {' and '.join(tests)}]")
    return [*lines, *([f"found.sort({order})"] if order else []), f"return found{shown}"]


def _find_text_columns(entity: Entity) -> list[str]:
    """Columns that a search looks into."""
    return [c.name for c in entity.columns if c.kind == "text" and not c.references]


def _render_create(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> list[str]:
    key, lines = entity.column(entity.key), render_permission(blueprint, operation, entity)
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
    permissions = render_permission(blueprint, operation, entity)
    lines = [*permissions, *render_date_checks(entity, operation.fields, optional=False), *lines[len(permissions) :]]
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
        *render_permission(blueprint, operation, entity),
        *render_bin_check(entity),
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
    lines = [_render_lookup(entity), *render_permission(blueprint, operation, entity)]
    lines += [*render_guards(operation, entity), *_render_belongings_check(blueprint, entity, binned=True)]
    return [*lines, f"del self.state.{entity.table}[{_render_key(entity)}]", "return record"]


def _render_discard(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> list[str]:
    lines = [_render_lookup(entity), *render_permission(blueprint, operation, entity), *render_discard(entity)]
    lines += [*render_guards(operation, entity), *_render_belongings_check(blueprint, entity, binned=False)]
    return [*lines, f"record.{entity.bin} = True", "return record"]


def _render_restore(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> list[str]:
    permission = render_permission(blueprint, operation, entity)
    return [_render_lookup(entity), *permission, *render_restore(blueprint, entity)]


def _render_belongings_check(blueprint: Blueprint, entity: Entity, binned: bool) -> list[str]:
    """Return the checks that nothing belongs to a record.

    Args:
        binned: Whether what is in the trash counts.
    """
    lines = list[str]()
    for other, column in blueprint.referrers(entity.table):
        holds = _render_holding(column, entity)
        if other.table == entity.table:
            holds += f" and one.{entity.key} != {entity.key}"
        if other.bin and not binned:
            holds = f"not one.{other.bin} and {holds}"
        lines += [
            f"if any({holds} for one in self.state.{other.table}.values()):",
            f'    raise ToolError(f"{to_words(entity.noun)} {{{entity.key}}} still has {to_words(other.table)}")',
        ]
    return lines


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
        *render_permission(blueprint, operation, entity),
        *render_bin_check(entity),
        f"if {'not ' if operation.sets is False else ''}{is_there}:",
        f'    raise ToolError(f"{to_words(entity.noun)} {{{entity.key}}} is {describe_value(operation)} already")',
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

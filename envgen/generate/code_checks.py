"""The method that keeps the rules of one entity."""

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, SharedOwner, TableColumn, ToolBlueprint
from trajsmith.envgen.generate.identifiers import to_words
from trajsmith.envgen.generate.rules import find_spans


def render_check_method(blueprint: Blueprint, entity: Entity) -> str:
    """Return a method that refuses a record which breaks a rule."""
    record, lines = "record", list[str]()
    for column in entity.columns:
        if column.references:
            lines += _render_reference_check(blueprint.entity(column.references), column, record)
        lines += _render_part_checks(blueprint, column, record)
        if column.unique and column.name != entity.key:
            lines += _render_unique_check(entity, column, record)
    for link in entity.shared_owners:
        lines += _render_shared_owner_check(blueprint, entity, link)
    for first, last in find_spans(entity):
        lines += [
            f"        if {record}.{first.name} is not None and {record}.{last.name} is not None:",
            f"            if _moment({record}.{last.name}) < _moment({record}.{first.name}):" if first.kind == "moment"
            else f"            if {record}.{last.name} < {record}.{first.name}:",
            f'                raise ToolError("{to_words(last.name)} is before {to_words(first.name)}")',
        ]  # fmt: skip
    for limit in entity.limits:
        present = "" if entity.column(limit.column).required else f"{record}.{limit.column} is not None and "
        lines += [
            f"        if {present}{record}.{limit.column} > {limit.most:g}:",
            f'            raise ToolError("{to_words(limit.column)} is more than {limit.most:g}")',
        ]
    body = lines or ["        pass"]
    head = [
        f"    def _check_{entity.noun}(self, record: {entity.cls}) -> None:",
        f'        """Refuse {to_words(entity.table)} that break a rule."""',
    ]
    return "" if not lines else "\n".join([*head, *body, ""])


def has_checks(entity: Entity) -> bool:
    """Return True if an entity has rules of its own."""
    unique = any(column.unique and column.name != entity.key for column in entity.columns)
    referring = (one.references for column in entity.columns for one in (column, *column.columns))
    return unique or any(referring) or bool(find_spans(entity)) or bool(entity.limits)


def render_date_checks(entity: Entity, names: tuple[str, ...], optional: bool) -> list[str]:
    """Return the checks that dates which a call gives are not over.

    Args:
        names: Arguments of the tool.
        optional: True if none of them must be given.
    """
    lines = list[str]()
    for name in entity.ahead:
        if name not in names:
            continue
        column = entity.column(name)
        now = "self.state.now" if column.kind == "moment" else "self.state.now.date()"
        value = f"_moment({name})" if column.kind == "moment" else name
        now = f"_moment({now})" if column.kind == "moment" else now
        present = f"{name} is not None and " if optional or not column.required else ""
        lines += [
            f"if {present}{value} < {now}:",
            f'    raise ToolError(f"{to_words(name)} {{{name}}} is over already")',
        ]
    return lines


def render_quota_check(blueprint: Blueprint, entity: Entity) -> list[str]:
    """Return the check that a record's owner has room for one more."""
    if entity.quota is None:
        return []
    column, owner = entity.quota.column, blueprint.entity(entity.column(entity.quota.column).references)
    count = f"sum(one.{column} == {column} for one in self.state.{entity.table}.values())"
    present = "" if entity.column(column).required else f"{column} is not None and "
    text = f"{to_words(owner.noun)} {{{column}}} has {entity.quota.most} {to_words(entity.table)} already"
    return [f"if {present}{count} >= {entity.quota.most}:", f'    raise ToolError(f"{text}")']


def render_guards(operation: ToolBlueprint, entity: Entity) -> list[str]:
    """Return the checks of the state in which a record may be changed, moved or deleted."""
    lines, key = list[str](), f"{to_words(entity.noun)} {{{entity.key}}}"
    if operation.only_while and entity.status is not None:
        status = entity.status.name
        allowed = " or ".join(map(to_words, operation.only_while))
        lines += [
            f"if record.{status} not in {operation.only_while!r}:",
            f'    raise ToolError(f"{key} is {{record.{status}}}: this needs {allowed}")',
        ]
    if operation.unless:
        lines += [f"if record.{operation.unless}:", f'    raise ToolError(f"{key} is {to_words(operation.unless)}")']
    return lines


def _render_part_checks(blueprint: Blueprint, column: TableColumn, record: str) -> list[str]:
    """Return the checks of the references in records inside a record."""
    inner = [one for one in column.columns if one.references]
    checks = [line for one in inner for line in _render_reference_check(blueprint.entity(one.references), one, "part")]
    value = f"{record}.{column.name}"
    parts = f"{value} or []" if column.kind == "records" else f"[{value}] if {value} is not None else []"
    return [f"        for part in {parts}:", *(f"    {line}" for line in checks)] if checks else []


def _render_reference_check(target: Entity, column: TableColumn, record: str) -> list[str]:
    value = f"{record}.{column.name}"
    look = f"self.lookup(self.state.{target.table}, {{}}, {to_words(target.noun)!r})"
    if column.kind == "texts":
        return [f"        for one in {value} or []:", f"            {look.format('one')}"]
    key = f"str({value})" if column.kind == "whole" else value
    checks = [look.format(key)]
    if target.bin:
        place = "archive" if target.bin == "in_archive" else "trash"
        text = f"{to_words(target.noun)} {{{value}}} is in the {place}"
        checks = [f"if {checks[0]}.{target.bin}:", f'    raise ToolError(f"{text}")']
    if column.required:
        return [f"        {check}" for check in checks]
    return [f"        if {value} is not None:", *(f"            {check}" for check in checks)]


def _render_shared_owner_check(blueprint: Blueprint, entity: Entity, link: SharedOwner) -> list[str]:
    """Return the check that a record belongs to the same record as what it belongs to."""
    column, through = entity.column(link.column), entity.column(link.through)
    other, owner = blueprint.entity(through.references), blueprint.entity(column.references)
    key = f"str(record.{through.name})" if through.kind == "whole" else f"record.{through.name}"
    theirs = f"self.state.{other.table}[{key}].{link.there}"
    present = f"record.{column.name} is not None and record.{through.name} is not None"
    text = f"{to_words(other.noun)} {{record.{through.name}}} belongs to another {to_words(owner.noun)}"
    return [
        f"        if {present} and {theirs} not in (None, record.{column.name}):",
        f'            raise ToolError(f"{text}")',
    ]


def _render_unique_check(entity: Entity, column: TableColumn, record: str) -> list[str]:
    noun, name = to_words(entity.noun), to_words(column.name)
    same = f"other.{column.name} == {record}.{column.name} and other.{entity.key} != {record}.{entity.key}"
    if column.within:
        same += f" and other.{column.within} == {record}.{column.within}"
    present = "" if column.required else f"{record}.{column.name} is not None and "
    return [
        f"        if {present}any({same} for other in self.state.{entity.table}.values()):",
        f'            raise ToolError(f"there is another {noun} with {name} {{{record}.{column.name}}}")',
    ]

"""The code of trash and archive, of summaries, and of who may do what."""

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, ToolBlueprint
from trajsmith.envgen.generate.identifiers import to_words
from trajsmith.phrasing import with_article


def name_bin(entity: Entity) -> str:
    """Return the place where records are that may be brought back: "trash" or "archive"."""
    return "archive" if entity.bin == "in_archive" else "trash"


def name_summary_class(entity: Entity) -> str:
    """Return the class of a table's summary."""
    return f"{entity.cls}Statistics"


def name_total(operation: ToolBlueprint) -> str:
    """Return the field of a summary that has the sum of its amounts."""
    return f"total_{operation.measure.removeprefix('total_')}"


def render_extra_models(blueprint: Blueprint) -> list[str]:
    """Return the classes of results that are no records: summaries, and the person who is signed in."""
    models = dict[str, str]()
    for operation in blueprint.operations:
        entity = blueprint.entity(operation.table)
        if operation.action == "summarize":
            lines = [f"class {name_summary_class(entity)}(StateModel):"]
            lines += [f'    """Numbers of {to_words(entity.table)}."""', "", "    count: int"]
            if entity.status is not None:
                lines.append("    by_status: dict[str, int]")
            if operation.measure:
                lines.append(f"    {name_total(operation)}: float")
            models.setdefault(entity.table, "\n".join(lines))
        if operation.action == "whoami" and blueprint.signed_in and not blueprint.signed_in.table:
            models["whoami"] = (
                'class SignedInPerson(StateModel):\n    """Person who is signed in."""\n\n    full_name: str'
            )
    return list(models.values())


def get_result_class(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> str:
    """Return the class of what a summary or the question who is signed in gives."""
    if operation.action == "summarize":
        return name_summary_class(entity)
    return entity.cls if blueprint.signed_in and blueprint.signed_in.table else "SignedInPerson"


def render_whoami(blueprint: Blueprint) -> list[str]:
    """Return the body of the tool that shows who is signed in."""
    if blueprint.signed_in and blueprint.signed_in.table:
        return [f"return self.state.{blueprint.signed_in.table}[self.state.signed_in]"]
    return ["return SignedInPerson(full_name=self.state.signed_in)"]


def render_permission(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> list[str]:
    """Return the checks of whether the person who is signed in may make a call."""
    lines, signed = list[str](), blueprint.signed_in
    if signed is None:
        return lines
    if operation.roles and signed.table:
        needed = " or ".join(map(to_words, operation.roles))
        person = blueprint.entity(signed.table)
        name = f"acting.{person.label}" if person.label else "self.state.signed_in"
        lines += [
            f"acting = self.state.{signed.table}[self.state.signed_in]",
            f"if acting.{signed.role} not in {operation.roles!r}:",
            f'    raise ToolError(f"{{{name}}} has the role {{acting.{signed.role}}}: this needs {needed}")',
        ]
    if operation.belongs:
        text = f"{to_words(entity.noun)} {{{entity.key}}} belongs to {{record.{operation.belongs}}}"
        lines += [
            f"if record.{operation.belongs} is not None and record.{operation.belongs} != self.state.signed_in:",
            f'    raise ToolError(f"{text}: nobody else may do this")',
        ]
    if signed.table == entity.table and operation.action in ("delete", "discard", "move"):
        key = f"str({entity.key})" if entity.column(entity.key).kind == "whole" else entity.key
        lines += [
            f"if {key} == self.state.signed_in:",
            f'    raise ToolError(f"{to_words(entity.noun)} {{{entity.key}}} is signed in")',
        ]
    return lines


def render_bin_check(entity: Entity) -> list[str]:
    """Return the check that a record which is changed is not in the trash."""
    if not entity.bin:
        return []
    text = f"{to_words(entity.noun)} {{{entity.key}}} is in the {name_bin(entity)}: restore it first"
    return [f"if record.{entity.bin}:", f'    raise ToolError(f"{text}")']


def render_discard(entity: Entity) -> list[str]:
    """Return what puts a record into the trash or the archive."""
    text = f"{to_words(entity.noun)} {{{entity.key}}} is in the {name_bin(entity)} already"
    return [f"if record.{entity.bin}:", f'    raise ToolError(f"{text}")']


def render_restore(blueprint: Blueprint, entity: Entity) -> list[str]:
    """Return what brings a record back; its owner must not be in the trash."""
    text = f"{to_words(entity.noun)} {{{entity.key}}} is not in the {name_bin(entity)}"
    lines = [f"if not record.{entity.bin}:", f'    raise ToolError(f"{text}")']
    for column in entity.columns:
        target = blueprint.entity(column.references) if column.references else None
        if target is None or not target.bin or column.kind == "texts":
            continue
        value = f"str(record.{column.name})" if column.kind == "whole" else f"record.{column.name}"
        present = "" if column.required else f"record.{column.name} is not None and "
        lines += [
            f"if {present}self.state.{target.table}[{value}].{target.bin}:",
            f'    raise ToolError("its {to_words(target.noun)} is in the {name_bin(target)}")',
        ]
    return [*lines, f"record.{entity.bin} = False", "return record"]


def render_summary(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> list[str]:
    """Return the body of a summary: how many records there are, by state, and the sum of their amounts."""
    lines, tests = list[str](), list[str]()
    for name in operation.fields:
        column = entity.column(name)
        if column.references:
            target = blueprint.entity(column.references)
            key = f"str({name})" if target.column(target.key).kind == "whole" else name
            look = f"self.lookup(self.state.{target.table}, {key}, {to_words(target.noun)!r})"
            lines += [f"if {name} is not None:", f"    {look}"]
        tests.append(f"({name} is None or one.{name} == {name})")
    if entity.bin:
        tests.append(f"not one.{entity.bin}")
    if operation.excludes and entity.status is not None:
        tests.append(f"one.{entity.status.name} not in {operation.excludes!r}")
    where = f" if {' and '.join(tests)}" if tests else ""
    lines.append(f"found = [one for one in self.state.{entity.table}.values(){where}]")
    values = ["count=len(found)"]
    if entity.status is not None:
        status = entity.status
        none = "" if status.required else f" if one.{status.name} is not None"
        lines += ["by_status: dict[str, int] = {}", f"for state in [one.{status.name} for one in found{none}]:"]
        lines += ["    by_status[state] = by_status.get(state, 0) + 1"]
        values.append("by_status=by_status")
    if operation.measure:
        total = f"sum(one.{operation.measure} or 0 for one in found)"
        values.append(f"{name_total(operation)}=round({total}, 2)")
    return [*lines, f"return {name_summary_class(entity)}({', '.join(values)})"]


def describe_behaviours(blueprint: Blueprint, entity: Entity) -> list[str]:
    """Return the rules on trash, summaries and permissions of one table, as the policy says them."""
    rules, noun, many = list[str](), with_article(entity.noun).capitalize(), to_words(entity.table)
    operations = [one for one in blueprint.operations if one.table == entity.table]
    actions = {one.action for one in operations}
    if entity.bin:
        place = name_bin(entity)
        into = "deleted" if place == "trash" else "archived"
        if "discard" in actions:
            rules.append(f"{noun} that is {into} goes to the {place}, where lists leave it out and nothing changes it.")
        if "restore" in actions:
            owners = [blueprint.entity(c.references) for c in entity.columns if c.references and c.kind != "texts"]
            owners = [one for one in owners if one.bin]
            text = f"{noun} is restored only if it is in the {place}"
            rules.append(text + "".join(f" and its {to_words(one.noun)} is not" for one in owners) + ".")
    for one in operations:
        if one.action == "summarize" and one.excludes:
            rules.append(
                f"The statistics of {many} leave out those that are {' or '.join(map(to_words, one.excludes))}."
            )
    return rules


_DOES = {"create": "adds", "update": "edits", "delete": "deletes", "discard": "deletes", "restore": "restores"}


def describe_permissions(blueprint: Blueprint) -> list[str]:
    """Return the rules on who may do what."""
    signed = blueprint.signed_in
    show = next((one.name for one in blueprint.operations if one.action == "whoami"), "")
    if signed is None or not show:
        return []
    rules = [f"You act for the person who is signed in, whom {show} shows."]
    grouped: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for one in blueprint.operations:
        entity = blueprint.entity(one.table)
        if not one.roles and not one.belongs:
            continue
        does = _DOES.get(one.action, f"sets to {to_words(str(one.sets))}")
        if one.action == "discard" and name_bin(entity) == "archive":
            does = "archives"
        verbs = grouped.setdefault((one.table, one.roles, one.belongs), [])
        if does not in verbs:
            verbs.append(does)
    for (table, roles, belongs), verbs in grouped.items():
        noun = with_article(blueprint.entity(table).noun)
        does = f"{', '.join(verbs[:-1])} or {verbs[-1]}" if len(verbs) > 1 else verbs[0]
        if roles:
            rules.append(f"Only {' or '.join(with_article(role) for role in roles)} {does} {noun}.")
        if belongs:
            free = any(one.action == "move" and one.table == table and not one.belongs for one in blueprint.operations)
            others = " Others may set its status." if free else ""
            rules.append(f"Only the {to_words(belongs)} of {noun} {does} it, as long as it has one.{others}")
    if signed.table:
        noun = blueprint.entity(signed.table).noun
        own = [one for one in blueprint.operations if one.table == signed.table]
        if any(one.action in ("delete", "discard", "move") for one in own):
            rules.append(f"The {to_words(noun)} who is signed in is not deleted and keeps the status.")
    return rules

"""How users speak of an environment's records, as far as names tell."""

from itertools import combinations
from typing import Any

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, TableColumn, ToolBlueprint
from trajsmith.envgen.generate.identifiers import to_words
from trajsmith.phrasing import pluralize, with_article
from trajsmith.phrasing.plain_sentences import is_noun

_LABELS = ("name", "title", "label", "subject", "username", "full_name", "code", "key_name")
_MOVE_VERBS = {
    "done": "mark {} as done", "closed": "close {}", "cancelled": "cancel {}", "archived": "archive {}",
    "active": "activate {}", "paused": "pause {}", "published": "publish {}", "approved": "approve {}",
    "rejected": "reject {}", "completed": "mark {} as completed", "resolved": "mark {} as resolved",
    "sent": "send {}", "revoked": "revoke {}", "confirmed": "confirm {}", "merged": "merge {}",
    "refunded": "refund {}", "suspended": "suspend {}", "accepted": "accept {}", "declined": "decline {}",
    "submitted": "submit {}", "shipped": "mark {} as shipped", "paid": "mark {} as paid",
    "draft": "put {} back to draft",
    "open": "reopen {}", "terminated": "terminate {}", "stopped": "stop {}", "muted": "mute {}", "retired": "retire {}",
}  # fmt: skip
_PLAIN = {"date": "|date", "moment": "|datetime", "texts": "|words", "choice": "|human"}
"""How values of a kind are written in a template."""


def render_phrasebook(blueprint: Blueprint) -> str:
    """Return the text of a `phrases.yaml`; `phrasing.phrasebook` says what each key means."""
    import yaml

    entities = {entity.key: _build_entity_words(entity) for entity in blueprint.entities}
    asked = {one.name: _build_tool_words(blueprint, one, blueprint.entity(one.table)) for one in blueprint.operations}
    tools = {name: words for name, words in asked.items() if words}
    parameters = _build_parameters(blueprint)
    book = (
        {"entities": entities}
        | ({"parameters": parameters} if parameters else {})
        | ({"tools": tools} if tools else {})
    )
    head = f"# How users of {blueprint.name} speak. See phrasing/phrasebook.py for what each key means.\n"
    return head + yaml.safe_dump(book, sort_keys=False, allow_unicode=True, width=118)


def find_label_column(entity: Entity) -> TableColumn | None:
    """Return the column by which people call a record of a table."""
    if entity.label:
        return entity.column(entity.label)
    named = [column for name in _LABELS for column in entity.columns if column.name == name and column.kind == "text"]
    suffixed = [c for c in entity.columns if c.kind == "text" and c.name.endswith(("_name", "_title")) and c.required]
    return next(iter([*named, *suffixed]), None) if not entity.key_is_given else None


def _name_many(entity: Entity) -> str:
    """Return the words for several records of a table."""
    is_plural = entity.table != entity.noun and not entity.table.endswith("_list")
    return to_words(entity.table if is_plural else pluralize(entity.noun))


def _slot(column: TableColumn, source: str = "") -> str:
    name = f"{source}.{column.name}" if source else column.name
    money = column.kind == "number" and column.name in _MONEY
    return "{" + name + ("|money" if money else _PLAIN.get(column.kind, "")) + "}"


_MONEY = frozenset({
    "price", "amount", "total", "budget", "balance", "salary", "monthly_cost", "daily_budget", "limit_amount",
    "price_per_night", "limit_price", "target_value", "cost", "fee",
})  # fmt: skip


def _is_free_text(column: TableColumn) -> bool:
    return (
        column.kind == "text"
        and bool(column.pool)
        and any(str(value).endswith((".", "!", "?")) for value in column.pool)
    )


def _is_called(column: TableColumn) -> bool:
    """Return True for a column that holds what a record is called."""
    return column.name in _LABELS or column.name.endswith(("_name", "_title"))


def _quoted(column: TableColumn, source: str = "") -> str:
    slot = _slot(column, source)
    is_name = _is_called(column) or (column.kind == "text" and column.required and column.unique)
    return f'"{slot}"' if (_is_free_text(column) or is_name) and not _looks_like_person(column) else slot


def _build_tool_words(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    """Return the words about one tool: how it is asked for, and how its result is told."""
    if operation.owner or (operation.column and operation.action != "move"):
        return {}
    words = {
        "get": _build_get, "list": _build_list, "create": _build_create, "update": _build_update,
        "delete": _build_delete, "move": _build_move,
    }.get(operation.action)  # fmt: skip
    return words(blueprint, operation, entity) if words else {}


def _build_get(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    slot, noun = f"{{{entity.key}}}", to_words(entity.noun)
    ask = [f"look at {slot}", f"check the details of {slot}", f"see what is stored about {slot}", f"pull up {slot}"]
    narrate = [f"look that {noun} up", f"open the {noun}", f"pull up the {noun}"]
    questions = []
    for column in entity.columns:
        if column.name == entity.key or column.references or _is_free_text(column) or column.kind in ("texts", "flag"):
            continue
        if not column.required or not is_noun(to_words(column.name)) or column.name == entity.label:
            continue
        label, value = to_words(column.name), _slot(column, "out")
        questions.append({
            "asks": [f"$.{column.name}"], "ask": [f"check the {label} of {slot}", f"find out the {label} of {slot}"],
            "say": [f"What is the {label} of {slot}?", f"Which {label} does {slot} have?"],
            "answer": [f"The {label} is {value}.", f"It's {value}.", f"The {noun} has {value} as its {label}."],
        })  # fmt: skip
    words: dict[str, Any] = {"ask": ask, "narrate": narrate, "done": _describe_record(entity, "out")}
    clauses = [column for column in entity.columns if column.required and column.kind != "flag"]
    words["facts"] = [f"$.{column.name}" for column in clauses][:6]
    return words | ({"questions": questions[:4]} if questions else {})


def _describe_record(entity: Entity, source: str) -> list[str]:
    """Return sentences that tell a whole record."""
    label, noun = find_label_column(entity), to_words(entity.noun)
    head = f"{_quoted(label, source)} ({{{source}.{entity.key}}})" if label else f"The {noun} {{{source}.{entity.key}}}"
    parts = [
        _describe_field(column, source)
        for column in entity.columns
        if column not in (label,) and column.name != entity.key
    ]
    rest = "".join(parts)
    return [f"I found {head}{rest}.", f"Here is the {noun}: {head}{rest}."]


def _describe_field(column: TableColumn, source: str) -> str:
    name = f"{source}.{column.name}"
    label = to_words(column.name.removesuffix("_id"))
    if column.kind == "flag":
        text = f"; {label}: {{{name}|yesno}}"
    else:
        text = f"; {label} {_quoted(column, source)}"
    return text if column.required else f"{{% if {name} %}}{text}{{% endif %}}"


def _build_list(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    many = _name_many(entity)
    ask = [f"see the {many}", f"get a list of the {many}", f"go through the {many}", f"know which {many} there are"]
    say = [f"Which {many} do we have?", f"What {many} are there?"]
    fields = [entity.column(name) for name in operation.fields]
    for column in fields:
        slot = _slot(column)
        if column.references:
            ask += [f"see the {many} of {slot}", f"know which {many} belong to {slot}"]
            say += [f"Which {many} does {slot} have?"]
        elif column.kind == "choice" and column == entity.status:
            ask += [f"see the {many} that are {slot}", f"find all {many} with the status {slot}"]
            say += [f"Which {many} are {slot} right now?"]
        elif column.kind == "choice":
            ask += [f"see the {many} with {slot} as {to_words(column.name)}"]
    for first, second in combinations([c for c in fields if c.references or c == entity.status], 2):
        owner, status = (first, second) if first.references else (second, first)
        if not status.references:
            ask += [f"see which {many} of {_slot(owner)} are {_slot(status)}"]
    if operation.search:
        ask += [
            f'look for {many} with "{{{operation.search}}}" in them',
            f'search the {many} for "{{{operation.search}}}"',
        ]
        say += [f'Is there anything about "{{{operation.search}}}" among the {many}?']
    rows = f"{{out.result|rows('{entity.key}')}}"
    done = [
        f"{{% if out.result %}}I found {{out.result|length}}: {rows}.{{% else %}}There are none.{{% endif %}}",
        f"{{% if out.result %}}These are the {many}: {rows}.{{% else %}}I found no {many} like that.{{% endif %}}",
        f"{{% if out.result %}}Here is what I see: {rows}.{{% else %}}The list is empty.{{% endif %}}",
    ]
    label = find_label_column(entity)
    facts = [f"$.result[*].{label.name if label else entity.key}"]
    narrate = [f"check the {many}", f"go through the {many}", f"look at the {many}"]
    return {"ask": ask, "say": say, "narrate": narrate, "done": done, "facts": facts}


def _build_create(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    """Return the request for a new record with its name, its owners and up to two further values."""
    noun, label = to_words(entity.noun), find_label_column(entity)
    fields = [entity.column(name) for name in operation.fields]
    owners = [column for column in fields if column.references]
    named = label if label is not None and label.name in operation.fields else None
    lead = f"{with_article(entity.noun)} called {_quoted(named)}" if named else with_article(entity.noun)
    if named is not None and not _is_called(named):
        lead = f"{with_article(entity.noun)} with the {to_words(named.name)} {_quoted(named)}"
    if named is not None and _is_free_text(named):
        lead = f"the {to_words(entity.noun)} {_quoted(named)}"
    if named is not None and _looks_like_person(named):
        lead = f"{_slot(named)} as {with_article(entity.noun)}"
    firsts = [column for column in owners if column.required]
    head = lead + "".join(f" {'to' if not place else 'and'} {_slot(c)}" for place, c in enumerate(firsts))
    rest = [c for c in fields if c not in (named, *firsts)]
    endings = [column for column in rest if _add_value(column)]
    ask = [f"{verb} {head}" for verb in ("add", "create" if not firsts else "add", "put in")][: 2 if firsts else 3]
    for size in (1, 2, 3):
        for some in list(combinations(endings, size))[:6]:
            tail = ", ".join(_add_value(column) for column in some)
            ask += [f"add {head}, {tail}"]
            if size == 1 and not firsts:
                ask += [f"create {head}, {tail}"]
    say = (
        [f"We need {lead}{''.join(f' for {_slot(c)}' for c in firsts)}."]
        if not (named and _looks_like_person(named))
        else []
    )
    out_name = _quoted(named, "out") if named else f"the {noun}"
    done = [
        f"I've added {out_name}; the {noun} has the ID {{out.{entity.key}}}.",
        f"Done, {out_name} is saved as {{out.{entity.key}}}.",
        f"The {noun} {out_name if named else ''} is there now ({{out.{entity.key}}}).".replace("  ", " "),
    ]
    narrate = [f"add the {noun}", f"create that {noun}", f"enter the {noun}"]
    confirm = [f"add {head}"]
    words = {"ask": list(dict.fromkeys(ask)), "narrate": narrate, "confirm": confirm, "done": done}
    return words | ({"say": say} if say else {})


def _looks_like_person(column: TableColumn) -> bool:
    from trajsmith.envgen.generate.known_records import is_person

    return bool(column.pool) and is_person(str(column.pool[0]))


def _add_value(column: TableColumn) -> str:
    """Return a phrase that adds a value to a request, or nothing where none sounds right."""
    label, slot = to_words(column.name), _quoted(column)
    if column.references:
        return f"linked to {slot}"
    if column.kind == "flag":
        return ""
    if column.name in ("assignee", "owner", "lead", "organizer", "host", "manager", "author", "teacher"):
        return f"with {slot} as {label}"
    if column.name in ("due_date", "deadline", "due"):
        return f"due on {slot}"
    if column.kind in ("date", "moment") and label.endswith((" on", " at")):
        return f"{label} {slot}".replace(" at {", " on {") if is_noun(label.split()[0]) else ""
    if column.kind in ("choice", "text", "number", "whole", "date", "moment") and is_noun(label):
        return f"{label} {slot}"
    return f"with the tags {slot}" if column.kind == "texts" and column.name == "tags" else ""


def _build_update(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    slot, noun = f"{{{entity.key}}}", to_words(entity.noun)
    ask, clauses = [], []
    fields = [entity.column(name) for name in operation.fields]
    usable = [column for column in fields if column.kind != "flag" and is_noun(to_words(column.name))]
    for column in usable:
        label, value = to_words(column.name), _quoted(column)
        if _is_called(column):
            ask += [f"rename {slot} to {value}"]
        else:
            ask += [f"change the {label} of {slot} to {value}", f"set the {label} of {slot} to {value}"]
    for first, second in list(combinations(usable, 2))[:8]:
        one, two = to_words(first.name), to_words(second.name)
        ask += [f"change {slot}: {one} {_quoted(first)} and {two} {_quoted(second)}"]
    ask += [f"update {slot}"]
    for column in fields:
        label = to_words(column.name)
        value = f"{{out.{column.name}|yesno}}" if column.kind == "flag" else _quoted(column, "out")
        clauses.append(
            f"{{% if arg.{column.name} is defined and arg.{column.name} is not none %}}"
            f"; new {label}: {value}{{% endif %}}"
        )
    name = find_label_column(entity)
    name_slot = f"{_quoted(name, 'out')} ({{out.{entity.key}}})" if name else f"The {noun} {{out.{entity.key}}}"
    done = [
        f"{name_slot} is updated{''.join(clauses)}.",
        f"I've changed the {noun} {{out.{entity.key}}}{''.join(clauses)}.",
    ]
    return {"ask": ask, "narrate": [f"change the {noun}", f"update that {noun}", "make that change"], "done": done}


def _build_delete(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    slot, noun, name = f"{{{entity.key}}}", to_words(entity.noun), find_label_column(entity)
    name_slot = f"{_quoted(name, 'out')} ({{out.{entity.key}}})" if name else f"the {noun} {{out.{entity.key}}}"
    subject = name_slot[:1].upper() + name_slot[1:]
    return {
        "ask": [f"delete {slot}", f"remove {slot}", f"get rid of {slot}"],
        "say": [f"We don't need {slot} any more, please delete it."],
        "narrate": [f"delete the {noun}", f"remove that {noun}"], "confirm": [f"delete {slot} for good"],
        "done": [f"I've deleted {name_slot}.", f"{subject} is gone.", f"{subject} has been removed."],
    }  # fmt: skip


def _build_move(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    if isinstance(operation.sets, bool):
        return {}
    slot, noun, name = f"{{{entity.key}}}", to_words(entity.noun), find_label_column(entity)
    state = to_words(operation.sets)
    verb = operation.name.split("_")
    own = next((word for word in verb if _leads_to(word, operation.sets)), "")
    phrases = [f"{own} {slot}"] if own else [_MOVE_VERBS.get(operation.sets, "mark {} as " + state).format(slot)]
    phrases += [f"mark {slot} as {state}", f"set {slot} to {state}"]
    name_slot = f"{_quoted(name, 'out')} ({{out.{entity.key}}})" if name else f"the {noun} {{out.{entity.key}}}"
    name_slot = name_slot[:1].upper() + name_slot[1:]
    done = [
        f"{name_slot} is {state} now.",
        f"Done, the {noun} {{out.{entity.key}}} is now {state}.",
        f"{name_slot} has been set to {state}.",
    ]
    return {
        "ask": list(dict.fromkeys(phrases)), "narrate": [phrases[0].replace(slot, f"the {noun}")], "done": done,
        "confirm": [phrases[0]], "facts": [f"$.{operation.column}"],
    }  # fmt: skip


def _leads_to(verb: str, state: str) -> bool:
    from trajsmith.environments.adapters.openapi.naming import find_outcomes

    return verb.isalpha() and len(verb) > 2 and state in find_outcomes(verb)[:1]


def _build_parameters(blueprint: Blueprint) -> dict[str, Any]:
    """Return how values are given that no request names."""
    parameters: dict[str, Any] = {}
    for operation in blueprint.operations:
        entity = blueprint.entity(operation.table)
        for name in operation.fields:
            if name not in entity.names:
                continue
            column = entity.column(name)
            label = to_words(name)
            if column.references or name in parameters or not is_noun(label):
                continue
            value = (
                "{value|date}"
                if column.kind == "date"
                else "{value|datetime}"
                if column.kind == "moment"
                else "{value|human}"
                if column.kind == "choice"
                else "{value}"
            )
            if column.kind == "number" and name in _MONEY:
                value = "{value|money}"
            quoted = f'"{value}"' if _is_free_text(column) or name in _LABELS else value
            tell = (
                [f"{label.capitalize()}: {quoted}."]
                if _is_free_text(column)
                else [
                    f"The {label} is {quoted}.",
                    f"{label.capitalize()}: {quoted}.",
                    f"The {label} should be {quoted}.",
                ]
            )
            parameters[name] = {
                "label": label,
                "tell": tell,
                "ask": [f"What {label} should I put?", f"Which {label} would you like?", f"What is the {label}?"],
            }
            if _is_free_text(column):
                parameters[name]["tell"] = [f"The {label} should read {quoted}", f"{label.capitalize()}: {quoted}"]
    return parameters


def _build_entity_words(entity: Entity) -> dict[str, Any]:
    noun, label = to_words(entity.noun), find_label_column(entity)
    by: dict[str, list[str]] = {}
    for column in entity.columns:
        if column.name == entity.key or column.references:
            continue
        if column == label and _looks_like_person(column):
            by[column.name] = ["{value}", f"the {noun} {{value}}"]
        elif column == label and _is_free_text(column):
            by[column.name] = [f'the {noun} "{{value}}"']
        elif column == label and not _is_called(column):
            by[column.name] = [f'the {noun} "{{value}}"', f"the {noun} with the {to_words(column.name)} {{value}}"]
        elif column == label:
            by[column.name] = [f'the {noun} "{{value}}"', f'the {noun} called "{{value}}"']
        elif column.name == "email":
            by[column.name] = [f"the {noun} with the email {{value}}"]
        elif column.kind == "choice" and entity.key_style == "counted":
            by[column.name] = [f"the {noun} whose {to_words(column.name)} is {{value|human}}"]
        elif column.kind == "date" and column.required:
            name = to_words(column.name)
            link = "on" if name in ("day", "date") else f"with the {name}" if is_noun(name) else name
            by[column.name] = [f"the {noun} {link} {{value|date}}"]
    entry: dict[str, Any] = {"noun": noun, "plural": _name_many(entity), "own": [f"that {noun}"]}
    rows = _build_rows(entity, label)
    if rows:
        entry["row"] = rows
    if label is not None:
        entry["name"] = [f"the {noun} {_quoted(label)}"] if not _looks_like_person(label) else [_slot(label)]
    return {**entry, "by": dict(list(by.items())[:4])} if by else entry


def _build_rows(entity: Entity, label: TableColumn | None) -> list[str]:
    """Return how one record is told among others."""
    if label is None:
        return [f"{{{entity.key}}}"]
    status = entity.status
    others = [
        c for c in entity.columns if c.required and c.kind in ("date", "number") and c.name in (*_MONEY, "due_date")
    ]
    parts = [f"{{{entity.key}}}"]
    if status is not None:
        parts.append(
            f"{{{status.name}|human}}"
            if status.required
            else f"{{% if {status.name} %}}{{{status.name}|human}}{{% else %}}no status{{% endif %}}"
        )
    more = [*parts, *(_slot(column) for column in others[:1])]
    return [f"{_quoted(label)} ({', '.join(more)})"]

"""How users speak of trash and archive, of statistics, and of who is signed in."""

from typing import Any

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, ToolBlueprint
from trajsmith.envgen.generate.code_behaviours import name_bin, name_total
from trajsmith.envgen.generate.identifiers import to_words
from trajsmith.envgen.generate.phrase_slots import (
    MONEY,
    find_label_column,
    name_many,
    render_called,
    render_slot,
)
from trajsmith.phrasing import pluralize


def build_restore(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    slot, noun, place = f"{{{entity.key}}}", to_words(entity.noun), name_bin(entity)
    name_slot = render_called(entity, "out")
    return {
        "ask": [f"bring {slot} back from the {place}", f"restore {slot}"],
        "say": [f"{slot} ended up in the {place} by mistake, please bring it back."],
        "narrate": [f"restore the {noun}"], "confirm": [f"restore {slot}"],
        "done": [f"I've restored {name_slot}.", f"{name_slot[:1].upper()}{name_slot[1:]} is back."],
    }  # fmt: skip


def build_summary(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    """Return the words for how many records there are, and the question what they come to."""
    many, without = name_many(entity), ""
    ask = [f"find out how many {many} there are", f"find out the number of {many}"]
    say = [f"How many {many} do we have?", f"How many {many} are there at the moment?"]
    for name in operation.fields:
        column = entity.column(name)
        slot = render_slot(column)
        if column.references:
            ask += [f"find out how many {many} {slot} has"]
            say += [f"How many {many} does {slot} have?"]
        else:
            ask += [f"find out how many {many} there are whose {to_words(name)} is {slot}"]
    by = ""
    if entity.status is not None:
        by = "{% for state in out.by_status %}{% if loop.first %} ({% elif not loop.last %}, {% else %} and {% endif %}"
        by += "{% if out.by_status[state] < out.count %}{out.by_status[state]} {% elif out.count > 1 %}all {% endif %}"
        by += "{state|human}{% if loop.last %}"
        by += "{% if out.by_status.values()|sum < out.count %}; {out.count - out.by_status.values()|sum} without a "
        by += f"{to_words(entity.status.name)}{{% endif %}}){{% endif %}}{{% endfor %}}"
    if operation.excludes:
        without = f", not counting those that are {' or '.join(map(to_words, operation.excludes))}"
    counted = f"{{out.count}} {{% if out.count == 1 %}}{to_words(entity.noun)}{{% else %}}{many}{{% endif %}}{by}"
    are = "{% if out.count == 1 %}is{% else %}are{% endif %}"
    done = [
        f"{{% if out.count %}}There {are} {counted}{{% else %}}There are no {many}{{% endif %}}{without}.",
        f"{{% if out.count %}}I count {counted}{{% else %}}I find no {many}{{% endif %}}{without}.",
    ]
    narrate = [f"count the {many}", f"see how many {many} there are"]
    words = {"ask": ask, "say": say, "narrate": narrate, "done": done, "facts": ["$.count"]}
    return words | ({"questions": [_ask_total(operation, many, without)]} if operation.measure else {})


def _ask_total(operation: ToolBlueprint, many: str, without: str) -> dict[str, Any]:
    """Return the question what the amounts of all records come to; `without` tells which are left out."""
    label = pluralize(to_words(operation.measure))
    total = f"{{out.{name_total(operation)}{'|money' if operation.measure in MONEY else ''}}}"
    return {
        "asks": [f"$.{name_total(operation)}"],
        "ask": [f"find out what the {label} of all {many} add up to"],
        "say": [f"What do the {label} of all {many} add up to?"],
        "answer": [f"The {label} add up to {total}{without}.", f"Together they come to {total}{without}."],
    }


def build_whoami(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    signed = blueprint.signed_in
    if signed is None or not signed.table:
        name, more, facts = "{out.full_name}", "", ["$.full_name"]
    else:
        label = find_label_column(entity)
        name = render_slot(label, "out") if label else f"{{out.{entity.key}}}"
        more, facts = f", with the role {{out.{signed.role}|human}}", [f"$.{label.name if label else entity.key}"]
    return {
        "ask": ["check who is signed in", "find out which account this is"], "say": ["Who is signed in here?"],
        "narrate": ["check who is signed in"], "facts": facts,
        "done": [f"{name} is signed in{more}.", f"You're signed in as {name}{more}."],
    }  # fmt: skip

"""How users speak of an environment's records, as far as names tell."""

from itertools import combinations
from typing import Any

from trajsmith.envgen.generate.blueprint import Blueprint, Entity, TableColumn, ToolBlueprint
from trajsmith.envgen.generate.code_behaviours import name_bin
from trajsmith.envgen.generate.identifiers import to_words
from trajsmith.envgen.generate.phrase_behaviours import build_restore, build_summary, build_whoami
from trajsmith.envgen.generate.phrase_entities import build_entity_words
from trajsmith.envgen.generate.phrase_questions import build_get_questions, build_list_questions
from trajsmith.envgen.generate.phrase_slots import (
    LABELS,
    MONEY,
    add_value,
    find_label_column,
    is_called,
    is_free_text,
    join_values,
    list_state_words,
    looks_like_person,
    name_column,
    name_many,
    render_called,
    render_quoted,
    render_slot,
    render_unit,
)
from trajsmith.phrasing import is_noun, singularize, with_article

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

_MEDIA = frozenset({"video", "file", "image", "photo", "picture", "document", "audio", "recording", "attachment"})
"""What nobody sends to nobody: a tool that makes one of it uploads it."""
_SPOKEN_VERBS = {"check": "tick off {}", "uncheck": "untick {}"}
"""What people say for verbs that mean something else, too: who wants to check an item looks at it."""


def render_phrasebook(blueprint: Blueprint) -> str:
    """Return the text of a `phrases.yaml`; `phrasing.phrasebook` says what each key means."""
    import yaml

    entities = {entity.key: build_entity_words(blueprint, entity) for entity in blueprint.entities}
    asked = {one.name: _build_tool_words(blueprint, one, blueprint.entity(one.table)) for one in blueprint.operations}
    tools = {name: words for name, words in asked.items() if words}
    parameters = _build_parameters(blueprint)
    signs_in = any(operation.action == "whoami" for operation in blueprint.operations)
    book = (
        ({"introductions": False} if signs_in else {})  # another name than that of who is signed in
        | {"entities": entities}
        | ({"parameters": parameters} if parameters else {})
        | ({"tools": tools} if tools else {})
    )
    head = f"# How users of {blueprint.name} speak. See phrasing/phrasebook.py for what each key means.\n"
    return head + yaml.safe_dump(book, sort_keys=False, allow_unicode=True, width=118)


def _build_tool_words(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    """Return the words about one tool: how it is asked for, and how its result is told."""
    if operation.owner or (operation.column and operation.action != "move"):
        return {}
    words = {
        "get": _build_get, "list": _build_list, "create": _build_create, "update": _build_update,
        "delete": _build_delete, "move": _build_move, "discard": _build_delete, "restore": build_restore,
        "summarize": build_summary, "whoami": build_whoami,
    }.get(operation.action)  # fmt: skip
    return words(blueprint, operation, entity) if words else {}


def _build_get(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    slot, noun = f"{{{entity.key}}}", to_words(entity.noun)
    ask = [f"look at {slot}", f"check the details of {slot}", f"see what is stored about {slot}", f"pull up {slot}"]
    narrate = [f"look that {noun} up", f"open the {noun}", f"pull up the {noun}"]
    questions = build_get_questions(entity)
    words: dict[str, Any] = {"ask": ask, "narrate": narrate, "done": _describe_record(entity, "out")}
    clauses = [column for column in entity.columns if column.required and column.kind != "flag"]
    words["facts"] = [f"$.{column.name}" for column in clauses][:6]
    return words | ({"questions": questions} if questions else {})


def _describe_record(entity: Entity, source: str) -> list[str]:
    """Return sentences that tell a whole record."""
    label, noun = find_label_column(entity), to_words(entity.noun)
    head = render_called(entity, source)
    head = head[:1].upper() + head[1:] if label is None else head
    parts = [
        _describe_field(column, source)
        for column in entity.columns
        if column not in (label,) and column.name not in (entity.key, entity.bin)
    ]
    if entity.bin:
        parts.append(f"{{% if {source}.{entity.bin} %}}; in the {name_bin(entity)}{{% endif %}}")
    rest = "".join(parts)
    return [f"I found {head}{rest}.", f"Here is the {noun}: {head}{rest}."]


def _describe_field(column: TableColumn, source: str) -> str:
    name = f"{source}.{column.name}"
    label = to_words(column.name.removesuffix("_id")) if column.references else name_column(column)
    if column.kind == "flag":
        text = f"; {label}: {{{name}|yesno}}"
    else:
        label = f"{label.removesuffix(' at')} on" if column.kind == "moment" and label.endswith(" at") else label
        text = f"; {label} {render_quoted(column, source)}"
    return text if column.required else f"{{% if {name} %}}{text}{{% endif %}}"


def _build_list(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    many = name_many(entity)
    ask = [
        f"see the {many}",
        f"get a list of the {many}",
        f"have a look at the {many}",
        f"find out which {many} there are",
    ]
    say = [f"Which {many} do we have?", f"What {many} are there?"]
    fields = [entity.column(name) for name in operation.fields]
    for column in fields:
        slot = render_slot(column)
        if column.references:
            ask += [f"see the {many} of {slot}", f"find out which {many} belong to {slot}"]
            say += [f"Which {many} does {slot} have?"]
        elif column.kind == "choice" and column == entity.status:
            ask += [f"see the {many} that are {slot}", f"find all {many} that are {slot}"]
            say += [f"Which {many} are {slot} right now?"]
        elif column.kind == "choice":
            ask += [f"see the {many} whose {name_column(column)} is {slot}"]
    for first, second in combinations([c for c in fields if c.references or c == entity.status], 2):
        owner, status = (first, second) if first.references else (second, first)
        if not status.references:
            ask += [f"see which {many} of {render_slot(owner)} are {render_slot(status)}"]
    if operation.search:
        ask += [
            f'look for {many} that match "{{{operation.search}}}"',
            f'search the {many} for "{{{operation.search}}}"',
        ]
        say += [f'Is there anything about "{{{operation.search}}}" among the {many}?']
    if operation.search_needed:
        narrowed = [f'{text} that match "{{{operation.search}}}"' for text in ask[4:-2] if text.startswith("see the ")]
        ask, say = [*ask[-2:], *narrowed], say[-1:]
    rows = f"{{out.result|rows('{entity.key}')}}"
    is_one, one = "{% if out.result|length == 1 %}", to_words(entity.noun)
    these = f"{is_one}This is the {one}{{% else %}}These are the {many}{{% endif %}}"
    here = f"{is_one}Here is the {one}{{% else %}}Here are the {many}{{% endif %}}"
    done = [
        f"{{% if out.result %}}I found {{out.result|length}}: {rows}.{{% else %}}There are none.{{% endif %}}",
        f"{{% if out.result %}}{these}: {rows}.{{% else %}}I found no {many} like that.{{% endif %}}",
        f"{{% if out.result %}}{here}: {rows}.{{% else %}}The list is empty.{{% endif %}}",
    ]
    label = find_label_column(entity)
    facts = [f"$.result[*].{label.name if label else entity.key}"]
    narrate = [f"check the {many}", f"go through the {many}", f"look at the {many}"]
    words: dict[str, Any] = {"ask": ask, "say": say, "narrate": narrate, "done": done, "facts": facts}
    questions = build_list_questions(operation, entity)
    return words | ({"questions": questions} if questions else {})


def _build_create(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    """Return the request for a new record with its name, its owners and up to two further values."""
    noun, label = to_words(entity.noun), find_label_column(entity)
    fields = [entity.column(name) for name in operation.fields]
    owners = [column for column in fields if column.references]
    named = label if label is not None and (label.name in operation.fields or entity.is_named) else None
    lead = f"{with_article(entity.noun)} called {render_quoted(named)}" if named else with_article(entity.noun)
    if named is not None and not (is_called(named) or (entity.is_named and "path" not in named.name)):
        lead = f"{with_article(entity.noun)} with the {to_words(named.name)} {render_quoted(named)}"
    sends = "send" in operation.name.lower().split("_")
    if named is not None and is_free_text(named):
        lead = f"{'the ' + to_words(entity.noun) if sends else with_article(entity.noun)} {render_quoted(named)}"
    if named is not None and looks_like_person(named):
        lead = f"{render_slot(named)} as {with_article(entity.noun)}"
    firsts = [column for column in owners if column.required]
    head = lead + "".join(f" {'to' if not place else 'and'} {render_slot(c)}" for place, c in enumerate(firsts))
    rest = [c for c in fields if c not in (named, *firsts)]
    endings = [column for column in rest if add_value(column)]
    verbs = ("add", "create") if not sends else ("upload",) if entity.noun in _MEDIA else ("send",)
    ask = [f"{verb} {head}" for verb in verbs][: 1 if firsts else 2]
    for size in (1, 2, 3):
        for some in list(combinations(endings, size))[:6]:
            tail = join_values(some)
            ask += [f"{verbs[0]} {head}{tail}"]
            if size == 1 and not firsts and not sends:
                ask += [f"create {head}{tail}"]
    say = (
        [f"We need {lead}{''.join(f' for {render_slot(c)}' for c in firsts)}."]
        if not (named and (looks_like_person(named) or is_free_text(named))) and "send" not in operation.name.lower()
        else []
    )
    out_name = render_quoted(named, "out") if named else f"the {noun}"
    done = [
        f"I've added {out_name}; the {noun} has the ID {{out.{entity.key}}}.",
        f"Done, {out_name} is saved as {{out.{entity.key}}}.",
        f"The {noun} {out_name if named else ''} is there now ({{out.{entity.key}}}).".replace("  ", " "),
    ]
    if entity.is_named:
        done = [f"I've added {out_name}.", f"Done, {out_name} is there now."]
    if sends:
        number = "" if entity.is_named else f" ({{out.{entity.key}}})"
        sent = "uploaded" if entity.noun in _MEDIA else "sent"
        done = [f"I've {sent} {out_name}{number}.", f"Done, {out_name} has been {sent}{number}."]
    narrate = [f"{verbs[0]} the {noun}"] if sends else [f"add the {noun}", f"create that {noun}", f"enter the {noun}"]
    confirm = [f"{verbs[0]} {head}"]
    words = {"ask": list(dict.fromkeys(ask)), "narrate": narrate, "confirm": confirm, "done": done}
    return words | ({"say": say} if say else {})


def _build_update(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    slot, noun = f"{{{entity.key}}}", to_words(entity.noun)
    ask, clauses, earlier = list[str](), list[str](), list[str]()
    fields = [entity.column(name) for name in operation.fields]
    usable = [column for column in fields if column.kind != "flag" and is_noun(name_column(column, entity))]
    for column in usable:
        label, value = name_column(column, entity), render_quoted(column)
        if column == find_label_column(entity) and is_called(column):
            ask += [_unless_clause(entity, f"rename {slot} to {value}", f"give {slot} the name {value}")]
        else:
            usual, after = f"the {label} of {slot} to {value}", f"set the {label} to {value} for {slot}"
            ask += [_unless_clause(entity, f"{verb} {usual}", after) for verb in ("change", "set")]
    for first, second in list(combinations(usable, 2))[:8]:
        one, two = (f"to {render_quoted(column)}" for column in (first, second))
        owned, other = (f"the {name_column(column, entity)}" for column in (first, second))
        together = is_called(first) or is_called(second)
        ask += [f"change {slot}: set {owned} {one} and {other} {two}"] if together else []
        both = (f"set {owned} of {slot} {one} and {other} {two}", f"set {owned} {one} and {other} {two} for {slot}")
        ask += [] if together else [_unless_clause(entity, *both)]
    ask += [f"update {slot}"]
    label_column = find_label_column(entity)
    is_person = label_column is not None and looks_like_person(label_column)
    for column in fields:
        label = name_column(column, entity)
        value = render_quoted(column, "out")
        are = "are" if singularize(label) != label and not label.startswith("number of ") else "is"
        states = f"{'their' if is_person else 'its'} {label} {are} now {value}"
        if column.kind == "flag":
            states = (
                f"{'they are' if is_person else 'it is'} {{% if not out.{column.name} %}}not {{% endif %}}{label} now"
            )
        is_changed = f"(arg.{column.name} is defined and arg.{column.name} is not none)"
        before = f"{{% if {' or '.join(earlier)} %}} and{{% else %}};{{% endif %}}" if earlier else ";"
        clauses.append(f"{{% if {is_changed} %}}{before} {states}{{% endif %}}")
        earlier.append(is_changed)
    name_slot = render_called(entity, "out")
    subject = name_slot[:1].upper() + name_slot[1:]
    if label_column in fields and label_column is not None and not entity.is_named:
        # What has just got another name is not called by it: "The note is updated; its text is now ..."
        renamed = f"{{% if arg.{label_column.name} is defined and arg.{label_column.name} is not none %}}"
        subject = f"{renamed}The {noun} ({{out.{entity.key}}}){{% else %}}{subject}{{% endif %}}"
        name_slot = f"{renamed}the {noun} ({{out.{entity.key}}}){{% else %}}{name_slot}{{% endif %}}"
    done = [f"{subject} is updated{''.join(clauses)}.", f"I've changed {name_slot}{''.join(clauses)}."]
    return {"ask": ask, "narrate": [f"change the {noun}", f"update that {noun}", "make that change"], "done": done}


def _unless_clause(entity: Entity, usual: str, otherwise: str) -> str:
    """Return a request in another order after a clause: "the date of the task that is open to 26 March" is misread."""
    clause = f"' that is ' in {entity.key} or ' whose ' in {entity.key}"
    return f"{{% if {clause} %}}{otherwise}{{% else %}}{usual}{{% endif %}}"


def _build_delete(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    slot, noun, name_slot = f"{{{entity.key}}}", to_words(entity.noun), render_called(entity, "out")
    subject = name_slot[:1].upper() + name_slot[1:]
    if operation.action == "discard" and name_bin(entity) == "archive":
        return {
            "ask": [f"archive {slot}", f"move {slot} to the archive"], "narrate": [f"archive the {noun}"],
            "confirm": [f"archive {slot}"],
            "done": [f"{subject} is in the archive now.", f"I've archived {name_slot}."],
        }  # fmt: skip
    if operation.action == "discard":
        return {
            "ask": [f"delete {slot}", f"put {slot} in the trash", f"throw {slot} away"],
            "say": [f"We don't need {slot} any more, please put it in the trash."],
            "narrate": [f"move the {noun} to the trash"], "confirm": [f"move {slot} to the trash"],
            "done": [f"{subject} is in the trash now.", f"I've moved {name_slot} to the trash."],
        }  # fmt: skip
    return {
        "ask": [f"delete {slot}", f"remove {slot}", f"get rid of {slot}"],
        "say": [f"We don't need {slot} any more, please delete it."],
        "narrate": [f"delete the {noun}", f"remove that {noun}"], "confirm": [f"delete {slot} for good"],
        "done": [f"I've deleted {name_slot}.", f"{subject} is gone.", f"{subject} has been removed."],
    }  # fmt: skip


def _build_move(blueprint: Blueprint, operation: ToolBlueprint, entity: Entity) -> dict[str, Any]:
    if isinstance(operation.sets, bool):
        return {}
    slot, noun = f"{{{entity.key}}}", to_words(entity.noun)
    state = to_words(operation.sets)
    own = _find_verb(operation, entity)
    if own:
        phrases = [_SPOKEN_VERBS.get(own, f"{own} {{}}").format(slot)]
    else:
        phrases = [_MOVE_VERBS.get(operation.sets, "mark {} as " + state).format(slot)]
        phrases += [f"mark {slot} as {state}"]
    plain_slot = render_called(entity, "out")
    name_slot = plain_slot[:1].upper() + plain_slot[1:]
    done = [f"{name_slot} is {state} now.", f"Done, {plain_slot} is now {state}."]
    outcomes = _list_outcomes(own)
    if outcomes and str(operation.sets) not in outcomes:  # who archives a chat is not told only that it is closed
        own_words = f"I've {to_words(outcomes[0])} {plain_slot}"
        done = [f"{own_words}; it is now {state}.", f"Done, {own_words}, which is now {state}."]
    elif not own:
        done.append(f"{name_slot} has been set to {state}.")
    return {
        "ask": list(dict.fromkeys(phrases)), "narrate": [phrases[0].replace(slot, f"the {noun}")], "done": done,
        "confirm": [phrases[0]], "facts": [f"$.{operation.column}"],
    }  # fmt: skip


def _ask_value(label: str) -> list[str]:
    counted = label.removeprefix("number of ")
    if counted != label:
        return [f"How many {counted} should I put?", f"How many {counted} should it have?"]
    return [f"What {label} should I put?", f"Which {label} would you like?", f"What is the {label}?"]


def _find_verb(operation: ToolBlueprint, entity: Entity) -> str:
    """Return the verb of a tool's name for the state that it leads to, as words or records of the kind have it."""
    from trajsmith.envgen.generate.known_records import load_lexicon

    words, kind = operation.name.split("_"), load_lexicon().find(entity.noun)
    moves = {} if kind is None else kind.moves
    own = (word for word in words if _leads_to(word, str(operation.sets)))
    known = (
        word
        for word in words
        if moves.get(word) == operation.sets and word not in entity.noun.split("_") and operation.sets not in _OUTCOMES
    )
    first = (word for word in words[:1] if word in _RETURNS or str(operation.sets) in _list_outcomes(word))
    return next(own, next(known, next(first, "")))


_OUTCOMES = frozenset({"won", "lost"})
"""States of which "close" does not say which one is meant."""
_RETURNS = frozenset({"resume", "restore", "reinstate", "unpause", "restart", "reactivate"})
"""Verbs that lead back to a state, whatever it is called; a thing that never was active is not restored."""


def _leads_to(verb: str, state: str) -> bool:
    return state in _list_outcomes(verb)[:1]


def _list_outcomes(verb: str) -> tuple[str, ...]:
    """Return the states that a verb may lead to, the one that it names first."""
    from trajsmith.environments.adapters.openapi.naming import find_outcomes

    return find_outcomes(verb) if verb.isalpha() and len(verb) > 2 else ()


_STATES_OF_FLAGS = frozenset({
    "shared", "pinned", "public", "active", "protected", "favorite", "visible", "starred", "private", "locked",
    "verified", "secret", "reversible", "resolved", "required", "encrypted", "durable", "billable", "attached",
    "archived", "anonymous", "enabled",
})  # fmt: skip
"""Names of flags that say how something is."""


def _build_mentions(blueprint: Blueprint) -> dict[str, Any]:
    """Return how a record is called in a request that is identified by its name: the noun goes before it."""
    mentions = dict[str, Any]()
    for operation in blueprint.operations:
        entity = blueprint.entity(operation.table)
        own = [entity] if operation.action not in ("list", "create", "summarize", "whoami") else []
        others = [(name, entity.column(name).references) for name in operation.fields if name in entity.names]
        meant = [(one.key, one) for one in own] + [(name, blueprint.entity(of)) for name, of in others if of]
        for name, target in meant:
            label = find_label_column(target)
            if target.is_named and label is not None:
                called = f'the {to_words(target.noun)} "{{value}}"'
                mentions[f"{operation.name}.{name}"] = {"label": name_column(label, target), "mention": [called]}
    return mentions


def _build_parameters(blueprint: Blueprint) -> dict[str, Any]:
    """Return how values are given that no request names."""
    parameters = _build_mentions(blueprint)
    for operation in blueprint.operations:
        entity = blueprint.entity(operation.table)
        if entity.bin and operation.action == "list":
            place = name_bin(entity)
            parameters[entity.bin] = {
                "label": f"what is in the {place}",
                "tell": [f"I mean those in the {place}.", f"Only what is in the {place}, please."],
            }  # fmt: skip
        for name in operation.fields:
            if name not in entity.names:
                continue
            column = entity.column(name)
            label = name_column(column, entity)
            if operation.action == "list" and column == entity.status and (words := list_state_words(column)):
                parameters[f"{operation.name}.{name}"] = {
                    "label": label,
                    "tell": ["I mean those that are {value}.", "Only those that are {value}, please."],
                    "values": words,
                }
            if column.kind == "flag" and label in _STATES_OF_FLAGS:
                parameters[name] = {
                    "label": label,
                    "tell": ["Please make it {value}.", "I'd like it {value}."],
                    "ask": [f"Should it be {label}?"],
                    "values": {"true": [label], "false": [f"not {label}"]},
                }
                continue
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
            if column.kind == "number" and name in MONEY:
                value = "{value|money}"
            value += render_unit(column, "value")
            quoted = f'"{value}"' if is_free_text(column) or name in LABELS else value
            tell = (
                [f"{label.capitalize()}: {quoted}."]
                if is_free_text(column)
                else [
                    f"The {label} should be {quoted}.",
                    f"{label.capitalize()}: {quoted}.",
                    f"The {label} {'should be' if column.kind == 'choice' else 'is'} {quoted}.",
                ]
            )
            parameters[name] = {
                "label": label,
                "tell": tell,
                "ask": _ask_value(label),
            }
            if is_free_text(column):
                parameters[name]["tell"] = [f"The {label} should read {quoted}", f"{label.capitalize()}: {quoted}"]
    return parameters

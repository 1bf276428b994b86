"""How users ask for single values of records, of one or of each in a list, and how agents answer just that."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest
from typing import Any

from trajsmith.envgen.generate.blueprint import Entity, TableColumn, ToolBlueprint
from trajsmith.envgen.generate.identifiers import to_words
from trajsmith.envgen.generate.phrase_slots import (
    find_label_column,
    is_count,
    is_free_text,
    looks_like_person,
    name_column,
    name_many,
    render_quoted,
    render_slot,
)
from trajsmith.phrasing import is_noun, pluralize

MOST_VALUES = 6
"""Columns of a table that are asked for at most."""
MOST_PAIRS = 2
"""Pairs of columns that are asked for together at most."""
_PAST = frozenset({
    "sent", "paid", "made", "built", "bought", "held", "sold", "seen", "taken", "given", "written", "put", "set",
})  # fmt: skip
"""Participles that do not end in "ed"."""
_BY_ITSELF = frozenset({"expired", "arrived", "ended", "happened", "occurred", "departed", "started", "failed"})
"""What a thing does, and what is not done to it."""
MANY = 4
"""Records from which on each stands on a line of its own."""


@dataclass(frozen=True)
class _AskedValue:
    """A column as people ask for it, of one record or of each of several.

    Attributes:
        of_one: Indirect question with `{row}`: "when {row} starts".
        direct: Sentence with `{row}`: "When does {row} start?"; empty if there is none that sounds right.
        of_each: Indirect question about the records `{}`: "when each of {} starts".
        noun: What the value is called; empty if it has no noun.
        states: Clause after the name of a record: "starts on {v}", over the value `{v}`; empty where "the size of it is
            {v}" is all that can be said.
        short: The same in brackets or after a comma.
    """

    column: TableColumn
    of_one: str
    direct: str
    of_each: str
    noun: str
    states: str
    short: str

    def fill(self, clause: str, source: str) -> str:
        """Return a clause with the value in a record that templates call `source`."""
        return clause.replace("{v}", render_slot(self.column, source))

    @property
    def absence(self) -> str:
        """Return what is said where a record lacks the value: a server whose cores nobody entered has some."""
        return f"no {self.noun} set" if self.column.kind in ("whole", "number") else f"no {self.noun}"

    def tell(self, source: str) -> str:
        """Return what stands in brackets after the name of a record; a value that it lacks is said to be missing."""
        filled = self.fill(self.short, source)
        if self.column.required:
            return filled
        return f"{{% if {source}.{self.column.name} is none %}}{self.absence}{{% else %}}{filled}{{% endif %}}"


def build_get_questions(entity: Entity) -> list[dict[str, Any]]:
    """Return questions about one value of a record that is looked up."""
    slot, noun, questions = f"{{{entity.key}}}", to_words(entity.noun), list[dict[str, Any]]()
    for asked in _iter_asked_values(entity):
        label, value = asked.noun, render_slot(asked.column, "out")
        words: dict[str, Any] = {"asks": [f"$.{asked.column.name}"]}
        direct = [asked.direct.replace("{row}", slot)] if asked.direct else []
        if label:
            words["ask"] = [f"check the {label} of {slot}", f"find out the {label} of {slot}"]
            person = looks_like_person(asked.column)
            words["say"] = direct if person else [*direct, f"Which {label} does {slot} have?"]
            words["answer"] = [f"The {label} is {value}.", f"It's {value}.", f"The {label} of the {noun} is {value}."]
        else:
            words["ask"] = [f"{verb} {asked.of_one.replace('{row}', slot)}" for verb in ("check", "find out")]
            words["say"] = direct
            words["answer"] = [f"{subject} {asked.fill(asked.states, 'out')}." for subject in ("It", f"The {noun}")]
        questions.append(words)
    return questions[:MOST_VALUES]


def build_list_questions(operation: ToolBlueprint, entity: Entity) -> list[dict[str, Any]]:
    """Return questions about one or two values of each record in a list, and about one value of one of them."""
    values = list(_iter_asked_values(entity))[:MOST_VALUES]
    label = find_label_column(entity)
    each = [_ask_for_each(asked, operation, entity, label) for asked in values]
    nouns = [asked for asked in values if asked.noun]
    pairs = list(combinations(nouns, 2))[:MOST_PAIRS]
    both = [_ask_for_both(one, two, operation, entity, label) for one, two in pairs]
    single = [] if label is None else [_ask_for_one(asked, entity, label) for asked in values]
    mixed = zip_longest(each, both, single)
    return [question for questions in mixed for question in questions if question is not None]


def _iter_asked_values(entity: Entity) -> Iterator[_AskedValue]:
    """Yield the columns that people ask for, each with its words; those that every record has come first."""
    label = find_label_column(entity)
    for column in sorted(entity.columns, key=lambda one: not one.required):
        if column == label or column.name in (entity.key, entity.bin) or column.references:
            continue
        if column.kind in ("texts", "flag") or is_free_text(column):
            continue
        by_verb = (_word_moment(column) or _word_count(column)) if column.required else None
        asked = by_verb or _word_noun(column, column == entity.status)
        if asked is not None and asked.noun != to_words(entity.noun):
            yield asked


def _word_noun(column: TableColumn, is_status: bool) -> _AskedValue | None:
    noun = name_column(column)
    if not is_noun(noun) or noun.endswith((" at", " on", " by")) or " per " in noun or is_count(column):
        return None
    who = "Who" if looks_like_person(column) else "What"
    is_said_alone = is_status and column.required and "draft" not in column.choices  # nothing "is draft"
    return _AskedValue(
        column, f"the {noun} of {{row}}", f"{who} is the {noun} of {{row}}?", f"the {noun} of each of {{}}", noun,
        "is {v}" if is_said_alone else "", "{v}",
    )  # fmt: skip


def _word_count(column: TableColumn) -> _AskedValue | None:
    if not is_count(column):
        return None
    counted = to_words(column.name)
    return _AskedValue(
        column, f"how many {counted} {{row}} has", f"How many {counted} does {{row}} have?",
        f"how many {counted} each of {{}} has", "", f"has {{v}} {counted}", f"{{v}} {counted}",
    )  # fmt: skip


def _word_moment(column: TableColumn) -> _AskedValue | None:
    """Return the words for a moment that is called by what happens then: starts_at, created_on."""
    verb, _, end = column.name.rpartition("_")
    if column.kind not in ("date", "moment") or end not in ("at", "on") or not verb.isalpha():
        return None
    if verb.endswith("s") and not verb.endswith("ss"):
        base = verb[:-2] if verb.endswith(("shes", "ches", "sses", "xes")) else verb[:-1]
        does, direct = verb, f"When does {{row}} {base}?"
    elif verb in _BY_ITSELF:
        does, direct = verb, ""
    elif verb.endswith("ed") or verb in _PAST:
        does, direct = f"was {verb}", f"When was {{row}} {verb}?"
    else:
        return None
    states = f"{does} on {{v}}"
    return _AskedValue(
        column, f"when {{row}} {does}", direct, f"when each of {{}} {does}", "", states, states.removeprefix("was ")
    )


def _list_ways(operation: ToolBlueprint, entity: Entity, asked: Sequence[_AskedValue]) -> list[str]:
    """Return noun phrases for the records of a list: all of them, and those that a filter on another column leaves."""
    many = f"the {name_many(entity)}"
    ways = [many]
    for name in operation.fields:
        column = entity.column(name)
        if column in [one.column for one in asked]:
            continue
        if column.references:
            ways.append(f"{many} of {render_slot(column)}")
        elif column == entity.status:
            ways.append(f"{many} that are {render_slot(column)}")
        elif column.kind == "choice":
            ways.append(f"{many} whose {name_column(column)} is {render_slot(column)}")
    if operation.search_needed:
        return [f'{way} that match "{{{operation.search}}}"' for way in ways]
    return ways


def _ask_for_each(
    asked: _AskedValue, operation: ToolBlueprint, entity: Entity, label: TableColumn | None
) -> dict[str, Any]:
    name, short, many = _name_row(entity, label), asked.tell("r"), name_many(entity)
    ask = list[str]()
    for way in _list_ways(operation, entity, [asked]):
        ask.append(f"find out {asked.of_each.format(way)}")
        if asked.noun:
            ask += [f"see {way} with the {asked.noun} of each", f"see {way} and their {pluralize(asked.noun)}"]
    listed = _open_list(entity), f"{name} ({short})"
    words = {
        "asks": _list_paths(entity, label, asked),
        "ask": ask,
        "answer": [
            _render_answer(_render_items(*listed), entity),
            _render_answer(_render_items("I've found {out.result|length}: ", f"{name}, {short}"), entity),
            _render_answer(_render_few(_state_each(asked, name), _render_items(*listed)), entity),
        ],
    }
    if asked.noun and not operation.search_needed:
        who = "who" if looks_like_person(asked.column) else "what"
        words["say"] = [f"Which {many} are there, and {who} is the {asked.noun} of each?"]
    return words


def _ask_for_both(
    one: _AskedValue, two: _AskedValue, operation: ToolBlueprint, entity: Entity, label: TableColumn | None
) -> dict[str, Any]:
    name, first, second = _name_row(entity, label), one.tell("r"), two.tell("r")
    ask = list[str]()
    for way in _list_ways(operation, entity, [one, two]):
        ask.append(f"see {way} with the {one.noun} and the {two.noun} of each")
        ask.append(f"find out the {one.noun} and the {two.noun} of each of {way}")
    named = f"{name} with the {one.noun} {first} and the {two.noun} {second}"
    if not (one.column.required and two.column.required):
        named = f"{name}, {first}, {second}"
    return {
        "asks": _list_paths(entity, label, one, two),
        "ask": ask,
        "answer": [
            _render_answer(_render_items(_open_list(entity), f"{name} ({first}, {second})"), entity),
            _render_answer(_render_items("I've found {out.result|length}: ", named), entity),
        ],
    }


def _ask_for_one(asked: _AskedValue, entity: Entity, label: TableColumn) -> dict[str, Any]:
    name, value = render_quoted(label, "row"), render_slot(asked.column, "row")
    answer = [f"{name} {asked.fill(asked.states, 'row')}."] if asked.states else []
    if asked.noun:
        answer += [f"The {asked.noun} of {name} is {value}.", f"The {asked.noun} is {value}."]
    words = {
        "asks": [asked.column.name], "row": entity.key, "ask": [f"find out {asked.of_one}", f"check {asked.of_one}"],
        "answer": answer,
    }  # fmt: skip
    return words | ({"say": [asked.direct]} if asked.direct else {})


def _list_paths(entity: Entity, label: TableColumn | None, *asked: _AskedValue) -> list[str]:
    return [f"$.result[*].{label.name if label else entity.key}", *(f"$.result[*].{one.column.name}" for one in asked)]


def _name_row(entity: Entity, label: TableColumn | None) -> str:
    return render_quoted(label, "r") if label is not None else f"{{r.{entity.key}}}"


def _state_each(asked: _AskedValue, name: str) -> str:
    """Return a clause for one of several records; the first one of them opens a sentence."""
    if asked.states:
        return f"{name} {asked.fill(asked.states, 'r')}"
    article = "{% if loop.first %}The{% else %}the{% endif %}"
    states = f"{article} {asked.noun} of {name} is {asked.fill('{v}', 'r')}"
    if asked.column.required:
        return states
    return f"{{% if r.{asked.column.name} is none %}}{name} has {asked.absence}{{% else %}}{states}{{% endif %}}"


def _open_list(entity: Entity) -> str:
    one, many = to_words(entity.noun), name_many(entity)
    return f"{{% if out.result|length == 1 %}}Here is the {one}{{% else %}}Here are the {many}{{% endif %}}: "


def _render_items(lead: str, item: str) -> str:
    """Return text that tells records after an opening; where they are several, they stand below each other."""
    return f"{lead}{{% for r in out.result %}}{item}{{% if not loop.last %}}; {{% endif %}}{{% endfor %}}."


def _render_few(clause: str, otherwise: str) -> str:
    """Return text with a clause for each record where they are few: "A starts on 3 May, and B starts on 4 May."."""
    between = "{% if not loop.first %}{% if loop.last %}, and {% else %}, {% endif %}{% endif %}"
    clauses = f"{{% for r in out.result %}}{between}{clause}{{% endfor %}}."
    return f"{{% if out.result|length < {MANY} %}}{clauses}{{% else %}}{otherwise}{{% endif %}}"


def _render_answer(text: str, entity: Entity) -> str:
    return f"{{% if out.result %}}{text}{{% else %}}There are no {name_many(entity)} like that.{{% endif %}}"

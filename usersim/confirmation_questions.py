"""Questions in which the scripted agent asks for a yes: what will happen, to which things, with which consequence."""

import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby
from typing import Any

from trajsmith.grounding import is_identifier
from trajsmith.phrasing import (
    LEAST_ITEMS,
    AgentVoice,
    Wording,
    capitalize_first,
    fill_pattern,
    find_row_template,
    get_confirmation_rule,
    get_language,
    humanize,
    is_distinctive,
    join_words,
    list_slots,
    needs_confirmation,
    pick_text,
    render_phrase,
    split_identifier,
)
from trajsmith.phrasing.phrasebook import EntityPhrases
from trajsmith.records import FromOutput, GoldCall
from trajsmith.usersim.batch_texts import join_names, put_names

LINE = 110
"""Letters of several names that stand in one sentence; longer ones are lines below it."""
_SEMICOLON = "\ue000"
"""Stands for a semicolon of a value until the remarks of the phrases, which begin with one, are split off."""


@dataclass(frozen=True)
class IdentifiedRow:
    """The thing that an argument identifies, as a tool showed it.

    Attributes:
        row: The thing.
        rows: All things of the list that it stands in.
        stale: Something was changed since.
        shown: Everything that results show of the thing which nothing was changed after.
    """

    row: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    stale: bool
    shown: Mapping[str, Any] = field(default_factory=dict)


IdentifiedRows = Mapping[str, IdentifiedRow]
"""Parameter to the thing that it identifies."""


def collect_shown(rows: Iterable[Mapping[str, Any]], name: str, value: Any) -> dict[str, Any]:
    """Return the fields of all rows whose first field holds this identifier: a `coupon_code` is a coupon's `code`."""
    shown: dict[str, Any] = {}
    for row in rows:
        key = next(iter(row), "")
        if name.endswith(key) and row.get(key) == value:
            shown.update(row)
    return shown


def keep_lasting(rows: Iterable[Mapping[str, Any]], lasting: Collection[str]) -> list[Mapping[str, Any]]:
    """Return rows with their first field, which identifies them, and the fields that no call changes."""
    return [{key: value for key, value in row.items() if key in {next(iter(row)), *lasting}} for row in rows]


class ConfirmationWriter:
    """Writes the question for one call or several."""

    def __init__(
        self,
        wording: Wording,
        rng: random.Random,
        voice: AgentVoice,
        used: set[str] | None = None,
        now: date = date.min,
    ) -> None:
        """`used` are frames of the dialogue so far: others come first; `now` is the day as the agent knows it."""
        self.wording = wording
        self.rng = rng
        self.voice = voice
        self.used = set[str]() if used is None else used
        self.clock = {} if now == date.min else {"now": now.isoformat()}

    def write(
        self,
        calls: Sequence[tuple[GoldCall, IdentifiedRows]],
        changed: Collection[str] = (),
        frames: Sequence[str] = (),
    ) -> str:
        """Return the question for these calls, each with the rows that its arguments identify.

        Args:
            calls: What will be done.
            changed: Parameters that the question must name, whatever else it leaves out.
            frames: Patterns of the question where no rule asks for it; without any those of the agent's voice.
        """
        topics: list[str] = []
        actions: list[str] = []
        notes: list[str] = []
        remarks: list[str] = []
        for _, group in groupby(calls, key=lambda pair: pair[0].tool):
            members = list(group)
            described = self._describe_all(members)
            if described:
                actions.append(described)
            else:
                for call, identified in members:
                    text, slots = self._describe(call, identified, changed)
                    topics += self._find_row_texts(identified, slots)
                    actions.append(text)
            notes += [] if frames else self._find_consequence(*members[0], actions[-1])
            actions, remarks = _split_remarks(actions, remarks)
        spoken = join_words(dict.fromkeys(actions))
        question = fill_pattern(self._list_frames(spoken, frames), spoken, self.rng, self.used)
        if topics:
            topic = capitalize_first("; ".join(dict.fromkeys(topics)))
            question = f"{topic}: {get_language().grammar.lower_first(question)}"
        return " ".join([*dict.fromkeys(notes), _add_remarks(question, remarks)]).replace(_SEMICOLON, ";")

    def _list_frames(self, action: str, frames: Sequence[str]) -> Sequence[str]:
        """Return the patterns that an action fits: after a clause of its own, "instead" would belong to that."""
        plain = [frame for frame in frames if "{} " not in frame] if ", " in action else []
        return plain or frames or self.voice.confirms

    def describe(self, call: GoldCall, identified: IdentifiedRows) -> str:
        """Return a verb phrase for a call that names what it is about, without what follows from it."""
        return self._describe(call, identified)[0].partition("; ")[0].replace(_SEMICOLON, ";")

    def fill_slots(self, texts: Sequence[str], call: GoldCall, identified: IdentifiedRows) -> str:
        """Return one of the texts that the values of a call and what results show of its things fit; empty if none."""
        values = {name: self._name_value(call, name, identified) for name in call.arguments}
        return pick_text(texts, {**values, "row": self._collect_shown(identified), **self.clock}, self.rng) or ""

    def write_for_all(self, calls: Sequence[tuple[GoldCall, IdentifiedRows]]) -> str:
        """Return one question for the same call on many things, with the name of each."""
        call, identified = calls[0]
        batches = [
            batch
            for batch in self.wording.scenarios.batches
            if batch.tool == call.tool
            and all(call.arguments.get(name) in values for name, values in batch.arguments.items())
        ]
        values = {name: self._name_value(call, name, {}) for name in call.arguments}
        action = pick_text([text for batch in batches for text in batch.confirm], values, self.rng)
        details = list(dict.fromkeys(text for batch in batches for text in batch.confirm_each))
        each = self.rng.choice(details) if details else ""
        names = self._add_details(self.name_all(calls), each, calls)
        if action is None:
            return self.write(calls)
        (action,), remarks = _split_remarks([action], [])
        stacked = len(names) >= LEAST_ITEMS and sum(map(len, names)) > LINE
        if names and not stacked:
            entity = self.wording.entity(self.find_differing(calls))
            action = put_names(action, join_names(names, entity), entity)
        notes = [] if remarks else self._find_consequence(call, identified, action)
        whole = [pattern for pattern in self.voice.confirms if pattern.endswith("{}?")]  # the names follow the question
        question = fill_pattern((stacked and whole) or self.voice.confirms, action, self.rng, self.used)
        text = " ".join([_add_remarks(question, remarks), *notes])
        lines = [text.replace(_SEMICOLON, ";"), *(f"- {capitalize_first(name)}" for name in names if stacked)]
        return "\n".join(lines)

    def _add_details(
        self, names: list[str], template: str, calls: Sequence[tuple[GoldCall, IdentifiedRows]]
    ) -> list[str]:
        """Return names with what a template says of the row of each, if it fits all of them."""
        differing = self.find_differing(calls) if template and names else ""
        details = [render_phrase(template, dict(rows[differing].row)) for _, rows in calls] if differing else []
        return (
            [f"{name} ({text})" for name, text in zip(names, details, strict=True)]
            if all(details) and details
            else names
        )

    def name_all(self, calls: Sequence[tuple[GoldCall, IdentifiedRows]]) -> list[str]:
        """Return the names of the things in which calls differ; with details where names are not enough."""
        identified, name = calls[0][1], self.find_differing(calls)
        if not name:
            return []
        named_rows = [rows[name].row for _, rows in calls]
        names = self.name_things(name, named_rows, identified[name].rows)
        template = find_row_template(named_rows, self.wording.rows.get(name, ()))
        return names or ([render_phrase(template, dict(row)) or "" for row in named_rows] if template else [])

    def find_differing(self, calls: Sequence[tuple[GoldCall, IdentifiedRows]]) -> str:
        """Return the parameter in whose thing the calls differ; empty if there is none or more than one."""
        differing = [name for name in calls[0][1] if len({str(each.arguments.get(name)) for each, _ in calls}) > 1]
        return differing[0] if len(differing) == 1 and all(differing[0] in rows for _, rows in calls) else ""

    def _describe(
        self, call: GoldCall, identified: IdentifiedRows, changed: Collection[str] = ()
    ) -> tuple[str, frozenset[str]]:
        """Return the verb phrase for a call and the parameters that it names.

        A bounded amount always is named. Of the phrases that the values fit one is drawn from those which leave out
        the fewest arguments; those which tell something of the thing (`row`) come first.
        """
        values = {name: self._name_value(call, name, identified) for name in call.arguments}
        values |= {"row": self._collect_shown(identified)} | self.clock
        required = {*get_confirmation_rule(self.wording.tools[call.tool]).above, *changed}
        needed = self._list_needed(call, identified)
        ranked = []
        for option in self._list_phrases(call, values):
            slots = list_slots(option) | self._find_pointed(option, identified)
            ranked.append((len(required - slots), len(needed - slots), "row" not in slots, option))
        self.rng.shuffle(ranked)
        for *_, option in sorted(ranked, key=lambda item: item[:-1]):
            text = pick_text([option], values, self.rng)
            if text:
                pointed = self._find_pointed(option, identified)
                parts = list_slots(option) | pointed
                if self._has_own_words(call.tool):
                    return self._put_names(text, pointed, identified), parts
                return f"{text}{self._list_arguments(call)}", parts | call.arguments.keys()
        return f"use {humanize(call.tool)}{self._list_arguments(call)}", frozenset(call.arguments)

    def _has_own_words(self, tool: str) -> bool:
        """Return whether somebody wrote how to speak of the tool; a name or a description leaves out the arguments."""
        phrases = self.wording.phrasebook.tools.get(tool)
        return phrases is not None and bool(phrases.confirm or phrases.narrate)

    def _list_arguments(self, call: GoldCall) -> str:
        """Return the arguments of a call in brackets: without words for a tool, these say exactly what will happen."""
        parts = []
        for name, value in call.arguments.items():
            if value is None or isinstance(value, list | dict):
                continue
            if is_identifier(name):
                parts.append(f"{self.wording.entity(name).noun} {value}")
                continue
            shown = ("yes" if value else "no") if isinstance(value, bool) else value
            label = self.wording.parameter(call.tool, name).label
            parts.append(f"{label} {_hide_semicolons(self.wording.value(call.tool, name, shown, self.rng))}")
        return f" ({', '.join(parts)})" if parts else ""

    def _describe_all(self, members: Sequence[tuple[GoldCall, IdentifiedRows]]) -> str:
        """Return one verb phrase for calls that differ only in the thing, with all their names; empty if there is none.

        "cancel the orders" would leave open which; "cancel the order from 3 May and the one from 8 May" does not.
        """
        first, identified_first = members[0]
        differing = {
            name for call, _ in members for name in call.arguments if call.arguments[name] != first.arguments.get(name)
        }
        if len(members) < 2 or len(differing) != 1 or not differing <= identified_first.keys():
            return ""
        (name,) = differing
        names = [self.name_thing(name, identified[name]) for _, identified in members if name in identified]
        if not all(names) or len(set(names)) < len(members):
            return ""
        values = {key: self._name_value(first, key, identified_first) for key in first.arguments} | {
            name: join_words(names)
        }
        options = self._list_phrases(first, values)
        singular = get_language().confirms.singular
        for option in sorted(self.rng.sample(options, len(options)), key=lambda one: bool(singular.search(one))):
            pointed = self._find_pointed(option, {name: identified_first[name]})
            text = pick_text([option], values, self.rng) if name in list_slots(option) | pointed else None
            if text:
                return self._put_name(text, name, values[name]) if pointed else text
        return ""

    def _collect_shown(self, identified: IdentifiedRows) -> dict[str, Any]:
        """Return what fresh results show of the things of a call; of a field that several have, that of the first.

        What people tell apart by nothing, such as the user's own account, comes last.
        """
        shown: dict[str, Any] = {}
        for name in sorted(identified, key=lambda name: not self.wording.entity(name).by):
            shown = {**identified[name].shown, **shown}
        return shown

    def _list_phrases(self, call: GoldCall, values: Mapping[str, Any]) -> list[str]:
        phrases = self.wording.tool(call.tool)
        options = [*phrases.confirm] or [*phrases.narrate]
        return [option for option in options if list_slots(option) <= values.keys()]

    def _list_needed(self, call: GoldCall, identified: IdentifiedRows) -> set[str]:
        """Return the arguments that a question must name: all but the user's own identity, reasons and switches."""
        needed = set()
        for name, value in call.arguments.items():
            taken = self._is_thing(call, name)
            plain = value is not None and not isinstance(value, bool) and "reason" not in name
            if (name in identified and self.wording.entity(name).by) if taken else plain:
                needed.add(name)
        return needed

    def _find_pointed(self, option: str, identified: IdentifiedRows) -> frozenset[str]:
        """Return the parameters at whose things a phrase points ("cancel this order") and which have a name."""
        pattern = get_language().confirms.this_thing
        return frozenset(
            name
            for name, choice in identified.items()
            if pattern
            and re.search(pattern.format(re.escape(self.wording.entity(name).noun)), option)
            and self.name_thing(name, choice)
        )

    def _put_names(self, text: str, pointed: Collection[str], identified: IdentifiedRows) -> str:
        for name in sorted(pointed):
            text = self._put_name(text, name, self.name_thing(name, identified[name]))
        return text

    def _put_name(self, text: str, parameter: str, name: str) -> str:
        """Put the name of a thing in the place of "this order"."""
        pattern = get_language().confirms.this_thing.format(re.escape(self.wording.entity(parameter).noun))
        return re.sub(pattern, lambda _: name, text, count=1)

    def _name_value(self, call: GoldCall, name: str, identified: IdentifiedRows) -> Any:
        if self._is_thing(call, name):
            named = self.name_thing(name, identified[name]) if name in identified else ""
            return named or get_language().grammar.that(self.wording.entity(name))
        return _hide_semicolons(self.wording.mention(call.tool, name, call.arguments[name], self.rng))

    def _is_thing(self, call: GoldCall, name: str) -> bool:
        """Return whether an argument refers to a thing that a result has shown; an amount or a day is a plain value."""
        known = name in self.wording.phrasebook.entities or is_identifier(name)
        return known and isinstance(call.provenance.get(name), FromOutput)

    def name_thing(self, parameter: str, choice: IdentifiedRow) -> str:
        """Return a noun phrase for a thing that fits no other of its list: "your Bills Account"; empty if none."""
        return next(iter(self.name_things(parameter, [{**choice.row, **choice.shown}], choice.rows)), "")

    def name_things(
        self, parameter: str, named_rows: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]
    ) -> list[str]:
        """Return noun phrases for things of a list, all of one form, of which none fits another row; else nothing."""
        entity = self.wording.entity(parameter)
        for template in self.rng.sample(entity.name, len(entity.name)):
            names = [pick_text([template], dict(row), self.rng) or "" for row in named_rows]
            if all(names) and all(self._is_only_one(template, name, rows) for name in names):
                return names
        for field_name, templates in entity.by.items():
            values = [row.get(field_name) for row in named_rows]
            if any(value is None or isinstance(value, bool) or _is_small_number(value) for value in values):
                continue
            if len(values) > 2 and any(isinstance(value, float) for value in values):
                continue  # nobody tells many things apart by what they cost
            if any([row.get(field_name) for row in rows].count(value) > 1 for value in values):
                continue
            names = self._name_by_field(entity, field_name, templates, values)
            if names and len(set(names)) == len({str(value) for value in values}):
                return names
        return []

    def _is_only_one(self, template: str, name: str, rows: Sequence[Mapping[str, Any]]) -> bool:
        return sum(pick_text([template], dict(row), self.rng) == name for row in rows) <= 1

    def _name_by_field(
        self, entity: EntityPhrases, field_name: str, templates: Sequence[str], values: Sequence[Any]
    ) -> list[str]:
        """Return names by the values of one field, in the words of the first template that an agent can say."""
        words = get_language().confirms
        neutral = [template for template in templates if not words.first_person.match(template)] or list(templates)
        for template in self.rng.sample(neutral, len(neutral)):
            spoken = [self.wording.value("", field_name, value, self.rng) for value in values]
            names = [pick_text([template], {"value": each, "noun": entity.noun}, self.rng) or "" for each in spoken]
            if all(name and not words.speaker_words & set(name.lower().split()) for name in names):
                return [words.first_person.sub(words.second_person, name) for name in names]
        return []

    def name_row(self, parameter: str, choice: IdentifiedRow) -> str:
        """Return a name for a thing that an argument identifies; how it is listed, where no field is its own."""
        row = pick_text(self.wording.rows.get(parameter, ()), dict(choice.row), self.rng)
        return self.name_thing(parameter, choice) or row or self.wording.entity(parameter).noun

    def _find_row_texts(self, identified: IdentifiedRows, slots: Collection[str]) -> list[str]:
        """Return the row of each thing that a phrase with these slots does not name; of stale rows only a name."""
        unnamed = {
            name: choice for name, choice in identified.items() if name not in slots and self.wording.entity(name).by
        }
        texts = []
        for name, choice in unnamed.items():
            plain = choice.stale or len(unnamed) > 1
            templates = [template for template in self.wording.rows.get(name, ()) if ": " not in template]
            row = None if plain else pick_text(templates, dict(choice.row), self.rng)
            texts.append(row or self.name_thing(name, choice))
        return [text for text in texts if text]

    def _find_consequence(self, call: GoldCall, identified: IdentifiedRows, phrase: str) -> list[str]:
        """Return the rule's reason as a sentence, unless it does not apply or the phrase says it already."""
        if "; " in phrase:  # it says itself what follows
            return []
        rows = [each for choice in identified.values() for each in (choice.row, choice.shown)]
        applies = needs_confirmation(self.wording.tools[call.tool], call.arguments, [{"result": rows}])
        because = self.wording.explain_rule(call.tool) if applies else ""
        if not self._has_own_words(call.tool):
            phrase = phrase.partition(" (")[0]  # arguments give no reason
        words = set(split_identifier(phrase.replace("'", "")))
        spoken = {word for word in split_identifier(because) if len(word) > 3} & words
        if (
            not because
            or spoken
            or get_language().confirms.policy_voice.search(because)
            or get_language().confirms.consequences & {*words, *phrase.split()}
        ):
            return []
        return [f"{capitalize_first(because)}."]


def _hide_semicolons(value: Any) -> Any:
    return value.replace(";", _SEMICOLON) if isinstance(value, str) else value


def _is_small_number(value: Any) -> bool:
    return isinstance(value, int | float) and not is_distinctive(value)


def _split_remarks(actions: Sequence[str], remarks: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take what follows a semicolon out of verb phrases: "send £20.00; it can't be taken back"."""
    parts = [action.partition("; ") for action in actions]
    added = [f"{capitalize_first(remark)}." for _, _, remark in parts if remark]
    return [action for action, _, _ in parts], [*remarks, *added]


def _add_remarks(question: str, remarks: Sequence[str]) -> str:
    """Put remarks after the sentence that says what will happen, before a short question for the yes itself."""
    action, _, request = question.rpartition(". ")
    parts = (f"{action}.", *dict.fromkeys(remarks), request) if action else (question, *dict.fromkeys(remarks))
    return " ".join(parts)

"""Questions in which the scripted agent asks for a yes: what will happen, to which things, with which consequence."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from trajsmith.phrasing import Wording, capitalize_first, get_confirmation_rule, get_language, pick_text
from trajsmith.phrasing.templates import list_slots
from trajsmith.phrasing.value_formatting import humanize, is_distinctive, join_words
from trajsmith.phrasing.voices import AgentVoice, fill_pattern
from trajsmith.phrasing.words import split_identifier
from trajsmith.records import FromOutput, GoldCall


@dataclass(frozen=True)
class IdentifiedRow:
    """The thing that an argument identifies, as a tool showed it.

    Attributes:
        row: The thing.
        rows: All things of the list that it stands in.
        stale: Something was changed since.
    """

    row: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    stale: bool


IdentifiedRows = Mapping[str, IdentifiedRow]
"""Parameter to the thing that it identifies."""


class ConfirmationWriter:
    """Writes the question for one call or several."""

    def __init__(self, wording: Wording, rng: random.Random, voice: AgentVoice) -> None:
        self.wording = wording
        self.rng = rng
        self.voice = voice

    def write(self, calls: Sequence[tuple[GoldCall, IdentifiedRows]]) -> str:
        """Return the question for these calls, each with the rows that its arguments identify."""
        before: list[str] = []
        actions: list[str] = []
        notes: list[str] = []
        remarks: list[str] = []
        for tool, group in groupby(calls, key=lambda pair: pair[0].tool):
            members = list(group)
            phrases = [self._describe(call, identified) for call, identified in members]
            contexts = [
                self._find_row_texts(identified, slots)
                for (_, identified), (_, slots) in zip(members, phrases, strict=True)
            ]
            if len({text for text, _ in phrases}) < len(members) > 1:
                rows = [text for context in contexts for _, text in context]
                before += [self.rng.choice(get_language().confirms.these_are).format("; ".join(rows))] if rows else []
                words = get_language().confirms
                others = len(members) - 1
                rest = words.other_one if others == 1 else words.other_ones.format(count=others)
                actions.append(words.same_with.format(action=phrases[0][0], rest=rest))
            else:
                before += [self._join_rows(context) for context in contexts if context]
                actions += [text for text, _ in phrases]
            notes += self._find_consequence(tool, actions[-1])
            actions, remarks = _split_remarks(actions, remarks)
        question = fill_pattern(self.voice.confirms, join_words(dict.fromkeys(actions)), self.rng)
        return " ".join([*before, *dict.fromkeys(notes), _add_remarks(question, remarks)])

    def write_for_all(self, calls: Sequence[tuple[GoldCall, IdentifiedRows]], rows: str) -> str:
        """Return one question for the same call on many things; `rows` is the sentence that takes their list."""
        call, _ = calls[0]
        batches = [batch for batch in self.wording.scenarios.batches if batch.tool == call.tool]
        values = {name: self._name_value(call, name, {}) for name in call.arguments}
        action = pick_text([batch.confirm for batch in batches if batch.confirm], values, self.rng)
        if action is None:
            return self.write(calls)
        texts = [text for _, identified in calls for _, text in self._find_row_texts(identified, frozenset())]
        question = fill_pattern(self.voice.confirms, action, self.rng)
        notes = self._find_consequence(call.tool, action)
        return " ".join([rows.format("; ".join(texts)), *notes, question])

    def _describe(self, call: GoldCall, identified: IdentifiedRows) -> tuple[str, frozenset[str]]:
        """Return the verb phrase for a call and the parameters that it names; a bounded amount always is."""
        phrases = self.wording.tool(call.tool)
        values = {name: self._name_value(call, name, identified) for name in call.arguments}
        bounded = get_confirmation_rule(self.wording.tools[call.tool]).above.keys()
        options = [*phrases.confirm] or [*phrases.narrate]
        fitting = [option for option in options if list_slots(option) <= values.keys()]
        options = [option for option in fitting if bounded <= list_slots(option)] or fitting
        for option in self.rng.sample(options, len(options)):
            text = pick_text([option], values, self.rng)
            if text:
                return text, list_slots(option)
        return f"use {humanize(call.tool)}", frozenset()

    def _name_value(self, call: GoldCall, name: str, identified: IdentifiedRows) -> Any:
        if isinstance(call.provenance.get(name), FromOutput):
            named = self._name_thing(name, identified[name]) if name in identified else ""
            return named or get_language().grammar.that(self.wording.entity(name))
        return self.wording.value(call.tool, name, call.arguments[name], self.rng)

    def _name_thing(self, parameter: str, choice: IdentifiedRow) -> str:
        """Return a noun phrase for a thing by the first field that is its own: "your Bills Account"; empty if none."""
        entity = self.wording.entity(parameter)
        fields = sorted(entity.by.items(), key=lambda item: not is_distinctive(choice.row.get(item[0])))
        for field, templates in fields:
            value = choice.row.get(field)
            if value is None or isinstance(value, bool) or [row.get(field) for row in choice.rows].count(value) > 1:
                continue
            spoken = self.wording.value("", field, value, self.rng)
            neutral = [template for template in templates if not get_language().confirms.first_person.match(template)]
            text = pick_text(neutral or templates, {"value": spoken, "noun": entity.noun}, self.rng)
            if text and not (get_language().confirms.speaker_words & set(text.lower().split())):
                return get_language().confirms.first_person.sub(get_language().confirms.second_person, text)
        return ""

    def name_row(self, parameter: str, choice: IdentifiedRow) -> str:
        """Return a name for a thing that an argument identifies; how it is listed, where no field is its own."""
        row = pick_text(self.wording.rows.get(parameter, ()), dict(choice.row), self.rng)
        return self._name_thing(parameter, choice) or row or self.wording.entity(parameter).noun

    def _join_rows(self, rows: Sequence[tuple[str, str]]) -> str:
        """Return a sentence that says which things one call is about."""
        if len(rows) == 1:
            return self.rng.choice(get_language().confirms.this_is).format(rows[0][1])
        return (
            capitalize_first(
                "; ".join(get_language().confirms.row_is.format(noun=noun, text=text) for noun, text in rows)
            )
            + "."
        )

    def _find_row_texts(self, identified: IdentifiedRows, slots: frozenset[str]) -> list[tuple[str, str]]:
        """Return noun and row of each thing that a phrase with these slots does not name; of stale rows only a name."""
        texts = []
        unnamed = {
            name: choice for name, choice in identified.items() if name not in slots and self.wording.entity(name).by
        }
        for name, choice in unnamed.items():
            plain = choice.stale or len(unnamed) > 1
            row = None if plain else pick_text(self.wording.rows.get(name, ()), dict(choice.row), self.rng)
            text = row or self._name_thing(name, choice)
            texts += [(self.wording.entity(name).noun, text)] if text else []
        return texts

    def _find_consequence(self, tool: str, phrase: str) -> list[str]:
        """Return the rule's reason as a sentence, unless the phrase says what follows already."""
        because = self.wording.explain_rule(tool)
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

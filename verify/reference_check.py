"""Check of words: does every referring expression lead to the entity that the calls take, and was each one named?"""

import re
from collections.abc import Sequence
from datetime import date
from typing import Literal

from trajsmith.phrasing import ReferringExpression, TextValues, Wording, get_language, is_value_mentioned, pluralize
from trajsmith.records import FrozenModel
from trajsmith.verify.discourse import DiscourseModel
from trajsmith.verify.discourse_entities import ShownList
from trajsmith.verify.discourse_resolution import (
    Reading,
    count_stated_values,
    find_named,
    resolve_bare,
    resolve_expression,
    resolve_values,
)
from trajsmith.verify.spoken_turns import EntityNeed, SpokenCall, SpokenTurn

FaultKind = Literal["wrong_referent", "unresolved_reference", "superlative_on_cut_list", "unnamed_value"]
_PRONOUN = re.compile(r"(?<=[a-z] )(?:it|them)\b(?! (?:should|is|has|would|was|will)\b)")
_POINTING = r"\b(?:it|its|them|their|they|he|his|him|she|her|in there)\b(?! (?:is|are|any|should|has|have)\b)"
"""What may stand for the thing that a list is narrowed to: "what are its files?", and not "which files are there"."""
_MADE = frozenset({"same", "new", "bare"})


class ReferenceFault(FrozenModel):
    """One place where words do not lead to what the calls use."""

    kind: FaultKind
    turn: int
    words: str
    """The expression, or the argument that nobody named."""
    expected: str
    """What the call uses."""
    reading: str = ""
    """What a reader takes instead."""

    def describe(self) -> str:
        """Return the fault as a writer is told."""
        if self.kind == "unnamed_value":
            return f"nothing says which {self.words} is meant; name it"
        if self.kind == "superlative_on_cut_list":
            return f'"{self.words}" cannot be told from a list that was cut; say which one by something else'
        instead = f"; a reader takes it to be {self.reading}" if self.reading else "; several fit"
        return f'"{self.words}" does not lead to the one that is meant{instead}: say which one by something else'


class ReferenceCheck:
    """Reads the turns of one dialogue in their order and collects the faults.

    Args:
        wording: Words and tools of the environment.
        initial: Text of the initial state, if it is known.
        now: The clock, if it is known.
    """

    def __init__(self, wording: Wording, initial: str | None = None, now: date | None = None) -> None:
        self.model = DiscourseModel(wording, initial, now)
        self.faults: list[ReferenceFault] = []
        self.found: list[ReferenceFault] = []
        """Faults of the words that are being read."""

    def read(self, turn: SpokenTurn) -> list[ReferenceFault]:
        """Take in the next turn; return its faults."""
        self.open_turn(turn.calls)
        faults = self.read_words(turn)
        self.close_turn(turn)
        self.faults += faults
        return faults

    def open_turn(self, calls: Sequence[SpokenCall]) -> None:
        """Take in the calls of the next turn."""
        model = self.model
        model.begin_turn(model.turn + 1, calls[0].index if calls else model.turn_start)
        for call in calls:
            model.observe_call(call.index, call.tool, call.arguments, call.result, call.effect, call.ok)

    def read_words(self, turn: SpokenTurn) -> list[ReferenceFault]:
        """Return the faults of the words of the turn that was opened; what they talk about is noted."""
        self.found = []
        self._read_text(turn)
        if turn.replies:
            self._read_replies(turn)
        for need in turn.needs:
            if need.must_be_named and not self._is_identified(need, turn):
                self._add("unnamed_value", need.name.removesuffix("_id").replace("_", " "), need)
        self.model.horizon = None
        return self.found

    def close_turn(self, turn: SpokenTurn) -> None:
        """The calls of the turn are done."""
        model = self.model
        for need in turn.needs:
            entity = model.entities.get(need.kind, {}).get(need.value)
            if entity is not None and entity.active_turn != model.turn:
                model.activate(need.kind, need.value)
        for call in turn.calls:
            model.observe_outcome(call.index, call.index in turn.requested)
            for need in turn.needs:
                if need.is_topic and need.source is not None and need.source[0] == call.index:
                    model.activate(need.kind, need.value)

    def _read_text(self, turn: SpokenTurn) -> None:
        """Read expressions and names in the order of the text."""
        model = self.model
        wanted = {need.kind for need in turn.needs}
        values = TextValues(turn.text, model.now)
        events: list[tuple[int, ReferringExpression | tuple[str, str]]] = [
            (place, (kind, of)) for kind in sorted(wanted) for place, of in find_named(model, values, kind)
        ]
        events += [(phrase.start, phrase) for phrase in model.lexicon.find(turn.text)]
        for _, event in sorted(events, key=lambda event: event[0]):
            if isinstance(event, tuple):
                self._name(turn, *event)
                continue
            kinds = [kind for kind in event.kinds if kind in wanted]
            if kinds:
                self._read_phrase(event, turn, kinds)

    def _name(self, turn: SpokenTurn, kind: str, value: str) -> None:
        if any((need.kind, need.value) == (kind, value) for need in turn.needs):
            self._identify(turn.needs, kind, value)

    def _identify(self, needs: Sequence[EntityNeed], kind: str, value: str) -> None:
        """The text leads to this entity, for all calls of the turn that take it."""
        for need in needs:
            if (need.kind, need.value) == (kind, value):
                need.identified = True
        self.model.activate(kind, value)

    def _read_phrase(self, phrase: ReferringExpression, turn: SpokenTurn, kinds: Sequence[str]) -> None:
        """Compare the reading of one expression with the entities that the turn's calls take."""
        needs = [need for need in turn.needs if need.kind in kinds]
        readings = [(need, self._resolve(phrase, need)) for need in needs]
        fitting = [need for need, reading in readings if reading is not None and reading.sole == need.value]
        fitting = fitting or [need for need in needs if self._fits_loosely(phrase, need, turn)]
        if fitting:
            need = next((need for need in fitting if not need.identified), fitting[0])
            self._identify(turn.needs, need.kind, need.value)
            return
        is_inner = phrase.within and phrase.form != "same"
        if any(reading is None for _, reading in readings) or phrase.statement or is_inner:
            return
        if any(need.asked or (need.looked_up and reading and need.value in reading.ids) for need, reading in readings):
            return
        need, reading = next((pair for pair in readings if not pair[0].identified), readings[0])
        assert reading is not None
        self._add_reading(phrase, need, reading)
        self._identify(turn.needs, need.kind, need.value)

    def _fits_loosely(self, phrase: ReferringExpression, need: EntityNeed, turn: SpokenTurn) -> bool:
        """Return whether a phrase may lead to an entity although its first reading is another one or open.

        A preposition may belong to the verb ("move the event to 3 March"), the thing may be made in this turn, and
        words before the phrase may have told what "that" is.
        """
        model = self.model
        model.horizon = need.call
        entity = model.entities.get(need.kind, {}).get(need.value)
        if phrase.form in _MADE and entity is not None and entity.created >= model.turn_start >= 0:
            return True
        if phrase.form == "described" and resolve_bare(model, need.kind).sole == need.value:
            return True
        if phrase.form == "same" and model.top(need.kind) is None:
            before = resolve_values(model, turn.text[: phrase.start], need.kind)
            return before is not None and before.sole == need.value
        model.horizon = None
        reading = resolve_expression(model, phrase, need.kind) if phrase.form in ("described", "bare") else None
        sole = reading.sole if reading is not None else None
        return sole is not None and model.entities[need.kind][sole].created >= model.turn_start

    def _resolve(self, phrase: ReferringExpression, need: EntityNeed) -> Reading | None:
        self.model.horizon = need.call
        source = self._find_source(need)
        reading = resolve_expression(self.model, phrase, need.kind, need.selector, source)
        is_earlier = 0 <= need.given_by < self.model.turn_start
        only_in_a_row = need.foreign and is_earlier and not self.model.candidates(need.kind)
        if reading is None and phrase.form == "same" and only_in_a_row:
            return Reading((), "same")  # "that project", of which only a field of another thing has told
        return reading

    def _find_source(self, need: EntityNeed) -> ShownList | None:
        if need.source is None:
            return None
        call, path = need.source
        return next((shown for shown in self.model.lists if (shown.call, shown.path) == (call, path)), None)

    def _read_replies(self, turn: SpokenTurn) -> None:
        """Answers name what the agent asked for; they must lead to it, too."""
        open_needs = [need for need in turn.needs if need.asked]
        for need in open_needs:
            self.model.horizon = need.call
            reading = resolve_values(self.model, turn.replies, need.kind)
            if reading is not None and need.value in reading.ids:
                need.identified = True
        for phrase in self.model.lexicon.find(turn.replies):
            needs = [need for need in open_needs if need.kind in phrase.kinds and not need.identified]
            readings = [(need, reading) for need in needs if (reading := self._resolve(phrase, need)) is not None]
            if not readings or phrase.form not in ("superlative", "described", "new"):
                continue
            if not any(reading.sole == need.value for need, reading in readings):
                self._add_reading(phrase, *readings[0])

    def _add_reading(self, phrase: ReferringExpression, need: EntityNeed, reading: Reading) -> None:
        """Record that a reader takes a phrase to mean something else, or several things."""
        if reading.cut:
            self._add("superlative_on_cut_list", phrase.text, need)
        elif len(reading.ids) == 1:
            self._add("wrong_referent", phrase.text, need, reading.ids[0])
        else:
            self._add("unresolved_reference", phrase.text, need)

    def _is_identified(self, need: EntityNeed, turn: SpokenTurn) -> bool:
        """Return whether the user's words, or the results, leave only this entity."""
        model = self.model
        model.horizon = need.call
        pool = model.candidates(need.kind)
        if need.identified or need.asked or need.looked_up:
            return True
        if len(pool) <= 1:
            return not (self._asks_for_any(need, turn) or self._narrows_silently(need, turn))
        entity = model.entities.get(need.kind, {}).get(need.value)
        if entity is None or (entity.created >= model.turn_start and entity.created >= 0):
            return True
        reading = resolve_values(model, turn.text, need.kind)
        if reading is not None and reading.sole == need.value:
            return True
        if reading is not None and reading.sole is not None and self._names(turn.text, need.kind, reading.sole):
            return False
        same_call = [other for other in turn.needs if other.call == need.call and other is not need]
        for other in same_call:
            owned = model.entities.get(other.kind, {}).get(other.value)
            if (
                owned is not None
                and (need.kind, need.value) in owned.owners
                and len(_owners(owned.owners, need.kind)) == 1
            ):
                return True
            mates = [str(value) for values in owned.fields.values() for value in values] if owned is not None else []
            if need.value in mates:
                return True
        return self._is_pointed_at(need, turn)

    def _narrows_silently(self, need: EntityNeed, turn: SpokenTurn) -> bool:
        """Return whether a read has a filter that the words leave out: "which files are there?" of one folder.

        What is the user's own goes without saying, and so does what was looked up for this request.
        """
        if not 0 <= need.given_by < self.model.turn_start or get_language().code != "en":
            return False
        wording, entity = self.model.wording, self.model.wording.entity(need.kind)
        call = next(call for call in turn.calls if call.index == need.call)
        is_filter = need.name in call.arguments and need.name not in wording.tools[call.tool].required
        if call.effect != "read" or not is_filter or get_language().grammar.is_own(entity.own):
            return False
        reading = resolve_values(self.model, turn.text, need.kind)
        if (reading is not None and reading.sole == need.value) or is_value_mentioned(turn.text.lower(), need.value):
            return False
        names = self.model.entities[need.kind][need.value].fields.values() if self.model.candidates(need.kind) else ()
        if any(isinstance(value, str) and is_value_mentioned(turn.text.lower(), value) for of in names for value in of):
            return False
        nouns = "|".join(re.escape(noun) for noun in (entity.noun, entity.plural or pluralize(entity.noun)))
        return re.search(rf"\b(?:{nouns})\b|{_POINTING}", turn.text, re.IGNORECASE) is None

    def _is_pointed_at(self, need: EntityNeed, turn: SpokenTurn) -> bool:
        """Return whether a pronoun in the text stands for the entity."""
        last = self.model.latest()
        return (
            _PRONOUN.search(turn.text) is not None
            and last is not None
            and (last.kind, last.id) == (need.kind, need.value)
        )

    def _asks_for_any(self, need: EntityNeed, turn: SpokenTurn) -> bool:
        """Return whether the user wants any of a kind ("a free bay"), of which only a field has told one so far."""
        listed = any(need.value in shown.ids for shown in self.model.lists if shown.kind == need.kind)
        if listed or need.given_by >= self.model.turn_start:
            return False
        noun = re.escape(self.model.wording.entity(need.kind).noun)
        wish = rf"\b(?:an?|any|another|some) (?:[\w-]+ ){{0,2}}{noun}\b"
        return re.search(wish, turn.text, re.IGNORECASE) is not None

    def _names(self, text: str, kind: str, value: str) -> bool:
        return count_stated_values(self.model, TextValues(text, self.model.now), self.model.entities[kind][value]) > 1

    def _add(self, kind: FaultKind, words: str, need: EntityNeed, reading: str = "") -> None:
        self.found.append(
            ReferenceFault(kind=kind, turn=self.model.turn - 1, words=words, expected=need.value, reading=reading)
        )


def _owners(owners: set[tuple[str, str]], kind: str) -> list[str]:
    return [of for owner, of in owners if owner == kind]

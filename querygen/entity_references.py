"""References to entities whose ids the user does not know: by field, by name, or as "that order"."""

import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from trajsmith.grounding import build_selector_key, find_values
from trajsmith.grounding.row_fields import classify_field, score_field
from trajsmith.phrasing import (
    EntityPhrases,
    Wording,
    drop_near_years,
    format_value,
    get_language,
    is_value_mentioned,
    pick_text,
    pluralize,
)
from trajsmith.records import FromOutput, FromUser, GoldCall, Selector, UserFact
from trajsmith.verify import DiscourseEntity, DiscourseModel, get_entity_kind, resolve_expression, resolve_values

RECENT = 1
"""Turns after which "that order" still stands for the last order that was spoken of."""
SHORT = 4
"""Words of a name that people say again of what they have just spoken of; nobody recites a whole title."""
IT, NAMED = 0.5, 0.3
"""Probabilities of "it" and of the name for what was spoken of last, where they are clear."""


class ReferenceTracker:
    """Entities mentioned so far in a conversation, and the phrase for the next one.

    Phrases are tried in the order in which people prefer them; the first that a reader of the dialogue takes to mean
    the right entity is used.
    """

    def __init__(
        self,
        wording: Wording,
        calls: Sequence[GoldCall],
        known: Mapping[str, UserFact],
        initial: str,
        rng: random.Random,
        model: DiscourseModel,
    ) -> None:
        self.wording = wording
        self.calls = calls
        self.known = known
        self.initial = initial
        self.rng = rng
        self.model = model
        """What a reader knows; somebody else tells it of calls."""
        self.turn = 0
        self.turn_start = 0
        """Index of the first call of this turn."""
        self.untold: Collection[str] = ()
        """Names that only the result of the call tells: nobody lists what is in an order to ask what is in it."""
        self.requested: set[int] = set()
        """Calls that were asked for: their results have been told."""
        self.things: dict[tuple[str, str], int] = {}
        """(parameter, value) to the turn in which it was last talked about."""

    def describe(self, name: str, known: UserFact) -> str:
        """Return a noun phrase for a thing by what the user knows of it."""
        return self.wording.describe(name, known, self.rng, self.model.now)

    def refer(
        self, name: str, value: Any, source: FromOutput, held: set[str], alone: bool = False
    ) -> tuple[str, list[str]]:
        """A noun phrase for the thing with this id, and the keys of the known entries that it says.

        Args:
            held: Keys that must not be said yet.
            alone: No other thing is named in the same sentence, so that "it" can stand for this one.
        """
        entity, kind = self.wording.entity(name), get_entity_kind(name, source)
        picks = [selector for selector in source.selectors if selector.how != "only"]
        keys = [build_selector_key(source.call, selector) for selector in picks]
        stated = [key for key in keys if key not in held]  # pointing back at what was left open does not tell it
        top = self.model.top(kind)
        if top is not None and top.id == str(value) and self.model.turn - top.active_turn <= RECENT:
            return self._refer_again(name, kind, str(value), source, alone), stated
        if picks and held & set(keys):
            return render_indefinite_reference(entity), stated
        if picks and self._is_sole_told(name, kind, str(value), source):
            self.spoke_of(self.calls[source.call], ())
            return get_language().grammar.that(entity), stated
        first: tuple[str, list[str]] | None = None
        for inner, inner_keys in self._iterate_phrases(name, value, source, held, keys):
            if source.call in self.requested and source.call < self.turn_start:
                inner = self._prefer_name(name, value, inner, source)
            if _names_any(inner, self.untold):
                others = self._describe_by_row(name, value, self._list_rows(source))
                inner = next((other for other in others if not _names_any(other, self.untold)), inner)
            phrase, outer_keys = self._say_where(entity, inner, source, {*held, *inner_keys})
            first = first or (phrase, inner_keys + outer_keys)
            if self._leads_to(phrase, kind, str(value), source):
                first = (phrase, inner_keys + outer_keys)
                break
        assert first is not None
        parameters = (key.rpartition(".")[2] for key in entity.within)
        self.spoke_of(self.calls[source.call], parameters if source.call >= self.turn_start else ())
        return first

    def _refer_again(self, name: str, kind: str, value: str, source: FromOutput, alone: bool) -> str:
        """Return a phrase for what was spoken of last of its kind: "it", its name, or "that order"."""
        entity, latest = self.wording.entity(name), self.model.latest()
        here = latest is not None and latest.active_turn == self.model.turn
        drawn = self.rng.random()
        pronoun = get_language().grammar.pronoun(entity)
        if alone and pronoun and latest is not None and (latest.kind, latest.id) == (kind, value) and drawn < IT:
            return pronoun
        if not pronoun or (not here and drawn > 1 - NAMED):  # people and firms are called by their names
            for phrase in self._describe_otherwise(name, value, source, ("name",)):
                if self._leads_to(phrase, kind, value, source) and (not pronoun or len(phrase.split()) <= SHORT):
                    return phrase
        words = get_language().grammar.again(entity)
        return words[0] if here or self.rng.random() < 0.9 else self.rng.choice(words)

    def _say_where(
        self, entity: EntityPhrases, phrase: str, source: FromOutput, held: set[str]
    ) -> tuple[str, list[str]]:
        """Add to a phrase what the thing is looked up in, where that look-up is made for this request."""
        lookup, spoken_keys = self.calls[source.call], list[str]()
        for key, templates in entity.within.items() if source.call >= self.turn_start else ():
            tool, _, parameter = key.rpartition(".")
            if tool and tool != lookup.tool:
                continue
            origin, value = lookup.provenance.get(parameter), lookup.arguments.get(parameter)
            if isinstance(origin, FromUser) and origin.known not in held:
                spoken, keys = self.wording.value(lookup.tool, parameter, value, self.rng), [origin.known]
                called = self.wording.parameter(lookup.tool, parameter).mention
                owner = pick_text(called, {"value": value}, self.rng) or spoken
                slot, names = {"value": spoken, "owner": owner}, [str(value), format_value(spoken)]
            elif isinstance(origin, FromOutput):
                active = self.model.entities.get(get_entity_kind(parameter, origin), {}).get(str(value))
                if active is not None and active.active_turn == self.model.turn:
                    continue
                picks = [build_selector_key(origin.call, pick) for pick in origin.selectors if pick.how != "only"]
                if held & set(picks):
                    continue
                names = [str(self.known[key].value) for key in picks if self.known[key].how == "equals"]
                owner, keys = self.refer(parameter, value, origin, held)
                if owner in phrase:
                    spoken_keys += keys
                    continue
                owner, rows = _leave_out_name(owner, phrase), self._list_rows(origin)
                holding = [row for row in rows if _is_named_by(str([*row.values()]), phrase)]
                if len(holding) == 1 and holding[0].get(parameter) == value:  # nobody says from which order it is
                    spoken_keys += keys
                    continue
                if _is_named_by(owner, phrase):  # "the Lamp from my order for the Lamp"
                    others = self._describe_by_row(parameter, value, rows)
                    owner = next((other for other in others if not _is_named_by(other, phrase)), owner)
                slot = {"owner": owner}
            else:
                continue
            spoken_keys += keys
            if not any(is_value_mentioned(phrase.lower(), each.lower()) for each in names if len(each) > 2):
                phrase = pick_text(templates, {"phrase": phrase, **slot}, self.rng) or phrase
        return phrase, spoken_keys

    def _list_rows(self, source: FromOutput) -> list[dict[str, Any]]:
        """Return the rows of the list that a reference chooses from."""
        matches = find_values(self.calls[source.call].result, source.path)
        rows = (match.levels[-1].row for match in matches if match.levels)
        return [row for row in rows if isinstance(row, dict)]

    def _describe_by_row(self, name: str, value: Any, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Yield phrases for a thing by the fields of its row that no other row of the list shares."""
        chosen: Mapping[str, Any] = next((row for row in rows if row.get(name) == value), {})
        for field in self.wording.entity(name).by:
            current = chosen.get(field)
            if current is not None and sum(row.get(field) == current for row in rows) == 1:
                fact = UserFact(key="", label=field, value=current, said="", slot=f"{name}|{field}", how="equals")
                yield self.describe(name, fact)

    def _iterate_phrases(
        self, name: str, value: Any, source: FromOutput, held: set[str], keys: list[str]
    ) -> Iterator[tuple[str, list[str]]]:
        """Yield phrases with the keys that they say: by what picks it out, by its look-up, by its owner, and so on."""
        entity = self.wording.entity(name)
        picks = [selector for selector in source.selectors if selector.how != "only"]
        if picks:
            inner = self._describe_by_pick(name, value, source, self.known[keys[-1]])
            yield inner + self._outer(picks[:-1], source), keys
        else:
            owned = any(True for _ in self._iterate_owners(name, value, source))
            named = None if owned else self._named_by_lookup(name, source, held)
            named = named or self._in_another(name, value, source, held)
            yield named or (self._only(name, entity, value, source), [])
        stated = [key for key in keys if key not in held]
        talked_about = (name, str(value)) in self.things
        if talked_about:
            for phrase in self._describe_otherwise(name, str(value), source):
                yield phrase, stated
            yield get_language().grammar.from_before(entity), stated

    def _describe_by_pick(self, name: str, value: Any, source: FromOutput, known: UserFact) -> str:
        """Return a phrase for a thing by what picks its row, with the value that the field has now where a change was
        told; of the row of a draft it is "the thread of the draft "Offer""."""
        field = known.slot.split("|")[-1]
        for row_kind, _ in self._iterate_owners(name, value, source):
            owner = self.describe(row_kind, known.model_copy(update={"slot": f"{row_kind}|{field}"}))
            words = {"phrase": get_language().grammar.the(self.wording.entity(name)), "owner": owner}
            return pick_text(self.wording.entity(name).within[row_kind], words, self.rng) or owner
        referent = self.model.entities.get(get_entity_kind(name, source), {}).get(str(value))
        current = self._find_told(referent, field) if referent is not None and known.how == "equals" else None
        return self.describe(name, known if current is None else known.model_copy(update={"value": current}))

    def _iterate_owners(self, name: str, value: Any, source: FromOutput) -> Iterator[tuple[str, str]]:
        """Yield kind and id of the rows that hold a thing's identifier, where they are of another kind of which the
        phrasebook says how the thing belongs to it."""
        lookup, entity = self.calls[source.call], self.wording.entity(name)
        for match in find_values(lookup.result, source.path):
            row = match.levels[-1].row if match.levels else lookup.result
            own = self.model.find_own_id(lookup.tool, row) if match.value == value and isinstance(row, dict) else None
            if own and own[0] != get_entity_kind(name, source) and entity.within.get(own[0]):
                yield own

    def _describe_otherwise(
        self, name: str, value: str, source: FromOutput, kinds: Sequence[str] = ("name", "date", "text", "number")
    ) -> Iterator[str]:
        """Yield phrases by other fields of a thing that was talked about, in words of the phrasebook, but not by
        those that only calls of this turn show."""
        referent = self.model.entities.get(get_entity_kind(name, source), {}).get(value)
        if referent is None:
            return
        known = {field: self._find_told(referent, field) for field in self.wording.entity(name).by}
        known_values = {field: current for field, current in known.items() if current is not None}
        for field, current in sorted(known_values.items(), key=lambda item: -score_field(*item)):
            if classify_field(field, current) in kinds:
                fact = UserFact(key="", label=field, value=current, said="", slot=f"{name}|{field}", how="equals")
                yield self.describe(name, fact)

    def _find_told(self, referent: DiscourseEntity, field: str) -> Any:
        """Return the value of a field that the user can know: as it was before this turn, or what they have said."""
        value = referent.find_before(field, self.turn_start)
        if value is not None or self.model.horizon is None:
            return value
        value = referent.find_before(field, self.model.horizon)
        return value if any(fact.value == value for fact in self.known.values()) else None

    def _leads_to(self, phrase: str, kind: str, value: str, source: FromOutput) -> bool:
        """Return whether a reader takes the phrase to mean this entity."""
        picks = [selector for selector in source.selectors if selector.how != "only"]
        shown = self.model.find_list(kind, value, source.call)
        text = drop_near_years(phrase, self.model.now) if self.model.now else phrase
        for expression in self.model.lexicon.find(text)[:1]:
            if kind in expression.kinds:
                reading = resolve_expression(self.model, expression, kind, picks[-1] if picks else None, shown)
                return reading is None or reading.sole == value
        reading = resolve_values(self.model, text, kind)
        return reading is None or reading.sole == value

    def spoke_of(self, call: GoldCall, names: Iterable[str]) -> None:
        """Record what was mentioned of a call: only mentioned entities can be meant by "that order"."""
        mentioned = set(names)
        for name, source in call.provenance.items():
            if name in mentioned and isinstance(source, FromOutput):
                self.model.activate(get_entity_kind(name, source), str(call.arguments[name]))

    def is_open(self, name: str, value: Any, source: FromOutput, least: int = 2) -> bool:
        """Return whether this turn has not said yet which of `least` entities or more is meant."""
        kind = get_entity_kind(name, source)
        referent = self.model.entities.get(kind, {}).get(str(value))
        spoken = referent is not None and referent.active_turn == self.model.turn
        own = least < 2 and get_language().grammar.is_own(self.wording.entity(name).own)
        return len(self.model.candidates(kind)) >= least and not spoken and not own

    def _changed_since(self, call: int, name: str, value: Any) -> bool:
        """Return True if a write has touched the entity after the list was read: the listed values may be outdated."""
        later = self.calls[call + 1 : self.turn_start]
        return any(later_call.effect == "write" and later_call.arguments.get(name) == value for later_call in later)

    def _named_by_lookup(self, name: str, source: FromOutput, held: set[str]) -> tuple[str, list[str]] | None:
        """A thing that was looked up by its name is called by it: the look-up itself goes without saying."""
        entity, lookup = self.wording.entity(name), self.calls[source.call]
        for parameter, origin in lookup.provenance.items():
            if parameter in entity.by and isinstance(origin, FromUser) and origin.known not in held:
                known = self.known[origin.known].model_copy(update={"slot": f"{name}|{parameter}"})
                return self.describe(name, known), [known.key]
        return None

    def _in_another(self, kind: str, value: Any, source: FromOutput, held: set[str]) -> tuple[str, list[str]] | None:
        """The only thing of its kind in another that nobody has spoken of: "the product in the order from 3 March"."""
        entity = self.wording.entity(kind)
        producer = self.calls[source.call]
        if producer.effect == "write" or source.call < self.turn_start:
            return None
        for name, origin in producer.provenance.items():
            picks = [pick for pick in origin.selectors if pick.how != "only"] if isinstance(origin, FromOutput) else []
            owner = self.wording.entity(name).noun
            new = (name, str(producer.arguments[name])) not in self.things
            if len(picks) == 1 and isinstance(origin, FromOutput) and new and self._apart(entity, owner):
                key = build_selector_key(origin.call, picks[0])
                if key not in held and not self._changed_since(origin.call, name, producer.arguments[name]):
                    return self._put_inside(kind, value, source, self.describe(name, self.known[key])), [key]
        return None

    def _put_inside(self, name: str, value: Any, source: FromOutput, owner: str) -> str:
        """Return a phrase for a thing in another one; of the row of a third it is "the project of the server in the
        template "Offer""."""
        entity, grammar = self.wording.entity(name), get_language().grammar
        for kind, _ in self._iterate_owners(name, value, source):
            words = {"phrase": grammar.the(entity), "owner": grammar.inside(self.wording.entity(kind), owner)}
            if phrase := pick_text(entity.within[kind], words, self.rng):
                return phrase
        return grammar.inside(entity, owner)

    @staticmethod
    def _apart(entity: EntityPhrases, owner: str) -> bool:
        """Return True if neither name is part of the other: an order and an order line are not named so."""
        return entity.noun not in owner and owner not in entity.noun

    def _describe_by_owner(self, name: str, value: Any, source: FromOutput) -> str | None:
        """Return a phrase for a thing of which only the row of another has told: "the project of the task "Fix the
        roof""; None where the phrasebook has no words for it."""
        entity = self.wording.entity(name)
        for kind, key in self._iterate_owners(name, value, source):
            referent = self.model.entities.get(kind, {}).get(key)
            owner = self._name_again(kind, key) if referent is not None and referent.turns else None
            words = {"phrase": get_language().grammar.the(entity), "owner": owner}
            if owner and (phrase := pick_text(entity.within[kind], words, self.rng)):
                return phrase
        return None

    def _name_again(self, kind: str, value: str) -> str | None:
        """Return the name of a thing that was spoken of, or "that order" where it was the last of its kind."""
        source = FromOutput(call=0, path=f"$.{kind}")
        for phrase in self._describe_otherwise(kind, value, source, ("name",)):
            if self._leads_to(phrase, kind, value, source):
                return phrase
        top = self.model.top(kind)
        return get_language().grammar.that(self.wording.entity(kind)) if top is not None and top.id == value else None

    def _only(self, name: str, entity: EntityPhrases, value: Any, source: FromOutput) -> str:
        """A thing that needs no picking out: what was just made, what belongs to another thing, or the user's own."""
        producer = self.calls[source.call]
        if producer.effect == "write" and str(value) not in self.initial:
            return self.rng.choice(get_language().grammar.new(entity))
        for place, origin in producer.provenance.items() if producer.effect == "read" else ():
            owner = self.wording.entity(place)
            if not isinstance(origin, FromOutput) or not self._apart(entity, owner.noun):
                continue
            if all(pick.how == "only" for pick in origin.selectors):
                continue
            top = self.model.top(get_entity_kind(place, origin))
            if top is not None and top.id == str(producer.arguments[place]) and (place, top.id) in self.things:
                grammar, templates = get_language().grammar, entity.within.get(place, ())
                if any(True for _ in self._iterate_owners(name, value, source)):
                    return self._put_inside(name, value, source, grammar.that(owner))
                words = {"phrase": grammar.the(entity), "owner": grammar.that(owner)}
                return pick_text(templates, words, self.rng) or grammar.inside(entity, grammar.that(owner))
        if source.call < self.turn_start and entity.own:
            referent = self.model.entities.get(get_entity_kind(name, source), {}).get(str(value))
            far = referent is None or self.model.turn - referent.active_turn > RECENT + 1
            is_new = not get_language().grammar.is_own(entity.own) and (far or (name, str(value)) not in self.things)
            return (self._describe_by_owner(name, value, source) if is_new else None) or self.rng.choice(entity.own)
        unmentioned = [phrase for phrase in entity.own if get_language().grammar.is_unmentioned(phrase)]
        return self.rng.choice(unmentioned or [get_language().grammar.the(entity)])

    def _outer(self, picks: Sequence[Selector], source: FromOutput) -> str:
        """Return the phrase that identifies the enclosing entities: "... (the one with the order date 3 March)"."""
        parts = []
        for selector in reversed(picks):
            known = self.known[build_selector_key(source.call, selector)]
            parts.append(get_language().grammar.outer(known.label, known.said))
        return "".join(parts)

    def _prefer_name(self, name: str, value: Any, phrase: str, source: FromOutput) -> str:
        """Return the name of a thing that an answer has told of, in place of its date or a number; with them, where
        another thing of the list has the same name."""
        entity, rows = self.wording.entity(name), self._list_rows(source)
        picked = [pick.field for pick in source.selectors if pick.how == "equals"]
        row = next((row for row in rows if row.get(name) == value), None)
        if row is None or len(picked) != 1 or classify_field(picked[0], row.get(picked[0])) not in ("date", "number"):
            return phrase
        names = [field for field in entity.by if classify_field(field, row.get(field)) == "name" and row.get(field)]
        for field in names:
            if sum(other.get(field) == row[field] for other in rows) == 1:
                fact = UserFact(key="", label=field, value=row[field], said="", slot=f"{name}|{field}", how="equals")
                return self.describe(name, fact)
            both = pick_text(entity.within.get(field, ()), {"phrase": phrase, "value": row[field]}, self.rng)
            return both or phrase
        return phrase

    def _is_sole_told(self, name: str, kind: str, value: str, source: FromOutput) -> bool:
        """Return whether an answer has just told of this thing, which has no name of its own, and of no other of its
        kind: who has one voucher says "that voucher", and not until when it is valid."""
        entity, pool = self.wording.entity(name), self.model.candidates(kind)
        if source.call not in self.requested or source.call >= self.turn_start or [one.id for one in pool] != [value]:
            return False
        named = (field for field in entity.by if classify_field(field, pool[0].latest(field)) == "name")
        return bool(get_language().grammar.pronoun(entity)) and not any(named)

    def notice_goal(self, goal: int) -> None:
        """Record a requested call: what it created can be meant by "that"; a list makes "that" ambiguous."""
        self.requested.add(goal)
        self.model.observe_outcome(goal, requested=True)

    def point_at(self, name: str, value: str) -> None:
        """Record an entity that a question named: "that order" means it from then on."""
        self.things[name, value] = self.turn
        self.model.activate(name, value)

    def remember(self, start: int, stop: int) -> None:
        """A turn is over."""
        for call in self.calls[start:stop]:
            for name, source in call.provenance.items():
                if isinstance(source, FromOutput):
                    self.things[name, str(call.arguments[name])] = self.turn
        self.turn += 1
        self.turn_start = stop


def _leave_out_name(owner: str, phrase: str) -> str:
    """Return an owner's phrase without the thing that it is said of: "the order with the Lamp and Desk" of a lamp."""
    parts = re.split(r"(, | and )", owner)
    head = re.match(r".*?\bwith (?:the |a )?", parts[0])
    if len(parts) < 3 or head is None:
        return owner
    names = [parts[0][head.end() :], *parts[2::2]]
    rest = [name for name in names if not is_value_mentioned(phrase.lower(), name.lower())]
    return head[0] + get_language().grammar.join(rest) if rest and len(rest) < len(names) else owner


def _names_any(text: str, names: Iterable[str]) -> bool:
    return any(is_value_mentioned(text.lower(), name.lower()) for name in names)


def _is_named_by(text: str, phrase: str) -> bool:
    """Return whether a text has the name by which a phrase calls a thing, without "the" or "my" before it."""
    name = re.sub(r"^(?:the|my|that|this) ", "", phrase.lower())
    return len(name) > 3 and is_value_mentioned(text.lower(), name)


def render_indefinite_reference(entity: EntityPhrases) -> str:
    """Render an indefinite reference: "one of my orders", or "one of the rooms" if they are not the user's own."""
    grammar = get_language().grammar
    return grammar.one_of(entity, entity.plural or pluralize(entity.noun), grammar.is_own(entity.own))

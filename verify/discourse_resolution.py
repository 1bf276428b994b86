"""The entity that a reader takes a referring expression to mean, by what the dialogue has shown up to there."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trajsmith.grounding import split_name
from trajsmith.phrasing import ReferringExpression, TextValues, parse_datetime, stem
from trajsmith.records import Selector
from trajsmith.verify.discourse import DiscourseModel
from trajsmith.verify.discourse_entities import DiscourseEntity, ShownList

FAR = 2
"""Turns after which "that contact" stands for nothing any more."""
_PRICES = frozenset({"price", "total", "amount", "fee", "cost", "fare", "rate"})
_BEGUN = frozenset({"created", "placed", "opened", "issued", "sent", "booked", "requested", "ordered", "made", "added"})
_NAMES = frozenset({"name", "title", "subject", "label", "description", "nickname"})
_WORD = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Reading:
    """Entities that a reader takes an expression to mean."""

    ids: tuple[str, ...]
    """The first choice; several where none is nearer than the others; empty where nothing fits."""
    rule: str
    """How it was found: the form of the expression, "sole" or "top"."""
    cut: bool = False
    """It is an extreme of a list that the tool cut."""

    @property
    def sole(self) -> str | None:
        """The entity that is meant, if a reader does not hesitate."""
        return self.ids[0] if len(self.ids) == 1 and not self.cut else None


def resolve_expression(
    model: DiscourseModel,
    phrase: ReferringExpression,
    kind: str,
    selector: Selector | None = None,
    source: ShownList | None = None,
) -> Reading | None:
    """Return how a reader takes a phrase, or None if nothing in the results can tell.

    Args:
        model: The dialogue so far, with the calls that are made before the entity is needed.
        phrase: The expression.
        kind: Kind of entity that the noun stands for here.
        selector: The selection that the phrase stands for, if it is known: its field is what a superlative compares.
        source: The list that the selection is made in.
    """
    pool = model.candidates(kind)
    if phrase.form == "open" or not pool:
        return None
    if phrase.form == "same":
        top = model.top(kind)
        if top is not None and model.turn - top.active_turn > FAR:
            return Reading((), "same")
        return Reading((top.id,) if top else _sole(pool), "same")
    if phrase.form == "new":
        created = [entity for entity in pool if entity.created >= 0]
        if not created:
            described = _match_described(model, phrase, pool)
            return described if described and described.ids else None
        return Reading(tuple(entity.id for entity in created), "new")
    if phrase.form == "earlier":
        before = [entity for entity in pool if any(turn < model.turn for turn in entity.turns)]
        return Reading(tuple(entity.id for entity in before), "earlier")
    if phrase.form == "superlative":
        return _resolve_superlative(model, phrase, kind, selector, source)
    if phrase.form == "ordinal":
        shown = source or model.find_list(kind)
        return (
            Reading((shown.ids[phrase.ordinal - 1],), "ordinal") if shown and len(shown.ids) >= phrase.ordinal else None
        )
    if phrase.form in ("described", "bare") and phrase.narrow.lower() != phrase.noun:
        described = _match_described(model, phrase, pool)
        if described is None:
            described = _match_owner(model, phrase, kind, pool)
        if described is not None:
            return described
        if phrase.form == "described":
            return Reading(_sole(pool), "sole") if len(pool) == 1 else None
    return resolve_bare(model, kind)


def resolve_bare(model: DiscourseModel, kind: str) -> Reading:
    """Return how a reader takes "the event" or "my card": the only one, or the one that was just talked about."""
    pool = model.candidates(kind)
    if len(pool) == 1:
        return Reading(_sole(pool), "sole")
    top = model.top(kind)
    if top is not None and model.turn - top.active_turn <= 1:
        return Reading((top.id,), "top")
    return Reading(tuple(entity.id for entity in pool), "bare")


def resolve_values(model: DiscourseModel, text: str, kind: str) -> Reading | None:
    """Return which entities of a kind a text names by their values; None if it names none."""
    return _best_matches(model, TextValues(text, model.now), model.candidates(kind))


def find_named(model: DiscourseModel, values: TextValues, kind: str) -> list[tuple[int, str]]:
    """Return (position, id) of the entities of a kind that a text calls by a name of their own."""
    named = []
    for entity in model.candidates(kind):
        places = [
            values.find(value)
            for field, of_field in entity.fields.items()
            if set(split_name(field)) & _NAMES
            for value in of_field
            if isinstance(value, str) and len(value) > 3
        ]
        first = min((place for place in places if place >= 0), default=-1)
        if first >= 0:
            named.append((first, entity.id))
    return sorted(named)


def _sole(pool: Sequence[DiscourseEntity]) -> tuple[str, ...]:
    return tuple(entity.id for entity in pool)


def _match_described(
    model: DiscourseModel, phrase: ReferringExpression, pool: Sequence[DiscourseEntity]
) -> Reading | None:
    """The entities whose values stand in the phrase, or else in its clause; None if it states none of them."""
    for words in dict.fromkeys((phrase.narrow, phrase.clause)):
        reading = _best_matches(model, TextValues(words, model.now), pool)
        if reading is not None:
            return reading
    return None


def _match_owner(
    model: DiscourseModel, phrase: ReferringExpression, kind: str, pool: Sequence[DiscourseEntity]
) -> Reading | None:
    """The things that belong to another one that the phrase names: "the product in the order from 3 March"."""
    for inner in model.lexicon.find(phrase.clause):
        for other in inner.kinds:
            if other == kind or not model.candidates(other) or inner.noun == phrase.noun:
                continue
            reading = resolve_expression(model, inner, other)
            if reading is not None and reading.sole is not None:
                owned = tuple(entity.id for entity in pool if (other, reading.sole) in entity.owners)
                if owned:
                    return Reading(owned, "described")
    return None


def _best_matches(model: DiscourseModel, values: TextValues, pool: Sequence[DiscourseEntity]) -> Reading | None:
    stated = {entity.id: list_stated_values(model, values, entity) for entity in pool}
    scores = {of: sum(score for score, _ in of_one.values()) for of, of_one in stated.items()}
    best = max(scores.values(), default=0)
    if best == 0:
        return None
    ids = [of for of, score in scores.items() if score == best]
    if len(ids) > 1:
        ids = _prefer_owned(pool, ids, model)
    if len(ids) > 1:
        ids = _prefer_named_fields(values, {of: stated[of] for of in ids})
    return Reading(tuple(ids), "described")


def list_stated_values(
    model: DiscourseModel, values: TextValues, entity: DiscourseEntity
) -> dict[str, tuple[int, set[str]]]:
    """Return the values of an entity that a text states, each with its weight and the fields that have it.

    An id outweighs everything; a date with its time, and a text of several words, count twice.
    """
    stated: dict[str, tuple[int, set[str]]] = {}
    if values.find(entity.id) >= 0:
        stated[entity.id] = 100, {entity.kind}
    for field, of_field in entity.fields.items():
        phrases = model.wording.parameter("", field.split(".")[-1]).values
        for value in of_field:
            key = str(value).lower()
            if key in stated:
                stated[key][1].add(field)
                continue
            count = values.count_matches(value, phrases.get(key, ()))
            if count:
                longer = isinstance(value, str) and parse_datetime(value) is None and " " in value
                stated[key] = count + longer, {field}
    return stated


def count_stated_values(model: DiscourseModel, values: TextValues, entity: DiscourseEntity) -> int:
    """Return the weight of all values of an entity that a text states."""
    return sum(score for score, _ in list_stated_values(model, values, entity).values())


def _prefer_named_fields(values: TextValues, stated: Mapping[str, dict[str, tuple[int, set[str]]]]) -> list[str]:
    """Of things that fit alike, those whose fields the text names: "from Lunna" is a `from_city`."""
    spoken_words = {stem(word) for word in _WORD.findall(values.flat)}
    named = {
        of: sum(
            any(spoken_words & set(map(stem, split_name(field))) for field in fields) for _, fields in of_one.values()
        )
        for of, of_one in stated.items()
    }
    best = max(named.values())
    return [of for of, count in named.items() if count == best]


def _prefer_owned(pool: Sequence[DiscourseEntity], ids: list[str], model: DiscourseModel) -> list[str]:
    """Of things that fit alike, those that belong to what is talked about in this turn."""
    focus = {
        (entity.kind, entity.id)
        for of_kind in model.entities.values()
        for entity in of_kind.values()
        if entity.active_turn == model.turn
    }
    owned = [entity.id for entity in pool if entity.id in ids and entity.owners & focus]
    return owned or ids


def _resolve_superlative(
    model: DiscourseModel,
    phrase: ReferringExpression,
    kind: str,
    selector: Selector | None,
    source: ShownList | None,
) -> Reading | None:
    shown = source or model.find_list(kind)
    if shown is None or shown.kind != kind:
        return None
    known = model.entities[kind]
    later = [entity.id for entity in model.candidates(kind) if entity.created >= 0 and entity.id not in shown.ids]
    rows = [*dict.fromkeys(shown.ids)]
    selected = selector is not None and selector.how in ("largest", "smallest")
    field = selector.field if selected and selector else _guess_measure(phrase, [known[row] for row in rows])
    if field is None:
        return None
    dated = phrase.measure == "date"
    if later and dated and phrase.extreme == "largest" and set(split_name(field)) & (_BEGUN | {"date"}):
        return Reading(tuple(later[-1:]), "superlative")
    values = {row: known[row].latest(field) for row in (*rows, *later)}
    comparable = {row: value for row, value in values.items() if _is_comparable(value)}
    if not comparable or len({type(value) is str for value in comparable.values()}) > 1:
        return None
    best = max(comparable.values()) if phrase.extreme == "largest" else min(comparable.values())
    ids = tuple(row for row, value in comparable.items() if value == best)
    return Reading(ids, "superlative", cut=not model.is_extreme_certain(shown, field, best))


def _is_comparable(value: Any) -> bool:
    return (isinstance(value, int | float) and not isinstance(value, bool)) or parse_datetime(value) is not None


def _guess_measure(phrase: ReferringExpression, rows: Iterable[DiscourseEntity]) -> str | None:
    """The field that a superlative compares."""
    first = next(iter(rows), None)
    if first is None:
        return None
    fields = {name: first.latest(name) for name in first.fields if ":" not in name}
    if phrase.measure == "date":
        dates = [name for name, value in fields.items() if parse_datetime(value) is not None]
        return next((name for name in dates if set(split_name(name)) & _BEGUN), dates[0] if dates else None)
    numbers = [name for name, value in fields.items() if _is_comparable(value) and not isinstance(value, str)]
    if phrase.measure == "price":
        return next((name for name in numbers if set(split_name(name)) & _PRICES), None)
    wanted = set(split_name(phrase.measure.replace(" ", "_")))
    return next((name for name in numbers if set(split_name(name.split(".")[-1])) <= wanted), None)

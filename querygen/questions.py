"""Narrow questions: which of them a result answers, the row that one is about, and whether a query asks it."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import orjson

from trajsmith.grounding import (
    build_selector_key,
    find_rows,
    get_value,
    has_namesake,
    is_list_cut,
    iterate_nodes,
    join_path,
)
from trajsmith.grounding.row_fields import classify_field, list_sayable_fields, rank_fields
from trajsmith.phrasing import (
    Question,
    Wording,
    format_value,
    iterate_rows,
    list_slots,
    pick_text,
    split_identifier,
    stem,
)
from trajsmith.querygen.requested_info import has_empty_list, iter_places
from trajsmith.records import GoldCall, JsonValue, RequestedInfo, Selector, UserFact, canonical_json

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_QUESTION_WORD = re.compile(
    r"\b(when|where|who|why|whether|how (?:much|many|long|often|far)|what time)\b", re.IGNORECASE
)
_NO_PRONOUN = re.compile(
    r"(?:^|[.!?,;:] |\b(?:of|in|into|from|at|inside|under|my|our|the|this|that|and|or|is|are|has|was) )$", re.IGNORECASE
)
"""What stands before a slot in which a pronoun sounds odd."""
_POLITE = frozenset({
    "i", "me", "my", "you", "your", "it", "a", "an", "and", "could", "would", "can", "please", "like", "want", "need",
    "do", "does", "did", "find", "check", "tell", "know", "what", "which", "how", "that", "this", "with", "help",
    "will", "there", "out", "up", "see", "look", "d", "s", "m", "also", "then", "after",
    "is", "has", "was", "are", "be", "the", "of", "to", "in", "on", "at", "by", "for",
})  # fmt: skip
"""Words that ask for nothing in particular."""


@dataclass(frozen=True)
class RowChoice:
    """A row that a question is about, and what the user knows of it."""

    selector: Selector
    fact: UserFact
    phrase: str
    """Noun phrase for the row: "the order to the theatre"."""


@dataclass(frozen=True)
class AskableQuestion:
    """A question that the executed result can answer."""

    question: Question
    row: RowChoice | None = None

    def build_info(self, call: int, sentence: str) -> RequestedInfo:
        """Return the record of the question; its values are filled in by `fill_facts`."""
        return RequestedInfo(
            call=call,
            question=sentence,
            fields=self.question.asks,
            row=self.row.selector if self.row else None,
            known=self.row.fact.key if self.row else "",
            answer=self.question.answer,
        )


def list_askable_questions(
    questions: Sequence[Question],
    call: int,
    result: JsonValue,
    wording: Wording,
    rng: random.Random,
    where: Mapping[str, Sequence[JsonValue]] = MappingProxyType({}),
    calls: Sequence[GoldCall] = (),
    initial: str = "",
) -> list[AskableQuestion]:
    """Return the questions that a result answers, in random order.

    A question about one row needs a row that something which people say tells apart from all others in the list.

    Args:
        where: Field of such a row to the values that it may have.
        calls: All gold calls: where they change a row of the list, the question is about that one.
        initial: Text of the initial state: what a cut list shows once stands twice in it where the rest has another.
    """
    askable = []
    for question in rng.sample(list(questions), len(questions)):
        row = None
        if question.row:
            changed = _list_changed(question.row, call, calls)
            choices = _iter_rows(question, call, result, wording, rng, where, changed)
            reader = calls[call] if calls else None
            row = next((row for row in choices if not _has_hidden_namesake(row, reader, wording, initial)), None)
            if row is None:
                continue
        info = AskableQuestion(question, row)
        if row or all(any(iter_places(result, path)) or has_empty_list(result, path) for path in question.asks):
            askable.append(info)
    return askable


def _list_changed(parameter: str, call: int, calls: Sequence[GoldCall]) -> list[JsonValue]:
    """Return the things of one kind that calls change: before a call the last one first, after it in order."""
    before = [one.arguments[parameter] for one in calls[:call] if one.effect == "write" and parameter in one.arguments]
    after = [one.arguments[parameter] for one in calls[call:] if one.effect == "write" and parameter in one.arguments]
    return [*before[::-1], *after]


def _has_hidden_namesake(row: RowChoice, call: GoldCall | None, wording: Wording, initial: str) -> bool:
    """Return whether a list that is cut may lack a row that is called the same."""
    selector = row.selector
    if call is None or not is_list_cut(wording.tools.get(call.tool), call.arguments, call.result, selector.rows):
        return False
    if initial.count(f'"{selector.field}":{canonical_json(selector.value).decode()}') < 2:
        return False
    shown = next(find_rows(call.result, selector))
    return has_namesake(iterate_rows(orjson.loads(initial)), shown, selector.field, call.arguments)


def _iter_rows(
    question: Question,
    call: int,
    result: JsonValue,
    wording: Wording,
    rng: random.Random,
    where: Mapping[str, Sequence[JsonValue]],
    changed: Sequence[JsonValue],
) -> Iterator[RowChoice]:
    """Yield rows that can be told apart and hold all that is asked, each with a field that does it."""
    entity = wording.entity(question.row)
    for parts, rows in iterate_nodes(result):
        if not isinstance(rows, list) or not any(isinstance(row, dict) and question.row in row for row in rows):
            continue
        shuffled = rng.sample(rows, len(rows))
        meant = [row for row_id in changed for row in shuffled if get_value(row, question.row) == row_id]
        for row in meant or shuffled:
            if any(get_value(row, field) in (None, [], {}) for field in question.asks):
                continue
            if any(get_value(row, field) not in (None, *values) for field, values in where.items()):
                continue
            fields = [field for field in list_sayable_fields(row, tuple(entity.by)) if "." not in field]
            ranked = rank_fields(row, fields, rng)
            for field in sorted(ranked, key=lambda field: classify_field(field, get_value(row, field)) != "name"):
                value = get_value(row, field)
                same = sum(get_value(other, field) == value for other in rows)
                if same == 1 and isinstance(value, str | int | float) and field not in question.asks:
                    selector = Selector(rows=join_path(parts), how="equals", field=field, value=value)
                    yield _describe_row(question.row, call, selector, wording, rng)


def _describe_row(parameter: str, call: int, selector: Selector, wording: Wording, rng: random.Random) -> RowChoice:
    field = selector.field.split(".")[-1]
    fact = UserFact(
        key=build_selector_key(call, selector),
        label=wording.parameter("", field).label,
        value=selector.value,
        said=format_value(selector.value),
        slot=f"{parameter}|{field}",
        how="equals",
    )
    phrase = wording.describe(parameter, fact, rng)
    return RowChoice(selector, fact.model_copy(update={"said": phrase}), phrase)


def pick_question_text(
    templates: Sequence[str],
    values: Mapping[str, Any],
    row: RowChoice | None,
    rng: random.Random,
    again: Mapping[str, str] | None = None,
) -> tuple[str, str] | None:
    """Return a template whose slots have values, and the sentence; None if there is none.

    Args:
        again: Slot to the phrase that stands where its pronoun does not: "its status", "the price of it".
    """
    filled = {**values, "row": row.phrase} if row else dict(values)
    for template in rng.sample(list(templates), len(templates)):
        full = {slot: phrase for slot, phrase in (again or {}).items() if not _takes_pronoun(template, slot)}
        moved = template
        for slot in (again or {}).keys() - full.keys():
            moved = _move_pronoun(moved, slot)
        text = pick_text([moved], {**filled, **full}, rng)
        if text is not None and (row is None or "row" in list_slots(template)):
            return template, text
    return None


def _takes_pronoun(template: str, slot: str) -> bool:
    """Return whether "it" can stand in a template's slot: after a verb, and only there."""
    places = [match.span() for match in re.finditer(rf"{{{slot}\b[^}}]*}}", template)]
    return len(places) == 1 and not (
        _NO_PRONOUN.search(template[: places[0][0]]) or template[places[0][1] :].startswith(("'", "’"))
    )


def _move_pronoun(template: str, slot: str) -> str:
    """Return a template with a slot between a verb and its particle: "call {event_id} off"."""
    return re.sub(rf"\b(?!it\b)(\w+) (off|up|out|back|over|down|away) ({{{slot}\b[^}}]*}})", r"\1 \3 \2", template)


def find_asking_sentence(query: str, info: RequestedInfo) -> str:
    """Return the sentence of a query that asks for something, or the plain one where none has a word in common."""
    words = _content(info.question)
    sentences = [part.strip() for part in _SENTENCE.split(query) if part.strip()]
    best = max(sentences, key=lambda sentence: len(words & _content(sentence)), default="")
    return best if words & _content(best) else info.question


def asks_for(query: str, info: RequestedInfo, known: Sequence[UserFact]) -> bool:
    """Return True if a query asks a question: with one of its own words, or the same question word.

    Args:
        known: What the user knows; words by which things are called ask nothing.
    """
    named = {word for fact in known for word in _content(f"{fact.said} {fact.slot}")}
    words = _content(info.question) | {word for fact in info.facts for word in _content(fact.label)}
    wanted = {match.lower() for match in _QUESTION_WORD.findall(info.question)}
    return bool((words - named) & _content(query)) or bool(
        wanted & {match.lower() for match in _QUESTION_WORD.findall(query)}
    )


def _content(text: str) -> set[str]:
    return {stem(word) for word in split_identifier(text) if word not in _POLITE}

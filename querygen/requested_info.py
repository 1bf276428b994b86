"""What a request asks for: questions to choose from, the row that a question is about, and the values as executed."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trajsmith.grounding import build_selector_key
from trajsmith.grounding.names import is_identifier
from trajsmith.grounding.paths import PathMatch, find_values, get_value, iterate_nodes, join_path, split_path
from trajsmith.phrasing import Question, Wording, pick_text
from trajsmith.phrasing.templates import list_slots
from trajsmith.phrasing.value_formatting import format_value, parse_datetime
from trajsmith.phrasing.words import split_identifier, stem
from trajsmith.querygen.reportable_values import pick_reportable_values
from trajsmith.records import AnswerFact, GoldCall, JsonValue, RequestedInfo, Selector, UserFact

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_QUESTION_WORD = re.compile(
    r"\b(when|where|who|why|whether|how (?:much|many|long|often|far)|what time)\b", re.IGNORECASE
)
_POLITE = frozenset({
    "i", "me", "my", "you", "your", "it", "a", "an", "and", "could", "would", "can", "please", "like", "want", "need",
    "do", "does", "did", "find", "check", "tell", "know", "what", "which", "how", "that", "this", "with", "help",
    "will", "there", "out", "up", "see", "look", "d", "s", "m", "also", "then", "after",
})  # fmt: skip
"""Words that ask for nothing in particular."""
_GENERAL = frozenset({"is", "has", "was", "are", "can", "be", "the", "of", "to", "in", "on", "at", "by", "for"})


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
    questions: Sequence[Question], call: int, result: JsonValue, wording: Wording, rng: random.Random
) -> list[AskableQuestion]:
    """Return the questions that a result answers, in random order.

    A question about one row needs a row that something which people say tells apart from all others in the list.
    """
    askable = []
    for question in rng.sample(list(questions), len(questions)):
        row = None
        if question.row:
            row = next(_iter_rows(question, call, result, wording, rng), None)
            if row is None:
                continue
        info = AskableQuestion(question, row)
        if row or all(any(_iter_leaves(result, path)) or _is_empty_list(result, path) for path in question.asks):
            askable.append(info)
    return askable


def _iter_rows(
    question: Question, call: int, result: JsonValue, wording: Wording, rng: random.Random
) -> Iterator[RowChoice]:
    """Yield rows that can be told apart and hold all that is asked, each with a field that does it."""
    entity = wording.entity(question.row)
    for parts, rows in iterate_nodes(result):
        if not isinstance(rows, list) or not any(isinstance(row, dict) and question.row in row for row in rows):
            continue
        for row in rng.sample(rows, len(rows)):
            if any(get_value(row, field) in (None, [], {}) for field in question.asks):
                continue
            for field in rng.sample(list(entity.by), len(entity.by)):
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
    templates: Sequence[str], values: Mapping[str, Any], row: RowChoice | None, rng: random.Random
) -> tuple[str, str] | None:
    """Return a template whose slots have values, and the sentence; None if there is none."""
    filled = {**values, "row": row.phrase} if row else dict(values)
    for template in rng.sample(list(templates), len(templates)):
        text = pick_text([template], filled, rng)
        if text is not None and (row is None or "row" in list_slots(template)):
            return template, text
    return None


def find_named_fields(template: str, call: GoldCall, told: Sequence[str]) -> tuple[str, ...]:
    """Return paths of plain result fields that a request names and that the tool's facts leave out.

    "Check whether a window is open" names `window_open`: an answer to it must state that field, too.

    Args:
        template: The phrase, with its slots.
        call: The executed call; a field that repeats an argument is no news.
        told: Paths of the tool's facts.
    """
    words = {stem(word) for text in _split_slots(template) for word in split_identifier(text)}
    result = call.result if isinstance(call.result, dict) else {}
    paths = []
    for name, value in result.items():
        content = [stem(word) for word in split_identifier(name) if word not in _GENERAL]
        plain = isinstance(value, str | int | float) and value != "" and not is_identifier(name)
        if plain and content and name not in call.arguments and f"$.{name}" not in told and words.issuperset(content):
            paths.append(f"$.{name}")
    return tuple(paths)


def _split_slots(template: str) -> list[str]:
    """Return the text of a template between its slots."""
    return [part.partition("}")[2] if number else part for number, part in enumerate(template.split("{"))]


def build_general_info(call: int, gold: GoldCall, sentence: str, template: str, wording: Wording) -> RequestedInfo:
    """Return what a request for a whole result asks for: the tool's facts, and fields that the request names.

    Tools without phrases have no facts of their own: the first informative values of the result stand for them.
    """
    phrases = wording.tool(gold.tool)
    if phrases.facts or phrases.done:
        named = find_named_fields(template, gold, phrases.facts) if gold.effect == "read" else ()
        fields = (*phrases.facts, *named)
        return RequestedInfo(call=call, question=sentence, fields=fields)
    facts = tuple(AnswerFact(value=value) for value in pick_reportable_values(gold.result) if value != "")
    return RequestedInfo(call=call, question=sentence, facts=facts)


def fill_facts(info: RequestedInfo, call: GoldCall, wording: Wording) -> RequestedInfo:
    """Return what is asked for with its values in an executed result; fields without a value are left out."""
    if not info.fields:
        values = pick_reportable_values(call.result) if info.facts else []
        return info.model_copy(update={"facts": tuple(AnswerFact(value=value) for value in values)})
    if info.row is not None:
        places = _iter_row_places(info.row, info.fields, call.result)
    else:
        places = ((place, value) for path in info.fields for place, value in _iter_leaves(call.result, path))
    facts = [build_fact(info, call.tool, place, value, wording) for place, value in places]
    several = len({fact.label for fact in facts if isinstance(fact.value, bool)}) < sum(
        isinstance(fact.value, bool) for fact in facts
    )  # which of several things a yes or no is about cannot be read from words
    facts = [fact for fact in facts if not (several and isinstance(fact.value, bool))]
    if not facts and info.row is None and info.fields:
        facts = [
            AnswerFact(value=[], call=info.call, place=place, label=wording.parameter(call.tool, place[-1]).label)
            for path in info.fields[:1]
            for place in _find_empty_list(call.result, path)
        ]
    return info.model_copy(update={"facts": tuple(facts)})


def build_fact(
    info: RequestedInfo, tool: str, place: tuple[str, ...], value: JsonValue, wording: Wording
) -> AnswerFact:
    """Return a value of a result as something to state, with the words of its field."""
    field = next((part for part in reversed(place) if not part.isdigit()), "")
    phrases = wording.parameter(tool, field)
    has_words = isinstance(value, bool) or str(value) in phrases.values
    depends = isinstance(value, bool) or isinstance(parse_datetime(value), datetime)
    return AnswerFact(
        value=value,
        call=info.call,
        place=place,
        label=phrases.label,
        words=phrases.values if has_words else {},
        question=info.question if depends else "",
    )


def find_rows(result: JsonValue, selector: Selector) -> Iterator[Any]:
    """Yield the rows of a result that a selector means."""
    for match in find_values(result, selector.rows):
        for row in match.value if isinstance(match.value, list) else ():
            if get_value(row, selector.field) == selector.value:
                yield row


def _iter_row_places(
    selector: Selector, fields: Sequence[str], result: JsonValue
) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    row = next(find_rows(result, selector), None)
    rows: Any = next((match.value for match in find_values(result, selector.rows)), [])
    for field in fields if row is not None else ():
        place = (*split_path(selector.rows), str(rows.index(row)), *split_path(field))
        yield from _split_value(place, get_value(row, field))


def _iter_leaves(result: JsonValue, path: str) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    """Yield (place, value) of every plain value at a path; of a list its items."""
    for match in find_values(result, path):
        yield from _split_value(_get_place(match, path), match.value)


def _split_value(place: tuple[str, ...], value: JsonValue) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    items = enumerate(value) if isinstance(value, list) else [(None, value)]
    for index, item in items:
        if isinstance(item, str | int | float) and item != "":
            yield place if index is None else (*place, str(index)), item


def _get_place(match: PathMatch, path: str) -> tuple[str, ...]:
    positions = iter(str(level.index) for level in match.levels)
    return tuple(next(positions) if part == "*" else part for part in split_path(path))


def _is_empty_list(result: JsonValue, path: str) -> bool:
    return any(_find_empty_list(result, path))


def _find_empty_list(result: JsonValue, path: str) -> Iterator[tuple[str, ...]]:
    """Yield the place of the list on a path that has no rows."""
    parts = split_path(path)
    stop = parts.index("*") if "*" in parts else len(parts)
    if any(match.value == [] for match in find_values(result, join_path(parts[:stop]))):
        yield parts[:stop]


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
    return {stem(word) for word in split_identifier(text) if word not in _GENERAL and word not in _POLITE}

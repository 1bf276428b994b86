"""Detection of answers: whether a text states a value, also one that people state by words.

"No window is open", "they're shut" and, to the question whether one is open, "no" all state that `window_open` is
false. Numbers that are part of a date or of a time of day state no number, and the date alone answers no "what time".
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from trajsmith.phrasing.languages import get_language
from trajsmith.phrasing.value_formatting import format_value, humanize, is_value_mentioned, parse_datetime
from trajsmith.records import AnswerFact

_MONTH = (
    "january|february|march|april|may|june|july|august|september|october|november|december|"
    "jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec"
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_TIMES = re.compile(r"\b\d{1,2}:\d\d(?::\d\d)?\b|\b\d{1,2} ?[ap]\.?m\b")


def is_answer_stated(
    text: str, value: Any, label: str = "", words: Mapping[str, Sequence[str]] | None = None, question: str = ""
) -> bool:
    """Return True if a text states a value in a form that a reader understands.

    Args:
        text: What the agent says.
        value: The value; an empty list where there is nothing.
        label: The field in words: "window open".
        words: Values of the field to how people say them.
        question: The sentence that asks for it.
    """
    words = words or {}
    if isinstance(value, bool):
        return is_boolean_stated(text, value, label, words, question)
    if value == []:
        answers = get_language().answers
        return answers.nothing.search(answers.courtesies.sub(" ", text)) is not None
    flat = " ".join(text.lower().split())
    if isinstance(value, int | float):
        tokens = set(get_language().answers.token.findall(label.lower()))
        if value == 0 and get_language().answers.zero.search(flat):
            return True
        return is_value_mentioned(
            flat
            if tokens & get_language().answers.calendar
            else _TIMES.sub(" ", get_language().answers.dates.sub(" ", flat)),
            value,
        )
    moment = parse_datetime(value)
    if isinstance(moment, datetime):
        return _is_moment_stated(text, moment, str(value), bool(get_language().answers.what_time.search(question)))
    if any(_is_word_stated(flat, word) for word in words.get(str(value), ())):
        return True
    if isinstance(value, str) and value.islower() and value.replace("_", "").isalpha():
        return any(_is_word_stated(flat, form) for form in dict.fromkeys((value, humanize(value))))
    return is_value_mentioned(flat, value) or _is_split_stated(text, value)


def is_fact_answered(text: str, fact: AnswerFact) -> bool:
    """Return True if a text states a fact that a request asks for."""
    return is_answer_stated(text, fact.value, fact.label, fact.words, fact.question)


def is_boolean_stated(
    text: str, value: bool, label: str, words: Mapping[str, Sequence[str]], question: str = ""
) -> bool:
    """Return True if a text says whether something is so: by its words, their opposites, or a yes or no."""
    stated = set(_find_polarities(text, label, words))
    if stated:
        return bool(value in stated)
    asked = set(_find_polarities(question, label, words))
    positive = asked != {False}  # "Are the windows shut?": a yes means that none is open
    clauses = [clause.strip().lower() for clause in get_language().answers.clause_end.split(text)]
    answers = {positive for clause in clauses if get_language().answers.yes.match(clause)}
    answers |= {not positive for clause in clauses if get_language().answers.no.match(clause)}
    return bool(answers == {value})


def render_fact(fact: AnswerFact) -> str:
    """Render a fact as a plain statement: "window open: no"."""
    spoken = fact.words.get(_get_key(fact.value), ())
    if isinstance(fact.value, bool):
        return spoken[0] if spoken else f"{fact.label or 'it'}: {format_value(fact.value)}"
    if fact.value == []:
        return get_language().grammar.no_entry(fact.label)
    return format_value(fact.value)


def _get_key(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _find_polarities(text: str, label: str, words: Mapping[str, Sequence[str]]) -> Iterator[bool]:
    """Yield what each clause says of a field: true or false; nothing where it does not speak of it."""
    content = [
        word
        for word in get_language().answers.token.findall(humanize(label).lower())
        if word not in get_language().answers.empty_words
    ]
    positive, negative = _find_opposites(content)
    for clause in get_language().answers.clause_end.split(text.lower()):
        phrase = _find_phrase(clause, words)
        if phrase is not None:
            polarity, before = phrase
            yield polarity != _is_negated(before)
            continue
        tokens = get_language().answers.token.findall(clause)
        roots = [_get_root(token) for token in tokens]
        for number, (token, root) in enumerate(zip(tokens, roots, strict=True)):
            if token in negative:
                yield _is_negated(" ".join(tokens[:number]))
                break
            if token in positive or (content and root == _get_root(content[-1])):
                grammar = get_language().grammar
                named = ":" in text and re.search(
                    rf"{re.escape(token)}:?\s+({grammar.yes}|{grammar.no})\b", text.lower()
                )
                yield named.group(1) == grammar.yes if named else not _is_negated(" ".join(tokens[:number]))
                break


def _find_opposites(content: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the words for true and for false of a field whose name has these words."""
    for positive, negative in get_language().answers.opposites:
        for word in content:
            if word in positive:
                return positive, negative
            if word in negative:
                return negative, positive
    return set(), set()


def _find_phrase(clause: str, words: Mapping[str, Sequence[str]]) -> tuple[bool, str] | None:
    """Return which value the phrasebook's words in a clause mean and what stands before them; longest words first."""
    options = [(word.lower(), key == "true") for key in ("true", "false") for word in words.get(key, ())]
    for word, polarity in sorted(options, key=lambda option: -len(option[0])):
        match = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", clause)
        if match:
            return polarity, clause[: match.start()]
    return None


def _is_negated(before: str) -> bool:
    tokens = get_language().answers.token.findall(before)
    negations = [
        token for token in tokens if token in get_language().answers.negations or token.endswith(("n't", "n’t"))
    ]
    return len(negations) % 2 == 1


def _get_root(token: str) -> str:
    for ending in ("able", "ible", "ed", "s", "ly"):
        if token.endswith(ending) and len(token) - len(ending) >= 4:
            return token[: -len(ending)]
    return get_language().stem(token)


def _is_word_stated(flat: str, word: str) -> bool:
    """Return True if a word stands in a text and is not denied there."""
    plain = " ".join(word.lower().split())
    if plain not in flat:
        return False
    pattern = re.compile(rf"(?<![\w-]){re.escape(plain)}(?![\w-])")
    return any(not get_language().answers.no_longer.search(flat[: match.start()]) for match in pattern.finditer(flat))


def _is_split_stated(text: str, value: Any) -> bool:
    """Return True if a sentence states a thing and its place apart: "single room at Hotel Astra" in "At Astra, the
    single room is £80.00"."""
    parts = get_language().answers.placed.split(value) if isinstance(value, str) else []
    if len(parts) != 2 or not parts[0][:1].islower():
        return False
    return any(
        is_value_mentioned(sentence, parts[1]) and is_value_mentioned(sentence, parts[0])
        for sentence in _SENTENCE_END.split(text.lower())
    )


def _is_moment_stated(text: str, moment: datetime, value: str, exact: bool) -> bool:
    """Return True if a sentence states a moment: its date, and no other time than its own.

    Args:
        exact: The time of day is asked for, so the date alone does not do; the time alone does.
    """
    for sentence in get_language().answers.line_end.split(text.lower()):
        timed = _is_time_stated(sentence, moment)
        if (
            exact
            and timed
            and (is_value_mentioned(sentence, value) or not get_language().answers.dates.search(sentence))
        ):
            return True
        if not exact and is_value_mentioned(sentence, value) and (timed or not _TIMES.search(sentence)):
            return True
    return False


def _is_time_stated(flat: str, moment: datetime) -> bool:
    half = f"{moment.hour % 12 or 12}"
    options = [f"{moment:%H:%M}", f"{moment.hour}:{moment:%M}", rf"{half}[:.]{moment:%M} ?[ap]\.?m"]
    options += [rf"{half} ?[ap]\.?m"] if moment.minute == 0 else []
    return any(re.search(rf"(?<!\d){option}(?!\d)", flat) for option in options)

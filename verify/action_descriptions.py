"""Whether a text says what a call does: words of its tool, values of its arguments, the thing that it is about.

A text that names another thing of the same list, another amount, or rather the action of another tool does not.
"""

import functools
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from trajsmith.phrasing import (
    Wording,
    find_shown_row,
    get_language,
    is_distinctive,
    is_value_mentioned,
    split_identifier,
)
from trajsmith.phrasing.agreement_detection import split_clauses, split_sentences
from trajsmith.phrasing.confirmation import iterate_rows
from trajsmith.phrasing.wording import derive_request_phrase
from trajsmith.records import EnvironmentSpec, JsonObject, JsonValue, ToolSpec

_SLOT = re.compile(r"\{[^}]*\}")
_AMOUNT = re.compile(r"(^|_)(amount|price|sum|total|cost)$")
_CLOSE = 0.8
"""Share of the best tool's score that the tool of a call must reach to be the one that is meant."""
_VALUE_WEIGHT = 1.5
"""Score of an argument that is named."""
_MOST_EVIDENCE = 2
"""Named arguments that count."""


@dataclass(frozen=True)
class CallContext:
    """A call and what the agent had seen before it.

    Attributes:
        tool: The tool.
        arguments: Its arguments.
        shown: Results before it, the oldest first.
    """

    tool: ToolSpec
    arguments: JsonObject
    shown: Sequence[JsonValue]


class ActionMatcher:
    """Compares texts with the calls of one environment."""

    def __init__(self, spec: EnvironmentSpec, wording: Wording | None) -> None:
        writes = [tool for tool in spec.tools if tool.actor == "assistant" and tool.declares_write]
        self.words = {tool.name: _collect_tool_words(tool, wording) for tool in writes}
        spread = Counter(word for words in self.words.values() for word in words)
        self.weights = {word: math.log(1 + len(writes) / count) for word, count in spread.items()}

    def describes(self, sentences: Sequence[str], text: str, call: CallContext) -> bool:
        """Return True if a text says what a call does.

        Args:
            sentences: Those that ask for the yes.
            text: The whole message around them.
            call: The call.
        """
        if call.tool.name not in self.words or names_another_thing(text, call) or _is_other_amount(sentences, call):
            return False
        evidence = _VALUE_WEIGHT * min(_MOST_EVIDENCE, count_named_values(text, call))
        labels = _list_labels(call)
        asked = self.find_proposals(sentences, text)
        clauses = [_remove_labels(clause, labels) for sentence in asked for clause in split_clauses(sentence)]
        questions = (_remove_labels(split_sentences(sentence)[-1], labels) for sentence in asked if sentence.strip())
        clauses += [question for question in questions if self._score(question).total()]
        if leaves_action_open(asked) or not any(self._score(clause).total() for clause in clauses):
            clauses += [_remove_labels(clause, labels) for clause in split_clauses(text)]
        scores = [self._score(clause) for clause in clauses] or [Counter()]
        for score in scores:
            own = score[call.tool.name] + evidence
            best = max((value for tool, value in score.items() if tool != call.tool.name), default=0.0)
            if own > 0 and own >= _CLOSE * best:
                return True
        return False

    def find_proposals(self, sentences: Sequence[str], text: str) -> list[str]:
        """Return the sentences that ask, each plain question with what it is about.

        A remark may stand between the two: "I'll delete it. It can be brought back for 30 days. Are you happy with
        that?". Then the last sentence before the question in which the agent says what it would do takes its place.
        """
        pieces, asked = split_sentences(text.replace("’", "'")), []
        language = get_language()
        for sentence in sentences:
            question = next(reversed(split_sentences(sentence)), "")
            before = (
                pieces[: pieces.index(question)] if question in pieces and not self._score(question).total() else []
            )
            proposals = [
                each
                for each in before
                if language.actions.proposes.search(each)
                and not language.answers.nothing.search(each)
                and self._score(each).total()
            ]
            asked.append(f"{proposals[-1]} {question}" if proposals else sentence)
        return asked

    def says_more(self, sentences: Sequence[str], tool: str, other: str) -> bool:
        """Return True if a part of the sentences speaks of a tool at least as much as of another one."""
        scores = [self._score(clause) for sentence in sentences for clause in split_clauses(sentence)]
        return any(score[tool] > 0 and score[tool] >= score[other] for score in scores)

    def _score(self, text: str) -> "Counter[str]":
        """Return tool to how much its words stand in a text; words that few tools share count most."""
        spoken = _content_words(text)
        return Counter({tool: sum(self.weights[word] for word in spoken & words) for tool, words in self.words.items()})


@dataclass(frozen=True)
class _MatcherKey:
    """Key of a cached matcher; the spec counts by its id, since it cannot be hashed."""

    spec_id: str
    wording: Wording | None
    spec: EnvironmentSpec = field(compare=False)


def get_action_matcher(spec: EnvironmentSpec, wording: Wording | None) -> ActionMatcher:
    """Return the matcher of an environment; built once."""
    return _build_matcher(_MatcherKey(spec.id, wording, spec))


@functools.lru_cache(maxsize=64)
def _build_matcher(key: _MatcherKey) -> ActionMatcher:
    return ActionMatcher(key.spec, key.wording)


def leaves_action_open(sentences: Sequence[str]) -> bool:
    """Return True if a request leaves it to the rest of its message what will happen: "Shall I go ahead?"."""
    return any(map(get_language().actions.generic.search, sentences))


def _collect_tool_words(tool: ToolSpec, wording: Wording | None) -> frozenset[str]:
    texts = [" ".join(split_identifier(tool.name)), derive_request_phrase(tool)]
    if wording is not None and tool.name in wording.tools:
        phrases = wording.tool(tool.name)
        texts += [_SLOT.sub(" ", phrase) for phrase in (*phrases.confirm, *phrases.ask, *phrases.narrate)]
    return frozenset(word for text in texts for word in _content_words(text))


def _content_words(text: str) -> set[str]:
    return {
        get_language().stem(word)[: get_language().actions.root_length]
        for word in get_language().actions.word.findall(text.lower())
        if len(word) > 2 and word not in get_language().actions.empty
    }


def count_named_values(text: str, call: CallContext) -> int:
    """Return how many arguments a text names, by value or by what tells the identified thing from others."""
    number = 0
    for name, value in call.arguments.items():
        row, others = _find_thing(name, value, call.shown)
        values = [*_iterate_values(value), *_list_own_values(row, others)]
        number += any(is_value_mentioned(text, each) for each in values)
    return number


def _iterate_values(value: JsonValue) -> Iterator[JsonValue]:
    """Yield the plain values of an argument that a text can name: also words of choice, such as "saver"."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _iterate_values(inner)
    elif is_distinctive(value) or (isinstance(value, str) and len(value) > 2):
        yield value


def names_thing(text: str, call: CallContext) -> bool:
    """Return True if a text names one of the things that the call is about, or all of several."""
    return count_named_values(text, call) > 0 or get_language().actions.many.search(text) is not None


def names_open_value(text: str, earlier: str, known: Sequence[JsonValue], call: CallContext) -> bool:
    """Return True if a text names a value of the call, or a thing among several, that the user had not named.

    Args:
        text: The question.
        earlier: All that the user said before it.
        known: Values that the user told in words of their own.
        call: The call.
    """
    for name, value in call.arguments.items():
        row, others = _find_thing(name, value, call.shown)
        if row and not others:
            continue
        values = [*_list_own_values(row, others)] if row else [value]
        settled = value in known or any(each in known or is_value_mentioned(earlier, each) for each in values)
        if not settled and any(is_value_mentioned(text, each) for each in values):
            return True
    return False


def names_another_thing(text: str, call: CallContext) -> bool:
    """Return True if a text names a neighbour of the thing that the call is about, and not the thing itself."""
    for name, value in call.arguments.items():
        row, others = _find_thing(name, value, call.shown)
        if not row or not others or is_value_mentioned(text, value):
            continue
        for other in others:
            strange, own = _list_own_values(other, [row]), _list_own_values(row, [other])
            named = any(isinstance(each, str) and is_value_mentioned(text, each) for each in strange)
            labels = [each for key, each in row.items() if isinstance(each, str) and other.get(key) != each]
            if named and not any(is_value_mentioned(text, each) for each in (*own, *labels)):
                return True
    return False


def _find_thing(name: str, value: Any, shown: Sequence[JsonValue]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the row that an argument identifies, and the other rows with the same fields in the same result."""
    if not isinstance(value, str | int) or isinstance(value, bool):
        return {}, []
    for content in reversed(shown):
        row = find_shown_row({name: value}, [content])
        if row:
            others = [each for each in iterate_rows(content) if each.keys() == row.keys() and each != row]
            return row, others
    return {}, []


def _list_own_values(row: dict[str, Any], others: Sequence[dict[str, Any]]) -> Iterator[Any]:
    """Yield the values of a row that tell it from the others, as people would say them."""
    for key, value in row.items():
        if is_distinctive(value) and all(other.get(key) != value for other in others):
            yield value


def _list_labels(call: CallContext) -> list[str]:
    """List the texts of the rows that a call is about: words of a name, as "work phone", say nothing of the action."""
    rows = [_find_thing(name, value, call.shown)[0] for name, value in call.arguments.items()]
    labels = {value for row in rows for value in row.values() if isinstance(value, str) and len(value) > 2}
    return sorted(labels, key=lambda label: (-len(label), label))


def _remove_labels(clause: str, labels: Sequence[str]) -> str:
    for label in labels:
        plain = label.isascii() and clause.isascii()
        if plain and label.lower() not in clause.lower():  # nearly always, and a pattern for each label is dear
            continue
        clause = re.sub(rf"\b{re.escape(label)}\b", " ", clause, flags=re.IGNORECASE)
    return clause


def _is_other_amount(sentences: Sequence[str], call: CallContext) -> bool:
    """Return True if the sentences name amounts of money, and none of them is that of the call."""
    amounts = [
        value
        for name, value in call.arguments.items()
        if _AMOUNT.search(name) and isinstance(value, int | float) and not isinstance(value, bool)
    ]
    named = [amount for text in sentences for amount in get_language().grammar.find_amounts(text)]
    return bool(amounts and named) and not any(abs(value - other) < 0.005 for value in amounts for other in named)

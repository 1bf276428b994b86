"""Answers and reports of the scripted agent: exactly what was asked, or a result as a whole in the agent's style."""

import random
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from trajsmith.grounding import find_rows
from trajsmith.phrasing import Wording, capitalize_first, is_fact_answered, pick_text
from trajsmith.phrasing.value_formatting import format_quoted, format_value, humanize, join_words
from trajsmith.records import AnswerFact, GoldCall, RequestedInfo, derive_seed

AgentStyle = Literal["short", "plain", "explanatory"]
"""How an agent reports a result: `ToolPhrases.brief`, `done` or `detailed`."""
STYLES: tuple[AgentStyle, ...] = ("short", "plain", "explanatory")


def draw_style(seed: int, candidate: int) -> AgentStyle:
    """Return the style of the agent in one dialogue."""
    return random.Random(derive_seed(seed, "agent style", candidate)).choice(STYLES)


class ReportWriter:
    """Writes what an agent tells of results: an answer to each question, and a report of what was asked as a whole."""

    def __init__(self, wording: Wording, style: AgentStyle, rng: random.Random) -> None:
        self.wording = wording
        self.style = style
        self.rng = rng

    def answer(self, info: RequestedInfo, call: GoldCall, content: Any) -> str | None:
        """Return an answer to a narrow question, or None if no answer fits the result."""
        values = {"out": content, "arg": dict(call.arguments), "row_templates": self.wording.rows}
        if info.row is not None:
            values["row"] = next(find_rows(content, info.row), None)
            if values["row"] is None:
                return None
        return self._pick(info.answer, values, info.facts)

    def report(self, call: GoldCall, content: Any, facts: Sequence[AnswerFact] = ()) -> str:
        """Return a report of a whole result in the agent's style, if possible one with all facts."""
        phrases = self.wording.tool(call.tool)
        styled = {"short": phrases.brief, "explanatory": phrases.detailed, "plain": ()}[self.style]
        values = {"out": content, "arg": dict(call.arguments), "row_templates": self.wording.rows}
        text = self._pick(styled, values, facts) or self._pick(phrases.done, values, facts)
        return text or render_plain_report(call, content)

    def _pick(self, templates: Sequence[str], values: dict[str, Any], facts: Sequence[AnswerFact]) -> str | None:
        """Return a rendered template, if possible one that states all facts; None if none fits the values."""
        first = None
        for template in self.rng.sample(list(templates), len(templates)):
            text = pick_text([template], values, self.rng)
            if text and all(is_fact_answered(text, fact) for fact in facts):
                return text
            first = first or text
        return first


def render_missing_facts(text: str, facts: Sequence[AnswerFact], results: Sequence[Any]) -> list[str]:
    """Return sentences for the facts that a text leaves out, each with the name of its field.

    Args:
        text: What is said already.
        facts: What must be said.
        results: Where the names of fields stand that the facts do not tell.
    """
    fields = [(name, value) for result in results for name, value in _iter_fields(result)]
    missing = [fact for fact in facts if not is_fact_answered(text, fact)]
    named = [
        (fact.label or next((humanize(name) for name, value in fields if value == fact.value), ""), fact)
        for fact in missing
    ]
    sentences = [_render_named(label, fact) for label, fact in named if label]
    bare = [format_quoted(fact.value) for label, fact in named if not label]
    return [*sentences, *([f"It also shows {join_words(bare)}."] if bare else [])]


def _render_named(label: str, fact: AnswerFact) -> str:
    if fact.value == []:
        return f"There is no {label}."
    if isinstance(fact.value, bool) and fact.words.get(str(fact.value).lower()):
        return f"{capitalize_first(fact.words[str(fact.value).lower()][0])}."
    return f"{capitalize_first(label)}: {format_quoted(fact.value)}."


def _iter_fields(result: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value of a result with the name of its field."""
    if isinstance(result, dict):
        for key, value in result.items():
            yield from _iter_fields(value, key)
    elif isinstance(result, list):
        for value in result:
            yield from _iter_fields(value, name)
    else:
        yield name, result


def render_plain_report(call: GoldCall, content: Any) -> str:
    """A report for tools that nobody wrote phrases for: the text itself, or the fields with their names."""
    while isinstance(content, dict) and len(content) == 1:
        content = next(iter(content.values()))
    if isinstance(content, str):
        return (
            f"Here is what I got:\n{content.strip()}"
            if "\n" in content.strip()
            else f"Here is what I got: {content.strip()}"
        )
    if isinstance(content, list):
        rows = "; ".join(format_value(row) for row in content[:8])
        return f"I found {len(content)}: {rows}."
    if isinstance(content, dict):
        opening = "Here is what I found" if call.effect == "read" else "Done"
        return (
            f"{opening}: {format_value({key: value for key, value in content.items() if value not in (None, [], {})})}."
        )
    return f"The answer is {format_value(content)}." if call.effect == "read" else "That's done."

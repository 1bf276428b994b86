"""Questions for one of several things: few are listed by name, of many the user is asked which one it is."""

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from trajsmith.grounding import find_values, get_state, get_value
from trajsmith.phrasing import (
    LEAST_ITEMS,
    AgentVoice,
    Wording,
    capitalize_first,
    draw_pattern,
    find_row_template,
    format_value,
    get_language,
    is_value_mentioned,
    join_items,
    join_words,
    lay_out_items,
    pluralize,
    render_phrase,
)
from trajsmith.records import JsonValue, Selector
from trajsmith.usersim.confirmation_questions import LINE, ConfirmationWriter

_DETERMINER = re.compile(r"^(?:my|our|the|a|an|mein\w*|unser\w*|d(?:er|ie|as|en|em)) ", re.IGNORECASE)
LONGEST_CHOICE = 5
"""Things that a question lists at most."""


class ChoiceWriter:
    """Writes the question which of several things is meant."""

    def __init__(self, wording: Wording, rng: random.Random, voice: AgentVoice) -> None:
        self.wording = wording
        self.rng = rng
        self.voice = voice

    def write(
        self, parameter: str, rows: Sequence[Any], selector: Selector, earlier: str = "", whole: bool = True
    ) -> str:
        """Return the question.

        Args:
            parameter: What identifies the thing.
            rows: What there is to choose from.
            selector: How the user will pick one.
            earlier: What was said before; a list that stands in it is not repeated.
            whole: The rows are all that a result has shown; else no number of them is told as that of all.
        """
        entity = self.wording.entity(parameter)
        plain = get_language().grammar.which(entity)
        if all(is_value_mentioned(earlier, get_value(row, selector.field)) for row in rows):
            return plain
        plural = entity.plural or pluralize(entity.noun)
        if len(rows) > LONGEST_CHOICE:
            return get_language().agent.which_of_many.format(plural=plural, which=plain)
        names = self._name_rows(parameter, rows, selector)
        stacked = len(names) >= LEAST_ITEMS and sum(map(len, names)) > LINE
        detailed = any("," in name for name in names)
        fitting = [frame for frame in self.voice.chooses if whole or "{count}" not in frame]
        frames = [frame for frame in fitting if "{rows}" in frame] if detailed or stacked else []
        if stacked and frames:
            lead, _, question = draw_pattern(frames, self.rng).partition("{rows}")
            items = "\n".join(f"- {capitalize_first(_DETERMINER.sub('', name))}" for name in names)
            lead = lead.rstrip().format(count=len(rows), noun=entity.noun, plural=plural)
            return f"{lead}\n{items}\n\n{question.lstrip('. ')}".rstrip()
        question = draw_pattern(frames or fitting, self.rng).format(
            count=len(rows),
            noun=entity.noun,
            plural=plural,
            rows=join_items(names) if detailed else join_words(names),
            choice=_join_detailed(names) if detailed else get_language().grammar.join_choices(names),
        )
        return lay_out_items(question)

    def _name_rows(self, parameter: str, rows: Sequence[Any], selector: Selector) -> list[str]:
        """Return the rows by name, or with details where names do not tell what the user picks one by."""
        writer = ConfirmationWriter(self.wording, self.rng, self.voice)
        names = writer.name_things(parameter, rows, rows) if all(isinstance(row, dict) for row in rows) else []
        if any(is_value_mentioned(name, selector.value) for name in names):
            return names
        template = find_row_template(rows, self.wording.shuffle_rows(self.rng).get(parameter, ()))
        return [
            (template and render_phrase(template, row)) or format_value(get_value(row, selector.field)) for row in rows
        ]


def _join_detailed(names: Sequence[str]) -> str:
    """Join names that have commas of their own: "a, b; or c, d"."""
    (*first, last) = names
    return f"{'; '.join(first)}; {get_language().grammar.alternative} {last}" if first else last


def list_current_rows(shown: JsonValue, selector: Selector, parameter: str, is_stale: Callable[..., bool]) -> list[Any]:
    """Return the rows of a result, without those that were changed since.

    Args:
        is_stale: Takes the name and the value of what identifies a row, or nothing for a row without it.
    """
    rows: Any = next((match.value for match in find_values(shown, selector.rows)), [])
    if not isinstance(rows, list):
        return []
    keys = [(parameter, row[parameter]) if isinstance(row, dict) and parameter in row else () for row in rows]
    return [row for row, key in zip(rows, keys, strict=True) if not is_stale(*key)]


def select_meant_rows(
    rows: list[Any], selector: Selector, text: str, wording: Wording, parameter: str = ""
) -> list[Any]:
    """Return the rows that fit what the user has said, if the one that is meant is among them; else all.

    Args:
        rows: The rows of a list.
        selector: How the user will pick one.
        text: The request.
        wording: How people call a thing, and the words by which they say a value.
        parameter: What identifies the thing.
    """
    named = select_named_rows(rows, text, wording, parameter)
    described = named or select_described_rows(rows, text, wording)
    meant = next((row for row in described if get_value(row, selector.field) == selector.value), None)
    if meant is None:
        return rows
    alike = [row for row in described if get_state(row) == get_state(meant)]
    return alike if len(alike) > 1 else described


def select_named_rows(rows: list[Any], text: str, wording: Wording, parameter: str) -> list[Any]:
    """Return the rows that a request calls as people call such a thing: "trip to Lunna"; none if fewer than two."""
    entity = wording.entity(parameter)
    named = []
    for row in (row for row in rows if isinstance(row, dict)):
        for field, templates in entity.by.items():
            value = row.get(field)
            if value is None or isinstance(value, bool):
                continue
            forms = {format_value(value), *wording.parameter("", field).values.get(str(value), ())}
            phrases = (
                render_phrase(template, {"value": form, "noun": entity.noun})
                for template in templates
                for form in forms
            )
            if any(phrase and is_value_mentioned(text, _DETERMINER.sub("", phrase)) for phrase in phrases):
                named.append(row)
                break
    return named if len(named) > 1 else []


def select_described_rows(rows: list[Any], text: str, wording: Wording | None = None) -> list[Any]:
    """Return the rows that a request fits best: those with most of the values that it mentions; all if it fits none.

    Args:
        rows: The rows of a list.
        text: The request.
        wording: Has the words by which people say a value: "zip file" for an archive.
    """
    fits = [_count_mentioned(row, text, wording) if isinstance(row, dict) else 0 for row in rows]
    best = max(fits, default=0)
    described = [row for row, count in zip(rows, fits, strict=True) if count == best]
    return described if best and len(described) > 1 else rows


def _count_mentioned(row: dict[str, Any], text: str, wording: Wording | None) -> int:
    count = 0
    for field, value in row.items():
        words = wording.parameter("", field).values.get(str(value), ()) if wording else ()
        by_words = any(re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) for word in words)
        count += by_words or (isinstance(value, str) and len(value) > 3 and is_value_mentioned(text, value))
    return count
